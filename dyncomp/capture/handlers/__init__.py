"""Handlers of canonical instructions, by family; importing this package registers all of them."""

from . import build, call, data, jump

__all__ = ["build", "call", "data", "jump"]
