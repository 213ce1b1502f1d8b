"""Optics, signals, mechanics, splines, matrices, epidemics."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.special
from scipy.special import jv, log_softmax, logsumexp

from . import Objective, R, collector

CASES: list[Objective] = []
case = collector(CASES)


@dataclass
class Well:
    depth: float
    width: float


@case(R.standard_normal((8, 8)))
def phase_retrieval(phase):
    target = np.zeros((8, 8))
    target[2:5, 2:5] = 1.0
    field = np.exp(1j * phase)
    intensity = np.abs(np.fft.fftshift(np.fft.fft2(field, norm="ortho"))) ** 2
    return np.mean((intensity - target) ** 2)


@case(np.array([100.0, 150.0, 80.0]), np.linspace(0.4, 0.8, 5))
def thin_film_reflectance(d, wavelengths):
    n = [1.0, 2.3, 1.38, 2.3, 1.52]
    total = 0.0
    for lam in wavelengths:
        M = np.eye(2, dtype=complex)
        for k, thickness in enumerate(d):
            delta = 2 * np.pi * n[k + 1] * thickness * 1e-3 / lam
            c, s = np.cos(delta), np.sin(delta)
            M = M @ np.array([[c, 1j * s / n[k + 1]], [1j * n[k + 1] * s, c]])
        B, C = M @ np.array([1.0, n[-1]])
        r = (n[0] * B - C) / (n[0] * B + C)
        total += np.abs(r) ** 2
    return total / len(wavelengths)


@case(np.array([0.1, 0.05, -0.02]), np.linspace(-1, 1, 7), np.linspace(-1, 1, 7))
def lens_spot_size(curv, x, y):
    X, Y = np.meshgrid(x, y)
    r2 = X**2 + Y**2
    sag = curv[0] * r2 / (1 + np.sqrt(1 - curv[0] ** 2 * r2)) + curv[1] * r2**2 + curv[2] * r2**3
    gy, gx = np.gradient(sag, y, x)
    return np.sqrt(np.mean((X - 5 * gx) ** 2 + (Y - 5 * gy) ** 2))


@case(
    R.standard_normal(6) + 1j * R.standard_normal(6),
    R.standard_normal(32) + 1j * R.standard_normal(32),
    R.standard_normal(32) + 0j,
)
def complex_equaliser(w, received, sent):
    y = np.convolve(received, w, mode="same")
    e = y - sent
    return np.real(np.vdot(e, e)) / len(e)


@case(R.standard_normal(16))
def spectral_flatness(x):
    P = np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2 + 1e-6
    return np.exp(np.mean(np.log(P))) / np.mean(P)


@case(np.array([0.3, 1.1, 0.5, 2.0, 0.9, 0.2]), np.linspace(0, 1, 30))
def sum_of_sinusoids(theta, t):
    A, f, p = theta.reshape(3, 2)
    model = (A[:, None] * np.sin(2 * np.pi * f[:, None] * t + p[:, None])).sum(axis=0)
    return np.trapezoid((model - np.sign(np.sin(7 * t))) ** 2, t)


@case(R.random((4, 3)), np.array([1.0, 2.0, 1.5, 0.5]))
def gravitational_energy(q, m):
    diff = q[:, np.newaxis, :] - q[np.newaxis, :, :]
    r = np.sqrt((diff**2).sum(axis=-1) + 1e-3)
    pairs = np.outer(m, m) / r
    return -np.sum(np.triu(pairs, k=1))


@case(R.random((6, 6)) * 2 * np.pi)
def xy_model(theta):
    e = 0.0
    for axis in range(2):
        e -= np.cos(theta - np.roll(theta, -1, axis=axis)).sum()
    return e


@case(R.random(12) + 1.0)
def truss_compliance(areas):
    nodes = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])
    bars = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)]
    K = np.zeros((12, 12))
    for a, (i, j) in zip(areas, bars):
        d = nodes[j] - nodes[i]
        L = np.linalg.norm(d)
        c = d / L
        k = a / L * np.outer(c, c)
        s, t = slice(2 * i, 2 * i + 2), slice(2 * j, 2 * j + 2)
        K[s, s] += k
        K[t, t] += k
        K[s, t] -= k
        K[t, s] -= k
    f = np.zeros(12)
    f[9] = -1.0
    free = np.arange(4, 12)
    u = np.linalg.solve(K[np.ix_(free, free)], f[free])
    return f[free] @ u


@case(R.standard_normal(10), np.linspace(0, 1, 10), np.array([0.13, 0.42, 0.77]), np.array([0.2, -0.4, 0.1]))
def piecewise_linear_fit(knots, grid, x, y):
    return np.sum((np.interp(x, grid, knots) - y) ** 2) + 0.1 * np.sum(np.diff(knots, 2) ** 2)


@case(R.standard_normal(7), np.linspace(0.05, 0.95, 12), R.standard_normal(12))
def cubic_b_spline(c, x, y):
    t = np.concatenate([np.zeros(3), np.linspace(0, 1, 5), np.ones(3)])
    B = np.where((t[:-1] <= x[:, None]) & (x[:, None] < t[1:]), 1.0, 0.0)
    for k in range(1, 4):
        left = np.divide(
            x[:, None] - t[: -k - 1],
            t[k:-1] - t[: -k - 1],
            out=np.zeros((len(x), len(t) - k - 1)),
            where=t[k:-1] > t[: -k - 1],
        )
        right = np.divide(
            t[k + 1 :] - x[:, None],
            t[k + 1 :] - t[1:-k],
            out=np.zeros((len(x), len(t) - k - 1)),
            where=t[k + 1 :] > t[1:-k],
        )
        B = left * B[:, :-1] + right * B[:, 1:]
    return np.sum((B @ c - y) ** 2) + 1e-3 * c @ c


@case(R.standard_normal((2, 3)), R.standard_normal((3, 4, 2)), R.standard_normal((4, 2)), wrt=(0, 1, 2))
def tensor_network(A, B, C):
    return np.einsum("ia,ajb,jb->i", A, B, C) @ np.einsum("ia,ia->i", A, A)


@case(R.standard_normal((4, 4)))
def procrustes(A):
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    Q = U @ Vt
    return np.trace(Q) + np.log(s).sum() + s.max()


@case(R.standard_normal((5, 5)))
def spectral_gap(M):
    S = (M + M.T) / 2
    w, V = np.linalg.eigh(S)
    return w[-1] - w[-2] + V[0, -1] ** 2


@case(R.standard_normal((6, 3)))
def ridge_leave_one_out(X):
    y = np.arange(6.0)
    H = X @ np.linalg.inv(X.T @ X + 0.3 * np.eye(3)) @ X.T
    r = (y - H @ y) / (1 - np.diag(H))
    return np.mean(r**2)


@case(np.array([0.2, 0.5, 0.3]), R.standard_normal(40).cumsum())
def local_level_smoother(theta, y):
    q, r, p0 = np.exp(theta)
    m, P = y[0], p0
    filtered = []
    for value in y[1:12]:
        P = P + q
        K = P / (P + r)
        m = m + K * (value - m)
        P = (1 - K) * P
        filtered.append(m)
    filtered = np.array(filtered)
    return np.mean((filtered - y[1:12]) ** 2) + np.std(filtered)


@case(np.linspace(-0.5, 0.6, 9), Well(2.0, 0.7))
def minimum_action_path(x, well):
    V = well.depth * (x**2 - well.width**2) ** 2
    force = np.gradient(V, x)
    dx = np.diff(x) / 0.1
    return 0.5 * np.sum((dx + (force[1:] + force[:-1]) / 2) ** 2) * 0.1


@case(np.array([0.9, 0.3, 2.0]), np.linspace(0.1, 3, 20))
def bessel_beam(theta, r):
    a, k, w = theta
    field = a * scipy.special.j0(k * r) * np.exp(-((r / w) ** 2)) + 0.1 * jv(1.5, k * r)
    return np.sum(field**2 * r)


@case(R.standard_normal((4, 3)), R.standard_normal((4, 3)))
def kabsch_distance(P, Q):
    P = P - P.mean(axis=0)
    Q = Q - Q.mean(axis=0)
    U, s, Vt = np.linalg.svd(P.T @ Q)
    d = np.sign(np.linalg.det(Vt.T @ U.T))
    s[-1] *= d
    return np.sum(P**2) + np.sum(Q**2) - 2 * s.sum()


@case(R.random((5, 4)), R.random((6, 4)))
def sinkhorn(X, Y, eps=0.3):
    C = ((X[:, None] - Y[None]) ** 2).sum(-1)
    f, g = np.zeros(5), np.zeros(6)
    for _ in range(8):
        f = -eps * logsumexp((g - C) / eps - np.log(6), axis=1)
        g = -eps * logsumexp((f[:, None] - C) / eps - np.log(5), axis=0)
    return f.mean() + g.mean()


@case(R.standard_normal(12), R.standard_normal((5, 12)))
def total_variation_denoising(x, A):
    b = np.ones(5)
    return 0.5 * np.linalg.norm(A @ x - b) ** 2 + 0.1 * np.abs(np.diff(x)).sum()


@case(R.random((2, 9)) + 0.5)
def minimal_surface_strip(h):
    hx = np.diff(h, axis=1)[0] / 0.1
    hy = (h[1] - h[0])[1:] / 0.1
    return (np.sqrt(1 + hx**2 + hy**2) * 0.01).sum()


@case(np.array([0.5, 0.2, 0.9]), 30)
def sir_epidemic(theta, days):
    beta, gamma, s0 = theta
    S, ill = s0, 1 - s0
    infected = np.zeros(days)
    for t in range(days):
        new = beta * S * ill
        S, ill = S - new, ill + new - gamma * ill
        infected[t] = ill
    return infected.max() + np.average(infected, weights=np.arange(days) + 1.0)


@case(R.standard_normal((3, 2)), R.standard_normal((10, 2)))
def soft_kmeans(centres, X):
    d = np.sum((X[:, None, :] - centres) ** 2, axis=2)
    return -np.log(np.sum(np.exp(-d), axis=1)).sum() + d.min(axis=1).mean()


@case(np.array([1.0, -0.5, 0.25]), np.linspace(-1, 1, 11))
def polynomial_chebyshev(c, x):
    p = np.polynomial.chebyshev.chebval(x, c)
    q = np.polyval(c, x)
    return np.sum(p**2) + np.prod(1 + 0.1 * q)


@case(R.standard_normal((4, 4)) * 0.3, R.standard_normal(4))
def continuous_time_lqr(A, x0):
    x = scipy.linalg.expm(A) @ x0
    P = scipy.linalg.solve(np.eye(4) * 3 + A @ A.T, np.eye(4))
    return x @ P @ x


@case(R.standard_normal(5), R.integers(0, 5, 20))
def histogram_likelihood(logits, codes):
    logp = log_softmax(logits)
    counts = np.bincount(codes, minlength=5)
    return -np.dot(counts, logp)


@case(R.standard_normal(6), np.array([2, 0, 1]))
def plackett_luce(scores, order):
    s = scores[order]
    total = 0
    for i in range(len(order)):
        total -= s[i] - np.log(np.exp(s[i:]).sum())
    return total
