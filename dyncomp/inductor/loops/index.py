"""Index expressions: integer affine arithmetic over loop axes, with quotients and remainders.

An :class:`Expr` is ``constant + sum(coefficient * atom)``; an atom is a loop :class:`AxisVar` or the
quotient or remainder of another expression by a dimension (what a reshape makes of an index). Quotients
and remainders simplify by the axes' ranges, and the pair ``c*d*(e // d) + c*(e % d)`` becomes ``c*e``, so
that a reshape of contiguous memory costs nothing. Coefficients may be symbolic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass
from ...graph.ir import contiguous_strides
from ...symbolic.integers import Dim, SymInt, make, same


@dataclass(frozen=True, slots=True)
class AxisVar:
    """A loop axis: its position runs over ``range(size)``."""

    name: str
    size: Dim

    def __hash__(self) -> int:
        return hash(self.name)  # all arithmetic of indices goes through this: quick


@dataclass(frozen=True, slots=True)
class Quotient:
    """``expr // divisor`` (floor) of a non-negative expression."""

    expr: Expr
    divisor: Dim


@dataclass(frozen=True, slots=True)
class Remainder:
    """``expr % divisor`` of a non-negative expression."""

    expr: Expr
    divisor: Dim


Atom = AxisVar | Quotient | Remainder


def _is_zero(value: Dim) -> bool:
    return isinstance(value, int) and value == 0


class Expr:
    """See the module's docstring. Immutable; equal by structure."""

    __slots__ = ("terms", "constant", "_key")

    def __init__(self, terms: Mapping[Atom, Dim], constant: Dim = 0) -> None:
        self.terms = {atom: c for atom, c in terms.items() if not isinstance(c, int) or c}
        self.constant = constant
        self._key: Any = None

    @property
    def key(self) -> Any:
        if self._key is None:
            self._key = (frozenset((a, _dim_key(c)) for a, c in self.terms.items()), _dim_key(self.constant))
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        parts = [f"{c}*{_atom_text(a)}" for a, c in self.terms.items()]
        return " + ".join([*parts, str(self.constant)])

    def __add__(self, other: Expr | Dim) -> Expr:
        if not isinstance(other, Expr):
            return Expr(self.terms, self.constant + other)
        return _combined(((self, 1), (other, 1)), 0)

    __radd__ = __add__

    def __mul__(self, factor: Dim) -> Expr:
        if _is_zero(factor):
            return ZERO
        return Expr({a: c * factor for a, c in self.terms.items()}, self.constant * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Expr | Dim) -> Expr:
        return self + (-other)

    def __rsub__(self, other: Dim) -> Expr:  # type: ignore[misc]
        return -self + other

    @property
    def single_axis(self) -> AxisVar | None:
        """The axis, where the expression is just one axis."""
        if len(self.terms) != 1 or not _is_zero(self.constant):
            return None
        ((atom, c),) = self.terms.items()
        return atom if isinstance(atom, AxisVar) and isinstance(c, int) and c == 1 else None

    @property
    def is_affine(self) -> bool:
        """Whether only loop axes occur."""
        return all(isinstance(a, AxisVar) for a in self.terms)

    def axes(self) -> frozenset[str]:
        """Names of the loop axes that the value depends on."""
        found: set[str] = set()
        for atom in self.terms:
            found |= {atom.name} if isinstance(atom, AxisVar) else atom.expr.axes()
        return frozenset(found)

    def substitute(self, values: Mapping[str, Expr]) -> Expr:
        """Replace axes by expressions."""
        parts = [(_substitute_atom(atom, values), c) for atom, c in self.terms.items()]
        return simplify(_combined(parts, self.constant))


def _combined(parts: Iterable[tuple[Expr, Dim]], constant: Dim) -> Expr:
    """``constant + sum(factor * expr)``."""
    terms: dict[Atom, Dim] = {}
    for expr, factor in parts:
        constant = constant + expr.constant * factor
        for atom, c in expr.terms.items():
            known = terms.get(atom)
            terms[atom] = c * factor if known is None else known + c * factor
    return Expr(terms, constant)


ZERO = Expr({}, 0)


def _dim_key(dim: Dim) -> Any:
    return dim.key if isinstance(dim, SymInt) else dim


def _atom_text(atom: Atom) -> str:
    if isinstance(atom, AxisVar):
        return atom.name
    sign = "//" if isinstance(atom, Quotient) else "%"
    return f"(({atom.expr!r}) {sign} {atom.divisor})"


def _substitute_atom(atom: Atom, values: Mapping[str, Expr]) -> Expr:
    if isinstance(atom, AxisVar):
        found = values.get(atom.name)
        return axis_expr(atom) if found is None else found
    inner = atom.expr.substitute(values)
    return quotient(inner, atom.divisor) if isinstance(atom, Quotient) else remainder(inner, atom.divisor)


def axis_expr(axis: AxisVar) -> Expr:
    """The expression that is just one axis; an axis of size 1 is the constant 0."""
    if isinstance(axis.size, int) and axis.size == 1:
        return ZERO
    return Expr({axis: 1})


# -- division -----------------------------------------------------------------------------------
def divide_exact(value: Dim, divisor: Dim) -> Dim | None:
    """``value / divisor`` where it is structurally an integer, else ``None``; records no guard."""
    if isinstance(divisor, int):
        if isinstance(value, int):
            return value // divisor if divisor and value % divisor == 0 else None
        if divisor and value.constant % divisor == 0 and all(c % divisor == 0 for _, c in value.terms):
            return make({m: c // divisor for m, c in value.terms}, value.constant // divisor, value.env)
        return None
    if isinstance(value, int):
        return 0 if value == 0 else None
    if same(value, divisor):
        return 1
    return _divide_by_monomial(value, divisor)


def _divide_by_monomial(value: SymInt, divisor: SymInt) -> Dim | None:
    if len(divisor.terms) != 1 or divisor.constant or value.constant:
        return None
    ((monomial, scale),) = divisor.terms
    quotients: dict[Any, int] = {}
    constant = 0
    for term, c in value.terms:
        rest = list(term)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % scale:
            return None
        if rest:
            quotients[tuple(rest)] = c // scale
        else:
            constant = c // scale
    return make(quotients, constant, value.env)


def at_most(a: Dim, b: Dim) -> bool:
    """Whether ``a <= b`` for certain; records no guard."""
    difference = a - b
    if isinstance(difference, SymInt):
        return difference.env.known(difference, "<=") is True
    return difference <= 0


def upper_bound(expr: Expr) -> Dim | None:
    """An inclusive upper bound over the axes' ranges, where every coefficient is known non-negative."""
    total: Dim = expr.constant
    for atom, c in expr.terms.items():
        if not at_most(0, c):
            return None
        if isinstance(atom, AxisVar):
            total = total + c * (atom.size - 1)
        elif isinstance(atom, Remainder):
            total = total + c * (atom.divisor - 1)
        else:
            inner = upper_bound(atom.expr)
            if inner is None or not isinstance(inner, int) or not isinstance(atom.divisor, int):
                return None
            total = total + c * (inner // atom.divisor)
    return total


def value_range(expr: Expr) -> tuple[Dim, Dim] | None:
    """Inclusive bounds of an affine expression over the axes' ranges, for axes that are not empty."""
    low: Dim = expr.constant
    high: Dim = expr.constant
    for atom, c in expr.terms.items():
        if not isinstance(atom, AxisVar):
            return None
        if at_most(0, c):
            high = high + c * (atom.size - 1)
        elif at_most(c, 0):
            low = low + c * (atom.size - 1)
        else:
            return None
    return low, high


def _split(expr: Expr, divisor: Dim) -> tuple[Expr, Expr]:
    """``(q, r)`` with ``expr == q*divisor + r``, ``q`` as large as exact division of terms allows."""
    whole: dict[Atom, Dim] = {}
    rest: dict[Atom, Dim] = {}
    for atom, c in expr.terms.items():
        exact = divide_exact(c, divisor)
        if exact is None:
            rest[atom] = c
        else:
            whole[atom] = exact
    exact = divide_exact(expr.constant, divisor)
    if exact is not None:
        return Expr(whole, exact), Expr(rest, 0)
    if isinstance(expr.constant, int) and isinstance(divisor, int):
        return Expr(whole, expr.constant // divisor), Expr(rest, expr.constant % divisor)
    return Expr(whole, 0), Expr(rest, expr.constant)


def _fits(rest: Expr, divisor: Dim) -> bool:
    """Whether ``0 <= rest < divisor`` for certain."""
    if not at_most(0, rest.constant):
        return False
    bound = upper_bound(rest)
    return bound is not None and at_most(bound + 1, divisor)


def quotient(expr: Expr, divisor: Dim) -> Expr:
    """``expr // divisor`` for a non-negative ``expr`` and a positive ``divisor``."""
    whole, rest = _split(expr, divisor)
    if _fits(rest, divisor):
        return whole
    return whole + Expr({Quotient(rest, divisor): 1})


def remainder(expr: Expr, divisor: Dim) -> Expr:
    """``expr % divisor`` for a non-negative ``expr`` and a positive ``divisor``."""
    _, rest = _split(expr, divisor)
    if _fits(rest, divisor):
        return rest
    return Expr({Remainder(rest, divisor): 1})


def simplify(expr: Expr) -> Expr:
    """Join quotients and remainders of one expression, repeatedly:
    ``c*d*(e // d) + c*(e % d)`` is ``c*e``, and ``c*d*((f + e // d) % m) + c*(e % d)`` is
    ``c*((d*f + e) % (d*m))``."""
    for _ in range(len(expr.terms)):
        joined = _join_once(expr)
        if joined is None:
            break
        expr = joined
    return expr


def _join_once(expr: Expr) -> Expr | None:
    for atom, c in expr.terms.items():
        if not isinstance(atom, Remainder):
            continue
        high = c * atom.divisor
        part = Quotient(atom.expr, atom.divisor)
        for other, k in expr.terms.items():
            if other is atom or not same(k, high):
                continue
            if other == part:
                return _without(expr, atom, other) + atom.expr * c
            if isinstance(other, Remainder) and same(other.expr.terms.get(part, 0), 1):
                rest = other.expr - Expr({part: 1})
                whole = remainder(rest * atom.divisor + atom.expr, atom.divisor * other.divisor)
                return _without(expr, atom, other) + whole * c
    return None


def _without(expr: Expr, *atoms: Atom) -> Expr:
    return Expr({a: k for a, k in expr.terms.items() if a not in atoms}, expr.constant)


# -- whole indices ------------------------------------------------------------------------------
Index = tuple[Expr, ...]


def axis_vars(shape: Sequence[Dim], prefix: str = "d") -> tuple[AxisVar, ...]:
    """One axis per dimension, named by position."""
    return tuple(AxisVar(f"{prefix}{k}", size) for k, size in enumerate(shape))


def canonical(axes: Iterable[AxisVar]) -> Index:
    return tuple(axis_expr(a) for a in axes)


def linear(index: Sequence[Expr], strides: Sequence[Dim], offset: Dim = 0) -> Expr:
    """``offset + sum(stride * index)``, simplified."""
    return simplify(_combined(zip(index, strides), offset))


def reshape_index(index: Sequence[Expr], shape: Sequence[Dim], source: Sequence[Dim]) -> Index:
    """The index into ``source`` of element ``index`` of its C-order reshape to ``shape``."""
    if len(shape) == len(source) and all(same(a, b) for a, b in zip(shape, source)):
        return tuple(index)
    if any(isinstance(d, int) and d == 0 for d in (*shape, *source)):
        return (ZERO,) * len(source)
    ones = [k for k, d in enumerate(shape) if not _is_one(d)]
    source_dims = [k for k, d in enumerate(source) if not _is_one(d)]
    result = [ZERO] * len(source)
    for mine, theirs in _blocks([shape[k] for k in ones], [source[k] for k in source_dims]):
        _reshape_block([(index[ones[k]], shape[ones[k]]) for k in mine], source, source_dims, theirs, result)
    return tuple(result)


def _is_one(dim: Dim) -> bool:
    return isinstance(dim, int) and dim == 1


def _blocks(a: list[Dim], b: list[Dim]) -> list[tuple[range, range]]:
    """Split both shapes into the finest runs of equal products, in order."""
    blocks: list[tuple[range, range]] = []
    i = j = start_i = start_j = 0
    left: Dim = 1
    right: Dim = 1
    while i < len(a) or j < len(b):
        # grow the side that is behind; symbolic sizes: whichever side has fewer dimensions taken
        if i < len(a) and (j >= len(b) or not _ahead(left, right) or j > start_j and i == start_i):
            left = left * a[i]
            i += 1
        elif j < len(b):
            right = right * b[j]
            j += 1
        if i > start_i and j > start_j and same(left, right):
            blocks.append((range(start_i, i), range(start_j, j)))
            start_i, start_j, left, right = i, j, 1, 1
    if i > start_i or j > start_j:
        blocks.append((range(start_i, i), range(start_j, j)))
    return blocks


def _ahead(left: Dim, right: Dim) -> bool:
    """Whether the left product is at least the right one, by the hints."""
    return _hint(left) > _hint(right)


def _hint(value: Dim) -> int:
    return value.hint if isinstance(value, SymInt) else value


def _reshape_block(
    block: list[tuple[Expr, Dim]],
    source: Sequence[Dim],
    source_dims: Sequence[int],
    theirs: range,
    result: list[Expr],
) -> None:
    strides = contiguous_strides(tuple(size for _, size in block))
    position = linear([expr for expr, _ in block], strides)
    sizes = tuple(source[source_dims[k]] for k in theirs)
    for rank, (k, stride) in enumerate(zip(theirs, contiguous_strides(sizes))):
        value = quotient(position, stride) if not _is_one(stride) else position
        if rank:
            value = remainder(value, sizes[rank])
        result[source_dims[k]] = value
