"""``itertools``, ``operator``, ``functools``, ``math`` and other library functions in captured code."""

from __future__ import annotations

import functools
import heapq
import itertools as it
import json
import logging
import math
import operator
import random
import re
import statistics
import string
import textwrap
import time
import typing
import warnings

import numpy as np
import pytest

from tests.capture.cases import Table, run

table = Table()


# -- itertools --------------------------------------------------------------------------------------
@table
def chain(x):
    return [v * 2 for v in it.chain([x, x + 1], (x,), [3.0])]


@table(breaks=True)
def chain_half_consumed(x):
    c = it.chain([1, 2], [3, 4])
    first = next(c)
    print("between")
    return x * first, list(c), type(c)


@table
def chain_from_iterable(x):
    return sum(it.chain.from_iterable([[1, 2], [3]])) * x


@table(breaks=True)
def chain_from_iterable_half_consumed(x):
    c = it.chain.from_iterable(iter([[1, 2], [3], (4, 5)]))
    first = next(c)
    print("between")
    return x * first, list(c)


@table
def count_with_zip(x):
    return [v * i for i, v in zip(it.count(5, 2), [x, x])]


@table
def count_until_break(x):
    total = 0
    for i in it.count():
        if i > 5:
            break
        total = total + x * i
    return total


@table
def repeat(x):
    return list(map(lambda a, b: a * b, it.repeat(x, 3), [1, 2, 3]))


@table(breaks=True)
def cycle(x):
    c = it.cycle([1, 2, 3])
    taken = [next(c) * x for _ in range(5)]
    print("between")
    return taken, [next(c) for _ in range(4)]


@table(breaks=True)
def cycle_in_its_first_round(x):
    c = it.cycle([1, 2, 3])
    taken = next(c) * x
    print("between")
    return taken, [next(c) for _ in range(7)]


@table
def islice_takes_no_more_than_it_must(x):
    items = iter(range(10))
    taken = list(it.islice(items, 1, 6, 2))
    return x * taken[1], list(items)


@table(breaks=True)
def islice_half_consumed(x):
    part = it.islice(iter(range(20)), 2, 15, 3)
    first = next(part)
    print("between")
    return x * first, list(part)


@table
def takewhile_and_dropwhile(x):
    small = it.takewhile(lambda v: v < 3, [1, 2, 3, 1])
    rest = it.dropwhile(lambda v: v < 3, [1, 2, 3, 1])
    return [x * v for v in small], [x * v for v in rest]


@table(breaks=True)
def dropwhile_half_consumed(x):
    rest = it.dropwhile(lambda v: v < 2, [1, 2, 3, 1])
    first = next(rest)
    print("between")
    return x * first, list(rest)


@table
def groupby(x):
    return [(k, sum(g) * x) for k, g in it.groupby([1, 1, 2, 3, 3], key=lambda v: v % 2)]


@table
def groupby_skipping_groups(x):
    return [(k, x) for k, _ in it.groupby("aabbcca")]


@table(breaks=True)
def groupby_half_consumed(x):
    groups = it.groupby([1, 1, 2, 3, 3])
    key, _ = next(groups)
    print("between")
    return x * key, [(k, list(v)) for k, v in groups]


@table
def starmap(x):
    return [v * x for v in it.starmap(pow, [(2, 3), (3, 2)])]


@table(breaks=True)
def tee(x):
    a, b = it.tee(iter([1, 2, 3]))
    taken = next(a) + next(a)
    print("between")
    return x * taken, list(a), list(b)


@table
def zip_longest(x):
    return [(a * x, b) for a, b in it.zip_longest([1, 2, 3], "ab", fillvalue=7)]


@table(breaks=True)
def zip_longest_half_consumed(x):
    rows = it.zip_longest([1], [2, 3, 4])
    taken = next(rows), next(rows)
    print("between")
    return taken, x * 2, list(rows)


@table
def pairwise(x):
    return [b * x - a for a, b in it.pairwise([1, 2, 4])]


@table(breaks=True)
def pairwise_half_consumed(x):
    pairs = it.pairwise([1, 2, 4, 5])
    first = next(pairs)
    print("between")
    return x * first[0], list(pairs)


@table
def compress_and_filterfalse(x):
    kept = [v * x for v in it.compress([1, 2, 3], [1, 0, True])]
    return kept, list(it.filterfalse(None, [0, 1, 2])), list(filter(None, [0, 1, x.shape[0]]))


@table
def products_and_selections(x):
    return (
        [x * (a * b) for a, b in it.product([1, 2], repeat=2)],
        list(it.permutations([1, 2, 3], 2)),
        list(it.combinations("abc", 2)),
        list(it.combinations_with_replacement([1, 2], 3)),
        list(it.product()),
        list(it.combinations([], 0)),
        list(it.permutations([1], 2)),
    )


@table(breaks=True)
def permutations_half_consumed(x):
    orders = it.permutations([1, 2, 3])
    first = next(orders)
    print("between")
    return first, x * 1, list(orders)


@table
def accumulate(x):
    return (
        list(it.accumulate([x, x, x])),
        list(it.accumulate([1, 2, 3], operator.mul)),
        list(it.accumulate([1, 2], initial=10)),
    )


@table(breaks=True)
def accumulate_half_consumed(x):
    sums = it.accumulate([1, 2, 3, 4])
    taken = next(sums), next(sums)
    print("between")
    return x * taken[1], list(sums)


@table
def batched(x):
    return [sum(b) * x for b in it.batched([1, 2, 3], 2)] if hasattr(it, "batched") else x


@table
def one_iterator_twice(x):
    items = iter([1, 2, 3, 4])
    return [(a * x, b) for a, b in zip(items, items)]


@table
def islice_of_bad_bounds(x):
    try:
        it.islice([1], -1)
    except ValueError as error:
        return x * 2, str(error)


@table
def iterator_types(x):
    made = (it.chain(), it.count(), it.repeat(1), it.cycle([]), it.islice([], 1), it.accumulate([]))
    return [type(m).__name__ for m in made], x + 1


# -- functools and operator -----------------------------------------------------------------------------
@table
def reduce(x):
    return functools.reduce(lambda a, b: a + b, [x, x, x]), functools.reduce(operator.mul, [1, 2, 3], 10)


@table
def operator_functions(x):
    return (
        operator.add(x, 1),
        operator.getitem([1, 2], 1),
        operator.contains([1, 2], 2),
        operator.truth([]),
        operator.not_(0),
        operator.is_(None, None),
        operator.concat([1], [2]),
        operator.countOf([1, 1, 2], 1),
        operator.indexOf([3, 4], 4),
        operator.length_hint([1, 2]),
    )


@table
def operator_getters(x):
    pair = operator.itemgetter(1, 0)
    upper = operator.methodcaller("upper")
    return pair([1, 2]), operator.itemgetter(0)([x])[0] * 2, upper("abc"), operator.attrgetter("ndim")(x)


@table
def operator_on_containers(x):
    items, mapping = [1, 2], {}
    operator.setitem(mapping, "k", x)
    operator.delitem(items, 0)
    operator.iadd(items, [5])
    return items, mapping, x - 1


# -- numbers --------------------------------------------------------------------------------------------
@table(lambda: (np.arange(3.0), 2.5), lambda: (np.arange(3.0), 3.5), lambda: (np.arange(3.0), 7.25))
def math_of_a_changing_number(x, f):
    return x * math.sqrt(f), math.floor(f), math.isclose(f, 2.5), math.hypot(f, 1.0), math.fsum([0.1, 0.2])


@table
def math_of_constants(x):
    whole = math.gcd(12, 18), math.comb(5, 2), math.prod([1, 2, 3])
    return whole, math.log(8, 2), x * math.pi, math.dist((0, 0), (3, 4))


@table(breaks=True)
def statistics_of_constants(x):
    return statistics.mean([1, 2, 3, 4]) * x


@table
def heaps(x):
    heap = [5, 1, 4]
    heapq.heapify(heap)
    heapq.heappush(heap, 2)
    return heapq.heappop(heap) * x, heap, heapq.nlargest(2, [3, 1, 2])


# -- text and the world outside ---------------------------------------------------------------------------
@table(breaks=True)
def regular_expressions(x):
    found = re.match(r"(\w+)-(\d+)", "ab-12")
    return x * int(found.group(2)), found.group(1)


@table(breaks=True)
def json_round_trip(x):
    return json.loads(json.dumps({"a": [1, 2.5, None]})), x + 1


@table(breaks=True)
def text_modules(x):
    filled = string.Template("$a").substitute(a=1)
    return textwrap.dedent("  a\n  b"), string.ascii_lowercase[:3], filled, x * 2


@table(breaks=True)
def random_numbers_are_drawn_in_order(x):
    random.seed(7)
    a = random.random()
    b = random.randint(1, 10)
    c = random.choice([1, 2, 3])
    return x * a, b, c, random.sample(range(10), 3)


@table(breaks=True)
def time_goes_on(x):
    start = time.perf_counter()
    y = x * 2
    return y, time.perf_counter() >= start


@table
def casts(x):
    return typing.cast(np.ndarray, x) * 2


@table(breaks=True)
def logs(x):
    y = x + 1
    logging.getLogger("dyncomp.test").debug("%s", "text")
    return y * 2


@pytest.mark.parametrize("case", table.cases, ids=table.names())
def test_same_as_plain_python(case):
    run(case)


def test_warnings_point_at_the_program():
    import dyncomp

    def warns(x):
        y = x + 1
        warnings.warn("careful", UserWarning, stacklevel=1)
        return y * 2

    compiled = dyncomp.compile(warns, backend="eager")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled(np.ones(3))
    plain = warns.__code__.co_firstlineno + 2
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, plain)]


def test_random_numbers_are_not_folded():
    import dyncomp

    compiled = dyncomp.compile(lambda x: x * random.random(), backend="eager")
    found = {float(compiled(np.ones(1))[0]) for _ in range(5)}
    assert len(found) == 5
