"""From graphs of prims to clusters of loop computations: one function for each kind of op."""
