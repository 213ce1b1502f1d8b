"""Loops in captured code: which stay plain, which are compiled whole."""
