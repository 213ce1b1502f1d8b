"""``mode="reduce-overhead"`` on a GPU: what a call launches is recorded once and replayed (a CUDA graph).

The first call runs as it is, which builds and measures everything; the second is recorded. Arrays that lie
where they lay before (parameters, caches that are written) are read and written in place as long as they do;
all others are copied into arrays of the recordings' own, and written ones back. Calls on another stream than
the recorded one, and within somebody else's recording, run as they are.

Results are the memory that a recording writes. It is replayed again when nobody holds them any more (their
storages are counted); as long as somebody does, another recording takes its turn, up to ``MOST_GIVEN``, and
then one whose results are copied. All share one pool of memory for temporaries; results are not of it, for
a recording that is replayed writes its temporaries where others have free memory of the pool.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...device import Device
from ...frontends.base import DeviceLibrary, GraphRecorder
from ..launch import InputSlot, LaunchPlan, OutputSlot

log = logging.getLogger("dyncomp.gpu")

# How often a call is recorded anew because an array that lay still has moved.
MOST_RECORDINGS = 4
# Fewer launches than this take less time than a replay, which copies arrays in and out.
LEAST_LAUNCHES = 4
# Recordings whose results are given away as they lie, and how many bytes of results each may have.
MOST_GIVEN = 3
MOST_BYTES = 1 << 28
# Kernels are built for addresses divisible by this many bytes, or for any.
ALIGNMENT = 16
_NUMBERS = ("float", "complex", "bool", "int")


def why_not(plan: LaunchPlan, library: DeviceLibrary) -> str:
    """Why the calls of a graph cannot be recorded; empty if they can."""
    if library.graphs is None:
        return "the library records no launches"
    if plan.symbols:
        return "sizes are known at the call only"
    if any(out.kind not in ("array", "host") for out in plan.outputs):
        return "a result is a number in Python"
    if any(slot.kind != "array" and slot.kind not in _NUMBERS for slot in plan.inputs):
        return "an argument is neither an array nor a number"
    return ""


@dataclass
class _Recording:
    """``replay()`` launches it. ``places``: the addresses of its results; ``holders``: how many hold the
    memory of each while nobody outside does; ``given``: whether results are given away as they lie."""

    replay: Callable[[], None]
    outputs: Sequence[Any]
    places: list[int]
    holders: list[int]
    given: bool


@dataclass
class _Inputs:
    """What recordings read: numbers ``fixed`` of arrays that lie at ``places``, and ``copies`` of the others,
    in groups of one dtype; ``written``: those groups' numbers that are copied back. ``numbers``: what the
    numbers among them were last."""

    stream: int
    fixed: list[int]
    places: list[int]
    own: list[Any]
    groups: list[list[int]]
    written: list[list[int]]
    numbers: dict[int, Any]


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
        self.results = plan.outputs
        self.library = library
        self.graphs: GraphRecorder = library.graphs
        self.device = device
        self.name = name
        self.arrays = [k for k, slot in enumerate(plan.inputs) if slot.kind == "array"]
        self.seen: list[int] | None = None
        self.moving: set[int] = set()
        self.inputs: _Inputs | None = None
        self.pick: Callable[[Sequence[Any]], Sequence[Any]] = _picker([])
        self.recordings: list[_Recording] = []
        self.copied: _Recording | None = None
        self.pool: Any = None
        self.left = MOST_RECORDINGS
        self.lock = threading.Lock()
        # results made ahead of the recording that a thread makes
        self.ready: list[Any] = []
        self.recorder = -1

    def fresh(self, shape: Sequence[int], strides: Sequence[int] | None, name: str, device: Device) -> Any:
        """Memory for a result: what is made while a call is recorded was there before."""
        if self.ready and self.recorder == threading.get_ident():
            return self.ready.pop(0)
        return self.library.empty(shape, strides, name, device)

    def __call__(self, *inputs: object) -> Any:
        if self.left < 0 or self.graphs.is_recording():
            return self.run(*inputs)
        with self.lock:
            previous = self.library.enter(self.device.index)
            try:
                return self._call(inputs)
            finally:
                self.library.leave(previous)

    def _call(self, inputs: Sequence[Any]) -> Any:
        if self.seen is None:
            self.seen = self._places(inputs)
            return self.run(*inputs)
        known = self.inputs
        if known is None or [*map(self.library.pointer, self.pick(inputs))] != known.places:
            known = self._begin(inputs)
        if known is None or known.stream != self.library.stream(self.device.index):
            return self.run(*inputs)
        recording = self._free(inputs, known)
        if recording is None:
            return self.run(*inputs)
        self._fill(known, inputs)
        recording.replay()
        for group in known.written:
            self.graphs.copy([inputs[k] for k in group], [known.own[k] for k in group])
        take = self.graphs.given if recording.given else self.graphs.clone
        return tuple(map(take, recording.outputs))

    def _places(self, inputs: Sequence[Any]) -> list[int]:
        return [self.library.pointer(inputs[k]) for k in self.arrays]

    def _fill(self, known: _Inputs, inputs: Sequence[Any]) -> None:
        for group in known.groups:
            self.graphs.copy([known.own[k] for k in group], [inputs[k] for k in group])
        for k, last in known.numbers.items():
            if inputs[k] is not last:
                self.graphs.fill(known.own[k], inputs[k])
                known.numbers[k] = _known(inputs[k])

    # -- which recording ----------------------------------------------------------------------
    def _free(self, inputs: Sequence[Any], known: _Inputs) -> _Recording | None:
        """A recording that may write its results, made if there is none; ``None`` if there can be none."""
        for recording in [*self.recordings]:
            if [*map(self.library.pointer, recording.outputs)] != recording.places:
                # the program has given a result other memory
                self.recordings.remove(recording)
                self.left -= 1
            elif [*map(self.graphs.holders, recording.outputs)] == recording.holders:
                return recording
        if self.copied is None:
            self._record(inputs, known, len(self.recordings) < MOST_GIVEN)
        return self.copied or (self.recordings[-1] if self.recordings and self.left >= 0 else None)

    # -- recording ----------------------------------------------------------------------------
    def _begin(self, inputs: Sequence[Any]) -> _Inputs | None:
        """Arrays for recordings that read in place what has not moved; ``None`` if there can be none."""
        places = self._places(inputs)
        assert self.seen is not None
        self.moving |= {k for k, old, new in zip(self.arrays, self.seen, places) if old != new}
        self.moving |= {
            k for k, place in zip(self.arrays, places) if self.slots[k].writable and place % ALIGNMENT
        }
        self.seen = places
        self._forget()
        self.left -= 1
        if self.left < 0:
            log.warning("%s: arrays move from call to call; launches are not replayed", self.name)
            return None
        self.inputs = self._inputs(inputs, places)
        self.pick = _picker(self.inputs.fixed)
        return self.inputs

    def _forget(self) -> None:
        self.inputs = self.copied = self.pool = None
        self.recordings.clear()

    def _inputs(self, inputs: Sequence[Any], places: list[int]) -> _Inputs:
        own: list[Any] = [None] * len(inputs)
        numbers: dict[int, Any] = {}
        for k, slot in enumerate(self.slots):
            if slot.kind != "array":
                assert slot.dtype is not None
                own[k] = self.library.full(inputs[k], slot.dtype.name, self.device)
                numbers[k] = _known(inputs[k])
            elif k in self.moving:
                own[k] = self._copy_of(slot, inputs[k])
        fixed = [(k, place) for k, place in zip(self.arrays, places) if k not in self.moving]
        groups: dict[str, list[int]] = {}
        for k in sorted(self.moving):
            dtype = self.slots[k].dtype
            assert dtype is not None
            groups.setdefault(dtype.name, []).append(k)
        written = [[k for k in group if self.slots[k].writable] for group in groups.values()]
        return _Inputs(
            self.library.stream(self.device.index),
            [k for k, _ in fixed],
            [place for _, place in fixed],
            own,
            [*groups.values()],
            [group for group in written if group],
            numbers,
        )

    def _record(self, inputs: Sequence[Any], known: _Inputs, given: bool) -> None:
        """Add a recording; ``given``: one whose results are given away, if they are not too large."""
        own = [mine if mine is not None else theirs for mine, theirs in zip(known.own, inputs)]
        # kernels for these addresses are built before anything is recorded
        tried = [
            self._copy_of(slot, value) if slot.writable and mine is None else value
            for slot, value, mine in zip(self.slots, own, known.own)
        ]
        try:
            if not self.recordings:
                self.run(*tried)
            self.ready = [self._result(slot) for slot in self.results]
            self.recorder = threading.get_ident()
            replay, outputs, pool = self.graphs.record(self.device.index, lambda: self.run(*own), self.pool)
        except Exception as error:
            self._forget()
            self.left = -1
            log.warning("%s cannot be recorded, its kernels are launched one by one: %s", self.name, error)
            return
        finally:
            self.ready.clear()
        self.pool = pool
        small = sum(map(self.graphs.size, outputs)) <= MOST_BYTES
        places = [*map(self.library.pointer, outputs)]
        holders = [*map(self.graphs.holders, outputs)]
        made = _Recording(replay, outputs, places, holders, given and small)
        if made.given:
            self.recordings.append(made)
        else:
            self.copied = made

    def _result(self, slot: OutputSlot) -> Any:
        return self.library.empty(slot.shape, slot.strides, slot.dtype.name, self.device)

    def _copy_of(self, slot: InputSlot, value: Any) -> Any:
        assert slot.dtype is not None
        made = self.library.empty(value.shape, self.graphs.strides(value), slot.dtype.name, self.device)
        self.graphs.copy([made], [value])
        return made


def _known(number: object) -> Any:
    """A number that need not be filled in again; arrays without dimensions may be written to."""
    return number if isinstance(number, (bool, int, float, complex)) else None


def _picker(numbers: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What has these numbers, as a function of a sequence."""
    if len(numbers) > 1:
        return operator.itemgetter(*numbers)
    return lambda values: [values[k] for k in numbers]
