"""``compile(dynamic={…})``: axes of arguments by name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import ConstraintError


def scaled(x, y=None, *, k=2):
    return x * k if y is None else x * k + y


def entries(compiled):
    return len(compiled.config.records.entries)


def compile_eager(function, dynamic):
    return dyncomp.compile(function, backend="eager", dynamic=dynamic, options={"debug_verify": True})


@pytest.mark.parametrize("dynamic", [{"x": 0}, {"x": -1}, {"x": True}, {"x": {0: True}}, {"x": (0,)}])
def test_one_entry_from_the_start(dynamic):
    compiled = compile_eager(scaled, dynamic)
    for size in (5, 2, 3, 100):
        assert np.array_equal(compiled(np.arange(float(size))), np.arange(float(size)) * 2)
    assert entries(compiled) == 1


def test_other_axes_and_arguments_are_automatic():
    compiled = compile_eager(scaled, {"x": 0})
    compiled(np.ones((4, 3)))
    compiled(np.ones((5, 3)))
    assert entries(compiled) == 1
    compiled(np.ones((5, 4)))
    compiled(np.ones((6, 5)))
    assert entries(compiled) == 2


def test_bounds():
    def branching(x):
        return x * 2 if len(x) < 50 else x

    compiled = compile_eager(branching, {"x": {0: (4, 20)}})
    for size in (4, 20, 5):
        assert np.array_equal(compiled(np.ones(size)), np.full(size, 2.0))
    assert entries(compiled) == 1
    assert not any("50" in str(guard) for guard in compiled.config.records.entries[0].guards)
    for size in (21, 3, 100, 0, 1):
        assert np.array_equal(compiled(np.ones(size)), branching(np.ones(size)))


def test_names():
    compiled = compile_eager(scaled, {"x": {0: "n"}, "y": {0: ("n", 2, 64)}})
    for size in (5, 6, 7):
        assert np.array_equal(compiled(np.ones(size), np.ones(size)), np.full(size, 3.0))
    assert entries(compiled) == 1
    x, y = (var.var.type.shape for var in compiled.config.records.entries[0].graph.inputs)
    assert str(x) == str(y)
    assert np.array_equal(compiled(np.ones((5, 5)), np.ones((1, 5))), np.full((5, 5), 3.0))
    with pytest.raises(ValueError, match="broadcast"):
        compiled(np.ones(5), np.ones(6))


def test_numbers():
    compiled = compile_eager(scaled, {"k": True})
    for k in (2, 3, 4):
        assert np.array_equal(compiled(np.ones(3), k=k), np.full(3, float(k)))
    assert entries(compiled) == 1


def test_a_size_that_the_program_fixes():
    def fixed(x):
        return x.reshape(5, 2)

    with pytest.raises(ConstraintError, match="dynamic= of x, axis 0"):
        compile_eager(fixed, {"x": 0})(np.ones(10))


def test_callees_are_not_meant():
    @dyncomp.disable(recursive=False)
    def between(x):
        return scaled(x)

    def outer(x):
        return between(x) + 1

    compiled = compile_eager(outer, {"x": 0})
    for size in (5, 6, 7):
        assert np.array_equal(compiled(np.ones(size)), np.full(size, 3.0))


def test_methods_and_objects():
    class Model:
        def __call__(self, x):
            return x + 1

        def run(self, x):
            return x + 2

    for function, expected in ((Model(), 2.0), (Model().run, 3.0)):
        compiled = compile_eager(function, {"x": 0})
        for size in (4, 5):
            assert np.array_equal(compiled(np.ones(size)), np.full(size, expected))


def test_pickled():
    compiled = pickle.loads(pickle.dumps(compile_eager(scaled, {"x": {0: ("n", 2, None)}})))
    assert np.array_equal(compiled(np.ones(3)), np.full(3, 2.0))
    compiled(np.ones(4))
    assert entries(compiled) == 1


@pytest.mark.parametrize(
    ("dynamic", "error"),
    [
        ({"z": 0}, ValueError),
        ({0: 0}, TypeError),
        ({"x": 1.5}, TypeError),
        ({"x": {0: 3}}, TypeError),
        ({"x": {0: (5, 3)}}, ValueError),
        ({"x": {0: (-1, 3)}}, ValueError),
        ({"x": {"n": True}}, TypeError),
        ("x", TypeError),
    ],
)
def test_what_is_refused(dynamic, error):
    with pytest.raises(error, match="dynamic|integer"):
        compile_eager(scaled, dynamic)


def test_torch():
    torch = pytest.importorskip("torch")
    compiled = compile_eager(scaled, {"x": {0: "n"}, "y": {0: "n"}})
    for size in (5, 6, 7):
        assert torch.equal(compiled(torch.ones(size, 3), torch.ones(size, 3)), torch.full((size, 3), 3.0))
    assert entries(compiled) == 1
