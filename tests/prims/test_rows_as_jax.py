"""vjp and jvp of rows against those of JAX's functions that mean the same, on the rows' samples.

The cotangent of ``x + iy`` is ``dL/dx + i dL/dy`` here and its conjugate in JAX, in and out.
"""

from __future__ import annotations

import numpy as np
import pytest

from dyncomp.graph.ir import Ops

from .framework import rows
from .test_derivatives import (
    HERMITIAN,
    PHASES,
    STAND_INS,
    add_like,
    away_from_kinks,
    evaluate,
    is_inexact,
    many,
    random,
    suitable,
)

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
MOST = 4  # samples, real and complex ones


def _index(x, *indices, dims, position):
    """Positions along ``dims``; the dimensions of the indices, broadcast, stand at ``position``."""
    rest = [d for d in range(x.ndim) if d not in dims]
    found = jnp.transpose(x, (*dims, *rest))[tuple(indices)]
    front = np.broadcast_shapes(*(np.shape(i) for i in indices))
    return jnp.moveaxis(found, range(len(front)), range(position, position + len(front)))


def _index_put(base, value, *indices, dims, position, combine):
    rest = [d for d in range(base.ndim) if d not in dims]
    turned = jnp.transpose(base, (*dims, *rest))
    count = len(np.broadcast_shapes(*(np.shape(i) for i in indices)))
    given = jnp.moveaxis(value, range(position, position + count), range(count))
    at = turned.at[tuple(indices)]
    made = {"set": at.set, "add": at.add, "multiply": at.multiply, "max": at.max, "min": at.min}[combine](
        given
    )
    return jnp.transpose(made, np.argsort((*dims, *rest)))


def _places(x, offset=0, axis1=0, axis2=1, **params):
    """The elements that a view shows, as places of the flat array."""
    return np.diagonal(np.arange(x.size).reshape(x.shape), offset, axis1, axis2)


def _strided_places(shape, strides, offset):
    found = np.full(shape, offset)
    for axis, (size, stride) in enumerate(zip(shape, strides)):
        found = found + np.arange(size).reshape(-1, *[1] * (len(shape) - axis - 1)) * stride
    return found


def _slices(starts, sizes, steps):
    def one(start, size, step):
        stop = start + size * step
        return slice(start, None if stop < 0 else stop, step)

    return tuple(one(*part) for part in zip(starts, sizes, steps))


def _set_flat(base, places, value):
    return base.reshape(-1).at[places.reshape(-1)].set(value.reshape(-1)).reshape(base.shape)


MEANINGS = {
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "complex": lax.complex,
    "convert": lambda x, dtype: x.astype(dtype.numpy),
    "strided_slice": lambda x, starts, sizes, steps: x[_slices(starts, sizes, steps)],
    "update_slice": lambda x, v, starts, sizes, steps: x.at[_slices(starts, sizes, steps)].set(v),
    "transpose": lambda x, perm: jnp.transpose(x, perm),
    "reshape": lambda x, shape: x.reshape(shape),
    "broadcast_in_dim": lambda x, shape, dims: lax.broadcast_in_dim(x, shape, dims),
    "diagonal": lambda x, offset, axis1, axis2: jnp.diagonal(x, offset, axis1, axis2),
    "update_diagonal": lambda x, v, **at: _set_flat(x, _places(x, **at), v),
    "as_strided": lambda x, **at: x.reshape(-1)[_strided_places(at["shape"], at["strides"], at["offset"])],
    "update_strided": lambda x, v, **at: _set_flat(
        x, _strided_places(at["shape"], at["strides"], at["offset"]), v
    ),
    "contiguous": lambda x: x + 0,
    "copy": lambda x: x + 0,
    "after": lambda x, *others: x + 0,
    "tril": lambda x, k: jnp.tril(x, k),
    "triu": lambda x, k: jnp.triu(x, k),
    "reduce_sum": lambda x, axes: jnp.sum(x, axis=axes),
    "reduce_prod": lambda x, axes: jnp.prod(x, axis=axes),
    "reduce_max": lambda x, axes: jnp.max(x, axis=axes),
    "reduce_min": lambda x, axes: jnp.min(x, axis=axes),
    "cummax": lambda x, axis: lax.cummax(x, axis=axis),
    "cummin": lambda x, axis: lax.cummin(x, axis=axis),
    "index": _index,
    "index_put": _index_put,
    "take_along_axis": lambda x, i, axis: jnp.take_along_axis(x, i, axis=axis),
    "dot_general": lambda a, b, contract, batch: lax.dot_general(a, b, (contract, batch)),
    "convolve": lambda a, v, mode: jnp.convolve(a, v, mode=mode),
    "correlate": lambda a, v, mode: jnp.correlate(a, v, mode=mode),
    "svdvals": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "eigh": lambda x, uplo: jnp.linalg.eigh(x, UPLO=uplo),
    "eigvalsh": lambda x, uplo: jnp.linalg.eigvalsh(x, UPLO=uplo),
    "solve_triangular": lambda a, b, lower, left: lax.linalg.triangular_solve(
        a, b, lower=lower, left_side=left
    ),
    "lgamma": jax.scipy.special.gammaln,
}
# what JAX has no function for, or none with a derivative
WITHOUT = {
    "convolution": "it is compared with torch's",
    "convolution_transpose": "it is compared with torch's",
    "partition": "the order of the other elements is free",
    "log_softmax_at": "it is the difference of others",
}
# by row, parts of samples' labels or parameters that JAX has another meaning of, or no derivative
WITHOUT_SAMPLES = {
    "sign": "complex",  # a constant in JAX: test_kinks_as_jax.py
    "clip": "complex",  # refused
    "index_put": "multiply",  # NotImplementedError
}


def meaning(row):
    if row.name in MEANINGS:
        return MEANINGS[row.name]
    for library in (jnp, jnp.linalg, jnp.fft, jax.scipy.special):
        found = getattr(library, row.name, None)
        if callable(found):
            return found
    raise AssertionError(f"JAX has no {row.name}")


def compared():
    return [
        pytest.param(r, id=r.name)
        for r in rows()
        if r.vjp is not None and not r.is_marker and r.name not in {*STAND_INS, *WITHOUT}
    ]


def chosen(row):
    found = [away_from_kinks(row, sample) for sample in suitable(row)]
    left_out = WITHOUT_SAMPLES.get(row.name)
    found = [s for s in found if all(np.size(a) for a in s.args)]
    found = [s for s in found if left_out is None or left_out not in f"{s.label} {s.params}"]
    is_complex = [any(np.asarray(a).dtype.kind == "c" for a in s.args) for s in found]
    spread = [[s for s, c in zip(found, is_complex) if c is kind] for kind in (False, True)]
    return [s for part in spread for s in part[:: max(1, len(part) // MOST)]]


@pytest.mark.slow
@pytest.mark.parametrize("row", compared())
def test_as_jax(row):
    jax.config.update("jax_enable_x64", True)
    f = meaning(row)
    tested = 0
    for sample in chosen(row):
        args = [np.asarray(a) for a in sample.args]
        by = [k for k, a in enumerate(args) if is_inexact(a) and k not in row.no_derivative_by]
        rng = np.random.default_rng(6)
        with np.errstate(all="ignore"):
            made = [np.asarray(v) for v in many(row.ref(*args, **sample.params))]
        is_complex = any(a.dtype.kind == "c" for a in args)
        free = PHASES.get(row.name, ()) if is_complex else ()
        live = [k for k, v in enumerate(made) if is_inexact(v) and k not in free]
        if not live or not by:
            continue

        def theirs(*moved, args=args, by=by, live=live, params=sample.params):
            given = list(map(jnp.asarray, args))
            for k, a in zip(by, moved):
                given[k] = a
            found = f(*given, **params)
            found = tuple(found) if isinstance(found, tuple) else (found,)
            return [found[k] for k in live]

        point = [jnp.asarray(args[k]) for k in by]
        cotangents = [random(rng, made[k]) for k in live]
        tangents = [random(rng, args[k]) for k in by]
        if row.name in HERMITIAN:
            tangents = [t + np.conj(np.swapaxes(t, -1, -2)) for t in tangents]

        def derivatives(point, cotangents, tangents, theirs=theirs):
            values, back = jax.vjp(theirs, *point)
            return values, back(cotangents), jax.jvp(theirs, tuple(point), tuple(tangents))[1]

        values, pulled, pushed = jax.jit(derivatives)(point, [np.conj(c) for c in cotangents], tangents)
        if not all(
            np.allclose(made[k], v, rtol=1e-9, atol=1e-9, equal_nan=True) for k, v in zip(live, values)
        ):
            continue  # such as signs of vectors
        tested += 1

        def rule(
            builder,
            inputs,
            outputs,
            args=args,
            by=by,
            live=live,
            extra=(cotangents, tangents),
            made=made,
            params=sample.params,
        ):
            ops = Ops(builder)
            cts = [add_like(builder, made[k]) if k in live else None for k in range(len(outputs))]
            moving = [add_like(builder, args[k]) if k in by else None for k in range(len(inputs))]
            grads = row.vjp(ops, tuple(cts), inputs, outputs, **params)
            moved = many(row.jvp(ops, moving, inputs, outputs, **params))
            both = [*(grads[k] for k in by), *(moved[k] for k in live)]
            return both, [*extra[0], *extra[1]]

        found = evaluate(row, sample, rule)
        for k, mine, his in zip(by, found, pulled):
            his = np.conj(his)
            if row.name in HERMITIAN:  # JAX's is that of the triangle that is read, ours is Hermitian
                his = (his + np.conj(np.swapaxes(his, -1, -2))) / 2
            agree(np.zeros_like(his) if mine is None else mine, his, f"{sample.label}: vjp by input {k}")
        for k, mine, his in zip(live, found[len(by) :], pushed):
            agree(np.zeros_like(his) if mine is None else mine, his, f"{sample.label}: jvp of output {k}")
    assert tested or not chosen(row)


def agree(mine, his, what):
    usable = np.isfinite(his)
    mine, his = np.where(usable, mine, 0), np.where(usable, his, 0)
    scale = 1.0 + np.abs(his).max(initial=0.0)
    np.testing.assert_allclose(mine, his, rtol=1e-8, atol=1e-9 * scale, err_msg=what)
