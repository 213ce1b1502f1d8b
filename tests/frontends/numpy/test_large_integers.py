"""Integers of more than 64 bits, and sizes that no memory holds: NumPy raises, or computes with objects, and
compiled code does the same."""

from __future__ import annotations

import signal
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import dyncomp

A = np.arange(6.0).reshape(2, 3)
I = np.arange(6).reshape(2, 3)  # noqa: E741
OPERANDS = {
    "A": A,
    "I": I,
    "U": np.arange(6, dtype=np.uint64),
    "B": np.arange(6, dtype=np.int8),
    "F": np.arange(6, dtype=np.float32),
    "C": np.arange(6) + 1j,
    "S": np.float64(2),
}
LARGE = (10**30, -(10**30), 2**63, -(2**63) - 1, 2**64, 2**64 - 1, 10**400)
UFUNCS = [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "<", ">=", "&", "|", "<<")

# {h}: a large integer
FUNCTIONS = """
np.full((2,), {h}); np.full_like(A, {h}); np.full_like(I, {h}); np.where(A > 1, A, {h})
np.where(I > 1, I, {h}); np.where(A > 1, {h}, {h}); np.clip(I, 0, {h}); np.clip(A, {h}, None)
np.array([{h}, 1]); np.array({h}) * 2; np.sum([{h}, 1]); np.sum({h}); np.mean({h}); np.prod({h})
np.cumsum([{h}, 1]); np.arange({h}, {h} + 3); np.arange(-{h}, -{h} + 3); np.arange(0, {h}, {h} // 3)
np.linspace(0, {h}, 4); np.ones(({h}, 0)); np.zeros((2, {h})); A[{h}]; A[{h}:]; A[:{h}]; A[::{h}]
A[-{h}:{h}]; np.take(A, {h}); np.roll(A, {h}); np.repeat(A, {h}); np.tile(A, {h}); np.eye(3, k={h})
np.tri(3, 3, {h}); np.tril(A, {h}); np.diag(A, {h}); np.diagonal(A, {h}); np.trace(A, {h})
A.sum(axis={h}); A.reshape(-1, {h}); np.expand_dims(A, {h}); np.round(A, {h}); np.round(I, {h})
np.round({h}); np.float64({h}); np.int64({h}); np.uint64({h}); np.isin(I, [{h}]); np.isin(I, {h})
np.searchsorted(A[0], {h}); np.append(I, {h}); np.insert(I, 0, {h}); np.pad(I, 1, constant_values={h})
np.pad(A, {h}); np.dot(I, {h}); np.inner(A, {h}); np.outer(I, {h}); np.kron(I, {h})
np.bincount(I.ravel(), minlength={h}); np.digitize(A, [{h}]); np.select([A > 1], [{h}], A)
np.select([A > 1], [A], {h}); np.choose([0, 1], [1, {h}]); np.isclose(I, {h}); np.array_equal(I, {h})
np.nan_to_num(A, nan={h}); np.sinc({h}); np.sort([{h}, 1]); np.median([{h}, 1])
np.quantile([1, {h}], 0.5); np.var([{h}, 1]); np.broadcast_to({h}, (2, 2)); np.ravel({h})
np.polyval([{h}, 1], 2); np.vander([1, 2], {h}); np.resize(A, {h}); np.split(A, {h})
np.array_split(A, {h}); np.swapaxes(A, {h}, 0); np.flip(A, {h}); np.partition(A, {h})
np.add.reduce([{h}, 2]); np.add(I, {h}, dtype="f8"); np.add(I, {h}, dtype=object); divmod(I, {h})
pow(I, {h}); {h} + I.sum()
"""
EXPRESSIONS = [text.strip() for line in FUNCTIONS.strip().splitlines() for text in line.split(";")]
FEW = EXPRESSIONS[:]
EXPRESSIONS += [f"np.{name}({{h}})" for name in UFUNCS if getattr(np, name).nin == 1]
EXPRESSIONS += [
    f"np.{name}({operand}, {{h}})"
    for name in UFUNCS
    for operand in OPERANDS
    if getattr(np, name).nin == 2 and getattr(np, name).signature is None
]
EXPRESSIONS += [f"{operand} {sign} {{h}}" for sign in OPERATORS for operand in OPERANDS]
EXPRESSIONS += [f"{{h}} {sign} {operand}" for sign in OPERATORS for operand in OPERANDS]


@contextmanager
def at_most(seconds: int):
    def stop(number, frame):
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def outcome(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with at_most(5):
                found = function(*args)
        except TimeoutError:
            return "it hangs"
        except Exception as error:
            return type(error), str(error)
    layout = (found.dtype, found.shape, found.strides) if isinstance(found, np.ndarray) else ()
    return type(found), repr(found), layout


def made(expression):
    space = {"np": np}
    exec(f"def f({', '.join(OPERANDS)}, h=None):\n    return {expression}", space)
    return space["f"]


def check(expression, arguments, calls=2):
    function = made(expression)
    wanted = outcome(function, *arguments)
    compiled = dyncomp.compile(function, backend="eager", options={"strict": True})
    for _ in range(calls):
        found = outcome(compiled, *arguments)
        assert found == wanted, expression


def check_constants(expressions, shift):
    for place, expression in enumerate(expressions):
        number = LARGE[(place + shift) % len(LARGE)]
        check(expression.replace("{h}", f"({number})"), OPERANDS.values())


def test_constants():
    for shift in range(len(LARGE)):
        check_constants(FEW, shift)
    check_constants(EXPRESSIONS[len(FEW) :: 5], 0)


@pytest.mark.slow
@pytest.mark.parametrize("shift", range(len(LARGE)))
def test_all_constants(shift):
    check_constants(EXPRESSIONS, shift)


SOME_OR_ALL = pytest.mark.parametrize("step", (8, pytest.param(1, marks=pytest.mark.slow)))


@SOME_OR_ALL
def test_arguments(step):
    """Seen as small numbers first."""
    for place, expression in enumerate(EXPRESSIONS[::step]):
        function = made(expression.replace("{h}", "h"))
        compiled = dyncomp.compile(function, backend="eager", options={"strict": True})
        for number in (3, 2, LARGE[place % len(LARGE)], 4):
            given = (*OPERANDS.values(), number)
            assert outcome(compiled, *given) == outcome(function, *given), (expression, number)


# Made of few numbers: NumPy raises at once where it would have to make them, or their results.
ARRAYS = """
np.broadcast_to(x, (10**6,) * 4); np.broadcast_to(x, (2**31, 2**31)); np.ones((2**32, 2**32))
np.broadcast_to(np.int8(1), (2**63 - 1,)); np.ones((0, 2**40, 2**30)); np.full((10**7, 10**7), x[0])
"""
USES = """
a + 1; np.sin(a); a.copy(); a.astype("f4"); a.ravel(); a.reshape(-1); a.T; a.shape; a.size
a[..., 0].ndim; a > 0; np.where(a > 0, 1, 0); a.cumsum(); np.concatenate([a, a]); np.stack([a, a])
a[a > 0]; np.pad(a, 1); np.roll(a, 1); np.tile(a, 2); np.repeat(a, 2); np.diff(a); -a; np.sort(a)
np.zeros_like(a); np.add.outer(a, a)
"""


def test_sizes():
    for array in ARRAYS.replace("\n", ";").split(";"):
        for use in USES.replace("\n", ";").split(";"):
            if not array.strip() or not use.strip():
                continue
            space = {"np": np}
            text = f"def f(x):\n    a = {array}\n    return {use}"
            exec(text, space)
            wanted = outcome(space["f"], np.ones(1))
            found = outcome(dyncomp.compile(space["f"], options={"strict": True}), np.ones(1))
            assert found == wanted, text


def test_sums_that_nobody_would_wait_for():
    for text in ("np.ones((2**32, 2**32)).sum()", "np.zeros((10**7, 10**7)).mean()"):
        space = {"np": np}
        exec(f"def f():\n    return {text}", space)
        assert outcome(dyncomp.compile(space["f"]))[0] is outcome(space["f"])[0]
