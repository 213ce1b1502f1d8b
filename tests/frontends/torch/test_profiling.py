"""Blocks that name what a profiler sees have no meaning for captured code while there is no profiler."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402


def named(x):
    with torch.profiler.record_function("doubled"):
        y = x * 2
    return y + 1


def left_early(x, n):
    for k in range(n):
        with torch.profiler.record_function("early"):
            if k == 2:
                return x + k
    return x


def broken_inside(x):
    with torch.profiler.record_function("sum"):
        y = x * 2
        n = int(y.sum())
        y = y + n
    return y * 3


@pytest.mark.parametrize("function, args", [(named, ()), (left_early, (5,)), (left_early, (1,))])
def test_blocks_do_not_break_the_graph(function, args):
    x = torch.ones(3)
    report = dyncomp.explain(function)(x, *args)
    assert not report.breaks and not report.skipped
    torch.testing.assert_close(report.result, function(x, *args))


def test_a_break_inside():
    x, fast = torch.ones(3), dyncomp.compile(broken_inside)
    for _ in range(2):
        torch.testing.assert_close(fast(x), broken_inside(x))


def test_exceptions_leave_the_block():
    def f(x):
        try:
            with torch.profiler.record_function("failing"):
                y = x + 1
                raise KeyError("a")
        except KeyError:
            return y * 2

    torch.testing.assert_close(dyncomp.compile(f)(torch.ones(3)), f(torch.ones(3)))


@pytest.mark.parametrize("before", [False, True])
def test_a_profiler_sees_the_blocks(before):
    x, fast = torch.ones(3), dyncomp.compile(named)
    if before:
        fast(x)
    with torch.autograd.profiler.profile() as seen:
        torch.testing.assert_close(fast(x), named(x))
    assert [event.name for event in seen.function_events].count("doubled") == 2
    torch.testing.assert_close(fast(x), named(x))


def test_wrong_arguments_are_the_programs_error():
    def f(x):
        with torch.profiler.record_function():
            return x + 1

    with pytest.raises(TypeError):
        dyncomp.compile(f)(torch.ones(3))
