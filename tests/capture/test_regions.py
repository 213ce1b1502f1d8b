"""Regions and marks by which a program talks to capture."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import GraphBreakError
from tests.capture.comparing import break_ids, check, graphs
from tests.capture.programs import vec


def compile_eager(function, **settings):
    return dyncomp.compile(function, backend="eager", **settings)


def captured(x):
    """Adds 1 where it is captured, 0 as plain Python."""
    return x * 0 + int(dyncomp.is_compiling())


def shows(x):
    print("shown")
    return x + 1


# -- graph_break and is_compiling --------------------------------------------------------------------
def test_graph_break():
    def f(x):
        y = x + 1
        dyncomp.graph_break("because")
        return y * 2

    records = check(f, lambda: (vec(),))
    assert break_ids(records) == ["graph-break"]
    assert graphs(records) == 2
    assert records.entries[0].breaks[0].reason == "because"


def test_graph_break_in_a_loop_and_in_a_callee():
    def inner(x):
        y = x * 2
        dyncomp.graph_break()
        return y + 1

    def f(x):
        for _ in range(3):
            x = inner(x)
        return x

    assert "graph-break" in break_ids(check(f, lambda: (vec(),)))


def test_is_compiling():
    assert dyncomp.is_compiling() is False
    assert compile_eager(captured)(vec())[0] == 1
    assert captured(vec())[0] == 0


# -- error_on_graph_break -----------------------------------------------------------------------------
def test_a_break_inside_is_an_error():
    def f(x):
        with dyncomp.error_on_graph_break():
            y = x + 1
            print("inside")
        return y

    with pytest.raises(GraphBreakError) as raised:
        compile_eager(f)(vec())
    message = str(raised.value)
    assert "error_on_graph_break(True)" in message and "[print]" in message
    assert f"{__file__}:{f.__code__.co_firstlineno + 3}" in message
    assert "hint:" in message


def test_breaks_before_and_after_are_none():
    def f(x):
        print("before")
        with dyncomp.error_on_graph_break(True):
            y = x + 1
        print("after")
        return y * 2

    assert break_ids(check(f, lambda: (vec(),))) == ["print", "print"]


def test_a_break_in_a_callee_is_an_error():
    def f(x):
        with dyncomp.error_on_graph_break():
            return shows(x) + 1

    with pytest.raises(GraphBreakError, match="shows"):
        compile_eager(f)(vec())


def test_a_region_that_allows_breaks_inside_one_that_does_not():
    def f(x):
        y = x + 1
        with dyncomp.error_on_graph_break(False):
            print("allowed")
            y = y * 2
        return y + 1

    compiled = compile_eager(f, fullgraph=True)
    assert np.array_equal(compiled(vec()), (vec() + 1) * 2 + 1)
    assert "print" in break_ids(compiled.config.records)

    def g(x):
        with dyncomp.error_on_graph_break(False):
            y = x + 1
        print("not allowed")
        return y

    with pytest.raises(GraphBreakError, match="fullgraph=True"):
        compile_eager(g, fullgraph=True)(vec())


def test_after_a_broken_inner_region_the_outer_one_counts_again():
    def f(x):
        with dyncomp.error_on_graph_break(True):
            with dyncomp.error_on_graph_break(False):
                print("allowed")
            y = x + 1
            print("not allowed")
            return y

    with pytest.raises(GraphBreakError, match="error_on_graph_break"):
        compile_eager(f)(vec())


def test_region_around_calls():
    def f(x):
        print("breaks")
        return x + 1

    compiled = compile_eager(f)
    with dyncomp.error_on_graph_break(), pytest.raises(GraphBreakError):
        compiled(vec())
    assert np.array_equal(compiled(vec()), vec() + 1)
    strict = compile_eager(f, fullgraph=True)
    with dyncomp.error_on_graph_break(False):
        assert np.array_equal(strict(vec()), vec() + 1)


def test_region_as_decorator():
    @dyncomp.error_on_graph_break()
    def strict(x):
        return shows(x)

    def f(x):
        return strict(x) * 2

    assert strict.__name__ == "strict"
    assert np.array_equal(strict(vec()), vec() + 1)
    with pytest.raises(GraphBreakError, match="shows"):
        compile_eager(strict)(vec())
    with pytest.raises(GraphBreakError, match="shows"):
        compile_eager(f)(vec())

    @dyncomp.error_on_graph_break()
    def fine(x):
        return x + 1

    records = check(lambda x: fine(x) * 2, lambda: (vec(),))
    assert not break_ids(records)


def test_a_region_kept_in_a_variable():
    region = dyncomp.error_on_graph_break(False)

    def f(x):
        with region:
            y = x + 1
        return y * 2

    assert not break_ids(check(f, lambda: (vec(),)))


def test_wrong_arguments():
    with pytest.raises(TypeError, match="True or False"):
        dyncomp.error_on_graph_break(lambda: None)


# -- disable ---------------------------------------------------------------------------------------------
def test_disable_is_recursive():
    @dyncomp.disable
    def outside(x):
        return captured(x)

    @dyncomp.disable(recursive=False, reason="it is slow to compile")
    def only_itself(x):
        return captured(x), dyncomp.is_compiling()

    def f(x):
        return outside(x) + 0, only_itself(x)

    compiled = compile_eager(f)
    for _ in range(2):
        first, (second, flag) = compiled(vec())
        assert first[0] == 0
        assert second[0] == 1
        assert flag is False
    breaks = [b for e in compiled.config.records.entries for b in e.breaks]
    assert [b.id for b in breaks if b.id == "disabled"] == ["disabled"] * 2
    assert any("it is slow to compile" in b.reason for b in breaks)


def test_compiling_what_is_disabled():
    @dyncomp.disable(reason="not this one")
    def f(x):
        return captured(x)

    compiled = compile_eager(f)
    assert compiled(vec())[0] == 0
    ((name, _, reason),) = compiled.config.records.skipped
    assert "f" in name and "not this one" in reason
    undone = dyncomp.disable(compile_eager(captured_copy()))
    assert undone(vec())[0] == 0


def captured_copy():
    def copy(x):
        return x * 0 + int(dyncomp.is_compiling())

    return copy


class Layer:
    def __init__(self, w):
        self.w = w

    @dyncomp.disable
    def decorated(self, x):
        return captured(x) * self.w

    @staticmethod
    @dyncomp.disable
    def static(x):
        return captured(x)

    @dyncomp.disable
    @classmethod
    def of_class(cls, x):
        return captured(x)

    @dyncomp.disable
    @property
    def prop(self):
        return dyncomp.is_compiling()

    def __call__(self, x):
        return captured(x) * self.w


@dyncomp.disable
class Whole:
    def __init__(self, w):
        self.w = w
        self.compiling = dyncomp.is_compiling()

    def scaled(self, x):
        return captured(x) * self.w


@pytest.mark.parametrize("name", ["decorated", "static", "of_class"])
def test_disabled_methods(name):
    layer = Layer(2.0)

    def f(x):
        y = x * 2
        return getattr(layer, name)(y) + y * 0 + 1

    compiled = compile_eager(f)
    assert compiled(vec())[0] == 1
    assert "disabled" in break_ids(compiled.config.records)


def test_disabled_property():
    layer = Layer(2.0)
    compiled = compile_eager(lambda x: (layer.prop, x + 1))
    assert compiled(vec())[0] is False


def test_disabled_class():
    def f(x):
        made = Whole(2.0)
        return made.compiling, made.scaled(x)

    compiled = compile_eager(f)
    flag, scaled = compiled(vec())
    assert flag is False
    assert scaled[0] == 0
    assert isinstance(Whole, type)


def test_disabled_objects_and_builtins():
    layer = Layer(2.0)
    plain_layer = dyncomp.disable(layer)
    plain_sin = dyncomp.disable(np.sin)
    plain_partial = dyncomp.disable(functools.partial(captured))
    plain_method = dyncomp.disable(Layer(3.0).decorated)

    def f(x):
        return plain_layer(x) + plain_partial(x) + plain_method(x), plain_sin(x)

    compiled = compile_eager(f)
    total, sines = compiled(vec())
    assert total[0] == 0
    assert np.array_equal(sines, np.sin(vec()))
    assert plain_sin.__name__ == "sin"
    with pytest.raises(TypeError, match="cannot disable"):
        dyncomp.disable(3)


# -- assume_constant_result -------------------------------------------------------------------------------
def test_constant_result_is_asked_for_once():
    calls = []

    @dyncomp.assume_constant_result
    def setting(name):
        calls.append(name)
        return {"scale": 2.0, "shift": 1.0}[name]

    def f(x):
        return x * setting("scale") + setting("shift")

    compiled = compile_eager(f)
    for _ in range(3):
        assert np.array_equal(compiled(vec()), vec() * 2 + 1)
    assert calls == ["scale", "shift"]
    assert not break_ids(compiled.config.records)
    assert setting("scale") == 2.0


def test_constant_result_that_is_an_array():
    table = np.arange(5.0)

    @dyncomp.assume_constant_result
    def weights():
        return table

    compiled = compile_eager(lambda x: x * weights())
    assert np.array_equal(compiled(vec()), vec() * table)
    table += 1  # the same array: what it holds is read at each call
    assert np.array_equal(compiled(vec()), vec() * table)


def test_constant_result_of_methods():
    class Settings:
        def __init__(self):
            self.calls = 0

        @dyncomp.assume_constant_result
        def factor(self):
            self.calls += 1
            return 3.0

    settings = Settings()
    compiled = compile_eager(lambda x: x * settings.factor())
    assert np.array_equal(compiled(vec()), vec() * 3)
    assert np.array_equal(compiled(vec()), vec() * 3)
    assert settings.calls == 1


def test_constant_result_given_arrays_breaks():
    @dyncomp.assume_constant_result
    def size(x):
        return len(x)

    records = check(lambda x: (x + 1) * size(x) + 1, lambda: (vec(),))
    assert break_ids(records) == ["unsupported-call"]


def test_constant_result_that_raises():
    @dyncomp.assume_constant_result
    def fails():
        raise LookupError("nothing there")

    check(lambda x: x * fails(), lambda: (vec(),))


def test_constant_result_takes_callables():
    with pytest.raises(TypeError, match="expected a function"):
        dyncomp.assume_constant_result(3)
    length = dyncomp.assume_constant_result(len)
    assert np.array_equal(compile_eager(lambda x: x * length("four"))(vec()), vec() * 4)


# -- errors in continuations -------------------------------------------------------------------------------
class Manager:
    """Remembers what leaves its block."""

    def __init__(self):
        self.log = []

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append("exit" if kind is None else kind.__name__)


def test_an_error_in_a_continuation_leaves_the_blocks_that_were_entered():
    manager = Manager()

    def f(x):
        with manager:
            with dyncomp.error_on_graph_break(False):
                print("allowed")
            y = x + 1
            print("not allowed")
            return y

    with pytest.raises(GraphBreakError, match="print"):
        _strictly(f)
    assert manager.log == ["enter", "GraphBreakError"]


def _strictly(f):
    with dyncomp.error_on_graph_break(True):
        compile_eager(f)(vec())


def test_an_error_in_a_continuation_can_be_caught():
    def f(x):
        try:
            with dyncomp.error_on_graph_break(False):
                print("allowed")
            y = x + 1
            print("not allowed")
        except GraphBreakError:
            y = x + 2
        return y

    with dyncomp.error_on_graph_break(True):
        compiled = compile_eager(f)
        try:
            assert np.array_equal(compiled(vec()), vec() + 2)
        except GraphBreakError:
            pytest.fail("it was not raised inside the try block")


# -- allow_in_graph ----------------------------------------------------------------------------------------
def plain_solve(a, b):
    calls.append(1)
    return np.linalg.solve(a, b)


calls: list[int] = []
solve = dyncomp.allow_in_graph(plain_solve)


@dyncomp.allow_in_graph
def halves(x, *, axis=0, parts=(0.5, 2)):
    print("", end="")  # nothing that capture could follow
    middle = x.shape[axis] // 2
    return [x[:middle] * parts[0], np.copy(x[middle:])], x.sum()


@dyncomp.allow_in_graph
def pair(x, k):
    return np.sort(x)[::-1] * k, x.sum()


def spd():
    return np.diag(np.arange(1.0, 6.0)) + 0.1, vec()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_call_is_one_node(backend):
    def f(a, b):
        scaled = a * 2
        found = solve(scaled, b + 1)
        return found * 3, a.sum()

    records = check(f, spd, backend=backend)
    assert not break_ids(records)
    assert graphs(records) == 1
    (entry,) = records.entries
    assert [n.op for n in entry.graph.nodes].count("python_call") == 1
    assert "callee('plain_solve')" in str(entry.graph) or "plain_solve" in repr(entry.graph)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_several_results_and_arguments_of_all_kinds(backend):
    def f(x, k):
        top, total = pair(x + 1, k=k)
        return top * 2, total + 1

    for k in (2, 2.5, np.float32(3)):
        records = check(f, lambda k=k: (vec(), k), backend=backend)
        assert not break_ids(records)


def test_numbers_that_change_are_passed_as_they_are():
    seen = []

    @dyncomp.allow_in_graph
    def scaled(x, k):
        seen.append(type(k))
        return x * k

    compiled = compile_eager(lambda x, k: scaled(x, k) + 1)
    for k in (2.5, 3.5, 4.5, 5.5):
        assert np.array_equal(compiled(vec(), k), vec() * k + 1)
    assert set(seen) == {float}
    assert len(compiled.config.records.entries) == 2


def test_a_call_unlike_the_one_at_capture_runs_the_original():
    @dyncomp.allow_in_graph
    def positive(x):
        return np.array(x[x > 0])

    compiled = compile_eager(lambda x: positive(x - 1) * 2)
    for x in (vec(), vec() + 5, vec() - 9):
        assert np.array_equal(compiled(x), positive(x - 1) * 2)


def test_exceptions_of_allowed_functions():
    records = check(lambda a, b: solve(a, b) * 2, spd, lambda: (np.zeros((5, 5)), vec()))
    assert records.entries


def test_what_cannot_be_a_node_breaks():
    aliasing = dyncomp.allow_in_graph(lambda x: x[1:])
    no_array = dyncomp.allow_in_graph(lambda x: "text")
    for function in (aliasing, no_array, halves):
        records = check(lambda x, f=function: (f(x * 2), x + 1), lambda: (vec(),))
        assert "unsupported-call" in break_ids(records)


def test_closures_are_told_apart():
    def make(k):
        @dyncomp.allow_in_graph
        def scaled(x):
            return x * k

        return scaled

    compiled = compile_eager(lambda x, f: f(x) + 1)
    for k in (1.0, 2.0, 3.0):
        assert np.array_equal(compiled(vec(), make(k)), vec() * k + 1)


def test_allowed_in_graph_is_a_plain_function():
    assert np.allclose(solve(*spd()), np.linalg.solve(*spd()))
    with pytest.raises(TypeError, match="expected a function"):
        dyncomp.allow_in_graph(3)
    builtin = dyncomp.allow_in_graph(np.linalg.solve)
    assert builtin.__name__ == "solve"
    assert np.allclose(compile_eager(lambda a, b: builtin(a, b) * 2)(*spd()), np.linalg.solve(*spd()) * 2)
