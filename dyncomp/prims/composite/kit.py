"""What composites share: their meta by decomposition, and small building blocks over ``ops``.

A composite's results are fresh: it never returns one of its inputs or a view of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...dtypes import DType
from ...graph.ir import ArrayType, GraphBuilder, Ops, Var
from ...symbolic.integers import Dim, SymInt, product
from ..kit import ANY
from ..opdef import OpDef, Sample, Tolerance


def _no_meta(*types: ArrayType, **params: object) -> Any:
    raise NotImplementedError("the table completes a composite's meta")


def composite(
    name: str,
    params: tuple[str, ...],
    decomp: Callable[..., Any],
    ref: Callable[..., Any],
    samples: Callable[[], Iterable[Sample]],
    doc: str,
    *,
    dtypes: Sequence[DType] = ANY,
    eps: float = 16.0,
    absolute: float = 0.0,
    **said: Any,
) -> OpDef:
    """A composite row; its ``meta`` is inferred from ``decomp`` by the table. ``said``: other fields."""
    return OpDef(
        name,
        params,
        _no_meta,
        ref,
        decomp=decomp,
        samples=samples,
        dtypes=tuple(dtypes),
        tolerance=Tolerance(eps, absolute),
        doc=doc,
        **said,
    )


def meta_by_decomposition(table: Mapping[str, OpDef], decomp: Callable[..., Any]) -> Callable[..., Any]:
    """The meta of a composite: the types of what its decomposition returns."""

    def meta(*types: ArrayType, **params: object) -> Any:
        builder = GraphBuilder(table)
        result = decomp(Ops(builder), *(builder.add_input(t) for t in types), **params)
        if isinstance(result, tuple):
            return tuple(v.type for v in result)
        return result.type

    return meta


# -- building blocks --------------------------------------------------------------------------
def spread(ops: Ops, value: Var, x: Var, axes: Sequence[int]) -> Var:
    """``value``, which lacks the dimensions ``axes`` of ``x``, repeated along them."""
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    return ops.broadcast_in_dim(value, shape=x.shape, dims=kept)


def filled(ops: Ops, x: Var, value: object, dtype: DType | None = None) -> Var:
    """A scalar (Python number or symbolic integer) broadcast to the shape of ``x``."""
    return ops.broadcast_in_dim(number(ops, value, dtype or x.dtype, x), shape=x.shape, dims=())


def number(ops: Ops, value: object, dtype: DType, x: Var) -> Var:
    """A 0-d value on the device of ``x``."""
    if isinstance(value, SymInt):
        return ops.symint(expr=value, dtype=dtype, device=x.type.device)
    return ops.full(shape=(), value=value, dtype=dtype, device=x.type.device)


def extent(x: Var, axes: Sequence[int]) -> Dim:
    """Number of elements along ``axes``."""
    return product(x.shape[a] for a in axes)


def window(ops: Ops, x: Var, axis: int, start: Dim, size: Dim) -> Var:
    """``size`` elements of one axis from ``start``, as a view."""
    starts = tuple(start if a == axis else 0 for a in range(x.ndim))
    sizes = tuple(size if a == axis else d for a, d in enumerate(x.shape))
    return ops.strided_slice(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim)


def moved(ops: Ops, x: Var, source: int, target: int) -> Var:
    """Axis ``source`` moved to position ``target``, as a view."""
    order = [a for a in range(x.ndim) if a != source]
    order.insert(target, source)
    return ops.transpose(x, perm=tuple(order))
