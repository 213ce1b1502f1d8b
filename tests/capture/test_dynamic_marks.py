"""``mark_dynamic`` and ``mark_static``."""

from __future__ import annotations

import gc
import importlib.util

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.sizes.marks import MARKS


def doubled(x):
    return x * 2


def entries(compiled) -> int:
    return len(compiled.config.records.entries)


def marked(size, **bounds):
    x = np.arange(float(size))
    dyncomp.mark_dynamic(x, 0, **bounds)
    return x


def test_one_entry_from_the_start():
    compiled = dyncomp.compile(doubled, backend="eager")
    compiled(marked(5))
    for size in (2, 3, 100):
        np.testing.assert_array_equal(compiled(np.arange(float(size))), np.arange(float(size)) * 2)
    assert entries(compiled) == 1


def test_bounds_are_guards():
    compiled = dyncomp.compile(doubled, backend="eager")
    compiled(marked(5, min=4, max=10))
    compiled(np.ones(4))
    compiled(np.ones(10))
    assert entries(compiled) == 1
    compiled(np.ones(11))
    assert entries(compiled) == 2


def test_bounds_are_facts():
    def f(x):
        return x * 2 if len(x) < 50 else x

    compiled = dyncomp.compile(f, backend="eager")
    compiled(marked(5, max=20))
    assert not any("50" in str(guard) for guard in compiled.config.records.entries[0].guards)


def test_with_dynamic_false():
    compiled = dyncomp.compile(doubled, backend="eager", dynamic=False)
    compiled(marked(5))
    compiled(np.ones(6))
    assert entries(compiled) == 1


@pytest.mark.parametrize("size", [0, 1])
def test_empty_and_one_have_code_of_their_own(size):
    compiled = dyncomp.compile(doubled, backend="eager")
    assert compiled(marked(size)).shape == (size,)
    assert compiled(np.ones(7)).shape == (7,)


def test_a_fixed_size_is_an_error():
    def f(x):
        y = x + 1
        return y.reshape(5, 1)

    compiled = dyncomp.compile(f, backend="eager")
    line = f.__code__.co_firstlineno + 2
    with pytest.raises(dyncomp.ConstraintError, match=rf"x, axis 0.* fixes this size to 5 at .*:{line}\b"):
        compiled(marked(5))
    # without the mark it is an entry for this size
    assert compiled(np.ones(5)).shape == (5, 1)


def test_relations_between_sizes_are_no_error():
    compiled = dyncomp.compile(lambda x, y: x + y, backend="eager")
    compiled(marked(5), marked(5))
    compiled(np.ones(8), np.ones(8))
    assert entries(compiled) == 1


def test_several_axes():
    x = np.ones((4, 3, 5))
    dyncomp.mark_dynamic(x, (0, -1))
    compiled = dyncomp.compile(doubled, backend="eager")
    compiled(x)
    compiled(np.ones((7, 3, 2)))
    assert entries(compiled) == 1
    compiled(np.ones((7, 4, 2)))
    assert entries(compiled) == 2


def test_static_stays_constant():
    compiled = dyncomp.compile(doubled, backend="eager")
    first = np.ones((4, 3))
    dyncomp.mark_static(first, 0)
    compiled(first)
    for rows in (5, 6):
        compiled(np.ones((rows, 3)))
    assert entries(compiled) == 3
    compiled(np.ones((6, 4)))
    compiled(np.ones((6, 5)))
    assert entries(compiled) == 4


def test_static_with_dynamic_true():
    compiled = dyncomp.compile(doubled, backend="eager", dynamic=True)
    first = np.ones((4, 3))
    dyncomp.mark_static(first)
    compiled(first)
    compiled(np.ones((5, 3)))
    assert entries(compiled) == 2


def test_bad_arguments():
    with pytest.raises(IndexError):
        dyncomp.mark_dynamic(np.ones(3), 1)
    with pytest.raises(ValueError, match="size 3"):
        dyncomp.mark_dynamic(np.ones(3), 0, min=4)
    with pytest.raises(TypeError):
        dyncomp.mark_static([1, 2])


def test_marks_go_with_the_array():
    x = marked(4)
    key = id(x)
    assert key in MARKS._marks._known
    del x
    gc.collect()
    assert key not in MARKS._marks._known


def test_marks_survive_a_break():
    def f(x):
        y = x + 1
        print(end="")
        return y + x

    compiled = dyncomp.compile(f, backend="eager")
    compiled(marked(5))
    compiled(np.ones(9))
    # the function and its continuation, whose ``y`` nobody marked
    assert entries(compiled) == 2


def test_unmarked_arrays_of_the_same_size_follow():
    compiled = dyncomp.compile(lambda x, y: x + y, backend="eager")
    compiled(marked(5), np.ones(5))
    compiled(np.ones(8), np.ones(8))
    assert entries(compiled) == 1


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_tensors():
    import torch

    x = torch.ones(5)
    dyncomp.mark_dynamic(x, 0, max=50)
    compiled = dyncomp.compile(doubled, backend="eager")
    compiled(x)
    assert compiled(torch.ones(9)).shape == (9,)
    assert entries(compiled) == 1
