"""On a GPU: the programs that are otherwise interpreted, with real kernels (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

import dyncomp

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_programs import CASES, same, softmax, views  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]


@pytest.fixture(autouse=True)
def without_grad() -> Any:
    with torch.no_grad():
        yield


def moved(arguments: tuple[Any, ...], device: str = "cuda:0") -> tuple[Any, ...]:
    return tuple(a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments)


def compiled_for_gpu() -> int:
    """How many modules of kernels have been made."""
    return sum(name.startswith("<dyncomp ") for name in linecache.cache)


@pytest.mark.parametrize("function, make", CASES, ids=[f"{f.__name__}{k}" for k, (f, _) in enumerate(CASES)])
def test_program(function: Any, make: Any) -> None:
    before = compiled_for_gpu()
    compiled = dyncomp.compile(function, fullgraph=True)
    for _ in range(2):
        mine, theirs = moved(make()), moved(make())
        got, want = compiled(*mine), function(*theirs)
        half = any(isinstance(a, torch.Tensor) and a.dtype is torch.float16 for a in mine)
        same(got, want, half)
        for a, b in zip(mine, theirs):
            if isinstance(a, torch.Tensor):
                same(a, b, half)
    assert compiled_for_gpu() > before


def test_sizes_become_symbols() -> None:
    compiled = dyncomp.compile(softmax, fullgraph=True, dynamic=True)
    for rows, columns in [(3, 40), (5, 41), (700, 300)]:
        x = torch.randn(rows, columns, device="cuda:0")
        torch.testing.assert_close(compiled(x), softmax(x), rtol=1e-4, atol=1e-6)


def test_views_share_memory() -> None:
    x = torch.randn(6, 7, device="cuda:0")
    y, part, turned, _ = dyncomp.compile(views, fullgraph=True)(x)
    part.zero_()
    assert (y[1:] == 0).all()
    assert turned.data_ptr() == x.data_ptr()


def test_work_goes_to_the_current_stream() -> None:
    compiled = dyncomp.compile(softmax, fullgraph=True)
    x = torch.randn(512, 512, device="cuda:0")
    compiled(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = torch.zeros(2048, 2048, device="cuda:0")
        for _ in range(50):
            y = y @ y
        z = compiled(x + y[:512, :512])
    stream.synchronize()
    torch.testing.assert_close(z, softmax(x), rtol=1e-4, atol=1e-6)


def test_addresses_that_are_not_aligned() -> None:
    compiled = dyncomp.compile(softmax, fullgraph=True)
    memory = torch.randn(1001, device="cuda:0")
    for start in (0, 1):
        x = memory[start : start + 1000].view(10, 100)
        torch.testing.assert_close(compiled(x), softmax(x), rtol=1e-4, atol=1e-6)


def test_every_device() -> None:
    compiled = dyncomp.compile(softmax, fullgraph=True)
    for index in range(torch.cuda.device_count()):
        x = torch.randn(64, 100, device=f"cuda:{index}")
        found = compiled(x)
        assert found.device == x.device
        torch.testing.assert_close(found, softmax(x), rtol=1e-4, atol=1e-6)
