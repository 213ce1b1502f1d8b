"""Which templates a step has, with what is known of them before any is measured."""

from __future__ import annotations

from ...dataclass import dataclass
from ...errors import LoweringError
from ...symbolic.integers import Dim, hint
from ..render.triton.unit import TritonKernel
from ..schedule import Alternatives, CallBlas, CallChain, CallRows, Matrix, TileKernel
from . import attention, convolution, products, rows
from .choose import PLAIN
from .convolution import Convolved
from .products import Processor

# Fewer multiplications than this are over before a choice would matter.
SMALL = 1 << 24
# A product of halves up to this long in its contracted dimension is bound by memory, and what its epilogue
# saves (the product written and read again) is more than a library's better product gains: unmeasured, the
# template.
FUSED_DEPTH = 1024
# Attention of float32 keeps its scores in memory up to this many bytes: matrix units do not multiply float32,
# and a library's product is then the better one.
LARGE_SCORES = 1 << 28


@dataclass(frozen=True)
class Templates:
    """``kernels``: the candidates; ``plain``: what the steps one by one are, as text; ``usual``: the
    candidate that is taken unmeasured, or ``PLAIN``; ``space``: bytes that the kernels share; ``symbols``:
    sizes that they take, ``extents``: what has to be below ``NARROW`` at a call; see ``choose.Choice`` for
    the others."""

    kernels: tuple[TritonKernel, ...]
    plain: str
    usual: int
    repeatable: bool
    needs_alignment: tuple[bool, ...]
    space: Dim = 0
    symbols: tuple[str, ...] = ()
    extents: tuple[Dim, ...] = ()


def templates_of(step: Alternatives, processor: Processor, tune: bool) -> Templates | None:
    """The templates of a step; ``None`` where the steps one by one are always taken."""
    try:
        kernels, usual = _candidates(step, processor, tune)
    except LoweringError:
        return None
    if not kernels:
        return None
    if not tune or not is_repeatable(step):
        if usual == PLAIN:
            return None
        kernels, usual = [kernels[usual]], 0
    needs = tuple("make_tensor_descriptor" in kernel.body for kernel in kernels)
    plain = " ".join(type(inner).__name__ for inner in step.plain)
    space = rows.workspace(step.fused) if isinstance(step.fused, CallRows) else 0
    extents = tuple({str(d): d for d in _extents(step.fused)}.values())
    work = (tuple(kernels), plain, usual, is_repeatable(step), needs)
    return Templates(*work, space, kernels[0].symbols, extents)


def _extents(fused: object) -> list[Dim]:
    """What has to be below ``NARROW`` at a call."""
    if isinstance(fused, CallChain):
        return attention.extents(fused)
    if isinstance(fused, CallRows):
        return rows.extents(fused)
    return products.extents(_product_of(fused))


def _candidates(step: Alternatives, processor: Processor, tune: bool) -> tuple[list[TritonKernel], int]:
    fused = step.fused
    if isinstance(fused, CallChain):
        if not attention.has_template(fused):
            return [], PLAIN
        usual = PLAIN if _is_small_float(fused) else 0
        return attention.candidates(fused, processor), usual
    if isinstance(fused, CallRows):
        is_float = products.source_of(_product_of(fused)) not in products.HALVES
        # of wide operands of float32 blocks are so small that only measurements speak for them
        usual = PLAIN if _is_small_float(fused) or (is_float and rows.is_wide_step(fused)) else 0
        return rows.candidates(fused), usual
    if isinstance(fused, Convolved):
        if not tune or not convolution.has_template(fused):
            return [], PLAIN
        return convolution.candidates(fused), PLAIN
    assert isinstance(fused, CallBlas)
    if not products.has_template(fused) or (not tune and _is_plain(fused)):
        return [], PLAIN
    if tune and work_of(fused) < SMALL and fused.epilogue is None:
        return [], PLAIN
    usual = PLAIN if _is_plain(fused) else products.preferred(fused, processor)
    return products.candidates(fused, processor), usual


def _is_plain(step: CallBlas) -> bool:
    """Whether the library multiplies unless measurements say otherwise."""
    source = step.source or step.dtype
    return step.epilogue is None or source not in products.HALVES or hint(step.k) > FUSED_DEPTH


def _is_small_float(step: CallChain | CallRows) -> bool:
    """Whether a library multiplies float32 and the scores are no burden on memory."""
    first = step.first if isinstance(step, CallChain) else _product_of(step)
    if (first.source or first.dtype) in products.HALVES:
        return False
    scores = hint(first.m) * hint(first.n) * first.dtype.itemsize
    for extent in first.batch:
        scores *= hint(extent)
    return scores < LARGE_SCORES


def work_of(step: CallBlas) -> int:
    """Multiplications."""
    work = hint(step.m) * hint(step.n) * hint(step.k)
    for extent in step.batch:
        work *= hint(extent)
    return work


def is_repeatable(step: Alternatives) -> bool:
    """Whether nothing that the step writes is read by it."""
    if isinstance(step.fused, CallRows):
        return True  # of what a group writes nothing is read by it
    fused = _product_of(step.fused)
    tiled: TileKernel | None = fused.epilogue
    return tiled is None or all(b.mode != "inout" for b in tiled.kernel.buffers)


def _product_of(fused: object) -> CallBlas:
    if isinstance(fused, CallChain):
        return fused.first
    if isinstance(fused, CallRows):
        return next(s.product for s in fused.steps if s.product is not None)
    if isinstance(fused, Convolved):
        return fused.product
    assert isinstance(fused, CallBlas)
    return fused


def pointers(step: Alternatives) -> list[tuple[int, str]]:
    """What the templates of a step take: slots, and offsets in bytes as text."""
    fused = step.fused
    if isinstance(fused, CallChain):
        first, second = fused.first, fused.second
        assert second.c is not None
        size = (first.source or first.dtype).itemsize
        found = [_at(first.a, size), _at(first.b, size)]
        found.append(_at(second.b, (second.source or second.dtype).itemsize))
        return [*found, _at(second.c, second.dtype.itemsize), *_of_tile(first.epilogue)]
    if isinstance(fused, CallRows):
        return _of_rows(fused)
    fused = _product_of(fused)
    size = (fused.source or fused.dtype).itemsize
    found = [_at(fused.a, size), _at(fused.b, size)]
    if fused.c is not None:
        found.append(_at(fused.c, fused.dtype.itemsize))
    return [*found, *_of_tile(fused.epilogue)]


def _of_rows(step: CallRows) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for inner in step.steps:
        product = inner.product
        if product is None:
            assert inner.kernel is not None
            held = {k for k, _ in inner.kernel.held}
            found += [(slot, "0") for k, slot in enumerate(inner.kernel.slots) if k not in held]
            continue
        size = products.source_of(product).itemsize
        if inner.kind == "scores":
            found.append(_at(product.a, size))
        found.append(_at(product.b, size))
        if product.c is not None:
            found.append(_at(product.c, product.dtype.itemsize))
    return found


def _at(matrix: Matrix, size: int) -> tuple[int, str]:
    offset: Dim = matrix.offset * size
    return matrix.slot, str(offset) if isinstance(offset, int) else f"({offset})"


def _of_tile(tiled: TileKernel | None) -> list[tuple[int, str]]:
    if tiled is None:
        return []
    held = (tiled.source, tiled.sink)
    return [(slot, "0") for k, slot in enumerate(tiled.slots) if k not in held]
