"""NumPy's arrays, scalars and callables in ops (``frontend.NumpyFrontend``)."""
