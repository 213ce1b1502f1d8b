"""Second derivatives of rows: the tangent of the gradient (forward over reverse) and the gradient of the
gradient (reverse over reverse) against central differences of the gradient, in float64 and complex128."""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.aot_autograd.joint import joint
from dyncomp.aot_autograd.pushforward import pushforward
from dyncomp.graph.interp import run
from dyncomp.graph.ir import GraphBuilder, GraphOutput, verify
from dyncomp.prims.table import TABLE

from .framework import rows, type_of
from .test_derivatives import (
    PHASES,
    STAND_INS,
    away_from_kinks,
    directions,
    is_inexact,
    many,
    random,
    suitable,
)

STEP = 1e-5
MOST = 12  # samples of a row


def differentiable(row):
    """Rows with derivatives, and those made of others."""
    return (row.vjp is not None or row.decomp is not None) and not row.is_marker and row.name not in STAND_INS


def gradient_graph(row, sample, wrt, outputs):
    builder = GraphBuilder(TABLE)
    inputs = [builder.add_input(type_of(np.asarray(a))) for a in sample.args]
    made = many(builder.emit(row.name, *inputs, **sample.params))
    graph = verify(builder.finish(tuple(GraphOutput(made[k]) for k in outputs)), TABLE)
    return joint(graph, TABLE, wrt).graph


def values(graph, arrays):
    with np.errstate(all="ignore"):
        return [np.asarray(v) for v in run(graph, TABLE, *arrays)]


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in rows() if differentiable(r)])
def test_second_derivatives(row):
    tested = 0
    for sample in chosen(row):
        is_complex = any(np.asarray(a).dtype.kind == "c" for a in sample.args)
        with np.errstate(all="ignore"):
            made = many(row.ref(*sample.args, **sample.params))
        free = PHASES.get(row.name, ()) if is_complex else ()
        outputs = [k for k, v in enumerate(made) if is_inexact(np.asarray(v)) and k not in free]
        tangents = directions(row, sample, 4)
        wrt = [k for k, t in enumerate(tangents) if t is not None]
        if not wrt or not outputs:
            continue
        rng = np.random.default_rng(5)
        cotangents = [random(rng, np.asarray(made[k])) for k in outputs]
        first = gradient_graph(row, sample, wrt, outputs)

        def at(step, sample=sample, tangents=tangents, cotangents=cotangents, first=first, wrt=wrt):
            moved = [a if t is None else np.asarray(a + step * t) for a, t in zip(sample.args, tangents)]
            return values(first, [*moved, *cotangents])[-len(wrt) :]

        here, near, far = at(0.0), (at(STEP), at(-STEP)), (at(2 * STEP), at(-2 * STEP))
        moving = [tangents[k] for k in wrt]
        twice = pushforward(first, TABLE, wrt)
        forward = values(twice, [*sample.args, *cotangents, *moving])[-len(wrt) :]
        again = joint(first, TABLE, wrt, range(len(outputs), len(outputs) + len(wrt))).graph
        weights = [random(rng, g) for g in here]
        backward = values(again, [*sample.args, *cotangents, *weights])[-len(wrt) :]
        total, scale = 0.0, 1.0
        for k, found in enumerate(forward):
            wanted = (near[0][k] - near[1][k]) / (2 * STEP)
            doubt = np.abs(wanted - (far[0][k] - far[1][k]) / (4 * STEP))
            usable = np.isfinite(wanted) & (doubt < 1e-3 * (1 + np.abs(wanted)))
            size = (
                1
                + np.abs(np.where(usable, wanted, 0)).max(initial=0.0)
                + np.abs(here[k][usable]).max(initial=0.0)
            )
            wrong = np.abs(np.where(usable, found - wanted, 0))
            assert wrong.max(initial=0.0) < 1e-5 * size + 2 * doubt[usable].max(initial=0.0), (
                f"{sample.label}, by input {wrt[k]}: {found} instead of {wanted}"
            )
            total += np.vdot(weights[k], found).real
            scale += np.abs(weights[k] * found).sum()
            tested += int(usable.sum())
        pulled = sum(np.vdot(g, t).real for g, t in zip(backward, moving))
        if np.isfinite(total):
            assert abs(pulled - total) < 1e-8 * scale, f"{sample.label}: {pulled} back, {total} forward"
    assert tested


def chosen(row):
    """Of its samples those that say most: real and complex ones, of more than an element."""
    found = [away_from_kinks(row, sample) for sample in suitable(row, keep=telling)]
    is_complex = [any(np.asarray(a).dtype.kind == "c" for a in s.args) for s in found]
    reals = [s for s, c in zip(found, is_complex) if not c]
    return reals[:MOST] + [s for s, c in zip(found, is_complex) if c][:MOST]


def telling(row, sample):
    with np.errstate(all="ignore"):
        results = many(row.ref(*sample.args, **sample.params))
    return max(np.size(a) for a in sample.args) > 1 and any(is_inexact(np.asarray(v)) for v in results)
