"""Matrix products in half precision by a Triton template, and the choice between it and the library.

Under ``mode="max-autotune"`` each product of known sizes is timed on the GPU at its first call, the library's
routine and the template with several tiles, and the fastest is kept for all equal products of the process.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...dtypes import bfloat16, float16
from ...frontends.base import DeviceLibrary
from ..render.triton import TritonKernel
from ..render.triton_print import pointer_type
from ..schedule import CallBlas, Matrix
from .launch import Driver, Variants, load_module

TEMPLATE_DTYPES = (float16, bfloat16)
GROUP = 8
# Fewer multiplications than this are over before a choice would matter.
SMALL = 1 << 24
REPEATS = 7
BUDGET_MS = 400.0


@dataclass(frozen=True)
class Tile:
    """What one program computes, in steps of ``depth`` along the contracted dimension."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


TILES = (
    Tile(128, 256, 64, 8, 3),
    Tile(256, 128, 64, 8, 3),
    Tile(128, 128, 64, 4, 3),
    Tile(128, 64, 64, 4, 4),
    Tile(64, 128, 64, 4, 4),
    Tile(64, 64, 64, 4, 4),
)

_TEMPLATE = """\
@triton.jit
def {name}(p_a, p_b, p_c, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    pid = tl.program_id(0)
    product = pid // {tiles}
    tile = pid % {tiles}
    # neighbours in a group of rows share the columns of b in the cache
    group = tile // ({group} * {tiles_n})
    first = group * {group}
    height = tl.minimum({tiles_m} - first, {group})
    i_tile = first + (tile % ({group} * {tiles_n})) % height
    j_tile = (tile % ({group} * {tiles_n})) // height
    i = (i_tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = (j_tile * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    k = tl.arange(0, DEPTH).to(tl.int64)
    {batch}
    a = p_a + a_start + i[:, None] * {a_row} + k[None, :] * {a_column}
    b = p_b + b_start + k[:, None] * {b_row} + j[None, :] * {b_column}
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, {k}, DEPTH):
        a_mask = (i[:, None] < {m}) & (k[None, :] + start < {k})
        b_mask = (k[:, None] + start < {k}) & (j[None, :] < {n})
        a_tile = tl.load(a, mask=a_mask, other=0)
        b_tile = tl.load(b, mask=b_mask, other=0)
        total = tl.dot(a_tile, b_tile, total)
        a += DEPTH * {a_column}
        b += DEPTH * {b_row}
    c = p_c + c_start + i[:, None] * {c_row} + j[None, :] * {c_column}
    c_mask = (i[:, None] < {m}) & (j[None, :] < {n})
    tl.store(c, total.to(tl.{dtype}), mask=c_mask)
"""


def has_template(step: CallBlas) -> bool:
    """Whether the template computes a product: half precision, sizes known now."""
    if step.dtype not in TEMPLATE_DTYPES or step.c is None:
        return False
    dims = [step.m, step.n, step.k, *step.batch]
    for matrix in (step.a, step.b, step.c):
        dims += [matrix.row_stride, matrix.col_stride, *matrix.batch_strides]
    return all(isinstance(d, int) for d in dims) and min(step.m, step.n, step.k) >= 16


def _starts(step: CallBlas) -> str:
    """Where the matrices of product number ``product`` begin."""
    assert step.c is not None
    lines = ["rest = product.to(tl.int64)"]
    terms: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for axis in reversed(range(len(step.batch))):
        lines.append(f"i_{axis} = rest % {step.batch[axis]}")
        lines.append(f"rest = rest // {step.batch[axis]}")
        for name, matrix in (("a", step.a), ("b", step.b), ("c", step.c)):
            terms[name].append(f"i_{axis} * {matrix.batch_strides[axis]}")
    for name, parts in terms.items():
        lines.append(f"{name}_start = {' + '.join(parts) or '0'}")
    return "\n    ".join(lines)


def render_product(step: CallBlas, tile: Tile) -> TritonKernel:
    """The template for one product and tile; pointers are to the matrices' first elements."""
    assert step.c is not None
    m, n, k = int(step.m), int(step.n), int(step.k)
    tiles_m, tiles_n = -(-m // tile.rows), -(-n // tile.columns)
    name = f"product_{m}x{n}x{k}_{tile.rows}x{tile.columns}x{tile.depth}"
    body = _TEMPLATE.format(
        name=name,
        tiles=tiles_m * tiles_n,
        tiles_m=tiles_m,
        tiles_n=tiles_n,
        group=GROUP,
        batch=_starts(step),
        dtype=step.dtype.name,
        m=m,
        n=n,
        k=k,
        **_strides("a", step.a),
        **_strides("b", step.b),
        **_strides("c", step.c),
    )
    signature = dict.fromkeys(("p_a", "p_b", "p_c"), pointer_type(step.dtype))
    signature |= dict.fromkeys(("ROWS", "COLUMNS", "DEPTH"), "constexpr")
    programs = tiles_m * tiles_n
    for extent in step.batch:
        programs *= int(extent)
    return TritonKernel(
        name,
        body,
        signature,
        (0, 1, 2),
        (),
        programs,
        {"ROWS": tile.rows, "COLUMNS": tile.columns, "DEPTH": tile.depth},
        tile.warps,
        num_stages=tile.stages,
        fuses_multiply_add=True,
    )


def _strides(name: str, matrix: Matrix) -> dict[str, Any]:
    return {f"{name}_row": matrix.row_stride, f"{name}_column": matrix.col_stride}


Product = Callable[[Any, Any, Any], None]


@dataclass
class Chosen:
    """The fastest way found for each kind of product. Two threads that look at once both find it."""

    by_key: dict[Any, Product] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class TunedProduct:
    """``call(a, b, c)``: a product that is timed at its first call."""

    def __init__(
        self, step: CallBlas, library: DeviceLibrary, driver: Driver, device: int, chosen: Chosen
    ) -> None:
        self.step = step
        self.library = library
        self.driver = driver
        self.device = device
        self.chosen = chosen
        self.best: Product | None = None
        m, n, k = int(step.m), int(step.n), int(step.k)
        self.key = (device, step.dtype, m, n, k, step.batch, *map(_layout, (step.a, step.b, step.c)))

    def __call__(self, a: Any, b: Any, c: Any) -> None:
        best = self.best
        if best is None:
            best = self.best = self._find(a, b, c)
        best(a, b, c)

    def _find(self, a: Any, b: Any, c: Any) -> Product:
        known = self.chosen.by_key.get(self.key)
        if known is not None:
            return known
        timed = [(self._time(run, a, b, c), place, run) for place, run in enumerate(self.candidates())]
        best = min(timed)[2]
        with self.chosen.lock:
            return self.chosen.by_key.setdefault(self.key, best)

    def candidates(self) -> Sequence[Product]:
        """The library's routine first."""
        return [self.library.matmul, *(self._template(tile) for tile in TILES)]

    def _template(self, tile: Tile) -> Product:
        kernel = render_product(self.step, tile)
        module = load_module(kernel.name, kernel.source)
        variants = Variants(module, kernel, self.driver, self.device)
        pointer, stream = self.library.pointer, self.library.stream
        programs = kernel.grid()

        def run(a: Any, b: Any, c: Any) -> None:
            places = pointer(a), pointer(b), pointer(c)
            launch = variants.get(not (places[0] | places[1] | places[2]) & 15)
            launch(programs, stream(self.device), *places)

        return run

    def _time(self, run: Product, a: Any, b: Any, c: Any) -> float:
        """Median milliseconds; infinite for what cannot run here (too much shared memory)."""
        try:
            run(a, b, c)
            times = [self.library.milliseconds(lambda: run(a, b, c))]
            while len(times) < REPEATS and sum(times) < BUDGET_MS:
                times.append(self.library.milliseconds(lambda: run(a, b, c)))
        except Exception:
            return float("inf")
        return statistics.median(times)


def _layout(matrix: Matrix | None) -> tuple[Any, ...]:
    assert matrix is not None
    return (matrix.row_stride, matrix.col_stride, matrix.batch_strides)


def is_worth_tuning(step: CallBlas) -> bool:
    """Whether a product is large enough for a choice to matter, and has one."""
    if not has_template(step):
        return False
    work = int(step.m) * int(step.n) * int(step.k)
    for extent in step.batch:
        work *= int(extent)
    return work >= SMALL
