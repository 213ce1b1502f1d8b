"""Small programs of loops and breaks; see ``programs.Program``."""

# ruff: noqa: B006, B007, B009, B010, B023, B904, C403, C405, C408, C416, C417, C419, E731, F601, F841, RET505, RET503, SIM105, SIM108, UP031, UP032
from __future__ import annotations

from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


def show(*values: Any) -> None:
    """Output, which breaks the graph."""
    print(*values)


# -- loops --------------------------------------------------------------------------------------------
@program(lambda: (vec(), 4))
def short_loop(x, n):
    for i in range(n):
        x = x * 0.5 + i
    return x


@program(lambda: (vec(), 30), lambda: (vec(), 50), lambda: (vec(), 0), lambda: (vec(), 1), breaks=("loop",))
def long_loop(x, n):
    for i in range(n):
        x = x * 0.9 + i
    return x


@program(lambda: (vec(40),), breaks=("loop",))
def loop_with_index(x):
    y = np.zeros_like(x)
    for i in range(1, len(x) - 1):
        y[i] = y[i - 1] + x[i : i + 2].sum()
    return y


@program(lambda: (vec(20),), breaks=("loop",))
def nested_loops(x):
    total = x * 0
    for i in range(12):
        for j in range(i):
            total = total + x * j
        total = total - i
    return total, i, j


@program(
    lambda: (vec(), 100),
    lambda: (vec(), 3),
    breaks=(
        "data-dependent-branch",
        "loop",
    ),
)
def while_with_condition_on_data(x, limit):
    count = 0
    while np.abs(x).max() > 1e-3 and count < limit:
        x = x * 0.5
        count += 1
    return x, count


@program(
    lambda: (vec(), 25),
    lambda: (vec(), 11),
    breaks=(
        "data-dependent-branch",
        "loop",
    ),
)
def break_and_continue(x, n):
    kept = []
    for i in range(n):
        if i % 3 == 0:
            continue
        x = x + 1
        if x.sum() > 60:
            break
        kept.append(x[0])
    else:
        kept.append("ran out")
    return x, kept, i


@program(lambda: (vec(), 20), lambda: (vec(), 0), breaks=("loop",))
def unbound_after_loop(x, n):
    for i in range(n):
        y = x * i
    return y, i


@program(lambda: (vec(), 20), breaks=("loop",))
def return_from_a_loop(x, n):
    for i in range(n):
        x = x + i
        if i == 15:
            return x, i
    return x


@program(lambda: (vec(), [1.0, 2.0] * 10), lambda: (vec(), [1.0] * 15), breaks=("loop",))
def loop_over_a_list(x, items):
    out = []
    for a in items:
        x = x + a
        out.append(x.sum())
    return out, x


@program(lambda: (vec(), {str(k): float(k) for k in range(12)}), breaks=("loop",), plain=True)
def loop_over_a_dict(x, d):
    for k, v in d.items():
        x = x + v
        d[k] = x[0]
    return x


@program(lambda: (vec(), 20), breaks=("loop",))
def zip_and_enumerate(x, n):
    for i, (a, b) in enumerate(zip(range(n), range(n, 0, -1))):
        x = x + i * a - b
    return x


@program(
    lambda: (vec(), 12),
    breaks=(
        "loop",
        "print",
    ),
)
def print_inside_a_loop(x, n):
    for i in range(n):
        x = x + 1
        print("at", i)
        x = x * 2
    return x


@program(
    one,
    breaks=(
        "loop",
        "print",
    ),
)
def print_inside_a_short_loop(x):
    for i in range(3):
        x = x + 1
        print("at", i, x[0] > 2)
        x = x * 2
    return x


@program(lambda: (vec(20), 15), breaks=("loop",))
def in_place_in_a_loop(u, n):
    for _ in range(n):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[-1]
    return u


@program(lambda: (vec(), 15), breaks=("loop",))
def types_change_in_a_loop(x, n):
    carried = 0
    for i in range(n):
        carried = carried + x if i > 3 else carried + 1
    return carried


@program(lambda: (vec(8), 20), breaks=("loop",))
def shapes_change_in_a_loop(x, n):
    total = 0.0
    for i in range(n):
        total = total + x[: i % 8].sum()
        x = np.concatenate([x, x[:1]])
    return total, x


@program(lambda: (vec(), 20), breaks=("loop",))
def loop_over_an_object(x, n):
    state = {"x": x, "steps": []}
    for i in range(n):
        state["x"] = state["x"] * 0.5
        state["steps"].append(i)
    return state


@program(lambda: (vec(), 2**40), breaks=("loop",))
def loop_of_large_integers(x, n):
    a, b = 0, 1
    for _ in range(80):
        a, b = b, a + b
        x = x + 1
    return x, a, b + n


@program(lambda: (vec(), 20), breaks=("loop",))
def integers_overflow_in_a_loop(x, n):
    k = 1
    for _ in range(n):
        k = k * 100
        x = x + 1
    return x, k


@program(lambda: (np.arange(5, dtype=np.uint8), 300), breaks=("loop",), plain=True)
def integer_too_large_for_the_dtype(x, n):
    for i in range(n):
        x = x + i
    return x


@program(lambda: (np.arange(5, dtype=np.int8), 130), breaks=("loop",), plain=True)
def stores_that_overflow(x, n):
    for i in range(n):
        x[i % 5] = i
    return x


@program(lambda: (np.arange(5, dtype=np.int32), 40), breaks=("loop",))
def powers_in_a_loop(x, n):
    for i in range(n):
        x = x * 3 + (x >> (i % 31)) - (x % (i + 1)) + x // (i - 20 or 1)
    return x


@program(lambda: (vec(), 20), breaks=("loop",))
def negative_steps_and_slices(x, n):
    out = []
    for i in range(n, -n, -3):
        out.append(x[i:].sum() + x[:i].sum() + x[::-1][i:].sum())
    return out


# -- breaks -------------------------------------------------------------------------------------------
@program(one, breaks=("print",))
def print_between(x):
    y = x + 1
    print("sum is", y.shape)
    return y * 2, y


@program(one, lambda: (-vec(),), breaks=("data-dependent-branch",))
def branch_on_data(x):
    y = x * 2
    if y.sum() > 0:
        z = y + 1
    else:
        z = y - 1
    return z * y


def shows_inside(x, label):
    y = x + 1
    show(label)
    return y * 2


def two_deep(x):
    a = shows_inside(x, "first")
    b = shows_inside(a, "second")
    return a - b


@program(one, breaks=("print",))
def break_in_an_inlined_call(x):
    return shows_inside(x, "once") + 1


@program(one, breaks=("print",))
def break_two_calls_deep(x):
    y = two_deep(x * 2)
    z = two_deep(y)
    return y + z, x


@program(one, breaks=("print",))
def break_with_values_on_the_stack(x):
    return [x + 1, shows_inside(x, "in a list"), {"k": shows_inside(x, "in a dict")}, x * 3]


@program(one, breaks=("print",))
def break_in_a_nested_function(x):
    count = 0

    def inner(v):
        nonlocal count
        count += 1
        show("inner", count)
        return v * count

    return inner(x) + inner(x), count


@program(
    one,
    breaks=(
        "loop",
        "print",
    ),
)
def break_in_a_comprehension(x):
    return [shows_inside(x, i) for i in range(3)]


class Noisy:
    def __init__(self, k):
        self.k = k
        show("made", k)
        self.after = k + 1

    @property
    def value(self):
        show("read")
        return self.k

    def __call__(self, x):
        show("called")
        return x * self.k

    def __enter__(self):
        show("enter")
        return self

    def __exit__(self, *exc):
        show("exit", exc[0])
        return self.k == 99


@program(one, breaks=("print",))
def break_in_a_constructor(x):
    n = Noisy(3)
    return x * n.after, n


@program(lambda: (vec(), noisy_object(2)), breaks=("print",), plain=True)
def break_in_a_property_and_a_call(x, n):
    return n(x) + n.value


def noisy_object(k):
    made = Noisy.__new__(Noisy)
    made.k = k
    return made
