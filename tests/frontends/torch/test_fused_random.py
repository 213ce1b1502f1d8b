"""``options={"random": "fused"}``: random numbers that kernels make, and make again in the backward pass."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.prims.pointwise.random_bits import ON_ARRAYS, philox4x32  # noqa: E402

F, checkpoint = torch.nn.functional, torch.utils.checkpoint.checkpoint


def fused(function, **options):
    options = {"random": "fused", "debug_verify": True, **options.pop("options", {})}
    return dyncomp.compile(function, fullgraph=True, options=options)


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    yield
    dyncomp.reset()


# of the paper's library, Random123
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers(counter, key, expected):
    words = [tuple(np.uint64(int(word, 16)) for word in text.split()) for text in (key, counter, expected)]
    assert philox4x32(ON_ARRAYS, *words[:2]) == words[2]


def test_the_stream_is_the_documented_one():
    fast = fused(lambda: (torch.rand(3, 5), torch.rand(4, dtype=torch.float64)))
    torch.manual_seed(3)
    single, double = fast()
    torch.manual_seed(3)
    seed = torch.randint(-(2**63), 2**63 - 1, ()).item() % 2**64
    for number, (values, bits) in enumerate(((single, 24), (double, 53))):
        for place, value in enumerate(values.flatten().tolist()):
            counter = place + (number << 48)
            words = [(x & 0xFFFFFFFF, x >> 32) for x in (seed, counter)]
            zero = np.uint64(0)
            key, count = (tuple(map(np.uint64, pair)) for pair in words)
            low, high, _, _ = philox4x32(ON_ARRAYS, key, (*count, zero, zero))
            assert value == (int(low) + (int(high) << 32) >> 64 - bits) / 2**bits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_statistics(dtype):
    torch.manual_seed(0)
    count = 1 << 18
    x = fused(lambda: torch.rand(512, 512, dtype=dtype))().flatten()
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 5 / math.sqrt(12 * count)
    for lag in (1, 2, 512):
        together = ((x[:-lag] - 0.5) * (x[lag:] - 0.5)).mean() * 12
        assert abs(together) < 5 / math.sqrt(count)
    buckets = torch.bincount((x * 256).long(), minlength=256) - count / 256
    assert (buckets**2).sum() / (count / 256) < 255 + 5 * math.sqrt(2 * 255)
    chances = torch.rand(512, 512, dtype=dtype)
    drawn = fused(torch.bernoulli)(chances)
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert abs((drawn - chances).mean()) < 5 / math.sqrt(6 * count)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(dtype, p):
    x = torch.full((256, 256), 2.0, dtype=dtype, requires_grad=True)
    fast = fused(lambda x: F.dropout(x, p))
    y = fast(x)
    dropped = F.dropout(x, p)
    assert set(y.unique().tolist()) == set(dropped.unique().tolist())
    kept = (y != 0).double().mean()
    assert abs(kept - (1 - p)) < 5 * math.sqrt(p * (1 - p)) / 256
    y.sum().backward()
    assert torch.equal(x.grad * 2, y)


def test_seeds():
    """``manual_seed`` repeats; calls, and layers in one call, differ."""
    x = torch.ones(64, 64)
    fast = fused(lambda x: (F.dropout(x), F.dropout(x), torch.rand_like(x), torch.rand_like(x)))
    torch.manual_seed(5)
    first, second = fast(x), fast(x)
    torch.manual_seed(5)
    for found, again in zip((*first, *second), (*fast(x), *fast(x))):
        assert torch.equal(found, again)
    assert not any(torch.equal(a, b) for a, b in zip(first, second))
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[2], first[3])
    torch.manual_seed(5)
    fast(x)
    after = torch.rand(1)
    torch.manual_seed(5)
    torch.randint(-(2**63), 2**63 - 1, ())  # one draw for each call
    assert torch.equal(after, torch.rand(1))


def test_threads_and_sizes_change_no_number():
    def draws(x):
        return F.dropout(x * 3, 0.3), torch.rand_like(x)

    found = []
    for options in ({"num_threads": 1}, {"num_threads": 2}, {"serial_threshold_us": 0.0}):
        for dynamic in (False, True):
            torch.manual_seed(7)
            fast = fused(draws, options=options)
            if dynamic:
                fast = dyncomp.compile(draws, dynamic=True, options={"random": "fused", **options})
            found.append(fast(torch.ones(300, 400)))
    for other in found[1:]:
        for a, b in zip(found[0], other):
            assert torch.equal(a, b)


def test_nothing_is_saved():
    layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    report = dyncomp.explain(lambda x: (F.dropout(x * 2, 0.3) * 3).sum(), options={"random": "fused"})
    text = str(report(torch.ones(100, 100, requires_grad=True)))
    assert int(re.search(r"([\d,]+) bytes are saved", text)[1].replace(",", "")) <= 8
    fast = fused(lambda x: layers(x))
    x = torch.randn(128, 32, requires_grad=True)
    y = fast(x)
    kept = y.detach() != 0
    y.sum().backward()
    expected = (kept * 2.0) @ layers[0].weight
    torch.testing.assert_close(x.grad, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_draw_the_same_again(reentrant):
    def layer(x):
        return F.dropout(x, 0.5) * 3

    x = torch.ones(50, 50, requires_grad=True)
    y = fused(lambda x: checkpoint(layer, x, use_reentrant=reentrant))(x)
    y.sum().backward()
    assert torch.equal(x.grad, y)


def test_training_in_a_graph():
    """The whole step, and the generator where the original has to run."""
    weight = torch.ones(40, requires_grad=True)

    def step():
        weight.grad = None
        y = F.dropout(weight, 0.25)
        y.sum().backward()
        return y.detach()

    fast = fused(step)
    for _ in range(3):
        assert torch.equal(fast(), weight.grad)


def test_other_numbers_are_the_library_s():
    def draws():
        return torch.randn(5), torch.randperm(9), torch.randint(0, 9, (4,))

    torch.manual_seed(2)
    expected = draws()
    torch.manual_seed(2)
    for a, b in zip(fused(draws)(), expected):
        assert torch.equal(a, b)


def test_pieces_repeat_too():
    """The original is never run to see whether it is quicker: it draws other numbers."""
    weights = torch.rand(6)

    def pieces(x):
        x = F.dropout(x, 0.3)
        return x * torch.multinomial(weights, 3).sum() + torch.rand_like(x)

    fast = dyncomp.compile(pieces, options={"random": "fused"})
    x, found = torch.ones(4, 5), []
    for _ in range(20):
        torch.manual_seed(1)
        found.append(fast(x))
    assert all(torch.equal(a, found[0]) for a in found)


def test_values_of_the_option():
    with pytest.raises(ValueError, match="random must be one of library, fused"):
        dyncomp.compile(torch.rand, options={"random": "quick"})
