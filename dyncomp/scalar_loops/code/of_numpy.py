"""NumPy's functions on single numbers, and on short rows, in generated code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kinds import rows, slices
from ..kinds.kinds import NP_BOOL, NP_FLOAT, Value
from .arithmetic import check_numbers, magnitude, result_kind
from .block import Block
from .walk import Stop

Answer = Callable[[Block, list[Value]], Value]


def total(b: Block, value: Value) -> Value:
    """The sum of an array of one dimension."""
    return rows.total(b, value) if rows.is_row(value) else slices.total(b, value)


_LIBM: dict[Any, tuple[str, str]] = {
    np.sqrt: ("__builtin_sqrt", "{x} >= 0"),
    np.sin: ("sin", "is_finite({x})"),
    np.cos: ("cos", "is_finite({x})"),
    np.tan: ("tan", "is_finite({x})"),
    np.arctan: ("atan", ""),
    np.tanh: ("tanh", ""),
    np.exp: ("exp", "{x} < 709 && {x} > -708"),
    np.log: ("log", "{x} > 0"),
    np.log2: ("log2", "{x} > 0"),
    np.log10: ("log10", "{x} > 0"),
    np.log1p: ("log1p", "{x} > -1"),
    np.expm1: ("expm1", "{x} < 709"),
    np.floor: ("__builtin_floor", ""),
    np.ceil: ("__builtin_ceil", ""),
    np.trunc: ("__builtin_trunc", ""),
    np.fabs: ("__builtin_fabs", ""),
}


def _of_libm(ufunc: Any, called: str, plain: str) -> Answer:
    def answer(b: Block, args: list[Value]) -> Value:
        check_numbers(args, 1)
        kind = result_kind(ufunc, args[0].kind)
        if kind != NP_FLOAT:
            raise Stop(f"np.{ufunc.__name__} of {args[0].kind}")
        x = b.temp("double", f"(double){args[0].text}")
        if plain:
            b.check(plain.format(x=x), f"np.{ufunc.__name__}")
        return b.new(NP_FLOAT, f"{called}({x})")

    return answer


def _abs(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    kind = result_kind(np.abs, args[0].kind)
    if kind.family != "numpy":
        raise Stop("np.abs")
    return magnitude(b, args[0], kind)


def _dot(b: Block, args: list[Value]) -> Value:
    if len(args) != 2:
        raise Stop("a call of dot")
    return rows.dot(b, *args)


def _norm(b: Block, args: list[Value]) -> Value:
    if len(args) != 1:
        raise Stop("a call of norm")
    return rows.norm(b, args[0])


def _sum(b: Block, args: list[Value]) -> Value:
    if len(args) != 1:
        raise Stop("a call of sum")
    return total(b, args[0])


def _isnan(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    return b.new(NP_BOOL, f"{args[0].text} != {args[0].text}")


def _float64(b: Block, args: list[Value]) -> Value:
    check_numbers(args, 1)
    return b.new(NP_FLOAT, f"(double){args[0].text}")


FUNCTIONS: dict[Any, Answer] = {
    **{ufunc: _of_libm(ufunc, called, condition) for ufunc, (called, condition) in _LIBM.items()},
    np.abs: _abs,
    np.dot: _dot,
    np.linalg.norm: _norm,
    np.sum: _sum,
    np.zeros: rows.zeros,
    np.isnan: _isnan,
    np.float64: _float64,
}
