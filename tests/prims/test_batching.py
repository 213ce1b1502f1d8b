"""Batching rules: what a row gives for a batch is what it gives for each of its elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dyncomp.aot_autograd.batching import batched
from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, verify
from dyncomp.graph.passes.decompose import decompose
from dyncomp.prims.opdef import Tolerance
from dyncomp.prims.table import TABLE

from .framework import check_values, rows, samples_of, type_of

SIZE = 3
COUNT, ALL_OF = 15, 1000  # by default: at least one of each dtype
# windows on memory: of arrays that are all of it
STRIDED = {"as_strided", "update_strided"}
# one after the other (``tests/test_vmap.py``): a matrix and its own factors
TOGETHER = {"lu_factor", "solve_factored"}


def with_rules():
    """Prims with rules, and composites, which are batched as what they are made of."""
    known = [r for r in rows() if (r.batch is not None or r.decomp is not None) and r.name not in TOGETHER]
    return [pytest.param(r, id=r.name) for r in known]


def chosen_samples(row, count):
    """So many of a row's samples, of each dtype in turn."""
    limit = 2000 if "convolution" in row.name else 150
    known = [s for s in samples_of(row.name) if s.args]
    small = [s for s in known if all(a.size <= limit for a in s.args)] or known[:2]
    if row.name in STRIDED:
        small = [s for s in small if s.args[0].flags.c_contiguous]
    kinds: dict[object, list[object]] = {}
    for sample in small:
        kinds.setdefault(sample.args[0].dtype.name, []).append(sample)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds.values()))
    return [s for s in turns if s is not None][:count]


def variants(array):
    """Arrays like one: numbers scaled, which keeps matrices definite and tables sorted, others moved."""
    with np.errstate(all="ignore"):
        if array.dtype.kind in "fcV":
            return [np.asarray((array * (1 + i / 4)).astype(array.dtype)) for i in range(SIZE)]
    return [np.roll(array, i) for i in range(SIZE)]


def many(value):
    return value if isinstance(value, tuple) else (value,)


def whole(parts, innermost):
    """All of a batch, which is axis 0, or innermost in memory."""
    stacked = np.stack(parts)
    return np.moveaxis(np.moveaxis(stacked, 0, -1).copy(), -1, 0) if innermost else stacked


def check(row, sample, flags, innermost):
    args = [np.asarray(a) for a in sample.args]
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(type_of(a)) for a in args]
    outputs = many(builder.emit(row.name, *inputs, **sample.params))
    graph = decompose(builder.finish(tuple(map(GraphOutput, outputs))), TABLE)
    families = [variants(a) if flag else [a] * SIZE for a, flag in zip(args, flags)]
    given = [whole(f, innermost) if flag else f[0] for f, flag in zip(families, flags)]
    types = {k: type_of(given[k]) for k, flag in enumerate(flags) if flag}
    made, which = batched(graph, TABLE, types, SIZE)
    verify(made, TABLE)
    # a result is batched, unless it does not depend on the inputs' elements
    assert all(which) or not row.is_prim or row.name in ("after", "late")
    with np.errstate(all="ignore"):
        found = run(made, TABLE, *given)
        expected = [many(row.ref(*given, **sample.params)) for given in zip(*families)]
    for value, flag, parts in zip(found, which, zip(*expected), strict=True):
        value = np.asarray(value) if flag else np.stack([np.asarray(value)] * SIZE)
        check_values(value, np.stack(parts), tolerance(row), scale=scale(parts))


def scale(parts):
    known = [np.abs(p[np.isfinite(p)]).max(initial=0.0) for p in parts if p.dtype.kind in "fc"]
    return float(max(known, default=0.0))


def tolerance(row):
    # products are taken with more columns, convolutions in another order
    return Tolerance(64.0) if row.name == "interp" else row.tolerance


@pytest.mark.parametrize("row", with_rules())
def test_batch_is_the_stack_of_single_results(row):
    check_row(row, COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("row", with_rules())
def test_batch_is_the_stack_of_single_results_for_every_sample(row):
    check_row(row, ALL_OF)


def check_row(row, count):
    samples = chosen_samples(row, count)
    if not row.samples or not any(s.args for s in samples_of(row.name)):
        pytest.skip("it has no inputs")
    assert samples
    for sample in samples:
        for flags in itertools.product((True, False), repeat=len(sample.args)):
            if any(flags):
                check(row, sample, flags, innermost=False)
        if row.name not in STRIDED:
            check(row, sample, (True,) * len(sample.args), innermost=True)


def test_rows_without_rules_say_why():
    for row in rows("prim"):
        takes_arrays = any(sample.args for sample in samples_of(row.name))
        assert row.batch is not None or row.not_batchable or not takes_arrays, row.name
