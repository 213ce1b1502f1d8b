"""Small functions that exercise every shape of control flow; each returns a value that shows its effects.

Every entry of ``PROGRAMS`` is (function, list of argument tuples).
"""

from __future__ import annotations

import contextlib


class Log(list):
    """A context manager that writes down what happens and may swallow ValueError."""

    def __init__(self, swallow=False):
        super().__init__()
        self.swallow = swallow

    def __enter__(self):
        self.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.append(("exit", None if kind is None else kind.__name__))
        return self.swallow and kind is ValueError


def deep_stack(a, b):
    def add(*values, **more):
        return sum(values) + sum(more.values())

    return add(a, b * add(a, add(b, 2, k=a), *[a, b], **{"z" + k: 3 for k in "ab"}), m=a - b) + max(a, b)


def for_loop(n):
    total = 0
    for i in range(n):
        if i == 3:
            continue
        if i > 7:
            break
        total += i * (2 if i % 2 else 3)
    else:
        total += 100
    return total, n


def nested_loops(n):
    out = []
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            out.append((i, j))
        else:
            out.append("else")
        k = 0
        while k < i:
            k += 1
            if k == 2:
                continue
            out.append(k)
    return out


def with_block(x, log):
    y = x
    with log as entered:
        y = x + 1
        entered.append(y)
        if y > 5:
            raise ValueError(y)
        y = y * 2
    return y, list(log)


def try_finally(x):
    out = []
    try:
        out.append("try")
        if x == 1:
            raise KeyError("k")
        if x == 2:
            return out
        out.append(10 // x)
    except ZeroDivisionError as error:
        out.append(type(error).__name__)
    except KeyError:
        out.append("key")
        try:
            out.append({}["missing"])
        except KeyError as error:
            out.append(error.args)
    else:
        out.append("else")
    finally:
        out.append("finally")
    return out


def cells(n):
    counter = 0

    def bump(k):
        nonlocal counter
        counter += k
        return counter

    results = [bump(i) for i in range(n)]
    counter *= 10
    return results, counter, bump(1)


def comprehension(n):
    x = "outer"
    squares = [x * x for x in range(n) if x % 2]
    table = {k: [-v for v in range(k)] for k in range(3)}
    return x, squares, table, {y + 1 for y in squares}


def closures_in_comprehension(n):
    x = 5
    functions = [lambda: x for x in range(n)]  # noqa: B023
    return x, [f() for f in functions]


def while_with_break(log):
    count = 0
    while True:
        with log:
            count += 1
            if count == 2:
                continue
            if count == 4:
                break
            log.append(count)
    return count, list(log)


def short_circuit(a, b):
    c = a and b or a + b
    d = b or a + 1
    return c, d, (a < b < 10), not (a or b), a is b, a in (1, 2), b not in [3]


def unpacking(values):
    first, *rest, last = values
    (a, b), c = (first, last), rest
    d = [*values, *rest]
    e = {**dict.fromkeys("a", a), "b": b}
    f = (a, *c)
    return a, b, c, d, e, f


def strings(x):
    return f"{x!r:>10}|{x}|{x!s}|{x:{'>'}{4}}" + str(x)


def slices(values):
    values = list(values)
    values[1:3] = [9, 9]
    del values[0]
    return values[1:], values[:2], values[::-1], values[-1]


def matching(value):
    match value:
        case {"k": v, **rest}:
            return ("mapping", v, rest)
        case [a, b, *c] if a:
            return ("sequence", a, b, c)
        case str() as s:
            return ("str", s)
        case complex(real=r):
            return ("complex", r)
        case None:
            return "none"
        case _:
            return "other"


def raising(x):
    return 10 / x


def chained(x):
    try:
        try:
            raise KeyError(x)
        except KeyError as error:
            raise ValueError(x) from error
    except ValueError as error:
        return repr(error), repr(error.__cause__), repr(error.__context__)


def suppress_loop(items):
    good = []
    for item in items:
        with contextlib.suppress(ZeroDivisionError, TypeError):
            good.append(10 // item)
            continue
        good.append("bad")
    return good


class Base:
    def __init__(self, value):
        self.value = value

    def get(self, k):
        return self.value + k


class Derived(Base):
    def __init__(self, value):
        super().__init__(value + 1)

    def get(self, k, *more, scale=2, **rest):
        found = super().get(k) * scale
        found += sum(more)
        return found, super().get(0), rest


def methods(v):
    return Derived(v).get(1, 2, 3, scale=3, z=4)


def deletes(n):
    x = n
    y = [x]
    del x
    if n > 1:
        x = 7
        y.append(x)
        del y[0]
    return y


def asserting(x):
    assert x > 0, "positive"
    import math as m
    from math import floor, sqrt

    return sqrt(x), floor(m.pi * x)


def local_names(a):
    b = a + 1
    c = b * 2
    return sorted(locals()), c


def group(x):
    out = []
    try:
        if x:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as error:
        out.append(len(error.exceptions))
    except* TypeError:
        out.append("type")
    return out


PROGRAMS = [
    (deep_stack, [(1, 2), (5, 3)]),
    (for_loop, [(0,), (3,), (6,), (20,)]),
    (nested_loops, [(0,), (5,)]),
    (with_block, [(1,), (7,)]),
    (try_finally, [(0,), (1,), (2,), (5,)]),
    (cells, [(0,), (4,)]),
    (comprehension, [(0,), (5,)]),
    (closures_in_comprehension, [(3,)]),
    (while_with_break, [()]),
    (short_circuit, [(0, 0), (1, 0), (0, 2), (1, 3)]),
    (unpacking, [([1, 2],), ((1, 2, 3, 4),), ([1],)]),
    (strings, [(3,), ("ab",)]),
    (slices, [((1, 2, 3, 4, 5),)]),
    (matching, [({"k": 1, "z": 2},), ([1, 2, 3],), ([0, 2],), ("s",), (1j,), (None,), (5,)]),
    (raising, [(2,), (0,), ("x",)]),
    (chained, [(1,)]),
    (suppress_loop, [([1, 0, "x", 3],), ([],)]),
    (methods, [(1,)]),
    (Derived.get, [(Derived(3), 1, 2)]),
    (deletes, [(1,), (2,)]),
    (asserting, [(4,), (-1,)]),
    (local_names, [(1,)]),
    (group, [(False,), (True,)]),
]

NEEDS_LOG = {with_block: (False, True), while_with_break: (False,)}


def outcome(call, *args):
    """The result of a call, or the kind and text of its exception and the line it came from."""
    try:
        return ("returned", call(*args))
    except Exception as error:
        traceback = error.__traceback__
        while traceback.tb_next is not None:
            traceback = traceback.tb_next
        return ("raised", type(error).__name__, str(error), traceback.tb_lineno)


def calls_of(function, argument_tuples):
    """Makers of fresh arguments for every call of a program."""
    for args in argument_tuples:
        for swallow in NEEDS_LOG.get(function, (None,)):
            if swallow is None:
                yield lambda args=args: args
            else:
                yield lambda args=args, swallow=swallow: (*args, Log(swallow))
