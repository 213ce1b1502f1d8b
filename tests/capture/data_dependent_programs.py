"""Programs whose sizes depend on the data: ``x`` and ``y`` are float vectors, ``k`` small integers."""

from __future__ import annotations

import numpy as np


def nonzero(x, y, k):
    return np.nonzero(x > 0)


def nonzero_used(x, y, k):
    (index,) = np.nonzero(x > 0)
    return x[index] * 2 + y[index]


def flat_nonzero_used(x, y, k):
    index = np.flatnonzero(x > 0)
    return y[index].sum() + index.sum()


def where_used(x, y, k):
    index = np.where(x > 0)[0]
    return np.sqrt(x[index]), index + 1


def arg_where(x, y, k):
    return np.argwhere(x > 0) * 2


def two_dimensions(x, y, k):
    a = np.outer(x, y)
    rows, columns = np.nonzero(a > 0)
    return a[rows, columns].sum(), rows - columns


def method_nonzero(x, y, k):
    return (x > 0).nonzero()[0] + 1


def masked_joined(x, y, k):
    return np.concatenate([x[x > 0], y[y > 0]])


def masked_twice(x, y, k):
    z = x[x > 0]
    return z[z < 1] * 2


def masked_sorted(x, y, k):
    return np.sort(x[x > 0])


def masked_cumulated(x, y, k):
    return np.cumsum(x[x > 0]) * 2


def masked_sliced(x, y, k):
    z = x[x > 0]
    return z[1:] - z[:-1]


def masked_outer(x, y, k):
    z = x[x > -10]
    return z[:, None] * z[None, :]


def masked_products(x, y, k):
    z = x[x > 0]
    return z @ z, np.dot(z, y[x > 0])


def masked_length(x, y, k):
    return len(x[x > 0]), x.sum()


def masked_shape(x, y, k):
    z = x[x > 0]
    return z.shape, z.size + 1


def masked_mean_by_length(x, y, k):
    z = x[x > -10]
    return z.sum() / len(z)


def zeros_of_count(x, y, k):
    z = x[x > 0]
    return np.zeros(len(z)) + 1


def arange_of_count(x, y, k):
    index = np.flatnonzero(x > 0)
    return np.arange(len(index)) * 2


def weighted_positions(x, y, k):
    index = np.flatnonzero(x > 0)
    return (x[index] * np.arange(len(index))).sum()


def scattered(x, y, k):
    index = np.flatnonzero(x > 0)
    z = np.zeros_like(x)
    z[index] = y[index] * 2
    return z


def added_at(x, y, k):
    index = np.flatnonzero(x > 0)
    z = np.zeros_like(x)
    np.add.at(z, index, 1.0)
    return z


def assigned_values(x, y, k):
    z = x.copy()
    z[z > 0] = np.arange(np.count_nonzero(z > 0))
    return z


def assigned_other_mask(x, y, k):
    z = x.copy()
    z[x > 0] = np.sort(x[x > 0])
    return z


def mutated_argument(x, y, k):
    index = np.flatnonzero(x > 0)
    x[index] = -1.0
    return index


def unique(x, y, k):
    return np.unique(k)


def unique_all(x, y, k):
    values, index, inverse, counts = np.unique(k, return_index=True, return_inverse=True, return_counts=True)
    return values * 2, index, values[inverse], counts / len(k)


def unique_counts(x, y, k):
    values, counts = np.unique(k, return_counts=True)
    return (values * counts).sum(), values[np.argmax(counts)] if len(k) else 0


def compressed(x, y, k):
    return np.compress(x > 0, y) + 1, x.compress(y > 0)


def compressed_rows(x, y, k):
    return np.compress(x > 0, np.outer(x, np.arange(3.0)), axis=0) * 2


def extracted(x, y, k):
    return np.extract(x > y, x) * 2


def counted(x, y, k):
    return np.bincount(k) * 2


def counted_weights(x, y, k):
    return np.bincount(k, weights=x, minlength=8).sum()


def union(x, y, k):
    return np.union1d(k, k + 3) * 2


def intersection(x, y, k):
    return np.intersect1d(k, k + 1) + 1


def intersection_indices(x, y, k):
    values, first, second = np.intersect1d(k, k + 1, return_indices=True)
    return values, k[first] - (k + 1)[second]


def difference(x, y, k):
    return np.setdiff1d(k, k[:2]) * 2


def exclusive(x, y, k):
    return np.setxor1d(k, k + 1)


def repeated(x, y, k):
    return np.repeat(x, k) * 2


def deleted_mask(x, y, k):
    return np.delete(x, x > 0) + 1


def deleted_positions(x, y, k):
    return np.delete(x, k[:1]) * 2


def count_as_slice(x, y, k):
    n = int((x > 0).sum())
    return x[:n] * 2


def count_as_start(x, y, k):
    n = int((x > 0).sum())
    return y[n:].sum()


def count_as_size(x, y, k):
    n = int((x > 0).sum())
    return np.ones(n) * 3


def count_in_arithmetic(x, y, k):
    n = int((x > 0).sum())
    return n * 2 + 1, x + n


def count_as_index(x, y, k):
    return y[int((x > 0).sum()) - 1] * 2 if len(x) > 1 else 0.0


def argmax_as_slice(x, y, k):
    return x[: int(np.argmax(x))].sum() if len(x) else 0.0


def item_as_row(x, y, k):
    a = np.outer(x, y)
    return a[int(np.argmax(x))] * 2 if len(x) else a


def count_of_range(x, y, k):
    return np.arange(int(k.sum())) * 2


def mask_of_rows(x, y, k):
    a = np.outer(x, np.arange(4.0))
    return a[x > 0] @ np.arange(4.0)


def mask_of_columns(x, y, k):
    a = np.outer(np.arange(3.0), x)
    return a[:, x > 0].sum(axis=1)


def mask_with_index(x, y, k):
    a = np.outer(x, np.arange(4.0))
    return a[x > 0, 1] * 2


def selected_reversed(x, y, k):
    return x[x > 0][::-1] + 1


def stacked(x, y, k):
    z = x[x > 0]
    return np.stack([z, z * 2])


def reshaped(x, y, k):
    z = x[x > 0]
    return z.reshape(-1, 1) * 2


def repeated_selection(x, y, k):
    return np.tile(x[x > 0], 2)


def differences(x, y, k):
    return np.diff(np.flatnonzero(x > 0))


def maximum(x, y, k):
    index = np.flatnonzero(x > -10)
    return x[index].max()


def crossing(x, y, k):
    index = np.where(np.diff(np.sign(x)) != 0)[0]
    return x[index] - x[index + 1]


def two_masks(x, y, k):
    z = x[x > 0]
    return z[z > z.mean()] if len(x) > 1 else z


def chained(x, y, k):
    index = np.flatnonzero(x > 0)
    inner = index[y[index] > 0]
    return x[inner] * y[inner]


def branch_on_count(x, y, k):
    index = np.flatnonzero(x > 0)
    if len(index) == 0:
        return x * 2
    return x[index] + 1


def loop_over_count(x, y, k):
    total = 0.0
    for i in np.flatnonzero(x > 0):
        total = total + x[i]
    return total


def count_returned_in_text(x, y, k):
    index = np.flatnonzero(x > 0)
    return f"{len(index)} of {len(x)}", index * 2


def _is_program(name, value):
    return callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == __name__


PROGRAMS = {name: value for name, value in list(globals().items()) if _is_program(name, value)}
