"""Effects: what is written, in which order, into which objects; aliases; exceptions half-way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check
from tests.capture.programs import make_outer_counter, remembers, vec

BACKENDS = ("eager", "inductor")


def base():
    return np.arange(24.0).reshape(4, 6)


# -- arrays -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", BACKENDS)
def test_several_views_of_one_array(backend):
    def f(x):
        top, left, turned = x[:2], x[:, 0], x.T
        top += 1
        left *= 2
        turned[3, :] = -1.0
        x[1:3, 1:3] = x[0:2, 0:2]
        return top, left, turned.sum(axis=0), x.ravel()[::5]

    check(f, lambda: (base(),), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_made_before_and_after_a_write(backend):
    def f(x):
        before = x[1:]
        y = x * 2
        x[...] = 0.0
        after = x[1:]
        before[0] = 5.0
        return before, y, after, before is after, x[1]

    check(f, lambda: (vec(),), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_chains_of_in_place_operators(backend):
    def f(x, y):
        z = x
        z += y
        z *= z
        w = z[::-1]
        w -= x
        np.add(x, 1.0, out=y)
        np.multiply(y, y, out=x[:])
        return z, w

    check(f, lambda: (vec(), vec(5, 2.0)), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_into_a_new_array_do_not_touch_arguments(backend):
    def f(x):
        y = np.empty_like(x)
        y[:] = x
        y[1:-1] += 1
        z = x.copy()
        z[0] = 9
        return y, z

    check(f, lambda: (vec(),), backend=backend)


ALIASES = {
    "apart": lambda x: x.copy(),
    "same": lambda x: x,
    "view": lambda x: x[::-1],
    "overlapping": lambda x: np.concatenate([x, x])[2:7],
    "shifted": lambda x: x.base[1:6] if x.base is not None else x,
}


@pytest.mark.parametrize("kind", ALIASES)
def test_arguments_that_share_memory(kind):
    def f(x, y):
        x[1:] += y[:-1]
        y *= 2
        return x + y, x[0]

    def make():
        x = np.arange(8.0)[0:5]
        return x, ALIASES[kind](x)

    check(f, make)
    check(f, lambda: (vec(), vec()), make, lambda: (vec(), vec()))


@pytest.mark.parametrize("first, second", list(itertools.permutations(ALIASES, 2)))
def test_aliasing_may_change_from_call_to_call(first, second):
    def f(x, y):
        x += 1
        return y * 2

    def maker(kind):
        def make():
            x = np.arange(8.0)[0:5]
            return x, ALIASES[kind](x)

        return make

    check(f, maker(first), maker(second), maker(first))


def test_returning_arguments_and_views_keeps_identity():
    def f(x, items):
        return x, items, x[:], x.T, items[0], {"x": x}, x.reshape(-1), x.view()

    check(f, lambda: (base(), [vec()]))


def test_results_are_fresh_at_every_call():
    def f(x):
        return np.ones(3), [1, 2], x + 1, {"a": []}

    compiled = dyncomp.compile(f)
    first, second = compiled(vec()), compiled(vec())
    for a, b in zip(first, second):
        assert a is not b
    first[0][:] = 7
    first[1].append(3)
    first[3]["a"].append(1)
    third = compiled(vec())
    assert np.array_equal(third[0], np.ones(3)) and third[1] == [1, 2] and third[3] == {"a": []}


def test_constant_arrays_from_globals_are_not_frozen():
    def f(x):
        return x + TABLE, TABLE

    compiled = dyncomp.compile(f, backend="eager")
    assert compiled(vec())[1] is TABLE
    TABLE[0] = 100.0
    assert compiled(vec())[0][0] == vec()[0] + 100.0
    TABLE[0] = 1.0


TABLE = np.ones(5)


# -- objects ------------------------------------------------------------------------------------------
def test_order_of_effects_around_breaks():
    def f(x, log, d):
        log.append("one")
        d["first"] = x + 1
        print("break", log, list(d))
        log.append("two")
        d["second"] = d["first"] * 2
        print("again", log, list(d))
        x[0] = 50.0
        log.append("three")
        return d["second"]

    records = check(f, lambda: (vec(), [], {}), lambda: (vec(), ["had"], {"second": 0}))
    assert set(break_ids(records)) == {"print"}


def test_effects_before_an_exception_stay():
    def f(x, log, d):
        log.append(1)
        x[0] = 9.0
        d["k"] = x * 2
        del d["old"]
        log.append(d["missing"])

    check(f, lambda: (vec(), [], {"old": 1}))


def test_effects_inside_inlined_calls():
    def record(log, what, x):
        log.append(what)
        x[len(log) % 5] = 0.0
        return x + len(log)

    def f(x, log):
        return record(log, "a", record(log, "b", x) - record(log, "c", x))

    records = check(f, lambda: (vec(), []))
    assert break_ids(records) == []


def test_a_list_that_grows_while_it_is_iterated():
    def f(x, items):
        for item in items:
            if len(items) < 6:
                items.append(item + 1)
            x = x + item
        return x

    check(f, lambda: (vec(), [1, 2]))


def test_a_dict_changed_while_it_is_iterated():
    def f(x, d):
        y = x + 1
        for k in d:
            d[k + "x"] = y
        return y

    check(f, lambda: (vec(), {"a": 1}))


def test_same_container_by_two_names():
    def f(a, b, x):
        a.append(x)
        b.append(1)
        a[0] = b[-1]
        return len(a), len(b), a is b

    def same():
        items = [0]
        return items, items, vec()

    check(f, same, lambda: ([0], [5], vec()), same)


def test_same_object_by_two_names():
    class Box:
        def __init__(self, v):
            self.v = v

    def f(a, b, x):
        a.v = a.v + x
        b.v = b.v * 2
        return a.v, b.v

    def same():
        box = Box(1.0)
        return box, box, vec()

    check(f, same, lambda: (Box(1.0), Box(2.0), vec()), same)


def test_swapped_items_and_attributes():
    def f(items, d, x):
        items[0], items[1] = items[1], items[0]
        d["a"], d["b"] = d["b"], d["a"]
        items[0] = items[0] + x
        return items[0] is d["a"]

    check(f, lambda: ([vec(), vec(5, 2.0)], {"a": vec(), "b": 3}, vec()))


def test_globals_are_written():
    global WRITTEN

    def f(x):
        global WRITTEN
        WRITTEN = x * 2
        return x + 1

    WRITTEN = None
    compiled = dyncomp.compile(f, backend="eager")
    for n in (5, 5, 6):
        compiled(vec(n))
        assert np.array_equal(WRITTEN, vec(n) * 2)


WRITTEN = None


def test_cells_of_the_outer_function_are_written():
    plain, mine = make_outer_counter(), make_outer_counter()
    compiled = dyncomp.compile(mine, backend="eager")
    for _ in range(5):
        expected, found = plain(vec()), compiled(vec())
        assert expected[1] == found[1] and np.array_equal(expected[0], found[0])


def test_mutable_defaults_remember():
    compiled = dyncomp.compile(remembers, backend="eager")
    seen = [compiled(vec())[1] for _ in range(4)]
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]


def test_methods_that_replace_their_own_state():
    class Momentum:
        def __init__(self, n):
            self.v = np.zeros(n)
            self.history = []

        def step(self, g):
            self.v = 0.9 * self.v + g
            self.v[0] = 0.0
            self.history.append(float(len(self.history)))
            return self.v

    def f(m, g):
        for _ in range(3):
            g = m.step(g)
        return g, g is m.v

    check(f, lambda: (Momentum(5), vec()))


def test_exceptions_leave_the_world_as_plain_python_does():
    """The array is written, then a shape error, in one graph."""

    def f(x, y, log):
        x += 1
        log.append("before")
        z = x + y
        log.append("after")
        return z

    check(f, lambda: (vec(), vec(4), []), lambda: (vec(), vec(), []), lambda: (vec(), vec(3), []))


@pytest.mark.parametrize("backend", BACKENDS)
def test_read_only_arguments(backend):
    def f(x):
        y = x * 2
        x[0] = 1.0
        return y

    def frozen():
        x = vec()
        x.flags.writeable = False
        return (x,)

    check(f, lambda: (vec(),), frozen, lambda: (vec(),), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_in_place_operators_that_do_not_fit(backend):
    def cast(x):
        x += 0.5
        return x

    check(cast, lambda: (np.arange(5),), backend=backend)

    def grow(x, y):
        x += y
        return x

    check(grow, lambda: (vec(), np.ones((2, 5))), lambda: (np.ones((2, 5)), vec()), backend=backend)


def test_random_state_is_shared():
    def f(x):
        return x + np.random.rand(5), np.random.standard_normal()

    compiled = dyncomp.compile(f, backend="eager")
    for seed in (1, 2):
        np.random.seed(seed)
        expected = f(vec()), f(vec())
        np.random.seed(seed)
        found = compiled(vec()), compiled(vec())
        for (a, b), (c, d) in zip(expected, found):
            assert np.array_equal(a, c) and b == d
