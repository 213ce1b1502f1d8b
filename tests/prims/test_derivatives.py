"""vjp and jvp of rows against central differences of the reference, in float64 and complex128."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.dtypes import from_numpy
from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, Ops, array_type, verify
from dyncomp.prims.derivatives.collect import REASONS, RULES
from dyncomp.prims.opdef import Sample
from dyncomp.prims.table import TABLE

from .framework import check_type, rows, samples_of, type_of

STEP = 1e-6
# functions with jumps at which a difference quotient says nothing
JUMPS = {"floor", "ceil", "trunc", "rint", "sign", "floor_divide", "remainder", "fmod", "heaviside"}
# matrices that are Hermitian, of which all else is undefined
HERMITIAN = {"cholesky", "eigh", "eigvalsh"}
# parameters for which there is no derivative: the rule says so
REFUSED = {"svd": {"full_matrices": True}, "qr": {"mode": "complete"}}
# of equal elements a difference quotient takes one
TIES = {"cummax", "cummin", "sort", "partition"}
# vectors whose phases are free
PHASES = {"svd": (0, 2), "eigh": (1,)}
# with derivatives that are right where they stand in for others, or that are others' (``stop_gradient`` has
# none at all)
STAND_INS = {"stop_gradient", "with_derivative_of", "lu_factor", "solve_factored"}
STAND_INS |= {"routine_call", "ufunc_call", "library_call"}  # by the library that is called
LIMIT = 60
COUNT = 25


def is_inexact(array):
    return array.dtype in (np.float64, np.complex128)


def suitable(row, keep=lambda row, sample: True):
    """Samples in double precision of a manageable size with ordinary values."""
    found = []
    for sample in samples_of(row.name):
        limit = 2500 if row.name.startswith("convolution") else LIMIT
        small = all(a.size <= limit for a in sample.args)
        doubles = any(map(is_inexact, sample.args))
        others = any(a.dtype.kind in "fc" and not is_inexact(a) for a in sample.args)
        refused = any(sample.params.get(k) == v for k, v in REFUSED.get(row.name, {}).items())
        strided = "strided" in row.name and "slice" not in row.name
        if strided and not sample.args[0].flags.c_contiguous:
            continue
        if row.name in TIES and "broadcast" in sample.label:
            continue
        if "special" in sample.label or not small or not doubles or others or refused:
            continue
        if not keep(row, sample):
            continue
        found.append(sample)
    reals = [s for s in found if all(a.dtype != np.complex128 for a in s.args)]
    others = [s for s in found if any(a.dtype == np.complex128 for a in s.args)]
    return reals[:COUNT] + others[:COUNT]


def away_from_kinks(row, sample):
    if row.name not in JUMPS:
        return sample
    shifted = [
        a if not is_inexact(a) else np.asarray(np.round(a) + 0.3 + 0.0713 * i)
        for i, a in enumerate(sample.args)
    ]
    if len(shifted) == 2:
        shifted[1] = np.where(np.abs(shifted[1]) < 0.7, 1.3713, shifted[1])
    return Sample(tuple(shifted), sample.params, sample.label)


def many(value):
    return value if isinstance(value, tuple) else (value,)


def evaluate(row, sample, rule):
    """Build and run a graph of the op and what ``rule(ops, inputs, outputs)`` gives with more inputs."""
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(type_of(np.asarray(a))) for a in sample.args]
    outputs = many(builder.emit(row.name, *inputs, **sample.params))
    results, extra = rule(builder, inputs, outputs)
    graph = verify(builder.finish(tuple(GraphOutput(v) for v in results if v is not None)), TABLE)
    with np.errstate(all="ignore"):
        values = iter(run(graph, TABLE, *sample.args, *extra))
    return [None if v is None else np.asarray(next(values)) for v in results]


def random(rng, like):
    found = rng.uniform(0.5, 1.5, like.shape)
    found = found + 1j * rng.uniform(0.5, 1.5, like.shape) if like.dtype.kind == "c" else found
    return np.asarray(found)


def directions(row, sample, seed):
    rng = np.random.default_rng(seed)
    found = [
        random(rng, a) if is_inexact(a) and i not in row.no_derivative_by else None
        for i, a in enumerate(sample.args)
    ]
    if row.name in HERMITIAN:
        found = [t + np.conj(np.swapaxes(t, -1, -2)) for t in found]
    return found


def difference(row, sample, tangents):
    """Directional derivatives of the reference's outputs by central differences; ``None`` for integers."""

    def at(t):
        moved = [a if d is None else np.asarray(a + t * d) for a, d in zip(sample.args, tangents)]
        with np.errstate(all="ignore"):
            return [np.asarray(v) for v in many(row.ref(*moved, **sample.params))]

    return [(a - b) / (2 * STEP) if is_inexact(a) else None for a, b in zip(at(STEP), at(-STEP))]


def add_like(builder, array):
    return builder.add_input(array_type(from_numpy(array.dtype), array.shape))


def derivative_rows(field):
    """Rows with a rule that is the derivative of what they compute."""
    return [
        pytest.param(r, id=r.name)
        for r in rows()
        if getattr(r, field) is not None and not r.is_marker and r.name not in STAND_INS
    ]


@pytest.mark.parametrize("row", derivative_rows("jvp"))
def test_jvp(row):
    samples = suitable(row)
    assert samples
    for raw in samples:
        if row.name in PHASES and raw.args[0].dtype.kind == "c":
            continue
        sample = away_from_kinks(row, raw)
        tangents = directions(row, sample, 1)
        expected = difference(row, sample, tangents)

        def rule(builder, inputs, outputs, tangents=tangents, params=raw.params):
            extra = [t for t in tangents if t is not None]
            given = [None if t is None else add_like(builder, t) for t in tangents]
            found = row.jvp(Ops(builder), given, inputs, outputs, **params)
            return list(many(found)), extra

        for found, wanted in zip(evaluate(row, sample, rule), expected, strict=True):
            if wanted is None or not np.isfinite(wanted).all():
                continue
            found = np.zeros_like(wanted) if found is None else found
            scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=4e-6 * scale, err_msg=sample.label)


@pytest.mark.parametrize("row", derivative_rows("vjp"))
def test_vjp(row):
    """<cotangent, J t> == <vjp(cotangent), t> for the difference quotient J t, of all outputs and each."""
    for raw in suitable(row):
        sample = away_from_kinks(row, raw)
        tangents = directions(row, sample, 2)
        pushed = difference(row, sample, tangents)
        if not all(p is None or np.isfinite(p).all() for p in pushed):
            continue
        rng = np.random.default_rng(3)
        whole = [None if p is None else random(rng, p) for p in pushed]
        alone = [[c if i == k else None for i, c in enumerate(whole)] for k in range(len(whole))]
        for cotangents in [whole, *alone] if len(whole) > 1 else [whole]:
            vectors = any(cotangents[i] is not None for i in PHASES.get(row.name, ()))
            if all(c is None for c in cotangents) or (vectors and raw.args[0].dtype.kind == "c"):
                continue

            def rule(builder, inputs, outputs, cotangents=cotangents, params=raw.params):
                cts = tuple(None if c is None else add_like(builder, c) for c in cotangents)
                grads = row.vjp(Ops(builder), cts, inputs, outputs, **params)
                assert len(grads) == len(inputs)
                return list(grads), [c for c in cotangents if c is not None]

            total = 0.0
            for grad, tangent, array in zip(evaluate(row, sample, rule), tangents, sample.args):
                if grad is not None:
                    assert grad.shape == array.shape and grad.dtype == array.dtype, sample.label
                    total += np.vdot(grad, tangent).real if tangent is not None else 0.0
            wanted = sum(np.vdot(c, p).real for c, p in zip(cotangents, pushed) if c is not None)
            scale = 1.0 + sum(np.abs(c * p).sum() for c, p in zip(cotangents, pushed) if c is not None)
            assert abs(total - wanted) < 2e-5 * scale, sample.label


def test_rules_name_rows():
    assert set(RULES) | set(REASONS) <= set(TABLE)
    assert not set(RULES) & set(REASONS)


def test_a_row_without_derivative_says_why_or_has_no_numbers_to_differentiate():
    for row in TABLE.values():
        if row.is_prim and row.vjp is None and not row.no_derivative:
            outputs = [many(row.ref(*s.args, **s.params)) for s in list(row.samples())[:8]]
            arguments = [s.args for s in list(row.samples())[:8]]
            exact = all(np.asarray(v).dtype.kind not in "fc" for found in outputs for v in found)
            assert exact or not any(arguments) or row.name in ("ldexp", "item", "reduce_any", "reduce_all"), (
                row
            )


def test_integer_operands_are_refused():
    z = np.ones(3, int)

    def rule(builder, inputs, outputs):
        return [TABLE["add"].jvp(Ops(builder), [inputs[0], None], inputs, outputs)], []

    with pytest.raises(TypeError, match="no derivative"):
        evaluate(TABLE["add"], Sample((z, z)), rule)


def test_parameters_without_derivatives_are_refused():
    x = np.random.default_rng(0).random((4, 3))
    for name, params in REFUSED.items():

        def rule(builder, inputs, outputs, name=name, params=params):
            return list(TABLE[name].vjp(Ops(builder), outputs, inputs, outputs, **params)), []

        with pytest.raises(TypeError, match="no derivative"):
            evaluate(TABLE[name], Sample((x,), params), rule)


def test_ties_share_the_cotangent():
    x = np.array([1.0, 3.0, 3.0])

    def rule(builder, inputs, outputs):
        ct = add_like(builder, np.asarray(2.0))
        return list(TABLE["reduce_max"].vjp(Ops(builder), (ct,), inputs, outputs, axes=(0,))), [
            np.asarray(2.0)
        ]

    (grad,) = evaluate(TABLE["reduce_max"], Sample((x,), {"axes": (0,)}), rule)
    check_type(grad, array_type(from_numpy(np.dtype(float)), (3,)))
    np.testing.assert_array_equal(grad, [0.0, 1.0, 1.0])


def gradient_of(name, x, cotangent, **params):
    def rule(builder, inputs, outputs):
        ct = add_like(builder, cotangent)
        return list(TABLE[name].vjp(Ops(builder), (ct,), inputs, outputs, **params)), [cotangent]

    return evaluate(TABLE[name], Sample((x,), params), rule)[0]


@pytest.mark.parametrize("zeros", [(), (2,), (0,), (4,), (1, 3), (0, 1, 2, 3, 4)])
def test_products_with_zeros(zeros):
    x = np.array([2.0, -3.0, 0.5, 4.0, 1.5])
    x[list(zeros)] = 0.0
    others = np.array([np.prod(np.delete(x, i)) for i in range(5)])
    np.testing.assert_allclose(gradient_of("reduce_prod", x, np.asarray(1.0), axes=(0,)), others)
    cotangent = np.arange(1.0, 6.0)
    wanted = [sum(cotangent[k] * np.prod(np.delete(x[: k + 1], i)) for k in range(i, 5)) for i in range(5)]
    np.testing.assert_allclose(gradient_of("cumprod", x, cotangent, axis=0), wanted)
