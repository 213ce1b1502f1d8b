"""vjp and jvp of rows against central differences of the reference, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.dtypes import float64
from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, Ops, array_type, verify
from dyncomp.prims.derivatives import JVPS, VJPS
from dyncomp.prims.opdef import Sample
from dyncomp.prims.table import TABLE

from .framework import check_type, rows, samples_of, type_of

STEP = 1e-6
# functions with jumps or kinks at which a difference quotient says nothing
JUMPS = {"floor", "ceil", "trunc", "rint", "sign", "floor_divide", "remainder", "fmod"}
LIMIT = 40


def is_real(array):
    return array.dtype == np.float64


def suitable(row):
    """float64 samples of a manageable size with ordinary values."""
    found = []
    for sample in samples_of(row.name):
        if "special" in sample.label or any(a.size > LIMIT for a in sample.args):
            continue
        if any(a.dtype.kind in "fc" and not is_real(a) for a in sample.args) or not any(
            map(is_real, sample.args)
        ):
            continue
        found.append(sample)
    return found[:25]


def away_from_kinks(row, sample):
    if row.name not in JUMPS:
        return sample
    shifted = [
        a if not is_real(a) else np.asarray(np.round(a) + 0.3 + 0.0713 * i) for i, a in enumerate(sample.args)
    ]
    if len(shifted) == 2:
        shifted[1] = np.where(np.abs(shifted[1]) < 0.7, 1.3713, shifted[1])
    return Sample(tuple(shifted), sample.params, sample.label)


def evaluate(row, sample, rule):
    """Build and run a graph of the op and what ``rule(ops, inputs, output, extra)`` gives."""
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(type_of(np.asarray(a))) for a in sample.args]
    out = builder.emit(row.name, *inputs, **sample.params)
    results, extra = rule(builder, inputs, out)
    graph = verify(builder.finish(tuple(GraphOutput(v) for v in results if v is not None)), TABLE)
    values = iter(run(graph, TABLE, *sample.args, *extra))
    return [None if v is None else np.asarray(next(values)) for v in results]


def directions(sample, seed):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, a.shape) if is_real(a) else None for a in sample.args]


def difference(row, sample, tangents):
    """Directional derivative of the reference by central differences."""

    def at(t):
        moved = [a if d is None else np.asarray(a + t * d) for a, d in zip(sample.args, tangents)]
        return np.asarray(row.ref(*moved, **sample.params))

    return (at(STEP) - at(-STEP)) / (2 * STEP)


def derivative_rows(field):
    return [pytest.param(r, id=r.name) for r in rows() if getattr(r, field) is not None]


@pytest.mark.parametrize("row", derivative_rows("jvp"))
def test_jvp(row):
    samples = suitable(row)
    assert samples
    for raw in samples:
        sample = away_from_kinks(row, raw)
        tangents = directions(sample, 1)
        expected = difference(row, sample, tangents)

        def rule(builder, inputs, out, tangents=tangents, params=raw.params):
            extra = [t for t in tangents if t is not None]
            given = [None if t is None else builder.add_input(array_type(float64, t.shape)) for t in tangents]
            return [row.jvp(Ops(builder), given, inputs, (out,), **params)], extra

        (found,) = evaluate(row, sample, rule)
        found = np.zeros_like(expected) if found is None else found
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6, err_msg=sample.label)


@pytest.mark.parametrize("row", derivative_rows("vjp"))
def test_vjp(row):
    """<cotangent, J t> == <vjp(cotangent), t> for the difference quotient J t."""
    for raw in suitable(row):
        sample = away_from_kinks(row, raw)
        tangents = directions(sample, 2)
        pushed = difference(row, sample, tangents)
        cotangent = np.random.default_rng(3).uniform(0.5, 1.5, pushed.shape)

        def rule(builder, inputs, out, cotangent=cotangent, params=raw.params):
            ct = builder.add_input(array_type(float64, cotangent.shape))
            grads = row.vjp(Ops(builder), (ct,), inputs, (out,), **params)
            assert len(grads) == len(inputs)
            return list(grads), [cotangent]

        found = evaluate(row, sample, rule)
        total = 0.0
        for grad, tangent, array in zip(found, tangents, sample.args):
            if grad is not None:
                assert grad.shape == array.shape and grad.dtype == np.float64
                total += float(np.sum(grad * tangent)) if tangent is not None else 0.0
        scale = 1.0 + float(np.sum(np.abs(cotangent * pushed)))
        assert abs(total - float(np.sum(cotangent * pushed))) < 2e-5 * scale, sample.label


def test_rules_name_rows():
    assert (set(VJPS) | set(JVPS)) <= set(TABLE)


def test_complex_operands_are_refused():
    z = np.ones(3, complex)

    def rule(builder, inputs, out):
        return [TABLE["exp"].jvp(Ops(builder), [inputs[0]], inputs, (out,))], []

    with pytest.raises(TypeError, match="no derivative"):
        evaluate(TABLE["exp"], Sample((z,)), rule)


def test_ties_share_the_cotangent():
    x = np.array([1.0, 3.0, 3.0])

    def rule(builder, inputs, out):
        ct = builder.add_input(array_type(float64, ()))
        return list(TABLE["reduce_max"].vjp(Ops(builder), (ct,), inputs, (out,), axes=(0,))), [
            np.asarray(2.0)
        ]

    (grad,) = evaluate(TABLE["reduce_max"], Sample((x,), {"axes": (0,)}), rule)
    check_type(grad, array_type(float64, (3,)))
    np.testing.assert_array_equal(grad, [0.0, 1.0, 1.0])
