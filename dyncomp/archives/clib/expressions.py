"""Sizes, and conditions on them, as expressions of C in the type ``wide`` of ``launcher.h``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...symbolic.integers import Call, Dim

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<="}
_OPERATORS |= {"gt": ">", "ge": ">=", "and": "&&", "or": "||"}
_FUNCTIONS = {"floordiv", "mod", "min", "max"}


def size_text(value: Dim, symbols: Mapping[str, str]) -> str:
    """A size. ``symbols``: the text of each symbol."""
    if isinstance(value, int):
        return f"(wide){value}LL"
    parts = [f"{value.constant}LL"] if value.constant else []
    for monomial, factor in value.terms:
        factors = [f"(wide){factor}LL", *(_atom(atom, symbols) for atom in monomial)]
        parts.append(" * ".join(factors[1:] if factor == 1 else factors))
    return f"({' + '.join(parts) or '0'})"


def _atom(atom: str | Call, symbols: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        return f"(wide)({symbols[atom]})"
    return f"size_{atom.op}({', '.join(size_text(arg, symbols) for arg in atom.args)})"


def condition_text(program: Iterable[int | str], relation: str, names: Mapping[str, str]) -> str:
    """``program relation 0``, of a program in postfix order (``SymCondition``)."""
    stack: list[str] = []
    for item in program:
        if isinstance(item, int):
            stack.append(f"(wide){item}LL")
        elif item in ("neg", "not"):
            stack.append(f"({'-' if item == 'neg' else '!'}{stack.pop()})")
        elif item in _FUNCTIONS:
            right, left = stack.pop(), stack.pop()
            stack.append(f"size_{item}({left}, {right})")
        elif item in _OPERATORS:
            right, left = stack.pop(), stack.pop()
            stack.append(f"({left} {_OPERATORS[item]} {right})")
        else:
            stack.append(f"(wide)({names[item]})")
    (value,) = stack
    return f"{value} {relation} 0"
