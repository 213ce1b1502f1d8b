"""Masked values: which reads have one mask, what is refused, and how they look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dyncomp.errors import Unsupported
from dyncomp.frontends.base import ArrayRef

from .harness import Proxy, trace

X = np.arange(12.0)
M = X > 5
ROWS = np.arange(24.0).reshape(12, 2)


def outcome(program: Any, *arguments: Any) -> Any:
    """What a program returns, its traced values as references."""
    kept: list[Any] = []

    def run(np: Any, *args: Any) -> None:
        kept.append(program(np, *args))

    trace(run, *arguments)
    return _refs(kept[0])


def _refs(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_refs, value))
    return value._ref if isinstance(value, Proxy) else value


SAME = [
    lambda np, x, y, m: (x[m], y[m]),
    lambda np, x, y, m: (x[m], x[m, ...]),
    lambda np, x, y, m: (x[x > 2], y[x > 2]),
    lambda np, x, y, m: (x[(x > 2) & m], y[(x > 2) & m]),
    lambda np, x, y, m: (x[m[:]], y[m[:]]),
    lambda np, x, y, m: (x[m] * 2, np.sqrt(np.abs(y[m])) + 1),
    lambda np, x, y, m: (x[m].astype("f4"), np.where(x[m] > 0, 1, x[m])),
]


@pytest.mark.parametrize("program", SAME)
def test_one_mask(program: Any) -> None:
    first, second = outcome(program, X, X[::-1].copy(), M)
    assert first.kind == second.kind == "masked"
    assert first.mask == second.mask
    assert first.var != second.var


def written_mask(np: Any, x: Any, y: Any, m: Any) -> Any:
    first = x[m]
    m[0] = True
    return first, x[m]


def written_through_a_view(np: Any, x: Any, y: Any, m: Any) -> Any:
    view = m[2:]
    first = x[m]
    view[...] = False
    return first, x[m]


def written_operand(np: Any, x: Any, y: Any, m: Any) -> Any:
    first = y[x > 2]
    x += 1
    return first, y[x > 2]


def other_constant(np: Any, x: Any, y: Any, m: Any) -> Any:
    return x[x > 2], x[x > 3]


def signed_zero(np: Any, x: Any, y: Any, m: Any) -> Any:
    return x[np.copysign(x, 0.0) > 1], x[np.copysign(x, -0.0) > 1]


OTHER = [written_mask, written_through_a_view, written_operand, other_constant, signed_zero]


@pytest.mark.parametrize("program", OTHER)
def test_different_masks(program: Any) -> None:
    first, second = outcome(program, X.copy(), X[::-1].copy(), M.copy())
    assert first.kind == second.kind == "masked"
    assert first.mask != second.mask


def test_written_elsewhere_is_still_the_same() -> None:
    def program(np: Any, x: Any, y: Any, m: Any) -> Any:
        first = y[x > 2]
        y[m] = 0
        return first, y[x > 2]

    first, second = outcome(program, X.copy(), X.copy(), M.copy())
    assert first.mask == second.mask


def test_looks() -> None:
    def program(np: Any, x: Any, rows: Any, m: Any) -> Any:
        t = rows[m]
        return t.ndim, t.dtype, t.shape[1], t.shape[0], t.size, x[m].sum(), t.sum(axis=0), t.sum(axis=1)

    ndim, dtype, columns, count, size, total, sums, row_sums = outcome(program, X, ROWS, M)
    assert (ndim, dtype, columns) == (2, np.dtype(float), 2)
    assert count.kind == size.kind == "python"
    assert total.kind == "scalar"
    assert (sums.kind, sums.shape) == ("array", (2,))
    assert (row_sums.kind, row_sums.shape, row_sums.mask.shape) == ("masked", (12,), (12,))


def test_in_place_gives_the_same_object() -> None:
    def program(np: Any, x: Any, y: Any, m: Any) -> Any:
        t = x[m]
        s = t
        t += y[m]
        return s, t, np.asarray(t), np.multiply(t, 2, out=t), t.copy()

    first, second, third, fourth, copy = outcome(program, X, X, M)
    assert first == second == third == fourth
    assert copy != first


REFUSED = [
    lambda np, x, rows, m: x[m] + x,
    lambda np, x, rows, m: x[m] + x[x > 2],
    lambda np, x, rows, m: x[m] + rows[m],
    lambda np, x, rows, m: x[m][0],
    lambda np, x, rows, m: x[m][::2],
    lambda np, x, rows, m: x[x[m] > 2],
    lambda np, x, rows, m: rows[m][x[m]],
    lambda np, x, rows, m: np.concatenate([x[m], x[m]]),
    lambda np, x, rows, m: np.array([x[m], x[m]]),
    lambda np, x, rows, m: np.cumsum(x[m]),
    lambda np, x, rows, m: x[m].argmax(),
    lambda np, x, rows, m: x[m].reshape(-1),
    lambda np, x, rows, m: x[m].T,
    lambda np, x, rows, m: x[m] @ x[m],
    lambda np, x, rows, m: np.add(x[m], 1, out=x),
    lambda np, x, rows, m: x[m].sum(where=x[m] > 2),
    lambda np, x, rows, m: x[m].astype("f4", order="F"),
    lambda np, x, rows, m: np.add.at(x, x[m], 1),
    lambda np, x, rows, m: np.full_like(x[m], 1, shape=(3,)),
    lambda np, x, rows, m: x.__setitem__(slice(None), x[m]),
    lambda np, x, rows, m: x.__setitem__(x > 2, x[m]),
    lambda np, x, rows, m: rows.__setitem__(m, x[m]),
    lambda np, x, rows, m: x.__setitem__(m, rows[m]),
    lambda np, x, rows, m: x[m].__setitem__(0, 1),
    lambda np, x, rows, m: x[m].__setitem__(m, 1),
]


@pytest.mark.parametrize("program", REFUSED)
def test_refused(program: Any) -> None:
    with pytest.raises(Unsupported):
        outcome(program, X.copy(), ROWS.copy(), M)


def test_every_other_rule_refuses() -> None:
    """No rule may take the whole of a masked value for the value."""
    from .harness import FRONTEND

    def program(np_: Any, x: Any, m: Any) -> int:
        ref: ArrayRef = x[m]._ref
        tx = m._tracer.tx
        accepted = []
        for name, rule in FRONTEND.rules.methods.items():
            nodes = len(tx.builder.nodes)
            try:
                result = rule(tx, ref)
            except (Unsupported, TypeError):
                del tx.builder.nodes[nodes:]
                continue
            if isinstance(result, ArrayRef) and result.kind == "array":
                accepted.append(name)
        assert not accepted
        return len(FRONTEND.rules.methods)

    assert outcome(program, X, M) > 80
