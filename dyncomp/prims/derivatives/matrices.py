"""Linear algebra. Formulas: M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); J. Townsend, "Differentiating the singular value decomposition" (2016);
I. Murray, "Differentiation of the Cholesky decomposition" (2016).

Hermitian arguments are taken as such: cotangents of ``cholesky``, ``eigh`` and ``eigvalsh`` are Hermitian.
Where eigenvalues or singular values coincide, derivatives of the vectors are infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...device import CPU
from ...dtypes import float64
from ...graph.ir import Ops, Var
from ..pointwise.partials import conjugate, scalar, total, zeros

Vars = Sequence[Var]
Cotangents = Sequence[Var | None]
Maybe = Var | None


# -- building blocks --------------------------------------------------------------------------
def _turned(ops: Ops, x: Var) -> Var:
    """The conjugate transpose of the last two dimensions."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    turned = ops.transpose(x, perm=order)
    found: Var = ops.conj(turned) if x.dtype.is_complex else ops.copy(turned)
    return found


def _product(ops: Ops, *factors: Var) -> Var:
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


def _with_diagonal(ops: Ops, x: Var, diagonal: Var) -> Var:
    found: Var = ops.update_diagonal(
        x, ops.convert(diagonal, dtype=x.dtype), offset=0, axis1=x.ndim - 2, axis2=x.ndim - 1
    )
    return found


def _lower_half(ops: Ops, x: Var) -> Var:
    """The lower triangle with half of the diagonal."""
    lower = ops.tril(x, k=0)
    return _with_diagonal(ops, lower, ops.multiply(_diagonal(ops, x), scalar(ops, _diagonal(ops, x), 0.5)))


def _hermitian(ops: Ops, x: Var) -> Var:
    found: Var = ops.multiply(ops.add(x, _turned(ops, x)), scalar(ops, x, 0.5))
    return found


def _trace_with(ops: Ops, a: Var, b: Var) -> Var:
    """The trace of ``a @ b`` of each matrix."""
    turned = ops.transpose(b, perm=(*range(b.ndim - 2), b.ndim - 1, b.ndim - 2))
    found: Var = ops.reduce_sum(ops.multiply(a, turned), axes=(a.ndim - 2, a.ndim - 1))
    return found


def _solved(ops: Ops, a: Var, b: Var) -> Var:
    found: Var = ops.solve(a, b)
    return found


def _through_triangle(ops: Ops, a: Var, b: Var, lower: bool) -> Var:
    """The inverse of a triangular matrix times ``b``."""
    found: Var = ops.solve_triangular(a, b, lower=lower, left=True)
    return found


def _by_triangle(ops: Ops, b: Var, a: Var, lower: bool) -> Var:
    """``b`` times the inverse of a triangular matrix."""
    found: Var = ops.solve_triangular(a, b, lower=lower, left=False)
    return found


def _triangle(ops: Ops, x: Var, lower: bool) -> Var:
    found: Var = ops.tril(x, k=0) if lower else ops.triu(x, k=0)
    return found


def _known_diagonal(ops: Ops, x: Var) -> Var | None:
    """The diagonal of a matrix that is known to be zero elsewhere."""
    node = ops.builder.producer(x)
    if node is None or node.op != "update_diagonal" or node.kwargs["offset"] != 0:
        return None
    base = ops.builder.producer(node.inputs[0])
    is_zero = base is not None and base.op == "full" and base.kwargs["value"] == 0
    return node.inputs[1] if is_zero and x.ndim == 2 else None


# -- solutions, inverses, determinants --------------------------------------------------------
def solve_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    a, b = inputs
    (x,) = outputs
    if a.ndim == 2 and a.dtype is float64 and a.type.device == CPU:
        # the solution has the same factors (``graph/passes/factors.py``)
        grad_b = ops.solve_factored(a, *ops.lu_factor(a), cts[0], transposed=True)
    else:
        grad_b = _solved(ops, _turned(ops, a), cts[0])  # type: ignore[arg-type]
    return ops.negative(_outer(ops, grad_b, x)), grad_b


def _outer(ops: Ops, a: Var, b: Var) -> Var:
    """``a`` times the conjugate transpose of ``b``, columns or vectors."""
    return ops.outer(a, conjugate(ops, b)) if a.ndim == 1 else _product(ops, a, _turned(ops, b))


def solve_factored_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, transposed: bool
) -> tuple[Maybe, ...]:
    a, factors, pivots, _ = inputs
    grad_b = ops.solve_factored(a, factors, pivots, cts[0], transposed=not transposed)
    pair = (outputs[0], grad_b) if transposed else (grad_b, outputs[0])
    return ops.negative(_outer(ops, *pair)), None, None, grad_b


def solve_factored_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, transposed: bool
) -> Maybe:
    ta, _, _, tb = tangents
    right = None
    if ta is not None:
        right = ops.negative(ops.matmul(_turned(ops, ta) if transposed else ta, outputs[0]))
    right = total(ops, (right, tb))
    if right is None:
        return None
    found: Var = ops.solve_factored(*inputs[:3], right, transposed=transposed)
    return found


def solve_triangular_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, left: bool
) -> tuple[Maybe, ...]:
    a, _ = inputs
    (x,) = outputs
    grad_b = ops.solve_triangular(_turned(ops, a), cts[0], lower=not lower, left=left)
    product = _product(ops, grad_b, _turned(ops, x)) if left else _product(ops, _turned(ops, x), grad_b)
    return ops.negative(_triangle(ops, product, lower)), grad_b


def solve_triangular_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, lower: bool, left: bool
) -> Maybe:
    (ta, tb), (x,) = tangents, outputs
    right = None
    if ta is not None:
        part = _triangle(ops, ta, lower)
        right = ops.negative(_product(ops, part, x) if left else _product(ops, x, part))
    right = total(ops, (right, tb))
    if right is None:
        return None
    found: Var = ops.solve_triangular(inputs[0], right, lower=lower, left=left)
    return found


def solve_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    (a, _), (ta, tb), (x,) = inputs, tangents, outputs
    right = None if ta is None else ops.negative(ops.matmul(ta, x))
    right = total(ops, (right, tb))
    return None if right is None else _solved(ops, a, right)


def inv_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    turned = _turned(ops, outputs[0])
    return (ops.negative(_product(ops, turned, cts[0], turned)),)  # type: ignore[arg-type]


def inv_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    if tangents[0] is None:
        return None
    found: Var = ops.negative(_product(ops, outputs[0], tangents[0], outputs[0]))
    return found


def det_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    (a,) = inputs
    scale = ops.multiply(cts[0], conjugate(ops, outputs[0]))
    return (ops.multiply(_each(ops, scale, a), _turned(ops, ops.inv(a))),)


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
    return (ops.multiply(_each(ops, scale, a), _turned(ops, ops.inv(a))),)


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
        factor, ct = _turned(ops, factor), _turned(ops, ct)
    turned = _turned(ops, factor)
    along = _known_diagonal(ops, ct)
    if along is None:
        half = _lower_half(ops, _product(ops, turned, ops.tril(ct, k=0)))
    else:
        product = ops.multiply(_diagonal(ops, turned), along)
        half = _with_diagonal(ops, zeros(ops, factor), ops.multiply(product, scalar(ops, product, 0.5)))
    # inverse(turned) @ half @ inverse(factor)
    left = _through_triangle(ops, turned, half, lower=False)
    return (_hermitian(ops, _by_triangle(ops, left, factor, lower=True)),)


def cholesky_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, upper: bool = False
) -> Maybe:
    t = tangents[0]
    if t is None:
        return None
    lower = _turned(ops, outputs[0]) if upper else outputs[0]
    left = _through_triangle(ops, lower, _hermitian(ops, t), lower=True)
    inner = _by_triangle(ops, left, _turned(ops, lower), lower=False)
    found = _product(ops, lower, _lower_half(ops, inner))
    return _turned(ops, found) if upper else found


def qr_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, mode: str = "reduced"
) -> tuple[Maybe, ...]:
    """Of the reduced form. Columns beyond a square, ``y``, have the factor ``q`` of those before."""
    q, r = outputs
    on_q, on_r = cts
    if _is_wide(inputs[0]):
        (_, y), (first, _) = _squared(ops, inputs[0]), _squared(ops, r)
        on_first, on_rest = (None, None) if on_r is None else _squared(ops, on_r)
        by_y = zeros(ops, y)
        if on_rest is not None:
            by_y = _product(ops, q, on_rest)
            on_q = total(ops, (on_q, _product(ops, y, _turned(ops, on_rest))))
        (by_x,) = qr_vjp(ops, (on_q, on_first), (first,), (q, first))
        return (None if by_x is None else ops.concatenate(by_x, by_y, axis=by_x.ndim - 1),)
    _check_tall(inputs[0], r)
    inner = total(
        ops,
        (
            None if on_r is None else _product(ops, r, _turned(ops, on_r)),
            None if on_q is None else ops.negative(_product(ops, _turned(ops, on_q), q)),
        ),
    )
    if inner is None:
        return (None,)
    lower = _lower_half(ops, inner)
    symmetric = ops.add(lower, _turned(ops, lower))
    if inner.dtype.is_complex:  # the diagonal is its real part
        diagonal = ops.real(_diagonal(ops, inner))
        symmetric = _with_diagonal(ops, symmetric, diagonal)
    right = total(ops, (on_q, _product(ops, q, symmetric)))
    assert right is not None
    return (_by_triangle(ops, right, _turned(ops, r), lower=True),)


def qr_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, mode: str = "reduced"
) -> tuple[Maybe, ...]:
    t = tangents[0]
    if t is None:
        return None, None
    q, r = outputs
    if _is_wide(inputs[0]):
        (_, y), (first, _), (tx, ty) = (_squared(ops, v) for v in (inputs[0], r, t))
        tq, tr = qr_jvp(ops, (tx,), (first,), (q, first))
        assert tq is not None and tr is not None
        rest = ops.add(_product(ops, _turned(ops, tq), y), _product(ops, _turned(ops, q), ty))
        return tq, ops.concatenate(tr, rest, axis=r.ndim - 1)
    _check_tall(inputs[0], r)
    moved = _by_triangle(ops, t, r, lower=False)
    inner = _product(ops, _turned(ops, q), moved)
    below = ops.tril(inner, k=-1)
    skew = ops.subtract(below, _turned(ops, below))
    if inner.dtype.is_complex:  # the diagonal of r is real
        turn = ops.imag(_diagonal(ops, inner))
        skew = _with_diagonal(ops, skew, ops.complex(zeros(ops, turn), turn))
    rest = ops.subtract(inner, skew)
    return ops.subtract(moved, _product(ops, q, rest)), _product(ops, rest, r)


def _is_wide(x: Var) -> bool:
    rows, columns = x.shape[-2:]
    return isinstance(rows, int) and isinstance(columns, int) and rows < columns


def _squared(ops: Ops, x: Var) -> tuple[Var, Var]:
    """The square of the first columns of a wide matrix, and the others."""
    *outer, rows, columns = x.shape
    start, one = (0,) * x.ndim, (1,) * x.ndim
    first = ops.strided_slice(x, starts=start, sizes=(*outer, rows, rows), steps=one)
    rest = (*start[:-1], rows)
    return first, ops.strided_slice(x, starts=rest, sizes=(*outer, rows, columns - rows), steps=one)


def _check_tall(x: Var, r: Var) -> None:
    square = r.shape[-2:]
    if square[0] is not square[1] and not (isinstance(square[0], int) and square[0] == square[1]):
        raise TypeError("no derivative of the complete form of qr")


def svdvals_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars) -> tuple[Maybe, ...]:
    u, _, vh = ops.svd(inputs[0], full_matrices=False)
    return (_product(ops, ops.multiply(u, _columns(ops, cts[0], u)), vh),)  # type: ignore[arg-type]


def svdvals_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars) -> Maybe:
    if tangents[0] is None:
        return None
    u, _, vh = ops.svd(inputs[0], full_matrices=False)
    inner = _product(ops, _turned(ops, u), tangents[0], _turned(ops, vh))
    found: Var = ops.real(_diagonal(ops, inner)) if inner.dtype.is_complex else _diagonal(ops, inner)
    return found


def _gaps(ops: Ops, values: Var, like: Var) -> Var:
    """``1 / (values[j] - values[i])``, 0 on the diagonal."""
    gaps = ops.subtract(_columns(ops, values, like), _rows(ops, values, like))
    ones = ops.multiply(values, zeros(ops, values))
    one = ops.add(ones, scalar(ops, values, 1.0))
    return _with_diagonal(ops, ops.reciprocal(_with_diagonal(ops, gaps, one)), ones)


def svd_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, full_matrices: bool = True
) -> tuple[Maybe, ...]:
    """Of the reduced form. The vectors' phases are free: of complex matrices the derivative is that of
    functions which they make no difference to."""
    u, s, vh = outputs
    on_u, on_s, on_vh = cts
    if on_u is None and on_vh is None:
        if on_s is None:
            return (None,)
        return (
            svdvals_vjp(ops, (on_s,), inputs, outputs)
            if full_matrices
            else (_product(ops, ops.multiply(u, _columns(ops, on_s, u)), vh),)
        )
    _check_reduced(outputs)
    v = _turned(ops, vh)
    square = _product(ops, _turned(ops, u), u)  # for its shape
    gaps = _gaps(ops, ops.square(s), square)
    middle = zeros(ops, square)
    if on_u is not None:
        inner = _product(ops, _turned(ops, u), on_u)
        skew = ops.multiply(ops.subtract(inner, _turned(ops, inner)), gaps)
        middle = ops.add(middle, ops.multiply(skew, _columns(ops, s, square)))
        if u.dtype.is_complex:
            turn = ops.divide(ops.imag(_diagonal(ops, inner)), s)
            phases = ops.complex(zeros(ops, turn), turn)
            middle = ops.add(middle, _with_diagonal(ops, zeros(ops, square), phases))
    on_v = None if on_vh is None else _turned(ops, on_vh)
    if on_v is not None:
        inner = _product(ops, _turned(ops, v), on_v)
        skew = ops.multiply(ops.subtract(inner, _turned(ops, inner)), gaps)
        middle = ops.add(middle, ops.multiply(_rows(ops, s, square), skew))
    if on_s is not None:
        middle = ops.add(middle, _with_diagonal(ops, zeros(ops, square), on_s))
    found = _product(ops, u, middle, vh)
    if on_u is not None:
        outside = ops.subtract(on_u, _product(ops, u, _turned(ops, u), on_u))
        found = ops.add(found, _product(ops, ops.divide(outside, _columns(ops, s, outside)), vh))
    if on_v is not None:
        outside = ops.subtract(on_v, _product(ops, v, vh, on_v))
        scaled = ops.divide(outside, _columns(ops, s, outside))
        found = ops.add(found, _product(ops, u, _turned(ops, scaled)))
    return (found,)


def svd_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, full_matrices: bool = True
) -> tuple[Maybe, ...]:
    t = tangents[0]
    if t is None:
        return None, None, None
    u, s, vh = outputs
    _check_reduced(outputs)
    v = _turned(ops, vh)
    inner = _product(ops, _turned(ops, u), t, v)
    turned = _turned(ops, inner)
    gaps = _gaps(ops, ops.square(s), inner)
    along, down = _columns(ops, s, inner), _rows(ops, s, inner)
    for_u = ops.multiply(gaps, ops.add(ops.multiply(inner, along), ops.multiply(down, turned)))
    for_v = ops.multiply(gaps, ops.add(ops.multiply(down, inner), ops.multiply(turned, along)))
    rates = _diagonal(ops, inner)
    if u.dtype.is_complex:
        turn = ops.divide(ops.imag(rates), s)
        for_u = _with_diagonal(ops, for_u, ops.complex(zeros(ops, turn), turn))
        rates = ops.real(rates)
    tv, tu = _product(ops, t, v), _product(ops, _turned(ops, t), u)
    out_u = ops.subtract(tv, _product(ops, u, _turned(ops, u), tv))
    out_v = ops.subtract(tu, _product(ops, v, vh, tu))
    du = ops.add(_product(ops, u, for_u), ops.divide(out_u, _columns(ops, s, out_u)))
    dv = ops.add(_product(ops, v, for_v), ops.divide(out_v, _columns(ops, s, out_v)))
    return du, rates, _turned(ops, dv)


def _check_reduced(outputs: Vars) -> None:
    """That there are as many vectors as singular values: the others of ``full_matrices=True`` are any."""
    u, s, vh = outputs
    count = s.shape[-1]
    if not all(size is count or size == count for size in (u.shape[-1], vh.shape[-2])):
        raise TypeError("no derivative of the singular vectors of full_matrices=True")


def eigh_vjp(ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L") -> tuple[Maybe, ...]:
    w, v = outputs
    on_w, on_v = cts
    if on_w is None and on_v is None:
        return (None,)
    middle = zeros(ops, v)
    if on_v is not None:
        middle = ops.multiply(_product(ops, _turned(ops, v), on_v), _gaps(ops, w, v))
    if on_w is not None:
        middle = _with_diagonal(ops, middle, on_w)
    return (_hermitian(ops, _product(ops, v, middle, _turned(ops, v))),)


def eigh_jvp(
    ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L"
) -> tuple[Maybe, ...]:
    if tangents[0] is None:
        return None, None
    w, v = outputs
    inner = _product(ops, _turned(ops, v), _hermitian(ops, tangents[0]), v)
    diagonal = _diagonal(ops, inner)
    rates = ops.real(diagonal) if inner.dtype.is_complex else diagonal
    return rates, _product(ops, v, ops.multiply(inner, _gaps(ops, w, v)))


def eigvalsh_vjp(
    ops: Ops, cts: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L"
) -> tuple[Maybe, ...]:
    return eigh_vjp(ops, (cts[0], None), inputs, ops.eigh(inputs[0], uplo=uplo), uplo=uplo)


def eigvalsh_jvp(ops: Ops, tangents: Cotangents, inputs: Vars, outputs: Vars, *, uplo: str = "L") -> Maybe:
    return eigh_jvp(ops, tangents, inputs, ops.eigh(inputs[0], uplo=uplo), uplo=uplo)[0]


RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "solve": (solve_vjp, solve_jvp),
    "solve_factored": (solve_factored_vjp, solve_factored_jvp),
    "solve_triangular": (solve_triangular_vjp, solve_triangular_jvp),
    # what reads the factors has the derivatives by the matrix
    "lu_factor": (lambda ops, cts, inputs, outputs: (None,), lambda ops, ts, inputs, outputs: (None, None)),
    "inv": (inv_vjp, inv_jvp),
    "det": (det_vjp, det_jvp),
    "slogdet": (slogdet_vjp, slogdet_jvp),
    "cholesky": (cholesky_vjp, cholesky_jvp),
    "qr": (qr_vjp, qr_jvp),
    "svd": (svd_vjp, svd_jvp),
    "svdvals": (svdvals_vjp, svdvals_jvp),
    "eigh": (eigh_vjp, eigh_jvp),
    "eigvalsh": (eigvalsh_vjp, eigvalsh_jvp),
}
