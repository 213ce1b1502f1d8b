"""Sizes of arrays: symbols, sizes that depend on data, what users say of them."""
