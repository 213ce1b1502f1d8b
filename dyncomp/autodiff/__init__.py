"""Derivatives of NumPy functions; see README.md."""
