"""Functions that read the frames of their callers see the program's own, wherever they are called from."""

# ruff: noqa: F841 - these variables are read by others

from __future__ import annotations

import gc
import itertools
import random
import sys

import numpy as np
import pytest

import dyncomp
from tests.capture import frame_readers
from tests.capture.frame_readers import CALLERS, READERS, outer

CASES = list(itertools.product(READERS, CALLERS, (0, 1, 2), ("caller", "outer", "global")))
OPTIONS = {"measure": False, "patience_us": 0, "debug_verify": True}


def call(function, caller, read, depth, through):
    x = np.ones(3)
    try:
        return function(x, caller, read, depth) if through else function(x, read, depth)
    except Exception as error:
        return type(error).__name__, str(error)


def with_global_reader(caller, read):
    """The caller with ``read`` as a global variable in place of its argument."""
    made = {"__name__": "made"}
    made.update(vars(frame_readers), read=lambda *args: (_ for _ in ()).throw(AssertionError))
    names = frame_readers.SOURCES
    text = "\n\n".join(
        names[f.__name__].replace(", read, depth", ", depth") for f in (*frame_readers.HELPERS, caller)
    )
    made["__file__"] = frame_readers.__file__
    exec(compile(text, frame_readers.__file__, "exec"), made)
    made["read"] = read
    return made[caller.__name__]


def check(read, caller, depth, form, limit):
    through = form == "outer"
    if form == "global":
        original = with_global_reader(caller, read)
        run = lambda f: _call_two(f, depth)  # noqa: E731
    else:
        original = outer if through else caller
        run = lambda f: call(f, caller, read, depth, through)  # noqa: E731
    wanted, found = None, []
    dyncomp.reset()
    options = {**OPTIONS, "unroll_limit": limit}
    compiled = dyncomp.compile(original, backend="eager", options=options)
    for f in (original, compiled, compiled, compiled):  # on one line: callers further up are these
        outcome = str(run(f))
        wanted = outcome if wanted is None else wanted
        if outcome != wanted:
            found.append(
                f"{read.__name__} in {caller.__name__}, {depth}, {form}: {outcome:.300} is not {wanted:.300}"
            )
    assert not dyncomp.stats()["internal_errors"]
    return found


def _call_two(function, depth):
    try:
        return function(np.ones(3), depth)
    except Exception as error:
        return type(error).__name__, str(error)


def failures(cases):
    return [text for case in cases for text in check(*case, limit=4)]


def test_sample():
    found = failures(random.Random(0).sample(CASES, 250))
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:10])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_slow(part):
    found = failures(CASES[part::4])
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:10])


class Table:
    """Looks names up in its caller, as pandas does: by methods that call each other."""

    def __init__(self, columns):
        self.columns = columns

    def query(self, text, level=1):
        return self.eval(text, level + 1)

    def eval(self, text, level=1):
        return Scope(level + 1).evaluate(text, self.columns)


class Scope:
    def __init__(self, level):
        self.names = dict(sys._getframe(level).f_locals)

    def evaluate(self, text, columns):
        return eval(text.replace("@", ""), {"np": np}, {**columns, **self.names})


def test_tables():
    table = Table({"a": np.arange(4.0)})

    class Model:
        def __init__(self):
            self.table = table

        def run(self, x):
            limit = x.mean() + 1
            return self.pick(x) + self.table.query("a * @limit")

        def pick(self, x):
            scale = x * 2
            return self.table.eval("a + @scale")

    def function(x, t):
        limit = x.sum()
        other = limit * 2
        return t.query("a * @limit + @other")

    def captured(x):
        limit = x.sum()
        return table.eval("a - @limit") * 2

    model, x = Model(), np.arange(4.0)
    for f, args in ((function, (x, table)), (captured, (x,)), (model.run, (x,))):
        compiled = dyncomp.compile(f, backend="eager")
        for _ in range(3):
            assert np.array_equal(compiled(*args), f(*args))


def name_of_caller():
    return sys._getframe(1).f_code.co_name


def test_only_the_callers_that_are_read_are_left_alone():
    """Work further up is compiled all the same."""

    def helper(x):
        return name_of_caller(), x * 2

    def work(x):
        y = np.sin(x) + 1
        name, z = helper(y)
        return name, z * y

    compiled = dyncomp.compile(work, backend="eager")
    dyncomp.reset()
    for _ in range(3):
        name, found = compiled(np.ones(3))
        assert name == "helper" and np.array_equal(found, work(np.ones(3))[1])
    assert dyncomp.stats()["graphs"] > 0


def test_the_break_says_why():
    def work(x):
        return name_of_caller(), x * 2

    compiled = dyncomp.compile(work, backend="eager", fullgraph=True)
    with pytest.raises(dyncomp.GraphBreakError, match="name_of_caller.*reads the frames of its callers"):
        compiled(np.ones(3))


class Shown:
    """A reader that the names in its callers' code do not lead to."""

    @property
    def names(self):
        return frame_readers.shown(sys._getframe(1).f_locals)

    def __call__(self):
        return frame_readers.shown(sys._getframe(1).f_locals)

    def __add__(self, other):
        return frame_readers.shown(sys._getframe(1).f_locals)


SHOWN = Shown()


def by_property(x):
    y = x * 2
    t = y + 1
    gc.get_count()
    return SHOWN.names, t * 2


def by_call(x):
    y = x * 2
    t = y + 1
    gc.get_count()
    return SHOWN(), t * 2


def by_operator(x):
    y = x * 2
    t = y + 1
    gc.get_count()
    return SHOWN + 1, t * 2


def by_looked_up_name(x):
    y = x * 2
    t = y + 1
    gc.get_count()
    return globals()["SHOWN"](), t * 2


@pytest.mark.parametrize("function", (by_property, by_call, by_operator, by_looked_up_name))
def test_found_behind_a_break(function):
    """Too late for the call in which it is found; from then on the function runs as it is."""
    compiled = dyncomp.compile(function, backend="eager", options=OPTIONS)
    x = np.ones(2)
    compiled(x)
    for _ in range(3):
        assert str(compiled(x)) == str(function(x))
