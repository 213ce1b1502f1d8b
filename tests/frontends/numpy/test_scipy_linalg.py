"""``scipy.linalg`` in graphs: results as scipy gives them, derivatives, errors."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

linalg = pytest.importorskip("scipy.linalg")

RNG = np.random.default_rng(4)
A = RNG.standard_normal((4, 4)) + 3 * np.eye(4)
S = A @ A.T + 2 * np.eye(4)
B = RNG.standard_normal((4, 3))
W = RNG.standard_normal((4, 4))


def symmetric(a):
    return a @ a.T + 2 * np.eye(4)


PROGRAMS = {
    "cholesky": lambda a, b: linalg.cholesky(symmetric(a)),
    "cholesky lower": lambda a, b: linalg.cholesky(symmetric(a), lower=True),
    "cho_factor": lambda a, b: linalg.cho_factor(symmetric(a), lower=True)[0],
    "cho_solve": lambda a, b: linalg.cho_solve(linalg.cho_factor(symmetric(a)), b),
    "cho_solve lower": lambda a, b: linalg.cho_solve(linalg.cho_factor(symmetric(a), True), b[:, 0]),
    "triangular": lambda a, b: linalg.solve_triangular(a, b),
    "triangular lower": lambda a, b: linalg.solve_triangular(a, b[:, 1], lower=True, check_finite=False),
    "triangular transposed": lambda a, b: linalg.solve_triangular(a, b, trans="T", lower=True),
    "triangular unit": lambda a, b: linalg.solve_triangular(a, b, trans=1, unit_diagonal=True),
    "solve": lambda a, b: linalg.solve(a, b),
    "solve positive": lambda a, b: linalg.solve(symmetric(a), b[:, 0], assume_a="pos"),
    "solve symmetric": lambda a, b: linalg.solve(a + a.T, b, assume_a="sym", lower=True),
    "inv": lambda a, b: linalg.inv(a) @ b,
    "det": lambda a, b: linalg.det(a),
    "expm": lambda a, b: linalg.expm(0.4 * a) @ b,
    "eigh": lambda a, b: linalg.eigh(symmetric(a))[0],
    "eigh vectors": lambda a, b: linalg.eigh(symmetric(a))[1] ** 2,
    "toeplitz": lambda a, b: linalg.toeplitz(a[0]) @ linalg.toeplitz(a[1], b[0]),
    "hankel": lambda a, b: linalg.hankel(a[0], b[0]),
    "circulant": lambda a, b: linalg.circulant(a[:, 0]) @ b,
    "block_diag": lambda a, b: linalg.block_diag(a, b),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name):
    f = PROGRAMS[name]
    compiled = dyncomp.compile(f, fullgraph=True)
    for _ in range(2):
        wanted, found = f(A, B), compiled(A, B)
        assert type(found) is type(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
        if isinstance(wanted, np.ndarray):
            assert found.dtype == wanted.dtype
            assert found.flags.f_contiguous == wanted.flags.f_contiguous


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    program = PROGRAMS[name]
    weights = RNG.standard_normal(np.shape(program(A, B)))

    def f(a, b):
        return (weights * program(a, b)).sum()

    da, db = RNG.standard_normal(A.shape), RNG.standard_normal(B.shape)

    def along(t):
        return f(A + t * da, B + t * db)

    h = 1e-4
    wanted = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    by_a, by_b = dyncomp.grad(f, argnums=(0, 1))(A, B)
    np.testing.assert_allclose((by_a * da).sum() + (by_b * db).sum(), wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(dyncomp.jvp(f, (A, B), (da, db))[1], wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["cholesky", "triangular", "solve", "expm", "cho_solve"])
def test_second_derivatives(name):
    program = PROGRAMS[name]

    def f(a):
        return (program(a, B) ** 2).sum()

    direction = RNG.standard_normal(A.shape)
    product = dyncomp.grad(lambda a: (dyncomp.grad(f)(a) * direction).sum())(A)
    slope, h = dyncomp.grad(f), 1e-5
    wanted = (slope(A + h * direction) - slope(A - h * direction)) / (2 * h)
    np.testing.assert_allclose(product, wanted, rtol=1e-5, atol=1e-5)


def test_errors_are_scipys():
    compiled = dyncomp.compile(PROGRAMS["solve"])
    both = dyncomp.value_and_grad(lambda a: linalg.cholesky(a).sum())
    for _ in range(2):
        with pytest.raises(linalg.LinAlgError, match="singular"):
            compiled(np.zeros((4, 4)), B)
        with pytest.raises(ValueError, match="infs or NaNs"):
            compiled(np.full((4, 4), np.nan), B)
        with pytest.raises(linalg.LinAlgError, match="positive definite"):
            both(-np.eye(4))
        assert np.isfinite(both(S)[0])
    with pytest.warns(linalg.LinAlgWarning):
        compiled(np.diag([1.0, 1.0, 1.0, 1e-18]), B)


def test_sizes_may_change():
    made = dyncomp.value_and_grad(lambda a, y: y @ linalg.cho_solve(linalg.cho_factor(a), y))
    for n in (3, 5, 4, 6):
        a, y = np.eye(n) * 2 + 0.1, np.arange(n) + 1.0
        value, slope = made(a, y)
        x = np.linalg.solve(a, y)
        np.testing.assert_allclose(value, y @ x)
        np.testing.assert_allclose(slope, -np.outer(x, x))
