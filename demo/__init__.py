"""Real NumPy programs, run with NumPy and with dyncomp: ``python -m demo``."""
