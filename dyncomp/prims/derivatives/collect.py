"""The rules of all rows, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..opdef import OpDef
from ..pointwise.partials import pointwise_jvp, pointwise_vjp
from . import complex_parts, linear_maps, matrices, routines, scans, selection, special_functions, structure

Rule = Callable[..., Any]

RULES: dict[str, tuple[Rule | None, Rule | None]] = {
    **{name: (vjp, structure.JVPS.get(name)) for name, vjp in structure.VJPS.items()},
    **matrices.RULES,
    "conj": (complex_parts.conj_vjp, complex_parts.conj_jvp),
    "real": (complex_parts.real_vjp, complex_parts.real_jvp),
    "imag": (complex_parts.imag_vjp, complex_parts.imag_jvp),
    "complex": (complex_parts.complex_vjp, complex_parts.complex_jvp),
    "abs": (complex_parts.abs_vjp, complex_parts.abs_jvp),
    "sign": (complex_parts.sign_vjp, complex_parts.sign_rule),
    "angle": (complex_parts.angle_vjp, complex_parts.angle_jvp),
    "convert": (complex_parts.convert_vjp, complex_parts.convert_jvp),
    "reduce_prod": (scans.prod_vjp, scans.prod_jvp),
    "cumprod": (scans.cumprod_vjp, scans.cumprod_jvp),
    "cummax": (scans.running_extreme_vjp, scans.running_extreme_jvp),
    "cummin": (scans.running_extreme_vjp, scans.running_extreme_jvp),
    "sort": (scans.sort_vjp("argsort"), scans.sort_jvp("argsort")),
    "partition": (scans.sort_vjp("argpartition"), scans.sort_jvp("argpartition")),
    "fft": (linear_maps.fft_vjp("ifft"), structure.linear_jvp("fft")),
    "ifft": (linear_maps.fft_vjp("fft"), structure.linear_jvp("ifft")),
    "rfft": (linear_maps.rfft_vjp, structure.linear_jvp("rfft")),
    "irfft": (linear_maps.irfft_vjp, structure.linear_jvp("irfft")),
    "hfft": (linear_maps.hfft_vjp, structure.linear_jvp("hfft")),
    "ihfft": (linear_maps.ihfft_vjp, structure.linear_jvp("ihfft")),
    "convolve": (linear_maps.convolve_vjp, structure.bilinear_jvp("convolve")),
    "correlate": (linear_maps.correlate_vjp, structure.bilinear_jvp("correlate")),
    "convolution": (linear_maps.convolution_vjp, structure.bilinear_jvp("convolution")),
    "convolution_transpose": (
        linear_maps.convolution_transpose_vjp,
        structure.bilinear_jvp("convolution_transpose"),
    ),
    "routine_call": (routines.routine_vjp, routines.routine_jvp),
    "library_call": (selection.call_vjp, selection.call_jvp),
    "ufunc_call": (special_functions.ufunc_vjp, special_functions.ufunc_jvp),
    "ldexp": (structure.ldexp_vjp, structure.ldexp_jvp),
    "interp": (linear_maps.interp_vjp, linear_maps.interp_jvp),
}

# Rows that have none, and why; those whose results are no floating-point numbers need not be named.
_OPAQUE = "what it calls is not known to dyncomp"
REASONS: dict[str, str] = {
    "python_call": _OPAQUE,
    "for_each": "it calls a library for each element of a batch",
    "nextafter": "it is a step of the number format",
    "wide_dot_general": "it is made of dot_general for one target, after differentiation",
    "wide_convolution": "it is made of convolution for one target, after differentiation",
}


def with_derivatives(row: OpDef) -> OpDef:
    """The row with its ``vjp`` and ``jvp``, or with the reason why it has none."""
    if row.name in RULES:
        vjp, jvp = RULES[row.name]
        return replace(row, vjp=vjp, jvp=jvp)
    if row.partials is not None:
        return replace(row, vjp=pointwise_vjp(row.partials), jvp=pointwise_jvp(row.partials))
    return replace(row, no_derivative=row.no_derivative or REASONS.get(row.name, ""))
