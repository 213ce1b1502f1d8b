"""NumPy's arrays, scalars and callables in ops."""

from .frontend import NumpyFrontend

__all__ = ["NumpyFrontend"]
