"""Graphs in which sizes depend on the data: cut into stages, written as source, run stage by stage."""
