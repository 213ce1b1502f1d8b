"""CPython's own tests, every test method compiled: ``python -m tests.cpython``."""
