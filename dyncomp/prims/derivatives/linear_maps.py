"""Fourier transforms, convolutions and interpolation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import int64
from ...graph.ir import Ops, Var
from ...symbolic.integers import Dim, sym_max, sym_min
from ..pointwise.partials import conjugate, scalar, total, zeros
from .structure import flipped, window

Vars = Sequence[Var]
Tangents = Sequence[Var | None]


# -- Fourier transforms -----------------------------------------------------------------------
# The adjoint of a transform is the transform back with the other's scaling.
_ADJOINT = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _fitted(ops: Ops, x: Var, n: Any, axis: int) -> Var:
    """``x`` cut or filled with zeros along an axis."""
    if x.shape[axis] is n or (isinstance(n, int) and x.shape[axis] == n):
        return x
    count = sym_min(x.shape[axis], n)
    part = window(ops, x, axis, 0, count)
    shape = tuple(n if a == axis else d for a, d in enumerate(x.shape))
    base = ops.full(shape=shape, value=0, dtype=x.dtype, device=x.type.device)
    starts, sizes = (0,) * x.ndim, tuple(count if a == axis else d for a, d in enumerate(x.shape))
    found: Var = ops.update_slice(base, part, starts=starts, sizes=sizes, steps=(1,) * x.ndim)
    return found


def _length(x: Var, n: Any, axis: int) -> Any:
    return x.shape[axis] if n is None else n


def fft_vjp(back: str) -> Callable[..., tuple[Var | None, ...]]:
    """``back``: the transform in the other direction."""

    def vjp(
        ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, n: Any, axis: int, norm: str | None
    ) -> tuple[Var | None, ...]:
        (x,) = inputs
        axis %= x.ndim
        found = getattr(ops, back)(cts[0], n=None, axis=axis, norm=_ADJOINT[norm])
        found = _fitted(ops, found, x.shape[axis], axis)
        return (found if x.dtype.is_complex else ops.real(found),)

    return vjp


def rfft_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, n: Any, axis: int, norm: str | None
) -> tuple[Var | None, ...]:
    (x,) = inputs
    axis %= x.ndim
    whole = _fitted(ops, cts[0], _length(x, n, axis), axis)
    found = ops.real(ops.ifft(whole, n=None, axis=axis, norm=_ADJOINT[norm]))
    return (_fitted(ops, found, x.shape[axis], axis),)


def irfft_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, n: Any, axis: int, norm: str | None
) -> tuple[Var | None, ...]:
    (x,) = inputs
    axis %= x.ndim
    points = outputs[0].shape[axis]
    half = ops.rfft(cts[0], n=None, axis=axis, norm=_ADJOINT[norm])
    # terms between the first and (of an even number of points) the last stand for their conjugates, too
    place = ops.iota(shape=half.shape, axis=axis, dtype=int64, device=half.type.device)
    ends = ops.logical_or(
        ops.equal(place, zeros(ops, place)),
        ops.equal(ops.multiply(place, scalar(ops, place, 2)), scalar(ops, place, points)),
    )
    real = ops.real(half)
    once = ops.complex(real, zeros(ops, real))
    found = ops.where(ends, once, ops.add(half, half))
    return (_fitted(ops, found, x.shape[axis], axis),)


def hfft_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, n: Any, axis: int, norm: str | None
) -> tuple[Var | None, ...]:
    """``hfft(x)`` is ``irfft(conj(x))`` with the other scaling."""
    (found,) = irfft_vjp(ops, cts, inputs, outputs, n=n, axis=axis, norm=_ADJOINT[norm])
    assert found is not None
    return (conjugate(ops, found),)


def ihfft_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, n: Any, axis: int, norm: str | None
) -> tuple[Var | None, ...]:
    """``ihfft(x)`` is ``conj(rfft(x))`` with the other scaling."""
    return rfft_vjp(ops, [conjugate(ops, cts[0])], inputs, outputs, n=n, axis=axis, norm=_ADJOINT[norm])


# -- convolutions of vectors ------------------------------------------------------------------
def convolve_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, mode: str) -> tuple[Var | None, ...]:
    a, v = inputs
    whole = _as_full(ops, cts[0], a, v, mode)
    return _correlated(ops, whole, v, a), _correlated(ops, whole, a, v)


def correlate_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, mode: str) -> tuple[Var | None, ...]:
    """``correlate(a, v)`` convolves with ``v`` conjugated and turned round."""
    a, v = inputs
    turned = conjugate(ops, ops.copy(flipped(ops, v, 0)))
    grad_a, grad_turned = convolve_vjp(ops, cts, (a, turned), outputs, mode=mode)
    assert grad_turned is not None
    return grad_a, conjugate(ops, ops.copy(flipped(ops, grad_turned, 0)))


def _as_full(ops: Ops, ct: Var, a: Var, v: Var, mode: str) -> Var:
    """The cotangent of the whole convolution, of which ``mode`` keeps the middle."""
    (n,), (m,) = a.shape, v.shape
    if mode == "full":
        return ct
    shorter = sym_min(n, m)
    start = shorter - 1 if mode == "valid" else (shorter - 1) // 2
    base = ops.full(shape=(n + m - 1,), value=0, dtype=ct.dtype, device=ct.type.device)
    found: Var = ops.update_slice(base, ct, starts=(start,), sizes=ct.shape, steps=(1,))
    return found


def _correlated(ops: Ops, whole: Var, other: Var, wanted: Var) -> Var:
    """``sum(whole[i + k] * conj(other[k]))`` for each ``i`` of ``wanted``."""
    found: Var = ops.correlate(whole, other, mode="valid")
    return window(ops, found, 0, 0, wanted.shape[0])


# -- convolutions of images -------------------------------------------------------------------
def convolution_vjp(
    ops: Ops, cts: Vars, inputs: Vars, outputs: Vars, *, channels_last: bool = False, **params: Any
) -> tuple[Var | None, ...]:
    x, w = inputs
    (ct,) = cts
    return _image_of(ops, ct, x, w, **params), _kernels_of(ops, ct, x, w, **params)


def _image_of(
    ops: Ops, ct: Var, x: Var, w: Var, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Var:
    rank = len(stride)
    params = {"stride": stride, "dilation": dilation, "groups": groups, "channels_last": False}
    rest = _rest(ct, x, w, stride, padding, dilation)
    if rest is not None:
        pads = tuple(low for low, _ in padding)
        exact: Var = ops.convolution_transpose(ct, w, padding=pads, output_padding=rest, **params)
        return exact
    none = (0,) * rank
    whole = ops.convolution_transpose(ct, w, padding=none, output_padding=none, **params)
    # of the padded image the end may lie beyond the last window
    for axis, (low, high) in enumerate(padding, 2):
        whole = _fitted(ops, whole, x.shape[axis] + max(low, 0) + max(high, 0), axis)
    for axis, (low, _) in enumerate(padding, 2):
        if low >= 0:
            whole = window(ops, whole, axis, low, sym_min(x.shape[axis], whole.shape[axis] - low))
        else:
            shape = tuple(d - low if a == axis else d for a, d in enumerate(whole.shape))
            base = ops.full(shape=shape, value=0, dtype=ct.dtype, device=ct.type.device)
            starts = tuple(-low if a == axis else 0 for a in range(x.ndim))
            whole = ops.update_slice(base, whole, starts=starts, sizes=whole.shape, steps=(1,) * x.ndim)
        whole = _fitted(ops, whole, x.shape[axis], axis)
    return whole


def _rest(ct: Var, x: Var, w: Var, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...] | None:
    """What the image has at its ends beyond the last window, where a transposed convolution can add as much
    to its result; ``None`` elsewhere."""
    found: list[int] = []
    for axis, (step, (low, high), gap) in enumerate(zip(stride, padding, dilation), 2):
        size = (ct.shape[axis] - 1) * step - 2 * low + gap * (w.shape[axis] - 1) + 1
        if low != high or low < 0 or not isinstance(size, int) or not isinstance(x.shape[axis], int):
            return None
        more = int(x.shape[axis]) - size
        if not 0 <= more < max(step, gap) or size < 1:
            return None
        found.append(more)
    return tuple(found)


def _exact_end(x: Var, ct: Var, w: Var, axis: int, low: int, step: int, gap: int) -> int | None:
    """The zeros at an axis's end (negative: what is left out) with which there are no more windows than
    elements of the kernel; ``None`` where sizes are not known."""
    sizes = (x.shape[axis], ct.shape[axis], w.shape[axis])
    if not all(isinstance(n, int) for n in sizes):
        return None
    image, windows, kernel = (int(n) for n in sizes)
    return (kernel - 1) * gap + (windows - 1) * step + 1 - low - image


def _kernels_of(
    ops: Ops, ct: Var, x: Var, w: Var, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Var:
    """The image convolved with the cotangents: what is a stack becomes channels."""
    batch, channels, *sizes = x.shape
    kernels = w.shape[0]
    rest = tuple(range(3, 3 + len(sizes)))

    def regrouped(v: Var, count: Dim, first: tuple[int, int, int]) -> Var:
        split = ops.reshape(ops.contiguous(v), shape=(batch, groups, count, *v.shape[2:]))
        found: Var = ops.contiguous(ops.transpose(split, perm=(*first, *rest)))
        return found

    per_group = channels // groups
    image = regrouped(x, per_group, (2, 1, 0))
    image = ops.reshape(image, shape=(per_group, batch * groups, *sizes))
    seen = regrouped(ct, kernels // groups, (1, 2, 0))
    seen = ops.reshape(seen, shape=(kernels, batch, *ct.shape[2:]))
    pads = tuple(
        (low, high if (exact := _exact_end(x, ct, w, axis, low, step, gap)) is None else exact)
        for axis, ((low, high), step, gap) in enumerate(zip(padding, stride, dilation), 2)
    )
    found = ops.convolution(
        image, seen, stride=dilation, padding=pads, dilation=stride, groups=groups, channels_last=False
    )
    for axis in range(2, x.ndim):
        found = window(ops, found, axis, 0, w.shape[axis])
    order = (1, 0, *range(2, x.ndim))
    turned: Var = ops.contiguous(ops.transpose(found, perm=order))
    return turned


def convolution_transpose_vjp(
    ops: Ops,
    cts: Vars,
    inputs: Vars,
    outputs: Vars,
    *,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
    channels_last: bool = False,
) -> tuple[Var | None, ...]:
    x, w = inputs
    (ct,) = cts
    pads = tuple((p, p - more) for p, more in zip(padding, output_padding))
    params: dict[str, Any] = {"stride": stride, "padding": pads, "dilation": dilation, "groups": groups}
    return ops.convolution(ct, w, channels_last=False, **params), _kernels_of(ops, x, ct, w, **params)


# -- interpolation ----------------------------------------------------------------------------
def _segment(ops: Ops, x: Var, xp: Var, fp: Var) -> tuple[Var, Var, Var, Var, Var]:
    """For each ``x`` the point below it, the slope there, the weight of the point above, whether it lies
    between the ends, and the weight where it may be beyond them."""
    last = xp.shape[0] - 2
    found = ops.subtract(place := ops.searchsorted(xp, x, side="right"), scalar(ops, place, 1))
    low, high = scalar(ops, found, 0), scalar(ops, found, sym_max(last, 0))
    below = ops.minimum(ops.maximum(found, low), high)
    above = ops.add(below, scalar(ops, below, 1))
    x0, x1, f0, f1 = (ops.index(p, i, dims=(0,), position=0) for p in (xp, fp) for i in (below, above))
    slope = ops.divide(ops.subtract(f1, f0), ops.subtract(x1, x0))
    weight = ops.divide(ops.subtract(x, x0), ops.subtract(x1, x0))
    one, zero = scalar(ops, x, 1.0), scalar(ops, x, 0.0)
    clipped = ops.minimum(ops.maximum(weight, zero), one)
    inside = ops.equal(weight, clipped)
    return below, slope, weight, inside, clipped


def interp_vjp(ops: Ops, cts: Vars, inputs: Vars, outputs: Vars) -> tuple[Var | None, ...]:
    x, xp, fp = inputs
    (ct,) = cts
    below, slope, _, inside, weight = _segment(ops, x, xp, fp)
    above = ops.add(below, scalar(ops, below, 1))
    zero = zeros(ops, ct)
    along = ops.where(inside, ops.multiply(ct, slope), zero)
    rest = ops.subtract(scalar(ops, weight, 1.0), weight)

    def at_points(value: Var, sign: float) -> Var:
        found = zeros(ops, xp)
        for share, place in ((rest, below), (weight, above)):
            term = ops.multiply(ops.multiply(value, share), scalar(ops, value, sign))
            found = ops.index_put(found, term, place, dims=(0,), position=0, combine="add")
        return found

    return along, at_points(along, -1.0), at_points(ct, 1.0)


def interp_jvp(ops: Ops, tangents: Tangents, inputs: Vars, outputs: Vars) -> Var | None:
    x, xp, fp = inputs
    below, slope, _, inside, weight = _segment(ops, x, xp, fp)
    above = ops.add(below, scalar(ops, below, 1))
    rest = ops.subtract(scalar(ops, weight, 1.0), weight)
    slope = ops.where(inside, slope, zeros(ops, slope))
    tx, txp, tfp = tangents
    terms = [] if tx is None else [ops.multiply(tx, slope)]
    for t, sign in ((txp, -1.0), (tfp, 1.0)):
        if t is None:
            continue
        low, high = (ops.index(t, i, dims=(0,), position=0) for i in (below, above))
        mixed = ops.add(ops.multiply(low, rest), ops.multiply(high, weight))
        terms.append(mixed if sign > 0 else ops.negative(ops.multiply(slope, mixed)))
    return total(ops, terms)
