"""How often Python's collector runs while dyncomp compiles."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import dyncomp
from dyncomp.collector import few_collections


@pytest.fixture(autouse=True)
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_it_runs_as_before_afterwards() -> None:
    gc.set_threshold(701, 11, 12)
    with few_collections():
        assert gc.get_threshold()[0] > 10_000
        with few_collections():
            pass
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == (701, 11, 12)
    with pytest.raises(KeyError), few_collections():
        raise KeyError
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.parametrize("own", [(0, 10, 10), (10_000_000, 10, 10)])
def test_what_the_program_chose_stays(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with few_collections():
        assert gc.get_threshold() == own
    gc.set_threshold(700, 10, 10)
    with few_collections():
        gc.set_threshold(*own)  # another thread
    assert gc.get_threshold() == own


def test_it_is_seldom_in_compilation() -> None:
    seen = []

    def backend(graph, examples):  # type: ignore[no-untyped-def]
        seen.append(gc.get_threshold()[0])
        from dyncomp.graph.interp import Interpreter
        from dyncomp.prims.table import TABLE

        return Interpreter(graph, TABLE).run

    gc.set_threshold(700, 10, 10)
    x = np.arange(3.0)
    np.testing.assert_array_equal(dyncomp.compile(lambda x: x * 2 + 1, backend=backend)(x), x * 2 + 1)
    assert seen[0] > 10_000
    assert gc.get_threshold()[0] == 700
