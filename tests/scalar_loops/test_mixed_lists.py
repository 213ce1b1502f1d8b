"""Lists that hold NumPy's numbers beside Python's."""

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import Run, outcome, shown


def union_find(edges, n):
    parent = list(range(n))
    joined = 0
    for k in range(edges.shape[0]):
        x, y = edges[k, 0], edges[k, 1]
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        while parent[y] != y:
            parent[y] = parent[parent[y]]
            y = parent[y]
        if x != y:
            parent[x] = y
            joined += 1
    return joined, parent


def test_union_find():
    compiled = dyncomp.compile(union_find, options={"native_loop_us": 0, "debug_verify": True})
    for seed in range(6):
        edges = np.random.default_rng(seed).integers(0, 300, (400, 2))
        assert shown(compiled(edges, 300)) == shown(union_find(edges, 300))
    records = [r for r in compiled.config.records.native_loops if r.versions]
    assert sum(sum(r.bailed.values()) for r in records) <= 8, [dict(r.bailed) for r in records]
    assert not compiled.config.records.internal_errors


def sums(it, values, out, s):
    for i in it:
        s = s + values[i]
        out[i % 3] = values[-1 - i]
    return s, values, out


MIXED = {
    "ints": [1, np.int64(2), 3, np.int64(4), np.int64(-5), 6],
    "floats": [1.5, np.float64(2.5), np.float64(-0.0), 0.25, 3.0, np.float64(1.0)],
    "nan": [1.5, np.float64("nan"), 2.5, float("nan"), np.float64(1.0), 3.0],
    "large": [1, np.int64(2**62), 2**70, np.int64(2**62), 5, np.int64(3)],
    "others": [1, np.int64(2), 2.5, np.int32(3), True, np.int64(4)],
}


@pytest.mark.parametrize("name", sorted(MIXED))
def test_sums_over_mixed_lists(name):
    run = Run(sums)
    for turn in range(8):
        order = MIXED[name][turn % 6 :] + MIXED[name][: turn % 6]
        args = (range(6), order, [order[0], order[1], order[2]], 0)
        assert outcome(run, args) == outcome(sums, args)
    assert run.native.subject.mixes


class Dies:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append(1)


def replaced(it, values, log, a):
    for i in it:
        values[i] = a[i]
    return len(log)


def test_objects_that_are_replaced_die_in_plain_python():
    run = Run(replaced)
    run.native.subject.mixes = True
    log = []
    assert run(range(3), [1, Dies(log), np.int64(5)], log, np.arange(3)) == 1
    assert run.record.bailed
