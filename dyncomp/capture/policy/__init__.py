"""Whether and when to compile."""
