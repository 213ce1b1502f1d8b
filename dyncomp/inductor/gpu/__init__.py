"""Graphs whose arrays live on a GPU: Triton kernels launched from a generated Python function."""
