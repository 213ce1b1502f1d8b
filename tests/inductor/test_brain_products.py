"""Products of bfloat16 in graphs: which are done on it, what is joined to them, and that they are right."""

from __future__ import annotations

from typing import Any

import pytest

import dyncomp
from dyncomp.runtime import _launch

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def r(*shape: int, seed: int = 0, dtype: Any = torch.bfloat16) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def linear(x, w, b):
    return F.gelu(F.linear(x, w, b))


def turned(x, y):
    return x.T @ y, x @ y.T


def batched(x, y):
    return torch.bmm(x, y.transpose(1, 2)) * 2


def shared(x, w, v):
    x = F.layer_norm(x, x.shape[-1:])
    return x @ w, x @ v


def made(x, w):
    return torch.relu(x + 1) @ (w * 0.5)


def autocast(x, w, b):
    with torch.autocast("cpu", torch.bfloat16):
        return F.silu(F.linear(x, w, b))


def in_a_row(x, w, v):
    return F.linear(F.relu(F.linear(x, w)), v)


def viewed(x, w):
    return (x.reshape(6, 20, 48).transpose(0, 1) @ w).sum(0)


FLOAT = torch.float32
CASES: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "linear": (linear, (r(50, 70), r(90, 70, seed=1), r(90, seed=2)), 1),
    "three dimensions": (linear, (r(3, 25, 64), r(130, 64, seed=1), r(130, seed=2)), 1),
    "one row": (linear, (r(1, 250), r(300, 250, seed=1), r(300, seed=2)), 1),
    "odd": (linear, (r(33, 65), r(17, 65, seed=1), r(17, seed=2)), 1),
    "few rows": (linear, (r(3, 128), r(200, 128, seed=1), r(200, seed=2)), 1),
    "turned": (turned, (r(40, 40), r(40, 40, seed=1)), 2),
    "batched": (batched, (r(4, 30, 40), r(4, 50, 40, seed=1)), 1),
    "shared": (shared, (r(40, 64), r(64, 50, seed=1), r(64, 30, seed=2)), 2),
    "made": (made, (r(40, 64), r(64, 50, seed=1)), 1),
    "autocast": (autocast, (r(40, 64, dtype=FLOAT), r(50, 64, dtype=FLOAT), r(50, dtype=FLOAT)), 1),
    "in a row": (in_a_row, (r(40, 64), r(50, 64, seed=1), r(30, 50, seed=2)), 2),
    "viewed": (viewed, (r(120, 48), r(48, 30, seed=1)), 1),
}


def tensors(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def close(found: Any, expected: Any, exact: Any) -> None:
    """As close to the exact result as the library is, but for a rounding to bfloat16 here and there."""
    for mine, theirs, true in zip(tensors(found), tensors(expected), tensors(exact), strict=True):
        assert (mine.dtype, mine.shape, mine.stride()) == (theirs.dtype, theirs.shape, theirs.stride())
        scale = float(true.abs().max())
        assert float((mine.double() - true).abs().max()) <= scale * 2**-7
        assert float((mine.double() - true).abs().mean()) <= 1.1 * float(
            (theirs.double() - true).abs().mean()
        )


@pytest.mark.parametrize("name", sorted(CASES))
def test_products(name: str) -> None:
    function, arguments, products = CASES[name]
    compiled = dyncomp.compile(function, fullgraph=True)
    exact = function(*(a.double() for a in arguments)) if name != "autocast" else None
    if exact is None:
        x, w, b = (a.bfloat16().double() for a in arguments)
        exact = F.silu(F.linear(x, w, b))
    for _ in range(5):  # with packed weights that are kept, too
        close(compiled(*arguments), function(*arguments), exact)
    report = dyncomp.explain(function)(*arguments).details()
    assert report.count("bfloat16, summed in float32 matrix product") == products


@pytest.mark.parametrize("name", ["autocast", "made", "turned", "viewed"])
def test_on_a_processor_without_instructions_for_it(name: str) -> None:
    function, arguments, _ = CASES[name]
    compiled = dyncomp.compile(function)
    best = [x.float() for x in tensors(compiled(*arguments))]
    try:
        _launch.use_products("portable")
        for _ in range(5):
            found = tensors(compiled(*arguments))
            for mine, theirs in zip(found, best, strict=True):
                torch.testing.assert_close(mine.float(), theirs, rtol=2**-7, atol=1e-2)
    finally:
        _launch.use_products(None)
    with pytest.raises(LookupError, match="no instruction set"):
        _launch.use_products("sse9")


def test_symbolic_sizes() -> None:
    compiled = dyncomp.compile(linear, fullgraph=True, dynamic=True)
    w, b = r(90, 64, seed=1), r(90, seed=2)
    for rows in (2, 7, 30, 65):
        x = r(rows, 64)
        close(compiled(x, w, b), linear(x, w, b), linear(x.double(), w.double(), b.double()))


@pytest.mark.parametrize(("function", "dtype"), [(linear, torch.bfloat16), (autocast, FLOAT)])
def test_weights_that_change_are_packed_again(function: Any, dtype: Any) -> None:
    compiled = dyncomp.compile(function, fullgraph=True)
    x, w, b = (r(*size, seed=k, dtype=dtype) for k, size in enumerate([(20, 128), (512, 128), (512,)]))
    hits = _launch.kept_copies()["hits"]
    for number in range(12):
        if number % 5 == 4:
            w[number, number] = 100
        assert torch.equal(compiled(x, w, b), dyncomp.compile(function)(x, w.clone(), b))
    assert _launch.kept_copies()["hits"] > hits or not _launch.kept_copies()["can_watch"]


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def test_attention_stays_one_step_in_float32() -> None:
    """Weights are not rounded between its products."""
    q, k, v = (r(1, 2, 48, 32, seed=s) for s in range(3))
    report = dyncomp.explain(attention)(q, k, v).details()
    assert "matrix products 48 x 32 x 48 x 32, rows between them" in report
    assert "bfloat16, summed" not in report


def test_weights_that_are_rounded_are_multiplied_as_they_are() -> None:
    def weighted(q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    q, k, v = (r(1, 2, 48, 32, seed=s) for s in range(3))
    assert dyncomp.explain(weighted)(q, k, v).details().count("bfloat16, summed") == 2
    torch.testing.assert_close(dyncomp.compile(weighted)(q, k, v), weighted(q, k, v), rtol=2e-2, atol=2e-2)


def test_special_values() -> None:
    x, w = r(40, 64), r(50, 64, seed=1)
    x[0, 3], x[1, 5], w[7, 9] = float("inf"), float("nan"), float("-inf")
    found, expected = dyncomp.compile(F.linear)(x, w), F.linear(x, w)
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())
    torch.testing.assert_close(found, expected, equal_nan=True)
