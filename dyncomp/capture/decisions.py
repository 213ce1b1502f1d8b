"""What attempts at a capture hand on to those after them: where to break, and what not to inline."""

from __future__ import annotations

import types
import weakref
from collections.abc import Sequence
from typing import Any

from ..dataclass import dataclass, field
from ..device import Device
from .breaks import Break


class Restart(Exception):
    """Begin the capture again: a decision was added."""


@dataclass
class Decisions:
    """What earlier attempts at the same frame found out; keys are (code, instruction index)."""

    loop_breaks: dict[tuple[types.CodeType, int], str] = field(default_factory=dict)  # what breaks inside
    busy_loops: set[tuple[types.CodeType, int]] = field(default_factory=set)  # not idle (`idle_loops`)
    no_inline: dict[tuple[types.CodeType, int], str] = field(default_factory=dict)  # why
    plain: dict[tuple[types.CodeType, int], str] = field(default_factory=dict)
    breaks: dict[tuple[types.CodeType, int], Break] = field(default_factory=dict)
    constant_results: dict[Any, Any] = field(default_factory=dict)
    plain_generators: dict[types.CodeType, str] = field(default_factory=dict)
    # calls of cached functions that broke the graph as their caches hold no result so far
    unknown_results: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    shallow: set[types.CodeType] = field(default_factory=set)  # recursive, and not to be inlined to the end
    recorded: bool = False  # arrays, in a block of captured code (`Frontend.records`)
    device: Device | None = None  # of the arrays that come after numbers on the CPU
    among_tensors: bool = False  # a NumPy scalar came before the tensors that it is a number to

    whole: bool = False  # arrays without strides, which may share memory with what the graph writes

    def places_in(self, code: types.CodeType) -> frozenset[int]:
        """The instructions of ``code`` at which capture ends or breaks."""
        decided = (*self.loop_breaks, *self.plain, *self.breaks)
        return frozenset([index for known, index in decided if known == code])


def under_way(frames: Sequence[Any]) -> tuple[weakref.ref[types.CodeType], int] | None:
    """The instruction that the innermost frame executes, for what outlives the capture."""
    return (weakref.ref(frames[-1].raw_code), frames[-1].current) if frames else None
