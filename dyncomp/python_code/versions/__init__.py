"""The one place that knows Python versions: bytecode to canonical instructions and back."""

from dyncomp.python_code.versions.decode import decode
from dyncomp.python_code.versions.encode import encode

__all__ = ["decode", "encode"]
