"""What the tape knows of values, and how calls get onto it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

import numpy as np

from ..errors import NotDifferentiableError
from .callees import How, Named, Operator
from .operations import Operation
from .tape import CallNode, ReadNode, Slot, Storage, Tape, Window, line_of

_OWN = __file__.rpartition("dyncomp")[0] + "dyncomp/"
_NUMPY = np.__file__.rpartition("/")[0] + "/"
NUMBERS = (float, complex)
_PYTHON = (float, complex, int)


def place() -> tuple[CodeType, int]:
    """The program's line that runs."""
    frame = sys._getframe(1)
    while True:
        file = frame.f_code.co_filename
        if not file.startswith((_OWN, _NUMPY, "<tape")) or frame.f_back is None:
            return frame.f_code, frame.f_lasti
        frame = frame.f_back


def lost(tape: Tape, what: str) -> NotDifferentiableError:
    """The error to raise for what would lose a derivative, which the tape keeps."""
    error = NotDifferentiableError(f"{what} at {line_of(place())} would lose a derivative")
    tape.lost = tape.lost or error
    return error


class Value:
    """An array or number that the tape follows, without its behaviour (``tracked.py``).

    ``plain``: the array or number. ``slot``: its derivative, as of ``version`` of its storage (``None``
    for numbers). ``window``: where it lies in the storage, ``None`` for all of it. ``stopped``: a constant to
    derivatives.
    """

    __slots__ = ("tape", "plain", "storage", "slot", "version", "window", "stopped")

    tape: Tape
    plain: Any
    storage: Storage | None
    slot: Slot | None
    version: int
    window: Window | None
    stopped: bool


def is_tracked(value: object) -> bool:
    return issubclass(type(value), Value)


def plain_of(value: Any) -> Any:
    """The value without a derivative, in lists, tuples and dicts too."""
    kind = type(value)
    if issubclass(kind, Value):
        return value.plain
    if kind is tuple or kind is list:
        return kind([plain_of(v) for v in value])
    if kind is dict:
        return {k: plain_of(v) for k, v in value.items()}
    if kind is slice:
        return slice(plain_of(value.start), plain_of(value.stop), plain_of(value.step))
    return value


def tracked_in(value: Any, found: list[Any]) -> list[Any]:
    """Append the tracked values in lists, tuples and dicts."""
    kind = type(value)
    if issubclass(kind, Value):
        found.append(value)
    elif kind is tuple or kind is list:
        for v in value:
            kind = type(v)
            if issubclass(kind, Value):
                found.append(v)
            elif kind is tuple or kind is list or kind is dict:
                tracked_in(v, found)
    elif kind is dict:
        for v in value.values():
            tracked_in(v, found)
    return found


def tape_of(values: Any) -> Tape:
    """The tape of the tracked values among these."""
    tapes = {t.tape for t in tracked_in(values, [])}
    open_ones = [t for t in tapes if not t.closed]
    if len(open_ones) > 1:
        for tape in open_ones:
            error = lost(tape, "a derivative of what has no single graph, within another such,")
        raise error
    return open_ones[0] if open_ones else tapes.pop()


def slot_of(value: Any) -> Slot | None:
    """The slot of a tracked value as it is now."""
    if value.tape.closed:
        return None
    storage = value.storage
    if storage is None:
        return value.slot  # type: ignore[no-any-return]
    whole: Slot | None = storage.slot
    if whole is None or value.stopped:
        return None
    window = value.window
    if window is None:
        return whole
    if value.version == storage.version:
        return value.slot  # type: ignore[no-any-return]
    if window.dtype.kind not in "fc" or part_of(window.dtype) != part_of(storage.owner.dtype):
        raise lost(value.tape, f"an array of {storage.owner.dtype} read as one of {window.dtype}")
    made = Slot(window.shape, window.dtype)
    value.tape.append(ReadNode(storage, whole, window, made))
    value.slot, value.version = made, storage.version
    return made


def part_of(dtype: np.dtype[Any]) -> tuple[str, int]:
    """The type of the real numbers of which an array consists."""
    if dtype.kind == "c":
        return ("f", dtype.itemsize // 2)
    return (dtype.kind + dtype.byteorder.replace("=", ""), dtype.itemsize) if dtype.kind == "f" else ("", 0)


class _Arguments:
    """What a call is given: arrays (tracked, plain, and numbers that may be others the next time), and a key
    of all else."""

    __slots__ = ("arrays", "key", "numbers_too")

    def __init__(self, how: How) -> None:
        self.arrays: list[Any] = []
        self.key: list[object] = []
        # of operators and ufuncs, numbers are operands like arrays
        self.numbers_too = isinstance(how, Operator) or type(getattr(how, "function", None)) is np.ufunc

    def scan(self, value: Any) -> None:
        kind = type(value)
        if issubclass(kind, Value):
            plain = value.plain
            self.arrays.append(value)
            self.key.append((plain.shape, plain.dtype) if hasattr(plain, "dtype") else type(plain))
        elif self.is_array(value):
            self.arrays.append(value)
            self.key.append((value.shape, value.dtype) if hasattr(value, "dtype") else kind)
        elif kind is tuple or kind is list:
            self.key.append((kind, len(value)))
            for part in value:
                self.scan(part)
        elif kind is dict:
            self.key.append((kind, tuple(value)))
            for part in value.values():
                self.scan(part)
        elif kind is slice:
            self.key.append((kind, value.start, value.stop, value.step))
        else:
            self.key.append((kind, repr(value) if kind in NUMBERS else value))

    def is_array(self, value: Any) -> bool:
        if isinstance(value, (np.ndarray, np.generic)):
            return True
        kind = type(value)
        if not self.numbers_too or kind is bool:
            return False
        # small integers are exponents with rules of their own
        return kind in NUMBERS or (kind is int and not -8 <= value <= 8)


class _Source:
    """The text of a call, its arrays and constants named as an :class:`_Arguments` found them."""

    def __init__(self, how: How, given: _Arguments) -> None:
        self.given = given
        # functions of Python's numbers
        self.of_numbers = getattr(getattr(how, "function", None), "__module__", "") == "math"
        self.names: dict[str, object] = {"f": how.function} if isinstance(how, Named) else {}
        self.count = 0

    def of(self, value: Any) -> str:
        kind = type(value)
        if issubclass(kind, Value) or self.given.is_array(value):
            self.count += 1
            return f"float(a{self.count - 1})" if self.of_numbers else f"a{self.count - 1}"
        if kind is tuple:
            return f"({''.join(self.of(v) + ', ' for v in value)})"
        if kind is list:
            return f"[{', '.join(map(self.of, value))}]"
        if kind is dict:
            return "{" + ", ".join(f"{k!r}: {self.of(v)}" for k, v in value.items()) + "}"
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name


_OPERATIONS: dict[object, Operation] = {}
MOST_OPERATIONS = 10_000


def record(
    tape: Tape,
    how: How,
    args: Any,
    kwargs: Mapping[str, Any],
    outs: list[Slot | None],
    many: bool = False,
    target: Any = None,
) -> None:
    """Append a node for a call whose results have these slots; with a ``target``, one of the arguments, for
    what the call writes to it."""
    given = _Arguments(how)
    for a in args:
        given.scan(a)
    for a in kwargs.values():
        given.scan(a)
    if target is not None:
        given.scan(target)
    arrays = given.arrays
    slots = [slot_of(a) if is_tracked(a) else None for a in arrays]
    wrt = tuple([k for k, s in enumerate(slots) if s is not None])
    chosen = tuple([k for k, out in enumerate(outs) if out is not None]) if many else None
    places = None if target is None else tuple([a is target for a in (*args, *kwargs.values())])
    key: object = (how.key, wrt, chosen, places, tuple(kwargs), tuple(given.key))
    try:
        operation = _OPERATIONS.get(key)
    except TypeError:
        operation, key = None, None
    if operation is None:
        operation = _operation(how, given, args, kwargs, wrt, chosen, target)
        if key is not None:
            if len(_OPERATIONS) >= MOST_OPERATIONS:
                _OPERATIONS.clear()
            _OPERATIONS[key] = operation
    made = [out for out in outs if out is not None]
    kept = _kept(tape, arrays)
    tape.append(CallNode(operation, kept, [s for s in slots if s is not None], made, place()))


def operation_of(how: Operator | Named, operands: tuple[Any, ...], wrt: tuple[int, ...]) -> Operation:
    """That of an operator or a ufunc."""
    given = _Arguments(how)
    given.scan(operands)
    return _operation(how, given, operands, {}, wrt, None, None)


def _operation(
    how: How,
    given: _Arguments,
    args: Any,
    kwargs: Mapping[str, Any],
    wrt: tuple[int, ...],
    chosen: tuple[int, ...] | None,
    target: Any,
) -> Operation:
    source = _Source(how, given)
    texts = [source.of(a) for a in args] + [f"{k}={source.of(v)}" for k, v in kwargs.items()]
    parameters = ", ".join(f"a{k}" for k in range(len(given.arrays)))
    if target is not None:
        values = (*args, *kwargs.values())
        texts = [
            f"{name}w" if value is target else text
            for text, value, name in zip(texts, values, [""] * len(args) + [f"{k}=" for k in kwargs])
        ]
        body = f"    w = {source.of(target)}.copy()\n    {how.text(texts)}\n    return w\n"
    else:
        names = ["r"] if chosen is None else [f"r[{k}]" for k in chosen]
        if not source.of_numbers:
            # of their own: an output of a graph can be a view of what is differentiated
            names = [f"{name}.copy()" for name in names]
        body = f"    r = {how.text(texts)}\n    return {', '.join(names)}\n"
    operation = Operation(how.name, f"def run({parameters}):\n{body}", source.names, wrt)
    if any(callable(v) and not isinstance(v, type) for n, v in source.names.items() if n != "f"):
        operation.problem = "it is given a function"
    return operation


def _kept(tape: Tape, arrays: list[Any]) -> list[Any]:
    """What holds the arrays until the backward pass."""
    weak = None
    if any((type(a.plain) if is_tracked(a) else type(a)) in _PYTHON for a in arrays):
        weak = np.result_type(*[plain_of(a) for a in arrays])
        weak = weak if weak.kind in "fc" else None
    kept = []
    for a in arrays:
        plain = a
        if is_tracked(a):
            if a.storage is not None:
                kept.append(a.storage.keep(a.plain))
                continue
            plain = a.plain
        elif isinstance(a, np.ndarray):
            kept.append(tape.constant(a))
            continue
        if weak is not None and type(plain) in _PYTHON:
            plain = np.asarray(plain, weak)
        kept.append(plain)
    return kept
