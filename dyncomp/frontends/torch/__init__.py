"""The torch frontend. Importing this package imports torch; ``import dyncomp`` does not import it."""

from .frontend import TorchFrontend

__all__ = ["TorchFrontend"]
