"""Linear algebra. Formulas: M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); J. Townsend, "Differentiating the singular value decomposition" (2016);
I. Murray, "Differentiation of the Cholesky decomposition" (2016).

Hermitian arguments are taken as such: cotangents of ``cholesky``, ``eigh`` and ``eigvalsh`` are Hermitian.
Where eigenvalues or singular values coincide, derivatives of the vectors are infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...graph.ir import Ops, Var
from ..pointwise.partials import conjugate, scalar, total, zeros

Vars = Sequence[Var]
Cotangents = Sequence[Var | None]
Maybe = Var | None


# -- building blocks --------------------------------------------------------------------------
def adjoint(ops: Ops, x: Var) -> Var:
    """The conjugate transpose of the last two dimensions."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    turned = ops.transpose(x, perm=order)
    found: Var = ops.conj(turned) if x.dtype.is_complex else ops.copy(turned)
    return found


def product(ops: Ops, *factors: Var) -> Var:
    found = factors[0]
    for factor in factors[1:]:
        found = ops.matmul(found, factor)
    return found


def _columns(ops: Ops, v: Var, like: Var) -> Var:
    """``v[..., None, :]`` in the shape and dtype of a matrix."""
    dims = (*range(v.ndim - 1), like.ndim - 1)
    found: Var = ops.broadcast_in_dim(ops.convert(v, dtype=like.dtype), shape=like.shape, dims=dims)
    return found


def _rows(ops: Ops, v: Var, like: Var) -> Var:
    """``v[..., :, None]`` in the shape and dtype of a matrix."""
    found: Var = ops.broadcast_in_dim(
        ops.convert(v, dtype=like.dtype), shape=like.shape, dims=tuple(range(like.ndim - 1))
    )
    return found


def _each(ops: Ops, v: Var, like: Var) -> Var:
    """A number for each matrix of a stack, in the matrices' shape and dtype."""
    found: Var = ops.broadcast_in_dim(
        ops.convert(v, dtype=like.dtype), shape=like.shape, dims=tuple(range(like.ndim - 2))
    )
    return found


def _diagonal(ops: Ops, x: Var) -> Var:
    found: Var = ops.copy(ops.diagonal(x, offset=0, axis1=x.ndim - 2, axis2=x.ndim - 1))
    return found


def with_diagonal(ops: Ops, x: Var, diagonal: Var) -> Var:
    found: Var = ops.update_diagonal(
        x, ops.convert(diagonal, dtype=x.dtype), offset=0, axis1=x.ndim - 2, axis2=x.ndim - 1
    )
    return found


def _lower_half(ops: Ops, x: Var) -> Var:
    """The lower triangle with half of the diagonal."""
    lower = ops.tril(x, k=0)
    return with_diagonal(ops, lower, ops.multiply(_diagonal(ops, x), scalar(ops, _diagonal(ops, x), 0.5)))


def hermitian(ops: Ops, x: Var) -> Var:
    found: Var = ops.multiply(ops.add(x, adjoint(ops, x)), scalar(ops, x, 0.5))
    return found


def _trace_with(ops: Ops, a: Var, b: Var) -> Var:
    """The trace of ``a @ b`` of each matrix."""
    turned = ops.transpose(b, perm=(*range(b.ndim - 2), b.ndim - 1, b.ndim - 2))
    found: Var = ops.reduce_sum(ops.multiply(a, turned), axes=(a.ndim - 2, a.ndim - 1))
    return found


def solved(ops: Ops, a: Var, b: Var) -> Var:
    found: Var = ops.solve(a, b)
    return found


# -- solutions, inverses, determinants --------------------------------------------------------
def solve_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    a, b = inputs
    (x,) = outputs
    grad_b = solved(ops, adjoint(ops, a), cts[0])  # type: ignore[arg-type]
    if b.ndim == 1:
        outer = ops.outer(grad_b, conjugate(ops, x))
    else:
        outer = product(ops, grad_b, adjoint(ops, x))
    return ops.negative(outer), grad_b


def solve_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    (a, _), (ta, tb), (x,) = inputs, tangents, outputs
    right = None if ta is None else ops.negative(ops.matmul(ta, x))
    right = total(ops, (right, tb))
    return None if right is None else solved(ops, a, right)


def inv_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    turned = adjoint(ops, outputs[0])
    return (ops.negative(product(ops, turned, cts[0], turned)),)  # type: ignore[arg-type]


def inv_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    if tangents[0] is None:
        return None
    found: Var = ops.negative(product(ops, outputs[0], tangents[0], outputs[0]))
    return found


def det_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    (a,) = inputs
    scale = ops.multiply(cts[0], conjugate(ops, outputs[0]))
    return (ops.multiply(_each(ops, scale, a), adjoint(ops, ops.inv(a))),)


def det_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    if tangents[0] is None:
        return None
    found: Var = ops.multiply(outputs[0], _trace_with(ops, ops.inv(inputs[0]), tangents[0]))
    return found


def slogdet_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    (a,) = inputs
    on_sign, on_log = cts
    scale = on_log
    if a.dtype.is_complex:
        turn = None
        if on_sign is not None:
            turn = ops.negative(ops.imag(ops.multiply(conjugate(ops, on_sign), outputs[0])))
        some = on_log if on_log is not None else turn
        if some is None:
            return (None,)
        none = zeros(ops, some)
        scale = ops.complex(none if on_log is None else on_log, none if turn is None else turn)
    if scale is None:
        return (None,)
    return (ops.multiply(_each(ops, scale, a), adjoint(ops, ops.inv(a))),)


def slogdet_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    if tangents[0] is None:
        return None, None
    rate = _trace_with(ops, ops.inv(inputs[0]), tangents[0])
    if not rate.dtype.is_complex:
        return None, rate
    turn = ops.imag(rate)
    return ops.multiply(outputs[0], ops.complex(zeros(ops, turn), turn)), ops.real(rate)


# -- factors ----------------------------------------------------------------------------------
def cholesky_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, upper: bool = False
) -> tuple[Maybe, ...]:
    factor, ct = outputs[0], cts[0]
    assert ct is not None
    if upper:
        factor, ct = adjoint(ops, factor), adjoint(ops, ct)
    turned = adjoint(ops, factor)
    half = _lower_half(ops, product(ops, turned, ops.tril(ct, k=0)))
    # inverse(turned) @ half @ inverse(factor)
    left = solved(ops, turned, half)
    inner = adjoint(ops, solved(ops, turned, adjoint(ops, left)))
    return (hermitian(ops, inner),)


def cholesky_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, upper: bool = False
) -> Maybe:
    t = tangents[0]
    if t is None:
        return None
    lower = adjoint(ops, outputs[0]) if upper else outputs[0]
    left = solved(ops, lower, hermitian(ops, t))
    inner = adjoint(ops, solved(ops, lower, adjoint(ops, left)))
    found = product(ops, lower, _lower_half(ops, inner))
    return adjoint(ops, found) if upper else found


def qr_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, mode: str = "reduced"
) -> tuple[Maybe, ...]:
    """Of matrices with as many rows as columns at least, and the reduced form."""
    q, r = outputs
    on_q, on_r = cts
    _check_tall(inputs[0], r)
    inner = total(
        ops,
        (
            None if on_r is None else product(ops, r, adjoint(ops, on_r)),
            None if on_q is None else ops.negative(product(ops, adjoint(ops, on_q), q)),
        ),
    )
    if inner is None:
        return (None,)
    lower = _lower_half(ops, inner)
    symmetric = ops.add(lower, adjoint(ops, lower))
    if inner.dtype.is_complex:  # the diagonal is its real part
        diagonal = ops.real(_diagonal(ops, inner))
        symmetric = with_diagonal(ops, symmetric, diagonal)
    right = total(ops, (on_q, product(ops, q, symmetric)))
    assert right is not None
    return (adjoint(ops, solved(ops, r, adjoint(ops, right))),)


def _check_tall(x: Var, r: Var) -> None:
    rows, columns = x.shape[-2:]
    square = r.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int) and rows < columns or square[0] is not square[1]:
        if not (isinstance(square[0], int) and square[0] == square[1]):
            raise TypeError(
                "no derivative of qr of a matrix with more columns than rows, or of its complete form"
            )


def svdvals_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    u, _, vh = ops.svd(inputs[0], full_matrices=False)
    return (product(ops, ops.multiply(u, _columns(ops, cts[0], u)), vh),)  # type: ignore[arg-type]


def svdvals_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    if tangents[0] is None:
        return None
    u, _, vh = ops.svd(inputs[0], full_matrices=False)
    inner = product(ops, adjoint(ops, u), tangents[0], adjoint(ops, vh))
    found: Var = ops.real(_diagonal(ops, inner)) if inner.dtype.is_complex else _diagonal(ops, inner)
    return found


def _gaps(ops: Ops, values: Var, like: Var) -> Var:
    """``1 / (values[j] - values[i])``, 0 on the diagonal."""
    gaps = ops.subtract(_columns(ops, values, like), _rows(ops, values, like))
    ones = ops.multiply(values, zeros(ops, values))
    one = ops.add(ones, scalar(ops, values, 1.0))
    return with_diagonal(ops, ops.reciprocal(with_diagonal(ops, gaps, one)), ones)


def svd_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, full_matrices: bool = True
) -> tuple[Maybe, ...]:
    """Of the reduced form; of complex matrices the singular values only, as the vectors' phases are free."""
    u, s, vh = outputs
    on_u, on_s, on_vh = cts
    if on_u is None and on_vh is None:
        if on_s is None:
            return (None,)
        return (
            svdvals_vjp(ops, (on_s,), inputs, outputs)
            if full_matrices
            else (product(ops, ops.multiply(u, _columns(ops, on_s, u)), vh),)
        )
    if full_matrices or u.dtype.is_complex:
        raise TypeError("no derivative of the singular vectors of complex matrices, or of full_matrices=True")
    v = adjoint(ops, vh)
    square = product(ops, adjoint(ops, u), u)  # for its shape
    gaps = _gaps(ops, ops.square(s), square)
    middle = zeros(ops, square)
    if on_u is not None:
        inner = product(ops, adjoint(ops, u), on_u)
        skew = ops.multiply(ops.subtract(inner, adjoint(ops, inner)), gaps)
        middle = ops.add(middle, ops.multiply(skew, _columns(ops, s, square)))
    on_v = None if on_vh is None else adjoint(ops, on_vh)
    if on_v is not None:
        inner = product(ops, adjoint(ops, v), on_v)
        skew = ops.multiply(ops.subtract(inner, adjoint(ops, inner)), gaps)
        middle = ops.add(middle, ops.multiply(_rows(ops, s, square), skew))
    if on_s is not None:
        middle = ops.add(middle, with_diagonal(ops, zeros(ops, square), on_s))
    found = product(ops, u, middle, vh)
    if on_u is not None:
        outside = ops.subtract(on_u, product(ops, u, adjoint(ops, u), on_u))
        found = ops.add(found, product(ops, ops.divide(outside, _columns(ops, s, outside)), vh))
    if on_v is not None:
        outside = ops.subtract(on_v, product(ops, v, vh, on_v))
        scaled = ops.divide(outside, _columns(ops, s, outside))
        found = ops.add(found, product(ops, u, adjoint(ops, scaled)))
    return (found,)


def svd_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, full_matrices: bool = True
) -> tuple[Maybe, ...]:
    t = tangents[0]
    if t is None:
        return None, None, None
    u, s, vh = outputs
    if full_matrices or u.dtype.is_complex:
        raise TypeError("no derivative of the singular vectors of complex matrices, or of full_matrices=True")
    v = adjoint(ops, vh)
    inner = product(ops, adjoint(ops, u), t, v)
    turned = adjoint(ops, inner)
    gaps = _gaps(ops, ops.square(s), inner)
    along, down = _columns(ops, s, inner), _rows(ops, s, inner)
    for_u = ops.multiply(gaps, ops.add(ops.multiply(inner, along), ops.multiply(down, turned)))
    for_v = ops.multiply(gaps, ops.add(ops.multiply(down, inner), ops.multiply(turned, along)))
    tv, tu = product(ops, t, v), product(ops, adjoint(ops, t), u)
    out_u = ops.subtract(tv, product(ops, u, adjoint(ops, u), tv))
    out_v = ops.subtract(tu, product(ops, v, vh, tu))
    du = ops.add(product(ops, u, for_u), ops.divide(out_u, _columns(ops, s, out_u)))
    dv = ops.add(product(ops, v, for_v), ops.divide(out_v, _columns(ops, s, out_v)))
    return du, _diagonal(ops, inner), adjoint(ops, dv)


def eigh_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L") -> tuple[Maybe, ...]:
    w, v = outputs
    on_w, on_v = cts
    if on_w is None and on_v is None:
        return (None,)
    middle = zeros(ops, v)
    if on_v is not None:
        middle = ops.multiply(product(ops, adjoint(ops, v), on_v), _gaps(ops, w, v))
    if on_w is not None:
        middle = with_diagonal(ops, middle, on_w)
    return (hermitian(ops, product(ops, v, middle, adjoint(ops, v))),)


def eigh_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L"
) -> tuple[Maybe, ...]:
    if tangents[0] is None:
        return None, None
    w, v = outputs
    inner = product(ops, adjoint(ops, v), hermitian(ops, tangents[0]), v)
    diagonal = _diagonal(ops, inner)
    rates = ops.real(diagonal) if inner.dtype.is_complex else diagonal
    return rates, product(ops, v, ops.multiply(inner, _gaps(ops, w, v)))


def eigvalsh_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L"
) -> tuple[Maybe, ...]:
    return eigh_vjp(ops, (cts[0], None), inputs, ops.eigh(inputs[0], uplo=uplo), uplo=uplo)


def eigvalsh_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L") -> Maybe:
    return eigh_jvp(ops, tangents, inputs, ops.eigh(inputs[0], uplo=uplo), uplo=uplo)[0]


RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "solve": (solve_vjp, solve_jvp),
    "inv": (inv_vjp, inv_jvp),
    "det": (det_vjp, det_jvp),
    "slogdet": (slogdet_vjp, slogdet_jvp),
    "cholesky": (cholesky_vjp, cholesky_jvp),
    "qr": (qr_vjp, None),
    "svd": (svd_vjp, svd_jvp),
    "svdvals": (svdvals_vjp, svdvals_jvp),
    "eigh": (eigh_vjp, eigh_jvp),
    "eigvalsh": (eigvalsh_vjp, eigvalsh_jvp),
}
