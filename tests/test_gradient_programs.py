"""Gradients of objective functions as people write them, against central differences; those of the models
that ``bench.gradients`` measures against JAX's, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dyncomp
from bench.gradient_cases import CASES as MODELS
from bench.gradient_cases import Case

pytest.importorskip("scipy")

from .objectives import Objective, learning, programs, science, scipy_programs, statistics  # noqa: E402

OBJECTIVES = (
    *statistics.CASES,
    *learning.CASES,
    *science.CASES,
    *programs.CASES,
    *scipy_programs.CASES,
)
RNG = np.random.default_rng(7)
MEASURED = tuple(Objective(case.loss, case.small(RNG), tuple(range(case.wrt))) for case in MODELS)
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


@pytest.mark.parametrize("case", OBJECTIVES + MEASURED, ids=lambda case: case.f.__name__)
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


@pytest.mark.slow
@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_gradient_as_jax_has_it(case: Case) -> None:
    jax = pytest.importorskip("jax")
    from bench.jax_models import ported

    arguments, wrt = case.small(np.random.default_rng(8)), tuple(range(case.wrt))
    jax.config.update("jax_enable_x64", True)
    wanted, theirs = jax.value_and_grad(ported(case.loss), argnums=wrt)(*map(jax.numpy.asarray, arguments))
    value, gradients = dyncomp.value_and_grad(case.loss, argnums=wrt)(*arguments)
    for own, other in zip((value, *gradients), (wanted, *theirs), strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-9 * np.abs(other).max())


def test_there_are_many() -> None:
    assert len({case.f.__name__ for case in OBJECTIVES}) == len(OBJECTIVES) >= 70
