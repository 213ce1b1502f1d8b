"""Calls while tracing: what is inlined, folded, kept opaque, substituted, or left to plain Python."""
