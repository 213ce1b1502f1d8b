"""Sums and products that a loop over numbers steps through evenly: where they lead is known before it starts.

A *form* is a polynomial in symbols: the current numbers of the iterators on the stack, and locals that an
innermost loop does not assign. In the number of that loop it is linear, so that all it gives lies between
what the first and the last number give; these are looked at once, when the loop is entered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Symbol = tuple[Any, ...]
"""``("item", depth)``: the current number of the iterator at that depth of the stack; ``("held", local,
depth)``: what the local holds, as long as that iterator is on the stack; ``("shifted", form, bits, depth)``:
a sum of such, of iterators up to that depth, without its lowest bits (``n // 2``)."""
Monomial = tuple[Symbol, ...]

_MOST_TERMS = 4
_HIGHEST_DEGREE = 3
_NEAR = 2**20  # coefficients and offsets
_FAR, _NARROW = 2**40, 2**31  # locals in sums, and in products: nothing overflows (128 bits for products)


class Form(NamedTuple):
    """``terms``: products of symbols and their coefficients, sorted."""

    terms: tuple[tuple[Monomial, int], ...]
    offset: int

    @property
    def degree(self) -> int:
        return max((len(monomial) for monomial, _ in self.terms), default=0)

    @property
    def symbols(self) -> frozenset[Symbol]:
        return frozenset(symbol for monomial, _ in self.terms for symbol in monomial)


def symbol(found: Symbol) -> Form:
    return Form((((found,), 1),), 0)


def combine(op: str, x: Form, y: Form) -> Form | None:
    """``x op y`` for + - *; None where it is no form."""
    terms: Counter[Monomial] = Counter()
    if op == "*":
        for monomial, number in _all_terms(x):
            for other, factor in _all_terms(y):
                terms[tuple(sorted((*monomial, *other)))] += number * factor
    else:
        terms.update(dict(_all_terms(x)))
        sign = 1 if op == "+" else -1
        terms.update({monomial: sign * number for monomial, number in _all_terms(y)})
    offset = terms.pop((), 0)
    found = Form(tuple(sorted((m, c) for m, c in terms.items() if c)), offset)
    small = all(abs(c) < _NEAR for _, c in found.terms) and abs(offset) < _NEAR
    return found if small and len(found.terms) <= _MOST_TERMS and found.degree <= _HIGHEST_DEGREE else None


def _all_terms(form: Form) -> Iterable[tuple[Monomial, int]]:
    return [*form.terms, ((), form.offset)]


def is_linear(form: Form, item: Symbol) -> bool:
    if any(found[0] == "shifted" and item in found[1].symbols for found in form.symbols):
        return False
    return all(monomial.count(item) <= 1 for monomial, _ in form.terms)


def shifted(form: Form, bits: int) -> Form | None:
    """``form >> bits``; None where it is no form."""
    plain = form.terms and form.degree == 1 and not any(found[0] == "shifted" for found in form.symbols)
    if not plain:
        return None
    return symbol(("shifted", form, bits, max(found[-1] for found in form.symbols)))


class Bounds:
    """Conditions on forms within one loop. ``item``: its number, ``first`` and ``last`` in C; ``sign`` of its
    steps; ``text`` and ``low`` of symbols (None: not known)."""

    def __init__(
        self,
        item: Symbol,
        first: str,
        last: str,
        sign: int,
        text: Callable[[Symbol], str],
        low: Callable[[Symbol], int | None],
    ) -> None:
        self.item = item
        self.first = first
        self.last = last
        self.sign = sign
        self.text = text
        self.low = low
        self.found: dict[str, None] = {}

    def within(self, form: Form, size: str) -> None:
        """All of it is from 0 up to ``size``."""
        self._symbols(form)
        slope = self._slope(form)
        first, last = self._value(form, self.first), self._value(form, self.last)
        if slope == 0:
            self._add(f"{first} >= 0 && {first} < {size}" if form.degree > 1 else _inside(first, size))
        elif slope is None:
            self._add(f"{first} >= 0 && {first} < {size}")
            self._add(f"{last} >= 0 && {last} < {size}")
        else:
            low, high = (first, last) if slope * self.sign > 0 else (last, first)
            if not self._is_natural(form):
                self._add(f"{low} >= 0")
            self._add(f"{high} < {size}")

    def fits(self, form: Form) -> None:
        """All of it is an integer of 63 bits; sums of small numbers are."""
        self._symbols(form)
        if form.degree > 1:
            for end in dict.fromkeys((self._value(form, self.first), self._value(form, self.last))):
                self._add(f"{end} > -{2**62}LL && {end} < {2**62}LL")

    def _add(self, condition: str) -> None:
        self.found[condition] = None

    def _symbols(self, form: Form) -> None:
        limit = _FAR if form.degree <= 1 else _NARROW
        for found in sorted(form.symbols):
            if found[0] == "shifted":
                self._symbols(found[1])
            if found[0] != "item":
                self._add(f"(u64){self._text(found)} + {limit}ULL < {2 * limit}ULL")

    def _text(self, found: Symbol) -> str:
        if found[0] == "shifted":
            return f"({self._value(found[1], '')} >> {found[2]})"
        return self.text(found)

    def _low(self, found: Symbol) -> int | None:
        if found[0] == "shifted":
            return 0 if self._is_natural(found[1]) else None
        return self.low(found)

    def _slope(self, form: Form) -> int | None:
        """The coefficient of the loop's own number; None where it is none of known sign."""
        found = 0
        for monomial, number in form.terms:
            if self.item in monomial:
                if len(monomial) > 1:
                    return None
                found = number
        return found

    def _value(self, form: Form, item: str) -> str:
        products = []
        for monomial, number in form.terms:
            factors = [item if found == self.item else self._text(found) for found in monomial]
            if form.degree > 1:
                factors[0] = f"(__int128){factors[0]}"
            if number != 1:
                factors.append(f"{number}LL")
            products.append(" * ".join(factors))
        if form.offset or not products:
            products.append(f"{form.offset}LL")
        return f"({' + '.join(products)})"

    def _is_natural(self, form: Form) -> bool:
        """Whether it is never negative, as nothing in it is."""
        if form.offset < 0 or any(number < 0 for _, number in form.terms):
            return False
        lows = [self._low(found) for found in form.symbols]
        return all(low is not None and low >= 0 for low in lows)


def _inside(text: str, size: str) -> str:
    return f"(u64){text} < (u64){size}"
