"""Measurements against NumPy and the peers: ``python -m bench`` writes ``bench/RESULTS.md``."""
