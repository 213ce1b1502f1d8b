"""Matrix products by the runtime (``Runtime.gemm_f32``, ``gemm_f64``) and the functions that finish tiles."""

from __future__ import annotations

from collections.abc import Mapping

from ...symint import Dim
from ..epilogue import TILE_NUMBERS
from ..schedule import MEMORY_ERROR, CallBlas, Matrix, TileKernel
from . import ctext
from .cpp_kernel import kernel_body

Symbols = Mapping[str, str]
_ENTRY = {"float32": "gemm_f32", "float64": "gemm_f64"}


def own_product(step: CallBlas, symbols: Symbols, tile: str) -> list[str]:
    """The statements that run a product; ``tile``: the function that finishes its tiles, or ""."""

    def dim(value: Dim) -> str:
        return ctext.dimension(value, symbols)

    lines = [
        "  {",
        "    Gemm gemm = {};",
        f"    gemm.m = {dim(step.m)}, gemm.n = {dim(step.n)}, gemm.k = {dim(step.k)};",
    ]
    for name, matrix in (("a", step.a), ("b", step.b)):
        lines.append(f"    gemm.{name} = {_pointer(matrix, step, symbols)};")
        lines.append(
            f"    gemm.{name}_row = {dim(matrix.row_stride)}, gemm.{name}_col = {dim(matrix.col_stride)};"
        )
    if step.c is not None:
        lines.append(f"    gemm.c = {_pointer(step.c, step, symbols)};")
        lines.append(f"    gemm.c_row = {dim(step.c.row_stride)};")
    lines.append(f"    gemm.axes = {len(step.batch)};")
    for axis, size in enumerate(step.batch):
        lines.append(f"    gemm.batch[{axis}] = {dim(size)};")
        for name, operand in (("a", step.a), ("b", step.b), ("c", step.c)):
            if operand is not None:
                lines.append(f"    gemm.{name}_batch[{axis}] = {dim(operand.batch_strides[axis])};")
    if step.epilogue is not None:
        slots = [f"buffers[{slot}]" for slot in step.epilogue.slots]
        slots[step.epilogue.source] = "0"
        lines.append(f"    const TileContext context = {{{{{', '.join(slots)}}}, s, rt}};")
        lines.append(f"    gemm.done = {tile}, gemm.context = (void*)&context;")
    return [*lines, f"    if (rt->{_ENTRY[step.dtype.name]}(&gemm)) return {MEMORY_ERROR};", "  }"]


def _pointer(matrix: Matrix, step: CallBlas, symbols: Symbols) -> str:
    offset = ctext.dimension(matrix.offset, symbols)
    return f"({ctext.memory_type(step.dtype)}*)buffers[{matrix.slot}] + {offset}"


def tile_function(name: str, step: TileKernel, symbols: Symbols, vector_calls: bool = False) -> str:
    """The C++ function that runs a kernel on one tile of a product."""
    numbers = {number: number for number in TILE_NUMBERS}
    body = kernel_body(step.kernel, {**symbols, **numbers}, 0.0, 0.0, False, vector_calls)
    assert body[-1].strip() == "return 0;"
    count = len(step.slots)
    lines = [f"// {step.kernel.name}, on a tile of a matrix product"]
    lines += ctext.origins(step.kernel.origin)
    lines += [
        f"static void {name}(void* raw, const void* tile, i64 tile_row, i64 number, i64 row, i64 rows,",
        f"{' ' * len(f'static void {name}(')}i64 col, i64 cols) {{",
        "  const TileContext* const context = (const TileContext*)raw;",
        "  const i64* const s = context->s;",
        "  const Runtime* const rt = context->rt;",
        "  (void)s, (void)rt, (void)number, (void)row, (void)col, (void)tile_row;",
        f"  void* b[{count}];",
        f"  for (int k = 0; k < {count}; ++k) b[k] = context->buffers[k];",
        f"  b[{step.source}] = (void*)tile;",
        *body[:-1],
        "}",
    ]
    return "\n".join(lines) + "\n"
