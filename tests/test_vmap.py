"""``dyncomp.vmap`` against the loop that it means."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import NotBatchableError

RNG = np.random.default_rng(0)


def loop(f, in_axes, args):
    """The stack of single results, of each array of a result that is a tuple."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    moved = [a if axis is None else np.moveaxis(a, axis, 0) for a, axis in zip(args, axes)]
    size = next(len(a) for a, axis in zip(moved, axes) if axis is not None)
    found = [f(*(a if axis is None else a[i] for a, axis in zip(moved, axes))) for i in range(size)]
    if isinstance(found[0], tuple):
        return tuple(map(np.stack, zip(*found)))
    return np.stack(found)


def same(found, wanted, tolerance=1e-12):
    if isinstance(wanted, tuple):
        assert type(found) is tuple and len(found) == len(wanted)
        for one, other in zip(found, wanted):
            same(one, other, tolerance)
        return
    assert isinstance(found, np.ndarray)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def fill_diagonal(x):
    y = np.zeros((3, 3))
    y[np.arange(3), np.arange(3)] = x[0]
    y[1:, 0] += x[1, :2]
    y.T[2] -= x[2]
    return y


def steps(x, count):
    v = np.zeros_like(x)
    for k in range(count):
        v -= 0.1 * np.sin(x)
        x = x + 0.1 * v
        if k % 2:
            v *= 0.9
    return x


def scatter(x, i):
    y = np.zeros(5)
    np.add.at(y, i, x)
    y[i[:2]] = -1.0
    return y


def settled(x):
    y = x.copy()
    np.multiply(y, 2.0, out=y)
    np.clip(y[1:], -1.0, 1.0, out=y[1:])
    return y + 1


def positive_definite(a):
    return a @ a.T + 3 * np.eye(3)


def log_sum_exp(x):
    m = x.max()
    return m + np.log(np.exp(x - m).sum())


def attention(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


def masked(x):
    y = x.copy()
    y[y < 0] = 0.0
    return y, x[x > 0].sum(), (x > 0).any()


def stacked(x, y):
    return np.concatenate([x, y[::-1]]), np.stack([x, y], axis=1), np.hstack([x, 1.0])


def windows(x):
    return np.lib.stride_tricks.sliding_window_view(x, 3).mean(axis=1)


def of_parts(x):
    return x.real * 2, np.conj(x) * x, np.abs(x), np.angle(x)


def scalars(a):
    """Of elements that are numbers."""
    b = float(a) * 2
    return math.sin(b) + a**2, 3 * a, a > 0


def checked(x):
    if x.min() < 0:
        raise ValueError("negative")
    return np.sqrt(x)


V = RNG.standard_normal((5, 3))
W = RNG.standard_normal((3, 5))  # the batch is the last axis
M = RNG.standard_normal((5, 3, 3))
T = RNG.standard_normal((3, 3, 5))
C = V + 1j * RNG.standard_normal((5, 3))
P = RNG.integers(0, 3, (5, 3))
A = RNG.standard_normal((3, 3))
B = RNG.standard_normal(3)
F32 = V.astype(np.float32)

# name: function, in_axes, arguments
CASES = {
    "sine": (np.sin, 0, (V,)),
    "sum": (lambda x: x.sum(), 0, (V,)),
    "axis last": (lambda x: x * 2 + x.max(), -1, (W,)),
    "axes differ": (lambda x, y: x * y, (0, 1), (V, W)),
    "one is shared": (lambda x, y: x + y, (0, None), (V, B)),
    "the other is shared": (lambda x, y: x / y, (None, 0), (B, V)),
    "broadcasting": (lambda x, y: x[:, None] * y + x, (0, 0), (V, V)),
    "of a matrix and a vector": (lambda a, x: a + x, (0, 0), (M, V)),
    "of a matrix and a number": (lambda a, x: a * x, (0, 0), (M, V[:, 0])),
    "scalars": (scalars, 0, (V[:, 0].copy(),)),
    "number types": (lambda x: (x.astype(np.float32), x > 0, np.int64(3)), 0, (V,)),
    "float32": (lambda x: np.exp(x) * np.float32(2), 0, (F32,)),
    "integers": (lambda i: (i // 2, i % 2, i << 1, -i), 0, (P,)),
    "complex parts": (of_parts, 0, (C,)),
    "where": (lambda x: np.where(x > 0, x, np.sqrt(np.abs(x))), 0, (V,)),
    "masks": (masked, 0, (V,)),
    "select": (lambda x: np.select([x > 1, x > 0], [x, x * 2], -1.0), 0, (V,)),
    "clip": (lambda x: np.clip(x, -0.5, x.max() / 2), 0, (V,)),
    "mean and deviation": (lambda x: (x.mean(), x.std(ddof=1), np.median(x)), 0, (V,)),
    "keepdims": (lambda a: a - a.mean(axis=1, keepdims=True), 0, (M,)),
    "norms": (lambda a: (np.linalg.norm(a), np.linalg.norm(a, axis=0), np.linalg.norm(a[0])), 0, (M,)),
    "extremes": (lambda x: (x.argmax(), x.argmin(), np.ptp(x)), 0, (V,)),
    "log-sum-exp": (log_sum_exp, 0, (V,)),
    "running": (lambda a: (np.cumsum(a, axis=0), np.cumprod(a, axis=1), np.maximum.accumulate(a)), 0, (M,)),
    "differences": (lambda x: (np.diff(x), np.gradient(x)), 0, (V,)),
    "sort": (lambda a: (np.sort(a, axis=0), np.argsort(a, axis=1)), 0, (M,)),
    "partition": (lambda x: np.partition(x, 1)[1], 0, (V,)),
    "search": (lambda x, v: np.searchsorted(x, v), (None, 0), (np.sort(B), V)),
    "search in each": (lambda x, v: np.searchsorted(np.sort(x), v), (0, None), (V, B)),
    "interpolation": (lambda x, y: np.interp(x, np.sort(B), y), (0, 0), (V, V)),
    "interpolation between each": (lambda x, y: np.interp(0.1, np.sort(x), y), (0, 0), (V, V)),
    "quantiles": (lambda x: np.quantile(x, 0.3), 0, (V,)),
    "checks": (checked, 0, (np.abs(V),)),
    "convolve": (lambda x, y: np.convolve(x, y, "same"), (0, 0), (V, V[:, :2])),
    "convolve with one": (lambda x, y: np.convolve(x, y), (0, None), (V, np.arange(5.0))),
    "correlate": (lambda x, y: np.correlate(x, y, "full"), (None, 0), (B[:2], V)),
    "correlate complex": (lambda x, y: np.correlate(x, y, "full"), (0, 0), (C, C[:, :2])),
    "dot": (lambda x, y: x @ y, 0, (V, V)),
    "matrix-vector": (lambda a, x: a @ x, (0, 0), (M, V)),
    "one matrix": (lambda a, x: a @ x, (None, 0), (A, V)),
    "one vector": (lambda a, x: a @ x, (-1, None), (T, B)),
    "vector-matrix": (lambda x, a: x @ a, (1, None), (W, A)),
    "matrices": (lambda a, b: a @ b, (0, -1), (M, T)),
    "outer": (lambda x, y: np.outer(x, y), (0, None), (V, B)),
    "einsum": (lambda a, x: np.einsum("ij,jk,k->ki", a, a, x), (0, 0), (M, V)),
    "einsum with one": (lambda a, x: np.einsum("ij,i->ij", a, x), (None, 0), (A, V)),
    "tensordot": (lambda a, b: np.tensordot(a, b, 2), (0, None), (M, A)),
    "trace": (lambda a: (np.trace(a), np.diag(a), np.diagonal(a, 1)), 0, (M,)),
    "triangles": (lambda a: (np.tril(a, -1), np.triu(a)), 0, (M,)),
    "diagonal matrix": (lambda x: np.diag(x), 0, (V,)),
    "solve": (lambda a, x: np.linalg.solve(a, x), (0, 0), (M, V)),
    "solve with one matrix": (lambda a, x: np.linalg.solve(a, x), (None, 0), (A, V)),
    "solve for one vector": (lambda a, x: np.linalg.solve(a, x), (0, None), (M, B)),
    "solve for matrices": (lambda a, b: np.linalg.solve(a, b), (None, 0), (A, M)),
    "inverse": (lambda a: (np.linalg.inv(a), np.linalg.det(a)), 0, (M,)),
    "cholesky": (lambda a: np.linalg.cholesky(positive_definite(a)), 0, (M,)),
    "eigenvalues": (lambda a: np.linalg.eigh(positive_definite(a))[0], 0, (M,)),
    "singular values": (lambda a: np.linalg.svd(a, compute_uv=False), 0, (M,)),
    "qr": (lambda a: np.linalg.qr(a)[1], 0, (M,)),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], 0, (M,)),
    "pinv": (lambda a: np.linalg.pinv(a[:2]), 0, (M,)),
    "least squares": (lambda a, x: np.linalg.lstsq(a[:, :2], x, rcond=None)[0], (0, 0), (M, V)),
    "matrix power": (lambda a: np.linalg.matrix_power(a, 3), 0, (M,)),
    "fft": (lambda x: np.fft.ifft(np.fft.fft(x) * 2), 0, (V,)),
    "rfft": (lambda x: np.fft.irfft(np.fft.rfft(x), n=3), -1, (W,)),
    "fft of two axes": (lambda a: np.fft.fft2(a), 0, (M,)),
    "item": (lambda a: a[1, -1], 0, (M,)),
    "slices": (lambda a: (a[::-1, 1:], a[..., None, 0]), 0, (M,)),
    "positions": (lambda x, i: x[i], (0, 0), (V, P)),
    "positions of one": (lambda x, i: x[i], (None, 0), (B, P)),
    "one position": (lambda x, i: x[i], (0, None), (V, np.array([2, 0, 0]))),
    "pairs of positions": (lambda a, i: a[i, i[::-1]], (0, 0), (M, P)),
    "positions and slices": (lambda a, i: a[:, i] + a[i], (0, 0), (M, P)),
    "a number as position": (lambda x, i: x[i] + np.take(x, i), (0, 0), (V, P[:, 0])),
    "take along axis": (lambda a, i: np.take_along_axis(a, i[None], 0), (0, 0), (M, P)),
    "scatter": (scatter, (0, 0), (V, P)),
    "scatter of one": (scatter, (None, 0), (B, P)),
    "scatter with one": (scatter, (0, None), (V, P[0])),
    "writes in place": (fill_diagonal, 0, (M,)),
    "out=": (settled, 0, (V,)),
    "loop": (lambda x: steps(x, 7), 0, (V,)),
    "control flow": (lambda x, n: steps(x, n), (0, None), (V, 4)),
    "views": (lambda a: (a.T, a.reshape(-1), a.swapaxes(0, 1)[::2].ravel()), 0, (M,)),
    "view of the batch last": (lambda a: (a.T[1:], a.ravel()), -1, (T,)),
    "roll and flip": (lambda a: np.roll(a, 1, axis=0) + np.flip(a, 1), 0, (M,)),
    "join": (stacked, (0, 0), (V, V)),
    "join with one": (stacked, (0, None), (V, B)),
    "repeat": (lambda x: (np.repeat(x, 2), np.tile(x, (2, 1)), np.pad(x, 1)), 0, (V,)),
    "meshgrid": (lambda x, y: np.meshgrid(x, y)[0], (0, 0), (V, V[:, :2])),
    "windows": (windows, 0, (V,)),
    "attention": (attention, (0, 0, None), (M, M, A)),
    "polynomials": (lambda c, x: np.polyval(c, x), (0, None), (V, B)),
    "vandermonde": (lambda x: np.vander(x), 0, (V,)),
    "kronecker": (lambda x, y: np.kron(x, y), (0, None), (V, B)),
    "cross": (lambda x, y: np.cross(x, y), (0, 0), (V, V[::-1])),
    "covariance": (lambda a: np.cov(a), 0, (M,)),
    "nan functions": (lambda x: (np.nansum(x), np.isfinite(x), np.nan_to_num(x)), 0, (V,)),
    "does not depend on it": (lambda x, y: (x * 1, np.exp(y), 2.5, 3), (0, None), (V, B)),
    "itself": (lambda x: x, 0, (V,)),
    "a view of itself": (lambda x: x[1:], -1, (W,)),
}


@pytest.mark.parametrize("name", CASES)
def test_batch_is_the_loop(name):
    f, in_axes, args = CASES[name]
    made = dyncomp.vmap(f, in_axes)
    for _ in range(2):
        same(made(*args), loop(f, in_axes, args), 2e-6 if name == "float32" else 1e-11)
    # as a part of other captured code, too
    compiled = dyncomp.compile(lambda *given: made(*given), fullgraph=True)
    same(compiled(*args), loop(f, in_axes, args), 2e-6 if name == "float32" else 1e-11)


# -- arguments and results --------------------------------------------------------------------
def test_batch_sizes_may_change_between_calls():
    made = dyncomp.vmap(lambda x, y: (x * y).sum() + x[0], (0, None))
    for size in (3, 5, 1, 0, 2, 64):
        x = RNG.standard_normal((size, 4))
        found = made(x, B[:1])
        assert found.shape == (size,)
        np.testing.assert_allclose(found, (x * B[:1]).sum(1) + x[:, 0])


def test_sizes_of_elements_may_change_between_calls():
    made = dyncomp.vmap(lambda x: np.sort(np.convolve(x, x[:2])) @ np.ones(len(x) + 1))
    for shape in ((3, 4), (3, 5), (2, 7), (4, 2)):
        x = RNG.standard_normal(shape)
        np.testing.assert_allclose(made(x), x.sum(1) * x[:, :2].sum(1))


def test_empty_batch_and_empty_elements():
    made = dyncomp.vmap(lambda x: (x @ x, np.cumsum(x), np.linalg.inv(np.outer(x, x) + np.eye(len(x)))))
    for shape in ((0, 3), (2, 0), (0, 0)):
        numbers, sums, inverses = made(np.ones(shape))
        assert numbers.shape == shape[:1] and sums.shape == shape and inverses.shape == (*shape, shape[1])


def test_axes_of_results():
    made = dyncomp.vmap(lambda a: (a, a[0], a[0, 0]), out_axes=(1, -1, 0))
    matrices, rows, numbers = made(M)
    np.testing.assert_array_equal(matrices, M.swapaxes(0, 1))
    np.testing.assert_array_equal(rows, M[:, 0].T)
    np.testing.assert_array_equal(numbers, M[:, 0, 0])
    np.testing.assert_array_equal(dyncomp.vmap(lambda a: a, -1, -2)(T), np.moveaxis(T, -1, 1))


def test_what_is_the_same_for_all():
    x, y = dyncomp.vmap(lambda x, y: (x, np.exp(y)), (0, None), (0, None))(V, B)
    np.testing.assert_array_equal(x, V)
    np.testing.assert_array_equal(y, np.exp(B))
    with pytest.raises(NotBatchableError, match="out_axes=None"):
        dyncomp.vmap(lambda x: x * 2, out_axes=None)(V)


Pair = collections.namedtuple("Pair", ["left", "right"])


def test_trees():
    def f(model, x):
        hidden = np.tanh(model["w"] @ x + model["b"][0])
        return {"hidden": hidden, "pair": Pair(hidden.sum(), [x, None, 1.5])}

    model = {"w": A, "b": [B]}
    found = dyncomp.vmap(f, (None, 0))(model, V)
    hidden = np.tanh(V @ A.T + B)
    np.testing.assert_allclose(found["hidden"], hidden)
    assert type(found["pair"]) is Pair and found["pair"].right[1] is None
    np.testing.assert_allclose(found["pair"].left, hidden.sum(1))
    np.testing.assert_array_equal(found["pair"].right[2], np.full(5, 1.5))
    # a model for each element, with axes of their own
    models = {"w": np.stack([A] * 5, axis=1), "b": [B]}
    again = dyncomp.vmap(f, ({"w": 1, "b": [None]}, 0), {"hidden": 1, "pair": 0})(models, V)
    np.testing.assert_allclose(again["hidden"], hidden.T)


def test_keyword_arguments_are_mapped_over_their_first_axis():
    made = dyncomp.vmap(lambda x, *, scale=2.0: x * scale, in_axes=1)
    np.testing.assert_array_equal(made(W), (W * 2).T)
    np.testing.assert_array_equal(made(W, scale=V[:, 0]), (W * V[:, 0]).T)


def test_methods_and_library_functions():
    class Scaled:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            return x * self.scale

        def total(self, x):
            return self(x).sum()

    np.testing.assert_array_equal(dyncomp.vmap(Scaled(2.0))(V), V * 2)
    np.testing.assert_allclose(dyncomp.vmap(Scaled(3.0).total)(V), 3 * V.sum(1))
    np.testing.assert_array_equal(dyncomp.vmap(np.maximum, (0, None))(V, B), np.maximum(V, B))
    np.testing.assert_allclose(dyncomp.vmap(np.linalg.inv)(M), np.linalg.inv(M))


def test_globals_and_closures_are_seen_anew():
    scale = 2.0

    def f(x):
        return x * scale

    made = dyncomp.vmap(f)
    np.testing.assert_array_equal(made(V), V * 2)
    scale = 5.0
    np.testing.assert_array_equal(made(V), V * 5)


def test_results_are_arrays_of_their_own():
    x = V.copy()
    found = dyncomp.vmap(lambda x: (x, x))(x)
    assert not np.shares_memory(found[0], x) and not np.shares_memory(*found)
    found[0][:] = 0
    np.testing.assert_array_equal(x, V)


def test_allowed_functions_are_called_for_each_element():
    seen = []

    @dyncomp.allow_in_graph
    def opaque(x):
        seen.append(x.shape)
        return np.sort(x)[::-1].copy()

    np.testing.assert_array_equal(dyncomp.vmap(lambda x: opaque(x) * 2)(V), np.sort(V)[:, ::-1] * 2)
    assert seen[-5:] == [(3,)] * 5


# -- what is refused --------------------------------------------------------------------------
def branches(x):
    if x.sum() > 0:
        return x
    return -x


def loops(x):
    while x[0] < 3:
        x = x + 1
    return x


def draws(x):
    return x + np.random.rand()


def writes(x):
    x *= 2
    return x


def writes_outside(x):
    B[:] = x
    return x


def counts(x):
    A[0, 0] += 1
    return x


def notes(x):
    KEPT.append(1)
    return x


COUNT = 0


def sets(x):
    global COUNT
    COUNT += 1
    return x


def sizes(x):
    return np.zeros(int(x[0]))


def selects(x):
    return x[x > 0]


KEPT = []


def keeps(x):
    KEPT.append(x * 2)
    return x


def prints(x):
    print(x.sum())
    return x


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (branches, r"data-dependent-branch[\s\S]*test_vmap.py:\d+ in branches[\s\S]*np.where"),
        (loops, r"data-dependent-branch[\s\S]*test_vmap.py:\d+ in loops"),
        (draws, r"random numbers in a function under vmap[\s\S]*test_vmap.py:\d+ in draws"),
        (writes, r"writes into an argument that it is mapped over at .*test_vmap.py:\d+"),
        (writes_outside, r"a write at .*test_vmap.py:\d+ into an array that is the same for the whole batch"),
        (counts, r"a write at .*test_vmap.py:\d+ into an array that is the same for the whole batch"),
        (notes, r"a change of [\s\S]*under vmap[\s\S]*test_vmap.py:\d+ in notes"),
        (sets, r"a write of the global COUNT in a function under vmap[\s\S]*test_vmap.py:\d+ in sets"),
        (sizes, r"data-dependent-value[\s\S]*test_vmap.py:\d+ in sizes"),
        (selects, r"cannot be batched: the sizes of its results"),
        (keeps, r"a change of [\s\S]*under vmap[\s\S]*test_vmap.py:\d+ in keeps"),
        (prints, r"test_vmap.py:\d+"),
    ],
)
def test_what_cannot_run_for_a_batch(f, message):
    before = B.copy()
    with pytest.raises(NotBatchableError, match=message):
        dyncomp.vmap(f)(V)
    assert not KEPT and COUNT == 0
    np.testing.assert_array_equal(B, before)


def test_wrong_axes():
    with pytest.raises(ValueError, match="2 parts for 1 arguments"):
        dyncomp.vmap(np.sin, (0, 0))(V)
    with pytest.raises(ValueError, match="no axis 2"):
        dyncomp.vmap(np.sin, 2)(V)
    with pytest.raises(ValueError, match="sizes 5 and 3"):
        dyncomp.vmap(np.add, (0, 0))(V, B)
    with pytest.raises(ValueError, match="argument 1 of add is of type float"):
        dyncomp.vmap(np.add)(V, 2.0)
    with pytest.raises(ValueError, match="axis of at least one array"):
        dyncomp.vmap(np.sin, None)(V)
    with pytest.raises(ValueError, match="out_axes has 2"):
        dyncomp.vmap(np.sin, out_axes=2)(V)
    with pytest.raises(ValueError, match="are for a list or tuple"):
        dyncomp.vmap(np.sin, out_axes=(0, 0))(V)
    with pytest.raises(TypeError, match="in_axes is an integer"):
        dyncomp.vmap(np.sin, "x")
    with pytest.raises(TypeError, match="a result of .* is of type str"):
        dyncomp.vmap(lambda x: "x")(V)


# -- exceptions, plain Python -----------------------------------------------------------------
def test_exceptions_are_those_of_the_loop():
    with pytest.raises(ValueError, match="negative"):
        dyncomp.vmap(checked)(V)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        dyncomp.vmap(lambda x, i: x[i])(V, np.array([0, 1, 2, 7, 0]))
    with pytest.raises(np.linalg.LinAlgError):
        dyncomp.vmap(np.linalg.inv)(M * 0)
    made = dyncomp.vmap(checked)
    for _ in range(2):
        np.testing.assert_array_equal(made(np.abs(V)), np.sqrt(np.abs(V)))


@pytest.mark.parametrize("name", ["scalars", "masks", "join with one", "axis last", "itself"])
def test_plain_python_runs_the_loop(name):
    f, in_axes, args = CASES[name]
    made = dyncomp.vmap(f, in_axes)
    with dyncomp.set_stance("force_eager"):
        same(made(*args), loop(f, in_axes, args))
        assert dyncomp.vmap(lambda x: x[0])(np.ones((0, 2))).shape == (0,)


# -- with derivatives -------------------------------------------------------------------------
def energy(x, w):
    return np.tanh(w @ x).sum() + (x**2).prod()


def test_gradients_of_each_element():
    by_x = dyncomp.vmap(dyncomp.grad(energy), (0, None))
    by_w = dyncomp.vmap(dyncomp.grad(energy, 1), (0, None))
    both = dyncomp.vmap(dyncomp.value_and_grad(energy, (0, 1)), (0, 0))
    for _ in range(2):
        same(by_x(V, A), np.stack([dyncomp.grad(energy)(x, A) for x in V]))
        same(by_w(V, A), np.stack([dyncomp.grad(energy, 1)(x, A) for x in V]))
        value, (first, second) = both(V, M)
        same(value, np.stack([energy(x, w) for x, w in zip(V, M)]))
        same(first, np.stack([dyncomp.grad(energy)(x, w) for x, w in zip(V, M)]))
        same(second, np.stack([dyncomp.grad(energy, 1)(x, w) for x, w in zip(V, M)]))


class Model:
    def __init__(self, weights):
        self.weights = weights

    def loss(self, x):
        return np.tanh(self.weights @ x).sum()


def test_gradients_by_what_an_object_holds():
    model = Model(A)
    gradient = dyncomp.grad(lambda model, x: model.loss(x), wrt="model.weights")
    same(dyncomp.vmap(gradient, (None, 0))(model, V), np.stack([gradient(model, x) for x in V]))
    assert model.weights is A


def test_gradient_of_a_batch():
    def total(w, x):
        return dyncomp.vmap(energy, (0, None))(x, w).sum()

    wanted = sum(dyncomp.grad(energy, 1)(x, A) for x in V)
    same(dyncomp.grad(total)(A, V), wanted)
    same(dyncomp.grad(total, 1)(A, V), np.stack([dyncomp.grad(energy)(x, A) for x in V]))


def test_vmap_in_vmap():
    pairs = dyncomp.vmap(dyncomp.vmap(energy, (0, None)), (None, 0))
    wanted = np.array([[energy(x, w) for x in V] for w in M])
    same(pairs(V, M), wanted)
    same(dyncomp.vmap(lambda w: dyncomp.vmap(lambda x: energy(x, w))(V))(M), wanted)
    gram = dyncomp.vmap(lambda x: dyncomp.vmap(lambda y: np.exp(-((x - y) ** 2).sum()))(V))(V)
    same(gram, np.exp(-((V[:, None] - V) ** 2).sum(-1)))
    same(dyncomp.vmap(dyncomp.vmap(dyncomp.vmap(np.sin)), -1)(T), np.moveaxis(np.sin(T), -1, 0))


def test_hessians_jacobians_and_products_of_each_element():
    def f(x):
        return (np.sin(x) * x[0]).sum()

    same(dyncomp.vmap(dyncomp.hessian(f))(V), np.stack([dyncomp.hessian(f)(x) for x in V]))
    jacobian = dyncomp.jacobian(lambda x: np.outer(x, np.cos(x)))
    same(dyncomp.vmap(jacobian)(V), np.stack([jacobian(x) for x in V]))
    value, tangent = dyncomp.vmap(lambda x, t: dyncomp.jvp(f, (x,), (t,)))(V, V)
    same(value, np.stack([f(x) for x in V]))
    same(tangent, np.stack([dyncomp.grad(f)(x) @ x for x in V]))
    columns = dyncomp.vmap(lambda t: dyncomp.jvp(lambda x: A @ x, (B,), (t,))[1], out_axes=1)(np.eye(3))
    same(columns, A)


def test_functions_with_gradients_of_their_own():
    @dyncomp.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (x * 2, x), lambda x, ct: (np.clip(ct * x, -1.0, 1.0),))

    def f(x):
        return (clipped(x) * np.array([1.0, 3.0, -2.0])).sum()

    wanted = np.clip(V * np.array([1.0, 3.0, -2.0]), -1.0, 1.0)
    same(dyncomp.vmap(dyncomp.grad(f))(V), wanted)
    same(dyncomp.grad(lambda v: dyncomp.vmap(f)(v).sum())(V), wanted)

    # a gradient that does not depend on the batch but by the cotangent
    @dyncomp.custom_vjp
    def straight(x):
        return np.sign(x)

    straight.defvjp(lambda x: (np.sign(x), None), lambda _, ct: (ct * 3,))
    found = dyncomp.grad(lambda v: (dyncomp.vmap(straight)(v) * V).sum())(V)
    same(found, 3 * V)


def test_checkpoints():
    step = dyncomp.checkpoint(lambda x, w: np.tanh(w @ x))

    def f(w, x):
        return (step(step(x, w), w) ** 2).sum()

    def plain(w, x):
        return (np.tanh(w @ np.tanh(w @ x)) ** 2).sum()

    same(dyncomp.vmap(dyncomp.grad(f), (None, 0))(A, V), np.stack([dyncomp.grad(plain)(A, x) for x in V]))
    found = dyncomp.grad(lambda w: dyncomp.vmap(f, (None, 0))(w, V).sum())(A)
    same(found, sum(dyncomp.grad(plain)(A, x) for x in V))


def test_gradients_of_linear_algebra_in_a_batch():
    def f(a, x):
        a = a @ a.T + 3 * np.eye(3)
        return np.linalg.solve(a, x) @ x + np.linalg.slogdet(a)[1] + np.linalg.cholesky(a).sum()

    wanted = np.stack([dyncomp.grad(f)(a, x) for a, x in zip(M, V)])
    same(dyncomp.vmap(dyncomp.grad(f))(M, V), wanted, 1e-10)
    same(dyncomp.grad(lambda m: dyncomp.vmap(f)(m, V).sum())(M), wanted, 1e-10)
    again = np.stack([dyncomp.hessian(lambda x, a=a: f(a, x))(x) for a, x in zip(M, V)])
    same(dyncomp.vmap(dyncomp.hessian(f, 1))(M, V), again, 1e-10)


def test_large_jacobians_take_several_runs(monkeypatch):
    from dyncomp.autodiff import jacobians

    monkeypatch.setattr(jacobians, "LARGEST", 10)
    weights = RNG.standard_normal((4, 5))
    x = RNG.standard_normal(5)

    def f(x):
        return np.tanh(weights @ x)

    wanted = (1 - f(x) ** 2)[:, None] * weights
    for mode in ("forward", "reverse"):
        same(dyncomp.jacobian(f, mode=mode)(x), wanted)
    diagonal = dyncomp.hessian(lambda x: (x**3).sum())(x)
    same(diagonal, np.diag(6 * x))


def test_explain_names_the_lines_of_the_function():
    report = dyncomp.explain(dyncomp.vmap(log_sum_exp))(V)
    same(report.result, np.stack([log_sum_exp(x) for x in V]))
    assert len(report.entries) == 1
    assert "log_sum_exp" in report.details()


def test_floating_point_errors_are_quiet():
    before = dyncomp.stats()["floating_point_reruns"]
    found = dyncomp.vmap(lambda x: np.where(x > 0, np.log(np.abs(x) * 0 + (x > 0)), 0.0))(V)
    assert np.isfinite(found[V > 0]).all()
    assert dyncomp.stats()["floating_point_reruns"] == before


@pytest.mark.parametrize("in_axes", [(0, 0), (None, 0), (0, None)], ids=str)
def test_gradients_of_solutions(in_axes):
    def f(a, b):
        return (np.linalg.solve(a, b) ** 2).sum() + (np.linalg.solve(a, b[::-1]) * b).sum()

    matrices, vectors = RNG.random((4, 3, 3)) + 3 * np.eye(3), RNG.random((4, 3))
    args = (matrices if in_axes[0] == 0 else matrices[0], vectors if in_axes[1] == 0 else vectors[0])
    gradient = dyncomp.grad(f, argnums=(0, 1))
    same(dyncomp.vmap(gradient, in_axes=in_axes)(*args), loop(gradient, in_axes, args))


def test_gradients_of_factors():
    def f(a):
        return np.log(np.diag(np.linalg.cholesky(a @ a.T + np.eye(3)))).sum()

    args = (RNG.random((4, 3, 3)),)
    same(dyncomp.vmap(dyncomp.grad(f))(*args), loop(dyncomp.grad(f), 0, args))
