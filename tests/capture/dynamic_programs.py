"""Programs on arrays whose sizes change: ``x`` and ``y`` have ``n`` elements, ``a`` is ``n`` by 3.

``PROGRAMS`` take ``(x, y, a)``; each is called with many sizes and may make only few entries.
``MORE`` says how many entries beyond the usual ones a program may make, and why.
"""

from __future__ import annotations

import math

import numpy as np


# -- arithmetic on sizes ------------------------------------------------------------------------
def half(x, y, a):
    return x[: x.shape[0] // 2] * 2.0


def last_third(x, y, a):
    n = len(x)
    return x[n - n // 3 :] + n


def modulo(x, y, a):
    return x * (len(x) % 4)


def divided(x, y, a):
    q, r = divmod(len(x), 3)
    return x + q, r


def size_power(x, y, a):
    return x * len(x) ** 2


def true_division(x, y, a):
    return x.sum() * (1.0 / (len(x) + 1))


def mean_by_hand(x, y, a):
    return x.sum() / (x.size + 1)


def absolute(x, y, a):
    return x + abs(3 - len(x))


def smaller(x, y, a):
    return x[: min(len(x), 5)].sum()


def larger(x, y, a):
    return np.zeros(max(len(x), 4)) + 1.0


def clamped(x, y, a):
    return x[: max(0, min(len(x) - 1, 60))] + 1


def rounded(x, y, a):
    return x + round(len(x))


def as_int(x, y, a):
    return x * int(len(x)) + float(len(x))


def bits(x, y, a):
    return x + len(x).bit_length()


def shifted_size(x, y, a):
    return x + (len(x) << 2) + (len(x) >> 1)


def masked_bits(x, y, a):
    return x + (len(x) & 3)


def or_bits(x, y, a):
    return x + ((len(x) | 8) ^ 3)


def root_of_size(x, y, a):
    return x / (1.0 + math.sqrt(len(x)))


def log_of_size(x, y, a):
    return x * math.log(len(x) + 1.0)


def ceil_log(x, y, a):
    return x + math.ceil(math.log2(len(x) + 1))


def whole_root(x, y, a):
    return x + math.isqrt(len(x))


def greatest(x, y, a):
    return x + math.gcd(len(x), 12)


def float_power(x, y, a):
    return x * len(x) ** 0.5


def negative_power(x, y, a):
    return x * (len(x) + 1) ** -1


def floor_of_ratio(x, y, a):
    return x[: math.floor(len(x) * 0.5)]


def int_of_ratio(x, y, a):
    k = int(len(x) * 0.75)
    return x[:k].sum() + k


def ceil_division(x, y, a):
    return np.zeros(-(-len(x) // 2)) + x.sum()


def multiplied_sizes(x, y, a):
    return np.zeros(x.shape[0] * a.shape[1]) + 1


def size_of_both(x, y, a):
    return a.size + x.size + a.nbytes + x.itemsize, a.sum()


def prod_of_shape(x, y, a):
    return a.reshape(math.prod(a.shape)) + 1


def sum_of_shape(x, y, a):
    return a * sum(a.shape)


def unpacked_shape(x, y, a):
    rows, columns = a.shape
    return a.sum() + rows * columns


def zipped_shape(x, y, a):
    total = 0
    for n, m in zip(a.shape, (2, 3)):
        total += n * m
    return a + total


def starred_shape(x, y, a):
    first, *rest = a.shape
    return np.ones((first, *rest)) * a


def reversed_shape(x, y, a):
    return np.zeros(a.shape[::-1]) + a.T


def negative_shape(x, y, a):
    return np.zeros(a.shape[:-1]) + a.shape[-1] + a.sum()


def extended_shape(x, y, a):
    return np.zeros(x.shape + (2,)) + 1, x * 2


def stored_shape(x, y, a):
    info = {"shape": a.shape, "sizes": [x.size]}
    info["sizes"].append(len(y))
    return a * info["shape"][0] + sum(info["sizes"]), info


def compared_shapes(x, y, a):
    if x.shape == y.shape:
        return x + y
    return x


def same_length(x, y, a):
    assert len(x) == len(y)
    return x * y


def unlike_shapes(x, y, a):
    if a.shape != x.shape:
        return a + 1
    return a


def ordered_shapes(x, y, a):
    if a.shape >= (2, 3):
        return a * 2
    return a


def formatted(x, y, a):
    return f"{len(x)} elements of {a.shape}", x + 1


def stringed(x, y, a):
    return str(len(x)), repr(a.shape[0]), "%d rows" % len(a), x + 1  # noqa: UP031


def size_as_key(x, y, a):
    return {"n": len(x), "m": a.shape}, x * 2


def size_returned(x, y, a):
    x = x + 1
    return len(x), x.shape, a.shape[0] // 2


# -- branches -----------------------------------------------------------------------------------
def branch_on_range(x, y, a):
    if len(x) >= 2:
        return x * 2
    return x + 1


def branch_on_parity(x, y, a):
    if len(x) % 2 == 0:
        return x * 2
    return x + 1


def branch_on_empty(x, y, a):
    if not len(x):
        return np.zeros(3)
    return x - x.mean()


def branch_on_truth(x, y, a):
    if x.size:
        return x.max() + 1
    return 0.0


def branch_between(x, y, a):
    if 1 < len(x) < 1000:
        return x * 2
    return x


def branch_unequal(x, y, a):
    if len(x) == 5:
        return x * 5
    return x


def branch_chained(x, y, a):
    n = len(x)
    return x * (1 if n > 10_000 else 2 if n > 5_000 else 3)


def branch_on_difference(x, y, a):
    if len(x) - len(y) > 0:
        return x
    return y + 1


def conditional_pad(x, y, a):
    missing = -len(x) % 4
    return np.concatenate([x, np.zeros(missing)])


# -- subscripts ---------------------------------------------------------------------------------
def differences(x, y, a):
    return x[1:] - x[:-1]


def every_other(x, y, a):
    return x[::2] * 2


def odd_ones(x, y, a):
    return x[1::2] + 1


def backwards(x, y, a):
    return x[::-1] + x


def negative_step_from(x, y, a):
    return x[-2::-2] * 2


def inner(x, y, a):
    return x[1:-1] * 3


def from_symbolic(x, y, a):
    k = len(x) // 2
    return x[k:] * 2


def to_negative_symbolic(x, y, a):
    k = len(x) // 2
    return x[:-k] if k else x


def both_symbolic(x, y, a):
    n = len(x)
    return x[n // 4 : n // 2 + 1] + 1


def symbolic_step(x, y, a):
    step = len(x) // 3 + 1
    return x[::step] + 0


def middle_item(x, y, a):
    return x[len(x) // 2] if len(x) else -1.0


def last_item(x, y, a):
    return x[len(x) - 1] + x[-1] if len(x) else 0.0


def new_axis(x, y, a):
    return x[:, None] * y[None, :]


def ellipsis(x, y, a):
    return a[..., 0] + a[..., -1]


def ellipsis_and_slice(x, y, a):
    return a[..., 1:] * 2 + a[1:2, ..., :1].sum()


def row_of_symbolic(x, y, a):
    return a[len(a) // 2] + 1 if len(a) else a.sum()


def column_slices(x, y, a):
    return a[:, 1:] - a[:, :-1]


def written_slice(x, y, a):
    z = np.zeros(len(x))
    z[1:] = x[1:] * 2
    z[: len(x) // 2] += 1
    return z


def written_item(x, y, a):
    z = x.copy()
    if len(z):
        z[len(z) // 2] = 9.0
    return z


def written_steps(x, y, a):
    z = x * 1
    z[::2] = 0
    z[1::2] *= 3
    return z


def taken(x, y, a):
    index = np.arange(len(x)) // 2
    return x[index] + np.take(x, index)


def added_at(x, y, a):
    z = np.zeros(len(x))
    np.add.at(z, np.arange(len(x)) // 2, x)
    return z


# -- creation -----------------------------------------------------------------------------------
def zeros(x, y, a):
    return np.zeros(len(x)) + x


def ones_of_shape(x, y, a):
    return np.ones(a.shape, dtype=np.float32) * 2


def full(x, y, a):
    return np.full((len(x), 2), len(x), dtype=float)


def empty_filled(x, y, a):
    z = np.empty_like(x)
    z[...] = x * 2
    return z


def arange(x, y, a):
    return np.arange(len(x)) * x


def arange_from(x, y, a):
    return np.arange(1, len(x) + 1) * 0.5


def arange_step(x, y, a):
    return np.arange(0, len(x), 2) + 1


def arange_down(x, y, a):
    return np.arange(len(x), 0, -1) * x


def linspace(x, y, a):
    return np.linspace(0.0, 1.0, len(x)) + x


def linspace_open(x, y, a):
    return np.linspace(0, 2, len(x) + 2, endpoint=False)


def eye(x, y, a):
    return np.eye(len(x)) * 2


def identity(x, y, a):
    return np.identity(len(x)) + x


def triangle(x, y, a):
    return np.tri(len(x)) * x


def upper(x, y, a):
    return np.triu(np.outer(x, y))


def indices(x, y, a):
    rows, columns = np.indices(a.shape)
    return rows * 10 + columns


def frequencies(x, y, a):
    return np.fft.fftfreq(len(x) + 1, 0.5) * 2


def window(x, y, a):
    return np.hanning(len(x)) * x


# -- joining and reshaping ----------------------------------------------------------------------
def joined(x, y, a):
    return np.concatenate([x, y, x])


def joined_rows(x, y, a):
    return np.concatenate((a, a * 2), axis=1)


def stacked(x, y, a):
    return np.stack([x, y]) * 2


def stacked_last(x, y, a):
    return np.stack([x, y], axis=-1)


def columns(x, y, a):
    return np.column_stack([x, y])


def hstacked(x, y, a):
    return np.hstack([x, y]) + 1, np.vstack([x, y])


def flat(x, y, a):
    return a.reshape(-1) * 2


def raveled(x, y, a):
    return a.ravel() + a.flatten()


def rebuilt(x, y, a):
    return a.ravel().reshape(a.shape) + 1


def reshape_symbolic(x, y, a):
    return a.reshape(3, len(x)) * 2


def reshape_minus(x, y, a):
    return a.reshape(-1, 3).sum(axis=1)


def reshape_column(x, y, a):
    return x.reshape(-1, 1) * y.reshape(1, -1)


def reshape_even(x, y, a):
    even = x[: len(x) // 2 * 2]
    return even.reshape(-1, 2).sum(axis=1)


def reshape_by_factor(x, y, a):
    k = len(x) // 2
    return x[: 2 * k].reshape(2, k) + 1


def split_halves(x, y, a):
    left, right = np.split(a, [len(a) // 2])
    return left * 2, right + 1


def split_even(x, y, a):
    p, q, r = np.split(a, 3, axis=1)
    return p + q + r


def array_split(x, y, a):
    first, second = np.array_split(x, 2)
    return first.sum(), second.sum()


def padded(x, y, a):
    return np.pad(x, 2)


def padded_by_size(x, y, a):
    return np.pad(x, (0, len(x)))


def padded_edge(x, y, a):
    return np.pad(x, (1, 2), mode="edge") if len(x) else x


def tiled(x, y, a):
    return np.tile(x, 3)


def tiled_rows(x, y, a):
    return np.tile(x, (2, 1))


def tiled_by_size(x, y, a):
    return np.tile(np.arange(3.0), len(x))


def repeated(x, y, a):
    return np.repeat(x, 2)


def repeated_by_size(x, y, a):
    return np.repeat(np.arange(2.0), len(x))


def rolled(x, y, a):
    return np.roll(x, 1) + x


def rolled_by_size(x, y, a):
    return np.roll(x, len(x) // 2)


def broadcast(x, y, a):
    return np.broadcast_to(x, (4, len(x))) + 1


def broadcast_against_one(x, y, a):
    return x[:, None] + np.ones((1, 1)) * y


def meshed(x, y, a):
    p, q = np.meshgrid(x, np.arange(3.0))
    return p * q


def meshed_ij(x, y, a):
    p, q = np.meshgrid(x, y, indexing="ij")
    return p - q


def flipped(x, y, a):
    return np.flip(a, axis=0) + a


def transposed(x, y, a):
    return a.T * 2, np.swapaxes(a, 0, 1) + 1


def squeezed(x, y, a):
    return np.squeeze(x[:, None]) + 1, np.expand_dims(x, 0)


def moved(x, y, a):
    return np.moveaxis(a, 0, -1) * 3


def diagonal(x, y, a):
    return np.diag(np.outer(x, y)) + np.outer(x, y).trace()


def diagonal_matrix(x, y, a):
    return np.diag(x) + 1


# -- reductions, products, transforms -----------------------------------------------------------
def reductions(x, y, a):
    return x.sum(), a.sum(axis=0), a.sum(axis=1), x.prod()


def extremes(x, y, a):
    return (x.max() - x.min(), x.argmax()) if len(x) else 0


def centred(x, y, a):
    return a - a.sum(axis=0) / (len(a) + 1)


def deviation(x, y, a):
    return np.std(x), np.var(x)


def cumulative(x, y, a):
    return np.cumsum(x), np.cumsum(a, axis=0)


def gradient_like(x, y, a):
    return np.diff(x) * 2, np.diff(a, axis=0)


def dotted(x, y, a):
    return x @ y, np.dot(x, y)


def gram(x, y, a):
    return a.T @ a


def outer_gram(x, y, a):
    return a @ a.T


def projected(x, y, a):
    return a @ np.arange(3.0), x @ a


def einsummed(x, y, a):
    return np.einsum("ij,ik->jk", a, a)


def outer(x, y, a):
    return np.outer(x, y) * 2


def distances(x, y, a):
    d = a[:, None, :] - a[None, :, :]
    return np.sqrt((d**2).sum(-1))


def transform(x, y, a):
    return np.abs(np.fft.rfft(x)) if len(x) else x


def transform_back(x, y, a):
    return np.fft.irfft(np.fft.rfft(x), len(x)) if len(x) > 1 else x


def transform_padded(x, y, a):
    return np.fft.fft(x, 2 * len(x)) if len(x) else x


def ordered(x, y, a):
    return np.sort(x), np.argsort(x, kind="stable")


def upper_quantile(x, y, a):
    s = np.sort(x)
    return s[int(0.9 * len(s))] if len(s) else 0.0


def convolved(x, y, a):
    return np.convolve(x, np.array([1.0, 2.0, 1.0]), mode="valid") if len(x) >= 3 else x


def smoothed(x, y, a):
    z = x.copy()
    z[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return z


def trapezoid(x, y, a):
    return ((x[1:] + x[:-1]) * 0.5).sum() * (1.0 / max(len(x) - 1, 1))


def polynomial(x, y, a):
    return np.vander(x, 3)


def where_sized(x, y, a):
    return np.where(np.arange(len(x)) < len(x) // 2, x, y)


def clipped(x, y, a):
    return np.clip(x, -1, len(x))


def normalised(x, y, a):
    return (x - x.sum() / max(len(x), 1)) / (np.sqrt((x * x).sum()) + len(x))


# -- loops --------------------------------------------------------------------------------------
def summed_range(x, y, a):
    total = 0.0
    for i in range(len(x)):
        total = total + i * 0.5
    return x * total


def loop_over_items(x, y, a):
    z = np.zeros_like(x)
    for i in range(len(x)):
        z[i] = x[i] * 2 + i
    return z


def loop_over_rows(x, y, a):
    total = np.zeros(3)
    for i in range(a.shape[0]):
        total = total + a[i] * i
    return total


def loop_of_halves(x, y, a):
    z = x * 1
    for _ in range(len(x) // 2):
        z = z * 0.5 + 1
    return z


def while_halving(x, y, a):
    n = len(x)
    steps = 0
    while n > 1:
        n //= 2
        steps += 1
    return x + steps


def comprehension(x, y, a):
    return x.sum() + sum([i * 2 for i in range(len(x))])


def rows_iterated(x, y, a):
    total = 0.0
    for row in a:
        total = total + row.sum()
    return total


def enumerated(x, y, a):
    total = 0.0
    for i, v in enumerate(x):
        total = total + i * v
    return total


def helper_with_size(x, y, a):
    def scale(v, n):
        return v * n if n > 1 else v

    return scale(x, len(x)) + scale(y, len(y) - 1)


def _is_program(name, value):
    return callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == __name__


PROGRAMS = {name: value for name, value in list(globals().items()) if _is_program(name, value)}
