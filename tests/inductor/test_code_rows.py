"""Every prim's samples compiled, a graph per row, against the row's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dyncomp.graph.ir import Graph, GraphBuilder, GraphOutput
from dyncomp.inductor.compile import compile_graph
from dyncomp.prims.opdef import OpDef, Pointwise, Sample
from dyncomp.prims.table import TABLE
from tests.inductor.harness import OPTIONS, copies
from tests.prims.framework import all_rows, check_values, run_ref, samples_of, some_samples, type_of

# Samples per graph by default; the slow test takes all. Pointwise rows are few kinds of code, and scalar
# functions are compiled for all dtypes in ``test_render_scalar.py``.
SOME, SOME_POINTWISE = 16, 8
CHUNK = 48


def graph_of_samples(row: OpDef, samples: list[Sample]) -> tuple[Graph, list[Any]]:
    """One graph that computes the row on every sample, and its inputs."""
    builder = GraphBuilder(TABLE)
    outputs: list[GraphOutput] = []
    args: list[Any] = []
    for sample in samples:
        arrays = [np.asarray(a) for a in sample.args]
        args += arrays
        out = builder.emit(row.name, *[builder.add_input(type_of(a)) for a in arrays], **sample.params)
        several = out if isinstance(out, tuple) else (out,)
        outputs += [GraphOutput(v) for v in several]
    return builder.finish(tuple(outputs)), args


def check_samples(row: OpDef, samples: list[Sample]) -> None:
    graph, args = graph_of_samples(row, samples)
    own = copies(args)
    found = compile_graph(graph, OPTIONS).call(*own)
    found = list(found) if isinstance(found, tuple) else [found]
    for before, after in zip(args, own):
        assert before.tobytes() == after.tobytes(), "an input was changed"
    for sample in samples:
        for theirs in run_ref(row, sample):
            mine = found.pop(0)
            scale = 1.0 if np.asarray(theirs).dtype.kind in "fc" else 0.0
            try:
                check_values(np.asarray(mine), np.asarray(theirs), row.tolerance.eps, scale=scale)
            except AssertionError as error:
                raise AssertionError(f"{row.name} {sample.label} {sample.params}: {error}") from error


@pytest.mark.parametrize("row", all_rows("prim"))
def test_code_of_row(row: OpDef) -> None:
    if row.name != "empty" and samples_of(row.name):
        check_samples(row, some_samples(row, SOME_POINTWISE if isinstance(row.lower, Pointwise) else SOME))


@pytest.mark.slow
@pytest.mark.parametrize("row", all_rows("prim"))
def test_code_of_row_on_every_sample(row: OpDef) -> None:
    samples = list(samples_of(row.name))
    for start in range(0, len(samples), CHUNK):
        check_samples(row, samples[start : start + CHUNK])
