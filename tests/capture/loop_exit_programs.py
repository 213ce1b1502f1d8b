"""Small programs of loops inside ``try`` and ``with``, their exits, and loops over keys; see
``programs.Program``."""

# ruff: noqa: B006, B007, B012, B023, B904, C400, C401, C402, C416, C420, E731, F841, RET505, RET503, SIM105, SIM107, SIM108, UP028
from __future__ import annotations

from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = ("loop",), graphs: int = 0, plain: bool = False) -> Any:
    """``graphs``: how many graphs there are at least, those after the loop included."""

    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        GRAPHS[function.__name__] = graphs
        return function

    return add


GRAPHS: dict[str, int] = {}
RAISES = ("loop", "raise", "inline-refused", "would-raise")


class Manager:
    def __init__(self, log, suppress=False):
        self.log = log
        self.suppress = suppress

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append(kind.__name__ if kind else None)
        return self.suppress


# -- loops under handlers ---------------------------------------------------------------------------------
@program(one, graphs=2)
def loop_in_try(x):
    t = x
    try:
        for i in range(20):
            t = t * 0.9 + i
        u = t * 2 + 1
        u = u * u
    except ValueError:
        return 1
    return u * 3 + t


@program(one, graphs=2)
def loop_in_with(x):
    log = []
    with Manager(log):
        t = x
        for i in range(20):
            t = t * 0.9 + i
        u = t * 2
    return u * 3, log


@program(one, breaks=("loop", "unsupported-call"), graphs=2)
def loop_in_errstate(x):
    with np.errstate(all="ignore"):
        for i in range(20):
            x = x * 0.9 / i if i else x
    return x * 2 + 1


@program(one, graphs=2)
def loop_in_finally(x):
    log = []
    try:
        t = x
        for i in range(20):
            t = t * 0.9 + i
            if i == 15:
                break
        else:
            log.append("else")
        t = t * 3
    finally:
        log.append(1)
    return t * 2, log


@program(one, graphs=2)
def loop_with_else_in_try(x):
    try:
        for i in range(20):
            x = x + i
        else:
            x = x * 2
    finally:
        x = x - 1
    return x


@program(one, graphs=2)
def while_true_in_with(x):
    n = 0
    log = []
    with Manager(log):
        while True:
            x = x * 0.9
            n += 1
            if n == 12:
                break
            if n > 100:
                return x
        y = x + 1
    return y * 2, log


@program(lambda: (vec(), 14), lambda: (vec(), 40), graphs=2)
def return_from_a_loop_in_finally(x, n):
    log = []
    try:
        for i in range(20):
            x = x + i
            if i == n:
                return x * 2
    finally:
        log.append(1)
    return x


@program(lambda: (vec(), 14), lambda: (vec(), 40), graphs=1)
def return_from_a_loop_in_with(x, n):
    log = []
    with Manager(log):
        for i in range(20):
            x = x + i
            if i == n:
                return x * 2, log
    return x, log


@program(one, graphs=2)
def continue_through_finally(x):
    for i in range(20):
        try:
            if i % 3 == 0:
                continue
            x = x + i
            if i == 17:
                break
        finally:
            x = x * 0.5
    else:
        x = x - 1
    return x * 2


@program(one, graphs=2)
def continue_out_of_with(x):
    log = []
    for i in range(12):
        with Manager(log):
            if i % 3 == 0:
                continue
            x = x + i
            if i == 10:
                break
    return x * 2, log


@program(one, breaks=("loop", "print"), graphs=2)
def break_in_a_loop_in_try(x):
    t = x
    try:
        for i in range(3):
            t = t * 0.9 + i
            print(i)
        u = t * 2 + 1
    except ValueError:
        return 1
    return u * 3


@program(one, breaks=("loop", "print"), graphs=2)
def nested_loops_each_with_a_break(x):
    for i in range(3):
        for j in range(2):
            x = x + j
            print(i, j)
        x = x * 2
        print(i)
    return x + 1


@program(one, breaks=("loop", "print"), graphs=2)
def nested_loops_in_nested_blocks(x):
    log = []
    with Manager(log):
        for i in range(3):
            with Manager(log):
                for j in range(2):
                    x = x + j
                    print(i, j)
            x = x * 2
        y = x + 1
    return y * 2, log


@program(one, breaks=("loop", "print"), graphs=1)
def three_loops_deep(x):
    total = 0
    for i in range(2):
        for j in range(2):
            for k in range(2):
                total = total + x * (i + j + k)
                if k:
                    print(i, j, k)
            total = total * 2
    return total + 1


@program(one, graphs=2)
def handler_reads_what_the_loop_assigns(x):
    t = x
    try:
        for i in range(20):
            t = t + i
        y = t * 2
    except ValueError:
        y = t
    return y + 1


def fails_at(i, n):
    if i == n:
        raise ValueError(f"at {i}")
    return i


@program(
    lambda: (vec(), 12),
    lambda: (vec(), 40),
    breaks=("loop", "raise", "inline-refused", "would-raise"),
    plain=True,
)
def handler_sees_the_locals_at_the_exception(x, n):
    t = x
    count = 0
    try:
        for i in range(20):
            t = t + i
            fails_at(i, n)
            count = i
        y = t * 2
    except ValueError as error:
        return t, i, count, str(error)
    return y + 1, i, count


@program(
    lambda: (vec(), 0),
    lambda: (vec(), 3),
    breaks=("loop", "raise", "inline-refused", "would-raise"),
    plain=True,
)
def handler_reads_a_local_that_may_be_unbound(x, n):
    try:
        for i in range(20):
            fails_at(i, n)
            last = x * i
    except ValueError:
        try:
            return last + 1
        except UnboundLocalError as error:
            return str(error)
    return last


@program(
    lambda: (vec(), 5),
    lambda: (vec(), 50),
    breaks=("loop", "raise", "inline-refused", "would-raise"),
    plain=True,
)
def manager_suppresses_what_the_loop_raises(x, n):
    log = []
    with Manager(log, suppress=True):
        for i in range(20):
            x = x + fails_at(i, n)
    return x * 2, i, log


@program(lambda: (vec(), 5), breaks=RAISES, plain=True)
def exception_leaves_through_finally(x, n):
    log = []
    try:
        for i in range(20):
            x = x + fails_at(i, n)
    finally:
        log.append((i, x.sum() if i < 0 else 0))
    return x


@program(one, graphs=2)
def loop_over_generator_in_with(x):
    def g(n):
        for i in range(n):
            yield i

    log = []
    with Manager(log):
        for i in g(20):
            x = x * 0.9 + i
        x = x * 2
    return x + 1, log


@program(one, breaks=("loop", "data-dependent-branch"), graphs=1)
def for_else_with_a_data_dependent_break(x):
    for i in range(3):
        x = x + 1
        if x.sum() > 1e6:
            break
    else:
        x = x * 2
    return x + 1


@program(one, breaks=("loop", "would-raise"), graphs=1)
def try_inside_a_long_loop(x):
    found = []
    for s in ["1", "a", "2", "b"] * 4:
        try:
            n = int(s)
        except ValueError:
            n = -1
        found.append(x * n)
    return found


@program(one, graphs=2)
def two_loops_in_one_try(x):
    try:
        for i in range(20):
            x = x + i
        for j in range(20):
            x = x * 0.9 + j
        z = x + 1
    finally:
        x = x * 2
    return x + z


@program(one, graphs=1)
def maybe_unbound_after_the_loop(x):
    with Manager([]):
        for i in range(20):
            if i > 30:
                never = x
            x = x + i
        y = x * 2
    try:
        return never
    except UnboundLocalError:
        return y


@program(one, breaks=("loop", "print"), graphs=1)
def loop_in_an_inlined_callee(x):
    def inner(a, log):
        with Manager(log):
            for i in range(20):
                a = a * 0.5 + i
            a = a + 1
        return a * 2

    log = []
    y = inner(x, log)
    return y + 1, log


# -- comprehensions ---------------------------------------------------------------------------------------
@program(one, breaks=())
def comprehensions_of_every_kind(x):
    return (
        [[x * i + j for i in range(3)] for j in range(2)],
        {i: {j: x for j in range(2)} for i in range(2)},
        {i % 2 for i in range(4)},
        [y for i in range(5) if i % 2 if (y := i * 2) > 2],
        [(i, j) for i in range(3) for j in range(i)],
    )


@program(one, breaks=())
def closures_in_comprehensions(x):
    functions = [lambda k=i: x * k for i in range(3)]
    late = [lambda: x * i for i in range(3)]
    return [f() for f in functions], [f() for f in late]


@program(one, breaks=("loop", "print"), graphs=1)
def break_in_a_list_comprehension(x):
    found = [(print(i), x * i)[1] for i in range(12) if i % 2]
    return found, x + 2


@program(one, breaks=("loop", "print"), graphs=1)
def break_in_a_dict_comprehension(x):
    found = {i: (print(i), x * i)[1] for i in range(4)}
    return found, x + 2


@program(one, breaks=("loop", "print"), graphs=1)
def break_in_a_nested_comprehension(x):
    found = [[(print(i, j), x * i + j)[1] for i in range(2)] for j in range(2)]
    return found, x + 2


@program(one, breaks=("loop", "print"), plain=True)
def break_in_a_set_comprehension(x):
    found = {(print(i), i % 2)[1] for i in range(4)}
    return sorted(found), x + 2


@program(one, breaks=("loop", "print", "inline-refused"), graphs=1)
def break_in_a_comprehension_in_try(x):
    try:
        found = [(print(i), x * i)[1] for i in range(3)]
        y = found[1] + 1
    except ValueError:
        return 0
    return y * 2


@program(one, graphs=1)
def long_comprehension(x):
    k = 3
    i = 7
    found = [x * i + k for i in range(20)]
    return found, i


# -- loops over keys ----------------------------------------------------------------------------------------
def frame(n):
    return {f"k{i}": vec() + i for i in range(n)}


@program(lambda: (frame(3),), breaks=())
def few_keys(d):
    for k in d:
        d[k] = d[k] * 2
    return d


@program(lambda: (frame(12),), lambda: (frame(40),), breaks=("loop", "data-dependent-value"))
def many_keys(d):
    for k in d:
        d[k] = d[k] * 2 + 1
    return d


@program(lambda: (frame(12),), lambda: (frame(40),), breaks=("loop", "data-dependent-value"))
def many_items(d):
    total = 0
    out = {}
    for k, v in d.items():
        total = total + v * 2
        out[k] = v + 1
    return total, out


@program(lambda: (vec(), [f"n{i}" for i in range(40)]), breaks=("loop", "data-dependent-value"))
def many_names(x, names):
    d = {}
    for n in names:
        d[n] = x * 2 + 1
    total = 0
    for n in names:
        total = total + d[n] * 2
    return total


@program(lambda: (vec(), ["add", "mul", "sub"] * 10), breaks=("loop", "data-dependent-value"))
def few_names_repeated(x, names):
    for n in names:
        if n == "add":
            x = x + 1
        elif n == "mul":
            x = x * 0.5
        else:
            x = x - 1
    return x
