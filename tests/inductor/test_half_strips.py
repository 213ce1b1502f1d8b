"""Loops over float16 in strips that the processor converts at once: NumPy's bits, whatever the target."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp

MARCHES = ("x86-64", "x86-64-v3", "x86-64-v4")


@pytest.fixture(params=MARCHES)
def march(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    flags = Path("/proc/cpuinfo").read_text() if os.uname().machine == "x86_64" else ""
    needed = {"x86-64": "sse2", "x86-64-v3": "f16c", "x86-64-v4": "avx512bw"}[request.param]
    if needed not in flags:
        pytest.skip(f"this processor does not run {request.param}")
    monkeypatch.setenv("DYNCOMP_MARCH", request.param)
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    return str(request.param)


def every_half() -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def shuffled(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(1 << 16).astype(np.uint16).view(np.float16)


def hard_floats() -> np.ndarray:
    """Ties between halves and their neighbours, subnormal ones, what overflows, NaNs."""
    halves = every_half()[:0x7C00].astype(np.float64)
    ties = ((halves[:-1] + halves[1:]) / 2).astype(np.float32)
    found = [ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(1e9))]
    edges = np.array(
        [65504, 65519.99, 65520, 65536, 1e38, np.inf, 2**-25, 2**-24, 1e-45, 0, np.nan], np.float32
    )
    positive = np.concatenate([*found, edges, np.nextafter(edges, np.float32(0))])
    return np.concatenate([positive, -positive])


def assert_same(found: Any, expected: Any) -> None:
    """Equal bits, but for those of NaNs."""
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if theirs.dtype.kind != "f":
            np.testing.assert_array_equal(ours, theirs)
            continue
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
        bits = f"u{theirs.dtype.itemsize}"
        real = ~np.isnan(theirs)
        np.testing.assert_array_equal(ours[real].view(bits), theirs[real].view(bits))


def chain(x, y, z):
    return (x * y + z) / (x - y) * z


def chosen(x, y, z):
    big = x > y
    a = np.where(big, x + z, x * z)
    return a, np.maximum(a * y, -z), big & (a < z)


def mixed(x, y, z):
    wide = x.astype(np.float32) * y
    return (wide + z).astype(np.float16), np.sqrt(np.abs(z)) * 2, x.astype(np.float64) + y


def in_place(x, y, z):
    x *= y
    x[1:-1] = x[2:] + z[:-2]
    return x - y


def of_floats(x, y, z):
    return x.astype(np.float16), y.astype(np.float16) + np.float16(1), z.astype(np.float16)


def ordinary(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("function", [chain, chosen, mixed, in_place])
def test_bits_of_every_half(function, march: str) -> None:
    args = every_half()[5:], shuffled(1)[5:], shuffled(2)[5:]
    with np.errstate(all="ignore"):
        expected = function(*(a.copy() for a in args))
    assert_same(dyncomp.compile(function)(*(a.copy() for a in args)), expected)


def test_bits_of_rounded_floats(march: str) -> None:
    single = hard_floats()
    double = single.astype(np.float64)
    double[1:] = np.nextafter(double[1:], double[:-1])
    counts = np.arange(-len(single), len(single), 2) * 7
    with np.errstate(all="ignore"):
        expected = of_floats(single, double, counts)
    assert_same(dyncomp.compile(of_floats)(single, double, counts), expected)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def columns(x):
    return np.sum(x, axis=0), np.max(x * x, axis=0), x - np.min(x, axis=0)


def rows(x):
    return np.max(x, axis=1), np.argmin(x, axis=1), np.sum(x * x, axis=1)


@pytest.mark.parametrize("function", [softmax, columns, rows])
@pytest.mark.parametrize("shape", [(40, 200), (9, 31), (12, 119)])
def test_reductions(function, shape: tuple[int, int], march: str) -> None:
    x = ordinary(shape, 0)
    found, expected = dyncomp.compile(function)(x), function(x)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        # NumPy rounds each step of a sum of columns; elementary functions have 2 ulp of float32
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=5e-2 if function is columns else 1e-5)


def running(x):
    return np.cumsum(x, axis=1), np.cumprod(x, axis=0), np.add.accumulate(x.ravel())


def test_running_sums_round_each_step(march: str) -> None:
    x = ordinary((30, 70), 3)
    with np.errstate(all="ignore"):
        expected = running(x)
    assert_same(dyncomp.compile(running)(x), expected)


def copied(x, at):
    return x.T.copy(), np.concatenate([x, x], axis=1), x[:, ::2].copy(), x[at]


def test_copies_keep_the_bits_of_nans(march: str) -> None:
    x = every_half().reshape(256, 256)
    at = np.array([255, 3, 254, 0])
    for ours, theirs in zip(dyncomp.compile(copied)(x, at), copied(x, at), strict=True):
        np.testing.assert_array_equal(ours.view(np.uint16), theirs.view(np.uint16))


def test_nans_have_the_same_bits_everywhere(march: str) -> None:
    """In strips and in what is left behind them."""
    x = np.full(16 * 3 + 13, 0x7FA12345, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):  # else the original runs, to warn, and NumPy's bits depend on the machine
        found = dyncomp.compile(lambda x: x.astype(np.float16))(x).view(np.uint16)
    np.testing.assert_array_equal(found, 0x7F09)


def one_row(x, w, v):
    return x @ w, x @ v.T


@pytest.mark.parametrize("sizes", [(300, 300), (17, 17), (130, 119)])
def test_products_of_a_row(sizes: tuple[int, int], march: str) -> None:
    args = ordinary((1, sizes[0]), 4), ordinary(sizes, 5), ordinary(sizes[::-1], 6)
    for ours, theirs in zip(dyncomp.compile(one_row)(*args), one_row(*args), strict=True):
        assert ours.dtype == np.float16
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-2)


def brain_chain(x, y, wide):
    part = (x * y + x) / (y - x)
    return part, (part * part).abs().sqrt() - y, wide.to(x.dtype)


def test_brain_arithmetic_on_every_number(march: str) -> None:
    torch = pytest.importorskip("torch")
    bits = [np.random.default_rng(seed).permutation(1 << 16).astype(np.uint16) for seed in (0, 1)]
    x, y = (torch.from_numpy(b[3:].view(np.int16)).view(torch.bfloat16) for b in bits)
    ends = (
        bits[0].astype(np.uint32) << 16 | np.array([0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)[bits[1] & 3]
    )
    wide = torch.from_numpy(ends.view(np.float32))
    found = dyncomp.compile(brain_chain)(x, y, wide)
    for ours, theirs in zip(found, brain_chain(x, y, wide), strict=True):
        ours, theirs = ours.float().numpy(), theirs.float().numpy()
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
        real = ~np.isnan(theirs)
        np.testing.assert_array_equal(ours[real].view(np.uint32), theirs[real].view(np.uint32))


def normalised(x, y):
    total = x + y
    centred = total - total.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1), total


def test_what_several_passes_need_is_kept(march: str) -> None:
    x, y = ordinary((20, 150), 6), ordinary((20, 150), 7)
    for ours, theirs in zip(dyncomp.compile(normalised)(x, y), normalised(x, y), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=4e-3, atol=4e-3)


STEPS = (2, 3, 4, 5, -1, -2, -3, -4)


def stepping(x, y):
    stepped = [(x[:, ::step] * y[:, : x[:, ::step].shape[1]], -x[:, ::step] + 1) for step in STEPS]
    return tuple(part for pair in stepped for part in pair)


def stepping_otherwise(x, y):
    wide = x.astype(np.float32)[:, ::2]
    y[:, 1::2] = x[:, ::2] * x[:, 1::2] + 1
    return (
        (wide * 3).astype(np.float16),
        np.where(x[:, ::2] > 0, x[:, 1::2] * 2, x[:, ::2]),
        x[:, ::-3] > 1,
        y,
    )


@pytest.mark.parametrize("function", [stepping, stepping_otherwise])
def test_elements_that_lie_apart(function, march: str) -> None:
    args = every_half()[: 7 * 318].reshape(7, 318), ordinary((7, 318), 8)
    with np.errstate(all="ignore"):
        expected = function(*(a.copy() for a in args))
    assert_same(dyncomp.compile(function, fullgraph=True)(*(a.copy() for a in args)), expected)


@pytest.mark.parametrize("step", [2, 3, -2, -4])
def test_nothing_beside_the_elements_is_read(step: int, march: str) -> None:
    """The first and the last element are the ends of what may be read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    whole = np.frombuffer(memory, np.float16)
    inner = whole[page // 2 : page]
    inner[:] = np.arange(page // 2) % 100
    # both ends of the page are elements
    first = (len(inner) - 1) % abs(step)
    high, low = inner[first :: abs(step)], inner[:: abs(step)]
    whole_strips = high[len(high) % 16 :], low[: len(low) // 16 * 16]
    ends = [part if step > 0 else part[::-1] for part in whole_strips]
    protect(whole.ctypes.data, page)
    protect(whole.ctypes.data + 2 * page, page)
    compiled = dyncomp.compile(lambda x: x * 2 + 1, fullgraph=True)
    for x in ends:
        assert_same(compiled(x), x * 2 + 1)


def protect(address: int, length: int) -> None:
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), 0) == 0


def test_far_elements_of_floats_are_no_strips(monkeypatch):
    """Corners of pooled windows: gcc takes loads in large steps for records and compiles them for minutes."""
    torch = pytest.importorskip("torch")
    from dyncomp.build.toolchain import Toolchain

    texts = []
    compile_file = Toolchain.compile

    def keep(self, source, *args):
        texts.append(source.read_text())
        return compile_file(self.with_flags(("-O0",)), source, *args)

    monkeypatch.setattr(Toolchain, "compile", keep)
    conv = torch.nn.Conv2d(4, 4, 1).half().requires_grad_(False)

    def f(x):
        return conv(torch.nn.functional.avg_pool2d(x * 2, 3, 1, 1) + 0.5)

    x = torch.randn(4, 4, 64, 64).half()
    compiled = dyncomp.compile(f, options={"cache": False})
    assert torch.allclose(compiled(x), f(x), atol=2e-2)
    assert texts
    for text in texts:
        for found in re.finditer(r"const i64 (i_\w+) = \w+ \+ lane;\n(.*?)\n *}\n", text, re.S):
            far = re.findall(rf"= (m_\w+)\[(?:.* )?\d{{3,}} \* {found[1]}\b", found[2])
            assert len(far) == len({*far}), found[0]
