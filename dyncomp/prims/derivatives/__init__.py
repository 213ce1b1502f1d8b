"""Derivatives of rows that are no functions of elements; see README.md for the conventions."""
