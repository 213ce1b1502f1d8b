"""Elementary functions on whole vectors for generated code (sources in csrc/vector_math)."""

available: bool
"""Whether this build and this processor have them."""
