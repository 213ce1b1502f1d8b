"""Handlers of canonical instructions, by family; importing this package registers all of them."""

from . import build, call, data, exceptions, generators, jump

__all__ = ["build", "call", "data", "exceptions", "generators", "jump"]
