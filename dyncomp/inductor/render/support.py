"""Helper functions of generated code: which of ``csrc/*.h`` a translation unit needs, as text.

A section of such a file starts with ``// @ NAME`` or, for one per integer type, ``// @ NAME_[i8 i16…]`` with
``TYPE``, ``UNSIGNED`` and ``SUFFIX`` in its text. ``POLY(p, x, c0, c1, …)`` stands for the evaluation of
``c0 + c1*x + …`` in a new variable ``p`` by fused multiply-adds. Sections may use each other in any order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from ...errors import LoweringError

_FILES = ("integers.h", "halves.h", "floats.h", "math_f64.h", "math_f32.h", "libm.h", "complex.h")
_NAME = re.compile(r"\bdc_\w+")
# Defined in every unit's prelude or by the renderer itself.
_PRELUDE_NAMES = frozenset({"dc_call", "dc_size_min", "dc_size_max", "dc_block"})
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
    found: dict[str, str] = {}
    folder = resources.files(__package__) / "csrc"
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
    return re.sub(r"^( *)POLY\(([^;]*)\);", _horner, code, flags=re.M)


def _horner(match: re.Match[str]) -> str:
    indent = match[1]
    name, x, *coefficients = [part.strip() for part in match[2].split(",")]
    single = coefficients[0].endswith("f") and not coefficients[0].startswith("0x")
    kind, fma = ("float", "__builtin_fmaf") if single else ("double", "__builtin_fma")
    lines = [f"{indent}{kind} {name} = {coefficients[-1]};"]
    for c in reversed(coefficients[:-1]):
        lines.append(f"{indent}{name} = {fma}({name}, {x}, {c});")
    return "\n".join(lines)


def needed_support(code: str) -> str:
    """The helpers that ``code`` calls, and those they call, in an order that compiles.

    Raises ``LoweringError`` for a helper that does not exist: the function has no C++ spelling.
    """
    table = sections()
    order: list[str] = []
    seen: set[str] = set()

    def visit(text: str) -> None:
        for name in sorted(set(_NAME.findall(text)) - _PRELUDE_NAMES):
            if name in seen or name.startswith("dc_local_"):
                continue
            seen.add(name)
            if name not in table:
                raise LoweringError(f"C++ has no spelling of {name.removeprefix('dc_')}")
            visit(table[name])
            order.append(name)

    visit(code)
    return "\n".join(table[name] for name in order)
