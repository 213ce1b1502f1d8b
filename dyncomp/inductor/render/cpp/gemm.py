"""Matrix products by the runtime (``Runtime.gemm_f32`` and the like) and the functions that finish tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ....comments import in_comment
from ....dtypes import DType
from ....symbolic.integers import Dim, hint, product
from ...fusion.epilogue import TILE_NUMBERS
from ...schedule import MEMORY_ERROR, CallBlas, CallChain, CallRows, Fill, Matrix, TileKernel, Windows
from ...tuning.tilings import Tiling
from . import ctext
from .kernel import kernel_body

Symbols = Mapping[str, str]
TILE_PARAMETERS = """\
(void* raw, const void* tile, i64 tile_row, i64 number, i64 row, i64 rows,
                   i64 col, i64 cols)"""
_SHORT = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "int8": "i8", "uint8": "i8"}
# kinds of operands (``Gemm.a_bytes``)
_BYTES = {"int8": 1, "uint8": 2}


def own_product(step: CallBlas, symbols: Symbols, tile: str, fills: Mapping[str, str]) -> list[str]:
    """The statements that run a product; ``tile``: the function that finishes its tiles, or ""; ``fills``:
    those that make its operands "a" and "b"."""
    entry = f"gemm_{_SHORT[step.a_dtype.name]}"
    run = f"    if (rt->{entry}(&gemm)) return {MEMORY_ERROR};"
    return ["  {", *_filled("gemm", step, symbols, tile, fills=fills), run, "  }"]


def chain(step: CallChain, symbols: Symbols, tile: str) -> list[str]:
    """The statements that run a chain; ``tile``: the function that makes rows of the second's operand."""
    entry = f"chain_{_SHORT[step.first.dtype.name]}"
    run = f"    if (rt->{entry}(&first, &second)) return {MEMORY_ERROR};"
    filled = [
        *_filled("first", step.first, symbols, tile),
        *_filled("second", step.second, symbols, "", ("b",)),
    ]
    return ["  {", *filled, run, "  }"]


_ROW_KINDS = {"kernel": 0, "scores": 1, "out": 2, "sum": 3}


def row_program(step: CallRows, symbols: Symbols, kernels: Sequence[str]) -> list[str]:
    """The statements that run steps over rows together; ``kernels``: their functions, "" for products."""
    lines = []
    table = []
    for number, (part, function) in enumerate(zip(step.steps, kernels)):
        kind = _ROW_KINDS[part.kind]
        if part.kernel is not None:
            held = {k for k, _ in part.kernel.held}
            slots = ["0" if k in held else f"buffers[{slot}]" for k, slot in enumerate(part.kernel.slots)]
            lines.append(f"    const TileContext rows{number} = {{{{{', '.join(slots)}}}, s, rt}};")
            table.append(f"{{{kind}, 0, 0, {function}, (void*)&rows{number}}}")
            continue
        assert part.product is not None
        operands = ("b",) if part.matrix >= 0 and part.kind != "scores" else ("a", "b")
        lines += _filled(f"product{number}", part.product, symbols, "", operands)
        table.append(f"{{{kind}, {part.matrix}, &product{number}, 0, 0}}")
    entry = f"rows_{_SHORT[step.dtype.name]}"
    lines.append(f"    const RowStep steps[] = {{{', '.join(table)}}};")
    lines.append(f"    if (rt->{entry}(steps, {len(table)}, {step.matrices})) return {MEMORY_ERROR};")
    return ["  {", *lines, "  }"]


def _filled(
    name: str,
    step: CallBlas,
    symbols: Symbols,
    tile: str,
    operands: Sequence[str] = ("a", "b"),
    fills: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The runtime's description of a product."""

    def dim(value: Dim) -> str:
        return ctext.dimension(value, symbols)

    matrices = {"a": step.a, "b": step.b, "c": step.c}
    dtypes = {"a": step.a_dtype, "b": step.b_dtype}
    lines = [
        f"    Gemm {name} = {{}};",
        f"    {name}.m = {dim(step.m)}, {name}.n = {dim(step.n)}, {name}.k = {dim(step.k)};",
    ]
    for letter in operands:
        matrix = matrices[letter]
        assert matrix is not None
        lines.append(f"    {name}.{letter} = {_pointer(matrix, dtypes[letter], symbols)};")
        steps = (
            f"{name}.{letter}_row = {dim(matrix.row_stride)}, {name}.{letter}_col = {dim(matrix.col_stride)}"
        )
        lines.append(f"    {steps};")
        if dtypes[letter].name in _BYTES:
            lines.append(f"    {name}.{letter}_bytes = {_BYTES[dtypes[letter].name]};")
    if step.c is not None:
        lines.append(f"    {name}.c = {_pointer(step.c, step.dtype, symbols)};")
        lines.append(f"    {name}.c_row = {dim(step.c.row_stride)};")
    lines.append(f"    {name}.axes = {len(step.batch)};")
    for axis, size in enumerate(step.batch):
        lines.append(f"    {name}.batch[{axis}] = {dim(size)};")
        for letter in (*operands, "c"):
            operand = matrices[letter]
            if operand is not None:
                lines.append(f"    {name}.{letter}_batch[{axis}] = {dim(operand.batch_strides[axis])};")
    if step.kept:
        lines.append(f"    {name}.kept = 1;")
    if step.windows is not None:
        lines += _windows(name, step.windows, dim)
    lines += _tiling(name, step.tiling)
    for letter, fill in (("a", step.fill_a), ("b", step.fill_b)):
        if fill is not None:
            lines += _filling(f"{name}_{letter}", fill, fills[letter])
            lines.append(f"    {name}.fill_{letter} = &{name}_{letter}_filling;")
    if step.epilogue is not None:
        held = (step.epilogue.source, step.epilogue.sink)
        slots = ["0" if k in held else f"buffers[{slot}]" for k, slot in enumerate(step.epilogue.slots)]
        lines.append(f"    const TileContext context = {{{{{', '.join(slots)}}}, s, rt}};")
        if step.epilogue.hidden_after is not None:
            lines.append(f"    {name}.causal = 1, {name}.seen = {step.epilogue.hidden_after + 1};")
        lines += _softmax(name, step.epilogue)
        lines.append(f"    {name}.done = {tile or 0}, {name}.context = (void*)&context;")
    return lines


_TILING_FIELDS = {
    "vectors": "tile_vectors",
    "panels": "block_panels",
    "rows": "block_rows",
    "terms": "block_terms",
    "way": "way",
}


def _tiling(name: str, tiling: Tiling) -> list[str]:
    """How the product is cut, where that was measured."""
    given = [(field, getattr(tiling, key)) for key, field in _TILING_FIELDS.items()]
    return [f"    {name}.{field} = {value};" for field, value in given if value]


def _softmax(name: str, epilogue: TileKernel) -> list[str]:
    """That the runtime makes a softmax of rows."""
    softmax = epilogue.softmax
    if softmax is None:
        return []
    return [f"    {name}.softmax = {2 if softmax.empty_is_zero else 1}, {name}.factor = {softmax.factor!r};"]


def does_nothing(step: TileKernel) -> bool:
    """Whether the kernel only stores in place what it loads."""
    return step.softmax is not None and len(step.kernel.body) == 2


def _filling(name: str, fill: Fill, function: str) -> list[str]:
    """The runtime's description of how an operand is made."""
    tile = fill.tile
    slots = ["0" if k == tile.source else f"buffers[{slot}]" for k, slot in enumerate(tile.slots)]
    pointers = ", ".join(f"buffers[{slot}]" for slot, _ in fill.sides) or "0"
    sizes = ", ".join(str(size) for _, size in fill.sides) or "0"
    fields = f"{function}, (void*)&{name}_context, {fill.tag}, {fill.bytes}, {len(fill.sides)}"
    return [
        f"    const TileContext {name}_context = {{{{{', '.join(slots)}}}, s, rt}};",
        f"    const Filling {name}_filling = {{{fields}, {{{pointers}}}, {{{sizes}}}}};",
    ]


def _windows(name: str, windows: Windows, dim: Callable[[Dim], str]) -> list[str]:
    """The runtime's description of what the windows of a kernel see."""

    def pair(given: tuple[Dim, Dim]) -> str:
        return f"{{{dim(given[0])}, {dim(given[1])}}}"

    pairs = (windows.sizes, windows.kernel, windows.stride, windows.dilation, windows.padding)
    fields = [dim(windows.columns), *map(pair, pairs), dim(windows.channel), pair(windows.step)]
    fields += [str(int(flag)) for flag in (windows.channels_last, windows.depthwise)]
    return [
        f"    const Windows {name}_windows = {{{', '.join(fields)}}};",
        f"    {name}.windows = &{name}_windows;",
    ]


def _pointer(matrix: Matrix, dtype: DType, symbols: Symbols) -> str:
    offset = ctext.dimension(matrix.offset, symbols)
    return f"({ctext.memory_type(dtype)}*)buffers[{matrix.slot}] + {offset}"


def tile_function(name: str, step: TileKernel, symbols: Symbols, vector_calls: bool = False) -> str:
    """The C++ function that runs a kernel on one tile of a product."""
    numbers = {number: number for number in TILE_NUMBERS}
    points = product(axis.size for axis in step.kernel.axes)
    point_ns = step.work_ns / max(hint(points), 1)
    body = kernel_body(step.kernel, {**symbols, **numbers}, point_ns, 0.0, False, vector_calls)
    assert body[-1].strip() == "return 0;"
    count = len(step.slots)
    lines = [f"// {in_comment(step.kernel.name)}, on a tile of a matrix product"]
    lines += ctext.origins(step.kernel.origin)
    lines += [
        f"static void {name}{TILE_PARAMETERS} {{",
        "  const TileContext* const context = (const TileContext*)raw;",
        "  const i64* const s = context->s;",
        "  const Runtime* const rt = context->rt;",
        "  (void)s, (void)rt, (void)number, (void)row, (void)col, (void)tile_row;",
        f"  void* b[{count}];",
        f"  for (int k = 0; k < {count}; ++k) b[k] = context->buffers[k];",
        *([f"  b[{step.source}] = (void*)tile;"] if step.source >= 0 else []),
        *_sink(step),
        *body[:-1],
        "}",
    ]
    return "\n".join(lines) + "\n"


def _sink(step: TileKernel) -> list[str]:
    """What is made of whole rows lies behind them, or in their place; several matrices beside each other."""
    if step.held:
        kinds = {k: ctext.memory_type(step.kernel.buffers[k].dtype) for k, _ in step.held}
        return [f"  b[{k}] = ({kinds[k]}*)tile + tile_row / {step.matrices} * {m};" for k, m in step.held]
    if step.sink < 0:
        return []
    if step.softmax is not None:
        return [f"  b[{step.sink}] = (void*)tile;"]
    kind = ctext.memory_type(step.kernel.buffers[step.sink].dtype)
    return [f"  b[{step.sink}] = ({kind}*)tile + tile_row / 2;"]
