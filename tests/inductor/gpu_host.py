"""Tensors on the CPU, and on a second device, beside those of a pretended GPU.

Run by ``test_gpu_host`` in a process of its own; on a GPU by ``tests/gpu/test_host.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.inductor.gpu import graphs  # noqa: E402
from tests.inductor.gpu_simulator import ON_CPU, ON_SECOND, InterpretedDriver, pretended, r  # noqa: E402, F401


def made(device: str) -> tuple[Any, Any]:
    """A tensor on the GPU, and a number on the CPU."""
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(0)).to(device)
    s = torch.tensor(1.5)
    ON_CPU.append(s)
    return x, s


def number_first(x: Any, s: Any) -> Any:
    return (s + 1) * x


def number_last(x: Any, s: Any) -> Any:
    return torch.where(x > s, x / s, s - x) + torch.maximum(x, s)


def scaled(x: Any, s: Any) -> Any:
    scale = torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float) * 3)
    return x.half() / scale.to(dtype=torch.half), x.double() * s


def in_place(x: Any, s: Any) -> Any:
    y = x * 2
    y += s
    y.mul_(s).masked_fill_(y > 1, s)
    y[0] = s
    return y.fill_(s) + y, x.clone().copy_(s)


def results(x: Any, s: Any) -> Any:
    return x + s, s * 2, torch.arange(3), s, torch.full((2,), 4.0) + s


def results_of_numbers(x: Any, s: Any) -> Any:
    t = s.double()
    return t.sum(), x.round().sum() + t, torch.stack([s, s]), torch.zeros(2, device=x.device) + s


def moved(x: Any, s: Any) -> Any:
    places = torch.arange(8).to(x.device) + torch.tensor(2.0).to(x)
    return x + places + s.to(x.device).view(1), torch.tensor([1.0, 2.0]).type_as(x)[:1] * x


def said(x: Any, s: Any) -> Any:
    return x * s, s.is_cpu, s.is_cuda, (s + 1).device.type, torch.tensor(2).is_cpu


WHOLE = [number_first, number_last, scaled, in_place, results, results_of_numbers, moved, said]


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        for mine, theirs in zip(got, want, strict=True):
            same(mine, theirs)
    elif isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)  # devices and types are compared, too
    else:
        assert got == want


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("function", WHOLE, ids=[f.__name__ for f in WHOLE])
def test_whole(function: Any, mode: str, monkeypatch: pytest.MonkeyPatch, device: str = "cpu") -> None:
    """Numbers are read anew at each call."""
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 1)
    x, s = made(device)
    compiled = dyncomp.compile(function, fullgraph=True, mode=mode)
    for k in range(6):
        s.fill_(1.5 + k / 2)
        same(compiled(x, s), function(x, s))


def written(x: Any, s: Any) -> Any:
    y = x * s
    s.add_(1)
    return y + s


def aliased(x: Any, s: Any) -> Any:
    return x * s, s.detach()


def shared(x: Any, s: Any) -> Any:
    t = s + 1
    return x * t, t, t.view(1)


def indexed(x: Any, s: Any) -> Any:
    return x[torch.arange(2)] * s


def shifted(x: Any, s: Any) -> Any:
    return s.add(1).mul_(x.sum())


@pytest.mark.parametrize("function", [written, aliased, shared, indexed, shifted], ids=lambda f: f.__name__)
def test_left_to_plain_python(function: Any, device: str = "cpu") -> None:
    """What writes or hands out memory of the CPU, and what torch mixes in ways of its own or not at all."""
    compiled = dyncomp.compile(function)
    (x, s), (_, t) = made(device), made(device)
    for _ in range(3):
        try:
            want = function(x, t)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=str(error)[:20]):
                compiled(x, s)
            continue
        got = compiled(x, s)
        same(got, want)
        same(s, t)
        if function is aliased:
            assert got[1].data_ptr() == s.data_ptr()
        if function is shared:
            assert got[1].data_ptr() == got[2].data_ptr()


def with_number(y: Any, s: Any) -> Any:
    return y * s, s * y, y + s, s - y, y / s, torch.add(y, s, alpha=3), y.clone().mul_(s)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_numbers_beside_halves_are_not_rounded(dtype: Any, device: str = "cpu") -> None:
    """As on a GPU (on the CPU itself torch rounds some of them)."""
    x, s = made(device)
    y = x.to(dtype)
    s.fill_(0.1)
    wide = with_number(y.float(), s)
    for got, want in zip(dyncomp.compile(with_number, fullgraph=True)(y, s), wide, strict=True):
        torch.testing.assert_close(got, want.to(dtype))
        # the interpreter truncates to bfloat16, a GPU's library multiplies by reciprocals
        assert torch.equal(got, want.to(dtype)) or dtype is torch.bfloat16 or device != "cpu"


def test_numbers_on_the_device_are_rounded() -> None:
    x, s = made("cpu")
    ON_CPU.clear()
    y = x.half()
    s.fill_(0.1)
    assert torch.equal(dyncomp.compile(lambda y, s: y * s)(y, s), y * s.half())


# -- a second device ----------------------------------------------------------------------------
@dyncomp.disable
def on_second(x: Any) -> Any:
    if x.device.type == "cuda":
        return x.to("cuda:1")
    ON_SECOND.append(x.clone())
    return ON_SECOND[-1]


def handed_on(x: Any) -> Any:
    y = on_second(torch.tanh(x) * 2)
    return torch.softmax(y, -1) - 3


def beside(x: Any, y: Any) -> Any:
    return torch.tanh(x) * 2, torch.tanh(y) + 1


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_each_graph_is_launched_on_its_device(
    mode: str, monkeypatch: pytest.MonkeyPatch, device: str = "cpu"
) -> None:
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 1)
    compiled = dyncomp.compile(handed_on, mode=mode)
    for k in range(4):
        x = r(20, 30, seed=k, device=device)
        same(compiled(x), handed_on(x))
    if device == "cpu":
        assert {*InterpretedDriver.devices} == {0, 1}
        assert InterpretedDriver.devices[:2] == [0, 1]


def test_a_second_device_breaks_the_graph(device: str = "cpu") -> None:
    x, y = r(20, 30, device=device), on_second(r(20, 30, seed=1, device=device))
    report = dyncomp.explain(beside)(x, y)
    assert any("cuda:1 beside others elsewhere" in str(b) for b in report.breaks)
    assert "@cuda:0" in report.details()
    compiled = dyncomp.compile(beside)
    for _ in range(2):
        same(compiled(x, y), beside(x, y))


def test_large_tensors_stay_outside(device: str = "cpu") -> None:
    x, _ = made(device)
    many = torch.arange(8.0)
    ON_CPU.append(many)
    report = dyncomp.explain(lambda x, many: (x * 2, many + 1))(x, many)
    assert any("beside others elsewhere" in str(b) for b in report.breaks)
