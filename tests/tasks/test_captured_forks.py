"""``dyncomp.fork`` and ``wait`` in captured code."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import dyncomp

X = np.linspace(-1, 1, 2000)


def check(function: Any, *args: Any, graphs: int | None = 1) -> None:
    """Compiled it gives what it gives plainly, thrice."""
    want = function(*args)
    fast = dyncomp.compile(function)
    for _ in range(3):
        np.testing.assert_allclose(fast(*args), want, rtol=1e-13)
    found = dyncomp.explain(function)(*args)
    if graphs is not None:
        assert len(found.graphs) == graphs
    if graphs == 1:
        assert not found.breaks


def test_one_graph() -> None:
    def f(x: Any) -> Any:
        a = dyncomp.fork(np.sin, x)
        b = dyncomp.fork(lambda y, scale=1.0: np.cos(y) * scale, x, scale=3.0)
        return dyncomp.wait(a) + dyncomp.wait(b) * a.result()

    check(f, X)


def test_nested_forks_are_one_graph() -> None:
    def nested(x: Any, depth: int) -> Any:
        if depth == 0:
            return x
        return dyncomp.wait(dyncomp.fork(nested, x * 0.5, depth - 1)) + 1

    def f(x: Any) -> Any:
        return nested(x, 3)

    check(f, X)


def test_deep_forks_are_right() -> None:
    def nested(x: Any, depth: int) -> Any:
        return x if depth == 0 else dyncomp.wait(dyncomp.fork(nested, x, depth - 1)) + 1

    def f(x: Any) -> Any:
        return nested(x, 60)

    check(f, X, graphs=None)


def test_effects_are_those_of_the_function() -> None:
    def f(x: Any, log: list[str]) -> Any:
        def work(name: str) -> Any:
            log.append(name)
            return x * len(name)

        a = dyncomp.fork(work, "a")
        first = dyncomp.wait(a)
        b = dyncomp.fork(work, "bb")
        second = dyncomp.wait(b)
        log.append("end")
        return first + second

    plain: list[str] = []
    compiled: list[str] = []
    want = f(X, plain)
    got = dyncomp.compile(f)(X, compiled)
    assert np.array_equal(got, want) and compiled == plain == ["a", "bb", "end"]


def test_writes_into_arrays() -> None:
    def f(x: Any, out: Any) -> Any:
        def fill() -> None:
            out[:] = x * 2

        dyncomp.wait(dyncomp.fork(fill))
        return out + 1

    out = np.zeros_like(X)
    np.testing.assert_array_equal(dyncomp.compile(f)(X, out), X * 2 + 1)
    np.testing.assert_array_equal(out, X * 2)


def test_futures_escape() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        future = dyncomp.fork(np.multiply, x, 2)
        kept.append(future)
        return future

    found = dyncomp.compile(f)(X)
    assert type(found) is dyncomp.Future and kept == [found] and found.done()
    assert np.array_equal(dyncomp.wait(found), X * 2)
    assert dyncomp.wait(found) is found.result()
    assert dyncomp.explain(f)(X).breaks == []


def test_futures_come_in() -> None:
    def f(future: Any, x: Any) -> Any:
        return dyncomp.wait(future) + x * 2

    def slow() -> Any:
        time.sleep(0.01)
        return X

    fast = dyncomp.compile(f)
    for _ in range(4):
        np.testing.assert_array_equal(fast(dyncomp.fork(slow), X), X * 3)
    done = dyncomp.fork(slow)
    dyncomp.wait(done)
    np.testing.assert_array_equal(fast(done, X), X * 3)
    other = dyncomp.fork(lambda: X * 2)
    dyncomp.wait(other)
    np.testing.assert_array_equal(fast(other, X), X * 4)


def test_exceptions_come_out_of_wait() -> None:
    def f(x: Any, log: list[str]) -> Any:
        def fails(y: Any) -> Any:
            raise KeyError("inside")

        future = dyncomp.fork(fails, x)
        log.append("after fork")
        try:
            return dyncomp.wait(future)
        except KeyError as error:
            log.append(str(error))
            return x + 1

    for run in (f, dyncomp.compile(f)):
        log: list[str] = []
        np.testing.assert_array_equal(run(X, log), X + 1)
        assert log == ["after fork", "'inside'"]


def test_exceptions_that_the_data_raise() -> None:
    def f(x: Any, at: Any) -> Any:
        future = dyncomp.fork(lambda: x[at])
        y = x * 2
        try:
            return dyncomp.wait(future)
        except IndexError:
            return y

    fast = dyncomp.compile(f)
    for at in (np.array([1, 2]), np.array([5, 5000]), np.array([0, 1])):
        np.testing.assert_array_equal(fast(X, at), f(X, at))


def test_unhandled_exceptions() -> None:
    def f(x: Any) -> Any:
        def fails() -> Any:
            raise ValueError("no")

        return dyncomp.wait(dyncomp.fork(fails)) + x

    with pytest.raises(ValueError, match="no"):
        dyncomp.compile(f)(X)


def test_bad_arguments() -> None:
    def f(x: Any) -> Any:
        return dyncomp.wait(x)

    with pytest.raises(TypeError, match=r"dyncomp\.fork returned"):
        dyncomp.compile(f)(X)

    def g(x: Any) -> Any:
        return dyncomp.fork(x)

    with pytest.raises(TypeError, match="not callable"):
        g(X)
    with pytest.raises(TypeError, match="not callable"):
        dyncomp.compile(g)(X)


def test_changes_of_the_context_stay_inside() -> None:
    import contextvars

    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=1)

    def f(x: Any) -> Any:
        def work() -> Any:
            variable.set(5)
            return x * variable.get()

        return dyncomp.wait(dyncomp.fork(work)) + variable.get()

    np.testing.assert_array_equal(f(X), X * 5 + 1)
    np.testing.assert_array_equal(dyncomp.compile(f)(X), X * 5 + 1)
    assert variable.get() == 1


def test_derivatives() -> None:
    def f(x: Any) -> Any:
        a = dyncomp.fork(lambda: (x**2).sum())
        b = dyncomp.fork(lambda: (x**3).sum())
        return dyncomp.wait(a) + dyncomp.wait(b)

    np.testing.assert_allclose(dyncomp.grad(f)(X), 2 * X + 3 * X**2, rtol=1e-12)

    def breaks(x: Any) -> Any:
        dyncomp.graph_break()
        return f(x)

    np.testing.assert_allclose(dyncomp.grad(breaks)(X), 2 * X + 3 * X**2, rtol=1e-12)
