"""The functions by which ``dyncomp.vmap`` asks in captured code for what is to run for a whole batch; rules
make markers of them. As plain Python, ``vmap`` is a loop, and these are not called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import NotBatchableError


def element(whole: Any) -> Any:
    """``whole[i]`` for some element ``i`` of a batch, which is axis 0."""
    _is_plain()


def batch(values: Sequence[Any], elements: Sequence[Any], size: int) -> tuple[Any, ...]:
    """For each of ``values``, which may depend on ``elements``, an array of what it is for all elements of
    the batch, in axis 0."""
    _is_plain()


def _is_plain() -> NoReturn:
    raise NotBatchableError("vmap was captured, and runs as plain Python")
