"""Public packages' own tests, run with the packages' functions compiled: ``python -m tests.packages``."""
