"""Random bits by counting: the same numbers in whatever order, by however many threads, and once more later.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import DType, uint64
from ..kit import Array
from ..opdef import OpDef
from ..scalar_types import ScalarOp
from .kit import binary

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder

_FACTORS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10


def philox4x32(s: ScalarBuilder, key: tuple[Any, Any], counter: tuple[Any, Any, Any, Any]) -> tuple[Any, ...]:
    """Four words of 32 bits of a key and a counter, all as 64-bit numbers."""

    def number(value: int) -> Any:
        return s.const(value, uint64)

    def low(x: Any) -> Any:
        return s.bitwise_and(x, number(0xFFFFFFFF))

    def high(x: Any) -> Any:
        return s.right_shift(x, number(32))

    a, b, c, d = counter
    first, second = key
    for _ in range(_ROUNDS):
        p, q = s.multiply(a, number(_FACTORS[0])), s.multiply(c, number(_FACTORS[1]))
        a, c = (s.bitwise_xor(s.bitwise_xor(high(x), y), k) for x, y, k in ((q, b, first), (p, d, second)))
        b, d = low(q), low(p)
        first, second = (low(s.add(k, number(w))) for k, w in zip((first, second), _STEPS))
    return a, b, c, d


def _philox(s: ScalarBuilder, key: Any, counter: Any) -> Any:
    def halves(x: Any) -> tuple[Any, Any]:
        return s.bitwise_and(x, s.const(0xFFFFFFFF, uint64)), s.right_shift(x, s.const(32, uint64))

    zero = s.const(0, uint64)
    first, second, _, _ = philox4x32(s, halves(key), (*halves(counter), zero, zero))
    return s.bitwise_or(first, s.left_shift(second, s.const(32, uint64)))


class _OnArrays:
    """The functions of a decomposition, on arrays."""

    def const(self, value: int, dtype: DType) -> Any:
        return dtype.numpy.type(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


ON_ARRAYS: Any = _OnArrays()


def _reference(key: object, counter: object) -> Array:
    with np.errstate(over="ignore"):  # NumPy's scalars warn
        return np.asarray(_philox(ON_ARRAYS, np.asarray(key), np.asarray(counter)))


ROWS: tuple[OpDef, ...] = (
    binary(
        "philox",
        _reference,
        (uint64,),
        "64 random bits: the first two words of Philox4x32-10 with the words of a key and of a counter below "
        "2^64, the low ones first.",
        eps=0.0,
        scalar=ScalarOp(cpp={"u": "dc_philox({0}, {1})"}, decomp=_philox, cost=60),
        exact=True,
        own_order=True,
        never_saved=True,
    ),
)
