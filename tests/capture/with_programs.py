"""Programs with ``with``; see ``raised_programs``."""

# ruff: noqa: B007, B012, B016, B017, B018, B020, B023, B030, B904, C408, E722, E731, E741, F821, F841, RET503
# ruff: noqa: RET504, RET505, RET506, RET507, RET508, SIM105, SIM114, SIM115, SIM117, UP028
from __future__ import annotations

import contextlib
import threading

import numpy as np

from tests.capture.raised_programs import Coded, Failing, Manager, Plain, broken, check, whole


# -- with -----------------------------------------------------------------------------------------------
@whole
def with_normal(x, log):
    with Manager(log) as m:
        y = x + 1
    return y, m.name


@whole
def with_swallowed(x, log):
    with Manager(log, swallow=True):
        y = x + 1
        raise Plain("in")
    return y * 2


@whole
def with_passed_on(x, log):
    try:
        with Manager(log):
            y = x + 1
            raise Plain("in")
    except Plain as e:
        return y, e.args


@whole
def with_nested(x, log):
    with Manager(log, swallow=True, name="outer"):
        with Manager(log, name="inner"):
            raise KeyError(1)
    return x + 1


@whole
def with_two_items(x, log):
    with Manager(log, swallow=True, name="a") as a, Manager(log, name="b") as b:
        log.append((a.name, b.name))
        raise KeyError(1)
    return x + 1


@whole
def with_return(x, log):
    with Manager(log):
        return x + 1


@whole
def with_break_and_continue(x, log):
    for k in range(4):
        with Manager(log, name=k):
            if k == 0:
                continue
            if k == 2:
                break
            x = x + k
    return x + 1


@whole
def with_raise_in_enter(x, log):
    try:
        with Failing(log, "enter"):
            log.append("body")
    except Plain as e:
        return x + 1, e.args


@whole
def with_raise_in_exit(x, log):
    try:
        with Failing(log, "exit"):
            raise KeyError(5)
    except Plain as e:
        return x + 1, e.args, e.__context__.args


@whole
def with_raise_in_exit_after_normal(x, log):
    try:
        with Failing(log, "exit"):
            x = x + 1
    except Plain as e:
        return x + 1, e.args


@whole
def with_in_callee(x, log):
    def work(v):
        with Manager(log):
            return check(v, 2)

    try:
        return x + work(1) + work(5)
    except Coded as e:
        return x - e.code


@whole
def errstate_inside(x, log):
    try:
        with np.errstate(all="ignore"):
            y = x * 2
            with Manager(log):
                raise Plain("e")
    except Plain:
        return y


@whole
def suppress(x, log):
    with contextlib.suppress(KeyError, IndexError):
        x = x + 1
        {}["missing"]
        x = x + 100
    return x * 2


@whole
def suppress_other(x, log):
    try:
        with contextlib.suppress(KeyError):
            x = x + 1
            raise Plain
    except Plain:
        return x * 2


@whole
def nullcontext(x, log):
    with contextlib.nullcontext(3) as k:
        x = x + k
    return x + 1


@broken
def closing(x, log):
    class Door:
        def close(self):
            log.append("closed")

    try:
        with contextlib.closing(Door()):
            x = x + 1
            raise Plain
    except Plain:
        return x * 2


@broken
def exit_stack(x, log):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, 1)
        stack.enter_context(Manager(log, swallow=True))
        x = x + 1
        raise Plain("stack")
    return x * 2


@contextlib.contextmanager
def managed(log, swallow=False):
    log.append("in")
    try:
        yield 5
    except Plain as e:
        log.append(e.args)
        if not swallow:
            raise
    finally:
        log.append("out")


@broken
def exit_stack_passes_on(x, log):
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(Manager(log, name="a"))
            stack.enter_context(Manager(log, name="b"))
            stack.callback(log.append, "callback")
            x = x + 1
            raise Plain("stack")
    except Plain as e:
        return x * 2, e.args


@whole
def contextmanager_normal(x, log):
    with managed(log) as v:
        x = x + v
    return x * 2


@whole
def contextmanager_swallows(x, log):
    with managed(log, swallow=True) as v:
        x = x + v
        raise Plain("cm")
    return x * 2


@whole
def contextmanager_raises(x, log):
    try:
        with managed(log) as v:
            x = x + v
            raise Plain("cm")
    except Plain as e:
        return x * 2, e.args


@broken
def open_file(x, log):
    with open("/dev/null") as file:
        y = x + 1
        log.append(file.read())
        y = y * 2
    return y, file.closed


@broken
def open_file_and_raise(x, log):
    try:
        with open("/dev/null") as file:
            y = x + 1
            raise Plain("file")
    except Plain:
        y = y * 3
    return y + 1, file.closed


@broken
def held_lock(x, log):
    lock = threading.Lock()
    try:
        with lock:
            y = x + 1
            log.append(lock.locked())
            raise Plain("lock")
    except Plain:
        y = y * 3
    return y + 1, lock.locked()
