"""Convolutions over one or two dimensions by a Triton template, finished by the kernel that reads them.

The template is that of products (implicit GEMM): what windows of the kernel see of the images is read where
it lies, as one operand, the kernels are the other. Results in C order are products of kernels and places of
one image; with channels last, of places of all images and kernels. A tile lies within one group. Where groups
have few kernels of few terms (depthwise convolutions), the sums are written out, without matrix units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...dataclass import dataclass
from ...dtypes import float32
from ...symbolic.integers import product, same
from ..fusion.fuse import LibraryCall
from ..lowering.contract import Operand, Product
from ..lowering.values import Value, place_of
from ..render.triton.layout import power_of_two
from ..render.triton.tile import is_known
from ..render.triton.unit import TritonKernel
from ..schedule import CallBlas
from .products import (
    FLOAT_TILES,
    HALVES,
    NARROW,
    TEMPLATE_DTYPES,
    ProductWriter,
    Tile,
    count_tiles,
    suitable,
)

MOST_DIMENSIONS = 2
HALF_TILES = (
    Tile(128, 128, 64, 8, 3),
    Tile(128, 128, 32, 4, 4),
    Tile(64, 128, 64, 4, 3),
    Tile(128, 64, 64, 4, 3),
    Tile(64, 64, 64, 4, 4),
    Tile(32, 128, 64, 4, 4),
)
# Besides, of groups with few kernels: a tile lies within one.
GROUP_TILES = (Tile(16, 128, 16, 4, 3), Tile(16, 64, 16, 4, 3))
# Of convolutions whose groups have few kernels of few terms.
FEW_KERNELS = 8
FEW_TERMS = 128
# As many terms are written out one after another.
UNROLLED = 32
FEW_COLUMNS = (512, 256, 128, 64)
Pair = tuple[int, int]


@dataclass(frozen=True)
class Convolved:
    """A convolution as ``product``, of all kernels (``m``, or ``n`` with channels last) and places.
    ``channels``: of a group; ``sizes``: of the image; ``places``: of the result; ``image`` and ``weights``:
    strides of four dimensions; a line is an image of one row."""

    product: CallBlas
    channels_last: bool
    groups: int
    channels: int
    sizes: Pair
    places: Pair
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    image: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    extent: int

    @property
    def kernels(self) -> int:
        """Of a group."""
        return int(self.product.m) // self.groups


# -- what can be joined -----------------------------------------------------------------------
def is_convolution(call: LibraryCall) -> bool:
    """Whether a library call is a convolution of sizes known now whose result is dense."""
    value = call.value
    if value.row is None or value.row.name != "convolution" or value.dtype not in TEMPLATE_DTYPES:
        return False
    x, w = value.inputs
    known = (*x.shape, *w.shape, *value.shape, *place_of(x).strides, *place_of(w).strides)
    if len(x.shape) - 2 > MOST_DIMENSIONS or not all(isinstance(d, int) for d in known):
        return False
    if any(low < 0 for low, _ in value.params["padding"]) or not all(value.shape):
        return False
    return _layout(value) is not None


def _layout(value: Value) -> bool | None:
    """Whether channels are last; ``None`` if the result is neither so nor in C order, or if groups do not go
    together with channels last."""
    strides = place_of(value).strides
    images, channels, *sizes = value.shape
    dense = _dense((images, channels, *sizes))
    if _agree(strides, dense, value.shape):
        return False
    last = _dense((images, *sizes, channels))
    if _agree(strides, (last[0], last[-1], *last[1:-1]), value.shape) and value.params.get("groups", 1) == 1:
        return True
    return None


def _dense(shape: Sequence[object]) -> tuple[int, ...]:
    found: list[int] = []
    step = 1
    for size in reversed(shape):
        found.append(step)
        step *= int(str(size))
    return tuple(reversed(found))


def _agree(strides: Sequence[object], wanted: Sequence[int], shape: Sequence[object]) -> bool:
    return all(size == 1 or a == b for a, b, size in zip(strides, wanted, shape))


def detail_of(call: LibraryCall) -> Product:
    """The product that a convolution is, as far as its result goes."""
    value = call.value
    images, kernels, *sizes = value.shape
    places = product(sizes)
    depth = product(value.inputs[1].shape[1:])
    a, b = (Operand(v, place_of(v), 0, 0, ()) for v in value.inputs)
    place = place_of(value)
    if _layout(value):
        m, n = images * places, kernels
        return Product(m, n, depth, a, b, Operand(value, place, n, 1, ()), (), False)
    c = Operand(value, place, places, 1, (kernels * places,))
    return Product(kernels, places, depth, a, b, c, (images,), False)


def convolved(call: LibraryCall, step: CallBlas) -> Convolved:
    """What the template takes; ``step`` is the product of ``detail_of``."""
    value = call.value
    x, w = value.inputs
    channels_last = bool(_layout(value))
    if channels_last:
        # the images are the left operand
        step = replace(step, batch=())
    else:
        step = replace(step, a=step.b, b=step.a)
    low = tuple(pair[0] for pair in value.params["padding"])
    image = _four(place_of(x).strides)
    return Convolved(
        step,
        channels_last,
        int(value.params.get("groups", 1)),
        int(str(w.shape[1])),
        _pair(x.shape[2:], 1),
        _pair(value.shape[2:], 1),
        _pair(w.shape[2:], 1),
        _pair(value.params["stride"], 1),
        _pair(low, 0),
        _pair(value.params["dilation"], 1),
        image,
        _four(place_of(w).strides),
        sum((int(str(d)) - 1) * abs(int(str(s))) for d, s in zip(x.shape, place_of(x).strides)) + 1,
    )


def _pair(given: Sequence[object], missing: int) -> Pair:
    sizes = [int(str(d)) for d in given]
    return (missing, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def _four(strides: Sequence[object]) -> tuple[int, int, int, int]:
    outer, channel, *rest = (int(str(s)) for s in strides)
    return (outer, channel, *_pair(rest, 0))


# -- which ------------------------------------------------------------------------------------
def has_template(step: Convolved) -> bool:
    tiled = step.product.epilogue
    return tiled is not None and is_known(tiled.kernel) and not same(step.product.k, 0)


def candidates(step: Convolved) -> list[TritonKernel]:
    """The template with the tiles that suit."""
    found = [render_few(step, tile) for tile in _few_tiles(step)] if has_few_terms(step) else []
    tiles = HALF_TILES if step.product.dtype in HALVES else FLOAT_TILES
    if step.groups > 1:
        tiles = tuple(t for t in (*tiles, *GROUP_TILES) if step.kernels % t.rows == 0)
    return found + [render_convolution(step, t) for t in (suitable(step.product, tiles) if tiles else ())]


def has_few_terms(step: Convolved) -> bool:
    """Whether its groups are so small that matrix units would mostly multiply zeros."""
    return step.groups > 1 and step.kernels <= FEW_KERNELS and int(step.product.k) <= FEW_TERMS


def _few_tiles(step: Convolved) -> list[Tile]:
    """Kernels of a group, and some of an image's places: so many that hardly any are in vain."""
    rows = math.gcd(step.kernels, FEW_KERNELS)
    places = power_of_two(int(step.product.n))
    columns = [n for n in FEW_COLUMNS if n * rows <= FEW_COLUMNS[0] and n <= max(places, FEW_COLUMNS[-1])]
    return [Tile(rows, n, 1, max(n * rows // 128, 1), 2) for n in columns[:3]]


# -- the text ---------------------------------------------------------------------------------
def render_convolution(step: Convolved, tile: Tile) -> TritonKernel:
    """The template. Pointers are those of the product's."""
    writer = _Writer(step, tile)
    body = writer.text()
    m, n, k = step.product.m, step.product.n, step.product.k
    title = f"convolution_{m}x{n}x{k}_{tile.text}"
    return writer.kernel(title, body, count_tiles(step.product, tile))


def render_few(step: Convolved, tile: Tile) -> TritonKernel:
    """The template that adds up term by term."""
    writer = _FewWriter(step, tile)
    body = writer.text()
    title = f"convolution_few_{step.product.m}x{step.product.n}x{step.product.k}_{tile.text}"
    return writer.kernel(title, body, count_tiles(step.product, tile))


class _Writer(ProductWriter):
    def __init__(self, step: Convolved, tile: Tile) -> None:
        super().__init__(step.product, tile, "plain", 1)
        self.convolved = step
        self.wide = self.wide or step.extent >= NARROW

    def product(self) -> None:
        """Sums over the channels for each place of the kernel; where a step holds several of these, channels
        and places are worked out for each element."""
        step = self.convolved
        self.line("total = tl.zeros((ROWS, COLUMNS), tl.float32)")
        self.line("i_k = tl.arange(0, DEPTH)")
        self.numbers_of_places()
        by_taps = step.channels >= self.tile.depth
        if by_taps:
            blocks = -(-step.channels // self.tile.depth)
            taps = step.kernel[0] * step.kernel[1]
            self.line(f"for turn in range(0, {taps * blocks}):")
            self.line(f"    tap = turn // {blocks}")
            self.line(f"    channel = (turn % {blocks}) * DEPTH + i_k")
            self.line(f"    k_mask = channel < {step.channels}")
        else:
            self.line(f"for start in range(0, {self.k}, DEPTH):")
            self.line(f"    tap = (start + i_k) // {step.channels}")
            self.line(f"    channel = (start + i_k) % {step.channels}")
            self.line(f"    k_mask = (start + i_k) < {self.k}")
        self.line(f"    tap_y = tap // {step.kernel[1]}")
        self.line(f"    tap_x = tap % {step.kernel[1]}")
        self.operands(by_taps)
        precision = ', input_precision="ieee"' if step.product.dtype is float32 else ""
        self.line(f"    total = tl.dot(left, right, total{precision})")

    def numbers_of_places(self) -> None:
        """Where the windows of the tile's places begin, and which image they are of."""
        step = self.convolved
        high, wide = step.places
        if step.channels_last:
            self.line("place_in = (row + i_r)")
            self.line(f"image = place_in // {high * wide}")
            self.line(f"place_in = place_in % {high * wide}")
            self.line("first_channel = 0")
        else:
            self.line("place_in = (col + i_c)")
            self.line("image = number")
            self.line(f"first_channel = (row // {step.kernels}) * {step.channels}")
        self.line(f"window_y = (place_in // {wide}) * {step.stride[0]} - {step.padding[0]}")
        self.line(f"window_x = (place_in % {wide}) * {step.stride[1]} - {step.padding[1]}")

    def operands(self, by_taps: bool) -> None:
        step = self.convolved
        along = "[None, :]" if step.channels_last else "[:, None]"
        tap_y, tap_x = ("tap_y", "tap_x") if by_taps else (f"tap_y{along}", f"tap_x{along}")
        self.line(f"    y = window_y + {tap_y} * {step.dilation[0]}")
        self.line(f"    x = window_x + {tap_x} * {step.dilation[1]}")
        inside = f"(y >= 0) & (y < {step.sizes[0]}) & (x >= 0) & (x < {step.sizes[1]}) & k_mask{along}"
        i_n, i_c, i_y, i_x = step.image
        at = f"image * {i_n} + (first_channel + channel{along}) * {i_c} + y * {i_y} + x * {i_x}"
        image_side, kernel_side = ("left", "right") if step.channels_last else ("right", "left")
        group, masked = (self.rows, "r_mask") if step.channels_last else (self.columns, "c_mask")
        condition = f"{inside} & {masked}" if group.is_masked else inside
        self.line(f"    {image_side} = tl.load(p_{image_side} + ({at}), mask={condition}, other=0)")
        self.kernels(kernel_side, by_taps)

    def kernels(self, side: str, by_taps: bool) -> None:
        step = self.convolved
        w_o, w_c, w_y, w_x = step.weights
        along = "[:, None]" if step.channels_last else "[None, :]"
        taps = f"tap_y * {w_y} + tap_x * {w_x}"
        if step.channels_last:
            kernel, group, masked = "(col + i_c)", self.columns, "c_mask"
        else:
            kernel, group, masked = "(row + i_r)", self.rows, "r_mask"
        taps = f"({taps})" if by_taps else f"({taps}){along}"
        at = f"{kernel} * {w_o} + channel{along} * {w_c} + {taps}"
        condition = f"k_mask{along}" + (f" & {masked}" if group.is_masked else "")
        self.line(f"    {side} = tl.load(p_{side} + ({at}), mask={condition}, other=0)")


class _FewWriter(_Writer):
    """The sums of a group's kernels, a term at a time for a block of places."""

    def product(self) -> None:
        step = self.convolved
        self.line("total = tl.zeros((ROWS, COLUMNS), tl.float32)")
        self.numbers_of_places()
        terms = "tl.static_range" if self.k <= UNROLLED else "range"
        self.line(f"for term in {terms}(0, {self.k}):")
        self.line(f"    tap = term // {step.channels}")
        self.line(f"    channel = term % {step.channels}")
        self.line(f"    tap_y = tap // {step.kernel[1]}")
        self.line(f"    tap_x = tap % {step.kernel[1]}")
        self.line(f"    y = window_y + tap_y * {step.dilation[0]}")
        self.line(f"    x = window_x + tap_x * {step.dilation[1]}")
        self.line(f"    seen = (y >= 0) & (y < {step.sizes[0]}) & (x >= 0) & (x < {step.sizes[1]})")
        seen = "seen & c_mask" if self.columns.is_masked else "seen"
        i_n, i_c, i_y, i_x = step.image
        at = f"image * {i_n} + (first_channel + channel) * {i_c} + y * {i_y} + x * {i_x}"
        self.line(f"    right = tl.load(p_right + ({at}), mask={seen}, other=0).to(tl.float32)")
        w_o, w_c, w_y, w_x = step.weights
        at = f"(row + i_r) * {w_o} + channel * {w_c} + tap_y * {w_y} + tap_x * {w_x}"
        mask = ", mask=r_mask, other=0" if self.rows.is_masked else ""
        self.line(f"    left = tl.load(p_left + ({at}){mask}).to(tl.float32)")
        self.line("    total += left * right")
