"""Tests generated from the op table: every row's samples, and comparison with a row's reference.

``all_samples(kind)`` lists (row, sample) pairs as pytest parameters; ``kind`` is a lowering class
(``Pointwise``…), ``"prim"``, ``"composite"`` or ``None``. Samples are made lazily, once per row.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from dyncomp.graph.ir import ArrayType, contiguous_strides
from dyncomp.prims.kit import type_of
from dyncomp.prims.opdef import Extern, OpDef, Sample, Tolerance
from dyncomp.prims.table import TABLE


def rows(kind: Any = None) -> list[OpDef]:
    """The rows of a kind (see the module's docstring) that can be computed here."""
    return [row for row in TABLE.values() if _is_kind(row, kind) and is_installed(row)]


def is_installed(row: OpDef) -> bool:
    """Whether the package that computes it, if it is another's routine, is there."""
    package = row.lower.package if isinstance(row.lower, Extern) else ""
    return not package or find_spec(package) is not None


def _is_kind(row: OpDef, kind: Any) -> bool:
    if kind is None:
        return True
    if kind == "prim":
        return row.is_prim
    if kind == "composite":
        return row.decomp is not None
    return isinstance(row.lower, kind)


@functools.cache
def samples_of(name: str) -> tuple[Sample, ...]:
    """Every sample of a row."""
    row = TABLE[name]
    return tuple(row.samples()) if row.samples is not None else ()


def some_samples(row: OpDef, count: int) -> list[Sample]:
    """``count`` of a row's samples, evenly over the list (their order is by dtype); other rows begin at other
    places."""
    samples = list(samples_of(row.name))
    if len(samples) <= count:
        return samples
    start = zlib.crc32(row.name.encode()) % len(samples)
    return [samples[(k * len(samples) + start) // count] for k in range(count)]


def all_samples(kind: Any = None) -> list[Any]:
    """One pytest parameter per (row, sample)."""
    return [
        pytest.param(row, s, id=f"{row.name}-{s.label}") for row in rows(kind) for s in samples_of(row.name)
    ]


def all_rows(kind: Any = None) -> list[Any]:
    """One pytest parameter per row: for tests that loop over ``samples_of(row.name)`` themselves."""
    return [pytest.param(row, id=row.name) for row in rows(kind)]


def run_ref(row: OpDef, sample: Sample) -> tuple[np.ndarray[Any, Any], ...]:
    """The reference's outputs as a tuple; the arguments must come out unchanged."""
    before = [np.array(a) for a in sample.args]
    out = row.ref(*sample.args, **sample.params)
    for a, b in zip(sample.args, before):
        assert np.asarray(a).tobytes() == b.tobytes(), "the reference changed an argument"
    return out if isinstance(out, tuple) else (out,)


def infer(row: OpDef, sample: Sample) -> tuple[ArrayType, ...]:
    """The types that ``meta`` gives for a sample."""
    out = row.meta(*(type_of(a) for a in sample.args), **sample.params)
    return out if isinstance(out, tuple) else (out,)


def significant(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with those that address nothing (sizes 0 and 1) put to 0."""
    if 0 in shape:
        return (0,) * len(shape)
    return tuple(0 if d == 1 else s for d, s in zip(shape, strides))


def check_type(actual: np.ndarray[Any, Any], expected: ArrayType, *, strides: bool = True) -> None:
    """dtype, shape and (significant) strides of an array are those of a type."""
    assert isinstance(actual, np.ndarray)
    found = type_of(actual)
    assert found.dtype is expected.dtype, f"dtype {found.dtype}, meta says {expected.dtype}"
    assert found.shape == expected.shape, f"shape {found.shape}, meta says {expected.shape}"
    if strides:
        left = significant(found.shape, found.strides)
        right = significant(found.shape, expected.strides)
        assert left == right, f"strides {left}, meta says {right}"


def _wide(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def epsilon(dtype: np.dtype[Any]) -> float:
    """The spacing at 1 of a floating (or complex) dtype."""
    if dtype.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(dtype).eps)


def check_values(
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    tolerance: Tolerance | float,
    *,
    scale: float = 0.0,
) -> None:
    """Equal up to ``eps`` epsilons of the expected values (plus ``scale``, for sums that cancel).

    Integers, bools and ``eps == 0`` compare exactly, NaN with NaN, infinities with their sign; with
    ``eps == 0`` the sign of zeros counts too.
    """
    eps = tolerance.eps if isinstance(tolerance, Tolerance) else tolerance
    absolute = tolerance.absolute if isinstance(tolerance, Tolerance) else 0.0
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    with np.errstate(all="ignore"):
        if eps == 0:
            np.testing.assert_array_equal(_wide(actual), _wide(expected))
            np.testing.assert_array_equal(np.signbit(_wide(actual).real), np.signbit(_wide(expected).real))
            return
        relative = eps * epsilon(expected.dtype)
        floor = relative * scale + absolute * epsilon(expected.dtype) + tiny(expected.dtype)
        np.testing.assert_allclose(_wide(actual), _wide(expected), rtol=relative, atol=floor, equal_nan=True)


def tiny(dtype: np.dtype[Any]) -> float:
    """The smallest normal number of a dtype: differences below it are denormals'."""
    return 1.2e-38 if dtype.name == "bfloat16" else float(np.finfo(dtype).tiny)


def extent_scale(sample: Sample) -> float:
    """How large partial results of a reduction of the sample's first array may be."""
    if not sample.args or sample.args[0].size == 0:
        return 0.0
    first = np.abs(_wide(np.asarray(sample.args[0])))
    finite = first[np.isfinite(first)]
    return float(finite.max(initial=0.0)) * float(np.sqrt(first.size))


def concrete_samples(kind: Any = None) -> Iterator[tuple[OpDef, Sample]]:
    """(row, sample) pairs without pytest."""
    for row in rows(kind):
        for sample in samples_of(row.name):
            yield row, sample


__all__ = [
    "all_rows",
    "all_samples",
    "check_type",
    "check_values",
    "concrete_samples",
    "contiguous_strides",
    "epsilon",
    "extent_scale",
    "infer",
    "is_installed",
    "rows",
    "run_ref",
    "samples_of",
    "significant",
    "some_samples",
    "type_of",
]
