"""Rows with a closed form: values and derivatives against sympy and mpmath with 50 digits."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, Ops
from dyncomp.prims.table import TABLE

from .framework import rows, samples_of, type_of

sympy = pytest.importorskip("sympy")
mpmath = pytest.importorskip("mpmath")

DIGITS = 50
EPS = float(np.finfo(np.float64).eps)
ROWS = [row for row in rows() if row.closed]
SYMBOLS = sympy.symbols("x y z", real=True)


def _points(row, count=40):
    """Operands of ordinary float64 samples."""
    for sample in samples_of(row.name):
        if all(a.dtype == np.float64 for a in sample.args) and "special" not in sample.label:
            arrays = np.broadcast_arrays(*sample.args)
            if 1 < arrays[0].size <= 200:
                return [np.ascontiguousarray(a).ravel()[:count] for a in arrays]
    raise AssertionError(f"no ordinary samples of {row.name}")


def _exact(expression, arguments):
    """What an expression is at each point; NaN where it has no real value."""
    evaluate = sympy.lambdify(SYMBOLS[: len(arguments)], expression, "mpmath")
    found = []
    with mpmath.workdps(DIGITS):
        for point in zip(*arguments):
            try:
                value = mpmath.mpmathify(evaluate(*(mpmath.mpf(float(v)) for v in point)))
            except (ZeroDivisionError, ValueError):
                value = mpmath.nan
            real = abs(mpmath.im(value)) < mpmath.mpf(10) ** (5 - DIGITS)
            found.append(float(mpmath.re(value)) if real else float("nan"))
    return np.array(found)


def _form(row):
    return sympy.sympify(row.closed, locals={str(s): s for s in SYMBOLS})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_values(row):
    arguments = _points(row)
    exact = _exact(_form(row), arguments)
    with np.errstate(all="ignore"):
        found = row.ref(*arguments)
    assert np.isfinite(exact).sum() >= len(exact) // 3
    allowed = EPS * (max(row.tolerance.eps, 1.0) * np.abs(exact) + row.tolerance.absolute)
    wrong = np.isfinite(exact) & ~(np.abs(found - exact) <= allowed)
    assert not wrong.any(), (arguments, found[wrong], exact[wrong])


@pytest.mark.parametrize("row", [row for row in ROWS if row.partials], ids=lambda row: row.name)
def test_derivatives(row):
    arguments = _points(row)
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(type_of(a)) for a in arguments]
    out = builder.emit(row.name, *inputs)
    slopes = row.partials(Ops(builder), inputs, out)
    for position, slope in enumerate(slopes):
        if slope is None:
            continue
        graph = builder.finish((GraphOutput(slope),))
        with np.errstate(all="ignore"):
            (found,) = run(graph, TABLE, *arguments)
        exact = _exact(sympy.diff(_form(row), SYMBOLS[position]), arguments)
        # a partial derivative is a few operations more than the function
        allowed = EPS * (256 * np.abs(exact) + 16 * row.tolerance.absolute + 64)
        wrong = np.isfinite(exact) & np.isfinite(found) & ~(np.abs(found - exact) <= allowed)
        assert not wrong.any(), (position, [a[wrong] for a in arguments], found[wrong], exact[wrong])
