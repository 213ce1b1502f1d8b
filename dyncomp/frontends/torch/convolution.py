"""Convolutions over one, two and three dimensions, and transposed ones."""

from __future__ import annotations

import math

from ...device import CPU
from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.layout import dims_equal, is_c_contiguous
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .formats import channels_inside, channels_outside, has_last_channels, is_channels_last
from .functional import real_tensor
from .normalization import per_channel
from .operands import contiguous, convert, need_tensor, pointwise, tensor
from .reductions import widened
from .torch_rules import RuleTable, of_rank

TABLE = RuleTable()
# Elements of the copy that a convolution over three dimensions is made one over two with, at most.
_LARGEST_COPY = 1 << 24
# Channels and kernels, and rows and columns of a part, from which on kernels with gaps are without them.
_LEAST_CHANNELS, _LEAST_PART = 32, 7

Sizes = tuple[int, ...]


def _sizes(value: object, rank: int, name: str, least: int) -> Sizes:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) == 1:
        given *= rank
    if len(given) != rank or not all(type(v) is int and v >= least for v in given):
        raise Unsupported(f"{name}={value!r} of a convolution over {rank} dimensions")
    return given


def _pads(padding: object, rank: int, w: ArrayRef, stride: Sizes, dilation: Sizes) -> Sizes:
    if padding == "valid":
        return (0,) * rank
    if padding != "same":
        return _sizes(padding, rank, "padding", 0)
    totals = [d * (int(n) - 1) for d, n in zip(dilation, w.shape[2:])]
    if any(s != 1 for s in stride) or any(t % 2 for t in totals):
        # torch pads an image unevenly with a warning
        raise Unsupported("padding='same' with steps, or with kernels of even sizes")
    return tuple(t // 2 for t in totals)


def _operands(
    rank: int, input: object, weight: object, bias: object
) -> tuple[ArrayRef, ArrayRef, ArrayRef | None]:
    x, w = real_tensor(input), real_tensor(weight)
    b = None if bias is None else need_tensor(bias)
    if w.ndim != rank + 2 or x.ndim not in (rank + 1, rank + 2):
        raise Unsupported(f"a convolution over {rank} dimensions of tensors of other dimensions")
    if x.dtype != w.dtype or (b is not None and (b.dtype != x.dtype or b.ndim != 1)):
        raise Unsupported("a convolution of tensors of different dtypes")
    if any(d == 0 for d in (*x.shape, *w.shape)) or not all(type(d) is int for d in w.shape):
        raise Unsupported("a convolution without elements or with kernels of unknown sizes")
    return x, w, b


def _is_channels_last(rank: int, x: Var, w: Var) -> bool:
    """Whether torch lays the result out with channels last (``determine_backend_memory_format`` of
    ATen/native/Convolution.cpp; over one dimension it makes the input contiguous and adds a dimension)."""
    if rank == 1:
        shape, strides = w.shape, w.type.strides
        return has_last_channels((*shape[:2], 1, shape[2]), (*strides[:2], shape[2] * strides[2], strides[2]))
    if rank == 2:
        return is_channels_last(w) or is_channels_last(x)
    if not all(is_c_contiguous(v.shape, v.type.strides) for v in (x, w)):
        raise Unsupported("a convolution over three dimensions of tensors that are not contiguous")
    return False


def _image(tx: TraceContext, x: ArrayRef, rank: int) -> Var:
    """The input as a stack of images that a product can be made of."""
    image = contiguous(tx, x.var) if rank == 1 else x.var
    if x.ndim == rank + 2:
        return image
    batch: Var = emit(tx, "reshape", image, shape=(1, *image.shape))
    return batch


def _finished(tx: TraceContext, out: Var, bias: ArrayRef | None, x: ArrayRef, batched: bool) -> ArrayRef:
    """With the bias, in the input's dtype and without the batch that it did not have."""
    if bias is not None:
        if not dims_equal(bias.shape[0], out.shape[1]):
            raise Unsupported("a convolution: the shape of the bias does not fit")
        out = pointwise(tx, "add", out, per_channel(tx, widened(tx, bias.var), out.ndim))
    out = convert(tx, out, x.dtype)
    return tensor(out if batched else emit(tx, "reshape", out, shape=out.shape[1:]))


def convolution(
    tx: TraceContext,
    rank: int,
    input: object,
    weight: object,
    bias: object = None,
    stride: object = 1,
    padding: object = 0,
    dilation: object = 1,
    groups: object = 1,
) -> ArrayRef:
    """Half precision is summed in float32 and rounded once."""
    x, w, b = _operands(rank, input, weight, bias)
    steps, gaps = _sizes(stride, rank, "stride", 1), _sizes(dilation, rank, "dilation", 1)
    pads = _pads(padding, rank, w, steps, gaps)
    batched = x.ndim == rank + 2
    image, kernels = _image(tx, x, rank), w.var
    if type(groups) is not int or groups < 1 or int(w.shape[0]) % groups:
        raise Unsupported("a convolution in groups that the kernels do not fill")
    if not dims_equal(image.shape[1], int(w.shape[1]) * groups):
        raise Unsupported("a convolution: the channels of input and weight do not fit")
    for axis in range(rank):
        reach = gaps[axis] * (int(w.shape[2 + axis]) - 1) + 1
        if image.shape[2 + axis] + 2 * pads[axis] < reach:
            raise Unsupported("a convolution with kernels that are larger than the input")
    last = _is_channels_last(rank, x.var, w.var)
    if rank == 3 and groups == 1 and _are_slices(image, kernels):
        return _finished(tx, _by_slices(tx, image, kernels, steps, pads, gaps), b, x, batched)
    if rank == 2 and groups == 1 and not last and _are_parts(image, kernels, steps, pads, gaps):
        return _finished(tx, _by_parts(tx, image, kernels, pads, gaps), b, x, batched)
    out = _convolved(tx, image, kernels, steps, pads, gaps, groups, last)
    return _finished(tx, out, b, x, batched)


def _convolved(
    tx: TraceContext,
    image: Var,
    kernels: Var,
    steps: Sizes,
    pads: Sizes,
    gaps: Sizes,
    groups: int = 1,
    last: bool = False,
) -> Var:
    found: Var = emit(
        tx,
        "convolution",
        widened(tx, image),
        widened(tx, kernels),
        stride=steps,
        padding=tuple((p, p) for p in pads),
        dilation=gaps,
        groups=groups,
        channels_last=last,
    )
    return found


def _are_slices(image: Var, kernels: Var) -> bool:
    """Whether a convolution over three dimensions is one over two, on a CPU."""
    if image.type.device != CPU or not all(type(d) is int for d in image.shape):
        return False
    return math.prod(image.shape) * int(kernels.shape[2]) <= _LARGEST_COPY


def _by_slices(tx: TraceContext, image: Var, kernels: Var, steps: Sizes, pads: Sizes, gaps: Sizes) -> Var:
    """Each slice of the result is an image over two dimensions, whose channels are those of the slices that
    it sees: these are copied side by side, each as often as it is seen."""
    batch, channels, deep, *sizes = (int(d) for d in image.shape)
    count, _, taps, *kernel = (int(d) for d in kernels.shape)
    if pads[0]:
        widths = ((0, 0), (0, 0), (pads[0], pads[0]), (0, 0), (0, 0))
        image = emit(tx, "pad", image, widths=widths, value=0.0)
        deep += 2 * pads[0]
    made, plane = (deep - gaps[0] * (taps - 1) - 1) // steps[0] + 1, math.prod(sizes)
    strides = (channels * deep * plane, steps[0] * plane, deep * plane, gaps[0] * plane, sizes[1], 1)
    shape = (batch, made, channels, taps, *sizes)
    seen = emit(tx, "as_strided", image, shape=shape, strides=strides, offset=0)
    if taps > 1 or batch > 1:
        seen = emit(tx, "contiguous", seen)
    images = emit(tx, "reshape", seen, shape=(batch * made, channels * taps, *sizes))
    flat = emit(tx, "reshape", kernels, shape=(count, channels * taps, *kernel))
    found = _convolved(tx, images, flat, steps[1:], pads[1:], gaps[1:])
    parts = emit(tx, "reshape", found, shape=(batch, made, count, *found.shape[2:]))
    return contiguous(tx, emit(tx, "transpose", parts, perm=(0, 2, 1, 3, 4)))


def _are_parts(image: Var, kernels: Var, steps: Sizes, pads: Sizes, gaps: Sizes) -> bool:
    """Whether a convolution whose kernels have gaps is better one of parts of the image, on a CPU: where
    kernels of three by three elements are (Winograd's method)."""
    if image.type.device != CPU or not all(type(d) is int for d in image.shape):
        return False
    if tuple(kernels.shape[2:]) != (3, 3) or steps != (1, 1) or min(gaps) < 2:
        return False
    if min(image.shape[1], kernels.shape[0]) < _LEAST_CHANNELS or image.dtype.itemsize < 4:
        return False
    return all(p % g == 0 and n >= _LEAST_PART * g for n, p, g in zip(image.shape[2:], pads, gaps))


def _by_parts(tx: TraceContext, image: Var, kernels: Var, pads: Sizes, gaps: Sizes) -> Var:
    """Rows and columns of the image that lie a gap apart are images of their own."""
    batch, channels, *sizes = (int(d) for d in image.shape)
    count, (down, right) = int(kernels.shape[0]), gaps
    more = [-n % g for n, g in zip(sizes, gaps)]
    if any(more):
        image = emit(tx, "pad", image, widths=((0, 0), (0, 0), (0, more[0]), (0, more[1])), value=0.0)
    high, wide = ((n + m) // g for n, m, g in zip(sizes, more, gaps))
    split = emit(tx, "reshape", contiguous(tx, image), shape=(batch, channels, high, down, wide, right))
    apart = emit(tx, "contiguous", emit(tx, "transpose", split, perm=(0, 3, 5, 1, 2, 4)))
    parts = emit(tx, "reshape", apart, shape=(batch * down * right, channels, high, wide))
    found = _convolved(tx, parts, kernels, (1, 1), tuple(p // g for p, g in zip(pads, gaps)), (1, 1))
    high, wide = (int(d) for d in found.shape[2:])
    made = emit(tx, "reshape", found, shape=(batch, down, right, count, high, wide))
    joined = emit(tx, "contiguous", emit(tx, "transpose", made, perm=(0, 3, 4, 1, 5, 2)))
    whole: Var = emit(tx, "reshape", joined, shape=(batch, count, high * down, wide * right))
    if not any(more):
        return whole
    sizes = [n + 2 * (p - g) for n, p, g in zip(sizes, pads, gaps)]
    cut = {"starts": (0,) * 4, "sizes": (batch, count, *sizes), "steps": (1,) * 4}
    return contiguous(tx, emit(tx, "strided_slice", whole, **cut))


TABLE.function("conv1d")(of_rank(convolution, 1))
TABLE.function("conv2d")(of_rank(convolution, 2))
TABLE.function("conv3d")(of_rank(convolution, 3))


def transposed(
    tx: TraceContext,
    rank: int,
    input: object,
    weight: object,
    bias: object = None,
    stride: object = 1,
    padding: object = 0,
    output_padding: object = 0,
    groups: object = 1,
    dilation: object = 1,
) -> ArrayRef:
    x, w, b = _operands(rank, input, weight, bias)
    steps, gaps = _sizes(stride, rank, "stride", 1), _sizes(dilation, rank, "dilation", 1)
    pads, extra = _sizes(padding, rank, "padding", 0), _sizes(output_padding, rank, "output_padding", 0)
    batched = x.ndim == rank + 2
    image, kernels = widened(tx, _image(tx, x, rank)), widened(tx, w.var)
    if type(groups) is not int or groups < 1 or int(w.shape[0]) % groups:
        raise Unsupported("a transposed convolution in groups that the kernels do not fill")
    if not dims_equal(image.shape[1], w.shape[0]):
        raise Unsupported("a transposed convolution: the channels of input and weight do not fit")
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, gaps)):
        raise Unsupported("a transposed convolution with more output padding than stride or dilation")
    for axis in range(rank):
        reach = gaps[axis] * (int(w.shape[2 + axis]) - 1) + extra[axis] + 1
        if (image.shape[2 + axis] - 1) * steps[axis] - 2 * pads[axis] + reach < 1:
            raise Unsupported("a transposed convolution without a result")
    last = _is_channels_last(rank, x.var, w.var)
    if groups == 1 and not any((*pads, *extra)) and _are_apart(image, kernels, steps, last):
        blocks = _blocks_last(tx, image, kernels) if last else _blocks(tx, image, kernels)
        return _finished(tx, blocks, b, x, batched)
    out = emit(
        tx,
        "convolution_transpose",
        image,
        kernels,
        stride=steps,
        padding=pads,
        output_padding=extra,
        dilation=gaps,
        groups=groups,
        channels_last=last,
    )
    return _finished(tx, out, b, x, batched)


def _are_apart(image: Var, kernels: Var, steps: Sizes, last: bool) -> bool:
    """Whether each place of the image makes a block of the result of its own, on a CPU."""
    rank = len(steps)
    if image.type.device != CPU or (last and rank != 2) or math.prod(steps) == 1:
        return False
    known = all(type(d) is int for d in (*image.shape, *kernels.shape))
    return known and steps == tuple(kernels.shape[2:])


def _product(tx: TraceContext, image: Var, kernels: Var, last: bool) -> Var:
    """The convolution with kernels of one element."""
    rank = kernels.ndim - 2
    ones, zeros = (1,) * rank, ((0, 0),) * rank
    params = {"stride": ones, "padding": zeros, "dilation": ones, "groups": 1, "channels_last": last}
    found: Var = emit(tx, "convolution", image, kernels, **params)
    return found


def _blocks(tx: TraceContext, image: Var, kernels: Var) -> Var:
    """A product with the kernels' elements as kernels, whose results are moved to their places."""
    batch, channels, *sizes = (int(d) for d in image.shape)
    _, count, *steps = (int(d) for d in kernels.shape)
    rank, places, elements = len(steps), math.prod(sizes), math.prod(steps)
    line = emit(tx, "reshape", contiguous(tx, image), shape=(batch, channels, places))
    columns = emit(tx, "reshape", contiguous(tx, kernels), shape=(channels, count * elements, 1))
    made = _product(tx, line, emit(tx, "transpose", columns, perm=(1, 0, 2)), False)
    parts = emit(tx, "reshape", made, shape=(batch, count, *steps, *sizes))
    order = (axis for k in range(rank) for axis in (2 + rank + k, 2 + k))
    moved = contiguous(tx, emit(tx, "transpose", parts, perm=(0, 1, *order)))
    whole = tuple(n * step for n, step in zip(sizes, steps))
    found: Var = emit(tx, "reshape", moved, shape=(batch, count, *whole))
    return found


def _blocks_last(tx: TraceContext, image: Var, kernels: Var) -> Var:
    """The same with channels innermost, over two dimensions."""
    batch, channels, high, wide = (int(d) for d in image.shape)
    _, count, down, right = (int(d) for d in kernels.shape)
    turned = contiguous(tx, emit(tx, "transpose", kernels, perm=(2, 3, 1, 0)))
    rows = emit(tx, "reshape", turned, shape=(down * right * count, channels, 1, 1))
    made = channels_inside(tx, _product(tx, image, rows, True))
    parts = emit(tx, "reshape", made, shape=(batch, high, wide, down, right, count))
    moved = contiguous(tx, emit(tx, "transpose", parts, perm=(0, 1, 3, 2, 4, 5)))
    whole = emit(tx, "reshape", moved, shape=(batch, high * down, wide * right, count))
    return channels_outside(tx, whole)


TABLE.function("conv_transpose1d")(of_rank(transposed, 1))
TABLE.function("conv_transpose2d")(of_rank(transposed, 2))
TABLE.function("conv_transpose3d")(of_rank(transposed, 3))
