"""Every composite's decomposition, down to prims, against its reference."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, Ops, verify
from dyncomp.prims.opdef import OpDef, Sample
from dyncomp.prims.table import TABLE

from .framework import all_rows, check_type, check_values, run_ref, samples_of, type_of


class Expanding(GraphBuilder):
    """A builder that writes composites as their decomposition."""

    def emit(self, op, *inputs, loc=None, **params):
        row = self.table.get(op)
        if row is not None and row.decomp is not None:
            return row.decomp(Ops(self), *inputs, **params)
        return super().emit(op, *inputs, loc=loc, **params)


def expand(row: OpDef, sample: Sample):
    """The graph of prims that computes a sample."""
    builder = Expanding(TABLE)
    inputs = [builder.add_input(type_of(a)) for a in sample.args]
    result = row.decomp(Ops(builder), *inputs, **sample.params)
    outputs = result if isinstance(result, tuple) else (result,)
    graph = builder.finish(tuple(GraphOutput(v) for v in outputs))
    return verify(graph, TABLE)


@pytest.mark.parametrize("row", all_rows("composite"))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_decomposition_agrees_with_reference(row):
    for sample in samples_of(row.name):
        try:
            graph = expand(row, sample)
            assert all(TABLE[n.op].is_prim for n in graph.nodes)
            found = run(graph, TABLE, *sample.args)
            for actual, expected, out in zip(found, run_ref(row, sample), graph.outputs):
                check_type(actual, out.var.type)
                check_values(actual, expected, row.tolerance)
                assert not any(np.shares_memory(actual, a) for a in sample.args), "result is not fresh"
        except Exception as error:
            raise AssertionError(f"{row.name} {sample.label}: {error}") from error
