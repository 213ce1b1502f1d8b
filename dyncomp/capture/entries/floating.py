"""Floating-point errors in compiled graphs: NumPy warns of them, so the original runs again where one occurs.

The launcher reads the status flags of the threads that ran a graph. Where one is up it asks the graph's
:class:`Watch`, which raises :class:`FloatingPointRerun` if NumPy would report it: the original then runs from
its start, and NumPy warns (or raises) at the program's own line. What it warned of is noted. A later call
with the same flags is not run again while none of that would be shown anew (by default a warning is shown
once per place), but for the 2nd, 4th, 8th time and so on: other lines may be to blame.
"""

from __future__ import annotations

import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...dataclass import dataclass
from ...graph.ir import Graph, Loc
from ...hook import _hook
from ...prims.opdef import OpDef

_WARN = 1
_INVALID = 8
# by NumPy's flag: its name for the error, and how it begins its texts
_KINDS = {
    1: ("divide", "divide by zero"),
    2: ("over", "overflow"),
    4: ("under", "underflow"),
    8: ("invalid", "invalid value"),
}
_NAMES = {"reduce_sum": "reduce", "reduce_prod": "reduce", "convert": "cast"}
_MOST_NOTED = 64
_ASKS = frozenset(("geterr", "geterrobj", "geterrcall", "_extobj_contextvar"))

_waiting = threading.local()

# an operation: the op, where the program has it, the errors that it usually and that it seldom makes
Place = tuple[str, Loc, tuple[str, ...], tuple[str, ...]]


class FloatingPointRerun(Exception):
    """NumPy reports what happened in a graph: the original runs."""


@dataclass(frozen=True)
class _Shown:
    """A warning that NumPy made."""

    text: str
    file: str
    line: int
    module: str


class Watch:
    """What is told of floating-point errors in the launches of one captured graph."""

    def __init__(self, places: Iterable[Place], strict: bool = False) -> None:
        """``strict``: Python code of NumPy's warns of what is invalid in the graph, whatever the modes."""
        self.places = list(places)
        self.strict = strict
        self.armed = False  # set when the graph serves: what is tried while it is compiled counts for nothing
        # an exception in the middle of writes could not be taken back
        self.saves = any(entry[0] == "error" for entry in warnings.filters)
        self.always = 0  # flags of what was computed once
        self._seen = 0
        self._times = 0
        self._noted: dict[_Shown, None] = {}
        self._filters: Any = None

    @classmethod
    def of(cls, graph: Graph, table: Mapping[str, OpDef], strict: bool) -> Watch:
        rows = [(n.op, n.loc, table.get(n.op)) for n in graph.nodes if n.loc is not None]
        errors = [(tuple(row.errors), tuple(row.rare_errors)) if row else ((), ()) for _, _, row in rows]
        return cls([(op, loc, *found) for (op, loc, _), found in zip(rows, errors)], strict)

    def __call__(self, flags: int, written: bool) -> bool:
        """Raises :class:`FloatingPointRerun` if the original is to run. ``written``: that is too late;
        whether later calls shall keep what they write."""
        if not self.armed:
            return False
        reported, strict = _reported(flags)
        if self.strict and flags & _INVALID:
            reported, strict = reported | _INVALID, True
        if not reported:
            return False
        if written:
            self._warn(reported)
            return True
        if strict or self._is_new(reported):
            self._seen |= reported
            _waiting.watch = self
            raise FloatingPointRerun
        return False

    def _is_new(self, flags: int) -> bool:
        self._times += 1
        if flags & ~self._seen or not self._times & (self._times - 1):
            return True
        starts = tuple(text for flag, (_, text) in _KINDS.items() if flag & flags)
        return any(noted.text.startswith(starts) and would_show(noted) for noted in self._noted)

    def rerun(self, function: types.FunctionType) -> Callable[..., Any]:
        """The original, whose warnings are noted."""
        if _ASKS.intersection(function.__code__.co_names):
            return function
        self._filters = warnings.filters
        return _hook.reported(function, self._note)

    def _note(self, text: str) -> None:
        frame = sys._getframe(1)
        code = frame.f_code
        shown = _Shown(text, code.co_filename, frame.f_lineno, _module_of(frame.f_globals))
        if warnings.filters is not self._filters and _is_ignored(shown):
            return  # by a block of the program, which is left when the next call ends
        if len(self._noted) < _MOST_NOTED:
            self._noted[shown] = None

    def _warn(self, flags: int) -> None:
        """What was written cannot be taken back: say what NumPy would, of the likeliest operation."""
        for flag, (error, start) in _KINDS.items():
            if not flag & flags or not self.places:
                continue
            likely = [place for place in self.places if error in place[2]]
            rare = [place for place in self.places if error in place[3]]
            op, loc, _, _ = (likely or rare or self.places)[0]
            namespace = _namespace_in(loc.file)
            module = _module_of(namespace)
            text = f"{start} encountered in {_NAMES.get(op, op)}"
            registry = namespace.setdefault("__warningregistry__", {})
            warnings.warn_explicit(text, RuntimeWarning, loc.file, loc.line, module, registry)


def waiting_watch() -> Watch | None:
    """The watch that asked for the original in this thread, once."""
    watch: Watch | None = getattr(_waiting, "watch", None)
    _waiting.watch = None
    return watch


def _reported(flags: int) -> tuple[int, bool]:
    """Those of the flags that NumPy's error modes report, and whether otherwise than by warnings."""
    mask = _hook.errstate()
    if mask is None:
        return flags, True
    modes = {1 << k: mask >> 3 * k & 7 for k in range(4) if flags >> k & 1}
    return sum(flag for flag, mode in modes.items() if mode), any(mode > _WARN for mode in modes.values())


def _module_of(namespace: dict[str, Any]) -> str:
    name = namespace.get("__name__")
    return name if isinstance(name, str) else "<string>"


def _namespace_in(file: str) -> dict[str, Any]:
    """The globals of a frame beneath that is of a file, else of a module."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file and "dyncomp" not in _module_of(frame.f_globals).split("."):
            return frame.f_globals
        frame = frame.f_back
    for module in [*sys.modules.values()]:
        if getattr(module, "__file__", None) == file:
            return vars(module)
    return {}


def _namespace_of(shown: _Shown) -> dict[str, Any]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if _module_of(frame.f_globals) == shown.module:
            return frame.f_globals
        frame = frame.f_back
    module = sys.modules.get(shown.module)
    return {} if module is None else vars(module)


def _is_ignored(shown: _Shown) -> bool:
    """What the filters of this moment say, asked as ``warnings`` does."""
    for action, message, category, module, line in warnings.filters:
        if (
            (message is None or _matches(message, shown.text))
            and issubclass(RuntimeWarning, category)
            and (module is None or _matches(module, shown.module))
            and line in (0, shown.line)
        ):
            return action == "ignore"
    return False


def _matches(pattern: Any, text: str) -> bool:
    return pattern == text if isinstance(pattern, str) else bool(pattern.match(text))


def would_show(shown: _Shown) -> bool:
    """Whether the warning would be shown (or raised) now. Makes it, and keeps it from being shown."""
    namespace = _namespace_of(shown)
    registry: dict[Any, Any] = namespace.get("__warningregistry__", {})
    before = dict(registry)
    message = RuntimeWarning(shown.text)
    once = warnings.onceregistry  # type: ignore[attr-defined]
    was_once = (shown.text, RuntimeWarning) in once
    found = False
    show: Any = warnings._showwarnmsg  # type: ignore[attr-defined]

    def keep(made: Any) -> None:
        nonlocal found
        if made.message is message:
            found = True
        else:
            show(made)

    warnings._showwarnmsg = keep  # type: ignore[attr-defined]
    try:
        warnings.warn_explicit(message, RuntimeWarning, shown.file, shown.line, shown.module, registry)
    except RuntimeWarning as error:
        if error is not message:
            raise
        found = True
    finally:
        if warnings._showwarnmsg is keep:  # type: ignore[attr-defined]
            warnings._showwarnmsg = show  # type: ignore[attr-defined]
    if found:
        _forget(shown, registry, before)
        if not was_once:
            once.pop((shown.text, RuntimeWarning), None)
    return found


def _forget(shown: _Shown, registry: dict[Any, Any], before: dict[Any, Any]) -> None:
    if registry.get("version") == before.get("version"):
        registry.clear()
        registry.update(before)
    else:
        for key in ((shown.line,), (0,), ()):
            registry.pop((shown.text, RuntimeWarning, *key), None)
