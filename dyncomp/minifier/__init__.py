"""Failing programs shrunk to a few lines, and the layer at fault."""
