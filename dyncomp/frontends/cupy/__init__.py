"""The CuPy frontend: NumPy's rules for arrays on a GPU. Importing this package imports cupy; ``import
dyncomp`` does not import it."""

from .frontend import CupyFrontend

__all__ = ["CupyFrontend"]
