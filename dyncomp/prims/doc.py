"""Writes ``docs/prims.md`` from the op table: ``python -m dyncomp.prims.doc [FILE]``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

from ..dtypes import ALL, DType
from .opdef import OpDef
from .table import COMPOSITE_FAMILIES, PRIM_FAMILIES, TABLE

_KIND_NAMES = {"bool": "bool", "int": "int", "uint": "uint", "float": "float", "complex": "complex"}

HEADER = """# Primitives and composites

Generated from the op table by `python -m dyncomp.prims.doc docs/prims.md`; do not edit.

Array operands of a pointwise op have one shape and, unless the row says otherwise, one dtype: frontends
broadcast with `broadcast_in_dim` and convert with `convert`. Results are fresh arrays in NumPy's memory
order, except those of the kind View, which share their first operand's memory. The rows' NumPy references
are their executable definition. Closed forms (in the last column) are sympy's; values and derivatives are
checked against them with 50 digits.
"""


def kinds_text(dtypes: Iterable[DType]) -> str:
    """Dtypes in words: whole kinds by their name, others one by one."""
    chosen = set(dtypes)
    if chosen == set(ALL):
        return "all"
    parts: list[str] = []
    for kind, name in _KIND_NAMES.items():
        members = [d for d in ALL if d.kind == kind]
        present = [d for d in members if d in chosen]
        parts += [name] if present == members else [d.name for d in present]
    return ", ".join(parts)


def derivative_text(row: OpDef) -> str:
    found = [name for name, rule in (("vjp", row.vjp), ("jvp", row.jvp)) if rule is not None]
    return ", ".join(found)


def _row_lines(row: OpDef) -> str:
    kind = type(row.lower).__name__ if row.lower is not None else "composite"
    params = ", ".join(f"`{p}`" for p in row.params)
    doc = row.doc.replace("|", "\\|").replace("\n", " ")
    if row.closed:
        doc = f"{doc} `{row.closed}`"
    return f"| `{row.name}` | {params} | {kind} | {kinds_text(row.dtypes)} | {derivative_text(row)} | {doc} |"


def _section(family: ModuleType) -> list[str]:
    title = family.__name__.rsplit(".", 1)[-1].replace("_", " ")
    rows = [TABLE[row.name] for row in family.ROWS]
    lines = [
        f"### {title}",
        "",
        "| op | params | kind | dtypes | derivatives | meaning |",
        "|---|---|---|---|---|---|",
    ]
    return [*lines, *map(_row_lines, rows), ""]


def render() -> str:
    """The whole page."""
    prims = sum(row.is_prim for row in TABLE.values())
    lines = [HEADER, f"{prims} prims and {len(TABLE) - prims} composites.", "", "## Prims", ""]
    for family in PRIM_FAMILIES:
        lines += _section(family)
    lines += ["## Composites", ""]
    for family in COMPOSITE_FAMILIES:
        lines += _section(family)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(render())
    else:
        sys.stdout.write(render())


if __name__ == "__main__":
    main()
