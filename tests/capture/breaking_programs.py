"""One golden program for each kind of graph break; the line that breaks ends in the comment ``# here``."""

# ruff: noqa: B018, E711, F401, F841, PLC0415
from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dyncomp

GOLDEN: dict[str, tuple[Callable[..., Any], str]] = {}
LOCK = threading.Lock()


def breaks(break_id: str, reason: str) -> Any:
    """``reason``: part of what the break must say."""

    def add(function: Any) -> Any:
        GOLDEN[break_id] = (function, reason)
        return function

    return add


@breaks("unsupported-call", "call of posix.getpid")
def calls_the_system(x):
    y = x + 1
    number = os.getpid()  # here
    return y * 2, number > 0


@breaks("unsupported-operation", "comparison of an array with None")
def compares_with_none(x):
    y = x + 1
    z = y == None  # here
    return y * 2, z


@breaks("unsupported-attribute", "attribute 'ctypes' of an array of type float64[5]")
def reads_ctypes(x):
    y = x + 1
    y.ctypes  # here
    return y * 2


@breaks("data-dependent-branch", "a branch on an array scalar of type bool[]")
def branches_on_data(x):
    y = x + 1
    if y.sum() > 3:  # here
        return y * 2
    return y - 1


@breaks("data-dependent-value", "int() of an array scalar of type float64[]")
def makes_an_int_of_data(x):
    y = x + 1
    n = int(y.sum() * 0)  # here
    return y[n:] * 2


@breaks("data-dependent-shape", "numpy.pad with widths that are data")
def pads_by_data(x):
    y = x + 1
    z = np.pad(y, (y[:2] > 2).astype(int))  # here
    return z * 2


@breaks("loop", "a for loop that is not unrolled")
def long_loop(x):
    y = x + 1
    for i in range(50):  # here
        y = y * 0.5 + i
    return y


class WithSuper:
    @breaks("loop-not-extracted", "super() in a loop body")
    def loop_with_super(x):
        y = x + 1
        for _ in range(1000):  # here
            y = y + 1 if y is not None else super().loop_with_super()
        return y


@breaks("would-raise", "ZeroDivisionError: integer division or modulo by zero")
def divides_by_zero(x):
    y = x + 1
    k = 1 // (len(x) - 5)  # here
    return y * k


@breaks("raise", "the program raises an exception")
def raises(x):
    y = x + 1
    raise ValueError  # here


@breaks("with-block", "with an object of type _thread.lock")
def holds_a_lock(x):
    y = x + 1
    with LOCK:  # here
        y = y * 2
    return y + 1


def prints_between(x):
    yield x
    print("between")
    yield x + 1


@breaks("generator", "a break inside prints_between cannot be resumed in its consumer")
def consumes_a_generator(x):
    y = x + 1
    total = sum(prints_between(y))  # here
    return total * 2


@dyncomp.disable
def switched_off(x):
    return x + 1


@breaks("disabled", "function switched_off is disabled: dyncomp.disable")
def calls_what_is_disabled(x):
    y = x + 1
    z = switched_off(y)  # here
    return z * 2


def sees_its_locals(x):
    return x * len(locals())


@breaks("inline-refused", "function sees_its_locals: it looks at its own frame")
def calls_what_looks_at_its_frame(x):
    y = x + 1
    z = sees_its_locals(y)  # here
    return z * 2


@breaks("graph-break", "the message")
def asks_for_a_break(x):
    y = x + 1
    dyncomp.graph_break("the message")  # here
    return y * 2


@breaks("class-definition", "a class is made")
def makes_a_class(x):
    y = x + 1

    class Local:  # here
        k = 2

    return y * Local.k


@breaks("import", "import of no_such_module")
def imports_a_module(x):
    y = x + 1
    try:
        import no_such_module  # here
    except ImportError:
        y = y * 2
    return y + 1


@breaks("print", "a call of print")
def prints(x):
    y = x + 1
    print("shape", y.shape)  # here
    return y * 2


@breaks("clock", "time.perf_counter")
def reads_the_clock(x):
    start = time.perf_counter()  # here
    y = x + 1
    return y * 2, start > 0


class Noticed:
    def __del__(self):
        pass


@breaks("destructor", "an object of type Noticed goes")
def lets_go_of_what_has_a_destructor(x, o=Noticed()):  # noqa: B008
    y = x + 1
    del o  # here
    return y * 2


@breaks("opaque-object", "all of sys.modules")
def asks_an_opaque_object(x):
    y = x + 1
    k = len(sys.modules) > 0  # here
    return y * k
