"""Memory orders and reshapes against NumPy on random layouts, and with symbolic sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.dtypes import float32, float64
from dyncomp.graph.ir import ArrayType, array_type, same_shape
from dyncomp.prims.layout import reshape_strides
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import ShapeEnv

from .framework import check_type, significant, type_of


@st.composite
def arrays(draw, shape=None, least=0, most=4):
    """An array of a given shape in a random layout: permuted, sliced, reversed, broadcast."""
    if shape is None:
        shape = draw(st.lists(st.integers(0, 4), min_size=least, max_size=most).map(tuple))
    perm = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2, 0])) for _ in shape]
    base_shape = [max(d * abs(s), 1) if s else 1 for d, s in zip(shape, steps)]
    stored = np.arange(float(np.prod([base_shape[p] for p in perm], dtype=int))).reshape(
        [base_shape[p] for p in perm]
    )
    x = stored.transpose(np.argsort(perm))
    key = []
    for dim, step in zip(shape, steps):
        if step == 0:
            key.append(slice(None))
        elif step > 0:
            key.append(slice(0, dim * step, step))
        else:
            key.append(slice(None, None, step))
    x = x[tuple(key)] if key else x
    x = x[tuple(slice(0, d) for d in shape)] if key else x
    return np.broadcast_to(x, shape)


@st.composite
def operands(draw, count):
    shape = draw(st.lists(st.integers(0, 4), max_size=4).map(tuple))
    return tuple(draw(arrays(shape=shape)) for _ in range(count))


@given(arrays())
def test_unary_order(x):
    check_type(np.asarray(np.negative(x)), TABLE["negative"].meta(type_of(x)))


@given(operands(2))
@settings(max_examples=300)
def test_binary_order(pair):
    x, y = pair
    check_type(np.asarray(x + y), TABLE["add"].meta(type_of(x), type_of(y)))


@given(operands(3))
@settings(max_examples=200)
def test_ternary_order(three):
    c, x, y = three
    condition = c > 2
    check_type(np.where(condition, x, y), TABLE["where"].meta(type_of(condition), type_of(x), type_of(y)))
    check_type(np.asarray(np.clip(c, x, y)), TABLE["clip"].meta(*map(type_of, three)))


@given(arrays())
def test_copies(x):
    check_type(x.copy(order="K"), TABLE["copy"].meta(type_of(x)))
    check_type(x.astype(np.float32), TABLE["convert"].meta(type_of(x), dtype=float32))


@given(arrays(least=1), st.data())
@settings(max_examples=200)
def test_reduction_order(x, data):
    axes = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1))))
    check_type(np.asarray(np.add.reduce(x, axis=axes)), TABLE["reduce_sum"].meta(type_of(x), axes=axes))
    axis = data.draw(st.integers(0, x.ndim - 1))
    check_type(np.add.accumulate(x, axis=axis), TABLE["cumsum"].meta(type_of(x), axis=axis))


@given(arrays(least=1, most=3), arrays(least=1, most=3), st.data())
def test_concatenate_order(x, y, data):
    axis = data.draw(st.integers(0, x.ndim - 1))
    y = np.broadcast_to(y.ravel()[0] if y.size else 1.0, x.shape)
    pair = (x, data.draw(st.sampled_from([x, y, np.ascontiguousarray(x), x.copy(order="F")])))
    check_type(np.concatenate(pair, axis), TABLE["concatenate"].meta(*map(type_of, pair), axis=axis))


@given(arrays(), st.data())
@settings(max_examples=300)
def test_reshape_is_a_view_exactly_where_numpy_says(x, data):
    sizes = [d for d in (1, 2, 3, 4, 6, 8, 9, 12, 16) if x.size and x.size % d == 0]
    shape = tuple(data.draw(st.lists(st.sampled_from(sizes or [0]), max_size=3)))
    rest = int(np.prod(shape, dtype=int))
    if x.size and (x.size % rest):
        shape = ()
        rest = 1
    shape = (*shape, x.size // rest if x.size else 0)
    try:
        expected = np.reshape(x, shape, copy=False)
    except ValueError:
        expected = None
    found = reshape_strides(x.shape, type_of(x).strides, shape)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert significant(shape, found) == significant(shape, type_of(expected).strides)


def test_reshape_to_another_size_is_an_error():
    with pytest.raises(ValueError, match="cannot reshape"):
        TABLE["reshape"].meta(array_type(float64, (3, 4)), shape=(5, 2))


# -- symbolic sizes ---------------------------------------------------------------------------
@pytest.fixture
def sizes():
    env = ShapeEnv()
    return env, env.new_symbol(10, low=2), env.new_symbol(7, low=2)


def test_pointwise_on_symbolic_sizes_needs_no_guard(sizes):
    env, n, m = sizes
    x = array_type(float64, (n, m))
    scalar = TABLE["broadcast_in_dim"].meta(array_type(float64, ()), shape=(n, m), dims=())
    row = TABLE["broadcast_in_dim"].meta(array_type(float64, (m,)), shape=(n, m), dims=(1,))
    assert TABLE["add"].meta(x, x).is_contiguous
    assert TABLE["add"].meta(x, scalar).is_contiguous
    assert TABLE["exp"].meta(x).is_contiguous
    assert TABLE["convert"].meta(x, dtype=float32).is_contiguous
    assert TABLE["reduce_sum"].meta(x, axes=(1,)).is_contiguous
    assert TABLE["softmax"].meta(x, axes=(1,)).is_contiguous
    assert same_shape(TABLE["mean"].meta(x, axes=(0,)).shape, (m,))
    assert env.guards == []
    assert TABLE["add"].meta(x, row).is_contiguous
    transposed = TABLE["transpose"].meta(x, perm=(1, 0))
    assert same_shape(TABLE["add"].meta(transposed, transposed).strides, (1, m))


def test_a_stencil_on_symbolic_sizes(sizes):
    env, n, m = sizes
    u = array_type(float64, (n, m))
    window = {"starts": (1, 0), "sizes": (n - 2, m - 2), "steps": (1, 1)}
    left = TABLE["strided_slice"].meta(u, **window)
    assert same_shape(left.strides, (m, 1))
    total = TABLE["add"].meta(left, left)
    assert same_shape(total.shape, (n - 2, m - 2))
    assert TABLE["update_slice"].meta(u, total, **window).is_contiguous


def test_reshape_of_symbolic_sizes(sizes):
    env, n, m = sizes
    x = array_type(float64, (n, m))
    assert TABLE["reshape"].meta(x, shape=(n * m,)).is_contiguous
    assert TABLE["reshape"].meta(x, shape=(n, 1, m)).is_contiguous
    assert env.guards == []
    sliced = ArrayType(float64, (n, 4), (8, 1))
    assert same_shape(TABLE["reshape"].meta(sliced, shape=(n, 2, 2)).strides, (8, 2, 1))
    with pytest.raises(ValueError, match="not a view"):
        TABLE["reshape"].meta(sliced, shape=(n * 4,))


def test_contractions_and_joins_of_symbolic_sizes(sizes):
    env, n, m = sizes
    x = array_type(float64, (n, m))
    y = array_type(float64, (m, 3))
    assert same_shape(TABLE["matmul"].meta(x, y).shape, (n, 3))
    assert same_shape(TABLE["concatenate"].meta(x, x, axis=0).shape, (2 * n, m))
    assert same_shape(TABLE["pad"].meta(x, widths=((1, 1), (0, 2)), value=0.0).shape, (n + 2, m + 2))
    assert same_shape(TABLE["rfft"].meta(x, n=None, axis=0).shape, (n // 2 + 1, m))


# -- ill-typed calls --------------------------------------------------------------------------
V3 = array_type(float64, (3,))
I3 = array_type(TABLE["argmax"].meta(array_type(float64, (3, 4)), axis=0).dtype, (3,))


@pytest.mark.parametrize(
    ("op", "args", "params", "error"),
    [
        ("add", (V3, array_type(float64, (4,))), {}, ValueError),
        ("add", (V3, array_type(float32, (3,))), {}, TypeError),
        ("bitwise_and", (V3, V3), {}, TypeError),
        ("where", (V3, V3, V3), {}, TypeError),
        ("reduce_sum", (V3,), {"axes": (1,)}, ValueError),
        ("reduce_sum", (V3,), {"axes": (0, 0)}, ValueError),
        ("reduce_max", (array_type(float64, (0,)),), {"axes": (0,)}, ValueError),
        ("argmax", (array_type(float64, (0, 2)),), {"axis": 0}, ValueError),
        ("transpose", (V3,), {"perm": (1,)}, ValueError),
        ("broadcast_in_dim", (V3,), {"shape": (4,), "dims": (0,)}, ValueError),
        ("strided_slice", (V3,), {"starts": (2,), "sizes": (2,), "steps": (1,)}, IndexError),
        ("strided_slice", (V3,), {"starts": (0,), "sizes": (2,), "steps": (0,)}, ValueError),
        ("diagonal", (array_type(float64, (3, 3)),), {"offset": 0, "axis1": 1, "axis2": 1}, ValueError),
        ("update_slice", (V3, V3), {"starts": (0,), "sizes": (2,), "steps": (1,)}, ValueError),
        ("index", (V3, V3), {"dims": (0,), "position": 0}, TypeError),
        ("index_put", (V3, V3, I3), {"dims": (0,), "position": 0, "combine": "xor"}, ValueError),
        (
            "dot_general",
            (V3, array_type(float64, (4,))),
            {"contract": ((0,), (0,)), "batch": ((), ())},
            ValueError,
        ),
        ("matmul", (array_type(float64, (2, 3)), array_type(float64, (2, 3))), {}, ValueError),
        ("concatenate", (array_type(float64, (2, 3)), array_type(float64, (2, 4))), {"axis": 0}, ValueError),
        ("inv", (array_type(float64, (2, 3)),), {}, ValueError),
        ("fft", (array_type(float64, (0,)),), {"n": None, "axis": 0}, ValueError),
    ],
)
def test_ill_typed_calls_are_refused(op, args, params, error):
    with pytest.raises(error):
        TABLE[op].meta(*args, **params)


@pytest.mark.parametrize("bad", [5, -6, 2**40])
def test_an_index_out_of_bounds_is_an_error(bad):
    x = np.arange(5.0)
    index = np.array([0, bad])
    with pytest.raises(IndexError):
        TABLE["index"].ref(x, index, dims=(0,), position=0)
    with pytest.raises(IndexError):
        TABLE["take_along_axis"].ref(x, index, axis=0)
    for combine in ("set", "add"):
        before = x.copy()
        with pytest.raises(IndexError):
            TABLE["index_put"].ref(x, np.ones(2), index, dims=(0,), position=0, combine=combine)
        np.testing.assert_array_equal(x, before)


def test_negative_indices_wrap_once():
    x = np.arange(5.0)
    found = TABLE["index"].ref(x, np.array([-1, -5]), dims=(0,), position=0)
    np.testing.assert_array_equal(found, [4.0, 0.0])
