"""Libraries for callers in C: a header, readable sources and a shared object, of an exported function."""
