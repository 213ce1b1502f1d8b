"""How far the original's own results move where its inputs move by a rounding.

Results that differ by more than rounding need not be wrong: where large values cancel, or where an optimizer
divides a gradient that is all rounding by its own size, any order of additions gives another result. So
before compiled code is blamed the original is run again, on inputs of which each value is off by about one
unit in its last place; what moves then is no evidence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .observe import Item, Observation

Array = np.ndarray[Any, Any]

RUNS = 3
_ALLOWED = 16.0  # times what moved


def perturb(roots: Iterable[tuple[str, object]], seed: int) -> None:
    """Move the floating-point values of all arrays and tensors behind ``roots`` by a rounding, in place."""
    rng = np.random.default_rng(seed)
    torch = sys.modules.get("torch")
    seen: set[int] = set()
    pending: list[tuple[object, int]] = [(obj, 0) for _, obj in roots]
    while pending:
        obj, depth = pending.pop()
        if id(obj) in seen or depth > 40 or isinstance(obj, type) or callable(getattr(obj, "__get__", None)):
            continue
        seen.add(id(obj))
        if isinstance(obj, np.ndarray):
            _move(np.asarray(obj), rng)
        elif torch is not None and isinstance(obj, torch.Tensor):
            if obj.is_floating_point() and obj.layout == torch.strided and obj.device.type == "cpu":
                with torch.no_grad():
                    noise = torch.from_numpy(rng.choice((-1.0, 1.0), obj.shape)).to(obj.dtype)
                    obj.data.mul_(1 + noise * torch.finfo(obj.dtype).eps)
        elif isinstance(obj, dict):
            pending += [(v, depth + 1) for v in dict.values(obj)]
        elif isinstance(obj, (list, tuple)):
            pending += [(v, depth + 1) for v in obj]
        if isinstance(getattr(obj, "__dict__", None), dict):
            pending += [(v, depth + 1) for v in vars(obj).values()]


def _move(array: Array, rng: np.random.Generator) -> None:
    if array.dtype.kind not in "fc" or not array.flags.writeable:
        return
    with np.errstate(all="ignore"):
        noise = rng.choice((-1.0, 1.0), array.shape) * np.finfo(array.dtype).eps
        array[...] = (array * (1 + noise)).astype(array.dtype)


def excuse(plain: Observation, moved: Sequence[Observation], compiled: Observation) -> list[str]:
    """The paths whose differences are within what moved: by ``_ALLOWED`` times, or where the original's
    results move by as much as all of their values."""
    return [
        path
        for path, item in plain.items.items()
        if path in compiled.items
        and _is_excused(item, [m.items.get(path) for m in moved], compiled.items[path])
    ]


def _is_excused(plain: Item, moved: Sequence[Item | None], compiled: Item) -> bool:
    values = [item.value for item in moved if item is not None and item.facts == plain.facts]
    if plain.kind not in ("array", "number") or compiled.facts != plain.facts or not values:
        return False
    if any(not isinstance(v, (np.ndarray, float, complex)) for v in (plain.value, compiled.value, *values)):
        return False
    mine, other = np.asarray(plain.value), np.asarray(compiled.value)
    if mine.dtype.kind not in "fc":
        return any(not np.array_equal(mine, np.asarray(v)) for v in values)
    with np.errstate(all="ignore"):
        if not np.array_equal(np.isfinite(mine), np.isfinite(other)):
            return any(not np.array_equal(np.isfinite(mine), np.isfinite(np.asarray(v))) for v in values)
        reach = max(float(np.nanmax(_gap(mine, np.asarray(v)), initial=0.0)) for v in values)
        return float(np.nanmax(_gap(mine, other), initial=0.0)) <= _ALLOWED * reach


def _gap(a: Array, b: Array) -> Array:
    gap: Array = np.abs(np.where(np.isfinite(a) & np.isfinite(b), a - b, 0))
    return gap
