"""Replayed launches on a pretended GPU: whose memory results and arguments are.

Run by ``test_gpu_replay`` in a process of its own; on a GPU by ``tests/gpu/test_replay.py``.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.inductor.gpu import graphs  # noqa: E402
from tests.inductor.gpu_simulator import pretended, r  # noqa: E402, F401


@pytest.fixture(autouse=True)
def everything_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 1)


def several(x: Any, w: Any) -> Any:
    y = torch.tanh(x * 2) + w
    return y, y.sum(0), y[1:]


def updated(cache: Any, x: Any) -> Any:
    cache.mul_(0.5).add_(x)
    return cache.sum(1)


def stepped(x: Any) -> Any:
    return x * 0.5 + 1


def replayed(function: Callable[..., Any]) -> Any:
    return dyncomp.compile(function, fullgraph=True, mode="reduce-overhead")


class Counted:
    """How many copies a library made, with arrays counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies = self.clones = self.recordings = 0
        original = graphs.Replayed.__init__

        def init(replayed: Any, *arguments: Any) -> None:
            original(replayed, *arguments)
            replayed.graphs = _Watched(self, replayed.graphs)

        monkeypatch.setattr(graphs.Replayed, "__init__", init)


class _Watched:
    def __init__(self, counted: Counted, library: Any) -> None:
        self.counted, self.library = counted, library

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def copy(self, targets: Any, sources: Any) -> None:
        self.counted.copies += 1
        self.library.copy(targets, sources)

    def clone(self, array: Any) -> Any:
        self.counted.clones += 1
        return self.library.clone(array)

    def record(self, *arguments: Any) -> Any:
        self.counted.recordings += 1
        return self.library.record(*arguments)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def equal(got: Any, want: Any) -> None:
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def test_a_loop_copies_nothing(counted: Counted, device: str = "cpu") -> None:
    """The result of one call is still held at the next: two recordings take turns."""
    compiled = replayed(several)
    x, w = r(20, 30, device=device), r(20, 30, seed=1, device=device)
    places = set()
    for k in range(12):
        x.fill_(k / 7)
        result = compiled(x, w)
        equal(result, several(x, w))
        places.add(result[0].data_ptr())
    assert (counted.recordings, counted.clones, counted.copies) == (2, 0, 0)
    assert len(places) <= 4  # of the first calls, and two recordings


def test_what_is_held_is_not_written(counted: Counted, device: str = "cpu") -> None:
    compiled = replayed(several)
    w = r(20, 30, seed=1, device=device)
    kept = []
    for k in range(12):
        x = r(20, 30, seed=k, device=device)
        kept.append((x, compiled(x, w)))
    for x, result in kept:
        equal(result, several(x, w))
    assert counted.clones
    assert counted.recordings <= 2 * (graphs.MOST_GIVEN + 1)


@pytest.mark.parametrize("part", range(3))
def test_a_part_holds_all(part: int, counted: Counted, device: str = "cpu") -> None:
    """A view of a result, or one of several results, keeps the recording."""
    compiled = replayed(several)
    x, w = r(20, 30, device=device), r(20, 30, seed=1, device=device)
    kept = []
    for k in range(6):
        x.fill_(k / 5)
        result = compiled(x, w)
        kept.append((result[part].reshape(-1)[3:], several(x, w)[part].reshape(-1)[3:]))
        del result
    for got, want in kept:
        equal(got, want)


def test_results_are_new_tensors(counted: Counted, device: str = "cpu") -> None:
    compiled = replayed(several)
    x, w = r(20, 30, device=device), r(20, 30, seed=1, device=device)
    for _ in range(6):
        y, total, part = compiled(x, w)
        plain = several(x, w)
        assert (y._version, y._base, total._base, y.is_leaf) == (0, None, None, True)
        assert y.untyped_storage().nbytes() == plain[0].untyped_storage().nbytes()
        assert part.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
        assert y.is_inference() == plain[0].is_inference()
        y.add_(1)
        equal(part, plain[2] + 1)
    died = weakref.ref(y)
    del y, part
    gc.collect()
    assert died() is None


def test_what_is_written_stays_in_place(counted: Counted, device: str = "cpu") -> None:
    """A cache that lies still is neither copied in nor out, and is written once a call."""
    compiled = replayed(updated)
    cache, other = r(16, 32, device=device), r(16, 32, device=device)
    x = r(16, 32, seed=1, device=device)
    for _ in range(8):
        equal(compiled(cache, x), updated(other, x))
        equal(cache, other)
    assert counted.copies <= 2  # what kernels are built with, before they are recorded
    moved = cache.clone()
    for _ in range(3):
        equal(compiled(moved, x), updated(other, x))
        equal(moved, other)


def test_unaligned_arrays_are_copied(device: str = "cpu") -> None:
    compiled = replayed(updated)
    memory, x = r(16 * 32 + 1, device=device), r(16, 32, seed=1, device=device)
    cache = memory[1:].view(16, 32)
    other = cache.clone()
    for _ in range(6):
        equal(compiled(cache, x), updated(other, x))
        equal(cache, other)


def test_results_are_the_next_arguments(device: str = "cpu") -> None:
    compiled = replayed(stepped)
    x = other = r(40, 30, device=device)
    for _ in range(20):
        x, other = compiled(x), stepped(other)
        equal(x, other)


def test_a_result_may_get_other_memory(device: str = "cpu") -> None:
    compiled = replayed(stepped)
    for k in range(12):
        x = r(40, 30, seed=k, device=device)
        y = compiled(x)
        equal(y, stepped(x))
        y.resize_(80, 60).fill_(7)


def staged(x: Any, w: Any) -> Any:
    return torch.mm(torch.mm(torch.mm(x, w), w), w) + 1


def test_temporaries_lie_apart_from_results(device: str = "cpu") -> None:
    """One recording is replayed while the result of another is held."""
    compiled = replayed(staged)
    w = r(64, 64, seed=1, device=device) / 8
    kept: list[Any] = []
    for k in range(14):
        x = r(64, 64, seed=k, device=device)
        kept = [*kept[-1:], (compiled(x, w), staged(x, w))]
        for got, want in kept:
            equal(got, want)
