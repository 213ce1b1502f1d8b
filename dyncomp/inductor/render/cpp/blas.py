"""Matrix products in C++: blocks of each product, one BLAS call per block, spread over the thread pool.

The blocks depend on sizes only, so the bits do not depend on the number of threads; the BLAS's own threads
stay out of it (two pools on the same cores ruin each other).
"""

from __future__ import annotations

from collections.abc import Mapping

from ....dtypes import DType
from ....symbolic.integers import Dim
from ...launch import BLAS_INDEX
from ...schedule import CallBlas, Matrix
from . import ctext

Symbols = Mapping[str, str]
_LETTER = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_ROW_MAJOR, _NO_TRANSPOSE, _TRANSPOSE = 101, 111, 112
# Multiplications from which a product is cut into blocks, from which the BLAS might start threads, and that
# one piece of parallel work should have.
SPLIT_FROM = 500_000
THREADED_FROM = 200_000
PIECE = 250_000


def product(step: CallBlas, symbols: Symbols) -> list[str]:
    """The statements that run a matrix product."""
    kind = ctext.memory_type(step.dtype)
    by_value = not step.dtype.is_complex
    scalar = kind if by_value else "const void*"
    lines = [
        "  {",
        "    typedef void (*Gemm)(int, int, int, i64, i64, i64, " + scalar + ", const void*, i64,",
        f"                         const void*, i64, {scalar}, void*, i64);",
        f"    const Gemm gemm = (Gemm)rt->blas[{BLAS_INDEX[f'{_LETTER[step.dtype.name]}gemm']}];",
    ]
    if not by_value:
        lines.append(f"    const {kind} one = {{1, 0}}, zero = {{0, 0}};")
    m, n, k = (ctext.dimension(x, symbols) for x in (step.m, step.n, step.k))
    sizes = [ctext.dimension(size, symbols) for size in step.batch]
    lines += [
        f"    const i64 m = {m}, n = {n}, k = {k}, batch = {' * '.join(sizes) or '1'};",
        f"    const bool large = m * n * k >= {SPLIT_FROM};",
        "    const i64 rows = large && m >= n ? dc_block(m) : m, cols = large && m < n ? dc_block(n) : n;",
        "    const i64 down = m > 0 ? (m - 1) / rows + 1 : 0, across = n > 0 ? (n - 1) / cols + 1 : 0;",
        "    auto blocks = [&](i64 lo, i64 hi) {",
        "      for (i64 block = lo; block < hi; ++block) {",
        "        const i64 row = block % down * rows, col = block / down % across * cols;",
        "        i64 at = block / down / across;",
    ]
    for axis, size in reversed(list(enumerate(sizes))):
        lines += [f"        const i64 i{axis} = at % {size};", f"        at /= {size};"]
    lines += ["        " + line for line in _block(step, symbols, kind, by_value)]
    return [
        *lines,
        "      }",
        "    };",
        f"    const bool alone = gemm && m * n * k >= {THREADED_FROM};",
        "    if (alone) rt->blas_serial(1);",
        f"    const i64 grain = {PIECE} / dc_size_max(rows * cols * k, 1) + 1;",
        "    rt->parallel_for(&dc_call<decltype(blocks)>, &blocks, batch * down * across, grain);",
        "    if (alone) rt->blas_serial(0);",
        "  }",
    ]


def _block(step: CallBlas, symbols: Symbols, kind: str, by_value: bool) -> list[str]:
    """One block of one product of the batch."""
    assert step.c is not None
    a, b, c = (_pointer(x, step.dtype, symbols, len(step.batch)) for x in (step.a, step.b, step.c))
    (a_row, a_col), (b_row, b_col), (c_row, c_col) = (
        (ctext.dimension(x.row_stride, symbols), ctext.dimension(x.col_stride, symbols))
        for x in (step.a, step.b, step.c)
    )
    a_flag, a_step = _leading(step.a, step.m, step.k, symbols)
    b_flag, b_step = _leading(step.b, step.k, step.n, symbols)
    _, c_step = _leading(step.c, step.m, step.n, symbols)
    one, zero = ("1", "0") if by_value else ("&one", "&zero")
    operands = f"{one}, a, {a_step}, b, {b_step}, {zero}, c, {c_step}"
    return [
        "const i64 high = dc_size_min(rows, m - row), wide = dc_size_min(cols, n - col);",
        f"{kind}* const a = {a} + row * {a_row};",
        f"{kind}* const b = {b} + col * {b_col};",
        f"{kind}* const c = {c} + row * {c_row} + col * {c_col};",
        "if (gemm)",
        f"  gemm({_ROW_MAJOR}, {a_flag}, {b_flag}, high, wide, k, {operands});",
        *_plain(step.dtype, kind, (a_row, a_col, b_row, b_col, c_row, c_col)),
    ]


def _pointer(matrix: Matrix, dtype: DType, symbols: Symbols, axes: int) -> str:
    parts = [ctext.dimension(matrix.offset, symbols)]
    parts += [
        f"i{axis} * {ctext.dimension(stride, symbols)}"
        for axis, stride in zip(range(axes), matrix.batch_strides)
    ]
    return f"({ctext.memory_type(dtype)}*)buffers[{matrix.slot}] + {' + '.join(parts)}"


def _leading(matrix: Matrix, rows: Dim, cols: Dim, symbols: Symbols) -> tuple[int, str]:
    """(transpose flag, leading dimension) of a matrix."""
    transposed = not _is_one(matrix.col_stride)
    leading = matrix.col_stride if transposed else matrix.row_stride
    least = ctext.dimension(rows if transposed else cols, symbols)
    # with a single row BLAS still wants a leading dimension of at least the extent
    step = f"dc_size_max(dc_size_max({ctext.dimension(leading, symbols)}, {least}), 1)"
    return _TRANSPOSE if transposed else _NO_TRANSPOSE, step


def _is_one(value: Dim) -> bool:
    return isinstance(value, int) and value == 1


def _plain(dtype: DType, kind: str, strides: tuple[str, ...]) -> list[str]:
    """What a process without BLAS runs instead."""
    a_row, a_col, b_row, b_col, c_row, c_col = strides
    left, right = f"a[i * {a_row} + p * {a_col}]", f"b[p * {b_row} + j * {b_col}]"
    total, start = f"sum + {left} * {right}", "0"
    if dtype.is_complex:
        short = ctext.short_name(dtype)
        total, start = f"dc_add_{short}(sum, dc_mul_{short}({left}, {right}))", "{0, 0}"
    return [
        "else",
        "  for (i64 i = 0; i < high; ++i)",
        "    for (i64 j = 0; j < wide; ++j) {",
        f"      {kind} sum = {start};",
        f"      for (i64 p = 0; p < k; ++p) sum = {total};",
        f"      c[i * {c_row} + j * {c_col}] = sum;",
        "    }",
    ]
