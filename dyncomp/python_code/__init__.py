"""Code objects as canonical instructions: analyses, editing, continuations, loop bodies. Pure functions."""
