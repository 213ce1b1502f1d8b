"""A slice that is updated in the memory of the whole array: a result of it needs memory of its own."""

from __future__ import annotations

import numpy as np

from dyncomp.graph.text import parse
from dyncomp.inductor.compile import compile_graph
from dyncomp.options import Options
from dyncomp.prims.table import TABLE

TEXT = """
def graph(in0, in1):  # functional
    # in0: float32[2, 64, 64]  array
    # in1: float32[1, 64]  array
    v0 = multiply(in0, in0)  # float32[2, 64, 64]
    v1 = strided_slice(v0, starts=(0, 0, 0), sizes=(1, 64, 64), steps=(1, 1, 1))  # float32[1, 64, 64]
    v2 = reshape(v1, shape=(64, 64))  # float32[64, 64]
    v3 = update_slice(v2, in1, starts=(3, 0), sizes=(1, 64), steps=(1, 1))  # float32[64, 64]
    return v3,
"""


def test_the_result_is_as_large_as_the_part():
    graph = parse(TEXT.strip(), TABLE)
    compiled = compile_graph(graph, Options())
    x, row = np.random.default_rng(0).random((2, 64, 64), np.float32), np.ones((1, 64), np.float32)
    expected = (x * x)[0]
    expected[3] = 1.0
    for _ in range(20):
        found = compiled.call(x, row)
        np.testing.assert_array_equal(found, expected)
