"""``compile(..., verify=...)``: what is right is trusted, what is wrong is never seen."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook
from dyncomp.minifier.program import interpreted
from dyncomp.verification import entries, isolated


def children() -> set[str]:
    """Child processes, those that ended but were not waited for among them."""
    return {
        pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()
    }


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dyncomp.reset()
    before = children()  # other tests leave servers of `multiprocessing`
    yield
    dyncomp.reset()
    assert children() <= before


def counts() -> tuple[int, int, int]:
    stats = dyncomp.stats()
    return stats["verified"], stats["mismatches"], stats["unverified"]


def x() -> Any:
    return np.arange(12.0).reshape(3, 4)


LOG: list[float] = []


def several(a: Any, *rest: Any, scale: float = 2.0, **named: Any) -> Any:
    y = np.sin(a) * scale + rest[0]
    a += 1.0
    LOG.append(1.0)
    return {"y": y, "view": a[1:], "w": named["w"] * 2.0}


def test_right_code_is_trusted_after_one_call() -> None:
    compiled = dyncomp.compile(several, verify="first")
    LOG.clear()
    for call in range(3):
        a = x()
        found = compiled(a, 3.0, w=np.ones(2))
        assert np.shares_memory(found["view"], a)
        assert a[0, 0] == 1.0
        assert len(LOG) == call + 1  # effects happen once
    assert counts() == (1, 0, 0)
    (entry,) = _hook.cache_entries(several.__code__, compiled.config)
    assert entry.code is not None
    assert not any(isinstance(constant, entries.Verified) for constant in entry.code.co_consts)


@pytest.mark.parametrize(("asked", "verified"), [(2, 2), ("always", 4), ("1", 1), (0, 0)])
def test_how_often(asked: Any, verified: int) -> None:
    compiled = dyncomp.compile(lambda a: np.cos(a) + 1.0, verify=asked)
    for _ in range(4):
        compiled(x())
    assert counts() == (verified, 0, 0)


def test_bad_values() -> None:
    for bad in ("often", -2, 1.5, True):
        with pytest.raises(ValueError, match="verify must be 'first', 'always' or a number of calls"):
            dyncomp.compile(several, verify=bad)


def test_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNCOMP_VERIFY", "first")
    dyncomp.compile(lambda a: a * 2.0)(x())
    assert counts() == (1, 0, 0)


def test_every_form_is_compared() -> None:
    compiled = dyncomp.compile(lambda a: a * 2.0, verify="first", dynamic=False)
    for n in (3, 4, 5):
        compiled(np.ones(n))
    assert counts() == (3, 0, 0)


def test_breaks_loops_and_closures(capfd: pytest.CaptureFixture[str]) -> None:
    offset = x()
    seen = []

    def f(a: Any) -> Any:
        b = a + offset
        print("here")
        seen.append(b.sum())
        for _ in range(30):
            b = b * 0.5 + 1.0
        return b

    compiled = dyncomp.compile(f, verify="first")
    for _ in range(4):
        np.testing.assert_allclose(compiled(x()), f(x()))
    assert capfd.readouterr().out == "here\n" * 8
    assert len(seen) == 8
    verified, wrong, _ = counts()
    assert verified >= 2
    assert not wrong


def raises(a: Any) -> Any:
    a[0] = 7.0
    return a + np.ones((2, 3))


def test_exceptions_are_the_originals() -> None:
    compiled = dyncomp.compile(raises, verify="always")
    for _ in range(2):
        with pytest.raises(ValueError, match="could not be broadcast") as caught:
            compiled(x())
        files = {frame.path.name for frame in caught.traceback}
        assert "entries.py" not in files
        assert "calls.py" not in files


def test_methods_and_callable_objects() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = x()

        def __call__(self, a: Any) -> Any:
            self.w = self.w + 1.0
            return a * self.w

    model = Model()
    compiled = dyncomp.compile(model, verify="first")
    plain = Model()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x()), plain(x()))
    assert counts()[1] == 0


# -- code that is wrong -----------------------------------------------------------------------------
def backend_that(spoil: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A backend whose graphs do what they should, and then ``spoil(results, inputs)``."""

    def backend(graph: Any, examples: Any) -> Any:
        run = interpreted(graph, examples)
        return lambda *args: spoil(run(*args), args)

    return backend


def wrong_values(results: Any, args: Any) -> Any:
    return [r + 1e-3 for r in results]


def wrong_dtype(results: Any, args: Any) -> Any:
    return [np.asfortranarray(r) for r in results]


def wrong_mutation(results: Any, args: Any) -> Any:
    args[0][0, 0] = 99.0
    return results


def wrong_alias(results: Any, args: Any) -> Any:
    args[0][...] = results[0]
    return [args[0]]


def crashes(results: Any, args: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves(results: Any, args: Any) -> Any:
    os._exit(0)


def f(a: Any) -> Any:
    return np.exp(a * 0.1) + a


@pytest.mark.parametrize("spoil", [wrong_values, wrong_dtype, wrong_mutation, wrong_alias, crashes, leaves])
def test_wrong_code_is_never_seen(spoil: Any, caplog: pytest.LogCaptureFixture) -> None:
    compiled = dyncomp.compile(f, verify="first", backend=backend_that(spoil))
    with caplog.at_level(logging.WARNING, "dyncomp"):
        for _ in range(3):
            a = x()
            np.testing.assert_array_equal(compiled(a), f(x()))
            np.testing.assert_array_equal(a, x())
    assert counts() == (0, 1, 0)
    (told,) = [record.getMessage() for record in caplog.records if "does not do what" in record.getMessage()]
    assert "f at " in told
    assert "test_verify.py" in told
    assert "plain Python runs from now on" in told
    (skip,) = [reason for name, _, reason in compiled.config.records.skipped if name == "f"]
    assert "does not do what plain Python does" in skip


def test_calls_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_LEAST_SECONDS", 0.5)
    monkeypatch.setattr(entries, "_LONGER", 0.0)
    compiled = dyncomp.compile(f, verify="first", backend=backend_that(lambda results, args: time.sleep(60)))
    start = time.monotonic()
    np.testing.assert_array_equal(compiled(x()), f(x()))
    assert time.monotonic() - start < 30.0
    assert counts() == (0, 1, 0)


def test_rounding_that_grew_is_no_mismatch() -> None:
    def cancelled(a: Any) -> Any:
        noise = (a + 1e8).sum() - a.sum() - 12e8
        return noise / np.abs(noise + 1e-30)  # one or minus one, by how sums are rounded

    def noisy(results: Any, args: Any) -> Any:
        return [-r for r in results]

    compiled = dyncomp.compile(cancelled, verify="first", backend=backend_that(noisy))
    compiled(x() * np.pi)
    assert counts() == (1, 0, 0)


def test_processes_that_cannot_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise isolated.CannotFork("a process that uses a GPU cannot be copied")

    monkeypatch.setattr(isolated, "check_fork", refuse)
    compiled = dyncomp.compile(f, verify="first")
    np.testing.assert_allclose(compiled(x()), f(x()))
    assert counts() == (0, 0, 1)


# -- torch --------------------------------------------------------------------------------------------
def test_modules_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    layers = [nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2)]
    model = nn.Sequential(*layers)
    compiled = dyncomp.compile(model, verify="first")
    for _ in range(3):
        compiled(torch.randn(4, 8)).sum().backward()
    assert counts()[0] >= 1
    assert counts()[1] == 0


def test_a_training_step_whose_optimizer_divides_rounding_by_itself() -> None:
    """The gradient of a bias before batch normalisation is all rounding, and Adam makes steps of it."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters())

    def step(a: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = dyncomp.compile(step, verify=2)
    for _ in range(3):
        compiled(torch.randn(32, 64), torch.randint(10, (32,)))
    assert counts() == (2, 0, 0)


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from dyncomp.prims.table import TABLE

    row = TABLE["tanh"]
    right = row.vjp

    def negated(ops: Any, *args: Any, **kwargs: Any) -> Any:
        return tuple(None if g is None else ops.negative(g) for g in right(ops, *args, **kwargs))

    object.__setattr__(row, "vjp", negated)
    try:
        compiled = dyncomp.compile(torch.tanh, verify="first")
        a = torch.randn(5, requires_grad=True)
        compiled(a).sum().backward()
        assert counts() == (0, 1, 0)
        assert (a.grad > 0).all()  # plain PyTorch's
    finally:
        object.__setattr__(row, "vjp", right)
