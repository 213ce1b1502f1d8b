"""Tasks of PyTorch programs: gradients across threads, modes, recurrent layers at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dyncomp
from dyncomp.runtime import _launch
from dyncomp.tasks.pool import POOL

torch: Any = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = _launch.num_threads()
    _launch.set_num_threads(4)
    torch.manual_seed(0)
    yield
    _launch.set_num_threads(before)


def layers(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = torch.tanh(x @ w)
    return x


def both(x: Any, v: Any, w: Any) -> Any:
    futures = [dyncomp.fork(layers, x, each) for each in (v, w)]
    return (dyncomp.wait(futures[0]) * dyncomp.wait(futures[1])).sum()


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients(compiled: bool) -> None:
    x, v, w = (torch.randn(32, 32, requires_grad=True, dtype=torch.float64) for _ in range(3))
    (layers(x, v) * layers(x, w)).sum().backward()
    want = [t.grad.clone() for t in (x, v, w)]
    run = dyncomp.compile(both) if compiled else both
    for _ in range(3):
        for t in (x, v, w):
            t.grad = None
        run(x, v, w).backward()
        for t, grad in zip((x, v, w), want, strict=True):
            torch.testing.assert_close(t.grad, grad)


def test_gradients_of_compiled_functions_in_tasks() -> None:
    x, v, w = (torch.randn(32, 32, requires_grad=True, dtype=torch.float64) for _ in range(3))
    fast = dyncomp.compile(layers)
    (layers(x, v) * layers(x, w)).sum().backward()
    want = [t.grad.clone() for t in (x, v, w)]
    for t in (x, v, w):
        t.grad = None
    a, b = dyncomp.fork(fast, x, v), dyncomp.fork(fast, x, w)
    (dyncomp.wait(a) * dyncomp.wait(b)).sum().backward()
    for t, grad in zip((x, v, w), want, strict=True):
        torch.testing.assert_close(t.grad, grad)


def test_modes_of_the_caller_hold() -> None:
    def looks() -> tuple[Any, ...]:
        a = torch.ones(4, 4, requires_grad=True)
        flags = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        torch.set_grad_enabled(False)
        return *flags, (a @ a).dtype, torch.ones(1).device.type

    usual = (True, False, torch.float32, "cpu")
    assert dyncomp.wait(dyncomp.fork(looks)) == usual
    with torch.no_grad():
        assert dyncomp.wait(dyncomp.fork(looks)) == (False, *usual[1:])
    with torch.inference_mode():
        assert dyncomp.wait(dyncomp.fork(looks))[:2] == (False, True)
    with torch.autocast("cpu", torch.bfloat16):
        assert dyncomp.wait(dyncomp.fork(looks))[2] is torch.bfloat16
    with torch.device("meta"):
        assert dyncomp.wait(dyncomp.fork(looks))[3] == "meta"
    assert torch.is_grad_enabled()
    assert dyncomp.wait(dyncomp.fork(looks)) == usual


class Ensemble(torch.nn.Module):  # type: ignore[misc]
    """Recurrent layers in both directions, of several models."""

    def __init__(self, models: int, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.LSTM(width, width) for _ in range(2 * models)])

    def forward(self, x: Any) -> Any:
        found = [layer(x)[0] for layer in self.layers[::2]]
        found += [torch.flip(layer(torch.flip(x, [0]))[0], [0]) for layer in self.layers[1::2]]
        return torch.stack(found).mean(0)


def test_recurrent_layers_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, x = Ensemble(2, 96).eval(), torch.randn(24, 24, 96)
    groups: list[int] = []
    run = POOL.run_together
    monkeypatch.setattr(POOL, "run_together", lambda calls: (groups.append(len(calls)), run(calls))[1])
    with torch.no_grad():
        want = ensemble(x)
        fast = dyncomp.compile(ensemble)
        for _ in range(4):
            assert torch.equal(fast(x), want)
        assert groups == [4] * 4
        apart = dyncomp.compile(ensemble, options={"parallel_branches": False})
        assert torch.equal(apart(x), want) and groups == [4] * 4
        futures = [dyncomp.fork(fast, x) for _ in range(6)]
        assert all(torch.equal(dyncomp.wait(f), want) for f in futures)


def test_errors_in_calls_at_the_same_time() -> None:
    """All calls have ended, and the first error comes out."""
    ended: list[int] = []

    def call(number: int) -> Any:
        def run() -> None:
            ended.append(number)
            if number in (1, 2):
                raise ValueError(str(number))

        return run

    with pytest.raises(ValueError, match="1"):
        POOL.run_together([call(k) for k in range(4)])
    assert sorted(ended) == [0, 1, 2, 3]
