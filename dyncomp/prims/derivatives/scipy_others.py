"""Derivatives of SciPy's transforms and distances that graphs call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ..pointwise.partials import scalar, total
from ..scipy_routines import routine_callee
from . import linear_maps
from .scipy_linalg import Rule, Rules, adjoint, in_order

Vars = Sequence[Var]
Tangents = Sequence[Var | None]
FFT = "scipy.fft"


# -- transforms -------------------------------------------------------------------------------------
def _again(name: str) -> Rule:
    """The tangent of a linear map is the map of the tangent."""

    def jvp(ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars, **options: Any) -> Var | None:
        return None if tangents[0] is None else _transformed(ops, name, tangents[0], outputs[0], options)

    return jvp


def _transformed(ops: Ops, name: str, x: Var, like: Var, options: Mapping[str, Any]) -> Var:
    found: Var = ops.routine_call(
        x,
        callee=routine_callee(FFT, name, options, (tuple(range(x.ndim)),)),
        numbers=(),
        dtypes=(like.dtype,),
        shapes=(like.shape,),
    )
    return found


def _trigonometric_vjp(name: str) -> Rule:
    """Of an orthogonal transform: the one back."""
    back = name[1:] if name.startswith("i") else f"i{name}"

    def vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, **options: Any) -> Sequence[Var | None]:
        if options["norm"] != "ortho" or options["n"] is not None:
            raise TypeError('the derivative is known for norm="ortho" and without n=')
        return (_transformed(ops, back, cts[0], inputs[0], options),)

    return vjp


# -- distances --------------------------------------------------------------------------------------
def _weights(ops: Ops, ct: Var, distances: Var, metric: str) -> Var:
    """Half of the slope of each distance by the square of the difference, times the cotangent, twice."""
    if metric == "sqeuclidean":
        found: Var = ops.add(ct, ct)
        return found
    zero = ops.equal(distances, scalar(ops, distances, 0.0))
    away = ops.divide(ct, ops.where(zero, scalar(ops, distances, 1.0), distances))
    return ops.where(zero, scalar(ops, distances, 0.0), away)


def cdist_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, metric: str) -> Sequence[Var | None]:
    first, second = inputs
    weights = _weights(ops, cts[0], outputs[0], metric)

    def pulled(own: Var, other: Var, w: Var) -> Var:
        sums = ops.broadcast_in_dim(ops.reduce_sum(w, axes=(1,)), shape=own.shape, dims=(0,))
        found: Var = ops.subtract(ops.multiply(sums, own), ops.matmul(w, other))
        return found

    return pulled(first, second, weights), pulled(second, first, adjoint(ops, weights))


def cdist_jvp(ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars, *, metric: str) -> Var | None:
    """By ``(a - b) @ (da - db)`` of each pair."""
    (a, b), (ta, tb) = inputs, tangents
    terms = []
    if ta is not None:
        own = ops.reduce_sum(ops.multiply(a, ta), axes=(1,))
        spread = ops.broadcast_in_dim(own, shape=outputs[0].shape, dims=(0,))
        terms.append(ops.subtract(spread, ops.matmul(ta, adjoint(ops, b))))
    if tb is not None:
        own = ops.reduce_sum(ops.multiply(b, tb), axes=(1,))
        spread = ops.broadcast_in_dim(own, shape=outputs[0].shape, dims=(1,))
        terms.append(ops.subtract(spread, ops.matmul(a, adjoint(ops, tb))))
    found = total(ops, terms)
    return None if found is None else _weights(ops, found, outputs[0], metric)


RULES: Mapping[str, Rules] = {
    **{
        f"{FFT}.{name}": in_order((vjp, _again(name)))
        for name, vjp in {
            "fft": linear_maps.fft_vjp("ifft"),
            "ifft": linear_maps.fft_vjp("fft"),
            "rfft": linear_maps.rfft_vjp,
            "irfft": linear_maps.irfft_vjp,
            **{name: _trigonometric_vjp(name) for name in ("dct", "idct", "dst", "idst")},
        }.items()
    },
    "scipy.spatial.distance.cdist": in_order((cdist_vjp, cdist_jvp)),
}
