"""Index expressions against integer arithmetic, with known and with symbolic sizes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyncomp.graph.ir import contiguous_strides
from dyncomp.inductor.loops.index import (
    AxisVar,
    Expr,
    Quotient,
    axis_vars,
    canonical,
    divide_exact,
    linear,
    quotient,
    remainder,
    reshape_index,
    value_range,
)
from dyncomp.symbolic.integers import ShapeEnv, SymInt, same


def evaluate(expr: Expr, values: dict[str, int], symbols: dict[str, int]) -> int:
    def number(dim: Any) -> int:
        return dim.evaluate(symbols) if isinstance(dim, SymInt) else dim

    total = number(expr.constant)
    for atom, c in expr.terms.items():
        if isinstance(atom, AxisVar):
            value = values[atom.name]
        else:
            inner, divisor = evaluate(atom.expr, values, symbols), number(atom.divisor)
            value = inner // divisor if isinstance(atom, Quotient) else inner % divisor
        total += number(c) * value
    return total


def points(axes: Any, sizes: Any) -> Any:
    for at in itertools.product(*map(range, sizes)):
        yield at, {a.name: p for a, p in zip(axes, at)}


FACTORS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(FACTORS, st.randoms(use_true_random=False))
def test_reshape_index_is_numpys(factors: list[int], random: Any) -> None:
    total = int(np.prod(factors))
    shape = list(factors)
    random.shuffle(shape)
    cut = random.randint(0, len(shape))
    shape = [int(np.prod(shape[:cut])), *shape[cut:]]
    whole = np.arange(total).reshape(factors)
    view = whole.reshape(shape)
    axes = axis_vars(tuple(shape))
    index = reshape_index(canonical(axes), tuple(shape), tuple(factors))
    address = linear(index, contiguous_strides(tuple(factors)))
    # of contiguous memory a reshape is affine again
    assert address.is_affine
    for at, values in points(axes, shape):
        values = {**values}
        assert whole[tuple(evaluate(e, values, {}) for e in index)] == view[at]
        assert evaluate(address, values, {}) == view[at]


def symbols(*hints: int) -> tuple[ShapeEnv, list[SymInt]]:
    env = ShapeEnv()
    return env, [env.new_symbol(h, low=1) for h in hints]


def test_symbolic_flatten_and_back() -> None:
    env, (n, m) = symbols(3, 5)
    flat = axis_vars((n * m,))
    rows, columns = reshape_index(canonical(flat), (n * m,), (n, m))
    assert linear((rows, columns), (m, 1)) == canonical(flat)[0]
    two = axis_vars((n, m))
    (position,) = reshape_index(canonical(two), (n, m), (n * m,))
    back = reshape_index((position,), (n * m,), (n, m))
    assert back == canonical(two)
    assert not env.guards


@pytest.mark.parametrize("hints", [(3, 5, 4), (2, 2, 2)])
def test_symbolic_splits(hints: tuple[int, int, int]) -> None:
    env, (a, b, c) = symbols(*hints)
    named = dict(zip(env.symbols, hints))
    axes = axis_vars((a * b, c))
    index = reshape_index(canonical(axes), (a * b, c), (a, b * c))
    whole = np.arange(np.prod(hints)).reshape(hints[0], -1)
    sizes = (hints[0] * hints[1], hints[2])
    for at, values in points(axes, sizes):
        assert whole[tuple(evaluate(e, values, named) for e in index)] == whole.reshape(sizes)[at]
    assert not env.guards


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 9), st.integers(1, 8), st.integers(0, 5))
def test_division(size_i: int, size_j: int, scale: int, divisor: int, offset: int) -> None:
    i, j = AxisVar("i", size_i), AxisVar("j", size_j)
    expr = Expr({i: scale, j: 1}, offset)
    for p, q in itertools.product(range(size_i), range(size_j)):
        value = scale * p + q + offset
        assert evaluate(quotient(expr, divisor), {"i": p, "j": q}, {}) == value // divisor
        assert evaluate(remainder(expr, divisor), {"i": p, "j": q}, {}) == value % divisor


def test_divide_exact() -> None:
    _, (n, m) = symbols(3, 5)
    assert same(divide_exact(n * m * 6, m * 2), n * 3)  # type: ignore[arg-type]
    assert divide_exact(n * m + 1, m) is None
    assert divide_exact(n, 2) is None
    assert divide_exact(0, m) == 0
    assert divide_exact(7, 2) is None


def test_value_range() -> None:
    i = AxisVar("i", 5)
    assert value_range(Expr({i: -2}, 9)) == (1, 9)
    assert value_range(Expr({i: 3}, 1)) == (1, 13)
