"""Dicts, sets, deques and heaps in compiled loops."""

import gc
import heapq
import random
from collections import defaultdict, deque

import numpy as np
import pytest

import dyncomp
from tests.scalar_loops.runs import Run, check, outcome


def counts(it, d, a):
    for i in it:
        d[a[i]] = d.get(a[i], 0) + 1
    return d, len(d)


def squares(it, d, s):
    for i in it:
        k = (i * 7) % 13 - 4
        if k in d:
            d[k] += i
        else:
            d[k] = i * i * 70000
        if i % 5 not in d:
            s += 1
        s += d[k]
    return d, s


def zeros(it, d, a, b):
    for i in it:
        d[a[i]] += 1
        d[a[i] % 3] += b[i]
        d[i % 4] -= d[2] if i % 7 == 6 else i
        if i % 11 == 10:
            d[7] += len(d)
    return d, list(d)


def defaults_read(it, d, s):
    for i in it:
        s += d[i % 5]
        d[i] += i * 0.5
    return d, s


@pytest.mark.parametrize(
    "factory, start",
    [(int, {}), (int, {1: 0.5, 5: 7}), (float, {1: 2}), (float, {}), (list, {}), (None, {1: 2})],
)
def test_defaultdicts(factory, start):
    halves = [n * 0.5 for n in NUMBERS]
    given = (range(60), defaultdict(factory, start), NUMBERS, halves if factory is float else NUMBERS)
    assert outcome(Run(zeros), given) == outcome(zeros, given)
    given = (range(60), defaultdict(factory, start), 0)
    assert outcome(Run(defaults_read), given) == outcome(defaults_read, given)


RANDOM = random.Random(5)
NUMBERS = [RANDOM.randrange(-9, 9) for _ in range(200)]


def vowels(n, seen, text):
    count = 0
    for i in range(n):
        if text[i] in seen:
            count += 1
    return count


def test_characters_in_a_set():
    """Sets are no namespaces: runs that a plan enters looked names up in them."""
    compiled = dyncomp.compile(vowels)
    text = "abracadabra" * 3000
    for seen in ({"a", "b"}, {"a", "e", "i"}, {"a"}, set("xyz"), {"b"}):
        for _ in range(2):
            assert compiled(len(text), seen, text) == vowels(len(text), seen, text)


class Odd(int):
    """Compares in its own way."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        SEEN.append(other)
        return int(self) == int(other)


SEEN = []


@pytest.mark.parametrize(
    "start",
    [
        {1: 2, 2.0: 5, 3: 4},
        {1.0: 1, 2: 1},
        {"a": 1, 2: 2},
        {1: "a", 2: 2},
        {1: None, 2: 0},
        {1: [2], 2: 1},
        {Odd(3): 1, 4: 1},
        {np.int64(3): np.int64(2), 2: 7},
        {3: np.float64(2.5), 2: 1},
        {(1, 2): 3},
        {2**61: 4, 1: 2},
        {np.int32(3): 1, 2: 1},
        {True: 1, 2: 2},
        {2**63 - 1: 1},
        {1: 2.5},
        {1: True},
        {1: 2**70, 2: 3},
    ],
    ids=repr,
)
def test_other_keys_and_items(start):
    for function, args in ((counts, (NUMBERS,)), (squares, (0,))):
        SEEN.clear()
        expected = outcome(function, (range(40), start, *args))
        seen = list(map(repr, SEEN))
        SEEN.clear()
        assert outcome(Run(function), (range(40), start, *args)) == expected
        assert list(map(repr, SEEN)) == seen


def names_of_a_module(it, d, text, s):
    for i in it:
        d[text[i]] = i
        s += d[text[i]]
    return s


def test_namespaces_are_left_alone():
    space = {"__name__": "x", "a": 1}
    run = Run(names_of_a_module)
    assert run(range(3), space, "aba", 0) == 3 and space["b"] == 1
    assert not run.is_native


def named_keys(it, d, seen, s):
    for i in it:
        k = (i % 7, i % 4)
        d[k] = d.get(k, 0) + 1
        last = k
        seen.add(k)
        if k == (3, 2) or k != last:
            s += d[k]
    return d, seen, s, k, last


def test_tuples_that_have_names():
    run = Run(named_keys)
    for args in ((range(60), {}, set(), 0), (range(3), {(8, 8): 3}, {(1, 1)}, 0)):
        assert outcome(run, args) == outcome(named_keys, args)
    d, seen, _, k, last = run(range(20), {}, set(), 0)
    assert k is last and any(key is k for key in d)
    assert any(key is k for key in seen)


# -- sets -----------------------------------------------------------------------------------------------
def distinct(it, seen, a, s):
    for i in it:
        k = a[i]
        if k not in seen:
            seen.add(k)
            s += 1
        elif i % 3 == 0:
            seen.discard(k)
    return seen, s, len(seen)


@pytest.mark.parametrize(
    "start", [set(), {1, 2}, set(range(-50, 500, 7)), {1.0, "a", None}, {Odd(3), 5}], ids=range(5)
)
def test_sets(start):
    check(distinct, range(200), start, NUMBERS, 0, native=None)
    check(distinct, range(200), start, np.array(NUMBERS), 0, native=None)
    check(distinct, range(200), start, "abc" * 70, 0, native=None)


# -- deques ---------------------------------------------------------------------------------------------
def queue(it, q, s):
    for i in it:
        q.append(i)
        q.append(i * 1000)
        if i % 3:
            s += q.popleft()
        else:
            q.appendleft(i)
            s += q.pop()
        s += q[0] - q[-1] + len(q)
    while q:
        s = s * 3 % 1000003 + q.popleft()
    return q, s


# -- heaps ----------------------------------------------------------------------------------------------
def heaped(it, h, a, s):
    for i in it:
        heapq.heappush(h, a[i])
        if i % 3 == 2:
            s = s * 0.5 + heapq.heappop(h)
    return h, s


def scheduled(it, h, a, s):
    for i in it:
        heapq.heappush(h, (a[i], i % 5, i))
        if i % 3:
            x, y, z = heapq.heappop(h)
            s += x * y + z
    while h:
        top = heapq.heappop(h)
        s = s * 3 % 100003 + top[0] + top[2]
    return h, s


@pytest.mark.parametrize(
    "items",
    [
        NUMBERS,
        [n * 0.5 for n in NUMBERS],
        np.array(NUMBERS),
        np.array(NUMBERS) * 0.5,
        np.array(NUMBERS, np.float32),
        [*NUMBERS[:90], *[0.5 * n for n in NUMBERS[90:]]],
        [*NUMBERS[:100], float("nan"), *NUMBERS],
        [*NUMBERS[:60], "a", *NUMBERS],
        [*NUMBERS[:60], 2**70, *NUMBERS],
        [*NUMBERS[:60], 2**60 + 1, 2.0**60, *NUMBERS],
        [True, False, *NUMBERS],
    ],
    ids=range(11),
)
def test_heaps(items):
    for start in ([], [1, 2, 3], [(1, 2, 3)]):
        for function in (heaped, scheduled):
            run = Run(function)
            assert outcome(run, (range(150), start, items, 0)) == outcome(
                function, (range(150), start, items, 0)
            )


def test_heaps_are_compiled():
    check(heaped, range(150), [], NUMBERS, 0.0, left=False)
    check(scheduled, range(150), [], NUMBERS, 0, left=False)
    check(emptied_heap, range(4), [3, 2, 1], 0, left=True)


def emptied_heap(it, h, s):
    for _ in it:
        s += heapq.heappop(h)
    return s


# -- whole functions ------------------------------------------------------------------------------------
def dijkstra(indptr, indices, weights, source):
    distance = {source: 0.0}
    heap = [(0.0, source)]
    done = set()
    while heap:
        d, u = heapq.heappop(heap)
        if u in done:
            continue
        done.add(u)
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            new = d + weights[k]
            if v not in distance or new < distance[v]:
                distance[v] = new
                heapq.heappush(heap, (new, v))
    return distance


def flood(h, w, walls):
    queue = deque([(0, 0)])
    seen = {(0, 0)}
    while queue:
        y, x = queue.popleft()
        for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            v, u = y + dy, x + dx
            if 0 <= v < h and 0 <= u < w and (v, u) not in seen and (v * 7 + u * 3) % walls:
                seen.add((v, u))
                queue.append((v, u))
    return len(seen)


def test_whole_functions():
    rng = np.random.default_rng(3)
    indptr = np.arange(0, 4 * 200 + 1, 4)
    args = (indptr, rng.integers(0, 200, 800), rng.random(800), 3)
    compiled = dyncomp.compile(dijkstra, options={"native_loop_us": 0})
    for _ in range(3):
        assert repr(compiled(*args)) == repr(dijkstra(*args))
    filled = dyncomp.compile(flood, options={"native_loop_us": 0})
    assert filled(40, 40, 5) == flood(40, 40, 5)


def test_references_are_kept_and_given_back():
    import sys

    class Watched(float):
        pass

    key, item = 10**9 + int("1"), 10**9 + int("2")
    d = {key: item}
    before = sys.getrefcount(key), sys.getrefcount(item)
    run = Run(squares)
    for _ in range(3):
        run(range(50), dict(d), 0)
    assert (sys.getrefcount(key), sys.getrefcount(item)) == before
    gc.collect()
