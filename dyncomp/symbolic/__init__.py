"""Symbolic integers: sizes and counters that are not known when code is generated."""
