"""Arrays of NumPy's from outside in graphs of tensors: copied by ``torch.tensor`` and its like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from tests.frontends.torch.harness import same  # noqa: E402


def offsets(x: Any, a: Any) -> Any:
    return x + x.new_tensor(a).unsqueeze(0)


def offsets_as_floats(x: Any, a: Any) -> Any:
    return x + x.new_tensor(a, dtype=torch.float32)


def copied(x: Any, a: Any) -> Any:
    t = torch.tensor(a)
    t[0] = 9
    return x * t, t


def positions(x: Any, a: Any) -> Any:
    p = np.tile(np.array(range(x.shape[1])), [x.shape[0], 1])
    return x + torch.LongTensor(p) * torch.FloatTensor(p)


PROGRAMS = (offsets, offsets_as_floats, copied, positions)


@pytest.mark.parametrize("f", PROGRAMS)
def test_one_graph(f: Callable[..., Any]) -> None:
    compiled = dyncomp.compile(f, fullgraph=True)
    for numbers in ([0, 3, 5], [7, 1, 2]):
        for dtype in (np.int64, np.float32):
            x, a = torch.arange(6).view(2, 3), np.array(numbers, dtype=dtype)
            same(compiled(x, a), f(x, a), f.__name__)
            assert a.tolist() == numbers


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("how", ["read-only", "in steps"])
def test_other_memory(f: Callable[..., Any], how: str) -> None:
    compiled = dyncomp.compile(f)
    x, a = torch.arange(6).view(2, 3), np.arange(6)[1:4]
    if how == "read-only":
        a.flags.writeable = False
    else:
        a = np.arange(6)[::2]
    for _ in range(2):
        same(compiled(x, a), f(x, a), f.__name__)


def written(x: Any, a: Any) -> Any:
    a += 1
    return x + torch.tensor(a)


def computed(x: Any, a: Any) -> Any:
    return x + torch.tensor(a * 2 + 1, dtype=torch.float64), a.sum()


def kept(x: Any, a: Any) -> Any:
    return x + torch.tensor(a), a * 2


def shared(x: Any, a: Any) -> Any:
    t = torch.from_numpy(a)
    t += 1
    return x + t, t


def warned_of(x: Any, a: Any) -> Any:
    return x + torch.tensor(np.log(a))


@pytest.mark.parametrize("f", [written, computed, kept, shared])
def test_memory_of_the_program(f: Callable[..., Any]) -> None:
    compiled, x = dyncomp.compile(f), torch.ones(2, 3)
    mine, theirs = np.arange(3.0), np.arange(3.0)
    for _ in range(3):
        found, expected = compiled(x, mine), f(x, theirs)
        for one, other in zip(found, expected, strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        np.testing.assert_array_equal(mine, theirs)


def test_warnings_of_numpy() -> None:
    compiled = dyncomp.compile(warned_of)
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            compiled(torch.ones(3), np.arange(3.0))
