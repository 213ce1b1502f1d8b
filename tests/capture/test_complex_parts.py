"""How the real part of a complex array lies in memory is not asked of the copy that the graph has of it."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp


def flags(z):
    weights = z.real
    if not weights.flags.contiguous:
        weights = weights.copy()
    return weights


def of_a_result(z):
    weights = z.conj().imag
    if not weights.flags["C_CONTIGUOUS"]:
        weights = weights.copy()
    dyncomp.graph_break()
    return weights


def contiguous(z):
    return np.ascontiguousarray(z.real), np.asarray(z.imag, order="F"), np.array(z.real, order="C", copy=None)


def converted(z):
    return z.real.astype(z.real.dtype, "C", copy=False), z.imag.astype(float, copy=False)


def strides(z):
    return z.real.strides, z.imag.shape, z + 1


@pytest.mark.parametrize(
    "program", [flags, of_a_result, contiguous, converted, strides], ids=lambda p: p.__name__
)
def test_layout_of_parts(program):
    compiled = dyncomp.compile(program, backend="eager")
    for dtype in (complex, np.complex64):
        for shape in ((3, 4), (2, 5), (1, 1)):
            z = (np.arange(np.prod(shape)).reshape(shape) * (1 - 2j)).astype(dtype)
            plain, found = program(z), compiled(z)
            plain, found = ((plain,), (found,)) if isinstance(plain, np.ndarray) else (plain, found)
            for a, b in zip(plain, found, strict=True):
                np.testing.assert_array_equal(a, b)
                if isinstance(a, np.ndarray):
                    assert (a.dtype, a.strides) == (b.dtype, b.strides)
                    assert np.shares_memory(a, z) == np.shares_memory(b, z)
