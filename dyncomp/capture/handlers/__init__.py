"""Handlers of canonical instructions, by family; importing this package registers all of them."""

from . import build, call, classes, data, exceptions, generators, imports, jump, match

__all__ = ["build", "call", "classes", "data", "exceptions", "generators", "imports", "jump", "match"]
