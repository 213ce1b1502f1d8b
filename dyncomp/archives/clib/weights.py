"""Weights and constants of a library for C as one piece of memory: a head, then arrays, 64 bytes aligned."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ..captured import WholeFunction
from .interface import Interface, memory_of

MAGIC = b"dyncomp weights\n"
HEAD = 64
_LINE = 64


@dataclass(frozen=True, eq=False)
class Weights:
    """``content``: head (:data:`MAGIC`, size, digest) and arrays; ``inputs`` and ``constants``: where the
    first element of each lies, by the input's number and in the order of the plan."""

    content: bytes
    inputs: dict[int, int] = field(default_factory=dict)
    constants: tuple[int, ...] = ()

    @property
    def digest(self) -> bytes:
        return self.content[len(MAGIC) + 8 : len(MAGIC) + 8 + 32]


def weights_of(made: Interface) -> Weights | None:
    """``None`` where there are none."""
    parts: list[bytes] = []
    at = HEAD
    seen: dict[int, int] = {}

    def add(value: Any) -> int:
        nonlocal at
        if id(value) in seen:
            return seen[id(value)]
        content, first = _memory(made.whole, value)
        parts.append(content + bytes(-len(content) % _LINE))
        seen[id(value)] = at + first
        at += len(parts[-1])
        return seen[id(value)]

    inputs = {place: add(value) for place, value in made.weights.items()}
    constants = tuple(add(value) for value in made.plan.constants)
    if not parts:
        return None
    body = b"".join(parts)
    head = MAGIC + at.to_bytes(8, "little") + hashlib.sha256(body).digest()
    return Weights(head.ljust(HEAD, b"\0") + body, inputs, constants)


def _memory(whole: WholeFunction, value: Any) -> tuple[bytes, int]:
    """The bytes that an array lies in, and where in them its first element is."""
    address, shape, strides = memory_of(whole, value)
    item = value.dtype.itemsize
    if 0 in shape:
        return b"", 0
    reach = [(size - 1) * stride * item for size, stride in zip(shape, strides)]
    low = sum(step for step in reach if step < 0)
    high = sum(step for step in reach if step > 0) + item
    if isinstance(value, np.ndarray) and not value.flags.aligned:
        return np.ascontiguousarray(value).tobytes(), 0
    return ctypes.string_at(address + low, high - low), -low
