"""Code objects inside of code objects: inner functions, lambdas, classes, comprehensions (before 3.12)."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType


def code_within(code: CodeType) -> Iterator[CodeType]:
    """``code``, and all code nested in it, however deep."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_within(constant)


def names_within(code: CodeType) -> list[str]:
    """The names of globals, attributes and modules in ``code`` and in code nested in it, each once."""
    return list(dict.fromkeys(name for part in code_within(code) for name in part.co_names))
