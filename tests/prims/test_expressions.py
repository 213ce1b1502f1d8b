"""Every pointwise row's scalar expression, evaluated on NumPy arrays, against the row's reference."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.prims.opdef import Pointwise
from dyncomp.prims.scalar import NumpyBuilder
from dyncomp.prims.table import TABLE

from .framework import all_rows, check_values, run_ref, samples_of


class WholeArray(NumpyBuilder):
    """Evaluates an expression at all points at once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def emit(self, op, args, dtype, arg=None):
        if op == "axis":
            axis = arg % len(self.shape)
            column = np.arange(self.shape[axis]).reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
            return np.broadcast_to(column, self.shape)
        return super().emit(op, args, dtype, arg)


@pytest.mark.parametrize("row", [p for p in all_rows(Pointwise) if p.id != "empty"])
@pytest.mark.filterwarnings("ignore")
def test_expression_agrees_with_reference(row):
    for sample in samples_of(row.name):
        (expected,) = run_ref(row, sample)
        builder = WholeArray(expected.shape)
        with np.errstate(all="ignore"):
            actual = row.lower.expr(builder, *sample.args, **sample.params)
        actual = np.broadcast_to(np.asarray(actual), expected.shape)
        try:
            check_values(actual, expected, row.tolerance)
        except AssertionError as error:
            raise AssertionError(f"{row.name} {sample.label}: {error}") from error


FRONTEND_NAMES = """
    negative abs sign floor ceil trunc rint sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos
    tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh erf erfc lgamma reciprocal
    square isnan isinf isfinite signbit logical_not invert conj real imag angle convert add
    subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin arctan2
    hypot copysign nextafter ldexp logaddexp logaddexp2 heaviside equal not_equal less less_equal
    greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
    left_shift right_shift gcd lcm complex where clip full iota empty constant symint strided_slice
    transpose reshape broadcast_in_dim diagonal as_strided contiguous copy update_slice
    update_diagonal update_strided reduce_sum reduce_prod reduce_max reduce_min reduce_any
    reduce_all argmax argmin mean var std logsumexp softmax cumsum cumprod cummax cummin index
    take_along_axis index_put dot_general concatenate pad roll tril triu tile sort
    argsort searchsorted fft ifft rfft irfft solve inv det slogdet cholesky qr svd eigh eigvalsh
    convolve correlate interp
"""


def test_every_name_the_frontends_use_exists():
    names = FRONTEND_NAMES.split()
    missing = [name for name in names if name not in TABLE]
    assert missing == []
