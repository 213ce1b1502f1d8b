"""Every prim's samples, lowered and run by the loop IR's reference, against the row's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dyncomp.prims.opdef import Extern, OpDef
from tests.inductor.harness import Reference, copies, graph_of
from tests.prims.framework import all_rows, check_values, run_ref, samples_of, type_of

SMALL = 20_000


def inputs_of(sample: Any) -> list[Any]:
    return [np.asarray(a) for a in sample.args]


@pytest.mark.parametrize("row", all_rows("prim"))
def test_reference_of_lowered_row(row: OpDef) -> None:
    if isinstance(row.lower, Extern):
        pytest.skip("library calls have no loops")
    if row.name == "with_derivative_of":
        pytest.skip("it is gone before a graph is lowered")
    for sample in samples_of(row.name):
        args = inputs_of(sample)
        if any(a.size > SMALL for a in args):
            continue
        graph = graph_of(row.name, [type_of(a) for a in args], dict(sample.params))
        wanted = run_ref(row, sample)
        for mine, theirs in zip(Reference(graph).run(*copies(args)), wanted, strict=True):
            try:
                check_values(np.asarray(mine), np.asarray(theirs), row.tolerance.eps, scale=_scale(theirs))
            except AssertionError as error:
                raise AssertionError(f"{row.name} {sample.label} {sample.params}: {error}") from error


def _scale(value: Any) -> float:
    return 1.0 if np.asarray(value).dtype.kind in "fc" else 0.0
