"""Programs of less common constructs and of the standard library's helpers; see ``programs.Program``."""

# ruff: noqa: B006, B007, B008, B010, B012, B018, B023, C400, C403, C405, C408, C416, C417, C419, E731, E741, F821, F841, PIE800, RET503, SIM105, SIM107, SIM108, SIM222, UP031, UP032
from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
import warnings
from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


# -- looking at the frame -----------------------------------------------------------------------------
@program(one, plain=True)
def looks_at_locals(x):
    y = x + 1
    names = sorted(locals())
    z = y * 2
    return names, z, sorted(vars()), sorted(dir())


@program(one, plain=True)
def evaluates_text(x):
    y = x + 1
    k = 3
    z = eval("y * k")
    exec("k = 4")
    return z, y + k, eval("[v for v in (1, 2)]")


def callee_with_locals(a):
    b = a * 2
    return sorted(locals()), b


@program(one, breaks=("inline-refused",), plain=True)
def locals_of_a_callee(x):
    return callee_with_locals(x + 1)


@program(one, plain=True)
def looks_at_frames(x):
    y = x + 1
    name = sys._getframe().f_code.co_name
    line = inspect.currentframe().f_lineno
    z = y * 2
    return name, line > 0, z, sorted(k for k in sys._getframe().f_locals if not k.startswith("_"))


@program(one, breaks=("unsupported-call",))
def globals_and_modules(x):
    y = x + 1
    found = globals()["__name__"], "vec" in globals(), __name__
    import os.path as p
    from math import pi, sqrt

    return y * sqrt(4.0) + pi, found, p.basename("/a/b")


@program(
    one,
    breaks=(
        "loop",
        "unsupported-call",
    ),
)
def warns(x):
    y = x + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning, stacklevel=1)
        z = y * 2
    return z, [(str(w.message), w.filename.rpartition("/")[2]) for w in caught]


# -- statements ---------------------------------------------------------------------------------------
@program(one, breaks=("would-raise",))
def deletes_names(x):
    y = x + 1
    z = y
    del y
    try:
        y
    except UnboundLocalError as error:
        return z, str(error)


@program(one, breaks=("unsupported-opcode",), plain=True)
def deletes_items_and_attributes(x):
    class Box:
        pass

    items = [x, x + 1, 3]
    del items[0], items[-1]
    d = {"a": x, "b": 1}
    del d["b"]
    return items, d


@program(one, breaks=("unsupported-call",), plain=True)
def return_in_finally(x):
    try:
        y = x + 1
        raise ValueError("lost")
    finally:
        return x * 2


@program(one, breaks=("unsupported-call",))
def nested_finally(x):
    log = []
    try:
        try:
            y = x + 1
            y[10]
        finally:
            log.append("inner")
    except IndexError as error:
        log.append(str(error))
    finally:
        log.append("outer")
    return x, log


@program(one, lambda: (vec(8),))
def while_else(x):
    n = 0
    while n < 3:
        n += 1
        x = x * 2
        if len(x) > 6:
            break
    else:
        x = x + 100
    return x, n


@program(lambda: (np.arange(9.0).reshape(3, 3), {"k": [vec(3)]}))
def augmented_targets(x, d):
    x[0] += 1
    x[1, 1:] *= 2
    d["k"][0] += x[2]
    d["n"] = d.get("n", 0)
    d["n"] += 5
    d["k"] += [x[0].sum()]
    y = x.copy()
    y @= x
    a = b = y
    a -= 1
    return x, a is b, y


@program(one)
def chained_and_boolean(x):
    n = len(x)
    a = 1 < n < 10 != 3
    b = n and x is not None and "yes"
    c = [] or {} or n or 5
    d = None or 0
    e = not (n in (1, 5) and n not in [2])
    return x + c, a, b, d, e, (n > 3) + (n > 2)


@program(one, breaks=("unsupported-call",))
def numbers_of_all_kinds(x):
    n = x.shape[0]
    return (
        x + n**2,
        7 // -n,
        -7 % n,
        7.5 // -2,
        -7.5 % 2,
        divmod(-7, 2),
        1 << n,
        2**100 >> n,
        n & 3 | 8 ^ 1,
        ~n,
        (1 + 2j) * n,
        complex(1, 2).conjugate(),
        round(2.675, 2),
        round(-0.5),
        abs(-3.5),
        int("ff", 16),
        float("nan") != float("nan"),
        math.inf > n,
        0.1 + 0.2,
        10**20,
        n / 3,
        hash(n) == n,
        0.0 == -0.0,
        math.copysign(1, -0.0),
        True + True,
        float(n).is_integer(),
        (3).bit_length(),
    )


@program(one, breaks=("data-dependent-value",))
def strings_and_bytes(x):
    s = "abc" * 2
    n = len(x)
    return (
        x + len(s),
        s[1:4],
        s[::-1],
        s.upper().replace("A", "z"),
        "b" in s,
        s.split("b"),
        f"{n:>{n}}|{s!r:.3}|{1.5:.2f}|{n=}",
        ",".join(str(i) for i in range(3)),
        b"ab" + b"c",
        s.find("c"),
        "%d-%s" % (n, s),
        "{} {k}".format(n, k=2),
        s.startswith(("a", "x")),
        ord("a"),
        chr(98),
        sorted("bca"),
        list("ab"),
        max("abc"),
        "a" < "b",
        s.encode().decode(),
        s.zfill(8),
    )


@program(one)
def unpacking_everywhere(x):
    a, (b, *c), d = 1, (x, 2, 3), 4
    [e, f] = c
    first, *rest = range(4)
    (g,) = (x,)
    h = [*c, *rest]
    i = {**{"a": 1}, "b": 2, **{"a": 3}}
    for j, (k, l) in enumerate([(1, 2), (3, 4)], start=5):
        x = x + j * k - l
    return a, b, d, e, f, first, rest, g, h, i, x


@program(
    one,
    breaks=(
        "data-dependent-branch",
        "loop",
    ),
)
def nested_comprehensions(x):
    k = 2
    table = [[x[i] * j for j in range(2)] for i in range(3)]
    flat = [v for row in table for v in row if v > 1 or True]
    keyed = {i: {j for j in range(i)} for i in range(3)}
    last = [y := i * k for i in range(3)]
    gen = (x + i for i in range(3))
    fs = [lambda i=i: i + k for i in range(3)]
    return flat, keyed, last, y, next(gen), list(gen)[-1], [f() for f in fs], any(i > 1 for i in range(5))


@program(one)
def string_keys_of_all_sorts(x):
    return dict(a=x, b=2), {(1, "t"): x}, {None: 1, True: 2, 2.5: 3, "s": 4, b"b": 5, (): 6}


# -- functions ----------------------------------------------------------------------------------------
def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


@decorated
def plus_one(x, k=1):
    """Documented."""
    return x * k


@program(one)
def decorated_functions(x):
    return plus_one(x, k=3), plus_one.__name__, plus_one.__doc__, plus_one.__wrapped__(x)


def compose(*fs):
    def composed(x):
        for f in fs:
            x = f(x)
        return x

    return composed


@program(one, breaks=("unsupported-call",), plain=True)
def higher_order(x):
    f = compose(np.sin, lambda v: v * 2, plus_one)
    g = functools.partial(compose, np.cos)
    return f(x), g(np.abs)(x), list(map(operator.add, [x], [1])), list(filter(None, [0, 1, 2]))


@program(one, breaks=("inline-refused",), plain=True)
def fibonacci_closure(x):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return x + fib(4)


@program(one)
def default_arguments_are_evaluated_once(x):
    made = []

    def default():
        made.append(1)
        return len(made)

    def f(v, k=default(), *, z=default()):
        return v + k + z

    return f(x) + f(x), made


@program(one, plain=True)
def function_attributes(x):
    def f(v):
        return v + f.bonus

    f.bonus = 5
    return f(x), f.__name__, f.bonus
