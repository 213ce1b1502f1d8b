"""Passes over functional graphs: each takes a graph and the op table and returns a graph."""
