"""Minimum cuts against networkx and brute force; how the work grows."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from dyncomp.aot_autograd.min_cut import Network

INFINITE = 10**9


def cost(sides, supplies, arcs):
    """What a cut costs; ``sides`` says which nodes are on the side of the sinks."""
    crossing = sum(c for tail, head, c in arcs if sides[head] and not sides[tail])
    return crossing + sum(s for node, s in enumerate(supplies) if sides[node])


def random_network(rng, count):
    supplies = [rng.choice([0, 0, rng.randint(1, 9)]) for _ in range(count)]
    arcs = []
    for _ in range(rng.randint(count, 3 * count)):
        tail, head = rng.sample(range(count), 2)
        arcs.append((tail, head, rng.choice([rng.randint(0, 9), rng.randint(0, 3), INFINITE])))
    sinks = [node for node in range(count) if rng.random() < 0.2] or [count - 1]
    return supplies, arcs, sinks


def made(count, supplies, arcs, sinks):
    network = Network(count)
    for node, supply in enumerate(supplies):
        network.add_supply(node, supply)
    for arc in arcs:
        network.add_arc(*arc)
    for node in sinks:
        network.add_sink(node)
    return network


@pytest.mark.parametrize("seed", range(150))
def test_no_cut_is_cheaper_nor_as_cheap_and_smaller(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 9)
    supplies, arcs, sinks = random_network(rng, count)
    found = made(count, supplies, arcs, sinks).cut()
    assert all(found[node] for node in sinks)
    best = cost(found, supplies, arcs)
    for sides in itertools.product((False, True), repeat=count):
        if all(sides[node] for node in sinks):
            other = cost(sides, supplies, arcs)
            assert best <= other
            if other == best:
                assert all(not mine or theirs for mine, theirs in zip(found, sides))


@pytest.mark.parametrize("seed", range(40))
def test_costs_are_those_of_networkx(seed):
    networkx = pytest.importorskip("networkx")
    rng = random.Random(seed)
    count = rng.randint(10, 120)
    supplies, arcs, sinks = random_network(rng, count)
    graph = networkx.DiGraph()
    graph.add_nodes_from(["from", "to"])

    def add(tail, head, capacity):
        known = graph.get_edge_data(tail, head, {"capacity": 0})["capacity"]
        graph.add_edge(tail, head, capacity=known + capacity)

    for node, supply in enumerate(supplies):
        add("from", node, supply)
    for arc in arcs:
        add(*arc)
    for node in sinks:
        add(node, "to", INFINITE * count)
    found = made(count, supplies, arcs, sinks).cut()
    assert cost(found, supplies, arcs) == networkx.minimum_cut_value(graph, "from", "to")


def chain(rng, size):
    """Each node reads the one before it; every tenth one is wanted."""
    arcs = [(k, k + 1, rng.randint(1, 50)) for k in range(size - 1)]
    return [rng.randint(0, 9) for _ in range(size)], arcs, [k for k in range(size) if k % 10 == 9]


def long_way(rng, size):
    """A chain of which only the end is wanted, with narrow places."""
    arcs = [(k, k + 1, rng.choice([3, 1000, INFINITE])) for k in range(size - 1)]
    return [rng.randint(1, 9) for _ in range(size)], arcs, [size - 1]


def wide(rng, size):
    """Many short chains that end in one node."""
    arcs = [(k, size - 1 if k % 5 == 4 else k + 1, rng.randint(1, 50)) for k in range(size - 1)]
    return [rng.randint(0, 9) for _ in range(size)], arcs, [size - 1]


def layers(rng, size):
    """Blocks with a value that goes past each (residual connections)."""
    arcs, sinks = [], []
    for k in range(0, size - 12, 12):
        arcs += [(k + j, k + j + 1, rng.choice([5, 50, INFINITE])) for j in range(12)]
        arcs += [(k, k + 12, INFINITE), (k + 2, k + 6, INFINITE), (k, k + 8, INFINITE)]
        sinks += [k + 3, k + 7]
    return [rng.randint(0, 30) for _ in range(size)], arcs, sinks


def ladder(rng, size):
    """Two chains with rungs both ways."""
    half = size // 2
    arcs = [(k, k + 1, rng.randint(1, 50)) for k in range(size - 1)]
    arcs += [(k, k + half, rng.randint(0, 9)) for k in range(half)]
    arcs += [(k + half, k, rng.randint(0, 9)) for k in range(half)]
    return [rng.randint(0, 9) for _ in range(size)], arcs, [size - 1]


@pytest.mark.parametrize("shape", [chain, long_way, wide, layers, ladder], ids=lambda f: f.__name__)
def test_work_grows_nearly_as_the_network(shape):
    sizes = [1000, 2000, 4000, 8000, 16000]
    work = []
    for size in sizes:
        network = made(size, *shape(random.Random(0), size))
        network.cut()
        work.append(network.steps)
    exponent = math.log(work[-1] / work[0]) / math.log(sizes[-1] / sizes[0])
    assert exponent < 1.25, work
    assert work[-1] < 100 * sizes[-1]
