"""Integers of more than 64 bits: torch raises, or takes them for something else; so does compiled code."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")

OPERANDS = {
    "A": torch.arange(6.0).reshape(2, 3),
    "I": torch.arange(6).reshape(2, 3),
    "B": torch.arange(6, dtype=torch.int8),
    "S": torch.tensor(2.0),
}
LARGE = (10**30, 2**63, -(2**63) - 1, 2**64, 10**400)
METHODS = ("add", "sub", "mul", "div", "fmod", "remainder", "pow", "eq", "lt", "clamp", "clamp_max", "fill_")
METHODS += ("add_", "floor_divide", "copysign")
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "<")
FUNCTIONS = """
torch.full((2,), h); torch.full((2,), h, dtype=torch.float32); torch.full_like(A, h); torch.zeros(h)
torch.ones(h, 0); torch.arange(h, h + 3); torch.arange(0, h, h // 3); torch.linspace(0, h, 3)
torch.tensor([h, 1]); A[h]; A[h:]; A[::h]; A.narrow(0, 0, h); A.select(0, h); A.sum(h); A.reshape(-1, h)
A.unsqueeze(h); A[:1].expand(h, 3).sum(); A.repeat(h, 1); A.roll(h); A.flip(h); A.diag(h); A.tril(h)
A.chunk(h); A.split(h); A.tensor_split(h); A.softmax(h); A.topk(h); torch.nn.functional.pad(A, (h, 0))
torch.nn.functional.pad(A, (1, 1), value=h); torch.cat([A, A], h); torch.where(A > 1, A, h)
A.masked_fill(A > 1, h); torch.add(A, A, alpha=h); torch.clamp(A, h, h)
torch.nn.functional.leaky_relu(A, h); torch.nn.functional.elu(A, h)
torch.nn.functional.hardtanh(A, -h, h); torch.lerp(A, A, h); torch.addcmul(A, A, A, value=h)
torch.var(A, correction=h); torch.isin(I, h); I.sum() + h
"""
EXPRESSIONS = [text.strip() for line in FUNCTIONS.strip().splitlines() for text in line.split(";")]
EXPRESSIONS += [f"{operand}.clone().{method}(h)" for operand in OPERANDS for method in METHODS]
EXPRESSIONS += [f"{operand} {sign} h" for operand in OPERANDS for sign in OPERATORS]
EXPRESSIONS += [f"h {sign} {operand}" for operand in OPERANDS for sign in OPERATORS]


def outcome(function, number):
    try:
        found = function(*(t.clone() for t in OPERANDS.values()), number)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]  # addresses follow
    found = found if isinstance(found, tuple) else (found,)
    return [(t.dtype, t.shape, t.tolist()) for t in found]


def made(text):
    space = {"torch": torch}
    exec(f"def f({', '.join(OPERANDS)}, h):\n    {text}", space)
    return space["f"]


def check(function, numbers):
    compiled = dyncomp.compile(function, backend="eager", options={"strict": True})
    for number in numbers:
        assert repr(outcome(compiled, number)) == repr(outcome(function, number))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_large_integers(expression):
    for number in LARGE:
        check(made(f"h = {number}; return {expression}"), [None, None])
        # of small ones, other faults are tested elsewhere
        check(made(f"return {expression} if h > 2**62 or h < -(2**62) else A"), [2, 3, number, number])
