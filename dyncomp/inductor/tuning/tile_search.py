"""Which tiling of one product or convolution is the fastest: the runtime is called directly, nothing is
compiled. Sizes are tried one after another, each upon the best of those before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ...runtime import _launch
from ...symbolic.integers import hint
from ..schedule import CallBlas, Matrix, Windows
from .forms import Made
from .tilings import USUAL, Tiling, steps_of, upon
from .timing import in_turn, is_faster

_LETTERS = {"float32": "s", "float64": "d"}
_NO_WINDOWS = (0,) * 16
# Rounds at least, however long a call takes: of many candidates one is the fastest by chance.
TILING_ROUNDS = 6


@dataclass
class TileSearch:
    """``made``: a product or convolution alone, on ``arrays``. ``pair_seconds``: for two tilings; ``end``:
    when to stop. ``seconds``: what calls took, by the tiling's text."""

    made: Made
    arrays: Sequence[np.ndarray[Any, Any]]
    pair_seconds: float
    end: float
    seconds: dict[str, float] = field(default_factory=dict)

    def best(self) -> Tiling:
        """The fastest tiling; the usual one where no other is faster beyond noise, or none can be tried."""
        step = self._product()
        if step is None:
            return USUAL
        call = self._caller(step)
        best = USUAL
        m, n, k = (hint(size) for size in (step.m, step.n, step.k))
        for tilings in steps_of(m, n, k, step.dtype.itemsize, step.windows is not None):
            base = best
            for tiling in tilings:
                if time.perf_counter() >= self.end:
                    return best
                best = self._better(call, best, upon(base, tiling))
        return best if best == USUAL or self._beats_usual(call, best) else USUAL

    def _better(self, call: Callable[[Tiling], None], best: Tiling, other: Tiling) -> Tiling:
        mine, others = in_turn(
            lambda: call(best), lambda: call(other), (), self.pair_seconds, TILING_ROUNDS, True
        )
        for tiling, found in ((best, mine), (other, others)):
            text = tiling.describe()
            self.seconds[text] = min(self.seconds.get(text, float("inf")), *found)
        return other if is_faster(others, mine) else best

    def _beats_usual(self, call: Callable[[Tiling], None], best: Tiling) -> bool:
        """Whether it is clearly faster when both are timed once more, for longer."""
        seconds, rounds = 4 * self.pair_seconds, 2 * TILING_ROUNDS
        usual, mine = in_turn(lambda: call(USUAL), lambda: call(best), (), seconds, rounds, True)
        return is_faster(mine, usual)

    def _product(self) -> CallBlas | None:
        """The step, where it is one of the runtime's own and reads the arrays as they are."""
        steps = [step for segment in self.made.planned.module.segments for step in segment.flat]
        if len(steps) != 1 or len(self.made.planned.plan.steps) != 1:
            return None
        (step,) = steps
        if not isinstance(step, CallBlas) or not step.own or step.c is None:
            return None
        if not step.a_dtype is step.b_dtype is step.dtype:
            return None
        if step.windows is not None and step.windows.depthwise:
            return None
        slots = {step.a.slot, step.b.slot}
        return step if slots <= set(range(len(self.arrays))) and _is_known(step) else None

    def _caller(self, step: CallBlas) -> Callable[[Tiling], None]:
        """What runs the product in a tiling."""
        assert step.c is not None
        size = step.c.offset + _extent((step.m, step.n), (step.c.row_stride, 1)) - 1
        size += _extent(step.batch, step.c.batch_strides)
        result = np.empty(size, step.dtype.numpy)
        letter = _LETTERS[step.dtype.name]
        steps = (step.a.batch_strides, step.b.batch_strides, step.c.batch_strides)
        batch = tuple(zip(step.batch, *steps, strict=True))
        numbers = (
            *(step.m, step.n, step.k),
            *self._place(step.a),
            *self._place(step.b),
            result.ctypes.data + step.c.offset * result.itemsize,
            step.c.row_stride,
        )
        windows = _NO_WINDOWS if step.windows is None else _numbers(step.windows)

        def call(tiling: Tiling) -> None:
            cut = (tiling.vectors, tiling.panels, tiling.rows, tiling.terms, tiling.way)
            _launch.matrix_product(None, letter, *numbers, windows, int(step.kept), cut, batch)
            assert result is not None  # held while it is called

        return call

    def _place(self, matrix: Matrix) -> tuple[Any, ...]:
        array = self.arrays[matrix.slot]
        return (array.ctypes.data + matrix.offset * array.itemsize, matrix.row_stride, matrix.col_stride)


def _is_known(step: CallBlas) -> bool:
    """Whether all sizes are numbers."""
    matrices = [m for m in (step.a, step.b, step.c) if m is not None]
    sizes = [step.m, step.n, step.k, *step.batch]
    for matrix in matrices:
        sizes += [matrix.offset, matrix.row_stride, matrix.col_stride, *matrix.batch_strides]
    if step.windows is not None:
        sizes += _numbers(step.windows)
    return all(isinstance(size, int) for size in sizes)


def _numbers(windows: Windows) -> tuple[Any, ...]:
    """The numbers of a ``Windows`` of the runtime, in order."""
    pairs = (windows.sizes, windows.kernel, windows.stride, windows.dilation, windows.padding)
    flat = [number for pair in pairs for number in pair]
    flags = (int(windows.channels_last), int(windows.depthwise))
    return (windows.columns, *flat, windows.channel, *windows.step, *flags)


def _extent(shape: Sequence[Any], strides: Sequence[Any]) -> int:
    """Elements from the first to the last one of an array."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides))
