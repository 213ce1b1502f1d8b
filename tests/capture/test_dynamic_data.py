"""Programs whose sizes depend on the data: one graph, right for every selection, the empty one included."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, call, check, differences, graphs
from tests.capture.data_dependent_programs import PROGRAMS

# (size, seed, kind of x)
CASES = (
    (9, 0, ""),
    (9, 3, ""),
    (9, 4, "negative"),
    (9, 5, "positive"),
    (40, 0, ""),
    (40, 1, "negative"),
    (5, 0, ""),
    (1, 0, ""),
    (1, 1, "negative"),
    (2, 0, ""),
    (0, 0, ""),
)
BREAKS = {"branch_on_count": {"data-dependent-branch"}, "loop_over_count": {"loop"}}
BREAKS["two_dimensions"] = {"data-dependent-shape"}  # of one element, where sizes are 1
FOR_KERNELS = ("nonzero_used", "scattered", "unique_all", "count_as_slice", "mutated_argument", "two_masks")


def arguments(size: int, seed: int, kind: str) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)
    x = random.standard_normal(size)
    if kind:
        x = np.abs(x) if kind == "positive" else -np.abs(x)
    return x, random.standard_normal(size), random.integers(0, 6, size)


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(name: str, backend: str) -> Any:
    function = PROGRAMS[name]
    compiled = dyncomp.compile(function, backend=backend, options={"debug_verify": True})
    for case in CASES:
        expected = call(function, arguments(*case))
        found = call(compiled, arguments(*case))
        problems = differences(expected, found, 1e-9)
        assert not problems, (case, problems)
    return compiled.config.records


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph(name):
    records = run(name, "eager")
    assert set(break_ids(records)) == BREAKS.get(name, set())
    if name not in BREAKS:
        assert not records.skipped
        # static, symbolic, and the sizes 1 and 0
        assert len(records.entries) <= 4


@pytest.mark.parametrize("name", FOR_KERNELS)
def test_kernels(name):
    run(name, "inductor")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - set(FOR_KERNELS)))
def test_all_kernels(name):
    run(name, "inductor")


def fallbacks(function, *cases: Any) -> int:
    dyncomp.reset()
    compiled = dyncomp.compile(function, backend="eager")
    for x in cases:
        compiled(x)
    return dyncomp.stats()["fallbacks"]


def test_what_was_assumed_is_checked_before_anything_is_written():
    def f(x):
        x += 1
        x[0] = x[x > 1].max()
        return x

    check(f, lambda: (np.array([1.0, 2.0, 0.5]),), lambda: (np.array([-1.0, -2.0, -0.5]),))


def test_different_masks_of_one_size():
    def f(x):
        return np.sort(x[x > 0]) + np.sort(x[x < 0])

    two = np.array([1.0, -1.0, 2.0, -2.0])
    uneven = np.array([1.0, -1.0, 2.0, 2.0])
    records = check(f, lambda: (two,), lambda: (uneven,), lambda: (-two,))
    assert not break_ids(records) and graphs(records) == 1


def test_unlikely_sizes_run_the_original():
    def f(x):
        return x[x > 0].max() * np.flatnonzero(x > 0).max()

    assert fallbacks(f, np.array([1.0, 2.0, -1.0]), np.array([1.0, 3.0, -1.0])) == 0
    with pytest.raises(ValueError, match="zero-size array"):
        fallbacks(f, np.array([1.0, 2.0, -1.0]), np.array([-1.0, -3.0, -1.0]))


def test_empty_selections_need_no_original():
    def f(x):
        index = np.flatnonzero(x > 0)
        return x[index].sum(), np.cumsum(index), np.concatenate([index, index])

    assert fallbacks(f, np.array([1.0, 2.0, -1.0]), np.array([-1.0, -3.0, -1.0])) == 0


def test_equal_masks_have_one_size():
    def f(x, y):
        return x[np.nonzero(x > 0)] + y[x > 0]

    records = check(f, lambda: (np.array([1.0, -1.0, 3.0]), np.arange(3.0)))
    assert graphs(records) == 1
    assert not records.entries[0].graph.env.unbacked_guards()


def test_a_written_mask_is_another_mask():
    def f(x):
        m = x > 0
        first = np.flatnonzero(m)
        m[0] = not m[0]
        return first, np.flatnonzero(m)

    check(f, lambda: (np.array([1.0, -1.0, 3.0]),))


def test_a_selection_is_an_object_of_its_own():
    def f(x):
        z = x[x > 0]
        same = z
        tail = z[1:]
        tail[...] = 7.0
        same += 1
        return z, same is z, tail, x

    check(f, lambda: (np.array([1.0, -1.0, 3.0, 4.0]),))


def test_out_of_bounds_raises_as_in_numpy():
    def f(x):
        return x[int(x.sum())]

    ones = np.ones(3, dtype=np.int64)
    check(f, lambda: (np.array([0, 1, 0]),), lambda: (ones,), lambda: (-ones,), lambda: (ones * 0,))


def test_negative_bound():
    def f(x):
        return x[: int(x.sum())]

    check(f, lambda: (np.array([0, 1, 2]),), lambda: (np.array([0, 1, -2]),), lambda: (np.array([0, 1, -9]),))


def test_several_stages_of_kernels():
    def f(x):
        index = np.flatnonzero(x > 0)
        chosen = np.sqrt(x[index])
        inner = np.flatnonzero(chosen > 1)
        return chosen[inner] * 2, index[inner], x + 1

    makers = [lambda n=n: (np.random.default_rng(n).standard_normal(n) * 2,) for n in (50, 7, 100)]
    records = check(f, *makers, backend="inductor")
    assert not break_ids(records)
    assert len(records.entries) <= 2


def test_equal_selections_are_made_once():
    def scattered(x, positions, table):
        chosen = x > 0
        table[positions[chosen], positions[chosen]] = x[chosen]

    report = dyncomp.explain(scattered)(np.array([1.0, -2.0, 3.0]), np.array([2, 1, 0]), np.zeros((3, 3)))
    (compiled,) = [entry.compiled for entry in report.entries if entry.graph is not None]
    assert [node.op for node in compiled.graph_before.nodes].count("library_call") == 3
    assert [node.op for node in compiled.graph_after.nodes].count("library_call") == 2


def test_library_routines_with_symbolic_parameters():
    def f(x):
        return np.fft.irfft(np.fft.rfft(x) * 2, len(x)), np.abs(np.fft.fft(x, 2 * len(x)))

    makers = [lambda n=n: (np.arange(float(n)),) for n in (8, 9, 20)]
    records = check(f, *makers, backend="inductor")
    assert graphs(records) == 2


def test_fullgraph():
    def f(x):
        return np.unique(x[x > 0]).sum()

    x = np.array([1.0, 1.0, -2.0, 3.0])
    assert dyncomp.compile(f, fullgraph=True, backend="eager")(x) == 4.0


def test_the_compiler_is_not_captured(tmp_path, monkeypatch):
    """Stages are compiled while the program runs; what the compiler calls is none of the program's."""
    stats = pytest.importorskip("scipy.stats")
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path))
    compiled = dyncomp.compile(lambda x: stats.zscore(x, axis=0))
    x = np.random.default_rng(0).standard_normal((10, 5))
    np.testing.assert_allclose(compiled(x), stats.zscore(x, axis=0))
    assert not [r.loc.file for r in compiled.config.records.entries if "subprocess" in r.loc.file]


def test_a_size_that_only_decides_a_branch_is_checked():
    """Nothing of the first graph is used but the branch that was taken: it runs, and checks that."""

    def f(x):
        unknown = np.setdiff1d(x, [0, 1])
        if len(unknown) > 0:
            raise ValueError("unknown")
        return [tuple(row) for row in x]

    compiled = dyncomp.compile(f)
    for x in ([[1, 0]], [[1, 3]], [[1, 0]], [[0, 1]]):
        assert outcome(compiled, np.array(x)) == outcome(f, np.array(x))


def outcome(function, x):
    try:
        return function(x)
    except ValueError as error:
        return str(error)
