"""Functions that read the frames of their callers see the program's own, wherever they are called from."""

# ruff: noqa: F841 - these variables are read by others

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import itertools
import random
import sys
import types
import warnings

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
    """A reader that is no function: found by the names in its callers' code before these are captured."""

    @property
    def names(self):
        return frame_readers.shown(sys._getframe(1).f_locals)

    def __call__(self, *args):
        return frame_readers.shown(sys._getframe(1).f_locals)

    __add__ = __getitem__ = __call__

    def __enter__(self):
        self.seen = self()
        return frame_readers.shown(sys._getframe(1).f_locals)

    def __exit__(self, *error):
        pass

    def __getattr__(self, name):
        if name.startswith("absent"):
            return frame_readers.shown(sys._getframe(1).f_locals)
        raise AttributeError(name)


class Descriptor:
    def __get__(self, instance, owner):
        return frame_readers.shown(sys._getframe(1).f_locals)


class Meta(type):
    def __call__(cls):
        return frame_readers.shown(sys._getframe(1).f_locals)


class Made(metaclass=Meta):
    own = Descriptor()


@dataclasses.dataclass
class Data:
    number: int = 0

    def __post_init__(self):
        self.seen = frame_readers.shown(sys._getframe(2).f_locals)


class Slots:
    __slots__ = ("shown",)

    def __init__(self):
        self.shown = Shown()


SPACE = {"Shown": Shown, "SHOWN": Shown(), "Made": Made, "Data": Data, "SLOTS": Slots(), "gc": gc, "sys": sys}
SPACE["NESTED"] = types.SimpleNamespace(
    shown=SPACE["SHOWN"], inner=types.SimpleNamespace(call=SPACE["SHOWN"])
)
SPACE["CALLED"] = lambda: frame_readers.shown(sys._getframe(1).f_locals)
SPACE["CACHED"] = functools.lru_cache(lambda key: frame_readers.shown(sys._getframe(1).f_locals))
SPACE["TABLE"] = {"called": SPACE["CALLED"], "list": [SPACE["CALLED"]]}
SPACE["PART"] = functools.partial(lambda level: frame_readers.shown(sys._getframe(level).f_locals), 1)
REACHED = """
SHOWN.names | SHOWN() | SHOWN + 1 | SHOWN[0] | SHOWN.absent | Shown.names.fget(SHOWN) | SHOWN.__call__()
getattr(SHOWN, "names") | [SHOWN][0].names | Made() | Made.own | Data().seen | SLOTS.shown.names
SLOTS.shown() | NESTED.shown.names | NESTED.inner.call() | NESTED.inner.call + 1 | CALLED() | CACHED(len(t))
PART()
TABLE["called"]() | (lambda: SHOWN.names)() | [SHOWN.names for _ in range(2)] | type(SHOWN).names.fget(SHOWN)
"""
REACHED = [text.strip() for line in REACHED.strip().splitlines() for text in line.split("|")]
TOO_LATE = [
    "globals()['SHOWN']()",
    "globals()['CALLED']()",
    "TABLE['list'][0]()",
    "vars(NESTED)['shown'].names",
]
FORMS = [
    "gc.get_count(); r = {e}",
    "r = {e}",
    "gc.get_count(); t = t * 2; u = [t]; r = {e}; gc.get_count(); y = t",
    "r = [0]\n    for i in range(6):\n        gc.get_count()\n        r.append(len(str({e})))",
    "with np.errstate(all='ignore'):\n        gc.get_count(); r = {e}; t = t + 1",
    "try:\n        gc.get_count(); r = {e}\n    finally:\n        t = t + 1",
]


def reaching(expression, form):
    space = {**SPACE, "np": np, "__name__": "reaching"}
    body = form.format(e=expression)
    exec(
        compile(f"def f(x):\n    y = x * 2\n    t = y + 1\n    {body}\n    return r, t, y", __file__, "exec"),
        space,
    )
    return space["f"]


@pytest.mark.parametrize("expression", REACHED + TOO_LATE)
def test_found_by_names(expression):
    """In the first call; where they are reached by what the code does not name, in the next ones."""
    x = np.ones(2)
    for form in FORMS:
        function = reaching(expression, form)
        SPACE["CACHED"].cache_clear()
        wanted = str(function(x))
        compiled = dyncomp.compile(function, backend="eager", options=OPTIONS)
        SPACE["CACHED"].cache_clear()
        found = []
        for _ in range(4):
            SPACE["CACHED"].cache_clear()
            found.append(str(compiled(x)))
        late = expression in TOO_LATE
        assert found[late:] == [wanted] * (4 - late), f"{form}: {found} is not {wanted}"


def obsolete(kwargs, message, stacklevel=2):
    """As diffusers' ``deprecate``: warns, and names the caller in an exception."""
    warnings.warn(message, FutureWarning, stacklevel=stacklevel)
    if kwargs:
        caller = inspect.getouterframes(inspect.currentframe())[1]
        raise TypeError(f"{caller.function}, line {caller.lineno}: unexpected {sorted(kwargs)}")


def scaled(x, **kwargs):
    if kwargs:
        obsolete(kwargs, "no arguments", stacklevel=3)
    return x * 2


def sums(x, limit, **kwargs):
    total = scaled(x)
    for k in range(limit):
        total = total + scaled(x + k, **kwargs)
    return total


def test_readers_on_the_way_to_an_exception():
    """They do not keep what calls them from being compiled, and see their callers all the same."""
    compiled = dyncomp.compile(sums, backend="eager", options={**OPTIONS, "unroll_limit": 4})
    x = np.ones(3)
    before = dyncomp.stats()["graphs"]
    assert np.array_equal(compiled(x, 3), sums(x, 3)) and dyncomp.stats()["graphs"] > before
    assert np.array_equal(compiled(x, 9), sums(x, 9))  # a loop that is not unrolled
    for limit in (3, 9):
        seen = []
        for f in (sums, compiled):
            with warnings.catch_warnings(record=True) as caught, pytest.raises(TypeError) as raised:
                warnings.simplefilter("always")
                f(x, limit, size=1)
            seen.append((str(raised.value), [(w.lineno, w.filename) for w in caught]))
        assert seen[0] == seen[1]
