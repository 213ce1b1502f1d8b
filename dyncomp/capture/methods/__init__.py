"""Methods of builtin containers on traced values, by type."""
