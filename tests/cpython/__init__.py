"""CPython's own tests, every test method compiled, compared with plain CPython: ``python -m tests.cpython``."""
