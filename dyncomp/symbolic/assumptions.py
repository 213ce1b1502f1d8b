"""What was assumed of symbolic integers, as an answer to further questions about them (see ``integers``)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import Unsupported

if TYPE_CHECKING:
    from .integers import Dim, ShapeEnv, SymGuard, SymInt

_BRANCH = "data-dependent-branch"


_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">="}


def in_words(guard: SymGuard, names: Mapping[str, str]) -> str:
    """A ``SymGuard`` as people write it, with the symbols called as ``names`` says: ``len(x) >= 2``."""
    sides: tuple[list[str], list[str]] = ([], [])
    for monomial, coefficient in guard.expr.terms:
        body = "*".join(renamed(atom, names) for atom in monomial)
        factor = abs(coefficient)
        sides[coefficient < 0].append(body if factor == 1 else f"{factor}*{body}")
    relation = guard.relation
    left, right = sides
    number = guard.expr.constant
    if not left:
        left, right, relation, number = right, left, _FLIPPED[relation], -number
    if number > 0 and right:
        left.append(str(number))
    elif number or not right:
        right.append(str(-number))
    return f"{' + '.join(left)} {relation} {' + '.join(right)}"


def renamed(atom: object, names: Mapping[str, str]) -> str:
    """A size, or a part of one, as text with the symbols called as ``names`` says."""
    text = re.sub(r"\bs\d+\b", lambda match: names.get(match[0], match[0]), str(atom))
    return re.sub(r"(?<!\w)\(([\w.\[\]]+)\)", r"\1", text)  # no parentheses around single things


def from_guards(seen: set[tuple[Any, ...]], expr: SymInt, relation: str) -> bool | None:
    """Whether ``expr relation 0`` by the guards in ``seen``, which are pairs of key and relation."""
    common = math.gcd(expr.constant, *(coefficient for _, coefficient in expr.terms))
    if common > 1:
        terms = tuple((monomial, coefficient // common) for monomial, coefficient in expr.terms)
        found = from_guards(seen, type(expr)(terms, expr.constant // common, expr.env), relation)
        if found is not None:
            return found

    def holds(*relations: str) -> bool:
        return any((expr.key, r) in seen for r in relations)

    def holds_negated(*relations: str) -> bool:
        return any(((-expr).key, r) in seen for r in relations)

    equal = holds("==") or holds_negated("==")
    if relation in ("==", "!="):
        if equal:
            return relation == "=="
        unequal = holds("!=", "<") or holds_negated("!=", "<")
        return relation == "!=" if unequal else None
    if holds("<") or (relation == "<=" and (equal or holds("<="))):
        return True
    false = holds_negated("<") or (relation == "<" and (equal or holds_negated("<=")))
    return False if false else None


def agree(env: ShapeEnv, one: SymInt, other: SymInt) -> bool:
    """Whether a guard says that two symbols are equal."""
    difference = one - other
    return not isinstance(difference, int) and from_guards(env._seen, difference, "==") is True


def likely(env: ShapeEnv, expr: SymInt, relation: str) -> bool:
    """How it most likely is with a number that depends on the data: sizes agree, are not 0 nor 1, and not
    small. ``Unsupported`` where that does not say."""
    if env.presumed is not None:
        return bool(env.presumed)
    if not env.assuming:
        raise Unsupported(f"a question about {expr}, which depends on the data", break_id=_BRANCH)
    if relation in ("==", "!="):
        (_, coefficient), *more = expr.terms
        if more and any(not isinstance(atom, str) for monomial, _ in expr.terms for atom in monomial):
            return bool((expr.hint == 0) == (relation == "=="))  # of slices: as at the sizes that are guessed
        special = not more and (not expr.constant or expr.constant == -coefficient)
        return special == (relation == "!=")
    if not all(env.symbols[name].unbacked for name in expr.symbols()):
        raise Unsupported(f"a comparison of {expr}, which depends on the data", break_id=_BRANCH)
    return bool(expr.hint < 0 or (relation == "<=" and expr.hint == 0))


def if_several(expr: Dim) -> bool | None:
    """Whether ``expr <= 0`` if all sizes that depend on the data are at least two: strides of axes of size 0
    or 1 mean nothing. ``None`` where that is not known, or no such size is in it."""
    if isinstance(expr, int):
        return None
    unbacked = [name for name in expr.symbols() if expr.env.symbols[name].unbacked]
    if not unbacked:
        return None
    shifted = expr.substitute({name: expr.env.symbol(name) + 2 for name in unbacked})
    low, high = (shifted, shifted) if isinstance(shifted, int) else shifted.bounds()
    if high is not None and high <= 0:
        return True
    return False if low is not None and low > 0 else None


def test_of(guards: Sequence[Any]) -> Callable[[Mapping[str, int]], bool]:
    """Whether all of these ``SymGuard``s hold for given values of the symbols, as compiled code: for what is
    asked at every call."""
    if not guards:
        return lambda symbols: True
    code = compile(" and ".join(f"({guard.expr} {guard.relation} 0)" for guard in guards), "<guards>", "eval")
    return lambda symbols: bool(eval(code, _FUNCTIONS, symbols))


_FUNCTIONS: dict[str, Any] = {"__builtins__": {}, "min": min, "max": max}


def newly_known(guards: Iterable[Any], known: set[str], new: set[str]) -> list[Any]:
    """The guards that can be checked when the symbols ``new`` are known besides ``known``, and not before."""
    with_names = [(guard, guard.expr.symbols()) for guard in guards]
    return [guard for guard, names in with_names if names <= known | new and not names <= known]


@contextmanager
def settled(env: ShapeEnv, values: Mapping[str, int]) -> Iterator[list[Any]]:
    """While the symbols of a ``ShapeEnv`` have these values, which are known: for code that is made when a
    graph has run as far as that. Gives the guards that are recorded meanwhile."""
    kept = (dict(env.symbols), env.guards, env._seen)
    try:
        for name, value in values.items():
            env.symbols[name] = replace(env.symbols[name], hint=value, unbacked=False)
        env.guards, env._seen = [], set()
        yield env.guards
    finally:
        env.symbols.clear()
        env.symbols.update(kept[0])
        env.guards, env._seen = kept[1:]
