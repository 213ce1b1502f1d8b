"""Builtin functions and the methods of lists, tuples, dicts, sets and ranges in captured code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.capture.cases import Table, run
from tests.capture.comparing import check

table = Table()


def vec():
    return np.arange(4.0) + 1


# -- iteration --------------------------------------------------------------------------------------
@table
def zip_strict(x):
    return [a * x for a, b in zip([1, 2], [3, 4], strict=True)]


@table
def zip_strict_raises(x):
    try:
        list(zip([1, 2], [3, 4, 5], strict=True))
    except ValueError as error:
        first = str(error)
    try:
        list(zip([1, 2], [3, 4], [5], strict=True))
    except ValueError as error:
        return first, str(error), x * 2


@table(breaks=True)
def zip_strict_uncaught(x):
    y = x * 2
    return y, list(zip([1], [], strict=True))


@table
def iter_with_a_sentinel(x):
    items = [3, 2, 1, 0, 5]
    return [v * x for v in iter(lambda: items.pop(0), 0)], items


@table(breaks=True)
def iter_with_a_sentinel_half_consumed(x):
    items = [3, 2, 1, 0, 5]
    taken = iter(lambda: items.pop(0), 0)
    first = next(taken)
    print("between")
    return first * x, list(taken), items


@table
def reversed_sequences(x):
    return (
        list(reversed([1, 2, x])),
        list(reversed((1, 2))),
        list(reversed("abc")),
        list(reversed({"a": 1, "b": 2})),
        [*reversed({1: 2, 3: 4}.items())],
        list(reversed(range(3))),
    )


@table(breaks=True)
def reversed_half_consumed(x):
    items = [1, 2, 3, 4]
    back = reversed(items)
    first = next(back)
    print("between")
    items.append(5)
    return first * x, list(back)


@table
def any_and_all_stop_early(x):
    seen = []

    def test(v):
        seen.append(v)
        return v > 1

    return any(test(v) for v in [1, 2, 3]), all(test(v) for v in [2, 1, 3]), seen, x * 2


@table
def membership_consumes_iterators(x):
    items = iter([1, 2, 3, 4])
    return 2 in items, list(items), x + 1


@table
def next_with_default(x):
    return next(iter([]), 5) * x, next(iter([1]))


@table
def enumerate_from(x):
    return [i * v for i, v in enumerate([x, x], start=3)], list(enumerate("ab", 1))


@table
def map_and_filter(x):
    return list(map(lambda a, b: a * b, [1, 2, 3], [x, x])), list(filter(lambda v: v % 2, range(5)))


@table
def sorted_by_key(x):
    pairs = [("b", 2), ("a", 3), ("c", 1)]
    return sorted(pairs), sorted(pairs, key=lambda p: p[1], reverse=True), sorted("bca"), x + len(sorted([]))


# -- numbers ----------------------------------------------------------------------------------------
@table
def min_and_max(x):
    words = ["bb", "a", "ccc"]
    return (
        min(3, 1, 2),
        max([1, 5, 2]) * x,
        min(words, key=len),
        max(words, key=lambda w: -len(w)),
        max([], default=7),
        min([2, 1], default=None),
    )


@table
def min_of_nothing(x):
    try:
        return min([])
    except ValueError as error:
        return str(error), x * 2


@table
def sums(x):
    return sum([x, x]), sum([1, 2], 10), sum([[1], [2]], []), sum(v * 2 for v in range(3)), sum([], 0.5)


@table(lambda: (vec(), 0.1), lambda: (vec(), 0.2), lambda: (vec(), 0.7))
def sum_of_changing_floats(x, f):
    return sum([f, f, f, 1e16, -1e16]), x * f


@table
def rounding_and_powers(x):
    return round(2.567, 2), round(5), divmod(17, 5), pow(2, 10, 1000), pow(2, 3), abs(-3), abs(-x)


@table
def conversions(x):
    return int("ff", 16), int(" 12 "), float("1e3"), complex(1, 2), bool([]), int(3.9), complex("1+2j"), x * 1


@table
def conversion_fails(x):
    try:
        return int("a")
    except ValueError as error:
        return str(error), x * 2


@table
def characters_and_bases(x):
    return ord("a"), chr(98), hex(255), bin(5), oct(8), ascii("é"), x + ord("b")


@table
def attributes_of_numbers(x):
    n, f, c = 12, 2.5, 1 + 2j
    whole = n.bit_length(), n.real, n.imag, n.numerator, (3).conjugate(), n.to_bytes(2, "big")
    return (
        whole,
        f.is_integer(),
        f.hex(),
        f.as_integer_ratio(),
        c.real,
        c.imag,
        c.conjugate(),
        x * n.denominator,
    )


@table(lambda: (vec(), 3), lambda: (vec(), 4), lambda: (vec(), 9), lambda: (vec(), 11))
def methods_of_a_changing_int(x, n):
    return n.bit_length(), n.real, n.denominator, x * n, n.conjugate(), float(n), n.bit_count()


@table
def hashes_of_constants(x):
    return hash("a") == hash("a"), hash((1, 2)) == hash((1, 2)), x * (hash(1) + 1)


@table(lambda: (np.zeros(4, np.int8),))
def loop_counter_in_a_small_array(a):
    for i in range(4):
        a[i] = i
    return a


# -- lists ------------------------------------------------------------------------------------------
@table
def list_methods(x):
    a = [3, 1, 2]
    a.append(x)
    a.extend((4, 5))
    a.insert(0, 9)
    a.insert(-100, 8)
    b = a.pop(), a.pop(0), a.index(1), a[:3].count(2)
    a.remove(1)
    a.reverse()
    return a, b, a.copy()


@table
def list_index_bounds(x):
    a = [1, 2, 3, 2, 1]
    return a.index(2, 2), a.index(1, -1), x * a.index(3, 0, 4)


@table
def list_errors(x):
    found = []
    a = [1]
    for action in (lambda: a.index(5), lambda: a.remove(7), lambda: a.pop(3), lambda: [].pop(), lambda: a[4]):
        try:
            action()
        except (ValueError, IndexError) as error:
            found.append(str(error))
    return found, x * 2


@table
def sort_in_place(x):
    a = [3, 1, 2]
    a.sort()
    b = ["bb", "a"]
    b.sort(key=len, reverse=True)
    return a, b, x + a[0]


@table
def list_repetition(x):
    a = [1, x]
    b = a
    a *= 2
    return a, b is a, [0] * 3, 2 * [1], (1,) * 2


@table
def extend_by_itself(x):
    a = [1, x]
    a.extend(a)
    a += a
    return a


@table
def slices_of_lists(x):
    a = list(range(6))
    a[1:3] = [x]
    del a[-2:]
    a[::2] = [7, 8]
    part = a[::-1]
    a[:0] = (1,)
    return a, part


@table
def bad_slice_assignment(x):
    a = [1, 2, 3, 4]
    try:
        a[::2] = [1]
    except ValueError as error:
        return str(error), a, x + 1


@table(lambda: (vec(), [1, 2, 3]))
def outside_list_changes_in_place(x, items):
    items.append(x)
    items[0] = 5
    del items[1]
    items.sort(key=lambda v: 0)
    return items


@table(lambda: (vec(), *([[1, 2]] * 2)))
def one_list_under_two_names(x, a, b):
    a.append(x)
    b.append(1)
    return a is b, len(a)


@table(lambda: (vec(), [[1], [2]]))
def inner_lists_are_shared(x, nested):
    first = nested[0]
    first.append(x)
    return nested, first, [first, first]


@table
def unpacking(x):
    a, *b, c = [1, 2, 3, x]
    (d, e), f = (1, 2), 3
    *g, h = "abc"
    return a, b, c, d + e + f, g, h, [*b, *g], {"a": 1, "b": 2}


@table
def unpacking_errors(x):
    found = []
    try:
        _, _ = [1, 2, 3]
    except ValueError as error:
        found.append(str(error))
    try:
        _, _, *_ = [1]
    except ValueError as error:
        found.append(str(error))
    return found, x * 2


@table
def star_calls(x):
    def inner(a, b=2, *rest, c=3, **more):
        return a, b, rest, c, more

    return inner(*[1, x], *(3, 4), c=5, d=6), inner(a=1)


@table
def comparisons_of_sequences(x):
    return [1, 2] < [1, 3], (1, 2) == (1, 2), [1] != [1, 2], [x] == [x], (1, "a") < (1, "b"), [] == (), x * 1


# -- tuples, ranges and slices ----------------------------------------------------------------------
@table
def tuple_methods(x):
    t = (1, 2, 1)
    return t.count(1), t.index(2), t + (x,), t[1:], 3 in t, t * 2


@table
def ranges(x):
    r = range(2, 20, 3)
    return (
        len(r),
        r[1],
        r[-1],
        r[1:3],
        r.index(5),
        r.count(8),
        11 in r,
        r == range(2, 19, 3),
        r.start,
        list(r[::-1]),
        x + r.step,
    )


@table
def range_errors(x):
    found = []
    for action in (lambda: range(3)[5], lambda: range(3).index(7), lambda: range(0, 1, 0)):
        try:
            action()
        except (ValueError, IndexError) as error:
            found.append(str(error))
    return found, x * 2


@table(lambda: (np.ones(3),), lambda: (np.ones(5),), lambda: (np.ones(7),))
def ranges_over_sizes(x):
    r = range(len(x))
    return len(r), r[1], x * 2, bool(r), r.stop


@table
def slices(x):
    s = slice(1, None, 2)
    return s.start, s.stop, s.step, s.indices(5), x[s], [1, 2, 3, 4][s]


# -- dicts ------------------------------------------------------------------------------------------
@table
def dict_methods(x):
    d = {"a": 1, "b": x}
    d.setdefault("c", 3)
    d.setdefault("a", 9)
    popped = d.pop("a"), d.pop("zz", None), d.popitem()
    d.update({"e": 5}, f=6)
    d.update([("g", 7)])
    return d, popped, d.get("e"), d.get("q", 0), list(d.keys()), d.copy()


@table
def dict_constructors(x):
    return (
        dict(a=1, b=x),  # noqa: C408
        dict([("a", 1)], c=2),
        dict({"k": 1}),  # noqa: C418
        dict.fromkeys("ab", 0),
        dict(zip("ab", [1, 2])),
    )


@table
def dict_operators(x):
    a, b = {"a": 1, "b": 2}, {"b": 3, "c": 4}
    c = a | b
    a |= b
    return c, a, a == c, {"x": 1} == {"x": 1}, {"x": 1} != {"x": 2}, x + len(c)


@table
def dict_errors(x):
    found = []
    d = {"a": 1}
    for action in (lambda: d["q"], lambda: d.pop("z"), lambda: {}.popitem(), lambda: dict([(1, 2, 3)])):
        try:
            action()
        except (KeyError, ValueError) as error:
            found.append((type(error).__name__, error.args))
    return found, x * 2


@table
def dict_views(x):
    d = {"a": 1, "b": 2, "c": 3}
    keys = d.keys()
    return (
        sorted(keys & {"a", "c"}),
        sorted(keys | {"z"}),
        sorted(keys - {"a"}),
        sorted(keys ^ {"a", "q"}),
        keys == {"a", "b", "c"},
        keys.isdisjoint({"z"}),
        2 in d.values(),
        ("a", 1) in d.items(),
        len(d.items()),
        x * 1,
    )


@table
def order_after_deletion(x):
    d = {"a": 1, "b": 2, "c": 3}
    del d["a"]
    d["a"] = x
    d["b"] = 5
    return d, list(d)


@table(lambda: (vec(), {"a": 1, "b": 2, "c": 3}))
def outside_dict_order(x, d):
    del d["a"]
    d["n"] = x
    d["a"] = 4
    d["b"] = 9
    return d


@table(lambda: (vec(), {"a": {"b": [1]}}))
def nested_outside_containers(x, d):
    d["a"]["b"].append(x)
    d["a"]["c"] = d["a"]["b"]
    return d


@table
def dict_grows_while_iterated(x):
    d = {"a": 1, "b": 2}
    y = x * 2
    try:
        for key in d:
            d[key + "x"] = 1
    except RuntimeError as error:
        return str(error), y, d
    return d


@table
def dict_values_change_while_iterated(x):
    d = {"a": 1, "b": 2}
    for key in d:
        d[key] += 1
    return d, x + 1


@table
def dict_comprehensions(x):
    return {k: v * 2 for k, v in {"a": x, "b": 1}.items()}, {i: i * i for i in range(3)}, {(1, 2): x}


# -- sets -------------------------------------------------------------------------------------------
@table
def set_methods(x):
    s = {3, 1, 2}
    s.add(9)
    s.discard(1)
    s.discard(77)
    s.remove(3)
    t = s.copy()
    t.update([5, 6], {7})
    t.difference_update([5])
    t.symmetric_difference_update({6, 100})
    return s, t, len(t) * x, 9 in s, s.isdisjoint({4}), s.issubset(t), t.issuperset([9])


@table
def set_operators(x):
    a, b = {1, 2, 3}, {2, 3, 4}
    c = a | b
    d = set(a)
    d &= b
    e = set(a)
    e -= b
    return a & b, c, a - b, a ^ b, d, e, a < c, a <= a, a == {3, 2, 1}, a != b, x + len(c)


@table
def set_order_is_the_programs(x):
    words = {"pear", "apple", "fig", "kiwi", "plum"}
    numbers = {100, 3, 57, 8, 1024}
    numbers.discard(57)
    numbers.add(12)
    more = list(words | {"nut"}), list(set("hello"))
    return [w for w in words], list(numbers), more, x + 1  # noqa: C416


@table
def set_errors(x):
    found = []
    s = {1}
    for action in (lambda: s.remove(5), lambda: set().pop(), lambda: {[]}):
        try:
            action()
        except (KeyError, TypeError) as error:
            found.append((type(error).__name__, error.args))
    return found, x * 2


@table(breaks=True)
def set_changes_while_iterated(x):
    s = {1, 2}
    y = x + 1
    try:
        for v in s:
            s.add(v + 10)
    except RuntimeError as error:
        return str(error), y
    return s


@table
def set_pop(x):
    s = {5, 6, 7}
    return s.pop(), s, x * 2


@table
def frozensets(x):
    f = frozenset([1, 2])
    return f, f | {3}, f & {1}, 1 in f, {f: x} if False else len(f), frozenset(f) is f, f.union([9])


@table(lambda: (vec(), {1, 2, 3}), lambda: (vec(), {1, 2, 3, 4}))
def outside_set_is_guarded(x, s):
    return x * len(s), 4 in s, [v * 2 for v in s], sorted(s)


@table(lambda: (vec(), {1, 2, 3}))
def outside_set_changes_in_place(x, s):
    s.add(9)
    s.discard(1)
    s |= {20, 21}
    return x + len(s), 9 in s, s


@table(lambda: (vec(), {1, 2, 3}), breaks=True)
def outside_set_order_after_a_change(x, s):
    s.add(9)
    y = x * 2
    return [v for v in s], y  # noqa: C416


@table(lambda: (vec(), frozenset("ab")))
def outside_frozenset(x, f):
    return "a" in f, len(f) * x, f | {"c"} == {"a", "b", "c"}


@table
def set_comprehension_in_loop(x):
    seen = set()
    total = 0
    for i in (3, 1, 3, 2, 1):
        if i in seen:
            continue
        seen.add(i)
        total = total + x * i
    return total, seen


# -- truth and identity -----------------------------------------------------------------------------
@table
def truth_of_containers(x):
    return [bool(v) for v in ([], [0], (), {}, {1: 2}, set(), "", "a", range(0), range(1), None)], x + 1


@table
def identity(x):
    a = [1]
    return a is a, a == [1], x is None, x is x, None is None, a != ()


@table(breaks=True)
def equality_of_lists_of_arrays(x):
    y = x + 1
    try:
        return [y] == [x + 1]
    except ValueError as error:
        return str(error)


@table(breaks=True)
def partial_change_before_an_exception(x):
    items = []
    y = x + 1
    try:
        items.extend(1 / v for v in (1, 2, 0))
    except ZeroDivisionError as error:
        return items, str(error), y


@table(breaks=True)
def prints_in_order(x):
    print("first")
    y = x + 1
    print("second", len(y))
    return y


def by_index(x, items):
    for i in range(len(items)):
        y = x * 2
        x = x + items[i] - y / 3
    return x


def by_key(x, n):
    made = {}
    for i in range(n):
        made[i] = x * i
    return made


def into_a_set(x, n):
    seen = set()
    for i in range(n):
        seen.add(i)
        x = x + i
    return x, seen


def into_a_list(x, n):
    out = [None] * n
    for i in range(n):
        out[i] = x * i
    return out


def into_small_integers(x, n):
    out = np.zeros(n, np.uint8)
    for i in range(n):
        out[i] = i
    return out, x + 1


LONG = [
    (by_index, lambda: (vec(), [float(i) for i in range(50)])),
    (by_index, lambda: (vec(), [vec() * i for i in range(50)])),
    (by_key, lambda: (vec(), 50)),
    (into_a_set, lambda: (vec(), 50)),
    (into_a_list, lambda: (vec(), 50)),
    (into_small_integers, lambda: (vec(), 250)),
    (into_small_integers, lambda: (vec(), 270)),
]


@pytest.mark.parametrize("function, maker", LONG)
def test_long_loops_do_not_specialise_per_iteration(function, maker):
    records = check(function, maker)
    assert not records.counters["limited"]
    assert len(records.entries) < 10


@pytest.mark.parametrize("case", table.cases, ids=table.names())
def test_same_as_plain_python(case):
    run(case)
