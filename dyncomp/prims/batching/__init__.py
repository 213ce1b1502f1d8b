"""Batching rules of rows."""
