"""Pointwise ops: one row each, with the scalar function and its spellings per target."""
