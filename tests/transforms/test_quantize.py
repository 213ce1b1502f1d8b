"""Quantization to 8-bit integers."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import GraphError
from dyncomp.transforms import MinMax, Percentile, Range, calibrate, quantize_static, quantize_weights

RNG = np.random.default_rng(0)
W = RNG.standard_normal((64, 32)).astype(np.float32)
B = RNG.standard_normal(32).astype(np.float32)
V = RNG.standard_normal((10, 32)).astype(np.float32)
X = RNG.standard_normal((16, 64)).astype(np.float32)


def net(x):
    return np.maximum(x @ W + B, 0) @ V.T


def rounded(w, axis):
    scale = np.abs(w).max(axis=axis, keepdims=True) / np.float32(127)
    return np.rint(w / scale).astype(np.int8), scale


def relative(got, expected):
    return np.abs(got - expected).max() / np.abs(expected).max()


def test_weights_alone():
    g = dyncomp.symbolic_trace(net, (X,))
    q = quantize_weights(g)
    integers, scale = rounded(W, 0)
    np.testing.assert_array_equal(q.constants["W.int8"], integers)
    np.testing.assert_allclose(q.constants["W.scale"], scale[0])
    assert q.constants["V.int8"].dtype == np.int8 and "W" not in q.constants
    other, other_scale = rounded(V, 1)
    expected = np.maximum((X @ integers.astype(np.float32)) * scale + B, 0) @ (other * other_scale).T
    np.testing.assert_allclose(q(X), expected, 1e-4, 1e-4)
    assert relative(q(X), net(X)) < 0.02
    np.testing.assert_allclose(g(X), net(X), 1e-4, 1e-4)  # which stays as it was


def test_static_products_are_of_integers():
    """Bit for bit what the same arithmetic gives in int32."""
    g = dyncomp.symbolic_trace(lambda x: x @ W, (X,))
    q = quantize_static(g, [X])
    step = np.float32(np.abs(X).max() / 127)
    activation = np.clip(np.rint(X / step), -127, 127).astype(np.int32)
    integers, scale = rounded(W, 0)
    sums = activation @ integers.astype(np.int32)
    np.testing.assert_allclose(q(X), sums.astype(np.float32) * (scale * step), 1e-6)
    assert relative(q(X), X @ W) < 0.03


@pytest.mark.parametrize("rows", [1, 16])
def test_static_products_multiply_bytes(rows):
    wide, x = np.repeat(W, 12, axis=1), X[:rows].repeat(5, axis=1)
    wide = np.ascontiguousarray(wide.repeat(5, axis=0))
    q = quantize_static(dyncomp.symbolic_trace(lambda x: x @ wide, (x,)), [x])
    found = [node.dtype.name for node in q.nodes.find("dot_general")]
    assert found == ["int32"]
    assert relative(q(x), x @ wide) < 0.03


def test_activations_that_are_never_negative_use_all_of_8_bits():
    g = dyncomp.symbolic_trace(net, (X,))
    q = quantize_static(g, [X, X * 0.5])
    text = str(q)
    assert "dtype=uint8" in text and "dtype=int8" in text
    assert relative(q(X), net(X)) < 0.04


@pytest.mark.parametrize("size", [4, 9])
def test_batches_may_be_of_any_size(size):
    g = dyncomp.symbolic_trace(net, (X,), dynamic={"x": 0})
    q = quantize_static(g, [(X,), (X[:5],)])
    assert relative(q(X[:size]), net(X[:size])) < 0.05


def test_named_layers_are_left_out():
    g = dyncomp.symbolic_trace(net, (X,))
    q = quantize_static(g, [X], leave_out=["V*"])
    assert "V" in q.constants and "W.int8" in q.constants
    with pytest.raises(GraphError, match="no product .* is left"):
        quantize_weights(g, leave_out=["*"])


def test_products_of_two_activations_stay():
    g = dyncomp.symbolic_trace(lambda x: (x @ W) @ (x @ W).T, (X,))
    q = quantize_static(g, [X])
    assert len(q.nodes.find("dot_general")) == 3
    assert [name for name in q.constants if "int8" in name] == ["W.int8"]  # which both read
    assert relative(q(X), (X @ W) @ (X @ W).T) < 0.05


def test_a_weight_on_the_left():
    x = RNG.standard_normal((32, 5)).astype(np.float32)
    g = dyncomp.symbolic_trace(lambda x: V @ x, (x,))
    q = quantize_static(g, [x])
    assert q.constants["V.scale"].shape == (10,)
    assert relative(q(x), V @ x) < 0.03


def test_sums_too_large_for_float32_are_exact_all_the_same():
    w = np.full((4096, 2), 1, np.float32)
    x = np.abs(RNG.standard_normal((3, 4096))).astype(np.float32)
    q = quantize_static(dyncomp.symbolic_trace(lambda x: x @ w, (x,)), [x])
    assert "int32[3, 2]" in str(q)
    step = np.float32(x.max() / 255)
    sums = np.clip(np.rint(x / step), 0, 255).astype(np.int64) @ np.full((4096, 2), 127)
    np.testing.assert_allclose(q(x), sums * (step / 127), 1e-6)


def test_weights_of_zeros():
    w = np.zeros((64, 3), np.float32)
    q = quantize_static(dyncomp.symbolic_trace(lambda x: x @ w, (X,)), [X * 0])
    np.testing.assert_array_equal(q(X), 0)


def test_observers():
    seen = MinMax()
    for array in (np.array([1.0, 5.0]), np.array([-2.0, 0.0]), np.array([])):
        seen.see(array)
    assert seen.range == Range(-2.0, 5.0) and seen.range.is_signed
    cut = Percentile(99)
    cut.see(np.concatenate([np.linspace(0, 1, 1000), [100.0]]))
    assert cut.range.low == 0 and cut.range.high < 1.1
    with pytest.raises(ValueError, match="percent=20"):
        Percentile(20)
    g = dyncomp.symbolic_trace(net, (X,))
    ranges = calibrate(g, [X])
    assert ranges["W"] == Range(float(X.min()), float(X.max()))
    assert ranges["V"].low == 0
    assert relative(quantize_static(g, [X], observer=lambda: Percentile(99.99))(X), net(X)) < 0.05


def test_ranges_that_are_not_known():
    g = dyncomp.symbolic_trace(net, (X,))
    with pytest.raises(ValueError, match="at least one batch"):
        quantize_static(g, [])
    with pytest.raises(GraphError, match=r"dot_general \(v\d+\) at .*test_quantize.py:\d+ .*not known \(V\)"):
        quantize_static(g, ranges={"W": Range(-1, 1)})
    with pytest.raises(GraphError, match="range of its activation is nan"):
        quantize_static(g, ranges={"W": Range(np.nan, 1), "V": Range(0, 1)})
