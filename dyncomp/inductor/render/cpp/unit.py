"""The C++ renderer: a :class:`~dyncomp.inductor.schedule.Module` as one header-free translation unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....comments import in_comment
from ....dataclass import dataclass, field
from ....symbolic.integers import Dim
from ...fusion.epilogue import MAX_BUFFERS
from ...launch import abi_declarations
from ...loops.loop_ir import Kernel
from ...naming import suffix_of
from ...schedule import (
    Alternatives,
    CallBlas,
    CallChain,
    CallRows,
    LaunchKernel,
    Module,
    PlainStep,
    RunBranches,
    Segment,
    TileKernel,
)
from ..knobs import USUAL, Knobs
from . import ctext
from .blas import product
from .gemm import TILE_PARAMETERS, chain, does_nothing, own_product, row_program, tile_function
from .kernel import check_body, kernel_body
from .share import Function, share_functions
from .support import needed_support, quiet_comparisons

# Kernels whose estimated time is below this run without the thread pool.
SERIAL_NS = 8_000.0

_PRELUDE = """\
typedef unsigned long long u64;
struct c64 { float re, im; };
struct c128 { double re, im; };
#define DC_INLINE static inline __attribute__((always_inline))
#define DC_NOWHERE 0x7fffffffffffffffLL
#if defined(__GNUC__) && !defined(__clang__)
#define DC_LIST __attribute__((optimize("O0")))
#else
#define DC_LIST
#endif
template <class Body> static void dc_call(void* body, i64 lo, i64 hi, int) { (*(Body*)body)(lo, hi); }
template <class Body> static void dc_branch(void* body, i64 branch) { (*(Body*)body)(branch); }
DC_INLINE i64 dc_size_min(i64 a, i64 b) { return a < b ? a : b; }
DC_INLINE i64 dc_size_max(i64 a, i64 b) { return a > b ? a : b; }
struct TileContext { void* buffers[TILE_BUFFERS]; const i64* s; const Runtime* rt; };
// rows (or columns) of one block of a matrix product
DC_INLINE i64 dc_block(i64 extent) {
  if (extent < 64) return extent;
  const i64 parts = dc_size_min(dc_size_max(extent / 256, 2), 64);
  return ((extent - 1) / parts + 32) / 32 * 32;
}
"""
# Entries of more steps than this are lists of assignments and calls that the compiler shall not think about
# (of 80 products: 0.35 s, without optimisation 0.1; run time 1 to 2 µs more); so are all entries of a graph
# of more than ``MODULE_STEPS``.
LIST_STEPS = 12
MODULE_STEPS = 48
# Code above this length is cut into parts of half of it, at most so many (bits of a mask), which compilers
# can take side by side: a compiler needs about 6 ms for 1,000 characters, and 15 ms to start.
SPLIT_FROM = 24_000
MOST_PARTS = 32
_PARTS = """\
#ifdef DC_PARTS  // compile these parts only, by bits
#define DC_PART(k) (DC_PARTS >> (k) & 1)
#define DC_SHARED __attribute__((visibility("hidden")))
#else
#define DC_PART(k) 1
#define DC_SHARED static
#endif
"""


@dataclass
class _Unit:
    """A translation unit being written; equal kernels share one function."""

    symbols: Mapping[str, str]
    serial_ns: float
    vector_calls: bool
    knobs: Knobs = USUAL
    functions: list[Function] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)

    def kernel(self, step: LaunchKernel) -> str:
        """The name of the function that runs ``step.kernel``, writing it if it is new."""
        key = (replace(step.kernel, name="", origin=()), step.parallel)
        name = self.names.get(key)
        if name is None:
            name = f"kernel_{len(self.names)}{suffix_of(step.kernel.origin)}"
            self.names[key] = name
            self.functions.append(Function(f"i64 {name}{_PARAMETERS}", self.function(name, step)))
        return name

    def tile(self, step: TileKernel) -> str:
        """The name of the function that finishes tiles, writing it if it is new."""
        places = (step.source, step.sink, step.softmax is None, step.held, step.matrices)
        key = (replace(step.kernel, name="", origin=()), *places)
        name = self.names.get(key)
        if name is None:
            name = f"tile_{len(self.names)}{suffix_of(step.kernel.origin)}"
            self.names[key] = name
            text = tile_function(name, step, self.symbols, self.vector_calls)
            self.functions.append(Function(f"void {name}{TILE_PARAMETERS}", text))
        return name

    def function(self, name: str, step: LaunchKernel) -> str:
        kernel = step.kernel
        lines = [f"// {in_comment(kernel.name)}"]
        lines += ctext.origins(kernel.origin)
        if all(s.op == "check" for s in kernel.body if not s.out):
            found = check_body(kernel, self.symbols)
            return "\n".join([*lines, f"static i64 {name}{_PARAMETERS} {{", *found, "}"]) + "\n"
        body = kernel_body(
            kernel,
            self.symbols,
            step.point_ns,
            self.serial_ns,
            step.parallel,
            self.vector_calls,
            self.knobs,
        )
        scatters = any(s.op == "scatter" for s in kernel.body)
        checks = step.raises or scatters or any(s.op == "gather" for s in kernel.body)
        text = ""
        if checks:
            found = check_body(kernel, self.symbols)
            text = (
                f"static __attribute__((noinline)) i64 {name}_check{_PARAMETERS} {{\n"
                + "\n".join(found)
                + "\n}\n\n"
            )
        if checks and scatters:
            # nothing may be written before every position is known to be good
            body.insert(0, f"  if ({name}_check(b, s, rt, error)) return 1;")
        elif checks:
            body = [line.replace("return 1;", f"return {name}_check(b, s, rt, error);") for line in body]
            body[:0] = self.empty_sources(kernel, name)
        return text + "\n".join([*lines, f"static i64 {name}{_PARAMETERS} {{", *body, "}"]) + "\n"

    def empty_sources(self, kernel: Kernel, name: str) -> list[str]:
        """From an array without elements not even a wild position may be read."""
        sizes = [size for stmt in kernel.body if stmt.op == "gather" for size in stmt.arg[3]]
        unsure = {ctext.dimension(d, self.symbols) for d in sizes if not isinstance(d, int) or d == 0}
        if not unsure:
            return []
        test = " | ".join(f"({d} == 0)" for d in sorted(unsure))
        return [f"  if ({test}) {{", f"    if ({name}_check(b, s, rt, error)) return 1;", "  }"]


_PARAMETERS = "(void* const* b, const i64* s, const Runtime* rt, i64* error)"


def render_module(
    module: Module, serial_ns: float = SERIAL_NS, vector_calls: bool = False, knobs: Knobs = USUAL
) -> str:
    """C++ source that exports one function per segment of ``module`` (and ``sizes``).

    ``vector_calls``: elementary functions are called in the runtime (gcc on x86-64 only), not inlined.
    ``knobs``: how the loops of its kernels are written.

    Raises ``LoweringError`` for what C++ has no spelling of.
    """
    symbols = {name: f"s[{k}]" for k, name in enumerate(module.symbols)}
    unit = _Unit(symbols, serial_ns, vector_calls, knobs)
    steps = sum(len(segment.flat) for segment in module.segments)
    most = 0 if steps > MODULE_STEPS else LIST_STEPS
    entries = [_segment(unit, segment, len(segment.flat) > most) for segment in module.segments]
    if module.sizes:
        entries.append(_sizes(module.sizes, symbols))
    functions = share_functions(unit.functions)
    code = (
        _in_parts(functions, entries)
        if sum(len(f.text) for f in functions) > SPLIT_FROM
        else "\n".join([*(f.text for f in functions), *entries])
    )
    support = needed_support(code)
    title = f"// {in_comment(module.name)}: written by dyncomp\n"
    prelude = _PRELUDE.replace("TILE_BUFFERS", str(MAX_BUFFERS))
    return "\n".join([title + abi_declarations() + prelude + quiet_comparisons(), support, code])


def _in_parts(functions: list[Function], entries: list[str]) -> str:
    """The functions cut into parts, then what calls them."""
    total = sum(len(f.text) for f in functions)
    most = max(SPLIT_FROM // 2, total // (MOST_PARTS - 2))
    parts: list[list[str]] = []
    length = most
    for function in functions:
        if length >= most:
            parts.append([])
            length = 0
        head = function.prototype
        parts[-1].append(function.text.replace(f"static {head}", f"DC_SHARED {head}"))
        length += len(function.text)
    parts.append(entries)
    lines = [_PARTS + "".join(f"DC_SHARED {f.prototype};\n" for f in functions)]
    for number, part in enumerate(parts):
        lines += [f"#if DC_PART({number})", *part, f"#endif  // part {number}"]
    return "\n".join(lines) + "\n"


def _sizes(sizes: tuple[Dim, ...], symbols: Mapping[str, str]) -> str:
    lines = ['extern "C" void sizes(const i64* s, i64* out) {']
    lines += [f"  out[{k}] = {ctext.dimension(size, symbols)};" for k, size in enumerate(sizes)]
    return "\n".join([*lines, "}"]) + "\n"


_ENTRY = "(void** buffers, const i64* s, const Runtime* rt, i64* error)"


def _segment(unit: _Unit, segment: Segment, is_list: bool) -> str:
    kind = "DC_LIST i64" if is_list else "i64"
    parts: list[str] = []
    lines = [f'extern "C" {kind} {segment.symbol}{_ENTRY} {{', "  (void)rt;"]
    if len(segment.steps) > 1:
        lines.append("  const int timed = __atomic_load_n(&rt->timed, __ATOMIC_RELAXED);")
    for number, step in enumerate(segment.steps):
        if number:
            lines.append("  if (__builtin_expect(timed, 0)) rt->next_step();")
        if not isinstance(step, RunBranches):
            lines += _step(step, unit)
            continue
        names = [f"{segment.symbol}_{number}_{k}" for k in range(len(step.branches))]
        for name, branch in zip(names, step.branches):
            inner = [line for each in branch for line in _step(each, unit)]
            head = f"static {kind} {name}{_ENTRY} {{"
            parts.append("\n".join([head, "  (void)rt;", *inner, "  return 0;", "}"]) + "\n")
        lines += _branches(names)
    return "\n".join([*parts, *lines, "  return 0;", "}"]) + "\n"


def _step(step: PlainStep, unit: _Unit) -> list[str]:
    assert not isinstance(step, Alternatives)
    return _launch(step, unit) if isinstance(step, LaunchKernel) else _product(step, unit)


def _branches(names: list[str]) -> list[str]:
    """Functions that run at the same time; the error of the first that has one."""
    count = len(names)
    return [
        "  {",
        f"    i64 codes[{count}] = {{0}}, details[{count}][4] = {{{{0}}}};",
        f"    static i64 (*const functions[{count}])(void**, const i64*, const Runtime*, i64*) = "
        f"{{{', '.join(names)}}};",
        "    auto branches = [&](i64 k) { codes[k] = functions[k](buffers, s, rt, details[k]); };",
        f"    rt->branches(&dc_branch<decltype(branches)>, &branches, {count});",
        f"    for (i64 k = 0; k < {count}; ++k) {{",
        "      if (!codes[k]) continue;",
        "      for (int i = 0; i < 4; ++i) error[i] = details[k][i];",
        "      return codes[k];",
        "    }",
        "  }",
    ]


def _product(step: CallBlas | CallChain | CallRows, unit: _Unit) -> list[str]:
    if isinstance(step, CallRows):
        kernels = [unit.tile(s.kernel) if s.kernel is not None else "" for s in step.steps]
        return row_program(step, unit.symbols, kernels)
    if isinstance(step, CallChain):
        rows = step.first.epilogue
        assert rows is not None
        return chain(step, unit.symbols, "" if does_nothing(rows) else unit.tile(rows))
    if not step.own:
        return product(step, unit.symbols)
    fills = {"a": step.fill_a, "b": step.fill_b}
    names = {letter: unit.tile(fill.tile) for letter, fill in fills.items() if fill is not None}
    finish = unit.tile(step.epilogue) if step.epilogue is not None else ""
    return own_product(step, unit.symbols, finish, names)


def _launch(step: LaunchKernel, unit: _Unit) -> list[str]:
    name = unit.kernel(step)
    pointers = ", ".join(f"buffers[{slot}]" for slot in step.slots) or "0"
    return [
        "  {",
        f"    void* const b[] = {{{pointers}}};",
        f"    if ({name}(b, s, rt, error)) return 1;",
        "  }",
    ]
