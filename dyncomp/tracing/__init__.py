"""Graphs as objects of the user: traced, printed, changed and run."""

from .function import GraphFunction, symbolic_trace, wrap_graph

__all__ = ["GraphFunction", "symbolic_trace", "wrap_graph"]
