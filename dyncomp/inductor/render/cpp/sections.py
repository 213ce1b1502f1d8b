"""Helper functions in C++: the sections of ``csrc/*.h``, and which of them a text needs.

A section of such a file starts with ``// @ NAME`` or, for one per integer type, ``// @ NAME_[i8 i16…]`` with
``TYPE``, ``UNSIGNED`` and ``SUFFIX`` in its text. ``POLY(p, x, c0, c1, …)`` stands for the evaluation of
``c0 + c1*x + …`` in a new variable ``p`` by fused multiply-adds, ``POLY_IF(p, x, flag, a0 | b0, …)`` for
that of one of two polynomials: selections need no multiplier. Sections may use each other in any order.

``setup.py`` compiles the same helpers into the runtime, and imports this module to that end when no extension
is built yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ....dataclass import dataclass
from ....prims.scalar import SCALARS
from ....prims.scalar_types import LOOKED_AT, Vector

_FILES = ("integers.h", "halves.h", "floats.h", "math_f64.h", "math_f32.h", "libm.h", "complex.h")
_NAME = re.compile(r"\bdc_\w+")
_INTEGER = {
    "i8": ("signed char", "unsigned char"),
    "i16": ("short", "unsigned short"),
    "i32": ("int", "unsigned int"),
    "i64": ("i64", "u64"),
    "u8": ("unsigned char", "unsigned char"),
    "u16": ("unsigned short", "unsigned short"),
    "u32": ("unsigned int", "unsigned int"),
    "u64": ("u64", "u64"),
    "b8": ("bool", "bool"),
    "f32": ("float", "unsigned int"),
    "f64": ("double", "u64"),
    "c64": ("c64", "float"),
    "c128": ("c128", "double"),
}
_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}


@cache
def sections() -> Mapping[str, str]:
    """Every helper's text by name."""
    return sections_of(resources.files(__package__) / "csrc")


@cache
def text_of(file: str) -> str:
    """A file of ``csrc`` as a whole."""
    return (resources.files(__package__) / "csrc" / file).read_text()


def sections_of(folder: Any) -> dict[str, str]:
    """The helpers in the files of ``folder`` (a path)."""
    found: dict[str, str] = {}
    for file in _FILES:
        text = (folder / file).read_text()
        for part in re.split(r"^// @ ", text, flags=re.M)[1:]:
            head, _, body = part.partition("\n")
            for name, code in _instances(head.strip(), body):
                found[name] = _expand_polynomials(code.rstrip() + "\n")
    return found


def _instances(head: str, body: str) -> list[tuple[str, str]]:
    match = re.fullmatch(r"(\w+_)\[([\w ]+)\]", head)
    if match is None:
        return [(head, body)]
    made = []
    for suffix in match[2].split():
        kind, unsigned = _INTEGER[suffix]
        code = body.replace("UNSIGNED", unsigned).replace("TYPE", kind).replace("SUFFIX", suffix)
        made.append((match[1] + suffix, code.replace("BITS", str(_BITS.get(suffix, 0)))))
    return made


def _expand_polynomials(code: str) -> str:
    return re.sub(r"^( *)POLY(_IF)?\(([^;]*)\);", _horner, code, flags=re.M)


def _horner(match: re.Match[str]) -> str:
    indent = match[1]
    name, x, *coefficients = [part.strip() for part in match[3].split(",")]
    single = coefficients[-1].endswith("f") and not coefficients[-1].startswith("0x")
    kind, fma = ("float", "__builtin_fmaf") if single else ("double", "__builtin_fma")
    if match[2]:
        flag, *pairs = coefficients
        coefficients = [f"{flag} ? {pair.replace('|', ':')}" for pair in pairs]
    lines = [f"{indent}{kind} {name} = {coefficients[-1]};"]
    for c in reversed(coefficients[:-1]):
        lines.append(f"{indent}{name} = {fma}({name}, {x}, {c});")
    return "\n".join(lines)


def ordered(code: str, table: Mapping[str, str], ignored: frozenset[str] = frozenset()) -> list[str]:
    """The names of the helpers that ``code`` calls, and of those that they call, in an order that compiles.
    ``KeyError`` for one that ``table`` lacks."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(text: str) -> None:
        for name in sorted(set(_NAME.findall(text)) - ignored):
            if name in seen or name.startswith("dc_local_"):
                continue
            seen.add(name)
            visit(table[name])
            order.append(name)

    visit(code)
    return order


# -- functions compiled into the runtime ------------------------------------------------------
_TYPES = {"f32": "float", "f64": "double"}


@cache
def vector_functions() -> Mapping[str, int]:
    """The names of the functions in the runtime (``dcv_NAME_f32`` and ``…_f64``), with their arity."""
    return {f"dcv_{f.name}_{short}": f.arity for f in _in_runtime() for short in _TYPES}


@dataclass(frozen=True)
class _Function:
    """A function in the runtime."""

    name: str
    arity: int
    vector: Vector


def _in_runtime() -> Iterator[_Function]:
    for row in SCALARS.values():
        if row.vector is not None:
            yield _Function(row.helper, row.arity, row.vector)
        if row.beside_one:
            yield _Function(f"{row.helper}_beside_one", row.arity, Vector())


def vector_declaration(name: str) -> str:
    """The declaration of one of :func:`vector_functions` or of the runtime's copies of memory."""
    if name.startswith("dcv_transpose_"):
        parameters = "void* to, const void* from, i64 step, i64 rows, i64 columns, i64 tile"
        return f'extern "C" void {name}({parameters}) noexcept;\n'
    if name.startswith("dcv_turn_"):
        parameters = "i64 to_step, i64 step, i64 rows, i64 columns, i64 row, i64 row_end, i64 column"
        parameters = f"void* to, const void* from, {parameters}, i64 column_end"
        return f'extern "C" void {name}({parameters}) noexcept;\n'
    if name.startswith("dcv_stream_"):
        parameters = "void* to, const void* from, i64 bytes" if name == "dcv_stream_copy" else ""
        return f'extern "C" void {name}({parameters}) noexcept;\n'
    kind = _TYPES[name.rpartition("_")[2]]
    parameters = ", ".join([kind] * vector_functions()[name])
    return f'extern "C" __attribute__((simd("notinbranch"), const)) {kind} {name}({parameters}) noexcept;\n'


def vector_source(folder: Path) -> str:
    """What ``csrc/vector_math/module.cpp`` includes: helpers, and a macro call for each function."""
    table = sections_of(folder)
    calls = []
    needed = []
    poles = []
    for function in _in_runtime():
        name, guarded = function.name, function.vector.guarded
        macro = f"DC_{'GUARDED_' if guarded else ''}{'UNARY' if function.arity == 1 else 'BINARY'}"
        poles.append(f"enum {{ {name}_poles = {LOOKED_AT[function.vector.looked_at]} }};\n")
        for short, kind in _TYPES.items():
            calls.append(f"{macro}({name}, {short}, {kind})\n")
            forms = ("dc_", "dc_far_", "dc_full_") if guarded else ("dc_",)
            needed += [f"{form}{name}_{short}" for form in forms]
    helpers = [table[name] for name in ordered(" ".join(needed), table)]
    return "".join(["#ifdef DC_HELPERS\n", *helpers, *poles, "#else\n", *calls, "#endif\n"])
