"""The finished op table: every prim and composite, read-only."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from . import (
    contract,
    convolution,
    create,
    dynamic,
    fft,
    index,
    linalg,
    markers,
    python_call,
    reduce,
    shape,
    sort,
)
from .batching.collect import with_batching
from .composite import joins, linear, math, nn, reductions
from .composite.kit import meta_by_decomposition
from .derivatives.collect import with_derivatives
from .opdef import Extern, OpDef, OpTableBuilder
from .pointwise import arithmetic, bits, complex_numbers, conversion, functions, logic, random_bits, special

PRIM_FAMILIES = (
    arithmetic,
    functions,
    special,
    logic,
    bits,
    random_bits,
    complex_numbers,
    conversion,
    create,
    shape,
    reduce,
    index,
    contract,
    convolution,
    sort,
    fft,
    linalg,
    dynamic,
    python_call,
    markers,
)
COMPOSITE_FAMILIES = (math, reductions, joins, linear, nn)


def _build() -> Mapping[str, OpDef]:
    builder = OpTableBuilder()
    for family in PRIM_FAMILIES:
        for row in family.ROWS:
            builder.add(with_batching(with_derivatives(row)))
    for family in COMPOSITE_FAMILIES:
        for row in family.ROWS:
            assert row.decomp is not None
            builder.add(dataclasses.replace(row, meta=meta_by_decomposition(builder.rows, row.decomp)))
    return MappingProxyType(builder.rows)


TABLE: Mapping[str, OpDef] = _build()


def table_with(routines: Sequence[tuple[str, Callable[..., Any]]]) -> Mapping[str, OpDef]:
    """The table with a library's own routines for some ops in place of their references."""
    if not routines:
        return TABLE
    changed = {name: _with_routine(TABLE[name], routine) for name, routine in routines}
    return MappingProxyType({**TABLE, **changed})


def _with_routine(row: OpDef, routine: Callable[..., Any]) -> OpDef:
    # what the runtime has in place of NumPy's routine does not stand for this one
    lower = Extern() if isinstance(row.lower, Extern) else row.lower
    return dataclasses.replace(row, ref=routine, lower=lower)
