"""Reads through boolean masks: compiled equals plain Python, in one graph where the work stays inside."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check, graphs

N = 23
BACKENDS = ("eager", "inductor")


def vector(seed: int, dtype: Any = np.float64) -> np.ndarray:
    """Small whole numbers, so that sums are exact in any order."""
    values = np.random.default_rng(seed).integers(-8, 9, N)
    if np.dtype(dtype).kind == "u":
        values = abs(values)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[::-1]).astype(dtype)
    return (values > 0) if np.dtype(dtype).kind == "b" else values.astype(dtype)


def matrix(seed: int, columns: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, (N, columns)).astype(float)


def mask(seed: int, share: float = 0.5, shape: Any = N) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < share


# -- programs that need no graph break -----------------------------------------------------------
def assign(x, y, m):
    x[m] = np.sqrt(np.abs(y[m])) + y[m] * 2
    return x


def in_place(x, y, m):
    x[m] += y[m]
    x[m] *= 2.0
    x[~m] -= 1
    return x[m].sum()


def reductions(x, y, m):
    t = x[m]
    return t.sum(), np.sum(t), t.any(), np.all(t > -9), np.count_nonzero(t), t.dtype, t.ndim, np.add.reduce(t)


def means(x, y, m):
    t = x[m] - y[m]
    return t.mean(), np.mean(t, keepdims=True), t.var(), np.std(t, ddof=1), t.prod()


def extremes(x, y, m):
    x[m] = x[m] - x[m].min()
    return x, np.max(y[m]), y[m].max(initial=0.0)


def returned(x, y, m):
    t = x[m]
    return t, [t, t + 1], {"y": y[m]}


def read_then_written(x, y, m):
    t = x[m]
    u = t * 2
    x += 100
    m[:] = ~m
    return t, u, x[m], x


def write_to_the_copy(x, y, m):
    t = x[m]
    s = t
    t += 1
    t[t > 3] = 0
    t[t < -2] = t[t < -2] * 2
    t[...] = t - 1
    return t, s, s is t, x


def same_expression(x, y, m):
    x[x > 0] = np.sqrt(x[x > 0])
    y[(y > 0) & m] -= x[(y > 0) & m]
    return x, y


def where_and_clip(x, y, m):
    t = np.where(x[m] > 0, x[m], -1.0)
    return np.clip(t, 0, 3), t.astype(np.float32), np.zeros_like(t), np.round(t / 3, 1), divmod(t, 3)


def view_of_a_matrix(x, y, m):
    box = np.zeros((N, 3))
    box[m, 0] = x[m] / 4
    box[..., 1][m] = y[m]
    box[:, 2][m] = box[m, 0] + box[m, 1]
    return box


def copies(x, y, m):
    t = x[m].copy()
    u = np.asarray(t)
    v = np.array(t)
    u += 1
    return t, u, v, u is t, v is t


def overwritten_mask(x, y, m):
    before = x[m].sum()
    m &= x > 0
    x[m] = y[m]
    return before, x, m


def sizes(x, y, m):
    t = x[m]
    return t.sum() / len(t), t / t.size, t.shape, np.float64(t.shape[0]), len(t)


def passing_over_nan(x, y, m):
    t = np.sqrt(x[m])
    return np.nansum(t), np.nanmean(t), np.nanstd(t), np.nanvar(t), np.nanprod(t * 0)


def unsafe_casts(x, y, m):
    k = np.zeros(N, dtype=np.int32)
    k[m] = x[m] * 1.5
    return k


WHOLE = [
    assign,
    in_place,
    reductions,
    means,
    extremes,
    returned,
    read_then_written,
    write_to_the_copy,
    same_expression,
    where_and_clip,
    view_of_a_matrix,
    copies,
    overwritten_mask,
    sizes,
    passing_over_nan,
    unsafe_casts,
]


def vectors(seed: int = 0, share: float = 0.5):
    return lambda: (vector(seed), vector(seed + 1), mask(seed + 2, share))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", WHOLE)
def test_one_graph(program, backend):
    close = {"rtol": 1e-13} if program in (means, where_and_clip, passing_over_nan) else {}
    records = check_close(program, vectors(), vectors(5), backend=backend, **close)
    assert break_ids(records) == []
    assert graphs(records) == 1
    assert not records.skipped and not records.counters["internal_errors"]


@pytest.mark.parametrize("program", WHOLE)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_nothing_and_everything_selected(program, share):
    """The extremes of no elements raise; the mean of none is NaN."""
    check_close(program, vectors(0, 0.5), vectors(1, share), rtol=1e-13)


def check_close(function: Any, *makers: Any, backend: str = "eager", rtol: float = 0.0) -> Any:
    if not rtol:
        return check(function, *makers, backend=backend)
    from tests.capture.comparing import call, differences

    compiled = dyncomp.compile(function, backend=backend, options={"debug_verify": True})
    for maker in makers:
        for _ in range(2):
            assert differences(call(function, maker()), call(compiled, maker()), rtol) == []
    return compiled.config.records


# -- dtypes and layouts ------------------------------------------------------------------------------
def dtype_program(x, y, m):
    x[m] = x[m] + y[m]
    return x[m] * y[m], x[m].sum(), x[m] == y[m], y[m]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64", "complex128"])
def test_dtypes(dtype, backend):
    records = check(dtype_program, lambda: (vector(1, dtype), vector(2, dtype), mask(3)), backend=backend)
    assert break_ids(records) == []


def integer_division(x, y, m):
    x[m] = y[m] // x[m]
    return x, y[m] % x[m]


def test_division_by_zero_outside_of_the_mask():
    def maker():
        x = vector(4, np.int64)
        return x, vector(5, np.int64), x != 0

    check(integer_division, maker, backend="inductor")


def rows(X, m):
    kept = X[m]
    centred = kept - kept.mean(axis=0)
    return kept.sum(axis=0), kept.max(axis=1), centred.sum(), kept, kept.mean(axis=0, keepdims=True).shape


def spread_over_rows(X, m):
    X[m] = X[m] * np.arange(4.0) + np.ones((1, 4))
    X[m, 1] = X[m, 2] - 1
    X[m, 1:3] -= 2
    return X, X[m, ::2], X[m, 3]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [rows, spread_over_rows])
def test_row_masks(program, backend):
    records = check_close(program, lambda: (matrix(1), mask(2)), backend=backend, rtol=1e-13)
    assert break_ids(records) == []


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "columns": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1, ::-1],
    "readonly": lambda a: np.broadcast_to(a[0], a.shape),
}


def read_rows(X, m):
    t = X[m]
    return t, t * 2


def read_elements(X, m):
    t = X[X > 0]
    return t, t * 2, t.sum(), X[X > 0]


@pytest.mark.parametrize("program", [read_rows, read_elements])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(program, layout):
    check(program, lambda: (LAYOUTS[layout](matrix(3)), mask(4)))


def picture(image, m):
    grey = image.mean(axis=-1)
    image[m, 0] = (image[..., 1] - image[..., 2])[m] / grey[m]
    image[m] += 1
    image[..., 2][m] = 0
    return image, grey[m].sum()


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_two_dimensions(backend):
    def maker():
        image = np.random.default_rng(0).integers(1, 9, (6, 7, 3)).astype(float)
        return image, mask(1, 0.4, (6, 7))

    records = check_close(picture, maker, backend=backend, rtol=1e-13)
    assert break_ids(records) == []


def test_dynamic_sizes():
    def maker(n):
        return lambda: (np.arange(float(n)), np.arange(float(n))[::-1].copy(), np.arange(n) % 3 == 0)

    records = check(assign, *map(maker, (9, 12, 15, 20)))
    assert graphs(records) == 2
    assert not records.skipped


# -- where the graph breaks ------------------------------------------------------------------------
def length(x, y, m):
    t = x[m] + 1
    n = len(t)
    return t * n, n


def size(x, y, m):
    t = x[m]
    return t / t.size if t.shape[0] else None


def other_mask(x, y, m):
    t = x[m]
    u = y[~m]
    return t, u, np.concatenate([t, u]), x[m] + x[x > -100][m]


def too_long(x, y, m):
    return x[m] + y


def unknown_call(x, y, m):
    t = x[m] - 1
    t2 = np.sort(t)
    t.sort()
    return t, t2


def iterate(x, y, m):
    total = 0.0
    for value in x[m]:
        total += value
    return total


def indexed(x, y, m):
    t = x[m]
    return t[1:], t[0], t[::-1], t[:, None], t.reshape(-1, 1)


def view_then_write(x, y, m):
    t = x[m]
    v = t[2:]
    v += 1
    return t, v


def wrong_cast(x, y, m):
    k = np.arange(N)
    k[m] += 0.5
    return k


def stored_outside(x, y, m):
    box = [x[m]]
    box.append(box[0] * 2)
    box[0] += y[m]
    print(len(box))
    return box


def in_a_loop(x, y, m):
    for _ in range(100):
        x[m] = x[m] + y[m]
        x = np.where(x > 50, 0, x)
    return x


def shrinking(x, y, m):
    count = 0
    while len(x):
        x = x[x > count] - 1
        count += 1
    return count, x


def called(x, y, m):
    return helper(x[m]) + helper(y[m])


def helper(t):
    return t * 2 if t.size > 2 else t


def mask_of_other_shape(x, y, m):
    return x[m[:-1]]


BROKEN = [
    length,
    size,
    other_mask,
    too_long,
    unknown_call,
    iterate,
    indexed,
    view_then_write,
    wrong_cast,
    stored_outside,
    in_a_loop,
    shrinking,
    called,
    mask_of_other_shape,
]


@pytest.mark.parametrize("program", BROKEN)
def test_breaks(program):
    records = check(program, vectors(), vectors(7), vectors(3, 0.0))
    assert not records.counters["internal_errors"]


@pytest.mark.parametrize("program", [length, unknown_call, in_a_loop, shrinking, view_then_write])
def test_breaks_in_cpp(program):
    check(program, vectors(), vectors(7), backend="inductor")


def test_read_alone_copies_nothing():
    """What is only read is selected from the program's own arrays."""

    def read(x, y, m):
        return x[m]

    records = check(read, vectors(), backend="inductor")
    (entry,) = records.entries
    assert all(node.op != "copy" for node in entry.compiled.graph_after.nodes)


# -- random programs ----------------------------------------------------------------------------------
STATEMENTS = (
    "x[m] = y[m] * {c}",
    "x[m] += {c}",
    "y[k] -= x[k]",
    "t = x[m]",
    "t = y[m] + t",
    "t *= 2",
    "t[t > {c}] = {c}",
    "x[m] = t",
    "m = x > {c}",
    "m[:] = ~m",
    "k = m & (y < {c})",
    "m[{i}] = False",
    "x += 1",
    "x[{i}:] = y[{i}:]",
    "x[m], y[m] = y[m], x[m]",
    "Z[m] = Z[m] - x[0]",
    "Z[m, 1] = y[m]",
    "r.append(Z[m].sum(axis=0))",
    "r.append(t)",
    "r.append(t.sum())",
    "r.append(x[m].max())",
    "r.append(x[k].any())",
    "r.append(Z[k])",
    "r.append(len(t))",
    "u = np.where(t > 0, t, -t)",
    "r.append(u)",
    "u += y[m]",
    "m2 = t > {c}",
    "t[m2] += 1",
    "r.append(t[m2])",
)


def random_program(seed: int) -> Any:
    choose = random.Random(seed)
    lines = ["def program(x, y, m, k, Z):", "    r = []", "    t = u = x[m]", "    m2 = t > 0"]
    for _ in range(choose.randint(3, 12)):
        text = choose.choice(STATEMENTS).format(c=choose.randint(-3, 5), i=choose.randint(0, N - 1))
        lines.append(f"    {text}")
    lines.append("    return r, t, u, x, y, m, k, Z")
    source = "\n".join(lines)
    namespace: dict[str, Any] = {"np": np}
    exec(source, namespace)
    return namespace["program"], source


def random_arguments(seed: int) -> Any:
    return lambda: (vector(seed), vector(seed + 1), mask(seed + 2, 0.6), mask(seed + 3), matrix(seed))


def run_random(seed: int, backend: str) -> None:
    program, source = random_program(seed)
    try:
        records = check(program, random_arguments(seed), random_arguments(seed + 40), backend=backend)
    except AssertionError as problem:
        raise AssertionError(f"{problem}\nin\n{source}") from None
    assert not records.counters["internal_errors"], source


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed):
    run_random(seed, "eager")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25, 400))
def test_many_random_programs(seed):
    run_random(seed, "inductor" if seed % 5 == 0 else "eager")
