"""Small programs of exceptions and ``with``; see ``programs.Program``."""

# ruff: noqa: B007, B904, C408, F841, RET503, RET505, SIM105
from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tests.capture.control_programs import noisy_object, show
from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


# -- exceptions ---------------------------------------------------------------------------------------
@program(one)
def try_without_exception(x):
    try:
        y = x + 1
    except ValueError:
        y = x - 1
    else:
        y = y * 2
    finally:
        y = y + 3
    return y


@program(one, lambda: (vec(2),), breaks=("unsupported-call",))
def caught_index_error(x):
    try:
        y = x + 1
        z = y[3]
    except IndexError as error:
        return x * 2, str(error)
    return y, z


@program(
    one,
    breaks=(
        "raise",
        "unsupported-call",
    ),
    plain=True,
)
def raised_and_caught(x):
    try:
        y = x + 1
        raise KeyError("mine")
    except KeyError as error:
        y = x * 2
        show(error.args)
    finally:
        show("finally")
    return y


@program(one, breaks=("raise",), plain=True)
def raised_to_the_caller(x):
    y = x + 1
    x[0] = 7
    raise ValueError(f"bad {len(y)}")


def fails_in_callee(x):
    y = x + 1
    if y.shape[0] > 2:
        raise RuntimeError("too long")
    return y


@program(one, lambda: (vec(2),), breaks=("raise",), plain=True)
def exception_through_an_inlined_call(x):
    y = fails_in_callee(x * 2)
    return y + 1


@program(
    one,
    lambda: (vec(2),),
    breaks=(
        "inline-refused",
        "unsupported-call",
    ),
    plain=True,
)
def exception_caught_from_an_inlined_call(x):
    try:
        y = fails_in_callee(x * 2)
    except RuntimeError as error:
        y = x - len(str(error))
    return y + 1


@program(lambda: (vec(), vec(4)), breaks=("unsupported-call",))
def shapes_that_do_not_fit(x, y):
    z = x * 2
    x[0] = 50.0
    return z + y


@program(lambda: (vec(), 0), lambda: (vec(), 2), breaks=("would-raise",))
def zero_division(x, n):
    y = x + 1
    return y * (10 / n), 7 // n, 7 % n


@program(
    one,
    breaks=(
        "inline-refused",
        "print",
    ),
    plain=True,
)
def break_inside_try(x):
    try:
        y = x + 1
        show("inside")
        y = y * 2
    finally:
        show("finally")
    return y


@program(one, breaks=("loop", "inline-refused"), plain=True)
def loop_inside_try(x):
    try:
        for i in range(20):
            x = x + 1
            if i == 12:
                show("twelve")
    except ValueError:
        x = x - 1
    return x


@program(
    one,
    breaks=(
        "loop",
        "raise",
        "unsupported-call",
    ),
)
def try_inside_loop(x):
    log = []
    for i in range(12):
        try:
            if i % 3 == 0:
                raise ValueError(i)
            x = x + 1
        except ValueError as error:
            log.append(error.args[0])
            continue
        finally:
            log.append("f")
    return x, log


@program(
    one,
    breaks=(
        "raise",
        "unsupported-call",
    ),
)
def exception_chain(x):
    y = x + 1
    try:
        raise KeyError("inner")
    except KeyError as error:
        try:
            raise ValueError("outer") from error
        except ValueError as outer:
            return y, repr(outer.__cause__), repr(outer.__context__)


@program(
    lambda: (vec(), 20),
    lambda: (vec(), 12),
    breaks=(
        "loop",
        "raise",
        "unsupported-call",
        "inline-refused",
        "print",
    ),
    plain=True,
)
def raised_in_a_long_loop(x, n):
    y = x + 1
    try:
        for i in range(n):
            y = y * 0.5
            if i == 15:
                raise ValueError("fifteen")
        y = y + 100
    except ValueError as error:
        x = x + len(str(error))
    finally:
        show("done")
    return x + n


@program(
    lambda: (vec(), 20),
    breaks=(
        "loop",
        "loop-not-extracted",
        "unsupported-call",
    ),
    plain=True,
)
def loops_one_after_another_in_try(x, n):
    out = []
    try:
        for v in zip(x, x):
            out.append(v)
        for _ in range(n):
            x = np.sin(x)
    except KeyError:
        x = x * 0
    return x, out


@program(
    lambda: (vec(), 30),
    breaks=(
        "loop",
        "with-block",
        "unsupported-call",
    ),
    plain=True,
)
def loop_under_errstate(x, n):
    with np.errstate(all="ignore"):
        for _ in range(n):
            x = np.log(np.abs(x))
        y = x + 1
    return y * 2, np.geterr()["divide"] == "ignore"


# -- with ---------------------------------------------------------------------------------------------
@program(lambda: (vec(), noisy_object(1)), breaks=("print",))
def with_block(x, manager):
    y = x + 1
    with manager as m:
        y = y * m.k
        z = y + 1
    return y, z


@program(
    lambda: (vec(), noisy_object(99)),
    breaks=(
        "print",
        "raise",
    ),
    plain=True,
)
def with_block_that_swallows(x, manager):
    with manager:
        x = x + 1
        raise ValueError("swallowed")
    return x * 2


@program(
    one,
    breaks=(
        "inline-refused",
        "unsupported-call",
        "would-raise",
    ),
    plain=True,
)
def with_contextlib(x):
    with contextlib.suppress(ZeroDivisionError), tag("a"):
        x = x + 1
        x = x * (1 // (len(x) - 5))
    return x + 1


@contextlib.contextmanager
def tag(name):
    show("<", name)
    yield name
    show(">", name)


@program(one)
def errstate(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x - 0.5) / 0.0
    return np.nan_to_num(y)


@program(
    one,
    breaks=(
        "inline-refused",
        "unsupported-call",
    ),
    plain=True,
)
def break_inside_errstate(x):
    with np.errstate(all="ignore"):
        y = np.log(x - 0.5)
        show("inside", np.geterr()["divide"])
        z = y + 1
    show(np.geterr()["divide"] == "ignore")
    return y, z
