"""Small programs of containers, numbers, strings and branches; see ``programs.Program``."""

# ruff: noqa: B006, B007, B009, B010, B023, B904, C403, C405, C408, C416, C417, C419, E731, F601, F841, RET505, RET503, SIM105, SIM108, UP031, UP032
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.capture.programs import Point, Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


# -- containers ---------------------------------------------------------------------------------------
@program(
    lambda: (vec(), [1.0, 2.0, vec(3)]),
    lambda: (vec(), [1.0, 2.0, vec(3)]),
    breaks=("data-dependent-branch",),
)
def list_methods(x, items):
    items.append(x)
    items.insert(0, "first")
    items.extend([1, (2, x)])
    last = items.pop()
    items.reverse()
    items[1] = None
    del items[0]
    items += [x + 1]
    return last[1] * 2, len(items), items.index(None), items.count(1.0)


@program(one)
def list_slices(x):
    items = [x, x + 1, 3, 4, 5]
    items[1:3] = [9]
    tail = items[-2:]
    del items[0:1]
    return items, tail, items[::-1], [*tail, *items], (1, *tail), items * 2, [0] + items


@program(lambda: (vec(), {"a": 1.0, "b": vec(3), "c": 0}))
def dict_methods(x, d):
    d["new"] = x * d["a"]
    d["a"] = 5
    gone = d.pop("c")
    d.setdefault("b", None)
    d.setdefault("z", x)
    d.update({"u": 1}, v=2)
    for k, v in d.items():
        if k == "u":
            x = x + v
    keys = list(d)
    return x, gone, d.get("nope"), d.get("nope", 3), keys, "b" in d, list(d.values())[0], len(d)


@program(lambda: (vec(), {1: "one", (2, "t"): vec(2), None: 3, True: 4, 2.5: 5}))
def dict_key_types(x, d):
    d[(3, 4)] = x
    return x + d[2.5], d[1], d[(2, "t")] * 2, d[None], {1: "a", 1.0: "b", True: "c"}


@program(lambda: (vec(), {"a": 1, "b": 2}))
def dict_order_after_delete(x, d):
    del d["a"]
    d["a"] = 3
    return x + 1, [*d]


@program(one)
def sets(x):
    s = {1, 2, 3}
    s.add(4)
    f = frozenset([1, 2])
    return x * len(s), 2 in s, s, f, {i % 2 for i in range(4)}


@program(one)
def comprehensions(x):
    k = 2
    a = [x * i + k for i in range(3) if i != 1]
    b = {str(i): x + i for i in range(2)}
    c = {i * k for i in range(3)}
    d = [[i + j for j in range(i)] for i in range(3)]
    e = [y for pair in [(x, 1), (2, x)] for y in pair]
    return a, b, c, d, e, tuple(i for i in range(3)), sum(x[i] for i in range(2))


@program(one)
def unpacking(x):
    a, b, *c = x[:2], 2, 3, 4
    (d, e), f = (a, b), c
    first, *_, last = [x, 1, 2, x + 1]
    g = h = x * 2
    a, b = b, a
    p, q, r, s, t = x
    return a, b, c, d, e, f, first, last, g is h, p + t, q, r, s


@program(lambda: (np.arange(6.0).reshape(3, 2),))
def iterate_rows(x):
    total = 0
    for row in x:
        total = total + row
    for i, (a, b) in enumerate(x):
        total = total + i * a - b
    for r, k in zip(x, [1, 2, 3]):
        total = total + r * k
    return total, [r.sum() for r in x], max(1, 2), min([3, 1, 2]), sorted([3, 1, 2], reverse=True)


@program(lambda: (vec(), [vec(), vec(4)]), breaks=("unsupported-operation",), plain=True)
def identity(x, items):
    y = x
    z = x + 0
    return y is x, z is x, items[0] is items[1], items[0] is x, x is not None, items


def shared() -> tuple[Any, ...]:
    x = vec()
    return ([x, x], {"x": x}, x)


@program(shared)
def shared_arguments(items, d, x):
    items[0][0] = 100.0
    d["y"] = x
    return items[0] is d["x"], x[0] + 1, items[1], items


@program(one)
def list_that_holds_itself(x):
    a = [x + 1]
    a.append(len(a))
    b = [a, a]
    return b, b[0] is b[1]


@program(one)
def builtins_of_numbers(x):
    n = x.shape[0]
    return (
        abs(-n) + x,
        divmod(n, 3),
        pow(n, 2),
        round(2.5),
        math.sqrt(n),
        int("12"),
        float("1.5"),
        str(n),
        bool(n),
        n.bit_length(),
        (n, 2) < (n, 3),
        all([1, n]),
        any([0, 0]),
        list(map(lambda v: v * 2, [1, 2])),
        list(zip([1, 2], "ab")),
        list(reversed([1, 2])),
        isinstance(x, np.ndarray),
        callable(abs),
        n == 5 and "five" or "other",
        not n,
        -n,
        ~n,
        n if n > 3 else 0,
        3 < n <= 5,
    )


@program(one, lambda: (vec(6),), breaks=("unsupported-operation",))
def f_strings(x):
    n = x.shape[0]
    name = "x"
    return (
        f"{name!r:>5}|{n:03d}|{n + 1}|{x.dtype}|{x.shape}",
        f"{n:{4}}",
        "%s-%d" % (name, n),
        "a".join(["1", "2"]),
        x + n,
    )


@program(one, lambda: (np.ones((2, 2)),), breaks=("raise",), plain=True)
def asserts(x):
    assert x.ndim == 1, f"want one dimension, got {x.shape}"
    assert len(x) > 2
    return x + 1


@program(lambda: (vec(), 1), lambda: (vec(), -1), lambda: (vec(), 0))
def branches_on_numbers(x, n):
    if n > 0:
        return x + n
    elif n < 0:
        return x - n
    return x


@program(lambda: (vec(), None), lambda: (vec(), vec()), lambda: (vec(), "s"))
def branches_on_none_and_types(x, other):
    if other is None:
        return x
    if isinstance(other, str):
        return x * len(other)
    return x + other


@program(lambda: (vec(), 3), lambda: (vec(), 3.0), lambda: (vec(), True), lambda: (vec(), np.float32(3)))
def number_types(x, n):
    return x.astype("float32") * n, type(n) is int


@program(
    lambda: (vec(), -0.0),
    lambda: (vec(), 0.0),
    lambda: (vec(), float("nan")),
    lambda: (vec(), 1e300),
    breaks=("unsupported-call",),
)
def special_floats(x, f):
    return x * f, math.copysign(1.0, f), f == f, str(f)


@program(lambda: (vec(), 2**70), lambda: (vec(), -(2**63)), lambda: (vec(), 2**63))
def big_integers(x, n):
    return x + float(n), n * 2, n + 1 - n


# -- match, walrus, conditional expressions --------------------------------------------------------------
@program(
    lambda: (vec(), (1, 2)),
    lambda: (vec(), {"k": 3}),
    lambda: (vec(), Point(1.0)),
    lambda: (vec(), "no"),
    breaks=("unsupported-opcode",),
    plain=True,
)
def match_statement(x, command):
    match command:
        case (a, b):
            return x * a + b
        case {"k": k}:
            return x + k
        case Point(x=px):
            return x - px
        case _:
            return x


@program(one)
def walrus(x):
    if (n := len(x)) > 3:
        x = x + n
    return x, [y := n, y + 1]


@program(
    lambda: (vec(), 0),
    lambda: (vec(), 5),
    lambda: (vec(), "s"),
    breaks=(
        "unsupported-attribute",
        "would-raise",
    ),
    plain=True,
)
def missing_attribute_of_a_number(x, n):
    y = x + n if n != "s" else x
    return y, n.real, (n.numerator, n.sum())


def dict_of(n):
    return {f"k{i}": float(i) for i in range(n)}


@program(lambda: (vec(), dict_of(3)), lambda: (vec(), dict_of(12)), breaks=("loop",), plain=True)
def dict_values_change_while_iterating(x, d):
    d["new"] = x + 1
    seen = []
    for k, v in d.items():
        d["k2"] = 100.0
        d[k] = -1.0
        x = x + v
        seen.append(v)
    return x, seen


@program(
    lambda: (vec(), dict_of(3)),
    lambda: (vec(), dict_of(12)),
    breaks=(
        "loop",
        "print",
    ),
    plain=True,
)
def dict_iterators_and_breaks(x, d):
    del d["k1"]
    d["k1"] = x
    it = iter(d.values())
    first = next(it)
    x = x + first
    print("between", len(d))
    d["k2"] = 7.0
    rest = [next(it), next(it)]
    return x, rest


@program(lambda: (vec(), dict_of(3)), breaks=("loop", "would-raise"), plain=True)
def dict_grows_while_iterating(x, d):
    y = x + 1
    for k in d:
        y = y + 1
        d[k + "x"] = y
    return y


@program(
    lambda: (vec(), dict_of(5)),
    breaks=(
        "loop",
        "print",
        "would-raise",
    ),
    plain=True,
)
def dict_grows_after_a_break(x, d):
    for k in d:
        print(k)
        x = x + 1
        if k == "k2":
            d["more"] = x
    return x


@program(lambda: (vec(), [1, 2]))
def exhausted_iterators_stay_exhausted(x, items):
    it = iter(items)
    total = x + sum(it)
    items.append(5)
    return total + sum(it), list(it), next(it, None)


@program(
    lambda: (vec(), [1, 2]),
    breaks=(
        "print",
        "unsupported-call",
        "unsupported-operation",
    ),
)
def exhausted_iterator_after_a_break(x, items):
    it = iter(items)
    total = x + sum(it)
    items.append(5)
    print("break")
    return total + sum(it), next(it, None)


@program(
    lambda: (vec(), {1, 2}, frozenset([3])),
    breaks=(
        "loop",
        "unsupported-attribute",
        "unsupported-operation",
    ),
    plain=True,
)
def sets_from_outside(x, s, f):
    y = x + len(s)
    for v in f:
        y = y + v
    s.add(9)
    return y, 9 in s, s | f
