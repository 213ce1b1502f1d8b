"""Memory planning: what is alive together does not overlap, and memory is used again."""

from __future__ import annotations

import random

from dyncomp import dtypes
from dyncomp.inductor.lowering.values import Storage
from dyncomp.inductor.memory import bytes_of, lifetimes, plan_memory
from dyncomp.symbolic.integers import ShapeEnv, hint


def temp(size: object) -> Storage:
    return Storage(dtypes.float64, size, "temp")  # type: ignore[arg-type]


def check_disjoint(steps: list[list[Storage]]) -> None:
    plan = plan_memory(steps)
    lives = lifetimes(steps)
    for x in lives:
        start = hint(plan.offset(x.storage))
        end = start + hint(bytes_of(x.storage))
        assert start % 64 == 0
        assert end <= hint(plan.size)
        for y in lives:
            other = hint(plan.offset(y.storage))
            if x is not y and x.first <= y.last and y.first <= x.last:
                assert end <= other or other + hint(bytes_of(y.storage)) <= start


def test_random_lifetimes() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        env = ShapeEnv()
        n = env.new_symbol(100, low=1)
        steps: list[list[Storage]] = [[] for _ in range(12)]
        for _ in range(10):
            size = rng.randint(1, 50) * (n if seed % 2 and rng.random() < 0.5 else 1)
            storage = temp(size)
            first = rng.randrange(12)
            for k in range(first, rng.randint(first, 11) + 1):
                steps[k].append(storage)
        check_disjoint(steps)


def test_a_chain_needs_two_slots() -> None:
    for size in (1000, ShapeEnv().new_symbol(1000, low=1)):
        chain = [temp(size) for _ in range(50)]
        steps = [[a, b] for a, b in zip(chain, chain[1:])]
        assert hint(plan_memory(steps).size) == 2 * 8000


def test_the_smallest_gap_that_is_large_enough() -> None:
    sizes = [8, 24, 8, 16, 8]  # in units of 64 bytes
    blocks = [temp(8 * size) for size in sizes]
    fits, joined = temp(8 * 16), temp(8 * 48)
    steps = [
        blocks,
        [blocks[0], blocks[2], blocks[4], fits],
        [blocks[0], blocks[4]],
        [joined, blocks[0], blocks[4]],
    ]
    plan = plan_memory(steps)
    assert plan.offset(fits) == plan.offset(blocks[3])
    # what is given back next to a gap is one with it
    assert plan.offset(joined) == plan.offset(blocks[1])
    assert plan.size == 64 * sum(sizes)


def test_outputs_are_not_in_the_arena() -> None:
    output = Storage(dtypes.float64, 10, "output")
    plan = plan_memory([[output, temp(3)]])
    assert len(plan.order) == 1
    assert plan.size == 64
