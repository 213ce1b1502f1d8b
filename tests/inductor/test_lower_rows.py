"""Every prim's samples, lowered and run by the loop IR's reference, against the row's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dyncomp.prims.opdef import Extern, OpDef, Sample
from tests.inductor.harness import Reference, copies, graph_of
from tests.prims.framework import all_rows, check_values, run_ref, samples_of, some_samples, type_of

SMALL = 20_000


def inputs_of(sample: Any) -> list[Any]:
    return [np.asarray(a) for a in sample.args]


# Samples of a row by default; the slow test takes all.
SOME = 40


@pytest.mark.parametrize("row", all_rows("prim"))
def test_reference_of_lowered_row(row: OpDef) -> None:
    check_samples(row, some_samples(row, SOME))


@pytest.mark.slow
@pytest.mark.parametrize("row", all_rows("prim"))
def test_reference_of_lowered_row_on_every_sample(row: OpDef) -> None:
    check_samples(row, samples_of(row.name))


def check_samples(row: OpDef, samples: Sequence[Sample]) -> None:
    if isinstance(row.lower, Extern):
        pytest.skip("library calls have no loops")
    if row.name == "with_derivative_of":
        pytest.skip("it is gone before a graph is lowered")
    for sample in samples:
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
