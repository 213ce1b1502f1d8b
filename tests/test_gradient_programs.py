"""Gradients of objective functions as people write them, against central differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dyncomp

pytest.importorskip("scipy")

from .objectives import Objective, statistics  # noqa: E402

OBJECTIVES = (*statistics.CASES,)
STEP = 1e-5


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for key in tree for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def rebuilt(tree: Any, new: Iterator[Any]) -> Any:
    if isinstance(tree, dict):
        return {key: rebuilt(part, new) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(rebuilt(part, new) for part in tree)
    return next(new)


def difference(case: Objective, position: int, directions: list[Any]) -> float:
    """Along these directions, of the fourth order."""
    given = case.args[position]

    def at(steps: int) -> float:
        moved = (x + steps * STEP * d for x, d in zip(leaves(given), directions))
        args = [*case.args]
        args[position] = rebuilt(given, moved)
        return case.f(*args)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)


def direction(rng: np.random.Generator, like: Any) -> Any:
    real = rng.standard_normal(np.shape(like))
    return real + 1j * rng.standard_normal(np.shape(like)) if np.iscomplexobj(like) else real


@pytest.mark.parametrize("case", OBJECTIVES, ids=[case.f.__name__ for case in OBJECTIVES])
def test_gradient(case: Objective) -> None:
    value, gradients = dyncomp.value_and_grad(case.f, argnums=case.wrt)(*case.args)
    np.testing.assert_allclose(value, case.f(*case.args), rtol=1e-10, atol=1e-13)
    rng = np.random.default_rng(5)
    for position, gradient in zip(case.wrt, gradients, strict=True):
        given = leaves(case.args[position])
        for _ in range(2):
            directions = [direction(rng, x) for x in given]
            found = sum(
                np.sum(np.real(np.conj(d) * g)) for d, g in zip(directions, leaves(gradient), strict=True)
            )
            wanted = difference(case, position, directions)
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=3e-8)


def test_there_are_many() -> None:
    assert len({case.f.__name__ for case in OBJECTIVES}) == len(OBJECTIVES) >= 20
