"""The graph IR, its text form, interpreter and passes."""
