"""Python numbers at and beyond the ends of a dtype's range: torch raises for some functions, has infinity for
others, and rounds the numbers of some but not of others before it computes. Compared with eager."""

from __future__ import annotations

import math
import random

import pytest

import dyncomp

torch = pytest.importorskip("torch")

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64")
NUMBERS = [
    300,
    -1,
    3,
    0.1,
    2.5,
    -7.3,
    1e-9,
    127,
    128,
    255,
    256,
    65504,
    65505.0,
    65519,
    65519.9,
    65520.0,
    70000,
]
NUMBERS += [3.38e38, 3.3953e38, 3.4028234663852886e38, 3.4028235e38, 3.41e38, 1e39, -1e39, 1e300]
NUMBERS += [math.inf, -math.inf, math.nan, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
FUNCTIONS = """
A + h; A - h; A * h; A / h; A % h; A ** h; A // h; A.fmod(h); h + A; h - A; h * A; h ** A; h % A; h // A
A == h; A < h; A >= h; h < A; A.add(h); A.clone().add_(h); A.clone().mul_(h); torch.rsub(A, h)
A.clamp(h); A.clamp(0, h); A.clamp_min(h); A.clamp_max(h); A.clip(h, h); A.clone().clamp_(h)
torch.where(M, A, h); torch.where(M, h, A); A.masked_fill(M, h); A.clone().masked_fill_(M, h)
A.masked_fill(M, torch.tensor(h)); A.clone().fill_(torch.tensor(h)); torch.where(M, A, torch.tensor(h))
torch.full((2,), h); torch.full((2,), h, dtype=A.dtype); torch.full_like(A, h); A.new_full((2,), h)
torch.tensor(h); torch.tensor([h], dtype=A.dtype); A.new_tensor(h); A.clone().fill_(h)
torch.add(A, A, alpha=h); torch.sub(A, A, alpha=h); A.lerp(A, h); torch.addcmul(A, A, A, value=h)
A.copysign(h); A.xlogy(h); A.index_fill(0, I, h); A.scatter(0, I, h); torch.maximum(A, torch.tensor(h))
put(A.clone(), 0, h); put(A.clone(), M, h); put(A.clone(), slice(1, 3), h); put(A.clone(), I, h)
torch.nn.functional.pad(A, (1, 1), value=h); torch.nn.functional.leaky_relu(A, h)
torch.nn.functional.hardtanh(A, -1, h); torch.nn.functional.threshold(A, 1, h); torch.nn.functional.elu(A, h)
"""
EXPRESSIONS = [text.strip() for line in FUNCTIONS.strip().splitlines() for text in line.split(";")]


def put(tensor, key, number):
    tensor[key] = number
    return tensor


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


def agree(found, wanted):
    if isinstance(found, tuple) or isinstance(wanted, tuple):
        return found is not None and type(found) is type(wanted) and found == wanted
    if found.dtype != wanted.dtype:
        return False
    near = {torch.float16: 1.1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-5}.get(wanted.dtype, 1e-12)
    return torch.allclose(found.double(), wanted.double(), rtol=near, atol=near * 1e-3, equal_nan=True)


def made(text, number=None):
    space = {
        "torch": torch,
        "put": put,
        "M": torch.arange(6) % 2 == 0,
        "I": torch.tensor([1, 2]),
        "inf": math.inf,
    }
    space["nan"] = math.nan
    known = "" if number is None else f"    h = {number!r}\n"
    exec(f"def f(A{', h' if number is None else ''}):\n{known}    return {text}", space)
    return space["f"]


def failures(text, rng, count):
    for name in DTYPES:
        tensor = torch.arange(1 if name == "uint8" else -2, 7 if name == "uint8" else 4).to(
            getattr(torch, name)
        )
        for number in rng.sample(NUMBERS, count):
            function = made(text, number)
            wanted, found = (
                outcome(function, tensor),
                outcome(dyncomp.compile(function, backend="eager"), tensor),
            )
            if not agree(found, wanted):
                yield f"{text}, {name}, h = {number}: {found} is not {wanted}"
        for kind in (int, float):
            numbers = [kind(2), kind(3), *(n for n in rng.sample(NUMBERS, 2 * count) if type(n) is kind)]
            function = made(text)
            compiled = dyncomp.compile(function, backend="eager", options={"strict": True})
            for number in numbers:
                wanted, found = outcome(function, tensor, number), outcome(compiled, tensor, number)
                if not agree(found, wanted):
                    yield f"{text}, {name}, at run time {number}: {found} is not {wanted}"


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_random_numbers(text):
    found = list(failures(text, random.Random(text), 4))
    assert not found, "\n".join(found[:8])


@pytest.mark.slow
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_all_numbers_slow(text):
    found = list(failures(text, random.Random(0), len(NUMBERS) // 2))
    assert not found, "\n".join(found[:8])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_signs_of_remainders(dtype):
    numbers = [2.0, -2.0, 0.0, -0.0, 3.0, -3.0, float("inf"), float("-inf"), 1e-30, -7.5]
    a, b = (t.flatten() for t in torch.meshgrid(*[torch.tensor(numbers, dtype=dtype)] * 2, indexing="ij"))

    def f(a, b):
        return a % b, torch.remainder(a, 2.0), torch.remainder(-3.0, b), torch.fmod(a, b), a // b

    for found, wanted in zip(dyncomp.compile(f)(a, b), f(a, b)):
        torch.testing.assert_close(found, wanted, equal_nan=True)
        assert torch.equal(torch.signbit(found)[~wanted.isnan()], torch.signbit(wanted)[~wanted.isnan()])
