"""NumPy programs as scientists write them; nothing here knows of dyncomp.

Each module has its functions and ``make_inputs(quick)``, which returns the arguments of the function that
``demo.catalog`` names; ``quick`` asks for sizes that run in about a millisecond, for the tests.
"""
