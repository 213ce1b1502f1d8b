"""Compiled code beside the original: what a call does, compared in a process of its own."""
