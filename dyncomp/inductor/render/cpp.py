"""The C++ renderer: a :class:`~dyncomp.inductor.schedule.Module` as one header-free translation unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...dtypes import DType
from ...symint import Dim
from ..launch import ABI_DECLARATIONS, BLAS_INDEX
from ..loopir import Kernel
from ..schedule import CallBlas, LaunchKernel, Matrix, Module, Segment
from . import ctext
from .cpp_kernel import check_body, kernel_body
from .support import needed_support

# Kernels whose estimated time is below this run without the thread pool.
SERIAL_NS = 8_000.0

_PRELUDE = """\
typedef unsigned long long u64;
struct c64 { float re, im; };
struct c128 { double re, im; };
#define DC_INLINE static inline __attribute__((always_inline))
#define DC_NOWHERE 0x7fffffffffffffffLL
template <class Body> static void dc_call(void* body, i64 lo, i64 hi, int) { (*(Body*)body)(lo, hi); }
DC_INLINE i64 dc_size_min(i64 a, i64 b) { return a < b ? a : b; }
DC_INLINE i64 dc_size_max(i64 a, i64 b) { return a > b ? a : b; }
"""


@dataclass
class _Unit:
    """A translation unit being written; equal kernels share one function."""

    symbols: Mapping[str, str]
    serial_ns: float
    functions: list[str] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)

    def kernel(self, step: LaunchKernel) -> str:
        """The name of the function that runs ``step.kernel``, writing it if it is new."""
        key = (replace(step.kernel, name="", origin=()), step.parallel)
        name = self.names.get(key)
        if name is None:
            name = f"kernel_{len(self.names)}"
            self.names[key] = name
            self.functions.append(self.function(name, step))
        return name

    def function(self, name: str, step: LaunchKernel) -> str:
        kernel = step.kernel
        lines = [f"// {kernel.name}"]
        lines += [f"//   {_comment(origin)}" for origin in kernel.origin]
        body = kernel_body(kernel, self.symbols, step.point_ns, self.serial_ns, step.parallel)
        scatters = any(s.op == "scatter" for s in kernel.body)
        checks = step.raises or scatters or any(s.op == "gather" for s in kernel.body)
        text = ""
        if checks:
            found = check_body(kernel, self.symbols)
            text = (
                f"static __attribute__((noinline)) i64 {name}_check{_PARAMETERS}\n"
                + "\n".join(found)
                + "\n}\n\n"
            )
        if checks and scatters:
            # nothing may be written before every position is known to be good
            body.insert(0, f"  if ({name}_check(b, s, rt, error)) return 1;")
        elif checks:
            body = [line.replace("return 1;", f"return {name}_check(b, s, rt, error);") for line in body]
            body[:0] = self.empty_sources(kernel, name)
        return text + "\n".join([*lines, f"static i64 {name}{_PARAMETERS}", *body, "}"]) + "\n"

    def empty_sources(self, kernel: Kernel, name: str) -> list[str]:
        """From an array without elements not even a wild position may be read."""
        sizes = [size for stmt in kernel.body if stmt.op == "gather" for size in stmt.arg[3]]
        unsure = {ctext.dimension(d, self.symbols) for d in sizes if not isinstance(d, int) or d == 0}
        if not unsure:
            return []
        test = " | ".join(f"({d} == 0)" for d in sorted(unsure))
        return [f"  if ({test}) {{", f"    if ({name}_check(b, s, rt, error)) return 1;", "  }"]


_PARAMETERS = "(void* const* b, const i64* s, const Runtime* rt, i64* error) {"


def _comment(text: str) -> str:
    return text.replace("\\", "/").replace("\n", " ")


def render_module(module: Module, serial_ns: float = SERIAL_NS) -> str:
    """C++ source that exports one function per segment of ``module`` (and ``sizes``).

    Raises ``LoweringError`` for what C++ has no spelling of.
    """
    symbols = {name: f"s[{k}]" for k, name in enumerate(module.symbols)}
    unit = _Unit(symbols, serial_ns)
    entries = [_segment(unit, segment) for segment in module.segments]
    if module.sizes:
        entries.append(_sizes(module.sizes, symbols))
    code = "\n".join([*unit.functions, *entries])
    support = needed_support(code)
    title = f"// {_comment(module.name)}: written by dyncomp\n"
    return "\n".join([title + ABI_DECLARATIONS + _PRELUDE, support, code])


def _sizes(sizes: tuple[Dim, ...], symbols: Mapping[str, str]) -> str:
    lines = ['extern "C" void sizes(const i64* s, i64* out) {']
    lines += [f"  out[{k}] = {ctext.dimension(size, symbols)};" for k, size in enumerate(sizes)]
    return "\n".join([*lines, "}"]) + "\n"


def _segment(unit: _Unit, segment: Segment) -> str:
    lines = [
        f'extern "C" i64 {segment.symbol}(void** buffers, const i64* s, const Runtime* rt, i64* error) {{'
    ]
    lines.append("  (void)rt;")
    for step in segment.steps:
        lines += _blas(step, unit) if isinstance(step, CallBlas) else _launch(step, unit)
    return "\n".join([*lines, "  return 0;", "}"]) + "\n"


def _launch(step: LaunchKernel, unit: _Unit) -> list[str]:
    name = unit.kernel(step)
    pointers = ", ".join(f"buffers[{slot}]" for slot in step.slots) or "0"
    return [
        "  {",
        f"    void* const b[] = {{{pointers}}};",
        f"    if ({name}(b, s, rt, error)) return 1;",
        "  }",
    ]


# -- matrix products --------------------------------------------------------------------------
_LETTER = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_ROW_MAJOR, _NO_TRANSPOSE, _TRANSPOSE = 101, 111, 112


def _operand(
    matrix: Matrix, unit: _Unit, dtype: DType, rows: Dim, cols: Dim, axes: list[str]
) -> tuple[str, str, str]:
    """(pointer, transpose flag, leading dimension) of a matrix."""
    kind = ctext.memory_type(dtype)
    parts = [ctext.dimension(matrix.offset, unit.symbols)]
    parts += [
        f"{axis} * {ctext.dimension(stride, unit.symbols)}"
        for axis, stride in zip(axes, matrix.batch_strides)
    ]
    pointer = f"({kind}*)buffers[{matrix.slot}] + {' + '.join(parts)}"
    transposed = not _is_one(matrix.col_stride)
    leading = matrix.col_stride if transposed else matrix.row_stride
    extent = rows if transposed else cols
    least = ctext.dimension(extent, unit.symbols)
    # with a single row BLAS still wants a leading dimension of at least the extent
    stride = f"dc_size_max(dc_size_max({ctext.dimension(leading, unit.symbols)}, {least}), 1)"
    return pointer, str(_TRANSPOSE if transposed else _NO_TRANSPOSE), stride


def _is_one(value: Dim) -> bool:
    return isinstance(value, int) and value == 1


def _blas(step: CallBlas, unit: _Unit) -> list[str]:
    letter = _LETTER[step.dtype.name]
    kind = ctext.memory_type(step.dtype)
    axes = [f"i{k}" for k in range(len(step.batch))]
    a, a_flag, a_step = _operand(step.a, unit, step.dtype, step.m, step.k, axes)
    b, b_flag, b_step = _operand(step.b, unit, step.dtype, step.k, step.n, axes)
    c, _, c_step = _operand(step.c, unit, step.dtype, step.m, step.n, axes)
    m, n, k = (ctext.dimension(x, unit.symbols) for x in (step.m, step.n, step.k))
    by_value = not step.dtype.is_complex
    scalar = kind if by_value else "const void*"
    one, zero = ("1", "0") if by_value else ("&one", "&zero")
    lines = [
        "  {",
        "    typedef void (*Gemm)(int, int, int, i64, i64, i64, " + scalar + ", const void*, i64,",
    ]
    lines.append(f"                         const void*, i64, {scalar}, void*, i64);")
    lines.append(f"    const Gemm gemm = (Gemm)rt->blas[{BLAS_INDEX[f'{letter}gemm']}];")
    if not by_value:
        lines.append(f"    const {kind} one = {{1, 0}}, zero = {{0, 0}};")
    lines.append(f"    const i64 m = {m}, n = {n}, k = {k};")
    depth = "    "
    for axis, size in zip(axes, step.batch):
        text = ctext.dimension(size, unit.symbols)
        lines.append(f"{depth}for (i64 {axis} = 0; {axis} < {text}; ++{axis})")
        depth += "  "
    operands = f"{one}, {a}, {a_step}, {b}, {b_step}, {zero}, {c}, {c_step}"
    lines.append(f"{depth}if (gemm && m > 0 && n > 0)")
    lines.append(f"{depth}  gemm({_ROW_MAJOR}, {a_flag}, {b_flag}, m, n, k, {operands});")
    lines += _plain_product(step, unit, depth, (a, b, c))
    lines.append("  }")
    return lines


def _plain_product(step: CallBlas, unit: _Unit, depth: str, pointers: tuple[str, str, str]) -> list[str]:
    """What a process without BLAS runs instead."""
    kind = ctext.memory_type(step.dtype)
    steps = [
        (ctext.dimension(x.row_stride, unit.symbols), ctext.dimension(x.col_stride, unit.symbols))
        for x in (step.a, step.b, step.c)
    ]
    (a_row, a_col), (b_row, b_col), (c_row, c_col) = steps
    a, b, c = pointers
    left, right = f"({a})[row * {a_row} + p * {a_col}]", f"({b})[p * {b_row} + col * {b_col}]"
    product, start = f"sum + {left} * {right}", "0"
    if step.dtype.is_complex:
        short = ctext.short_name(step.dtype)
        product, start = f"dc_add_{short}(sum, dc_mul_{short}({left}, {right}))", "{0, 0}"
    body = [
        "else",
        "  for (i64 row = 0; row < m; ++row)",
        "    for (i64 col = 0; col < n; ++col) {",
        f"      {kind} sum = {start};",
        f"      for (i64 p = 0; p < k; ++p) sum = {product};",
        f"      ({c})[row * {c_row} + col * {c_col}] = sum;",
        "    }",
    ]
    return [depth + line for line in body]
