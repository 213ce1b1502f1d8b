"""Programs on tensors that are taken for CUDA's: from capture to kernels in Triton's interpreter.

Run by ``test_gpu_path``, in a process with ``TRITON_INTERPRET=1``.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import dyncomp
from dyncomp.frontends.torch.frontend import TorchFrontend
from dyncomp.inductor.gpu import convolution, products, templates
from tests.inductor.gpu_simulator import RECORDED, InterpretedDriver, pretended, r  # noqa: F401


def chain(x: Any, y: Any) -> Any:
    return torch.tanh(x * y + 1.5).clamp(-0.5, 0.9) - x


def softmax(x: Any) -> Any:
    return torch.softmax(x * 2, -1)


def likelihoods(x: Any) -> Any:
    return torch.logsumexp(x, -1), torch.log_softmax(x, -1).amax(-1), torch.softmax(x, -1).amax(-1)


def entropies(x: Any, k: Any, w: Any) -> Any:
    smooth = F.cross_entropy(x, k, w, ignore_index=2, label_smoothing=0.1)
    return F.cross_entropy(x, k), F.cross_entropy(x, k, w, ignore_index=2, reduction="none"), smooth


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def linear(x: Any, w: Any, b: Any) -> Any:
    return F.relu(F.linear(x, w, b))


def scores(x: Any, y: Any) -> Any:
    return (x @ y.transpose(-1, -2)) / 3 + 1


def views(x: Any) -> Any:
    y = x + 1
    return y, y[1:], x.t(), y.sum(0)


def in_place(x: Any) -> Any:
    x.mul_(2).add_(1)
    x[0] = 0
    return x.max()


def picked(x: Any, i: Any) -> Any:
    return x[i] * 2, torch.gather(x, 1, i[:, None])


def running(x: Any) -> Any:
    return torch.cumsum(x, 1), x.argmax(1), x.amax(0)


def turned(x: Any, y: Any) -> Any:
    return x.t() + y


def number(x: Any, a: float) -> Any:
    return x * a + a


def moments(x: Any) -> Any:
    return x.var(), x.mean(), x.std(0)


def convolved(x: Any, w: Any, b: Any) -> Any:
    return F.relu(F.conv2d(x, w, b, padding=1))


def extreme_rows(*shape: int) -> Any:
    """Rows with an infinite maximum, with -inf throughout, with a NaN or a large number at their end."""
    x = r(*shape)
    x[0, 7] = math.inf
    x[1] = -math.inf
    x[2, -1] = math.nan
    x[3, -1] = 1e30
    x[4, ::2] = -math.inf
    return x


CASES = [
    (chain, lambda: (r(33, 70), r(33, 70, seed=1))),
    (chain, lambda: (r(33, 70, dtype=torch.float16), r(70, dtype=torch.float16, seed=1))),
    (chain, lambda: (r(99)[1:], r(99)[:-1])),
    (softmax, lambda: (r(20, 300),)),
    (softmax, lambda: (r(2, 9000),)),
    (softmax, lambda: (r(2, 40_000),)),
    (likelihoods, lambda: (extreme_rows(6, 40_000),)),
    (likelihoods, lambda: (extreme_rows(6, 500),)),
    (entropies, lambda: (r(40, 50), torch.arange(40) % 7, r(50).abs())),
    (entropies, lambda: (r(3, 9, 8), torch.arange(24).view(3, 8) % 9, r(9).abs())),
    (layer_norm, lambda: (r(30, 64), r(64, seed=1), r(64, seed=2))),
    (linear, lambda: (r(16, 32), r(48, 32, seed=1), r(48, seed=2))),
    (linear, lambda: (r(16, 32, dtype=torch.float64), r(48, 32, seed=1).double(), r(48, seed=2).double())),
    (scores, lambda: (r(3, 20, 32), r(3, 24, 32, seed=1))),
    (views, lambda: (r(6, 7),)),
    (in_place, lambda: (r(40, 30),)),
    (picked, lambda: (r(10, 12), torch.tensor([3, -1, 0, 2, 2, 9, 4, 1, 5, 6]).clamp(min=0))),
    (running, lambda: (r(12, 40),)),
    (turned, lambda: (r(80, 90), r(90, 80, seed=1))),
    (number, lambda: (r(50), 2.5)),
    (convolved, lambda: (r(2, 8, 9, 9), r(4, 8, 3, 3, seed=1), r(4, seed=2))),
    (convolved, lambda: (r(2, 8, 9, 9, dtype=torch.float16), r(4, 8, 3, 3, seed=1).half(), r(4).half())),
    (moments, lambda: (r(50, 40),)),
    (moments, lambda: (r(700, 100),)),
]


def same(mine: Any, theirs: Any, half: bool) -> None:
    assert type(mine) is type(theirs)
    if isinstance(theirs, tuple):
        for a, b in zip(mine, theirs, strict=True):
            same(a, b, half)
        return
    assert mine.stride() == theirs.stride()
    rtol, atol = (2e-3, 2e-3) if half else (1e-4, 1e-5)
    torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("function, make", CASES, ids=[f"{f.__name__}{k}" for k, (f, _) in enumerate(CASES)])
def test_program(function: Any, make: Any) -> None:
    compiled = dyncomp.compile(function, fullgraph=True)
    for _ in range(2):
        mine, theirs = make(), make()
        got = compiled(*mine)
        want = function(*theirs)
        half = any(isinstance(a, torch.Tensor) and a.dtype is torch.float16 for a in mine)
        same(got, want, half)
        for a, b in zip(mine, theirs):
            if isinstance(a, torch.Tensor):
                same(a, b, half)
    assert InterpretedDriver.launched


def test_sizes_become_symbols() -> None:
    compiled = dyncomp.compile(softmax, fullgraph=True, dynamic=True)
    for rows, columns in [(3, 40), (5, 41), (7, 300)]:
        x = r(rows, columns)
        torch.testing.assert_close(compiled(x), softmax(x), rtol=1e-4, atol=1e-6)
    assert InterpretedDriver.launched


def test_views_share_memory() -> None:
    compiled = dyncomp.compile(views, fullgraph=True)
    x = r(6, 7)
    y, part, turned_x, _ = compiled(x)
    part.zero_()
    assert (y[1:] == 0).all()
    assert turned_x.data_ptr() == x.data_ptr()


def half_product(x: Any, y: Any) -> Any:
    return x @ y.transpose(-1, -2) + 1


def test_products_are_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "SMALL", 0)
    compiled = dyncomp.compile(half_product, fullgraph=True, mode="max-autotune")
    for _ in range(2):
        x, y = r(2, 40, 32, dtype=torch.float16), r(2, 48, 32, dtype=torch.float16, seed=1)
        torch.testing.assert_close(compiled(x, y), half_product(x, y), rtol=4e-3, atol=4e-2)
    assert any(name.startswith("product_40x48x32_") for name in InterpretedDriver.launched)
    again = dyncomp.compile(half_product, fullgraph=True, mode="max-autotune")
    before = len(InterpretedDriver.launched)
    again(x, y)
    assert len(InterpretedDriver.launched) == before + 1  # nothing is measured twice


def gated(x: Any, w: Any, b: Any, y: Any) -> Any:
    return F.silu(F.linear(x, w, b)) * y, (x @ w.t()).sum(0)


def kept(x: Any, w: Any) -> Any:
    y = x @ w
    return y, torch.relu(y + 1)


def added_in_place(x: Any, w: Any, y: Any) -> Any:
    y += x @ w
    return y


def scaled(x: Any, w: Any, s: Any) -> Any:
    return (x @ w) * s[:, None, None] + w.sum(1)[:, None]


HALF, BRAIN = torch.float16, torch.bfloat16
FUSED = [
    (gated, lambda d: (r(20, 40, dtype=d), r(24, 40, dtype=d), r(24, dtype=d), r(20, 24, dtype=d))),
    (kept, lambda d: (r(33, 40, dtype=d), r(40, 17, dtype=d))),
    (added_in_place, lambda d: (r(33, 40, dtype=d), r(40, 17, dtype=d), r(33, 17, dtype=d))),
    (scaled, lambda d: (r(3, 40, 16, dtype=d), r(3, 16, 32, dtype=d), r(3, dtype=d))),
]


@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("function, make", FUSED, ids=[f.__name__ for f, _ in FUSED])
def test_products_are_finished_by_the_kernels_that_read_them(function: Any, make: Any, dtype: Any) -> None:
    compiled = dyncomp.compile(function, fullgraph=True)
    for _ in range(2):
        mine, theirs = make(dtype), make(dtype)
        got, want = compiled(*mine), function(*theirs)
        # a result rounded the other way once is a step of the type further on
        torch.testing.assert_close(got, want, rtol=2e-2, atol=6e-2 if dtype is HALF else 0.5)
    assert any(name.startswith("product_") for name in InterpretedDriver.launched)


def causal(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def plain_attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def by_hand(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v


def capped(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(torch.tanh(q @ k.transpose(-1, -2) / 30) * 30, -1) @ v


def qkv(dtype: Any, *lead: int, queries: int, keys: int, width: int, values: int) -> tuple[Any, ...]:
    shapes = ((queries, width), (keys, width), (keys, values))
    return tuple(r(*lead, *shape, dtype=dtype, seed=k) for k, shape in enumerate(shapes))


ATTENTION = [
    (plain_attention, lambda d: qkv(d, 2, 3, queries=40, keys=70, width=16, values=16)),
    (plain_attention, lambda d: qkv(d, 3, queries=5, keys=70, width=20, values=33)),
    (causal, lambda d: qkv(d, 2, 2, queries=70, keys=70, width=32, values=32)),
    (causal, lambda d: qkv(d, 2, queries=70, keys=40, width=32, values=32)),
    (causal, lambda d: qkv(d, 2, queries=40, keys=90, width=16, values=16)),
    (masked, lambda d: (*qkv(d, 2, 2, queries=40, keys=50, width=16, values=16), r(40, 50, dtype=d))),
    (masked, lambda d: (*qkv(d, 2, 2, queries=40, keys=50, width=16, values=16), hidden(2, 1, 40, 50))),
    (by_hand, lambda d: qkv(d, 2, 2, queries=50, keys=50, width=16, values=16)),
    (capped, lambda d: qkv(d, 2, 2, queries=50, keys=50, width=16, values=16)),
]


def hidden(*shape: int) -> Any:
    """A mask with a row that sees nothing."""
    mask = r(*shape) > 0
    mask[..., 3, :] = False
    mask[..., 7, :33] = False
    return mask


@pytest.mark.parametrize("number", range(2 * len(ATTENTION)))
def test_attention_is_one_kernel(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = torch.float32 if number < len(ATTENTION) else (HALF, BRAIN)[number % 2]
    function, make = ATTENTION[number % len(ATTENTION)]
    arguments = make(dtype)
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    got = dyncomp.compile(function, fullgraph=True)(*arguments)
    wide = [a if a.dtype is torch.bool else a.double() for a in arguments]
    want = function(*wide).to(dtype)
    # each step of a program on halves rounds its result
    close = {HALF: 1.5e-2, BRAIN: 1e-1, torch.float32: 2e-5}[dtype]
    torch.testing.assert_close(got, want, rtol=close, atol=close)
    assert InterpretedDriver.launched[-1].startswith("attention_")


def test_attention_with_infinities_and_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "LARGE_SCORES", 0)
    q, k, v = qkv(torch.float32, 2, queries=40, keys=70, width=16, values=16)
    k[0, 5, 0] = float("nan")
    v[1, 6, 3] = float("inf")
    torch.testing.assert_close(
        dyncomp.compile(plain_attention)(q, k, v),
        plain_attention(q, k, v),
        equal_nan=True,
        rtol=1e-4,
        atol=1e-5,
    )


def test_a_template_that_cannot_run_is_left(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def refuse(*arguments: Any) -> Any:
        raise RuntimeError("out of shared memory")

    q, k, v = qkv(HALF, 2, queries=40, keys=70, width=16, values=16)
    compiled = dyncomp.compile(plain_attention, fullgraph=True)
    load = InterpretedDriver.load
    monkeypatch.setattr(
        InterpretedDriver,
        "load",
        lambda self, f, kernel, *rest: (refuse if "attention" in kernel.name else load)(
            self, f, kernel, *rest
        ),
    )
    for _ in range(2):
        torch.testing.assert_close(compiled(q, k, v), plain_attention(q, k, v), rtol=4e-3, atol=4e-3)
    assert "out of shared memory" in caplog.text


def strided(x: Any, w: Any, b: Any) -> Any:
    return F.silu(F.conv2d(x, w, b, stride=2, padding=(2, 1), dilation=(1, 2)))


def grouped(x: Any, w: Any, b: Any) -> Any:
    return F.relu(F.conv2d(x, w, None, padding=1, groups=2) + b[:, None, None]) * 2


def of_lines(x: Any, w: Any, b: Any) -> Any:
    return torch.tanh(F.conv1d(x, w, b, padding=2))


def residual(x: Any, w: Any, b: Any) -> Any:
    return F.relu(F.conv2d(x, w, b) + x)


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last)


CONVOLUTIONS = [
    (convolved, lambda d: (r(2, 17, 3, 4, dtype=d), r(20, 17, 3, 3, dtype=d), r(20, dtype=d))),
    (strided, lambda d: (r(2, 3, 9, 12, dtype=d), r(18, 3, 5, 3, dtype=d), r(18, dtype=d))),
    (of_lines, lambda d: (r(2, 8, 40, dtype=d), r(12, 8, 5, dtype=d), r(12, dtype=d))),
    (residual, lambda d: (r(2, 20, 5, 7, dtype=d), r(20, 20, 1, 1, dtype=d), r(20, dtype=d))),
    (convolved, lambda d: (last(r(2, 20, 3, 4, dtype=d)), last(r(17, 20, 3, 3, dtype=d)), r(17, dtype=d))),
    (strided, lambda d: (last(r(2, 3, 9, 12, dtype=d)), r(18, 3, 5, 3, dtype=d), r(18, dtype=d))),
]
SMALL_TILES = (products.Tile(16, 64, 16, 4, 2), products.Tile(32, 32, 32, 4, 2))


def check_convolution(case: Any, dtype: Any, mode: str) -> None:
    function, make = case
    arguments = make(dtype)
    got = dyncomp.compile(function, fullgraph=True, mode=mode)(*arguments)
    want = function(*arguments)
    assert got.stride() == want.stride()
    close = 2e-2 if dtype is HALF else 1e-4
    torch.testing.assert_close(got, want, rtol=close, atol=close)


@pytest.mark.parametrize("number", range(len(CONVOLUTIONS)))
def test_convolutions_are_finished(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SMALL_TILES[number % 2]
    monkeypatch.setattr(convolution, "HALF_TILES", (small,))
    monkeypatch.setattr(convolution, "FLOAT_TILES", (small,))
    check_convolution(CONVOLUTIONS[number], HALF if number % 2 else torch.float32, "max-autotune")
    assert any(n.startswith("convolution_") for n in InterpretedDriver.launched)


def test_steps_are_described() -> None:
    for function, make in (CONVOLUTIONS[0], FUSED[0], ATTENTION[0]):
        report = dyncomp.explain(function)(*make(HALF)).details()
        assert "one kernel, or" in report


@pytest.mark.parametrize("dtype", [HALF, torch.float32], ids=str)
def test_a_convolution_is_the_librarys(dtype: Any) -> None:
    check_convolution(CONVOLUTIONS[0], dtype, "default")
    groups = (grouped, lambda d: (r(2, 8, 5, 7, dtype=d), r(12, 4, 3, 3, dtype=d), r(12, dtype=d)))
    check_convolution(groups, dtype, "default")
    assert len(InterpretedDriver.launched) == 2


WEIGHT = torch.ones(48, 32)
REPLAYED = [
    (linear, lambda k: (r(16, 32, seed=k), WEIGHT, r(48, seed=k))),
    (number, lambda k: (r(50, seed=k), 2.5 + k)),
    (views, lambda k: (r(6, 7, seed=k),)),
    (in_place, lambda k: (r(40, 30, seed=k),)),
]


@pytest.mark.parametrize("function, make", REPLAYED, ids=[f.__name__ for f, _ in REPLAYED])
def test_launches_are_replayed(function: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dyncomp.inductor.gpu.graphs.LEAST_LAUNCHES", 1)
    RECORDED.clear()
    compiled = dyncomp.compile(function, fullgraph=True, mode="reduce-overhead")
    kept = []
    for k in range(5):
        mine, theirs = make(k), make(k)
        got, want = compiled(*mine), function(*theirs)
        kept.append((got, want))
        for a, b in zip(mine, theirs):
            if isinstance(a, torch.Tensor):
                same(a, b, False)
    for got, want in kept:
        same(got, want, False)
    assert RECORDED


def test_a_view_of_an_argument_stays_one_where_launches_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dyncomp.inductor.gpu.graphs.LEAST_LAUNCHES", 1)
    compiled = dyncomp.compile(views, fullgraph=True, mode="reduce-overhead")
    for k in range(4):
        x = r(6, 7, seed=k)
        y, part, turned_x, _ = compiled(x)
        part.zero_()
        assert (y[1:] == 0).all()
        assert turned_x.data_ptr() == x.data_ptr()


def test_what_cannot_be_recorded_is_launched(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr("dyncomp.inductor.gpu.graphs.LEAST_LAUNCHES", 1)

    def refuse(index: int, run: Any, pool: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    owner = TorchFrontend.owner
    graphs = dataclasses.replace(owner.devices.graphs, record=refuse)
    devices = dataclasses.replace(owner.devices, graphs=graphs)
    monkeypatch.setattr(TorchFrontend, "owner", dataclasses.replace(owner, devices=devices))
    compiled = dyncomp.compile(softmax, fullgraph=True, mode="reduce-overhead")
    for k in range(4):
        x = r(20, 30, seed=k)
        torch.testing.assert_close(compiled(x), softmax(x), rtol=1e-4, atol=1e-6)
    assert caplog.text.count("cannot be recorded") == 1


def added(x: Any, i: Any, v: Any) -> Any:
    return x.index_add(0, i, v)


def test_the_original_runs_where_algorithms_must_be_deterministic() -> None:
    compiled = dyncomp.compile(added)
    arguments = r(20, 30), torch.arange(20).flip(0), r(20, 30, seed=1)
    torch.use_deterministic_algorithms(True)
    try:
        torch.testing.assert_close(compiled(*arguments), added(*arguments))
        assert not InterpretedDriver.launched
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(compiled(*arguments), added(*arguments))


def test_a_dumped_graph_is_run_by_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    from dyncomp.frontends.torch import owner
    from dyncomp.report.rerun import main

    x, y = r(6, 5), r(6, 5, seed=1)
    dyncomp.compile(chain, options={"dump": str(tmp_path / "dump")})(x, y)
    (folder,) = (tmp_path / "dump").iterdir()
    monkeypatch.setattr(owner, "OWNER", TorchFrontend.owner)
    monkeypatch.setattr("sys.argv", ["run.py", "--calls", "2"])
    monkeypatch.setattr("sys.exit", lambda status: None)
    script = (folder / "run.py").read_text()
    assert "-kernels.py" in script
    exec(compile(script, str(folder / "run.py"), "exec"), {"__file__": str(folder / "run.py")})
    printed = capsys.readouterr().out
    assert "of the largest value\n" in printed
    assert "WRONG" not in printed
    (kernels,) = folder.glob("*-kernels.py")
    (folder / "edited.py").write_text(kernels.read_text().replace("tl.load(", "2 * tl.load("))
    facts = {"graph": next(folder.glob("*-own.py")).name, "kernels": kernels.name, "library": "torch"}
    assert main(str(folder / "run.py"), **facts) == 1
    assert "as generated" in capsys.readouterr().out
