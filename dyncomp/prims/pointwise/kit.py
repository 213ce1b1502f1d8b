"""Makers of pointwise rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import DType, bool_
from ...graph.ir import ArrayType
from ..kit import Array, laid_out, pointwise_meta, widening
from ..opdef import OpDef, Pointwise, Sample, Tolerance
from ..samples import pointwise_samples
from ..scalar_types import KIND_LETTER, KINDS, ScalarOp

if TYPE_CHECKING:
    from ..scalar import ScalarBuilder

Result = Callable[[DType], DType] | DType | None


def scalar_call(name: str) -> Callable[..., Any]:
    """The expression that is the row's scalar function."""

    def expr(s: ScalarBuilder, *args: object) -> Any:
        return getattr(s, name)(*args)

    return expr


def real_of(dtype: DType) -> DType:
    return dtype.real


def by_element(fn: Callable[..., float]) -> Callable[..., Array]:
    """A reference from a function of Python floats, rounded once."""

    def ref(x: object, *others: object) -> Array:
        x = np.asarray(x)
        vectorised = np.frompyfunc(fn, 1 + len(others), 1)
        wide = (np.asarray(a).astype(np.float64) for a in (x, *others))
        return np.asarray(vectorised(*wide)).astype(x.dtype)

    return ref


def called(name: str, triton: str = "", *, cost: int = 15, **said: Any) -> ScalarOp:
    """A scalar function of one argument that is a helper ``dc_NAME`` in C++, and a function of libdevice (or
    as ``triton`` says) in Triton."""
    spelled = {"f": triton or f"dc_libdevice.{name}({{0}})"}
    return ScalarOp(cpp={"fc": f"dc_{name}_{{t}}({{0}})"}, triton=spelled, cost=cost, **said)


def pointwise(
    arity: int,
    name: str,
    fn: Callable[..., Any],
    allowed: Sequence[DType],
    doc: str,
    *,
    scalar: ScalarOp,
    result: Result = None,
    meta: Callable[..., ArrayType] | None = None,
    expr: Callable[..., Any] | None = None,
    samples: Callable[[], Iterable[Sample]] | None = None,
    low: float = -4.0,
    high: float = 4.0,
    extremes: bool = True,
    operand: Callable[[int, Array], Array] | None = None,
    keep: Callable[..., Any] | None = None,
    eps: float = 8.0,
    absolute: float = 0.0,
    own_order: bool = False,
    **said: Any,
) -> OpDef:
    """A row for a function of elements. ``fn``: its reference, which ``scalar`` shares unless it has one of
    its own; ``low``, ``high``, ``extremes``, ``operand``, ``keep``: of its samples; ``own_order``: ``fn`` is
    not a ufunc, and its result has to be put in the order of one; ``said``: other fields of the row."""
    meta = meta or pointwise_meta(name, allowed, result)
    return OpDef(
        name,
        (),
        meta,
        laid_out(widening(fn), meta, own_order),
        lower=Pointwise(expr or scalar_call(name)),
        scalar=_completed(scalar, name, arity, fn, allowed, result),
        samples=samples
        or pointwise_samples(
            allowed, arity, low=low, high=high, extremes=extremes, operand=operand, keep=keep
        ),
        dtypes=tuple(allowed),
        tolerance=Tolerance(eps, absolute),
        doc=doc,
        **said,
    )


unary = functools.partial(pointwise, 1)
binary = functools.partial(pointwise, 2)


def _completed(
    scalar: ScalarOp, name: str, arity: int, fn: Callable[..., Any], allowed: Sequence[DType], result: Result
) -> ScalarOp:
    """The scalar function of a row, with what the row says put in where it does not say so itself."""
    kinds = {KIND_LETTER[d.kind] for d in allowed}
    return replace(
        scalar,
        name=name,
        arity=arity,
        kinds=scalar.kinds or "".join(letter for letter in KINDS if letter in kinds),
        numpy=fn if scalar.numpy is None else scalar.numpy,
        result="bool" if result is bool_ else "real" if result is real_of else scalar.result,
    )
