"""Exported graphs: one file that runs without a compiler and without the program that it came from."""
