"""Exceptions that an operation of the library raises, with Python's type and message."""

from __future__ import annotations

from typing import Any, NoReturn

from .breaks import Break
from .values.base import Tracer


def python_error(tracer: Tracer, cls: type[BaseException], *args: Any) -> NoReturn:
    """The operation being executed raises ``cls(*args)``."""
    text = ", ".join(map(str, args))
    raise Break("would-raise", f"{cls.__name__}: {text:.200}")
