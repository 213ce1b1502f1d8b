"""The one place that knows Python versions: bytecode to canonical instructions and back."""

from dyncomp.capture.pyver.decode import decode
from dyncomp.capture.pyver.encode import encode

__all__ = ["decode", "encode"]
