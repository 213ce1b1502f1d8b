"""``mode="reduce-overhead"`` on a GPU: what a call launches is recorded once and replayed (a CUDA graph).

The first call runs as it is, which builds and measures everything; the second is recorded. Arrays that lie
where they lay before (parameters) are read in place as long as they do; all others, and all that are written,
are copied into arrays of the recording's own, and written ones back. Results are copies: nobody but the
recording holds its memory. Calls on another stream than the recorded one, and within somebody else's
recording, run as they are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...device import Device
from ...frontends.base import DeviceLibrary, GraphRecorder
from ..launch import InputSlot, LaunchPlan

log = logging.getLogger("dyncomp.gpu")

# How often a call is recorded anew because an array that lay still has moved.
MOST_RECORDINGS = 4
# Fewer launches than this take less time than a replay, which copies arrays in and out.
LEAST_LAUNCHES = 4
_NUMBERS = ("float", "complex", "bool", "int")


def why_not(plan: LaunchPlan, library: DeviceLibrary) -> str:
    """Why the calls of a graph cannot be recorded; empty if they can."""
    if library.graphs is None:
        return "the library records no launches"
    if plan.symbols:
        return "sizes are known at the call only"
    if any(out.kind != "array" for out in plan.outputs):
        return "a result is a number in Python"
    if any(slot.kind != "array" and slot.kind not in _NUMBERS for slot in plan.inputs):
        return "an argument is neither an array nor a number"
    return ""


@dataclass
class _Recording:
    """``replay()`` launches it. ``inputs``: what it reads, by position; ``fixed``: the addresses of those
    that are the program's own arrays (``None`` for copies)."""

    replay: Callable[[], None]
    inputs: list[Any]
    fixed: list[int | None]
    outputs: Sequence[Any]
    stream: int


class Replayed:
    """``run`` of a generated module, replayed from its second call on."""

    def __init__(
        self,
        run: Callable[..., Any],
        plan: LaunchPlan,
        library: DeviceLibrary,
        device: Device,
        name: str,
    ) -> None:
        assert library.graphs is not None
        self.run = run
        self.slots = plan.inputs
        self.library = library
        self.graphs: GraphRecorder = library.graphs
        self.device = device
        self.name = name
        self.seen: list[int | None] | None = None
        self.moving: set[int] = {k for k, slot in enumerate(plan.inputs) if slot.writable}
        self.recording: _Recording | None = None
        self.left = MOST_RECORDINGS
        self.lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        if self.left < 0 or self.graphs.is_recording():
            return self.run(*inputs)
        with self.lock:
            previous = self.library.enter(self.device.index)
            try:
                return self._call(inputs)
            finally:
                self.library.leave(previous)

    def _call(self, inputs: Sequence[Any]) -> Any:
        places = [self._place(slot, value) for slot, value in zip(self.slots, inputs)]
        if self.seen is None:
            self.seen = places
            return self.run(*inputs)
        recording = self.recording
        if recording is None or not self._still(recording, places):
            recording = self._record(inputs, places)
        if recording is None or recording.stream != self.library.stream(self.device.index):
            return self.run(*inputs)
        self._fill(recording, inputs)
        recording.replay()
        for k, slot in enumerate(self.slots):
            if slot.writable:
                self.graphs.copy(inputs[k], recording.inputs[k])
        return tuple(self.graphs.clone(out) for out in recording.outputs)

    def _place(self, slot: InputSlot, value: Any) -> int | None:
        return self.library.pointer(value) if slot.kind == "array" else None

    def _still(self, recording: _Recording, places: Sequence[int | None]) -> bool:
        """Whether the arrays that are read in place lie where they lay."""
        return all(old is None or old == new for old, new in zip(recording.fixed, places))

    # -- recording ----------------------------------------------------------------------------
    def _record(self, inputs: Sequence[Any], places: list[int | None]) -> _Recording | None:
        """A recording that reads in place what has not moved; ``None`` if there can be none."""
        assert self.seen is not None
        self.moving |= {k for k, (old, new) in enumerate(zip(self.seen, places)) if old != new}
        self.seen = places
        self.recording = None
        self.left -= 1
        if self.left < 0:
            log.warning("%s: arrays move from call to call; launches are not replayed", self.name)
            return None
        try:
            self.recording = self._recorded(inputs, places)
        except Exception as error:
            self.left = -1
            log.warning("%s cannot be recorded, its kernels are launched one by one: %s", self.name, error)
        return self.recording

    def _recorded(self, inputs: Sequence[Any], places: list[int | None]) -> _Recording:
        own = list(inputs)
        fixed = list(places)
        for k, slot in enumerate(self.slots):
            if slot.kind != "array" or k in self.moving:
                own[k] = self._copy_of(slot, inputs[k])
                fixed[k] = None
        self.run(*own)  # kernels for these addresses are built before anything is recorded
        stream = self.library.stream(self.device.index)
        replay, outputs = self.graphs.record(self.device.index, lambda: self.run(*own))
        return _Recording(replay, own, fixed, outputs, stream)

    def _copy_of(self, slot: InputSlot, value: Any) -> Any:
        assert slot.dtype is not None
        if slot.kind != "array":
            return self.library.full(value, slot.dtype.name, self.device)
        made = self.library.empty(value.shape, self.graphs.strides(value), slot.dtype.name, self.device)
        self.graphs.copy(made, value)
        return made

    def _fill(self, recording: _Recording, inputs: Sequence[Any]) -> None:
        for k, slot in enumerate(self.slots):
            if slot.kind != "array":
                self.graphs.fill(recording.inputs[k], inputs[k])
            elif recording.fixed[k] is None:
                self.graphs.copy(recording.inputs[k], inputs[k])
