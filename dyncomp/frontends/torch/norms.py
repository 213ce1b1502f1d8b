"""The usual norm of tensors, where no derivative of it is asked for: torch has its own choice at zero."""

from __future__ import annotations

from ... import dtypes
from ...errors import Unsupported
from ..base import ArrayRef, TraceContext
from .gradients import is_differentiated
from .operands import axes_of, need_tensor, pointwise, tensor
from .reductions import reduced
from .torch_rules import RuleTable

TABLE = RuleTable()
_EUCLIDEAN = (2, "fro")


@TABLE.function("_C._linalg.linalg_vector_norm")
def vector_norm(
    tx: TraceContext,
    x: object,
    ord: object = 2,
    dim: object = None,
    keepdim: object = False,
    *,
    dtype: object = None,
    out: object = None,
) -> ArrayRef:
    ref = need_tensor(x)
    floating = (dtypes.float32, dtypes.float64)
    if ord != 2 or dtype is not None or out is not None or ref.dtype not in floating:
        raise Unsupported("a norm other than the usual one, or of halves")
    if is_differentiated(tx, ref.var) or ref.host:
        raise Unsupported("the derivative of a norm")
    squares = pointwise(tx, "multiply", ref.var, ref.var)
    return tensor(
        pointwise(tx, "sqrt", reduced(tx, "reduce_sum", squares, axes_of(dim, ref.ndim), bool(keepdim)))
    )


@TABLE.both("norm")
def norm(
    tx: TraceContext,
    input: object,
    p: object = "fro",
    dim: object = None,
    keepdim: object = False,
    out: object = None,
    dtype: object = None,
) -> ArrayRef:
    if p not in _EUCLIDEAN:
        raise Unsupported("a norm other than the usual one")
    return vector_norm(tx, input, 2, dim, keepdim, dtype=dtype, out=out)


@TABLE.function("_foreach_norm")
def foreach_norm(
    tx: TraceContext, tensors: list[object], ord: object = 2, dtype: object = None
) -> list[ArrayRef]:
    return [vector_norm(tx, x, ord, dtype=dtype) for x in tensors]
