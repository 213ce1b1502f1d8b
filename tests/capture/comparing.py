"""Compiled against plain Python: results, exceptions, output, arguments afterwards, identity and aliasing."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dyncomp

MOST_ARRAYS = 400  # with which each further one is compared
ATOMS = (int, float, complex, bool, str, bytes, type(None), type, range, slice, type(Ellipsis))


@dataclass
class Outcome:
    """What one call did. ``world`` is the arguments after the call and the result, to be compared as one."""

    kind: str
    world: Any
    error: tuple[type, str] | None
    printed: str
    frames: list[tuple[str, str, int]] = field(default_factory=list)  # of the traceback: file, function, line


def call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Outcome:
    """Run a function and keep everything that a caller could observe."""
    printed = io.StringIO()
    result = None
    error = None
    frames = []
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*args, **(kwargs or {}))
        except Exception as raised:
            error = (type(raised), str(raised))
            frames = [
                (f.f_code.co_filename, f.f_code.co_name, line)
                for f, line in traceback.walk_tb(raised.__traceback__)
            ]
    kind = "returned" if error is None else "raised"
    return Outcome(kind, (list(args), kwargs or {}, result), error, printed.getvalue(), frames)


def stored(container: Any) -> list[Any]:
    """What a list, tuple or dict holds, not by methods of a class that derives from it."""
    if isinstance(container, OrderedDict):
        return [(key, dict.__getitem__(container, key)) for key in OrderedDict.__iter__(container)]
    if isinstance(container, dict):
        return list(dict.items(container))
    return list((list if isinstance(container, list) else tuple).__iter__(container))


@dataclass
class Difference:
    """Walks two object graphs in step. ``rtol`` is for floating-point array contents and numbers."""

    rtol: float
    found: list[str] = field(default_factory=list)
    pairs: dict[int, int] = field(default_factory=dict)
    backward: dict[int, int] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    arrays: list[tuple[str, Any, Any]] = field(default_factory=list)

    def note(self, where: str, a: Any, b: Any) -> None:
        self.found.append(f"{where}: plain {a!r:.200}, compiled {b!r:.200}")

    def walk(self, a: Any, b: Any, where: str) -> None:
        if type(a) is not type(b) and not _made_alike(type(a), type(b)):
            self.note(f"{where} (type {type(a).__name__} / {type(b).__name__})", a, b)
            return
        if isinstance(a, (*ATOMS, np.generic)):
            self.atom(a, b, where)
            return
        if self.known(a, b, where):
            return
        if isinstance(a, np.ndarray):
            self.array(a, b, where)
        elif isinstance(a, (list, tuple)):
            self.sequence(stored(a), stored(b), where)
            self.attributes(a, b, where)
        elif isinstance(a, dict):
            first, second = dict(stored(a)), dict(stored(b))
            self.sequence(list(first), list(second), f"{where}.keys")
            for key in [k for k in first if k in second]:
                self.walk(first[key], second[key], f"{where}[{key!r}]")
            self.attributes(a, b, where)
        elif isinstance(a, (set, frozenset)):
            if a != b and not (_has_nan(a) and sorted(map(repr, a)) == sorted(map(repr, b))):
                self.note(where, a, b)
        elif hasattr(a, "__dict__") and (not callable(a) or _made_alike(type(a), type(b))):
            self.walk(vars(a), vars(b), where)

    def known(self, a: Any, b: Any, where: str) -> bool:
        """Whether the pair was met before; notes where one side shares an object and the other does not."""
        if isinstance(a, tuple):
            return False
        if id(a) in self.pairs or id(b) in self.backward:
            if self.pairs.get(id(a)) != id(b) or self.backward.get(id(b)) != id(a):
                self.found.append(f"{where}: objects are shared differently")
            return True
        self.pairs[id(a)] = id(b)
        self.backward[id(b)] = id(a)
        self.kept += [a, b]
        return False

    def attributes(self, a: Any, b: Any, where: str) -> None:
        """Those that instances of derived classes have besides."""
        if hasattr(a, "__dict__"):
            self.walk(vars(a), vars(b), f"{where}.__dict__")

    def sequence(self, a: Any, b: Any, where: str) -> None:
        if len(a) != len(b):
            self.note(f"{where} (length)", a, b)
            return
        for i, (x, y) in enumerate(zip(a, b)):
            self.walk(x, y, f"{where}[{i}]")

    def atom(self, a: Any, b: Any, where: str) -> None:
        if isinstance(a, np.generic):
            if a.dtype != b.dtype or not self.close(np.asarray(a), np.asarray(b)):
                self.note(where, a, b)
        elif isinstance(a, (float, complex)):
            if not self.close(np.asarray(a), np.asarray(b)):
                self.note(where, a, b)
        elif a != b:
            self.note(where, a, b)

    def array(self, a: np.ndarray, b: np.ndarray, where: str) -> None:
        if a.dtype != b.dtype or a.shape != b.shape:
            self.note(f"{where} ({a.dtype}{a.shape} / {b.dtype}{b.shape})", a, b)
            return
        strides = [(s, t) for n, s, t in zip(a.shape, a.strides, b.strides) if n > 1 and a.size]
        if any(s != t for s, t in strides):
            self.found.append(f"{where}: strides {a.strides} / {b.strides} of shape {a.shape}")
        if a.flags.writeable != b.flags.writeable:
            self.found.append(f"{where}: writeable {a.flags.writeable} / {b.flags.writeable}")
        for name, other_a, other_b in self.arrays:
            if np.may_share_memory(a, other_a) != np.may_share_memory(b, other_b):
                self.found.append(f"{where} and {name}: memory is shared differently")
        if len(self.arrays) < MOST_ARRAYS:
            self.arrays.append((where, a, b))
        if a.dtype == object:
            self.sequence(a.ravel().tolist(), b.ravel().tolist(), where)
        elif not self.close(a, b):
            self.note(f"{where} (contents)", a, b)

    def close(self, a: np.ndarray, b: np.ndarray) -> bool:
        if a.dtype.kind not in "fc":
            return bool(np.array_equal(a, b))
        if not self.rtol:
            equal = np.array_equal(a, b, equal_nan=True)
            return bool(equal and np.array_equal(np.signbit(a.real), np.signbit(b.real)) or _nan(a) and equal)
        loose = self.rtol if a.dtype.itemsize >= 8 else 1e-5
        return bool(np.allclose(a, b, rtol=loose, atol=loose, equal_nan=True))


def _made_alike(a: type, b: type) -> bool:
    """Whether two classes come from the same ``class`` statement of a function."""
    return "<locals>" in a.__qualname__ and (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__)


def _has_nan(items: set[Any] | frozenset[Any]) -> bool:
    """Whether some item differs from itself: sets find it by its identity."""
    return any(not isinstance(item, np.ndarray) and item != item for item in items)


def _nan(a: np.ndarray) -> bool:
    return bool(np.isnan(a).any())


def differences(expected: Outcome, found: Outcome, rtol: float = 0.0) -> list[str]:
    """What a caller could tell apart."""
    notes = []
    if expected.kind != found.kind or expected.error != found.error:
        notes.append(f"plain {expected.kind} {expected.error}, compiled {found.kind} {found.error}")
    if expected.printed != found.printed:
        notes.append(f"printed: plain {expected.printed!r}, compiled {found.printed!r}")
    walk = Difference(rtol)
    walk.walk(expected.world, found.world, "world")
    return notes + walk.found


def check(
    function: Callable[..., Any],
    *makers: Callable[[], tuple[Any, ...]],
    backend: Any = "eager",
    repeats: int = 2,
    **settings: Any,
) -> Any:
    """Compile, call with the arguments that each maker gives, compare with plain Python; returns the
    records of what was captured. Every maker (which gives fresh, equal arguments at each call) is used
    ``repeats`` times: misses and hits."""
    options = {"debug_verify": True, "small_loops": True, **settings.pop("options", {})}
    compiled = dyncomp.compile(function, backend=backend, options=options, **settings)
    rtol = 0.0 if backend == "eager" else 1e-9
    for maker in makers:
        for _ in range(repeats):
            expected = call(function, maker())
            found = call(compiled, maker())
            problems = differences(expected, found, rtol)
            assert not problems, "\n".join(problems)
    return compiled.config.records


def break_ids(records: Any) -> list[str]:
    """The ids of all breaks, in the order in which they were met."""
    return [b.id for entry in records.entries for b in entry.breaks]


def check_program(program: Any, **settings: Any) -> Any:
    """A listed program does as in plain Python, and breaks or is left to it only where the list says so; its
    records. ``settings`` are those of :func:`check`."""
    records = check(program.function, *program.makers, **settings)
    # a collection in the middle calls what hypothesis has in gc.callbacks, which reads the clock
    own = [entry for entry in records.entries if "site-packages" not in entry.loc.file]
    unlisted = {b.id for entry in own for b in entry.breaks} - set(program.breaks)
    assert not unlisted, unlisted
    assert program.plain or not records.skipped, records.skipped
    assert records.counters["internal_errors"] == 0
    return records


def graphs(records: Any) -> int:
    """How many graphs were made."""
    return sum(entry.graph is not None for entry in records.entries)


def composed(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """A program that does one step after another."""
    steps = tuple(steps)

    def chain(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return chain
