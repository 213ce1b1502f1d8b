"""What is made in the background before it is asked for."""

from __future__ import annotations

import os
import threading

import pytest

from dyncomp.build.background import Ahead, builder
from dyncomp.build.toolchain import Runner
from dyncomp.errors import ToolchainError


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert builder(low=False).wait(20.0)


def test_it_is_made_once_and_handed_over() -> None:
    made: list[bool] = []

    def make(runner: Runner) -> str:
        made.append(runner.background)
        return "made"

    ahead = Ahead(make)
    assert builder(low=False).wait(20.0)
    assert ahead.take() == "made"
    assert made == [True]


def test_what_has_begun_is_waited_for() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def make(runner: Runner) -> int:
        begun.set()
        assert go_on.wait(20.0)
        return 3

    ahead = Ahead(make)
    assert begun.wait(20.0)
    threading.Timer(0.05, go_on.set).start()
    assert ahead.take() == 3


def test_what_has_not_begun_is_left_to_who_asks() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def busy(runner: Runner) -> None:
        begun.set()
        assert go_on.wait(20.0)

    first = Ahead(busy)
    assert begun.wait(20.0)
    made: list[int] = []
    second = Ahead(lambda runner: made.append(1))
    assert second.take() is None
    go_on.set()
    assert first.take() is None
    assert builder(low=False).wait(20.0)
    assert not made


def test_a_failure_is_left_to_who_asks() -> None:
    def make(runner: Runner) -> None:
        raise ToolchainError("no compiler")

    assert Ahead(make).take() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_its_parent() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def make(runner: Runner) -> int:
        begun.set()
        assert go_on.wait(20.0)
        return 5

    ahead = Ahead(make)
    assert begun.wait(20.0)
    child = os.fork()
    if child == 0:
        go_on.set()  # the child's own
        os._exit(0 if ahead.take() == 5 else 1)
    go_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ahead.take() == 5


def test_a_runner_tells_that_compilers_run() -> None:
    told: list[int] = []
    runner = Runner(on_start=lambda: told.append(len(runner.running)))
    runner.run([["true"], ["sh", "-c", "exit 3"]])
    assert told == [2]
    assert [status for status, _ in runner.run([["true"], ["sh", "-c", "exit 3"]])] == [0, 3]
    assert told == [2]
