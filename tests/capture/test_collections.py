"""``collections`` in captured code: made inside and found outside, changed in place."""

from __future__ import annotations

import collections
import collections.abc
import copy
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque

import numpy as np
import pytest

from tests.capture.cases import Table, run

table = Table()


def vec():
    return np.arange(4.0) + 1


# -- deque ------------------------------------------------------------------------------------------
@table
def deque_methods(x):
    q = deque([1, 2, 3])
    q.append(x)
    q.appendleft(0)
    q.extend([7, 8])
    q.extendleft([9, 10])
    popped = q.pop(), q.popleft()
    q.rotate(2)
    q.rotate(-1)
    q.insert(1, "i")
    q.reverse()
    q[0] = "z"
    del q[1]
    return q, popped, len(q), q[0], q[-1], q.copy(), bool(deque())


@table
def deque_searches(x):
    q = deque([1, 2, 1, 3])
    q.remove(2)
    return q.count(1), q.index(3), 3 in q, q == deque([1, 1, 3]), q + deque([4]), q * 2, x + len(q)


@table
def deque_of_bounded_length(x):
    q = deque(maxlen=2)
    for i in range(4):
        q.append(x * i)
    q.appendleft(1)
    return q, q.maxlen, list(q), deque([1, 2, 3], 2)


@table
def deque_errors(x):
    found = []
    q = deque([1], 1)
    for action in (
        lambda: deque().pop(),
        lambda: q[5],
        lambda: q.insert(0, 1),
        lambda: q.index(9),
        lambda: deque([], -1),
    ):
        try:
            action()
        except (IndexError, ValueError) as error:
            found.append(str(error))
    return found, x * 2


@table
def deque_iteration(x):
    q = deque([1, 2, 3])
    return [v * x for v in q], list(reversed(q)), sum(q), sorted(q, reverse=True)


@table(breaks=True)
def deque_iteration_half_consumed(x):
    q = deque([1, 2, 3])
    it = iter(q)
    first = next(it)
    print("between")
    return first * x, list(it), q


@table
def deque_changes_while_iterated(x):
    q = deque([1, 2])
    try:
        for v in q:
            q.append(v)
    except RuntimeError as error:
        return str(error), x + 1, q


@table(lambda: (vec(), deque([1, 2], 3)))
def outside_deque_only_appended(x, q):
    q.append(x)
    q.append(x + 1)
    return q


@table(lambda: (vec(), deque([np.ones(4), np.zeros(4)])))
def outside_deque_of_arrays(x, q):
    last = q.pop()
    q.appendleft(last + x)
    q.rotate(1)
    return q, q[0] * 2


@table(lambda: (vec(), deque([1, 2])), lambda: (vec(), deque([1, 2, 3])))
def outside_deque_is_guarded(x, q):
    return x * len(q), q[-1], list(q)


# -- defaultdict ------------------------------------------------------------------------------------
@table
def default_dict(x):
    d = defaultdict(list)
    d["a"].append(x)
    d["a"].append(1)
    d["b"]
    counts = defaultdict(int, {"z": 5})
    for c in "abca":
        counts[c] += 1
    return d, counts, d.get("q"), "q" in d, d.default_factory is list, counts.copy()


@table
def default_dict_with_a_function(x):
    made = []

    def factory():
        made.append(1)
        return x * len(made)

    d = defaultdict(factory)
    return d["a"], d["b"], d["a"], len(d)


@table
def default_dict_without_a_factory(x):
    d = defaultdict(None, a=1)
    try:
        return d["q"]
    except KeyError as error:
        return error.args, d, x * 2


@table(lambda: (vec(), defaultdict(list, {"a": [1]})))
def outside_default_dict(x, d):
    d["a"].append(x)
    d["new"].append(2)
    return d, list(d)


# -- OrderedDict --------------------------------------------------------------------------------------
@table
def ordered_dict(x):
    d = OrderedDict([("a", 1), ("b", x), ("c", 3)])
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    first = d.popitem(last=False)
    d["n"] = 5
    return d, first, list(d), list(reversed(d)), d.copy(), list(d.items())[0][0]


@table
def ordered_dicts_compare_their_order(x):
    a = OrderedDict(a=1, b=2)
    b = OrderedDict(b=2, a=1)
    return a == b, a == {"b": 2, "a": 1}, a != b, a | {"c": 3}, x + len(a)


@table(lambda: (vec(), OrderedDict(a=1, b=2, c=3)))
def outside_ordered_dict(x, d):
    d.move_to_end("a")
    d["b"] = x
    del d["c"]
    return d, list(d)


@table(
    lambda: (vec(), OrderedDict([("a", 1), ("b", 2)])),
    lambda: (vec(), OrderedDict([("b", 2), ("a", 1)])),
)
def order_of_an_outside_ordered_dict_is_guarded(x, d):
    return list(d), x * next(iter(d.values()))


@table
def ordered_dict_errors(x):
    found = []
    d = OrderedDict()
    for action in (lambda: d.popitem(), lambda: d.move_to_end("q"), lambda: d["z"]):
        try:
            action()
        except KeyError as error:
            found.append(error.args)
    return found, x * 2


# -- Counter ------------------------------------------------------------------------------------------
@table
def counter(x):
    c = Counter("abracadabra")
    c.update("zz")
    c.subtract({"a": 1})
    return c, c["a"], c["missing"], c.total(), sorted(c), x * c["b"]


@table
def counter_arithmetic(x):
    a, b = Counter(a=3, b=1), Counter(a=1, b=2)
    return a + b, a - b, a & b, a | b, a == Counter(b=1, a=3), x + len(a)


@table(breaks=True)
def counter_most_common(x):
    return Counter("abracadabra").most_common(2), sorted(Counter("aab").elements()), x + 1


@table
def counters_and_dicts_compare_as_dicts(x):
    return Counter(a=0) == {}, Counter(a=0) == {}, Counter(a=1) != {"a": 1}, x + 1


@table(lambda: (vec(), Counter("aab")))
def outside_counter(x, c):
    c["a"] += 1
    c["q"] += 5
    return c, x * c["b"]


# -- ChainMap, UserDict, UserList -----------------------------------------------------------------------
@table(breaks=True)
def chain_map(x):
    c = ChainMap({"a": 1}, {"a": 2, "b": x})
    c["z"] = 9
    return c["a"], c["b"], "b" in c, len(c), c.maps[0]


@table(breaks=True)
def user_containers(x):
    d = UserDict(a=1)
    d["b"] = x
    items = UserList([1, 2])
    items.append(x)
    return d["b"], len(d), items[0], len(items), d.data, items.data


# -- abc and copies -------------------------------------------------------------------------------------
@table
def abc_checks(x):
    values = ([1], (1,), {"a": 1}, {1}, deque(), defaultdict(int), "s", iter([]), range(3))
    names = ("Sequence", "Mapping", "Set", "Iterable", "Sized", "Iterator", "Hashable", "MutableMapping")
    classes = [getattr(collections.abc, name) for name in names]
    return [[isinstance(v, c) for c in classes] for v in values], x + 1


@table
def copies(x):
    a = [1, [x, 2], {"k": x}]
    b = copy.copy(a)
    b[1].append(3)
    return a, b, a[1] is b[1]


@table(breaks=True)
def deep_copies(x):
    a = [1, [2, 3], {"k": (4, [5])}]
    b = copy.deepcopy(a)
    b[1].append(9)
    return a, b, x * 2


class WithSets:
    def __init__(self):
        self.names = {"one", "two", 3, 1 << 20, 11, 19, 27}
        self.names -= {11, 19}
        self.fixed = frozenset((1, (2, 3), "b"))
        self.alike = self.names


@table(lambda: (vec(), WithSets()))
def deep_copies_of_sets(x, given):
    made = copy.deepcopy(given)
    made.names.add("new")
    told = list(made.names), list(made.fixed), made.alike is made.names, made.names is given.names
    return x * len(made.names), told, list(given.names), copy.deepcopy({1, (2, 3)}), made.fixed is given.fixed


@table(breaks=True)
def mapping_proxies(x):
    return types.MappingProxyType({"a": 1})["a"] * x


@table(lambda: (vec(), {"q": deque([1]), "d": defaultdict(list), "o": OrderedDict(), "s": {1}}))
def containers_as_values(x, d):
    d["q"].append(x)
    d["d"]["k"].append(1)
    d["o"]["z"] = d["q"]
    d["s"].add(5)
    return d


@table(lambda: (vec(), *([deque([1])] * 2)))
def one_deque_under_two_names(x, a, b):
    a.append(x)
    return len(b), a is b


@table(lambda: (vec(), *([{1, 2}] * 2)))
def one_set_under_two_names(x, a, b):
    a.add(7)
    return 7 in b, a is b, x * len(b)


@pytest.mark.parametrize("case", table.cases, ids=table.names())
def test_same_as_plain_python(case):
    run(case)
