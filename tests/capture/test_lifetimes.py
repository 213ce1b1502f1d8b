"""What compiled functions keep alive: no array of the program, nothing of a function that is gone, and of
compiled forms no more than the budget."""

from __future__ import annotations

import enum
import functools
import gc
import weakref

import numpy as np
import pytest

import dyncomp
from dyncomp.api import SESSION, compile_with
from dyncomp.hook import _hook
from dyncomp.options import Options
from tests.capture.comparing import graphs
from tests.capture.programs import vec


@pytest.fixture(autouse=True)
def no_collector():
    """What is let go must go by reference counts alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Kind(enum.Enum):
    ONE = 1


def array():
    return np.arange(1000.0)


def compile_eager(function, **settings):
    return dyncomp.compile(function, backend="eager", **settings)


def assert_gone(**refs):
    alive = [name for name, ref in refs.items() if ref() is not None]
    assert not alive


def refs(**objects):
    return {name: weakref.ref(obj) for name, obj in objects.items()}


# -- arrays: each program gets an array; afterwards neither it nor the result may be alive -------------
def pure(x):
    return x * 2 + 1


def breaks(x):
    y = x + 1
    dyncomp.graph_break()
    return y * 2


def breaks_in_a_loop(x):
    for _ in range(20):
        x = x + 1
        dyncomp.graph_break()
    return x


def loops(x):
    for i in range(50):
        x = x + i
    return x


def pairs(x):
    yield x
    yield x + 1


def consumes(x):
    return sum(pairs(x))


def nested(x):
    def inner(y):
        return y + x

    z = inner(x)
    dyncomp.graph_break()
    return inner(z)


def stores(x):
    box = {"x": [x, x]}
    box["y"] = x * 2
    return box["y"] + box["x"][1]


def catches(x):
    try:
        raise ValueError(x)
    except ValueError as error:
        return error.args[0] * 2


def with_block(x):
    with np.errstate(all="ignore"):
        y = x + 1
        dyncomp.graph_break()
        return y * 2


def breaks_by_a_rule(x):
    y = x * 2 + 1
    return (y == Kind.ONE) + y


def looks_at_its_frame(x):
    return x * len(locals())


PROGRAMS = [
    pure,
    breaks,
    breaks_in_a_loop,
    loops,
    consumes,
    nested,
    stores,
    catches,
    with_block,
    breaks_by_a_rule,
]


@pytest.mark.parametrize("program", [*PROGRAMS, looks_at_its_frame])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_arguments_and_results(program, backend):
    compiled = dyncomp.compile(program, backend=backend)

    def run():
        x = array()
        return refs(x=x, y=compiled(x))

    for _ in range(2):
        assert_gone(**run())


@pytest.mark.parametrize("program", PROGRAMS)
def test_explanations_hold_the_result_only(program):
    def run():
        x = array()
        report = dyncomp.explain(program, backend="eager")(x)
        return report, refs(x=x)

    report, found = run()
    assert_gone(**found)
    assert report.entries


def raises(x):
    np.sqrt(x)
    raise ValueError("wrong")


def raises_inside(x):
    return raises(x * 2) + 1


def raises_at_run_time(x):
    return x[np.array([10**9])] * 2


def raises_after_a_break(x):
    y = x + 1
    dyncomp.graph_break()
    raise ValueError(str(y.shape))


@pytest.mark.parametrize("program", [raises, raises_inside, raises_at_run_time, raises_after_a_break])
def test_exceptions(program):
    compiled = compile_eager(program)

    def run():
        x = array()
        with pytest.raises((ValueError, IndexError)) as raised:
            compiled(x)
        del raised
        return refs(x=x)

    for _ in range(2):
        assert_gone(**run())


@pytest.mark.parametrize("program", [breaks, raises_after_a_break])
def test_failed_captures(program):
    compiled = compile_eager(program, fullgraph=True)

    def run():
        x = array()
        with pytest.raises(dyncomp.GraphBreakError) as raised:
            compiled(x)
        del raised
        return refs(x=x)

    assert_gone(**run())


def test_captured_globals(monkeypatch):
    monkeypatch.setitem(globals(), "WEIGHTS", array())
    compiled = compile_eager(lambda x: x * WEIGHTS)  # noqa: F821
    compiled(array())
    found = weakref.ref(globals()["WEIGHTS"])
    monkeypatch.undo()
    assert found() is None


class Model:
    def __init__(self):
        self.w = array()

    def __call__(self, x):
        return self.go(x)

    def go(self, x):
        self.last = x * self.w
        return self.last


def test_objects_and_their_arrays():
    calls = compile_eager(lambda model, x: model.go(x))
    passed = compile_eager(lambda function, x: function(x))

    def run():
        model = Model()
        x = array()
        compile_eager(model)(x)
        calls(model, x)
        passed(model.go, x)
        passed(functools.partial(np.multiply, x), x)
        return refs(model=model, w=model.w, x=x, last=model.last)

    assert_gone(**run())


def test_closures_passed_as_arguments():
    compiled = compile_eager(lambda function, x: function(x))

    def run():
        w = array()

        def scaled(x):
            return x * w

        compiled(scaled, w)
        return refs(w=w, scaled=scaled)

    assert_gone(**run())
    assert_gone(**run())
    assert len(compiled.config.records.entries) == 1


# -- functions -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_compiled_function_goes_with_all_that_was_made_for_it(program):
    def run():
        def own(x, program=program):
            return program(x)

        compiled = compile_eager(own)
        compiled(array())
        return refs(compiled=compiled, own=own), weakref.ref(compiled.config)

    found, config = run()
    assert_gone(**found)
    gc.collect()  # a configuration and its continuations know one another
    assert config() is None


@pytest.mark.parametrize("at_once", [True, False])
def test_a_compiled_function_goes_with_its_compiled_loops(at_once):
    """Gates before loops are constants of code, which the collector does not look into."""

    def run():
        def own(x):
            total = 0.0
            for i in range(len(x)):
                total += x[i] * 2.0
            return total

        compiled = dyncomp.compile(own, options={"native_loop_us": 0 if at_once else 10**9})
        x = np.arange(100.0)
        assert compiled(x) == own(x)
        records = compiled.config.records.native_loops
        assert [record.is_native for record in records] == [at_once]
        return refs(compiled=compiled, own=own, loop=records[0].gate, config=compiled.config)

    found = run()
    gc.collect()  # the configuration, and with it code,
    gc.collect()  # then what the code held
    assert_gone(**found)


def test_closures_made_anew_share_their_entries():
    @dyncomp.compile(backend="eager")
    def outer(x, factors):
        return [make(k)(x) for k in factors]

    @dyncomp.disable(recursive=False)
    def make(k):
        table = np.full(1000, k)

        def inner(x):
            tables.append(weakref.ref(table))
            return x * table

        return inner

    tables = []
    for _ in range(30):
        outer(array(), (1.0, 2.0))
    del outer
    assert not any(ref() is not None for ref in tables)


def test_compiling_in_a_loop_keeps_nothing():
    before = len(SESSION.configs)

    def run(k):
        return compile_eager(lambda x: breaks(x) * k)(array())

    for k in range(20):
        run(k)
    gc.collect()
    assert len(SESSION.configs) <= before + 1


def test_a_continuation_outlives_its_configuration():
    box = []

    def f(x):
        y = x + 1
        box.clear()
        gc.collect()
        dyncomp.graph_break()
        z = y * 2
        dyncomp.graph_break()
        return z + 1

    box.append(compile_eager(f))
    assert np.array_equal(box[0](vec()), (vec() + 1) * 2 + 1)
    assert not box


def test_reset_lets_go_of_everything():
    compiled = compile_eager(breaks)
    compiled(array())
    entries = [weakref.ref(e.graph) for e in compiled.config.records.entries]
    assert dyncomp.stats()["entries"] >= 2
    dyncomp.reset()
    assert all(ref() is None for ref in entries)
    assert not compiled.config.records.entries
    assert np.array_equal(compiled(vec()), breaks(vec()))
    assert graphs(compiled.config.records) == 2


def total_of(n, function):
    total = 0.0
    for i in range(n):
        total += function(i)
    return total


def adder(factor, held):
    return lambda i: i * factor


def adder_of_adder(factor, held):
    inner = adder(factor, held)
    return lambda i: inner(i) + 1


def with_default(factor, held):
    return lambda i, default=held: i * factor


def with_array(factor, held):
    return lambda i: i * held[0]


@pytest.mark.parametrize("make", [adder, adder_of_adder, with_default, with_array])
def test_loops_keep_no_function_that_they_are_given(make):
    compiled = dyncomp.compile(total_of, options={"native_loop_us": 0, "debug_verify": True})
    alive = []
    for k in range(6):
        held = array() + 1
        function = make(k + 0.5, held)
        alive += [weakref.ref(function), weakref.ref(held)]
        for _ in range(3):
            assert compiled(100, function) == total_of(100, function)
        del function, held
    assert [ref for ref in alive if ref() is not None] == []
    if make in (adder, adder_of_adder):
        assert any(record.is_native for record in compiled.config.records.native_loops)


# -- the budget ----------------------------------------------------------------------------------------
def per_length(x, items):
    return x * len(items)


def test_entries_used_longest_ago_are_dropped():
    dyncomp.reset()
    compiled = compile_eager(per_length, options={"cache_bytes": 20_000, "recompile_limit": 100})
    for n in range(1, 40):
        assert np.array_equal(compiled(vec(), (None,) * n), vec() * n)
        assert np.array_equal(compiled(vec(), (None,)), vec())
    stats = dyncomp.stats()
    assert stats["evicted"] > 10
    assert 0 < stats["cache_bytes"] <= 20_000
    assert stats["entries"] == len(compiled.config.records.entries) < 39
    misses = stats["cache_misses"]
    compiled(vec(), (None,))  # used all the time: never dropped
    assert dyncomp.stats()["cache_misses"] == misses


def test_evicted_forms_do_not_count_for_the_recompilation_limit():
    compiled = compile_eager(per_length, options={"cache_bytes": 12_000, "recompile_limit": 6})
    for _ in range(3):
        for n in range(1, 9):
            assert np.array_equal(compiled(vec(), (None,) * n), vec() * n)
    assert not compiled.config.records.skipped


# -- order ---------------------------------------------------------------------------------------------
def test_an_entry_that_broke_early_does_not_hide_a_better_one():
    config = SESSION.new_config(Options(backend="eager"))

    def f(x):
        return 0

    def entry(value, rank):
        return _hook.Entry(None, f.__code__.replace(co_consts=(None, value)), rank=rank)

    compiled = compile_with(f, config)
    for value, rank in ((20, 2), (10, 1), (11, 1)):
        _hook.add_entry(f.__code__, config, entry(value, rank))
    assert compiled(1) == 11
    _hook.add_entry(f.__code__, config, entry(1, 0))
    assert compiled(1) == 1
    assert [e.rank for e in _hook.cache_entries(f.__code__, config)] == [0, 1, 1, 2]
