"""What the variables of a loop hold when an iteration ends goes when plain Python lets it go."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check


@pytest.fixture(autouse=True)
def no_collector():
    """What is let go must go by reference counts alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Loud:
    """Says when it goes."""

    def __init__(self, out, name):
        self.out = out
        self.name = name

    def __del__(self):
        self.out.append(("gone", self.name))

    def steps(self, x):
        try:
            yield x
        finally:
            self.out.append("closed")


def closing(x, out):
    try:
        yield x
    finally:
        out.append("closed")


def unprotected(x):
    yield x
    yield x + 1


@dyncomp.disable
def see(out, what):
    out.append(what)


def of_a_nested_function(x, out):
    for k in range(3):

        def steps(v):
            try:
                yield v
            finally:
                out.append("closed")

        for i in range(2):
            see(out, i)
        held = steps(x + k)
        out.append(next(held).sum())
        x = x + 1
    out.append("after")
    return x


def of_a_global_function(x, out):
    for k in range(3):
        see(out, k)
        held = closing(x, out)
        out.append(next(held).sum())
        x = x + 1
    out.append("after")
    return x


def of_a_branch(x, out):
    k = 0
    while k < 3:
        k += 1
        see(out, k)
        first, held = (k, closing(x, out)) if k > 1 else (0, None)
        if held is not None:
            out.append(next(held).sum())
        x = x + first
    out.append("after")
    return x


def of_a_method(x, out):
    loud = Loud(out, "owner")
    for k in range(3):
        see(out, k)
        held = loud.steps(x)
        out.append(next(held).sum())
        x = x + 1
    out.append("after")
    return x


def of_a_class(x, out):
    for k in range(3):
        see(out, k)
        held = Loud(out, k)
        out.append(held.name)
        x = x + 1
    out.append("after")
    return x


def make_loud(out, name):
    def inner():
        return Loud(out, name)

    return inner()


class Maker:
    def __init__(self, out):
        self.out = out

    def make(self, name):
        return [make_loud(self.out, name)]


def of_a_function_that_makes_one(x, out):
    for k in range(3):
        see(out, k)
        held = make_loud(out, k)
        out.append(held.name)
        x = x + 1
    out.append("after")
    return x


def of_a_method_that_leads_to_one(x, out):
    maker = Maker(out)
    for k in range(3):
        see(out, k)
        held = maker.make(k)
        out.append(len(held))
        x = x + 1
    out.append("after")
    return x


def left_by_a_handler(x, out):
    held = closing(x, out)
    out.append(next(held).sum())
    for k in range(3):
        try:
            see(out, k)
            x[k + 3] += 1
        except IndexError as error:
            out.append(str(error))
            break
    return x


def left_by_nested_handlers(x, out):
    loud = Loud(out, "loud")
    k = 0
    while True:
        k += 1
        try:
            see(out, k)
            x[k + 2] += 1
        except IndexError as error:
            out.append(str(error))
            try:
                raise KeyError(k)
            except KeyError as inner:
                out.append(str(inner))
                break
    out.append(loud.name)
    return x


def left_and_the_name_read(x, out):
    loud = Loud(out, "loud")
    for k in range(3):
        try:
            see(out, k)
            x[k + 3] += 1
        except IndexError as error:  # noqa: F841
            break
    out.append(loud.name)
    return error  # noqa: F821


PROGRAMS = [
    of_a_nested_function,
    of_a_global_function,
    of_a_branch,
    of_a_method,
    of_a_class,
    of_a_function_that_makes_one,
    of_a_method_that_leads_to_one,
    left_by_a_handler,
    left_by_nested_handlers,
    left_and_the_name_read,
]


@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_goes_as_in_plain_python(function):
    check(function, lambda: (np.arange(4.0), []))


def left_by_a_handler_of_what_breaks(x, n, out):
    def steps(v, k):
        try:
            for j in range(k):
                yield v + j
        finally:
            out.append("closed")

    held = steps(x, n * 2)
    out.append(next(held))
    for _ in range(len(x)):
        try:
            x[n] += n * 2
        except (KeyError, IndexError) as error:  # noqa: F841
            break


def test_a_loop_left_by_a_handler_lets_go_of_the_exception():
    makers = [lambda: (np.arange(5.0), 3, []), lambda: (np.arange(1.0), 4, [])]
    check(left_by_a_handler_of_what_breaks, *makers, dynamic=True)


def test_generators_that_run_nothing_when_closed_leave_the_loop_captured():
    def main(x, out):
        for k in range(3):
            see(out, k)
            held = unprotected(x)
            x = next(held) + 1
        return x

    records = check(main, lambda: (np.arange(4.0), []))
    assert "loop" in break_ids(records)
    assert "loop-not-extracted" not in break_ids(records)
    assert not records.skipped
