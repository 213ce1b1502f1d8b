"""From functional graphs to compiled kernels."""
