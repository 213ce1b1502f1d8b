"""Functions of complex numbers as pairs of real ones, for targets without complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder

Pair = tuple[Any, Any]


def multiply(s: ScalarBuilder, a: Pair, b: Pair) -> Pair:
    re = s.subtract(s.multiply(a[0], b[0]), s.multiply(a[1], b[1]))
    return re, s.add(s.multiply(a[0], b[1]), s.multiply(a[1], b[0]))


def divide(s: ScalarBuilder, a: Pair, b: Pair) -> Pair:
    """Smith's method, as NumPy's loops."""
    large = s.greater_equal(s.abs(b[0]), s.abs(b[1]))
    zero = s.const(0.0, s.dtype(b[0]))
    top, bottom = s.where(large, b[0], b[1]), s.where(large, b[1], b[0])
    ratio = s.divide(bottom, top)
    scale = s.divide(s.const(1.0, s.dtype(top)), s.add(top, s.multiply(bottom, ratio)))
    first, second = s.where(large, a[0], a[1]), s.where(large, a[1], a[0])
    re = s.multiply(s.add(first, s.multiply(second, ratio)), scale)
    turned = s.subtract(second, s.multiply(first, ratio))
    im = s.multiply(s.where(large, turned, s.negative(turned)), scale)
    both_zero = s.logical_and(s.equal(b[0], zero), s.equal(b[1], zero))
    return (
        s.where(both_zero, s.divide(a[0], s.abs(b[0])), re),
        s.where(both_zero, s.divide(a[1], s.abs(b[0])), im),
    )


def exp(s: ScalarBuilder, a: Pair) -> Pair:
    size = s.exp(a[0])
    plain = s.equal(a[1], s.const(0.0, s.dtype(a[1])))
    re = s.where(plain, size, s.multiply(size, s.cos(a[1])))
    return re, s.where(plain, a[1], s.multiply(size, s.sin(a[1])))


def ordered(strict: str) -> Callable[[Any, Pair, Pair], Any]:
    def rule(s: ScalarBuilder, a: Pair, b: Pair) -> Any:
        first = s.apply(strict.removesuffix("_equal"), a[0], b[0])
        return s.logical_or(first, s.logical_and(s.equal(a[0], b[0]), s.apply(strict, a[1], b[1])))

    return rule
