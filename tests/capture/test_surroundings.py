"""What a program reads of its surroundings, and blocks that change them: environment and context variables,
warning filters, NumPy's error modes, stacks of context managers."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import types
import warnings
from contextvars import ContextVar

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check


def one():
    return (np.arange(1.0, 5.0),)


def whole(function, *makers):
    records = check(function, *(makers or (one,)), repeats=3)
    assert not break_ids(records), [b.reason for e in records.entries for b in e.breaks]
    assert not records.skipped, records.skipped


# -- environment and context variables ---------------------------------------------------------------
NAME = "DYNCOMP_TEST_VARIABLE"
PLAIN_VARIABLE: ContextVar[int] = ContextVar("plain", default=3)
UNSET: ContextVar[int] = ContextVar("unset")


def reads_environment(x):
    scale = int(os.environ.get(NAME, "2"))
    return x * scale, os.getenv(NAME), os.getenv(NAME, "d"), NAME in os.environ


def needs_environment(x):
    try:
        return x + len(os.environ[NAME])
    except KeyError as error:
        return x, error.args


@pytest.mark.parametrize("function", [reads_environment, needs_environment])
def test_environment(function, monkeypatch):
    monkeypatch.delenv(NAME, raising=False)
    whole(function)
    compiled = dyncomp.compile(function, backend="eager")
    for value in (None, "5", "7", None, "5"):
        if value is None:
            monkeypatch.delenv(NAME, raising=False)
        else:
            monkeypatch.setenv(NAME, value)
        for a, b in zip(compiled(*one()), function(*one())):
            np.testing.assert_array_equal(a, b)


def reads_variables(x):
    return x + PLAIN_VARIABLE.get() + PLAIN_VARIABLE.get(9) + UNSET.get(4)


def sets_a_variable(x):
    token = PLAIN_VARIABLE.set(5)
    try:
        y = x + PLAIN_VARIABLE.get()
    finally:
        PLAIN_VARIABLE.reset(token)
    return y, PLAIN_VARIABLE.get()


def lacks_a_value(x):
    try:
        UNSET.get()
    except LookupError:
        return x + 1
    return x


def test_context_variables():
    whole(reads_variables)
    check(sets_a_variable, one)
    check(lacks_a_value, one)
    compiled = dyncomp.compile(reads_variables, backend="eager")
    for value in (3, 10, 3, 2.5):
        token = PLAIN_VARIABLE.set(value)
        np.testing.assert_array_equal(compiled(*one()), reads_variables(*one()))
        PLAIN_VARIABLE.reset(token)
    np.testing.assert_array_equal(compiled(*one()), reads_variables(*one()))


# -- warning filters -----------------------------------------------------------------------------------
def ignores(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.log(x)
    return y * 2


def filters(x):
    with warnings.catch_warnings(action="default"):
        warnings.filterwarnings("ignore", "divide by zero", category=RuntimeWarning)
        with warnings.catch_warnings():
            warnings.simplefilter("always", append=True)
            y = np.log(x)
        y = y + 1
    return y * 2


def test_filters_without_a_break():
    for function in (ignores, filters):
        before = list(warnings.filters)
        whole(function)
        assert warnings.filters == before


def breaks_inside(x, seen):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        y = x + 1
        with warnings.catch_warnings():
            warnings.filterwarnings("once", "hello")
            dyncomp.graph_break()
            seen.append([f[0] for f in warnings.filters[:2]])
            y = y * 2
        seen.append(warnings.filters[0][0])
        warnings.warn("not seen", DeprecationWarning, stacklevel=1)
    seen.append(len(warnings.filters))
    return y


def records_warnings(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = x + 1
        warnings.warn("hey", stacklevel=1)
    return y, [str(w.message) for w in found]


def raises_warnings(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("hey", stacklevel=1)
        except UserWarning as error:
            return x + 1, str(error)
    return x


def raises_in_the_block(x):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = x + 1
            raise KeyError(3)
    except KeyError as error:
        return y, error.args
    return x


def wrong_arguments(x):
    with warnings.catch_warnings():
        warnings.simplefilter("nothing")
    return x + 1


def test_filters_with_breaks():
    before = list(warnings.filters)
    check(breaks_inside, lambda: (*one(), []), repeats=3)
    for function in (records_warnings, raises_warnings, raises_in_the_block, wrong_arguments):
        check(function, one)
    assert warnings.filters == before


def shows_again(x, shown):
    def warn():
        warnings.warn("twice", stacklevel=1)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        warn()
        shown.append(len(found))
        warn()
        shown.append(len(found))
        with warnings.catch_warnings():
            y = x + 1
        warn()
        shown.append(len(found))
    return y


def test_filters_that_changed_and_came_back():
    check(shows_again, lambda: (*one(), []))


# -- NumPy's error modes -----------------------------------------------------------------------------
def errors_over_a_break(x, seen):
    with np.errstate(all="ignore"):
        y = np.log(x - 1)
        dyncomp.graph_break()
        seen.append(np.geterr()["divide"])
        y = y + np.sqrt(x - 2)
    y = y * 2
    dyncomp.graph_break()
    seen.append(np.geterr()["divide"])
    return y


def test_error_modes_end_behind_a_break():
    records = check(errors_over_a_break, lambda: (*one(), []), repeats=3)
    assert "unsupported-call" not in [
        b.id for e in records.entries for b in e.breaks if "errstate" in b.reason
    ]


def test_error_modes_that_are_restored_raise():
    compiled = dyncomp.compile(errors_over_a_break, backend="eager")
    with np.errstate(divide="raise"):
        for function in (errors_over_a_break, compiled, compiled):
            seen = []
            function(*one(), seen)
            assert seen == ["ignore", "raise"]
    seen = []
    compiled(*one(), seen)
    assert seen == ["ignore", np.geterr()["divide"]]


# -- stacks of context managers ------------------------------------------------------------------------
class Manager:
    def __init__(self, log, name, swallow=False):
        self.log = log
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        self.log.append(("enter", self.name))
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", self.name, kind and kind.__name__))
        return self.swallow


def stack(x):
    log = []
    with contextlib.ExitStack() as entered:
        managers = [entered.enter_context(Manager(log, name)) for name in "ab"]
        entered.callback(log.append, "callback")
        entered.push(lambda *exception: log.append(exception[0]))
        y = x + len(managers)
    return y * 2, log


def stack_that_swallows(x):
    log = []
    with contextlib.ExitStack() as entered:
        entered.enter_context(Manager(log, "a", swallow=True))
        y = x + 1
        raise ValueError("swallowed")
    return y * 2, log


def stack_passed_on(x):
    log = []
    with contextlib.ExitStack() as entered:
        entered.enter_context(Manager(log, "a"))
        kept = entered.pop_all()
    y = x + 1
    kept.close()
    return y, log


def what_is_handled(x):
    first = sys.exc_info()
    try:
        raise KeyError(1)
    except KeyError:
        second = sys.exception().args
    return x + 1, first, second, sys.exception()


def test_stacks():
    for function in (stack, stack_that_swallows, stack_passed_on, what_is_handled):
        whole(function)


def asks_what_is_handled(x):
    return x + 1, sys.exc_info()[0]


def test_called_while_an_exception_is_handled():
    compiled = dyncomp.compile(asks_what_is_handled, backend="eager")
    for _ in range(2):
        assert compiled(*one())[1] is None
        try:
            raise KeyError(1)
        except KeyError:
            assert compiled(*one())[1] is KeyError
    assert compiled(*one())[1] is None


def stack_over_a_break(x):
    log = []
    with contextlib.ExitStack() as entered:
        entered.enter_context(Manager(log, "a"))
        y = x + 1
        dyncomp.graph_break()
        entered.enter_context(Manager(log, "b"))
        y = y * 2
    return y, log


def redirected(x):
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        y = x + 1
        print("hello", y.shape)
    return y * 2, buffer.getvalue()


def test_blocks_with_breaks():
    check(stack_over_a_break, one)
    check(redirected, one)


# -- binding functions ---------------------------------------------------------------------------------
def binds(x):
    def scale(self, k):
        return self * k

    method = types.MethodType(scale, x)
    other = scale.__get__(x, type(x))
    return method(2), other(3), method.__self__ is x, scale.__get__(x)(1)


def test_functions_are_bound():
    whole(binds)


def recursive_function(x):
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    y = x + 1
    return y * factorial(5), factorial


def mutual_recursion(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    y = x * even(6)
    return y + odd(9), even(3)


def remembers(x):
    known = {}

    def fibonacci(n):
        if n not in known:
            known[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
        return known[n]

    y = x * 2
    return y + fibonacci(9), known


def test_functions_that_refer_to_themselves():
    for function in (recursive_function, mutual_recursion, remembers):

        def result(x, function=function):
            return function(x)[0]

        records = check(result, one, repeats=3)
        assert not records.counters["internal_errors"]
        assert not any("contains itself" in reason for _, _, reason in records.skipped)
    compiled = dyncomp.compile(recursive_function, backend="eager")
    for _ in range(2):
        assert compiled(*one())[1](6) == 720
