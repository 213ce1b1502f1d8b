"""Functions of a size alone (windows, frequencies, indices of triangles) where it is symbolic.

Each does what NumPy's own Python source does; where the size is known NumPy itself is asked, at capture.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...errors import Unsupported
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from .data_dependent import positions
from .diagonals import tri
from .join import concatenate
from .operands import array_of, convert, emit, integer, to_var
from .traced import Traced


def _line(tx: TraceContext, count: Dim, start: Dim = 0, step: int = 1) -> Traced:
    """``start + step * arange(count)``."""
    line = Traced(tx, array_of(emit(tx, "iota", shape=(count,), axis=0, dtype=dtypes.int64, device=CPU)))
    return line * step + start


def _window(formula: Callable[[Traced, Any], Traced]) -> Any:
    """A window by its formula for ``n = 1-M, 3-M, …, M-1`` and ``M-1``, both floats."""

    def rule(tx: TraceContext, M: object) -> ArrayRef:
        size = integer(M, "a size")
        if not size > 1:
            raise Unsupported("a window of fewer than two points")
        n = Traced(tx, array_of(convert(tx, _line(tx, size, 1 - size, 2).var, dtypes.float64)))
        return formula(n, _float(tx, size - 1)).ref

    return rule


def _float(tx: TraceContext, value: Dim) -> Traced:
    """A symbolic integer as a float64."""
    return Traced(tx, ArrayRef(to_var(tx, value, dtypes.float64), "scalar"))


def _cosines(n: Traced, last: Traced, times: float = 1.0) -> Traced:
    return (times * np.pi * n / last).call(np.cos)


def _bartlett(n: Traced, last: Traced) -> Traced:
    rising = 1.0 + n / last
    falling = 1.0 - n / last
    return Traced(n.tx, array_of(emit(n.tx, "where", (n <= 0).var, rising.var, falling.var)))


def _fftfreq(tx: TraceContext, n: object, d: Any = 1.0, device: object = None) -> ArrayRef:
    size = _count(n, d, device)
    middle = (size - 1) // 2 + 1
    line = concatenate(tx, [_line(tx, middle).ref, _line(tx, size - middle, -(size // 2)).ref])
    return (Traced(tx, line) * _spacing(tx, size, d)).ref


def _rfftfreq(tx: TraceContext, n: object, d: Any = 1.0, device: object = None) -> ArrayRef:
    size = _count(n, d, device)
    return (_line(tx, size // 2 + 1) * _spacing(tx, size, d)).ref


def _count(n: object, d: object, device: object) -> Dim:
    size = integer(n, "a size")
    if device is not None or not isinstance(d, (int, float)) or not size > 1:
        raise Unsupported("frequencies with device=, a spacing that is data, or of fewer than two points")
    return size


def _spacing(tx: TraceContext, size: Dim, d: float) -> Traced:
    return 1.0 / (_float(tx, size) * d)


def _triangle(upper: bool) -> Any:
    def rule(tx: TraceContext, n: object, k: object = 0, m: object = None) -> Any:
        mask = tri(tx, n, m, integer(k) - 1 if upper else k, bool).var
        if upper:
            mask = emit(tx, "logical_not", mask)
        return tuple(array_of(var) for var in positions(tx, mask))

    return rule


def _diagonal(tx: TraceContext, n: object, ndim: object = 2) -> Any:
    line = _line(tx, integer(n, "a size")).ref
    return (line,) * int(integer(ndim))


SYMBOLIC: MappingProxyType[Any, Any] = MappingProxyType(
    {
        np.hanning: _window(lambda n, last: 0.5 + 0.5 * _cosines(n, last)),
        np.hamming: _window(lambda n, last: 0.54 + 0.46 * _cosines(n, last)),
        np.blackman: _window(lambda n, last: 0.42 + 0.5 * _cosines(n, last) + 0.08 * _cosines(n, last, 2.0)),
        np.bartlett: _window(_bartlett),
        np.fft.fftfreq: _fftfreq,
        np.fft.rfftfreq: _rfftfreq,
        np.tril_indices: _triangle(upper=False),
        np.triu_indices: _triangle(upper=True),
        np.diag_indices: _diagonal,
    }
)
