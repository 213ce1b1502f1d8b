"""Packed sequences (``nn.utils.rnn``): indices say where elements of padded sequences are among the packed
ones. How many there are depends on the data, unless the lengths are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...device import CPU
from ...dtypes import int64
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.dynamic import FUNCTIONS
from ...symbolic.integers import Dim, same
from ..base import ArrayRef, TraceContext
from ..known import known_array
from ..meaning import note_number, size_in, size_of
from ..numpy.data_dependent import call
from ..numpy.operands import LITERAL_LIMIT, emit, literal
from .create import arange
from .indexing import getitem
from .operands import as_own, contiguous, integer, need_tensor, pointwise, tensor, to_var
from .torch_rules import RuleTable

TABLE = RuleTable()


def _counts(value: object, beside: ArrayRef) -> Var:
    found = need_tensor(value)
    if found.ndim != 1 or found.dtype != int64 or beside.type.device != CPU:
        raise Unsupported("packed sequences with counts like these, or on a GPU")
    return found.var


def _known(tx: TraceContext, function: str, counts: Var) -> Any:
    """What a function of ``prims.packing`` gives where its argument is known and small."""
    known = known_array(tx.builder, counts)
    if known is None or np.abs(known).sum() > LITERAL_LIMIT:
        return None
    try:
        return tuple(literal(tx, array) for array in FUNCTIONS[function](known))
    except ValueError as error:
        raise Unsupported(str(error)) from None


@TABLE.function("_VF._pack_padded_sequence", "_pack_padded_sequence")
def pack(tx: TraceContext, input: object, lengths: object, batch_first: object) -> tuple[ArrayRef, ArrayRef]:
    """Lengths that torch refuses make the function raise that finds the places: the original runs."""
    x = need_tensor(input)
    wanted = _counts(lengths, x)
    batch = 0 if batch_first else 1
    if x.ndim < 2 or any(size == 0 for size in x.shape) or wanted.shape[0] != x.shape[batch]:
        raise Unsupported("torch does not pack sequences like these")
    found = _known(tx, "packed", wanted)
    if found is None:
        steps, count = (size_of(tx, f"packed {what}", wanted, low=1) for what in ("steps", "elements"))
        found = call(tx, "packed", [wanted], [(int64, (steps,)), (int64, (count,)), (int64, (count,))])
        note_number(tx, getitem(tx, tensor(found[0]), 0).var, x.shape[batch])
    counts, *places = found
    tx.env.assume(counts.shape[0] - x.shape[1 - batch], "<=")
    data = emit(tx, "index", x.var, *(places[::-1] if batch_first else places), dims=(0, 1), position=0)
    return tensor(contiguous(tx, data)), tensor(counts)


@TABLE.function("_VF._pad_packed_sequence", "_pad_packed_sequence")
def pad(
    tx: TraceContext,
    data: object,
    batch_sizes: object,
    batch_first: object,
    padding_value: Any,
    total_length: object,
) -> tuple[ArrayRef, ArrayRef]:
    x, total = need_tensor(data), integer(total_length)
    counts = _counts(batch_sizes, x)
    steps = counts.shape[0]
    if type(padding_value) is float and padding_value.is_integer() and not x.dtype.is_inexact:
        padding_value = int(padding_value)
    if not x.ndim or total < steps or (type(padding_value) is float and not x.dtype.is_inexact):
        raise Unsupported("torch does not pad sequences like these")
    found = _known(tx, "unpacked", counts)
    if found is None:
        width = size_in(tx, getitem(tx, tensor(counts), 0).var)
        found = call(tx, "unpacked", [counts], [(int64, (width,)), (int64, (steps,))])
    lengths, starts = found
    numbers = arange(tx, lengths.shape[0]).var
    is_there = pointwise(tx, "less", numbers, _column(tx, counts, total))
    places = pointwise(tx, "add", numbers, _column(tx, starts, total))
    places = pointwise(tx, "where", is_there, places, to_var(tx, 0, int64))
    taken = emit(tx, "index", x.var, places, dims=(0,), position=0)
    mask = emit(tx, "reshape", is_there, shape=(*is_there.shape, *(1 for _ in x.shape[1:])))
    made = pointwise(tx, "where", mask, taken, to_var(tx, padding_value, x.dtype))
    if batch_first:
        perm = (1, 0, *range(2, made.ndim))
        made = as_own(tx, emit(tx, "transpose", made, perm=perm))
    return tensor(made), tensor(lengths)


def _column(tx: TraceContext, vector: Var, total: Dim) -> Var:
    """A number for each step, and zeros up to ``total``."""
    (steps,) = vector.shape
    if not same(steps, total):
        rest = emit(tx, "full", shape=(total - steps,), value=0, dtype=int64, device=CPU)
        vector = emit(tx, "concatenate", vector, rest, axis=0)
    column: Var = emit(tx, "reshape", vector, shape=(total, 1))
    return column
