"""Derivatives of whole functions of matrices, of first and second order, where a row's own test cannot say
it: least squares, and vectors whose phases are free."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

RNG = np.random.default_rng(0)
STEP = 1e-6
SHAPES = {"tall": (5, 3), "square": (4, 4), "wide": (3, 5)}


def array(*shape, is_complex=False):
    found = RNG.standard_normal(shape)
    return found + 1j * RNG.standard_normal(shape) if is_complex else found


def slope(f, x, direction):
    return (f(x + STEP * direction) - f(x - STEP * direction)) / (2 * STEP)


def check(f, x, rtol=1e-6):
    """Gradient, tangent and second derivative along a direction."""
    direction = array(*x.shape, is_complex=np.iscomplexobj(x))
    wanted = slope(f, x, direction)
    np.testing.assert_allclose(np.vdot(dyncomp.grad(f)(x), direction).real, wanted, rtol=rtol)
    np.testing.assert_allclose(dyncomp.jvp(f, (x,), (direction,))[1], wanted, rtol=rtol)

    def along(x):
        return (dyncomp.grad(f)(x) * np.conj(direction)).real.sum()

    second = np.vdot(dyncomp.grad(along)(x), direction).real
    np.testing.assert_allclose(second, slope(along, x, direction), rtol=rtol)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("right", [(), (2,)])
@pytest.mark.parametrize("shape", SHAPES)
def test_least_squares(shape, right, is_complex):
    rows, columns = SHAPES[shape]
    a, b = array(rows, columns, is_complex=is_complex), array(rows, *right, is_complex=is_complex)
    weights = array(columns, *right, is_complex=is_complex)

    def f(a, b):
        x, residuals, _, values = np.linalg.lstsq(a, b, rcond=None)
        linear = (np.conj(weights) * x).real.sum()
        return linear + (np.abs(x) ** 4).sum() + (residuals**2).sum() + np.sin(values).sum()

    check(lambda a: f(a, b), a)
    check(lambda b: f(a, b), b)


def test_least_squares_with_equal_singular_values():
    b, weights = array(4), array(4)
    check(lambda a: weights @ np.linalg.lstsq(a, b, rcond=None)[0], 2.0 * np.eye(4))


def test_least_squares_among_matrices_of_a_rank():
    left, right, b, weights = array(4, 2), array(2, 4), array(4), array(4)

    def f(left):
        return weights @ np.linalg.lstsq(left @ right, b, rcond=None)[0]

    check(f, left)


def test_least_squares_of_a_batch():
    a, b = array(3, 5, 2), array(3, 5)

    def solved(a, b):
        return (np.linalg.lstsq(a, b, rcond=None)[0] ** 2).sum()

    many = dyncomp.vmap(dyncomp.grad(solved))(a, b)
    np.testing.assert_allclose(many, [dyncomp.grad(solved)(*pair) for pair in zip(a, b)])


def test_what_cuts_off_singular_values_is_refused():
    with pytest.raises(dyncomp.NotDifferentiableError, match="rcond"):
        dyncomp.grad(lambda a: np.linalg.lstsq(a, np.ones(3), rcond=0.1)[0].sum())(array(3, 3))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors(shape, is_complex):
    rows, columns = SHAPES[shape]
    weights = array(rows, columns, is_complex=is_complex)

    def f(a):
        u, s, vh = np.linalg.svd(a, full_matrices=rows == columns)
        whole = (np.conj(weights) * ((u * np.sin(s)) @ vh)).real.sum()
        return whole + np.abs(vh[0, 0]) ** 2 - np.abs(u[1, 0]) ** 4 + (s**3).sum()

    check(f, array(rows, columns, is_complex=is_complex))


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonal_factors(shape, is_complex):
    rows, columns = SHAPES[shape]
    weights = array(rows, min(rows, columns), is_complex=is_complex)

    def f(a):
        q, r = np.linalg.qr(a)
        return (np.conj(weights) * q).real.sum() + (np.abs(r) ** 4).sum()

    check(f, array(rows, columns, is_complex=is_complex))


@pytest.mark.parametrize("is_complex", [False, True])
def test_eigenvectors(is_complex):
    weights = array(4, 4, is_complex=is_complex)

    def f(a):
        w, v = np.linalg.eigh(a + np.conj(a.T))
        return (np.conj(weights) * ((v * np.sin(w)) @ np.conj(v.T))).real.sum() + np.abs(v[0, 1]) ** 2

    check(f, array(4, 4, is_complex=is_complex))
