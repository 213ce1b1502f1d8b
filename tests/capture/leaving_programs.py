"""Programs that break around handlers, and exceptions that leave the function; see ``raised_programs``."""

# ruff: noqa: B007, B012, B016, B017, B018, B020, B023, B030, B904, C408, E722, E731, E741, F821, F841, RET503
# ruff: noqa: RET504, RET505, RET506, RET507, RET508, SIM105, SIM114, SIM115, SIM117, UP028
from __future__ import annotations

import re
import sys
import traceback

import numpy as np

from tests.capture.raised_programs import Coded, Failing, Manager, Plain, broken, check, through


# -- breaks around handlers -------------------------------------------------------------------------------
@broken
def print_in_handler(x, log):
    y = x + 1
    try:
        raise Plain("p")
    except Plain as e:
        print("handling", e, sys.exc_info()[0])
        y = y * 2
    print(sys.exc_info())
    return y + 1


@broken
def print_in_finally(x, log):
    y = x + 1
    try:
        y = y * 2
    finally:
        print("finally", sys.exc_info())
        y = y + 1
    return y * 3


@broken
def print_in_finally_while_raising(x, log):
    y = x + 1
    try:
        try:
            raise Plain("p")
        finally:
            print("finally", sys.exc_info()[0])
            y = y + 1
    except Plain:
        y = y * 3
    return y


@broken
def stored_exception(x, log):
    kept = None
    try:
        raise Plain("kept")
    except Plain as e:
        kept = e
    y = x + 1
    return y, repr(kept), [f.name for f in traceback.extract_tb(kept.__traceback__)]


@broken
def exception_in_a_list(x, log):
    for k in range(3):
        try:
            check(k, 1)
        except Coded as e:
            log.append(e)
    return x + len(log)


@broken
def returned_exception(x, log):
    e = Coded(3, "made")
    e.extra = 1
    return x + 1, e


@broken
def format_exception(x, log):
    try:
        through(3, 2)
    except Coded:
        text = traceback.format_exc()
    return x + 1, "in through" in text, "in check" in text, text.count("check(v, limit)")


@broken
def opaque_call_raises(x, log):
    y = x * 2
    try:
        v = re.compile("(").groups
    except re.error:
        v = 7
    z = y + v
    return z * 3


@broken
def opaque_call_in_a_loop(x, log):
    for text in ("a", "(", "(b)"):
        try:
            v = re.compile(text).groups
        except re.error as e:
            log.append(str(e))
            continue
        finally:
            x = x + 1
        x = x + v
    return x * 2


@broken
def opaque_call_in_a_long_loop(x, log):
    t = x
    for k in range(40):
        try:
            v = len(re.compile("(" if k % 10 == 3 else "a").pattern)
        except re.error:
            v = 100
        t = t + v
    return t * 2


@broken
def loop_inside_try(x, log):
    t = x
    try:
        for k in range(40):
            t = t + k
            if k == 35:
                t = t.reshape(9, 9)
    except ValueError:
        t = t * 2
    return t + 100


@broken
def unsure_local_behind_a_handler(x, log):
    try:
        re.compile("(")
        w = 3
    except re.error:
        pass
    z = x + 1
    try:
        return z + w
    except UnboundLocalError:
        return z * 5


@broken
def opaque_with_swallow(x, log):
    y = x + 1
    with Manager(log, swallow=True):
        re.compile("(")
        y = y + 5
    z = y * 2
    return z - 1


@broken
def handler_in_callee_breaks(x, log):
    def careful(v):
        try:
            n = re.compile("(").groups
        except re.error:
            print("in handler", sys.exc_info()[0])
            n = 7
        return v * n

    y = x + 1
    z = careful(y)
    return z + y


@broken
def break_then_raise_then_break(x, log):
    print("one")
    try:
        y = x + 1
        print("two")
        raise Plain(2)
    except Plain as e:
        y = y + e.args[0]
    print("three")
    return y * 2


@broken
def exception_groups(x, log):
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), TypeError(3)])
    except* ValueError as e:
        log.append(len(e.exceptions))
    except* (KeyError, TypeError) as e:
        log.append([type(one).__name__ for one in e.exceptions])
    return x + len(log)


@broken
def naked_in_a_group(x, log):
    try:
        raise ValueError(1)
    except* ValueError as e:
        log.append(type(e).__name__)
    return x + 1


@broken
def no_active_exception(x, log):
    try:
        raise
    except RuntimeError as e:
        return x + 1, str(e)


@broken
def with_traceback(x, log):
    try:
        raise Plain("t").with_traceback(None)
    except Plain as e:
        return x + 1, e.__traceback__ is not None


@broken
def notes(x, log):
    try:
        try:
            raise Plain("t")
        except Plain as e:
            e.add_note("noted")
            raise
    except Plain as e:
        return x + 1, e.__notes__


@broken
def os_errors(x, log):
    try:
        open("/nowhere/at/all")
    except FileNotFoundError as e:
        log.append((e.errno, e.filename))
    try:
        raise OSError(2, "text")
    except FileNotFoundError as e:
        log.append(e.errno)
    return x + 1


@broken
def getattr_raises(x, log):
    class Odd:
        def __getattr__(self, name):
            raise AttributeError(f"no {name}")

    odd = Odd()
    log.append(getattr(odd, "a", 5))
    log.append(hasattr(odd, "b"))
    try:
        odd.c
    except AttributeError as e:
        log.append(str(e))
    return x + 1


# -- what leaves the function ---------------------------------------------------------------------------
@broken
def leaves(x, log):
    y = x + 1
    raise Coded(1, "left")


@broken
def leaves_from_callee(x, log):
    y = x + 1
    z = through(3, 2)
    return y + z


@broken
def leaves_through_finally(x, log):
    try:
        x = x + 1
        z = through(3, 2)
    finally:
        log.append("f")
    return z


@broken
def leaves_through_with(x, log):
    with Manager(log):
        x = x + 1
        through(3, 2)
    return x + 1


@broken
def leaves_wrong_handler(x, log):
    try:
        through(3, 2)
    except KeyError:
        log.append("wrong")
    return x + 1


@broken
def leaves_from_handler(x, log):
    try:
        through(3, 2)
    except ValueError as e:
        raise RuntimeError("outer") from e
    return x + 1


@broken
def leaves_with_context(x, log):
    try:
        through(3, 2)
    except ValueError:
        return {}["missing"]
    return x + 1


@broken
def leaves_after_break(x, log):
    y = x + 1
    print("q")
    z = y * 2
    return z.reshape(3, 3)


def prints_and_fails(v):
    w = v + 1
    print("p")
    return w.reshape(7, 7)


def calls_what_prints(v):
    a = v * 2
    b = prints_and_fails(a)
    return b + 1


@broken
def leaves_from_break_in_callee(x, log):
    y = x + 1
    z = calls_what_prints(y)
    return z


@broken
def leaves_from_loop(x, log):
    t = x
    for k in range(40):
        t = t + k
        if k == 33:
            t = t.reshape(9, 9)
    return t


@broken
def leaves_from_loop_with_break(x, log):
    t = x
    for k in range(3):
        t = t + k
        print("k", k)
        if k == 1:
            raise KeyError(k)
    return t


def looping(v):
    for k in range(40):
        v = v + 1
        if k == 35:
            v = v.reshape(9, 9)
    return v


@broken
def leaves_from_loop_in_callee(x, log):
    y = x * 2
    z = looping(y)
    return z + 1


@broken
def leaves_from_comprehension(x, log):
    return [x.reshape(k, 2) for k in (2, 3)]


def steps_that_fail(x):
    yield x
    yield x.reshape(5, 5)


@broken
def leaves_from_generator(x, log):
    for v in steps_that_fail(x):
        log.append(v.shape)
    return x + 1


@broken
def leaves_from_c(x, log):
    y = x + 1
    return y, len(5)


@broken
def leaves_from_graph(x, log):
    y = x + 1
    i = np.array([1, 900])
    return (y * 2)[i] + 1


def recursive(x, n):
    y = x + 1
    if n == 0:
        raise ValueError("deep")
    print("r", n)
    return recursive(y, n - 1) + 1


@broken
def leaves_from_recursion(x, log):
    return recursive(x, 4)


class Machine:
    def __init__(self, x):
        self.x = x

    def run(self, k):
        self.x = self.x + k
        return self.step(k)

    def step(self, k):
        if k > 1:
            raise Coded(k, "step")
        return self.x

    def __call__(self, k):
        return self.run(k)

    @property
    def bad(self):
        return {}["bad"]


@broken
def leaves_from_method(x, log):
    m = Machine(x)
    m.run(1)
    return m(2)


@broken
def leaves_from_property(x, log):
    m = Machine(x)
    y = x * 2
    return y, m.bad


@broken
def leaves_from_nested_function(x, log):
    y = x + 1

    def inner(v):
        log.append(1)
        return v / 0

    return y + inner(2)


@broken
def leaves_from_lambda(x, log):
    f = lambda v: v["a"]
    return x + f({})


@broken
def leaves_from_exit(x, log):
    with Failing(log, "exit"):
        x = x + 1
    return x + 1


@broken
def leaves_from_init(x, log):
    class Made:
        def __init__(self, v):
            self.v = v
            raise Plain("init")

    return Made(x).v


@broken
def leaves_wrong_arguments(x, log):
    y = x + 1
    return through(y)


@broken
def keyboard_interrupt(x, log):
    try:
        raise KeyboardInterrupt
    except Exception:
        log.append("wrong")
    finally:
        log.append("f")
    return x + 1


@broken
def system_exit(x, log):
    try:
        raise SystemExit(3)
    except SystemExit as e:
        return x + 1, e.code
