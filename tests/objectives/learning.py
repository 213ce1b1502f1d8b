"""More likelihoods, portfolios and networks."""

import numpy as np
import scipy.special
from scipy.special import betaln, erf, expit, gammaln, log_ndtr, log_softmax, ndtr, softmax

from . import Objective, R, collector

CASES: list[Objective] = []
case = collector(CASES)


@case(np.array([0.3, -0.1, 0.2]), R.standard_normal((20, 2)), R.integers(0, 5, 20), 5)
def beta_binomial(theta, X, k, n):
    p = expit(theta[0] + X @ theta[1:])
    s = 8.0
    a, b = p * s, (1 - p) * s
    return -np.sum(betaln(k + a, n - k + b) - betaln(a, b))


@case(np.array([0.5, 1.0, 2.0]), R.dirichlet([1, 2, 3], 15))
def dirichlet_mle(log_alpha, p):
    alpha = np.exp(log_alpha)
    return -(len(p) * (gammaln(alpha.sum()) - gammaln(alpha).sum()) + ((alpha - 1) * np.log(p)).sum())


@case(np.array([0.2, 0.8]), R.standard_normal(20), R.standard_normal(20) > 0.5)
def tobit(theta, x, censored):
    mu, sigma = theta[0], np.exp(theta[1])
    z = (x - mu) / sigma
    return -np.where(censored, log_ndtr(-z), -0.5 * z**2 - np.log(sigma)).sum()


@case(np.array([0.4, 1.2]), R.uniform(-np.pi, np.pi, 20))
def von_mises(theta, x):
    mu, kappa = theta[0], np.exp(theta[1])
    return -np.sum(kappa * np.cos(x - mu) - np.log(2 * np.pi * scipy.special.i0(kappa)))


@case(np.array([100.0, 0.2, 0.03]), np.array([90.0, 100.0, 110.0]), np.array([14.0, 8.0, 3.5]))
def implied_volatility(theta, strikes, prices, T=1.0):
    S, sigma, r = theta
    d1 = (np.log(S / strikes) + (r + sigma**2 / 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    call = S * ndtr(d1) - strikes * np.exp(-r * T) * ndtr(d2)
    return np.sum((call - prices) ** 2)


@case(R.standard_normal(5), R.standard_normal((30, 5)) * 0.02)
def sharpe_ratio(logits, returns):
    w = softmax(logits)
    daily = returns @ w
    return -np.sqrt(252) * daily.mean() / daily.std(ddof=1)


@case(np.ones(4) / 4, R.standard_normal((40, 4)) * 0.02, 0.05)
def minimum_variance_portfolio(w, returns, mu):
    cov = np.cov(returns, rowvar=False)
    m = returns.mean(axis=0)
    return w @ cov @ w + 10.0 * (w.sum() - 1) ** 2 + np.sum(np.minimum(w, 0) ** 2) - mu * m @ w


@case(np.ones(4) / 4, R.standard_normal((40, 4)))
def conditional_value_at_risk(w, returns, alpha=0.1):
    losses = np.sort(-(returns @ w))[::-1]
    k = int(alpha * len(losses))
    return losses[:k].mean() + 0.1 * np.ptp(losses)


@case(
    {"Wq": R.standard_normal((4, 4)), "Wk": R.standard_normal((4, 4)), "Wv": R.standard_normal((4, 4))},
    R.standard_normal((2, 5, 4)),
)
def causal_attention(p, x):
    q, k, v = x @ p["Wq"], x @ p["Wk"], x @ p["Wv"]
    q, k, v = (a.reshape(2, 5, 2, 2).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(2)
    mask = np.triu(np.ones((5, 5), dtype=bool), k=1)
    scores[:, :, mask] = -1e9
    out = (softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 4)
    return (out**2).mean()


@case(R.standard_normal(8), R.standard_normal(8), R.standard_normal((3, 8)), wrt=(0, 1, 2))
def layer_norm_gelu(gamma, beta, x):
    mu = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    y = (x - mu) / np.sqrt(var + 1e-5) * gamma + beta
    return np.sum(0.5 * y * (1 + erf(y / np.sqrt(2))))


@case(
    {
        "Wx": R.standard_normal((3, 16)) * 0.3,
        "Wh": R.standard_normal((4, 16)) * 0.3,
        "b": np.zeros(16),
        "out": R.standard_normal(4),
    },
    R.standard_normal((6, 2, 3)),
    R.standard_normal(2),
)
def lstm(p, xs, target):
    h = np.zeros((xs.shape[1], 4))
    c = np.zeros_like(h)
    for x in xs:
        z = x @ p["Wx"] + h @ p["Wh"] + p["b"]
        i, f, o, g = np.split(z, 4, axis=1)
        c = expit(f + 1.0) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
    return np.mean((h @ p["out"] - target) ** 2)


@case(
    [R.standard_normal((3, 8)) * 0.4, R.standard_normal((8, 2)) * 0.4],
    np.array([1.0, 0.5]),
    np.linspace(0, 1, 9),
)
def neural_ode(weights, y0, ts):
    W1, W2 = weights

    def f(t, y):
        return np.tanh(np.append(y, t) @ W1) @ W2

    y, loss = y0, 0.0
    for t0, t1 in zip(ts[:-1], ts[1:]):
        h = t1 - t0
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h * k1 / 2)
        k3 = f(t0 + h / 2, y + h * k2 / 2)
        k4 = f(t1, y + h * k3)
        y = y + h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        loss += np.sum((y - np.array([np.cos(t1), np.sin(t1)])) ** 2)
    return loss


@case(
    R.standard_normal((6, 3)),
    np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]),
    R.standard_normal((3, 2)),
    wrt=(0, 2),
)
def graph_convolution(X, edges, W):
    A = np.eye(len(X))
    A[edges[:, 0], edges[:, 1]] = 1
    A[edges[:, 1], edges[:, 0]] = 1
    d = A.sum(1) ** -0.5
    H = (d[:, None] * A * d) @ X @ W
    return np.sum(np.where(H > 0, H, 0.01 * H) ** 2)


@case(R.standard_normal((4, 6)), R.standard_normal((4, 6)), wrt=(0, 1))
def contrastive_loss(a, b, temperature=0.5):
    a = a / np.linalg.norm(a, axis=1, keepdims=True)
    b = b / np.linalg.norm(b, axis=1, keepdims=True)
    logits = a @ b.T / temperature
    return -np.mean(np.diag(log_softmax(logits, axis=1)) + np.diag(log_softmax(logits, axis=0))) / 2


@case(R.standard_normal((5, 7)), R.standard_normal((3, 3)), wrt=(0, 1))
def convolution_2d(image, kernel):
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape)
    return np.sum(np.tanh(np.einsum("ijkl,kl->ij", windows, kernel)))
