"""Programs in NumPy: likelihoods, robust and sparse methods, factorisations, sequences, physics, learning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import Objective

RNG = np.random.default_rng(7)
CASES: list[Objective] = []


def case(*args: Any, by: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for objectives of the leading ``by`` arguments."""

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Objective(function, args, tuple(range(by))))
        return function

    return note


def normal(*shape: int, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
    return RNG.standard_normal(shape) * scale + shift


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2.0, shape)


# -- likelihoods ------------------------------------------------------------------------------
@case(normal(3), normal(40, 3), RNG.integers(0, 2, 40))
def logistic_with_logaddexp(w, X, y):
    z = X @ w
    return np.mean(np.logaddexp(0.0, -z * (2 * y - 1))) + 0.01 * np.dot(w, w)


@case(normal(5, 3), normal(25, 5), RNG.integers(0, 3, 25))
def softmax_regression(W, X, labels):
    scores = X @ W
    scores -= scores.max(axis=1, keepdims=True)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(labels)), labels].mean() + 1e-3 * np.sum(W**2)


@case(np.array([0.3, -0.2]), np.array([0.4]), normal(50), by=2)
def mixture_of_two_normals(mu, theta, x):
    weight = 1 / (1 + np.exp(-theta[0]))
    first = weight * np.exp(-0.5 * (x - mu[0]) ** 2)
    second = (1 - weight) * np.exp(-0.5 * (x - mu[1]) ** 2)
    return -np.sum(np.log((first + second) / np.sqrt(2 * np.pi)))


@case(normal(3, 2), normal(3), normal(20, 2), by=2)
def gaussian_mixture_em_bound(means, logits, X):
    """Log-likelihood of a mixture, by the log-sum-exp trick written out."""
    log_pi = logits - np.log(np.sum(np.exp(logits)))
    d2 = ((X[:, None, :] - means[None]) ** 2).sum(-1)
    a = log_pi - 0.5 * d2
    m = a.max(axis=1)
    return -(m + np.log(np.exp(a - m[:, None]).sum(axis=1))).mean()


@case(np.array([0.4, -0.3, 0.2]), normal(40))
def autoregressive_moving_average(params, y):
    """ARMA(2, 1), conditional sum of squares."""
    phi1, phi2, theta = params
    residuals = []
    last = 0.0
    for t in range(2, len(y)):
        e = y[t] - phi1 * y[t - 1] - phi2 * y[t - 2] - theta * last
        residuals.append(e)
        last = e
    return np.sum(np.array(residuals) ** 2)


@case(normal(6), normal(2), normal(18), RNG.integers(0, 6, 18), by=2)
def random_effects(u, log_sigma, y, group):
    s, tau = np.exp(log_sigma)
    r = y - u[group]
    return 0.5 * (r @ r) / s**2 + len(y) * np.log(s) + 0.5 * (u @ u) / tau**2 + len(u) * np.log(tau)


@case(normal(3), normal(20, 2), normal(20))
def student_t_regression(params, X, y):
    w, log_nu = params[:2], params[2]
    nu = np.exp(log_nu) + 1
    r = y - X @ w
    const = math.lgamma(3.0) - 0.5 * np.log(nu * np.pi)
    return -np.sum(const - (nu + 1) / 2 * np.log1p(r**2 / nu))


@case(normal(4), RNG.integers(0, 4, (15, 2)))
def bradley_terry(skill, games):
    winner, loser = games.T
    return np.sum(np.log1p(np.exp(skill[loser] - skill[winner]))) + 0.1 * np.sum(skill**2)


# -- robust regression, sparse methods ----------------------------------------------------------
@case(normal(4), normal(20, 4), np.sign(normal(20)))
def smoothed_hinge(w, X, y):
    margin = y * (X @ w)
    loss = np.select([margin <= 0, margin < 1], [0.5 - margin, 0.5 * (1 - margin) ** 2], 0.0)
    return loss.mean()


@case(normal(6, 7), normal(6, 7))
def total_variation_of_image(u, f):
    dx = np.zeros_like(u)
    dy = np.zeros_like(u)
    dx[:-1] = u[1:] - u[:-1]
    dy[:, :-1] = u[:, 1:] - u[:, :-1]
    return ((u - f) ** 2).sum() + np.sqrt(dx**2 + dy**2 + 1e-6).sum()


# -- factorisations -----------------------------------------------------------------------------
@case(normal(2, 2, 2), normal(4, 2), normal(5, 2), normal(3, 2), normal(4, 5, 3), by=4)
def tucker(G, A, B, C, T):
    approx = np.tensordot(np.tensordot(np.tensordot(A, G, axes=(1, 0)), B, axes=(1, 1)), C, axes=(1, 1))
    return np.linalg.norm(approx - T) ** 2


@case(normal(6, 3), normal(20, 6))
def pca_reconstruction(W, X):
    Q, _ = np.linalg.qr(W)
    return np.sum((X - X @ Q @ Q.T) ** 2) + np.trace(W.T @ W)


@case(normal(5, 5), normal(40, 5))
def independent_components(W, X):
    S = X @ W.T
    return np.mean(np.log(np.cosh(S)).sum(axis=1)) - np.linalg.slogdet(W)[1]


@case(normal(7, 2), positive(7, 7))
def multidimensional_scaling(Y, D):
    i, j = np.triu_indices(len(Y), 1)
    d = np.linalg.norm(Y[i] - Y[j], axis=1)
    return np.sum((d - D[i, j]) ** 2)


@case(normal(6, 2), positive(6, 6))
def tsne(Y, affinities):
    P = affinities + affinities.T
    np.fill_diagonal(P, 0.0)
    P = P / P.sum()
    d2 = np.sum(Y**2, 1)[:, None] + np.sum(Y**2, 1)[None, :] - 2 * Y @ Y.T
    num = 1 / (1 + d2)
    num[np.arange(6), np.arange(6)] = 0.0
    Q = np.maximum(num / num.sum(), 1e-12)
    return np.sum(P * np.log(np.maximum(P, 1e-12) / Q))


# -- sequences ----------------------------------------------------------------------------------
@case(normal(3, 3), normal(3, 4), normal(3), RNG.integers(0, 4, 15), by=3)
def hidden_markov(A_logits, B_logits, pi_logits, obs):
    """Scaled forward algorithm."""
    A = np.exp(A_logits) / np.exp(A_logits).sum(1, keepdims=True)
    B = np.exp(B_logits) / np.exp(B_logits).sum(1, keepdims=True)
    pi = np.exp(pi_logits) / np.exp(pi_logits).sum()
    alpha = pi * B[:, obs[0]]
    loglik = 0.0
    for t in range(1, len(obs)):
        c = alpha.sum()
        loglik += np.log(c)
        alpha = (alpha / c) @ A * B[:, obs[t]]
    return -(loglik + np.log(alpha.sum()))


@case(normal(6, 4), normal(4, 4), RNG.integers(0, 4, 6), by=2)
def conditional_random_field(emissions, transitions, tags):
    T, K = emissions.shape
    score = emissions[0, tags[0]]
    for t in range(1, T):
        score += transitions[tags[t - 1], tags[t]] + emissions[t, tags[t]]
    alpha = emissions[0].copy()
    for t in range(1, T):
        alpha = np.logaddexp.reduce(alpha[:, None] + transitions, axis=0) + emissions[t]
    return np.logaddexp.reduce(alpha) - score


@case(normal(5, 3), (2, 1))
def connectionist_temporal(logits, target):
    """The forward recursion of CTC, blank 0."""
    logp = logits - np.logaddexp.reduce(logits, axis=1)[:, None]
    labels = [0, target[0], 0, target[1], 0]
    alpha = np.full((len(logits), len(labels)), -1e30)
    alpha[0, 0] = logp[0, labels[0]]
    alpha[0, 1] = logp[0, labels[1]]
    for t in range(1, len(logits)):
        for s in range(len(labels)):
            a = alpha[t - 1, s]
            if s > 0:
                a = np.logaddexp(a, alpha[t - 1, s - 1])
            if s > 1 and labels[s] != 0 and labels[s] != labels[s - 2]:
                a = np.logaddexp(a, alpha[t - 1, s - 2])
            alpha[t, s] = a + logp[t, labels[s]]
    return -np.logaddexp(alpha[-1, -1], alpha[-1, -2])


@case(normal(8, 8, scale=0.3), normal(8, 2), normal(12, 2), normal(12, 8), by=2)
def recurrent_network(W, U, inputs, targets):
    h = np.zeros(8)
    loss = 0
    for x, y in zip(inputs, targets):
        h = np.tanh(W @ h + U @ x)
        loss += np.mean((h - y) ** 2)
    return loss / len(inputs)


@case(np.array([0.2, -0.4]), normal(30))
def kalman_local_level(log_var, y):
    q, r = np.exp(log_var)
    m, P = y[0], 1.0
    ll = 0.0
    for obs in y[1:]:
        P = P + q
        S = P + r
        v = obs - m
        ll += -0.5 * (np.log(2 * np.pi * S) + v * v / S)
        K = P / S
        m = m + K * v
        P = (1 - K) * P
    return -ll


@case(np.array([0.9, -1.0, -0.5]), normal(15, 1))
def kalman_matrix(theta, ys):
    F = np.array([[1.0, 0.1], [0.0, theta[0]]])
    H = np.array([[1.0, 0.0]])
    Q = np.exp(theta[1]) * np.eye(2)
    R = np.exp(theta[2]) * np.eye(1)
    x, P, nll = np.zeros(2), np.eye(2), 0.0
    for y in ys:
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        v = y - H @ x
        nll += 0.5 * (np.log(np.linalg.det(S)) + v @ np.linalg.solve(S, v))
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ v
        P = (np.eye(2) - K @ H) @ P
    return nll


# -- physics ------------------------------------------------------------------------------------
@case(normal(6, 3, scale=2.0), normal(6))
def ewald_real_part(r, q):
    """Coulomb energy with the minimum image convention, in a double loop."""
    box = 5.0
    energy = 0.0
    for i in range(len(r)):
        for j in range(i + 1, len(r)):
            d = r[i] - r[j]
            d = d - box * np.round(d / box)
            dist = np.sqrt(d @ d)
            energy += q[i] * q[j] * math.erfc(0.3 * dist) / dist
    return energy


@case(np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0]), normal(11, 2))
def lotka_volterra_fit(p, y0, data):
    def rhs(y):
        return np.array([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])

    h = 0.1
    y = y0
    path = [y]
    for _ in range(10):
        k1 = rhs(y)
        k2 = rhs(y + h / 2 * k1)
        k3 = rhs(y + h / 2 * k2)
        k4 = rhs(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    return np.mean((np.array(path) - data) ** 2)


@case(positive(20), np.sin(np.linspace(0, 3, 20)))
def heat_equation_source(kappa, u0):
    """Explicit steps of the heat equation in divergence form, in place."""
    u = u0.copy()
    for _ in range(20):
        flux = 0.5 * (kappa[1:] + kappa[:-1]) * (u[1:] - u[:-1])
        u[1:-1] += 0.1 * (flux[1:] - flux[:-1])
        u[0] = u[-1] = 0.0
    return np.sum(u**2)


@case(normal(16, scale=0.3, shift=1.0))
def wave_equation_misfit(c):
    u_old = np.exp(-((np.arange(16) - 8.0) ** 2) / 4)
    u = u_old.copy()
    trace = np.empty(30)
    for n in range(30):
        lap = np.roll(u, 1) - 2 * u + np.roll(u, -1)
        u_new = 2 * u - u_old + 0.1 * c**2 * lap
        u_old, u = u, u_new
        trace[n] = u[3]
    return 0.5 * np.sum(trace**2)


@case(np.array([50.0, -120.0, 80.0, -60.0]), np.array([5.0, 2.0, 4.0]), by=2)
def lens_system(radii, gaps):
    """Paraxial focus of two lenses by ray transfer matrices."""
    n = [1.0, 1.5, 1.0, 1.6, 1.0]
    M = np.eye(2)
    for k, R in enumerate(radii):
        refraction = np.array([[1.0, 0.0], [(n[k] - n[k + 1]) / (R * n[k + 1]), n[k] / n[k + 1]]])
        M = refraction @ M
        if k < len(gaps):
            M = np.array([[1.0, gaps[k]], [0.0, 1.0]]) @ M
    return (-M[0, 0] / M[1, 0] - 60.0) ** 2 * 1e-2


@case(normal(6, 6, scale=0.5))
def fresnel_propagation(phase):
    fx = np.fft.fftfreq(6)
    kernel = np.exp(-1j * np.pi * 3.0 * (fx[:, None] ** 2 + fx[None] ** 2))
    out = np.fft.ifft2(np.fft.fft2(np.exp(1j * phase)) * kernel)
    return -np.sum(np.abs(out[2:4, 2:4]) ** 2)


@case(normal(4))
def variational_quantum_circuit(angles):
    """Energy of a transverse Ising chain of two qubits."""
    X = np.array([[0, 1], [1, 0]], complex)
    Z = np.diag([1.0 + 0j, -1.0])
    one = np.eye(2)
    H = -np.kron(Z, Z) - 0.7 * (np.kron(X, one) + np.kron(one, X))
    psi = np.zeros(4, complex)
    psi[0] = 1
    for k in range(2):
        a, b = angles[2 * k], angles[2 * k + 1]
        rx = np.cos(a / 2) * one - 1j * np.sin(a / 2) * X
        psi = np.kron(rx, rx) @ psi
        psi = np.exp(-1j * b * np.array([1, -1, -1, 1])) * psi
    return np.real(np.vdot(psi, H @ psi))


@case(normal(5, 5))
def ground_state_energy(M):
    H = (M + M.T) / 2
    values, vectors = np.linalg.eigh(H)
    return values[0] + np.abs(vectors[:, 0]) @ np.arange(5.0)


@case(np.array([1.0, 0.2, -0.1, 0.5]), normal(10, 3))
def rigid_registration(q, points):
    q = q / np.linalg.norm(q)
    w, x, y, z = q
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    moved = points @ R.T
    return np.sum((moved - points[::-1]) ** 2)


@case(normal(3), normal(3), normal(6, 3, shift=5.0), RNG.random((6, 2)), by=2)
def bundle_adjustment(rvec, tvec, points, pixels):
    """Rodrigues' formula and a pinhole camera."""
    theta = np.sqrt(np.sum(rvec**2))
    k = rvec / theta
    rotated = (
        points * np.cos(theta)
        + np.cross(k, points) * np.sin(theta)
        + np.outer(points @ k, k) * (1 - np.cos(theta))
    )
    cam = rotated + tvec
    uv = cam[:, :2] / cam[:, 2:]
    return np.sum((uv - pixels) ** 2)


@case(normal(3, scale=0.5))
def robot_arm(joints):
    """Denavit-Hartenberg chain."""
    T = np.eye(4)
    for theta, length in zip(joints, (1.0, 0.8, 0.5)):
        c, s = np.cos(theta), np.sin(theta)
        T = T @ np.array([[c, -s, 0, length * c], [s, c, 0, length * s], [0, 0, 1, 0.1], [0, 0, 0, 1]])
    return np.linalg.norm(T[:3, 3] - np.array([1.0, 1.0, 0.2]))


# -- inference, learning ------------------------------------------------------------------------
@case(np.array([0.1, -0.3, -1.0]), np.linspace(0, 3, 12), np.sin(np.linspace(0, 3, 12)))
def gaussian_process(theta, x, y):
    length, amp, noise = np.exp(theta)
    K = amp**2 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / length**2)
    K[np.diag_indices_from(K)] += noise**2 + 1e-6
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return 0.5 * y @ a + np.log(np.diag(L)).sum() + len(x) / 2 * np.log(2 * np.pi)


@case(normal(3, 3, scale=0.3), normal(2, 6, 6), by=2)
def convolution_by_offsets(kernel, images):
    out = np.zeros((2, 4, 4))
    for i in range(3):
        for j in range(3):
            out += kernel[i, j] * images[:, i : i + 4, j : j + 4]
    pooled = out.reshape(2, 2, 2, 2, 2).max(axis=(2, 4))
    return np.maximum(pooled, 0).sum()


@case(normal(3, 3), normal(2, 6, 6), by=2)
def convolution_by_windows(kernel, images):
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(1, 2))
    out = np.einsum("nijkl,kl->nij", windows, kernel)
    return np.tanh(out).sum()


@case(normal(8, 3))
def soft_sort_rank(scores):
    """NDCG-like surrogate: pairwise sigmoids, sorted gains."""
    s = scores.sum(axis=1)
    ranks = 1 + (1 / (1 + np.exp(-(s[None, :] - s[:, None])))).sum(axis=1)
    gains = np.sort(s)[::-1]
    return np.sum(gains / np.log2(1 + ranks))


@case(
    normal(4, 3, scale=0.3),
    normal(9, 3),
    np.array([[0, 1], [1, 2], [2, 3], [4, 5], [0, 8], [6, 7], [3, 8]]),
    by=2,
)
def graph_network(W, h, edges):
    messages = np.zeros((9, 4))
    np.add.at(messages, edges[:, 1], np.tanh(h[edges[:, 0]] @ W.T))
    np.add.at(messages, edges[:, 0], np.tanh(h[edges[:, 1]] @ W.T))
    return np.sum(messages**2)


@case(normal(5), normal(5, 5), normal(30, 5))
def portfolio(weights, factor, returns):
    w = np.exp(weights) / np.exp(weights).sum()
    cov = factor @ factor.T / 5 + np.cov(returns, rowvar=False)
    mean = returns.mean(axis=0)
    risk = np.sqrt(w @ cov @ w)
    drawdown = np.maximum.accumulate(np.cumsum(returns @ w)) - np.cumsum(returns @ w)
    return -(w @ mean) / risk + 0.1 * drawdown.max() + 0.01 * np.abs(np.diff(w)).sum()


@case(np.array([0.2, 0.3]), normal(20, 12))
def monte_carlo_option(params, z):
    sigma, rate = params
    dt = 1 / 12
    log_path = np.cumsum((rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z, axis=1)
    average = np.exp(log_path).mean(axis=1)
    return np.exp(-rate) * np.maximum(average - 1.0, 0).mean()


@case(normal(6), np.linspace(0.05, 0.95, 15))
def table_interpolation(values, x):
    return np.sum(np.interp(x, np.linspace(0, 1, 6), values) ** 3)


@case(np.array([0.5, -0.2, 0.1, 0.3]), np.linspace(-1, 1, 20), normal(20))
def polynomial_fit(c, x, y):
    return np.sum((np.polyval(c, x) - y) ** 2) + np.trapezoid(np.polyval(c, x) ** 2, x)


@case(normal(2, 3, 3), normal(3, 2, 3), normal(3, 3, 2), by=3)
def tensor_train_norm(A, B, C):
    env = np.einsum("asb,asc->bc", A, A)
    env = np.einsum("bc,bsd,cse->de", env, B, B)
    full = np.einsum("de,dsf,esg,fg->", env, C, C, np.eye(2))
    return np.log(full)


@case(normal(2, 2, 2, 2))
def mera_like_contraction(T):
    half = np.einsum("abcd,cdef->abef", T, T, optimize=True)
    return np.einsum("abab", half) + np.einsum("abcd,abcd->", half, half) / 10


@case(normal(4), normal(32))
def spectral_shape(params, x):
    spectrum = np.abs(np.fft.rfft(x * np.hanning(32))) ** 2
    f = np.fft.rfftfreq(32)
    model = np.exp(params[0]) / (1 + (f / np.exp(params[1])) ** 2) + np.exp(params[2]) + params[3] ** 2 * f
    return np.sum(np.log(model) + spectrum / model)


@case(normal(3, scale=0.5))
def array_beamformer(phases):
    angles = np.linspace(-1, 1, 21)
    steering = np.exp(1j * np.pi * np.outer(np.sin(angles), np.arange(4)))
    w = np.exp(1j * np.concatenate([np.zeros(1), phases]))
    pattern = np.abs(steering @ w.conj()) ** 2
    return pattern[:8].max() + pattern[14:].mean() - pattern[10]


@case(normal(4, 4))
def spectral_norm_penalty(W):
    s = np.linalg.svd(W, compute_uv=False)
    return np.sum(s) + s[0] ** 2 + np.linalg.norm(W, 2) + np.log(np.linalg.cond(W))


@case(normal(4), normal(4))
def dynamic_time_warping(x, y):
    """Soft minimum over a table that is filled in place."""
    n, m = len(x), len(y)
    R = np.full((n + 1, m + 1), 1e10)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = (x[i - 1] - y[j - 1]) ** 2
            a, b, c = R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]
            low = np.minimum(np.minimum(a, b), c)
            soft = low - np.log(np.exp(low - a) + np.exp(low - b) + np.exp(low - c))
            R[i, j] = d + soft
    return R[n, m]


@case(normal(6, scale=0.3, shift=1.0), np.array([0.5, 0.1]), by=2)
def newton_inside(a, x0):
    """An implicit layer: unrolled Newton steps."""
    x = x0[0]
    for _ in range(6):
        f = x**3 + a[0] * x - a[1]
        df = 3 * x**2 + a[0]
        x = x - f / df
    return (x - x0[1]) ** 2 + np.sum(a[2:] ** 2)
