"""One call timed as plain Python and compiled, in turn, and its results compared."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .. import api
from ..dataclass import dataclass

Arguments = tuple[tuple[object, ...], Mapping[str, object]]
_LEAST_TURNS, _MOST_TURNS = 5, 1000


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: the first compiled call; medians of calls in ``turns`` turns; ``ratio``: the median of plain
    by compiled, turn by turn, of which three quarters are above ``low`` and below ``high`` each. ``same``:
    whether both gave the same up to ``difference``, the largest of an array relative to its largest value."""

    name: str
    first: float
    plain: float
    compiled: float
    ratio: float
    low: float
    high: float
    turns: int
    graphs: int
    same: bool
    difference: float

    def facts(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def compare(function: Callable[..., object], arguments: Arguments, name: str, budget: float) -> Times:
    """Time ``function`` and its compiled form for about ``budget`` seconds. Each call gets a fresh copy of
    the arguments, which is not timed. What a call raises is raised."""
    compiled = api.compile(function)
    graphs = api.stats()["graphs"]
    expected, plain = _timed(function, arguments)
    found, first = _timed(compiled, arguments)
    same, difference = _same(expected, found)
    for _ in range(2):  # what was compiled for one size may be compiled again for others
        found, _ = _timed(compiled, arguments)
        again, more = _same(expected, found)
        same, difference = same and again, max(difference, more)
    turns: list[tuple[float, float]] = []
    end = time.perf_counter() + budget
    while len(turns) < _LEAST_TURNS or (time.perf_counter() < end and len(turns) < _MOST_TURNS):
        both = (function, compiled) if len(turns) % 2 else (compiled, function)
        seconds = {run is compiled: _timed(run, arguments)[1] for run in both}
        turns.append((seconds[False], seconds[True]))
    ratios = [a / b for a, b in turns]
    quarters = statistics.quantiles(ratios, n=4)
    return Times(
        name,
        first,
        statistics.median(a for a, _ in turns),
        statistics.median(b for _, b in turns),
        statistics.median(ratios),
        quarters[0],
        quarters[2],
        len(turns),
        api.stats()["graphs"] - graphs,
        same,
        difference,
    )


def _timed(function: Callable[..., object], arguments: Arguments) -> tuple[object, float]:
    args, kwargs = copy.deepcopy(arguments)
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def _same(expected: object, found: object) -> tuple[bool, float]:
    """Whether two results are of one type and shape and as near as rounding allows; how far they differ."""
    if isinstance(expected, (list, tuple)) and type(expected) is type(found):
        assert isinstance(found, (list, tuple))
        pairs = [_same(a, b) for a, b in zip(expected, found)]
        good = len(expected) == len(found) and all(same for same, _ in pairs)
        return good, max((difference for _, difference in pairs), default=0.0)
    if isinstance(expected, dict) and type(expected) is type(found):
        assert isinstance(found, dict)
        return _same([*expected.items()], [*found.items()])
    try:
        a, b = np.asarray(expected), np.asarray(found)
        if type(expected) is not type(found) or a.shape != b.shape or a.dtype != b.dtype:
            return False, float("inf")
        if a.dtype.kind not in "fc":
            return a.dtype.kind == "O" or bool(np.array_equal(a, b)), 0.0
    except Exception:  # noqa: BLE001 - no arrays, or tensors that want gradients: only their type is compared
        return type(expected) is type(found), 0.0
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False, float("inf")
    finite = np.isfinite(a)
    if not finite.any():
        return True, 0.0
    scale = float(np.abs(a[finite]).max()) or 1.0
    difference = float(np.abs(a[finite] - b[finite]).max()) / scale
    return difference <= 1000 * float(np.finfo(a.dtype).eps), difference


def shown(seconds: float) -> str:
    """A time for people."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


HEADINGS = ("function", "plain", "compiled", "ratio", "first call", "graphs", "result")


def cells(times: Sequence[Times]) -> list[list[str]]:
    """The rows of a table."""
    rows = [[*HEADINGS]]
    for t in times:
        verdict = (
            "same" if t.same and not t.difference else f"same to {t.difference:.0e}" if t.same else "DIFFERS"
        )
        ratio = f"{t.ratio:.2f}x ({t.low:.2f} to {t.high:.2f})"
        first, plain, fast = shown(t.first), shown(t.plain), shown(t.compiled)
        rows.append([t.name, plain, fast, ratio, first, str(t.graphs), verdict])
    return rows
