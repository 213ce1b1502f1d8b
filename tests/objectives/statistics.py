"""Likelihoods, regressions, factorisations, sequences, energies."""

import numpy as np
import scipy.linalg
import scipy.special
from scipy.special import gammaln, logsumexp

from . import Objective, R, collector

CASES: list[Objective] = []
case = collector(CASES)


@case(np.array([0.3, -0.2, 0.5]), R.standard_normal((30, 3)), R.poisson(2.0, 30))
def poisson_regression(beta, X, y):
    eta = X @ beta
    return -np.sum(y * eta - np.exp(eta) - gammaln(y + 1))


@case(R.standard_normal((3, 4)), R.standard_normal((20, 4)), R.integers(0, 3, 20))
def multinomial_logit(W, X, y):
    logits = X @ W.T
    return np.mean(logsumexp(logits, axis=1) - logits[np.arange(len(y)), y])


@case(
    {"pi": np.array([0.1, 0.3]), "mu": np.array([-1.0, 1.5]), "log_sd": np.array([0.1, -0.4])},
    R.standard_normal(40),
)
def gaussian_mixture(params, x):
    logpi = params["pi"] - logsumexp(params["pi"])
    sd = np.exp(params["log_sd"])
    comp = -0.5 * ((x[:, None] - params["mu"]) / sd) ** 2 - params["log_sd"] - 0.5 * np.log(2 * np.pi)
    return -logsumexp(logpi + comp, axis=1).sum()


@case(np.array([0.3, 0.8]), R.random(30) + 0.2, R.random(30) > 0.3)
def weibull_survival(theta, t, event):
    k, lam = np.exp(theta[0]), np.exp(theta[1])
    hazard = np.log(k / lam) + (k - 1) * np.log(t / lam)
    cumulative = (t / lam) ** k
    return -(np.where(event, hazard, 0.0) - cumulative).sum()


@case(np.array([0.5, -0.4]), R.standard_normal((15, 2)), R.random(15), R.random(15) > 0.4)
def cox_partial_likelihood(beta, X, times, event):
    order = np.argsort(-times)
    eta = (X @ beta)[order]
    risk = np.log(np.cumsum(np.exp(eta)))
    return -np.sum((eta - risk)[event[order]])


@case(np.array([0.3, -0.2, 0.1]), R.standard_normal((25, 3)), R.standard_normal(25), 1.345)
def huber_regression(beta, X, y, delta):
    r = np.abs(y - X @ beta)
    return np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta)).sum()


@case(np.array([0.3, -0.2, 0.1]), R.standard_normal((25, 3)), R.standard_normal(25))
def tukey_biweight(beta, X, y, c=4.685):
    r = y - np.dot(X, beta)
    s = np.median(np.abs(r)) / 0.6745
    u = np.clip(r / (c * s), -1, 1)
    return (c**2 / 6 * (1 - (1 - u**2) ** 3)).sum()


@case(np.array([0.3, -0.2, 0.1]), R.standard_normal((25, 3)), R.standard_normal(25), 0.3)
def quantile_regression(beta, X, y, tau):
    u = y - X @ beta
    return np.maximum(tau * u, (tau - 1) * u).mean()


@case(np.array([0.3, -0.2, 0.1]), R.standard_normal((25, 3)), R.standard_normal(25), 0.1)
def elastic_net(w, X, y, lam):
    r = X @ w - y
    return 0.5 * r.dot(r) / len(y) + lam * (0.5 * np.linalg.norm(w, 1) + 0.25 * np.linalg.norm(w) ** 2)


@case(R.random((6, 2)), R.random((2, 5)), R.random((6, 5)), wrt=(0, 1))
def nmf_kl(W, H, V):
    WH = W @ H
    return np.sum(V * np.log(V / WH) - V + WH)


@case(R.random((3, 2)), R.random((4, 2)), R.random((5, 2)), R.random((3, 4, 5)), wrt=(0, 1, 2))
def cp_decomposition(A, B, C, T):
    return np.linalg.norm(T - np.einsum("ir,jr,kr->ijk", A, B, C)) ** 2


@case([R.random((1, 2, 3)), R.random((3, 2, 3)), R.random((3, 2, 1))], R.random((2, 2, 2)))
def tensor_train(cores, T):
    full = cores[0]
    for core in cores[1:]:
        full = np.tensordot(full, core, axes=([-1], [0]))
    return np.sum((full.squeeze() - T) ** 2)


@case(R.standard_normal((3, 3)), R.standard_normal((6, 3)), R.integers(0, 3, 6), wrt=(0, 1))
def crf_negative_log_likelihood(trans, emit, tags):
    score = emit[0, tags[0]]
    for t in range(1, len(tags)):
        score += trans[tags[t - 1], tags[t]] + emit[t, tags[t]]
    alpha = emit[0]
    for t in range(1, emit.shape[0]):
        alpha = logsumexp(alpha[:, None] + trans, axis=0) + emit[t]
    return logsumexp(alpha) - score


@case(np.array([0.4, -0.2]), R.standard_normal(12))
def kalman_filter(theta, y):
    q, r = np.exp(theta)
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q = q * np.eye(2)
    m, P = np.zeros(2), 10 * np.eye(2)
    nll = 0
    for yt in y:
        m = F @ m
        P = F @ P @ F.T + Q
        v = yt - (H @ m)[0]
        S = (H @ P @ H.T)[0, 0] + r
        K = (P @ H.T)[:, 0] / S
        m = m + K * v
        P = P - np.outer(K, K) * S
        nll += 0.5 * (np.log(2 * np.pi * S) + v**2 / S)
    return nll


@case(R.standard_normal((2, 2)), R.standard_normal((3, 3)), wrt=(0, 1))
def block_diagonal(A, B):
    M = scipy.linalg.block_diag(A @ A.T, B @ B.T) + np.eye(5)
    return np.linalg.slogdet(M)[1] + np.linalg.inv(M)[0, 0]


@case(
    {"mean": R.standard_normal(3), "log_std": R.standard_normal(3) * 0.1},
    R.standard_normal((8, 3)),
    R.standard_normal((20, 3)),
    (R.random(20) > 0.5) * 1.0,
)
def elbo_logistic(q, eps, X, y):
    z = q["mean"] + np.exp(q["log_std"]) * eps
    logits = z @ X.T
    loglik = np.sum(y * logits - np.logaddexp(0, logits), axis=1)
    logprior = -0.5 * np.sum(z**2, axis=1)
    entropy = np.sum(q["log_std"]) + 0.5 * z.shape[1] * (1 + np.log(2 * np.pi))
    return -(np.mean(loglik + logprior) + entropy)


@case(
    [
        (R.standard_normal((6, 4)) * 0.4, np.zeros(4)),
        (R.standard_normal((2, 5)) * 0.4, np.zeros(5)),
        (R.standard_normal((5, 6)) * 0.4, np.zeros(6)),
    ],
    R.random((7, 6)),
    R.standard_normal((7, 2)),
)
def vae(params, x, eps):
    (We, be), (Wd, bd), (Wo, bo) = params
    h = np.tanh(x @ We + be)
    mu, logvar = np.split(h, 2, axis=-1)
    z = mu + np.exp(0.5 * logvar) * eps
    logits = np.tanh(z @ Wd + bd) @ Wo + bo
    bce = np.maximum(logits, 0) - logits * x + np.log1p(np.exp(-np.abs(logits)))
    kl = -0.5 * np.sum(1 + logvar - mu**2 - np.exp(logvar))
    return bce.sum() + kl


@case(R.random((5, 3)) * 3)
def lennard_jones(pos):
    i, j = np.triu_indices(len(pos), k=1)
    r2 = ((pos[i] - pos[j]) ** 2).sum(-1)
    inv6 = 1.0 / r2**3
    return 4 * np.sum(inv6**2 - inv6)


@case(R.random((6, 2)))
def elastic_chain(u):
    d = np.diff(u, axis=0)
    length = np.hypot(d[:, 0], d[:, 1])
    bend = u[2:] - 2 * u[1:-1] + u[:-2]
    return 0.5 * np.sum((length - 1) ** 2) + 0.1 * np.sum(bend**2)


@case(np.array([0.4, 1.1]), np.array([0.2, -0.3]), wrt=(0, 1))
def double_pendulum_lagrangian(q, qdot, m=1.0, length=1.0, g=9.81):
    t1, t2 = q
    w1, w2 = qdot
    T = 0.5 * m * length**2 * (2 * w1**2 + w2**2 + 2 * w1 * w2 * np.cos(t1 - t2))
    V = -m * g * length * (2 * np.cos(t1) + np.cos(t2))
    return T - V


@case(R.standard_normal((4, 4)))
def ising_mean_field(m):
    m = np.tanh(m)
    s = m * (np.roll(m, 1, 0) + np.roll(m, 1, 1))
    p, q = (1 + m) / 2, (1 - m) / 2
    return -s.sum() + np.sum(p * np.log(p) + q * np.log(q))


@case(R.random(16) + 0.5)
def diffusion_inverse(k, steps=10, dt=0.05):
    u = np.sin(np.linspace(0, np.pi, 17))
    for _ in range(steps):
        flux = k * np.diff(u)
        u[1:-1] += dt * np.diff(flux)
    return np.sum(u**2)
