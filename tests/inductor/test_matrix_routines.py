"""Linear algebra of one float64 matrix runs in NumPy's LAPACK, equal to the last bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dyncomp
from dyncomp.runtime import _launch
from tests.capture.comparing import call, differences

pytestmark = pytest.mark.skipif(not _launch.lapack_available(), reason="NumPy has no LAPACK that we know")
RANDOM = np.random.default_rng(4)
OF_SYMMETRIC = {
    np.linalg.inv: _launch.inverse,
    np.linalg.det: _launch.determinant,
    np.linalg.cholesky: _launch.cholesky,
    np.linalg.qr: _launch.reduced_qr,
    np.linalg.eigh: _launch.eigh,
    np.linalg.eigvalsh: _launch.eigvalsh,
}
LAYOUTS = (
    np.ascontiguousarray,
    np.asfortranarray,
    lambda m: np.repeat(m, 2, 0)[::2],
    lambda m: m[::-1, ::-1],
)


def definite(n):
    m = RANDOM.standard_normal((n, n))
    return m @ m.T + np.eye(n)


def parts(value):
    return tuple(np.asarray(part) for part in value) if isinstance(value, tuple) else (np.asarray(value),)


def is_same(plain, mine):
    pairs = zip(parts(plain), parts(mine), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", (1, 2, 5, 12, 40))
@pytest.mark.parametrize("function", OF_SYMMETRIC, ids=lambda f: f.__name__)
def test_equal_to_the_last_bit(function, n, layout):
    matrix = layout(definite(n))
    assert is_same(function(matrix), OF_SYMMETRIC[function](matrix))


@pytest.mark.parametrize("shape", ((5, 3), (3, 5), (1, 4), (40, 7)))
def test_qr_of_any_shape(shape):
    matrix = RANDOM.random(shape)
    assert is_same(tuple(np.linalg.qr(matrix)), _launch.reduced_qr(matrix))


@pytest.mark.parametrize("shape", ((6,), (6, 1), (6, 4)))
def test_solve(shape):
    matrix, right = definite(6), RANDOM.random(shape)
    assert is_same(np.linalg.solve(matrix, right), _launch.solve(matrix, right))
    assert is_same(np.linalg.solve(matrix.T, right[::-1]), _launch.solve(matrix.T, right[::-1]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", ((6,), (6, 1), (6, 4)))
def test_a_solution_in_two_steps_is_the_same(shape, layout):
    matrix, right = layout(definite(6) + RANDOM.random((6, 6))), RANDOM.random(shape)
    factors = _launch.factored(matrix)
    assert is_same(np.linalg.solve(matrix, right), _launch.solve_factored(False, matrix, *factors, right))
    turned = _launch.solve_factored(True, matrix, *factors, right)
    np.testing.assert_allclose(turned, np.linalg.solve(matrix.T, right), rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", (1, 2, 5, 40))
@pytest.mark.parametrize("lower", (True, False))
def test_triangles(lower, n, layout):
    matrix = layout(definite(n) + RANDOM.random((n, n)))
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    right = layout(RANDOM.random((n, n)))[:, : (n + 1) // 2]
    found = _launch.triangular(lower, True, matrix, right)
    np.testing.assert_allclose(triangle @ found, right, rtol=1e-11, atol=1e-11)
    found = _launch.triangular(lower, False, matrix, right.T)
    np.testing.assert_allclose(found @ triangle, right.T, rtol=1e-11, atol=1e-11)
    assert found.flags.c_contiguous


def test_singular_matrices_raise():
    matrix = np.diag([1.0, 0.0, 2.0])
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        _launch.factored(matrix)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        _launch.triangular(True, True, matrix, np.ones((3, 1)))
    factors, pivots = _launch.factored(np.eye(3))
    with pytest.raises(TypeError):
        _launch.solve_factored(False, np.eye(3), factors, pivots + 7, np.ones(3))


def test_one_matrix_is_factored_once():
    def f(a, b, c):
        return np.linalg.solve(a, b), np.linalg.solve(a, c)

    args = definite(5), RANDOM.random(5), RANDOM.random((5, 2))
    compiled = dyncomp.compile(f)
    assert is_same(f(*args), compiled(*args))
    entries = dyncomp.explain(f)(*args).entries
    ops = [node.op for node in entries[0].compiled.graph_after.nodes]
    assert sorted(ops) == ["lu_factor", "solve_factored", "solve_factored"]


@pytest.mark.parametrize("function", (_launch.inverse, _launch.determinant, _launch.cholesky))
@pytest.mark.parametrize("wrong", (np.eye(2, dtype=np.float32), np.ones((2, 3)), np.ones(3), 1.0, [[1.0]]))
def test_refused(function, wrong):
    with pytest.raises(TypeError):
        function(wrong)


def step(a, b):
    q, r = np.linalg.qr(a)
    w, v = np.linalg.eigh(a @ a.T)
    low = np.linalg.cholesky(a @ a.T + np.eye(3))
    return np.linalg.inv(a) @ b, np.linalg.solve(a, b), np.linalg.det(a), q @ r, w, v * v, low


SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("dtype", (np.float64, np.float32, np.complex128))
@pytest.mark.parametrize("matrix", (definite(3), SINGULAR, np.full((3, 3), np.nan), 1e150 * definite(3)))
def test_programs(matrix, dtype):
    with np.errstate(over="ignore"):
        arguments = (matrix.astype(dtype), np.arange(3.0).astype(dtype))
    compiled = dyncomp.compile(step)
    with warnings.catch_warnings(record=True) as plain:
        warnings.simplefilter("always")
        expected = call(step, arguments)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as mine:
            warnings.simplefilter("always")
            found = call(compiled, arguments)
        assert not differences(expected, found, 1e-5 if dtype is np.float32 else 1e-10)
        assert {str(w.message) for w in plain} == {str(w.message) for w in mine}
