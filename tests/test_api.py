"""What users call: ``compile`` in all its forms, ``explain``, ``stats``, ``disable``, ``reset``, backends."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import DyncompError, GraphBreakError
from dyncomp.graph.interp import as_callable
from dyncomp.options import make_options
from dyncomp.pipeline import op_table


def vec(n=5):
    return np.linspace(0.5, 2.5, n)


def simple(x, k=2.0, *, shift=1.0):
    """Scale and shift."""
    return x * k + shift


def breaking(x):
    y = x + 1
    print("between")
    return y * 2


# -- forms of compile ---------------------------------------------------------------------------------
def test_function():
    compiled = dyncomp.compile(simple)
    assert np.array_equal(compiled(vec()), simple(vec()))
    assert np.array_equal(compiled(vec(), 3.0, shift=4.0), simple(vec(), 3.0, shift=4.0))
    assert np.array_equal(compiled(x=vec(), k=5), simple(x=vec(), k=5))


def test_decorator_without_arguments():
    @dyncomp.compile
    def f(x):
        return x + 1

    assert np.array_equal(f(vec()), vec() + 1)


def test_decorator_with_arguments():
    @dyncomp.compile(backend="eager", fullgraph=True, dynamic=True)
    def f(x):
        return x + 1

    assert np.array_equal(f(vec()), vec() + 1)


def test_it_looks_like_the_function():
    compiled = dyncomp.compile(simple)
    assert compiled.__name__ == "simple"
    assert compiled.__qualname__ == "simple"
    assert compiled.__doc__ == "Scale and shift."
    assert compiled.__module__ == __name__
    assert compiled.__wrapped__ is simple
    assert compiled.__defaults__ == (2.0,) if hasattr(compiled, "__defaults__") else True
    assert inspect.signature(compiled) == inspect.signature(simple)
    assert callable(compiled) and "simple" in repr(compiled)


class Model:
    def __init__(self, w):
        self.w = w

    @dyncomp.compile(backend="eager")
    def decorated(self, x):
        return x * self.w

    def plain(self, x):
        self.seen = x
        return x + self.w

    def __call__(self, x):
        return self.plain(x) * 2

    @staticmethod
    @dyncomp.compile(backend="eager")
    def static(x):
        return x - 1

    @classmethod
    @dyncomp.compile(backend="eager")
    def of_class(cls, x):
        return cls.__name__, x + 2


def test_methods():
    model = Model(3.0)
    assert np.array_equal(model.decorated(vec()), vec() * 3)
    assert np.array_equal(Model.decorated(model, vec()), vec() * 3)
    assert np.array_equal(model.static(vec()), vec() - 1)
    assert model.of_class(vec())[0] == "Model"
    bound = dyncomp.compile(model.plain, backend="eager")
    assert np.array_equal(bound(vec()), vec() + 3)
    assert np.array_equal(model.seen, vec())


def test_callable_objects():
    model = Model(3.0)
    compiled = dyncomp.compile(model, backend="eager")
    assert np.array_equal(compiled(vec()), (vec() + 3) * 2)
    assert compiled.w == 3.0
    compiled.w = 5.0
    assert model.w == 5.0
    assert np.array_equal(compiled(vec()), (vec() + 5) * 2)
    assert compiled.__wrapped__ is model


def test_other_callables():
    partial = dyncomp.compile(functools.partial(simple, k=4.0), backend="eager")
    assert np.array_equal(partial(vec()), simple(vec(), 4.0))
    assert np.allclose(dyncomp.compile(np.sin)(vec()), np.sin(vec()), rtol=1e-15)
    assert dyncomp.compile(len)([1, 2]) == 2
    assert np.array_equal(dyncomp.compile(lambda x: x + 1)(vec()), vec() + 1)


def test_compiling_what_is_compiled():
    once = dyncomp.compile(simple, backend="eager")
    twice = dyncomp.compile(once, dynamic=True, backend="eager")
    assert np.array_equal(twice(vec()), simple(vec()))
    assert twice.__wrapped__ is simple


def test_two_configurations_of_one_function_are_apart():
    loose = dyncomp.compile(breaking, backend="eager")
    strict = dyncomp.compile(breaking, backend="eager", fullgraph=True)
    loose(vec())
    with pytest.raises(GraphBreakError):
        strict(vec())
    assert np.array_equal(loose(vec()), (vec() + 1) * 2)


@pytest.mark.parametrize("wrong", [3, "text", None.__class__, Model])
def test_what_cannot_be_compiled(wrong):
    with pytest.raises(TypeError, match="cannot compile"):
        dyncomp.compile(wrong)


def test_modes_by_the_names_of_torch_compile():
    name = "max-autotune-no-cudagraphs"
    assert make_options(mode=name).mode == make_options(options={"mode": name}).mode == "max-autotune"


def test_wrong_settings():
    with pytest.raises(ValueError, match="unknown mode 'fast'.*reduce-overhead"):
        dyncomp.compile(simple, mode="fast")
    with pytest.raises(ValueError, match="unknown backend 'gcc'.*eager.*inductor"):
        dyncomp.compile(simple, backend="gcc")
    with pytest.raises(ValueError, match="unknown option 'unrol'.*unroll_limit"):
        dyncomp.compile(simple, options={"unrol": 3})
    with pytest.raises(ValueError, match="unknown pass 'nothing'.*dce"):
        dyncomp.compile(simple, options={"stop_after": "nothing"})
    with pytest.raises(TypeError):
        dyncomp.compile(simple, 3)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_modes(mode):
    assert np.array_equal(dyncomp.compile(simple, mode=mode)(vec()), simple(vec()))


def test_wrong_calls_raise_as_the_function_does():
    compiled = dyncomp.compile(simple, backend="eager")
    for args, kwargs in (((), {}), ((1, 2, 3), {}), ((vec(),), {"nope": 1}), ((vec(),), {"x": 1})):
        with pytest.raises(TypeError) as plain:
            simple(*args, **kwargs)
        with pytest.raises(TypeError) as mine:
            compiled(*args, **kwargs)
        assert str(mine.value) == str(plain.value)


# -- fullgraph ----------------------------------------------------------------------------------------
def test_fullgraph_error_names_file_and_line():
    with pytest.raises(GraphBreakError) as raised:
        dyncomp.compile(breaking, fullgraph=True)(vec())
    line = breaking.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}" in str(raised.value)
    assert "print" in str(raised.value)
    assert isinstance(raised.value, DyncompError)


def test_fullgraph_works_where_nothing_breaks():
    compiled = dyncomp.compile(simple, fullgraph=True)
    assert np.array_equal(compiled(vec()), simple(vec()))


def test_fullgraph_has_no_effects_when_it_fails(capsys):
    def f(x, log):
        log.append(1)
        x[0] = 9
        print("never")
        return x

    x, log = vec(), []
    with pytest.raises(GraphBreakError):
        dyncomp.compile(f, fullgraph=True, backend="eager")(x, log)
    assert log == [] and x[0] == 0.5 and capsys.readouterr().out == ""


# -- backends -----------------------------------------------------------------------------------------
def test_list_backends():
    assert dyncomp.list_backends() == ["eager", "inductor"]


def test_a_backend_of_ones_own():
    seen = []

    def backend(graph, examples):
        seen.append((graph, examples))
        return as_callable(graph, op_table())

    compiled = dyncomp.compile(simple, backend=backend)
    assert np.array_equal(compiled(vec()), simple(vec()))
    ((graph, examples),) = seen
    assert {n.op for n in graph.nodes} >= {"multiply", "add"}
    assert np.array_equal(examples[0], vec())
    compiled(vec())
    assert len(seen) == 1


@pytest.mark.parametrize(
    "name", ["functionalize", "decompose", "fold", "simplify", "cse", "dce", "own", "inductor"]
)
def test_stop_after_each_pass(name):
    def f(x):
        x += 1
        return np.std(x[1:]) + x, x[:2]

    x, y = vec(), vec()
    expected = f(x)
    found = dyncomp.compile(f, options={"stop_after": name, "debug_verify": True})(y)
    assert np.allclose(found[0], expected[0], rtol=1e-13) and np.array_equal(x, y)
    assert np.array_equal(found[1], expected[1]) and np.shares_memory(found[1], y)


# -- stats, reset, disable ------------------------------------------------------------------------------
def test_stats_count_since_reset():
    dyncomp.reset()
    assert set(dyncomp.stats()) >= {
        "frames_seen",
        "frames_captured",
        "frames_skipped",
        "graphs",
        "breaks",
        "recompiles",
        "cache_hits",
        "fallbacks",
    }
    assert dyncomp.stats()["graphs"] == 0 and dyncomp.stats()["breaks"] == {}
    compiled = dyncomp.compile(breaking, backend="eager")
    for n in (5, 5, 5, 6):
        compiled(vec(n))
    stats = dyncomp.stats()
    assert stats["graphs"] == 4
    assert stats["breaks"] == {"print": 2}
    assert stats["frames_captured"] == 4
    assert stats["recompiles"] == 2
    assert stats["cache_hits"] >= 4
    assert stats["fallbacks"] == 0 and stats["internal_errors"] == 0
    dyncomp.reset()
    assert dyncomp.stats()["graphs"] == 0 and dyncomp.stats()["cache_hits"] == 0


def test_reset_forgets_compiled_code():
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return as_callable(graph, op_table())

    compiled = dyncomp.compile(simple, backend=backend)
    compiled(vec())
    dyncomp.reset()
    assert np.array_equal(compiled(vec()), simple(vec()))
    assert len(graphs) == 2


def test_disable():
    @dyncomp.disable
    def untouched(x):
        return x + 1

    def f(x):
        return untouched(x * 2) * 3

    assert np.array_equal(untouched(vec()), vec() + 1)
    report = dyncomp.explain(f, backend="eager")(vec())
    assert np.array_equal(report.result, f(vec()))
    assert [b.id for b in report.breaks] == ["disabled"]
    assert "untouched is disabled" in report.details()
    with pytest.raises(TypeError, match="cannot disable"):
        dyncomp.disable(3)


# -- explain ------------------------------------------------------------------------------------------
def test_explain_of_one_graph():
    report = dyncomp.explain(simple)(vec())
    text = report.details()
    assert np.array_equal(report.result, simple(vec()))
    assert len(report.graphs) == 1 and report.breaks == [] and len(report.kernels) == 1
    assert "1 graph with" in report.summary() and "0 graph breaks" in report.summary()
    assert "test_api.py" in text and "guards:" in text and "float64" in text and "multiply" in text
    assert "runs as:" in text and "def simple(x" in text


def test_explain_of_breaks_and_plain_frames(capsys):
    def f(x):
        y = breaking(x)
        z = np.array([{}], dtype=object)
        return y, z

    report = dyncomp.explain(f, backend="eager")(vec())
    text = report.details()
    assert [b.id for b in report.breaks] == ["print"]
    assert len(report.skipped) == 1 and "numpy.array" in report.skipped[0][2]
    assert "plain Python: " in text
    assert "graph break [print]" in text
    assert "hint:" in text
    assert f"test_api.py:{breaking.__code__.co_firstlineno + 2}" in text
    assert capsys.readouterr().out == "between\n"


def test_explain_shows_source_that_is_python():
    report = dyncomp.explain(breaking, backend="eager")(vec())
    for entry in report.entries:
        if entry.source:
            compile(entry.source, "shown", "exec")


def test_explain_has_the_effects_of_the_call_once(capsys):
    x = vec()

    def f(x):
        x += 1
        print("once")
        return x

    dyncomp.explain(f, backend="eager")(x)
    assert np.array_equal(x, vec() + 1)
    assert capsys.readouterr().out == "once\n"


# -- import ------------------------------------------------------------------------------------------
def test_import_brings_no_array_library_but_numpy():
    others = ("torch", "sympy", "triton", "cupy", "jax")
    script = f"import dyncomp, sys; print([m for m in {others} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_public_names_exist():
    for name in ("compile", "explain", "stats", "disable", "reset", "list_backends"):
        assert callable(getattr(dyncomp, name))
        assert inspect.getdoc(getattr(dyncomp, name))
