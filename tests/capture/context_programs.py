"""Small programs with context managers; see ``programs.Program``."""

# ruff: noqa: B006, B007, B012, B017, B023, B904, C400, C416, E731, F841, RET503, RET505, SIM105, SIM108, SIM117
from __future__ import annotations

import functools
import io
from contextlib import (
    ContextDecorator,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    redirect_stdout,
    suppress,
)
from typing import Any

from tests.capture.programs import Program, one

PROGRAMS: list[Program] = []
ANY = (
    "unsupported-call",
    "unsupported-opcode",
    "unsupported-attribute",
    "unsupported-operation",
    "inline-refused",
    "raise",
    "print",
    "loop",
    "loop-not-extracted",
    "generator",
    "with-block",
    "opaque-object",
    "would-raise",
)


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


@contextmanager
def scale(x, k):
    yield x * k


@contextmanager
def logged(log, name):
    log.append("in " + name)
    try:
        yield name
    finally:
        log.append("out " + name)


@contextmanager
def catching(log):
    try:
        yield 1
    except ValueError as e:
        log.append(str(e))


@program(one)
def plain_manager(x):
    with scale(x, 2) as y:
        z = y + 1
    return z * 2


@program(one)
def two_managers(x):
    log = []
    with logged(log, "a") as n, logged(log, "b"):
        y = x * 2
        log.append(n)
    return y, log


@program(one)
def manager_catches(x):
    log = []
    with catching(log):
        y = x + 1
        raise ValueError("boo")
    return y, log


@program(one)
def exception_through_a_manager(x):
    log = []
    try:
        with logged(log, "a"):
            y = x + 1
            raise ValueError("boo")
    except ValueError as e:
        return y, log, str(e)


@program(one, breaks=("print", "unsupported-call"))
def break_in_the_block(x):
    log = []
    with logged(log, "a"):
        y = x + 1
        print("hi")
        y = y * 2
    return y * 3, log


@program(one)
def return_out_of_the_block(x):
    log = []

    def f():
        with logged(log, "a"):
            return x * 2

    return f(), log


@program(one)
def suppressed(x):
    with suppress(ValueError):
        y = x + 1
        raise ValueError
    return y * 2


@program(one)
def null_context(x):
    with nullcontext(3) as k:
        y = x * k
    return y + 1


class C:
    def __init__(s):
        s.n = 0

    def close(s):
        s.n += 1


@program(one)
def closed(x):
    c = C()
    with closing(c) as d:
        y = x * 2 + d.n
    return y, c.n


@program(one, breaks=ANY, plain=True)
def exit_stack(x):
    log = []
    with ExitStack() as st:
        a = st.enter_context(logged(log, "a"))
        st.callback(log.append, "cb")
        y = x * 2
    return y, log


@program(one)
def manager_as_decorator(x):
    log = []

    @logged(log, "d")
    def f(v):
        return v * 2

    return f(x), f(x + 1), log


class CD(ContextDecorator):
    def __enter__(s):
        return s

    def __exit__(s, *e):
        return False


@program(one)
def context_decorator(x):
    @CD()
    def f(v):
        return v * 2

    return f(x)


@program(one, breaks=ANY, plain=True)
def redirected_output(x):
    b = io.StringIO()
    with redirect_stdout(b):
        y = x * 2
        print("q")
    return y + 1, b.getvalue()


@program(one)
def manager_that_does_not_yield(x):
    @contextmanager
    def bad():
        if False:
            yield

    try:
        with bad():
            pass
    except RuntimeError as e:
        return str(e), x * 2


@program(one, breaks=("loop",))
def manager_in_a_loop(x):
    log = []
    for i in range(20):
        with logged(log, "l"):
            x = x * 0.5 + i
    return x, log


@program(one, breaks=("loop", "unsupported-call"))
def loop_in_a_manager(x):
    log = []
    with logged(log, "l"):
        for i in range(20):
            x = x * 0.5 + i
        x = x * 2
    return x + 1, log


@contextmanager
def replacing():
    try:
        yield 2
    except ValueError as error:
        raise KeyError("replaced") from error


@program(one)
def manager_replaces_the_exception(x):
    try:
        with replacing() as k:
            y = x * k
            raise ValueError("first")
    except KeyError as error:
        return y, error.args, type(error.__cause__).__name__


@contextmanager
def yields_twice():
    yield 1
    yield 2


@program(one)
def manager_that_does_not_stop(x):
    try:
        with yields_twice() as k:
            y = x * k
    except RuntimeError as error:
        return str(error), y * 2


@contextmanager
def fails_at_once():
    raise ValueError("set-up")
    yield


@program(one)
def manager_that_fails_at_once(x):
    try:
        with fails_at_once():
            return 1
    except ValueError as error:
        return str(error), x * 2


@program(one)
def stop_iteration_through_a_manager(x):
    log = []
    try:
        with logged(log, "a"):
            y = x + 1
            raise StopIteration("s")
    except StopIteration as error:
        return y * 2, log, error.value


class Owner:
    def __init__(self):
        self.scale = 1

    @contextmanager
    def scaled(self, k):
        before = self.scale
        self.scale = k
        try:
            yield self
        finally:
            self.scale = before

    def run(self, x):
        with self.scaled(3) as inner:
            y = x * inner.scale
        return y * self.scale


@program(lambda: (Owner(), one()[0]))
def manager_that_is_a_method(o, x):
    return o.run(x), o.scale


@program(one)
def nested_functions_in_managers(x):
    log = []

    def step(v):
        with logged(log, "step"):
            return v * 2 + 1

    with logged(log, "outer"):
        a = step(x)
        with suppress(KeyError):
            b = step(a)
            raise KeyError("gone")
    return a + b, log


@program(one, breaks=("print", "raise"))
def break_in_the_block_and_an_exception(x):
    log = []
    try:
        with logged(log, "a"):
            y = x + 1
            print("hi")
            raise ValueError("after")
    except ValueError as error:
        return y * 3, log, str(error)


@program(one)
def manager_entered_by_hand(x):
    log = []
    m = logged(log, "a")
    name = m.__enter__()
    y = x * 2
    m.__exit__(None, None, None)
    return y + 1, name, log


# -- functools.wraps, on which decorators rest --------------------------------------------------------------
def documented(v):
    "What it says."
    return v + 1


def doubling(f):
    @functools.wraps(f)
    def inner(v: int):
        return f(v) * 2

    return inner


@program(one)
def wrapped_functions(x):
    @doubling
    def g(v):
        "Inside."
        return v + 1

    h = doubling(documented)
    return (
        g(x),
        g.__name__,
        g.__doc__,
        g.__wrapped__(x),
        h(x),
        h.__name__,
        h.__doc__,
        h.__wrapped__ is documented,
    )


@program(one, breaks=("print", "unsupported-attribute"), plain=True)
def wrapped_functions_at_a_break(x):
    @doubling
    def g(v: float):
        return v + 1

    g.mark = 3
    h = doubling(g)
    y = h(x)
    print(1)
    return (
        y,
        h(x),
        h.__name__,
        h.__annotations__,
        h.mark,
        g.__annotations__,
        h.__wrapped__ is g,
        h.__qualname__,
    )
