"""Programs with SciPy's special functions, linear algebra, transforms and distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special
from scipy.linalg import expm, solve_triangular
from scipy.signal import fftconvolve, lfilter
from scipy.spatial.distance import cdist
from scipy.special import expit, gammaln, log_softmax, logit, logsumexp, softmax, xlogy

from . import Objective
from .programs import RNG, normal, positive

CASES: list[Objective] = []


def case(*args: Any, by: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Objective(function, args, tuple(range(by))))
        return function

    return note


# -- special functions --------------------------------------------------------------------------
@case(np.array([0.4, 1.1]), RNG.uniform(0.05, 0.95, 15))
def beta_likelihood(params, x):
    a, b = np.exp(params)
    return np.sum(scipy.special.betaln(a, b) - xlogy(a - 1, x) - scipy.special.xlog1py(b - 1, -x))


@case(positive(4), RNG.integers(0, 6, (8, 4)))
def dirichlet_multinomial(alpha, counts):
    n = counts.sum(axis=1)
    a = alpha.sum()
    parts = gammaln(counts + alpha) - gammaln(alpha)
    return -np.sum(gammaln(a) - gammaln(n + a) + parts.sum(axis=1))


@case(np.array([0.2, 0.5]), positive(12))
def rician(params, m):
    nu, s2 = np.exp(params[0]), np.exp(params[1])
    z = m * nu / s2
    return -np.sum(np.log(m / s2) - (m**2 + nu**2) / (2 * s2) + np.log(scipy.special.i0e(z)) + z)


@case(normal(3), normal(20, 3), RNG.integers(0, 2, 20))
def probit_by_log_ndtr(w, X, y):
    return -np.sum(scipy.special.log_ndtr((2 * y - 1) * (X @ w)))


@case(normal(3), normal(20, 3), RNG.integers(0, 2, 20))
def logistic_by_expit(w, X, y):
    p = expit(X @ w)
    return -np.mean(y * np.log(p) + (1 - y) * np.log1p(-p)) + 0.1 * scipy.special.rel_entr(p, 0.5).sum()


@case(normal(3), normal(20, 3), RNG.integers(0, 2, 20))
def logistic_by_log_expit(w, X, y):
    z = X @ w
    return -np.sum(y * scipy.special.log_expit(z) + (1 - y) * scipy.special.log_expit(-z))


@case(normal(4), RNG.uniform(0.1, 0.9, 4))
def logit_normal(mu, p):
    return 0.5 * np.sum((logit(p) - mu) ** 2) + np.sum(scipy.special.entr(expit(mu)))


@case(RNG.uniform(0.1, 0.9, 5), RNG.uniform(0.1, 0.9, 5), by=2)
def kullback_leibler(p, q):
    return np.sum(scipy.special.kl_div(p, q)) + np.sum(scipy.special.rel_entr(q, p))


@case(normal(5, 3), normal(25, 5), RNG.integers(0, 3, 25))
def cross_entropy_by_log_softmax(W, X, labels):
    return -log_softmax(X @ W, axis=1)[np.arange(25), labels].mean()


@case(normal(6), normal(6))
def softmax_policy(theta, reward):
    return -softmax(theta) @ reward - 0.1 * np.sum(scipy.special.entr(softmax(theta)))


@case(normal(3), normal(4, 3), normal(20), by=2)
def mixture_by_logsumexp(logits, means, x):
    a = logits - logsumexp(logits) - 0.5 * (x[:, None] - means[0]) ** 2
    return -logsumexp(a, axis=1).sum() + logsumexp(means, b=np.full((4, 3), 0.5))


@case(normal(3, 3), normal(3, 4), normal(3), RNG.integers(0, 4, 12), by=3)
def hidden_markov_in_logs(A, B, pi, obs):
    logA, logB = log_softmax(A, axis=1), log_softmax(B, axis=1)
    log_alpha = log_softmax(pi) + logB[:, obs[0]]
    for o in obs[1:]:
        log_alpha = logsumexp(log_alpha[:, None] + logA, axis=0) + logB[:, o]
    return -logsumexp(log_alpha)


@case(np.array([0.1, 0.3, 0.05]))
def black_scholes_calls(params):
    sigma, rate, carry = params
    S, T = 100.0, 0.7
    K = np.linspace(80, 120, 9)
    d1 = (np.log(S / K) + (rate - carry + sigma**2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    return np.sum(
        S * np.exp(-carry * T) * scipy.special.ndtr(d1) - K * np.exp(-rate * T) * scipy.special.ndtr(d2)
    )


@case(positive(3), positive(10))
def erf_pulse(p, t):
    return np.sum(p[0] * (scipy.special.erf((t - p[1]) / p[2]) + scipy.special.erfc(t * p[2])) ** 2)


@case(np.array([0.7, 1.3]), positive(8))
def voigt_like_profile(p, x):
    return np.sum(scipy.special.erfcx(p[0] * x)) + np.sum(scipy.special.dawsn(p[1] * x))


@case(positive(3))
def airy_disc(p):
    x = np.linspace(0.2, 5.0, 14)
    return np.sum((2 * scipy.special.j1(p[0] * x) / (p[0] * x)) ** 2 * p[1]) + p[2] ** 2


@case(positive(3))
def gamma_functions(a):
    return np.sum(scipy.special.gamma(a)) + np.sum(scipy.special.digamma(a)) + scipy.special.poch(a[0], 3.0)


@case(positive(2), positive(5))
def incomplete_gamma(a, x):
    return np.sum(scipy.special.gammainc(2.5, a[0] * x) + scipy.special.gammaincc(1.5, a[1] * x))


@case(normal(5, scale=0.5))
def normalised_sinc(x):
    return np.sum(np.sinc(x) ** 2) + np.sum(scipy.special.expm1(x)) + scipy.special.cosm1(x).sum()


@case(RNG.uniform(0.1, 0.9, 4))
def quantile_transform(u):
    return np.sum(scipy.special.ndtri(u) ** 2) + np.sum(scipy.special.erfinv(2 * u - 1))


@case(normal(4), normal(10))
def huber_by_scipy(w, y):
    return np.sum(scipy.special.huber(1.0, y - w.mean())) + np.sum(scipy.special.pseudo_huber(0.5, y - w[0]))


@case(positive(2))
def exponential_integral(a):
    x = np.linspace(0.3, 2, 6)
    return np.sum(scipy.special.exp1(a[0] * x)) + np.sum(scipy.special.expi(a[1] * x))


# -- linear algebra -----------------------------------------------------------------------------
@case(np.array([0.1, -0.3, -1.0]), np.linspace(0, 3, 12), np.sin(np.linspace(0, 3, 12)))
def matern_process(theta, x, y):
    length, amp, noise = np.exp(theta)
    r = np.sqrt(3.0) * np.abs(x[:, None] - x[None, :]) / length
    K = amp * (1 + r) * np.exp(-r) + noise * np.eye(12)
    L = scipy.linalg.cholesky(K, lower=True)
    z = solve_triangular(L, np.column_stack([y, np.ones(12)]), lower=True)
    return (
        z[:, 0] @ z[:, 0]
        - z[:, 0] @ z[:, 1]
        + 2 * np.log(np.diag(L)).sum()
        + np.sum(solve_triangular(L, z, lower=True, trans="T"))
    )


@case(normal(3, 3), normal(10, 3), by=2)
def multivariate_normal_precision(chol, X):
    L = np.tril(chol, -1) + np.diag(np.exp(np.diag(chol)))
    z = solve_triangular(L, X.T, lower=True)
    return 0.5 * np.sum(z**2) + len(X) * np.log(np.diag(L)).sum()


@case(normal(3), normal(3))
def rotation_by_expm(w, v):
    W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    return np.sum((expm(W) @ v - v[::-1]) ** 2)


@case(normal(4, 4), normal(4), by=2)
def solve_by_scipy(A, b):
    M = A @ A.T + np.eye(4)
    return scipy.linalg.solve(M, b, assume_a="pos") @ b + scipy.linalg.det(M) + scipy.linalg.inv(M).sum()


@case(normal(4, 4), normal(4), by=2)
def lu_solve(A, b):
    lu = scipy.linalg.lu_factor(A)
    return np.sum(scipy.linalg.lu_solve(lu, b) ** 2)


@case(normal(4, 4))
def eigenvalues_by_scipy(A):
    w, v = scipy.linalg.eigh(A + A.T)
    return np.sum(w**3) + np.abs(v[:, 0]).sum() + scipy.linalg.eigvalsh(A @ A.T)[-1]


@case(normal(4, 3))
def svd_by_scipy(A):
    U, s, Vt = scipy.linalg.svd(A, full_matrices=False)
    return np.sum((U * s) @ Vt) + s[0] + scipy.linalg.norm(A) + scipy.linalg.svdvals(A)[-1]


@case(normal(4, 3))
def qr_by_scipy(A):
    Q, R = scipy.linalg.qr(A, mode="economic")
    return np.abs(R).sum() + (Q**3).sum()


@case(normal(3, 3), normal(3, 3))
def matrix_logarithm(A, B):
    M = A @ A.T + np.eye(3)
    return np.sum(scipy.linalg.logm(M) * B)


@case(normal(3, 3), normal(3, 3))
def matrix_square_root(A, B):
    return np.sum(scipy.linalg.sqrtm(A @ A.T + np.eye(3)) * B)


@case(normal(3, 3, scale=0.4), normal(3, 3))
def lyapunov(A, Q):
    return np.trace(scipy.linalg.solve_discrete_lyapunov(0.5 * A, Q @ Q.T))


@case(positive(3), normal(10, 2))
def radial_basis_functions(p, X):
    near = np.exp(-p[0] * cdist(X, X * p[1]) ** 2)
    return near.sum() + np.log(cdist(X * p[2], X[:4] + 9.0, "sqeuclidean")).sum()


@case(normal(12), np.array([0.2, 0.5, 0.3]), by=2)
def filtered_signal(x, b):
    return np.sum(lfilter(b, [1.0], x) ** 2) + np.sum(fftconvolve(x, b) ** 3)


@case(normal(8))
def discrete_cosine(x):
    return np.sum(np.abs(scipy.fft.dct(x, norm="ortho"))) + np.sum(np.abs(scipy.fft.fft(x)) ** 2)
