"""The table of ops."""
