"""Loops over single numbers, compiled whole.

``look`` and ``choice`` say which loops these are, ``policy`` when the compiled form is entered; ``record`` is
what is told of them.
"""
