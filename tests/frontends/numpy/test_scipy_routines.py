"""Routines of SciPy in captured code: results, layouts and errors; derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotDifferentiableError

linalg = pytest.importorskip("scipy.linalg")
fft = pytest.importorskip("scipy.fft")
distance = pytest.importorskip("scipy.spatial.distance")

RNG = np.random.default_rng(5)
N = 4


def matrix(is_complex=False, *shape):
    made = RNG.standard_normal(shape or (N, N))
    return made + 1j * RNG.standard_normal(made.shape) if is_complex else made


def positive(a):
    return a @ a.conj().T + 2 * np.eye(len(a))


def shuffled(a):
    """Whose pivots are clear."""
    return 0.3 * a + 5 * np.eye(N)[[2, 0, 3, 1]]


def weighted(x):
    return (np.abs(x) ** 2).sum() + np.real(x * np.linspace(1, 2, x.size).reshape(x.shape)).sum()


# f(a, b) of a square matrix and a right-hand side
PROGRAMS = {
    "cholesky": lambda a, b: linalg.cholesky(positive(a)),
    "cholesky lower": lambda a, b: linalg.cholesky(positive(a), lower=True),
    "cho_factor": lambda a, b: linalg.cho_factor(positive(a))[0],
    "cho_factor lower": lambda a, b: linalg.cho_factor(positive(a), lower=True)[0],
    "cho_solve": lambda a, b: linalg.cho_solve(linalg.cho_factor(positive(a)), b),
    "cho_solve lower": lambda a, b: linalg.cho_solve(linalg.cho_factor(positive(a), lower=True), b),
    "cho_solve of a factor": lambda a, b: linalg.cho_solve((a + 3 * np.eye(N), True), b),
    "triangular": lambda a, b: linalg.solve_triangular(a + 3 * np.eye(N), b),
    "triangular lower": lambda a, b: linalg.solve_triangular(a + 3 * np.eye(N), b, lower=True),
    "triangular adjoint": lambda a, b: linalg.solve_triangular(a + 3 * np.eye(N), b, trans="C", lower=True),
    "triangular unit": lambda a, b: linalg.solve_triangular(a, b, unit_diagonal=True),
    "solve": lambda a, b: linalg.solve(a + 3 * np.eye(N), b),
    "solve positive": lambda a, b: linalg.solve(positive(a), b, assume_a="pos"),
    "solve hermitian": lambda a, b: linalg.solve(a + a.conj().T + 9 * np.eye(N), b, assume_a="her"),
    "inv": lambda a, b: linalg.inv(a + 3 * np.eye(N)),
    "det": lambda a, b: linalg.det(a) * b,
    "lu_factor": lambda a, b: linalg.lu_factor(shuffled(a))[0],
    "lu_solve": lambda a, b: linalg.lu_solve(linalg.lu_factor(shuffled(a)), b),
    "lu_solve adjoint": lambda a, b: linalg.lu_solve(linalg.lu_factor(shuffled(a)), b, trans=2),
    "eigh": lambda a, b: linalg.eigh(a + a.conj().T)[0],
    "eigvalsh upper": lambda a, b: linalg.eigvalsh(a + a.conj().T, lower=False),
    "svdvals": lambda a, b: linalg.svdvals(a[:, :3]),
    "svd values": lambda a, b: linalg.svd(a, compute_uv=False),
    "qr": lambda a, b: linalg.qr(a[:, :3], mode="economic")[1],
    "expm": lambda a, b: linalg.expm(a / 3),
    "logm": lambda a, b: linalg.logm(positive(a)),
    "sqrtm": lambda a, b: linalg.sqrtm(positive(a)),
    "toeplitz": lambda a, b: linalg.toeplitz(a[0], a[1]) @ b,
    "toeplitz of one": lambda a, b: linalg.toeplitz(a[0]) @ b,
    "hankel": lambda a, b: linalg.hankel(a[0], a[1]) @ b,
    "hankel of one": lambda a, b: linalg.hankel(a[0]) @ b,
    "circulant": lambda a, b: linalg.circulant(a[0]) @ b,
    "fft": lambda a, b: fft.fft(a, axis=0),
    "ifft": lambda a, b: fft.ifft(a, n=6, norm="ortho"),
    "fft2": lambda a, b: fft.fft2(a),
    "ifftn": lambda a, b: fft.ifftn(a, s=(3, 5), axes=(1, 0)),
}
REAL = {
    "rfft": lambda a, b: fft.rfft(a, axis=0),
    "irfft": lambda a, b: fft.irfft(fft.rfft(a) * b[0], n=N),
    "rfft2": lambda a, b: fft.rfft2(a),
    "irfftn": lambda a, b: fft.irfftn(fft.rfftn(a) ** 2),
    "dct": lambda a, b: fft.dct(a, norm="ortho") ** 2,
    "idct": lambda a, b: fft.idct(a, type=3, norm="ortho", axis=0) ** 2,
    "dst": lambda a, b: fft.dst(a, type=1, norm="ortho") ** 2,
    "cdist": lambda a, b: distance.cdist(a, a[1:] * 2),
    "cdist with zeros": lambda a, b: distance.cdist(a, a),
    "cdist squared": lambda a, b: distance.cdist(a[:2], a, "sqeuclidean"),
    "triangular transposed": lambda a, b: linalg.solve_triangular(a + 3 * np.eye(N), b, trans=1),
    "eigenvectors": lambda a, b: linalg.eigh(a + a.T)[1] ** 2,
    "singular vectors": lambda a, b: linalg.svd(a[:, :3], full_matrices=False)[0] ** 2,
    "orthogonal factor": lambda a, b: linalg.qr(a)[0] ** 2,
}
CASES = [(name, f, False, k) for name, f in {**PROGRAMS, **REAL}.items() for k in (1, 2)]
CASES += [(name, f, True, 2) for name, f in PROGRAMS.items()]
IDS = [f"{name} {'complex' if c else 'real'} {k}" for name, _, c, k in CASES]
# logm, a difference of a difference, is right to fewer digits
LOOSE = {"logm": 2e-5}


@pytest.mark.parametrize(("name", "f", "is_complex", "ndim"), CASES, ids=IDS)
def test_routine(name, f, is_complex, ndim):
    a = matrix(is_complex)
    b = matrix(is_complex, *(N, 3)[:ndim])
    expected, found = f(a, b), dyncomp.compile(f, fullgraph=True)(a, b)
    assert type(found) is type(expected) and found.dtype == expected.dtype
    assert found.strides == expected.strides
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)

    def total(a, b):
        return weighted(f(a, b))

    gradients = dyncomp.grad(total, argnums=(0, 1))(a, b)
    directions = [matrix(is_complex, *x.shape) for x in (a, b)]
    step = 1e-3

    def at(t):
        return total(a + t * step * directions[0], b + t * step * directions[1])

    wanted = (at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * step)
    product = sum(np.real(np.conj(g) * d).sum() for g, d in zip(gradients, directions))
    assert product == pytest.approx(wanted, rel=LOOSE.get(name, 1e-6), abs=1e-7)
    if name.startswith("lu_"):
        with pytest.raises(NotDifferentiableError, match="forward mode"):
            dyncomp.jvp(total, (a, b), tuple(directions))
    else:
        _, tangent = dyncomp.jvp(total, (a, b), tuple(directions))
        assert tangent == pytest.approx(product, rel=1e-8, abs=1e-9)


def test_hessian_of_a_likelihood():
    x = np.linspace(0.0, 3.0, 6)
    y = np.sin(x)

    def likelihood(theta):
        length, noise = np.exp(theta)
        k = np.exp(-0.5 * distance.cdist(x[:, None], x[:, None], "sqeuclidean") / length**2)
        factor = linalg.cho_factor(k + noise * np.eye(6))
        return 0.5 * y @ linalg.cho_solve(factor, y) + np.log(np.diag(factor[0])).sum()

    theta = np.array([0.1, -1.0])
    by = dyncomp.grad(likelihood)
    step = 1e-5
    wanted = [(by(theta + step * e) - by(theta - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(dyncomp.hessian(likelihood)(theta), wanted, rtol=1e-6)


def test_sizes_may_change():
    compiled = dyncomp.compile(lambda a: linalg.cholesky(a, lower=True), fullgraph=True)
    by = dyncomp.grad(lambda a: linalg.cho_solve(linalg.cho_factor(a), np.ones(len(a))).sum())
    for n in (3, 5, 4, 7):
        a = positive(matrix(False, n, n))
        np.testing.assert_allclose(compiled(a), linalg.cholesky(a, lower=True), rtol=1e-13)
        inverse = np.linalg.inv(a).sum(axis=0)
        np.testing.assert_allclose(by(a), -np.outer(inverse, inverse), rtol=1e-9)


def test_errors_are_scipys():
    compiled = dyncomp.compile(lambda a: linalg.cholesky(a) * 2)
    gradient = dyncomp.grad(lambda a: linalg.cholesky(a).sum())
    for bad, error in ((-np.eye(3), linalg.LinAlgError), (np.full((3, 3), np.nan), ValueError)):
        compiled(np.eye(3))
        gradient(np.eye(3))
        with pytest.raises(error):
            compiled(bad)
        with pytest.raises(error):
            gradient(bad)


def test_arguments_that_scipy_overwrites_stay_in_plain_code():
    compiled = dyncomp.compile(lambda a: linalg.cholesky(a, overwrite_a=True) * 1.0)
    a, b = (np.asfortranarray(positive(np.arange(9.0).reshape(3, 3) / 9)) for _ in range(2))
    np.testing.assert_array_equal(compiled(a), linalg.cholesky(b, overwrite_a=True))
    np.testing.assert_array_equal(a, b)


def test_a_backend_of_fourier_transforms_is_asked():
    class Backend:
        __ua_domain__ = "numpy.scipy.fft"

        @staticmethod
        def __ua_function__(method, args, kwargs):
            return np.full(4, 7.0 + 0j)

    compiled = dyncomp.compile(lambda x: fft.fft(x) * 2)
    x = np.arange(4.0)
    np.testing.assert_allclose(compiled(x), fft.fft(x) * 2)
    with fft.set_backend(Backend):
        np.testing.assert_array_equal(compiled(x), 14.0)
    np.testing.assert_allclose(compiled(x), fft.fft(x) * 2)
