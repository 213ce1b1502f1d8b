"""The command ``dyncomp``."""
