"""On a GPU: the programs that are otherwise interpreted, with real kernels (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

import dyncomp
from dyncomp.inductor.gpu import graphs

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor.gpu_programs import (  # noqa: E402
    ATTENTION,
    BRAIN,
    CASES,
    CONVOLUTIONS,
    FUSED,
    HALF,
    REPLAYED,
    plain_attention,
    qkv,
    same,
    softmax,
    views,
)
from tests.inductor.gpu_simulator import r  # noqa: E402

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


@pytest.mark.parametrize("mode", ["default", "max-autotune"])
@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("function, make", FUSED, ids=[f.__name__ for f, _ in FUSED])
def test_products_are_finished(function: Any, make: Any, dtype: Any, mode: str) -> None:
    compiled = dyncomp.compile(function, fullgraph=True, mode=mode)
    for _ in range(2):
        mine, theirs = moved(make(dtype)), moved(make(dtype))
        atol = 6e-2 if dtype is HALF else 0.5
        torch.testing.assert_close(compiled(*mine), function(*theirs), rtol=2e-2, atol=atol)


@pytest.mark.parametrize("dtype", [HALF, BRAIN, torch.float32], ids=str)
@pytest.mark.parametrize("number", range(len(ATTENTION)))
def test_attention(number: int, dtype: Any) -> None:
    function, make = ATTENTION[number]
    arguments = moved(make(dtype))
    wide = [a if a.dtype is torch.bool else a.double() for a in arguments]
    close = {HALF: 1.5e-2, BRAIN: 1e-1, torch.float32: 2e-5}[dtype]
    got = dyncomp.compile(function, fullgraph=True)(*arguments)
    torch.testing.assert_close(got, function(*wide).to(dtype), rtol=close, atol=close)


def test_attention_on_a_large_scale() -> None:
    q, k, v = moved(qkv(BRAIN, 4, 8, queries=1024, keys=1024, width=64, values=64))
    for mode in ("default", "max-autotune"):
        got = dyncomp.compile(plain_attention, fullgraph=True, mode=mode)(q, k, v)
        want = plain_attention(q.double(), k.double(), v.double()).to(BRAIN)
        torch.testing.assert_close(got, want, rtol=3e-2, atol=3e-2)


def large_product(x: Any, w: Any, b: Any) -> Any:
    return torch.relu(x @ w + b)


def test_every_form_of_a_product() -> None:
    """Persistent and descriptor forms are candidates where a product has more tiles than processors."""
    from dyncomp.inductor.gpu import choose

    arguments = moved((r(4096, 512, dtype=BRAIN), r(512, 4096, dtype=BRAIN), r(4096, dtype=BRAIN)))
    want = large_product(*arguments)
    seen: list[str] = []
    original = choose.Choice._find

    def find(self: Any, plain: Any, stream: int, places: Any) -> int:
        for number, name in enumerate(self.names):
            self._candidate(number, stream, places)()
            torch.cuda.synchronize()
            seen.append(name)
        return original(self, plain, stream, places)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose.Choice, "_find", find)
        got = dyncomp.compile(large_product, fullgraph=True, mode="max-autotune")(*arguments)
    torch.testing.assert_close(got, want, rtol=2e-2, atol=0.5)
    assert any("persistent" in name for name in seen)
    if torch.version.hip is None and torch.cuda.get_device_capability()[0] >= 9:
        assert any("descriptor" in name for name in seen)


@pytest.mark.parametrize("mode", ["default", "max-autotune"])
@pytest.mark.parametrize("dtype", [HALF, torch.float32], ids=str)
@pytest.mark.parametrize("number", range(len(CONVOLUTIONS)))
def test_convolutions(number: int, dtype: Any, mode: str) -> None:
    function, make = CONVOLUTIONS[number]
    arguments = moved(make(dtype))
    got = dyncomp.compile(function, fullgraph=True, mode=mode)(*arguments)
    want = function(*arguments)
    assert got.stride() == want.stride()
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)  # cuDNN takes tf32


@pytest.mark.parametrize("function, make", REPLAYED, ids=[f.__name__ for f, _ in REPLAYED])
def test_launches_are_replayed(
    function: Any, make: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 1)
    compiled = dyncomp.compile(function, fullgraph=True, mode="reduce-overhead")
    weights: dict[int, Any] = {}
    kept = []
    for k in range(6):
        mine = tuple(
            weights.setdefault(n, a.cuda()) if n == 1 and isinstance(a, torch.Tensor) else moved((a,))[0]
            for n, a in enumerate(make(k))
        )
        theirs = moved(make(k))
        kept.append((compiled(*mine), function(*theirs)))
        for a, b in zip(mine, theirs):
            if isinstance(a, torch.Tensor):
                same(a, b, False)
    for got, want in kept:
        same(got, want, False)
    assert not caplog.text


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
