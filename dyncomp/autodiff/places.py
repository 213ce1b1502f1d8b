"""What ``wrt=`` names: a place in an argument of a function, as ``"model.layers[0].weights"``."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..capture.environment.regions import temporary
from ..dataclass import dataclass

_NAME = re.compile(r"\w*")
_STEP = re.compile(
    r"\.(?P<attribute>[^\W\d]\w*)|\[(?P<index>-?\d+)\]|\[(?P<quote>['\"])(?P<key>.*?)(?P=quote)\]"
)


@dataclass(frozen=True)
class Place:
    """``text`` as it was given; the argument's ``name`` and ``position`` (-1: by keyword only); the steps
    from there, each an attribute (``True``, name) or an item (``False``, key)."""

    text: str
    name: str
    position: int
    steps: tuple[tuple[bool, Any], ...]


def fetch(step: tuple[bool, Any], holder: Any) -> Any:
    is_attribute, key = step
    return getattr(holder, key) if is_attribute else holder[key]


@temporary
def store(step: tuple[bool, Any], holder: Any, value: Any) -> None:
    is_attribute, key = step
    if is_attribute:
        setattr(holder, key, value)
    else:
        holder[key] = value


def places(f: Callable[..., Any], names: Sequence[str]) -> tuple[Place, ...]:
    """The places that names speak of. Raises ``ValueError`` for what is no place in ``f``'s arguments."""
    code = getattr(f, "__code__", None)
    if code is None:
        raise ValueError(f"wrt= names arguments of a Python function, and f is {type(f).__name__}")
    if not names:
        raise ValueError("wrt= names nothing")
    return tuple([_place(code, name) for name in names])


def _place(code: types.CodeType, text: str) -> Place:
    named = _NAME.match(text)
    name = "" if named is None else named.group()
    steps = []
    end = len(name)
    while end < len(text):
        found = _STEP.match(text, end)
        if found is None:
            raise ValueError(f"wrt={text!r}: what follows {text[:end]!r} is no attribute and no item")
        end = found.end()
        if found["attribute"] is not None:
            steps.append((True, found["attribute"]))
        else:
            steps.append((False, found["key"] if found["index"] is None else int(found["index"])))
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if name not in arguments:
        raise ValueError(f"wrt={text!r}: {code.co_qualname} has no argument {name!r}")
    position = arguments.index(name)
    return Place(text, name, position if position < code.co_argcount else -1, tuple(steps))
