"""Symbolic integers: sizes and loop counters that are not known when code is generated.

A :class:`SymInt` is an integer polynomial over *atoms* (symbols, or calls of ``floordiv``, ``mod``,
``min``, ``max`` on other symbolic integers), kept in a canonical form so that equal expressions
compare and hash equal. It belongs to a :class:`ShapeEnv`, which knows for each symbol the value seen
at capture (the *hint*) and bounds.

Asking a question that the form and the bounds cannot answer (``n < m``, ``if n:``) answers it with the
hints and *records the answer as a guard*, so ordinary Python written for integers stays right for
symbolic ones: at worst it is specialised more than needed. ``int(n)`` pins the value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

from ..dataclass import dataclass, field
from ..errors import Unsupported
from .assumptions import from_guards, likely

Atom = Union[str, "Call"]
Monomial = tuple[Atom, ...]
Dim = Union[int, "SymInt"]

INT64_MAX = 2**63 - 1
UNBACKED_HINT = 64  # for estimates
_VALUE = "data-dependent-value"
_LARGEST = 100  # calls in a formula: what is asked of it visits each, and n % d of a long n doubles it


@dataclass(frozen=True)
class Call:
    """An opaque integer function of symbolic integers: ``op`` in floordiv, mod, min, max."""

    op: str
    args: tuple[Dim, ...]
    size: int = field(default=1, compare=False)  # how many calls it is made of, written out

    def __str__(self) -> str:
        if self.op in ("min", "max"):
            return f"{self.op}({', '.join(map(str, self.args))})"
        sign = "//" if self.op == "floordiv" else "%"
        return f"(({self.args[0]}) {sign} ({self.args[1]}))"

    def __eq__(self, other: object) -> bool:
        """Structural equality: asks nothing of sizes."""
        return isinstance(other, Call) and self.op == other.op and all(map(same, self.args, other.args))


_EVALUATE: dict[str, Callable[..., int]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}


def _atom_key(atom: Atom) -> str:
    return atom if isinstance(atom, str) else str(atom)


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    return (len(monomial), tuple(map(_atom_key, monomial)))


@dataclass(frozen=True)
class SymGuard:
    """``expr relation 0`` held when code was captured; ``relation`` in ``== != < <=``."""

    expr: SymInt
    relation: str

    def __str__(self) -> str:
        return f"{self.expr} {self.relation} 0"

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.expr.key, self.relation)

    @property
    def fixes(self) -> bool:
        """Whether only one value of a single symbol satisfies it."""
        return self.relation == "==" and len(self.expr.terms) == 1 and len(self.expr.symbols()) == 1

    def holds(self, values: Mapping[str, int]) -> bool:
        return _RELATIONS[self.relation](self.expr.evaluate(values), 0)


_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass
class SymbolInfo:
    """What is known of one symbol: its value at capture and inclusive bounds (None: unbounded).
    ``unbacked``: the value depends on the data, so that it is not known before the graph has run that far;
    its hint is a guess for estimates, and no question is answered by it."""

    name: str
    hint: int
    low: int | None = None
    high: int | None = None
    unbacked: bool = False


@dataclass
class ShapeEnv:
    """The symbols of one capture and the guards that were recorded about them.

    Guards on unbacked symbols are checked by the graph when it runs; else the original runs. They are
    recorded only while ``assuming`` is set (a library's rule runs: sizes are not 0 or 1, and agree with
    one another), or with the answer ``presumed`` (with the other one the program raises)."""

    symbols: dict[str, SymbolInfo] = field(default_factory=dict)
    guards: list[SymGuard] = field(default_factory=list)
    _seen: set[tuple[Any, ...]] = field(default_factory=set)
    assuming: bool = field(default=False, compare=False, repr=False)
    presumed: bool | None = field(default=None, compare=False, repr=False)
    # asked for the user's place, and for the instruction, whenever a guard is recorded
    locate: Callable[[], tuple[Any, Any]] | None = field(default=None, compare=False, repr=False)
    origins: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False, repr=False)
    instructions: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False, repr=False)
    failed: SymGuard | None = field(default=None, compare=False, repr=False)  # in the last run of the graph

    def new_symbol(self, hint: int, *, low: int | None = None, high: int | None = None) -> SymInt:
        """A fresh symbol with the given value at capture and bounds."""
        name = f"s{len(self.symbols)}"
        self.symbols[name] = SymbolInfo(name, hint, low, high)
        return self.symbol(name)

    def new_unbacked(self, *, low: int = 0, high: int | None = None) -> SymInt:
        """A fresh symbol for a number that depends on the data."""
        symbol = self.new_symbol(max(low, UNBACKED_HINT), low=low, high=high)
        self.symbols[str(symbol)].unbacked = True
        return symbol

    def is_unbacked(self, expr: Dim) -> bool:
        """Whether an unbacked symbol occurs in ``expr``."""
        return isinstance(expr, SymInt) and any(self.symbols[name].unbacked for name in expr.symbols())

    def unbacked_guards(self) -> list[SymGuard]:
        """What the graph has to check when it runs."""
        return [guard for guard in self.guards if self.is_unbacked(guard.expr)]

    def forget(self, count: int) -> None:
        """Drop what was assumed of unbacked symbols since there were ``count`` guards."""
        later = self.guards[count:]
        self.guards[count:] = [g for g in later if not self.is_unbacked(g.expr)]
        self._seen.difference_update(g.key for g in later if self.is_unbacked(g.expr))

    def assume(self, expr: Dim, relation: str) -> None:
        """Have ``expr relation 0`` hold, by a guard where it is not certain; else ``Unsupported``."""
        known = self.known(expr, relation)
        if known is None and isinstance(expr, SymInt):
            known = True if self.is_unbacked(expr) else _RELATIONS[relation](expr.hint, 0)
            self._record(expr, relation, known)
        if not known:
            raise Unsupported(f"{expr} {relation} 0 does not hold", break_id="data-dependent-shape")

    def symbol(self, name: str) -> SymInt:
        """The symbolic integer that is just the symbol ``name``."""
        return SymInt((((name,), 1),), 0, self)

    @property
    def hints(self) -> dict[str, int]:
        return {name: info.hint for name, info in self.symbols.items()}

    def decide(self, expr: Dim, relation: str) -> bool:
        """Whether ``expr relation 0``, recording a guard where only the hint could tell."""
        if isinstance(expr, int):
            return _RELATIONS[relation](expr, 0)
        known = self.known(expr, relation)
        if known is not None:
            return known
        unbacked = self.is_unbacked(expr)
        answer = likely(self, expr, relation) if unbacked else _RELATIONS[relation](expr.hint, 0)
        self._record(expr, relation, answer)
        return answer

    def expect(self, expr: Dim) -> bool:
        """Whether ``expr == 0``, without which the program raises: assumed of what depends on the data."""
        if not depends_on_data(expr) or self.known(expr, "==") is not None:
            return self.decide(expr, "==")
        assert isinstance(expr, SymInt)
        self._record(expr, "==", True)
        return True

    def known(self, expr: Dim, relation: str) -> bool | None:
        """Like :meth:`decide` but ``None`` instead of a guard where it is not certain."""
        if isinstance(expr, int):
            return _RELATIONS[relation](expr, 0)
        found = self._from_bounds(expr, relation)
        return from_guards(self._seen, expr, relation) if found is None and self.is_unbacked(expr) else found

    def _from_bounds(self, expr: SymInt, relation: str) -> bool | None:
        low, high = expr.bounds()
        if relation in ("==", "!="):
            if (low is not None and low > 0) or (high is not None and high < 0):
                return relation == "!="
            return None
        strict = relation == "<"
        if high is not None and (high < 0 if strict else high <= 0):
            return True
        if low is not None and (low >= 0 if strict else low > 0):
            return False
        return None

    def _record(self, expr: SymInt, relation: str, answer: bool) -> None:
        if not answer:
            # not (e < 0)  <=>  -e <= 0 ; not (e <= 0)  <=>  -e < 0
            negation = {"==": (expr, "!="), "!=": (expr, "=="), "<": (-expr, "<="), "<=": (-expr, "<")}
            guarded, relation = negation[relation]
            assert isinstance(guarded, SymInt)
            expr = guarded
        key = (expr.key, relation)
        if key not in self._seen:
            self._seen.add(key)
            self._add(SymGuard(expr, relation))

    def _add(self, guard: SymGuard) -> None:
        self.guards.append(guard)
        place, instruction = self.locate() if self.locate is not None else (None, None)
        if place is not None:
            self.origins[guard.key] = place
        if self.presumed is None:  # else the program raises
            self.instructions[guard.key] = instruction


def make(terms: Mapping[Monomial, int], constant: int, env: ShapeEnv) -> Dim:
    """The canonical :class:`SymInt`, or a plain ``int`` where no term is left."""
    kept = [(monomial, c) for monomial, c in terms.items() if c]
    if not kept:
        return constant
    kept.sort(key=lambda item: _monomial_key(item[0]))
    return SymInt(tuple(kept), constant, env)


class SymInt:
    """An integer polynomial; see the module's docstring. Immutable."""

    __slots__ = ("terms", "constant", "env")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...], constant: int, env: ShapeEnv) -> None:
        self.terms = terms
        self.constant = constant
        self.env = env

    # -- identity -----------------------------------------------------------------------------
    @property
    def key(self) -> tuple[Any, ...]:
        """Structural identity, hashable."""
        return (self.terms, self.constant)

    def __hash__(self) -> int:
        return hash(self.key)

    def same(self, other: object) -> bool:
        """Structural equality: never records a guard."""
        return isinstance(other, SymInt) and self.key == other.key

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            body = "*".join(map(str, monomial))
            if coefficient == 1:
                parts.append(body)
            elif coefficient == -1:
                parts.append(f"-{body}")
            else:
                parts.append(f"{coefficient}*{body}")
        if self.constant:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    # -- evaluation ---------------------------------------------------------------------------
    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value for given symbol values."""
        total = self.constant
        for monomial, coefficient in self.terms:
            product = coefficient
            for atom in monomial:
                product *= values[atom] if isinstance(atom, str) else _evaluate_call(atom, values)
            total += product
        return total

    @property
    def hint(self) -> int:
        """The value at capture."""
        return self.evaluate(self.env.hints)

    def symbols(self) -> set[str]:
        """Names of the symbols that occur, also inside calls."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                found |= {atom} if isinstance(atom, str) else _call_symbols(atom)
        return found

    def bounds(self) -> tuple[int | None, int | None]:
        """Inclusive bounds that follow from the symbols' bounds (None: unbounded)."""
        low: int | None = self.constant
        high: int | None = self.constant
        for monomial, coefficient in self.terms:
            term_low, term_high = _monomial_bounds(monomial, self.env)
            if coefficient < 0:
                term_low, term_high = term_high, term_low
            low = None if low is None or term_low is None else low + coefficient * term_low
            high = None if high is None or term_high is None else high + coefficient * term_high
        return low, high

    def postfix(self) -> Iterator[int | str]:
        """A stack program: integers push, symbol names push, operator names (``add mul floordiv mod
        min max``) combine the top two."""
        yield self.constant
        for monomial, coefficient in self.terms:
            yield coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    yield atom
                else:
                    yield from _call_postfix(atom)
                yield "mul"
            yield "add"

    def substitute(self, values: Mapping[str, Dim]) -> Dim:
        """Replace symbols by integers or other symbolic integers."""
        total: Dim = self.constant
        for monomial, coefficient in self.terms:
            product: Dim = coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    product = product * values.get(atom, self.env.symbol(atom))
                else:
                    args = [a.substitute(values) if isinstance(a, SymInt) else a for a in atom.args]
                    product = product * _call(atom.op, args, self.env)
            total = total + product
        return total

    # -- arithmetic ---------------------------------------------------------------------------
    def __add__(self, other: object) -> Dim:
        if isinstance(other, bool) or not isinstance(other, (int, SymInt)):
            return self + int(other) if isinstance(other, bool) else NotImplemented
        if isinstance(other, int):
            return SymInt(self.terms, self.constant + other, self.env)
        terms = dict(self.terms)
        for monomial, coefficient in other.terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return make(terms, self.constant + other.constant, self.env)

    __radd__ = __add__

    def __neg__(self) -> SymInt:
        return SymInt(tuple((m, -c) for m, c in self.terms), -self.constant, self.env)

    def __pos__(self) -> SymInt:
        return self

    def __sub__(self, other: object) -> Dim:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return self + (-other)

    def __rsub__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return -self + other

    def __mul__(self, other: object) -> Dim:
        if isinstance(other, int):
            scale = int(other)
            return make({m: c * scale for m, c in self.terms}, self.constant * scale, self.env)
        if not isinstance(other, SymInt):
            return NotImplemented
        terms: dict[Monomial, int] = {}
        left = (*self.terms, ((), self.constant))
        right = (*other.terms, ((), other.constant))
        for m1, c1 in left:
            for m2, c2 in right:
                monomial = tuple(sorted(m1 + m2, key=_atom_key))
                terms[monomial] = terms.get(monomial, 0) + c1 * c2
        constant = terms.pop((), 0)
        return make(terms, constant, self.env)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Dim:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return _call("floordiv", [self, other], self.env)

    def __rfloordiv__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return _call("floordiv", [other, self], self.env)

    def __mod__(self, other: object) -> Dim:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return _call("mod", [self, other], self.env)

    def __rmod__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return _call("mod", [other, self], self.env)

    def __abs__(self) -> Dim:
        return -self if self < 0 else self

    # -- questions (may record a guard) -------------------------------------------------------
    def _ask(self, other: object, relation: str) -> Any:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return self.env.decide(self - other, relation)

    def __eq__(self, other: object) -> Any:
        return self._ask(other, "==")

    def __ne__(self, other: object) -> Any:
        return self._ask(other, "!=")

    def __lt__(self, other: object) -> Any:
        return self._ask(other, "<")

    def __le__(self, other: object) -> Any:
        return self._ask(other, "<=")

    def __gt__(self, other: object) -> Any:
        answer = self._ask(other, "<=")
        return answer if answer is NotImplemented else not answer

    def __ge__(self, other: object) -> Any:
        answer = self._ask(other, "<")
        return answer if answer is NotImplemented else not answer

    def __bool__(self) -> bool:
        return self.env.decide(self, "!=")

    def __index__(self) -> int:
        """Pin the value: code made from here on holds for this value only."""
        if self.env.is_unbacked(self):
            raise Unsupported(f"{self}, which depends on the data, as a constant", break_id=_VALUE)
        value = self.hint
        self.env.decide(self - value, "==")
        return value

    __int__ = __index__


def _evaluate_call(call: Call, values: Mapping[str, int]) -> int:
    args = [a.evaluate(values) if isinstance(a, SymInt) else a for a in call.args]
    return _EVALUATE[call.op](*args)


def _call_symbols(call: Call) -> set[str]:
    found: set[str] = set()
    for arg in call.args:
        if isinstance(arg, SymInt):
            found |= arg.symbols()
    return found


def _call_postfix(call: Call) -> Iterator[int | str]:
    for position, arg in enumerate(call.args):
        if isinstance(arg, SymInt):
            yield from arg.postfix()
        else:
            yield arg
        if position:
            yield call.op


def _atom_bounds(atom: Atom, env: ShapeEnv) -> tuple[int | None, int | None]:
    if isinstance(atom, str):
        info = env.symbols[atom]
        return info.low, info.high
    bounds = [a.bounds() if isinstance(a, SymInt) else (a, a) for a in atom.args]
    if atom.op == "mod" and isinstance(atom.args[1], int) and atom.args[1] > 0:
        return 0, atom.args[1] - 1
    if atom.op == "floordiv" and isinstance(atom.args[1], int) and atom.args[1] > 0:
        return tuple(None if b is None else b // atom.args[1] for b in bounds[0])  # type: ignore[return-value]
    if atom.op == "max":
        lows = [low for low, _ in bounds if low is not None]
        highs = [high for _, high in bounds]
        return (max(lows) if lows else None), (None if None in highs else max(highs))  # type: ignore[type-var]
    if atom.op == "min":
        lows_all = [low for low, _ in bounds]
        known = [high for _, high in bounds if high is not None]
        return (None if None in lows_all else min(lows_all)), (min(known) if known else None)  # type: ignore[type-var]
    return None, None


def _monomial_bounds(monomial: Monomial, env: ShapeEnv) -> tuple[int | None, int | None]:
    low: int | None = 1
    high: int | None = 1
    for atom in monomial:
        atom_low, atom_high = _atom_bounds(atom, env)
        if len(monomial) == 1:
            return atom_low, atom_high
        if low is None or atom_low is None or atom_low < 0 or low < 0:
            return None, None
        low = low * atom_low
        high = None if high is None or atom_high is None else high * atom_high
    return low, high


def _call(op: str, args: list[Dim], env: ShapeEnv) -> Dim:
    if all(isinstance(a, int) for a in args):
        return _EVALUATE[op](*args)
    if op in ("floordiv", "mod"):
        return _divide(op, args[0], args[1], env)
    return _opaque(op, tuple(args), env)


def _divide(op: str, numerator: Dim, divisor: Dim, env: ShapeEnv) -> Dim:
    if isinstance(divisor, SymInt) and isinstance(numerator, SymInt) and numerator.key == divisor.key:
        if env.decide(divisor, "!="):
            return 1 if op == "floordiv" else 0
    if isinstance(divisor, int):
        if divisor == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        assert isinstance(numerator, SymInt)
        if divisor == 1:
            return numerator if op == "floordiv" else 0
        if all(c % divisor == 0 for _, c in numerator.terms):
            # (d*q + r) // d == q + r // d for any integer q
            if op == "mod":
                return numerator.constant % divisor
            quotient = {m: c // divisor for m, c in numerator.terms}
            return make(quotient, numerator.constant // divisor, env)
    elif not env.decide(divisor, "!="):
        raise ZeroDivisionError("integer division or modulo by zero")
    elif (exact := _exact_quotient(numerator, divisor)) is not None:
        return exact if op == "floordiv" else 0
    return _opaque(op, (numerator, divisor), env)


def _exact_quotient(numerator: Dim, divisor: Dim) -> Dim | None:
    """``numerator / divisor`` where the divisor is one term, which is a factor of each of the numerator's."""
    if not isinstance(numerator, SymInt) or not isinstance(divisor, SymInt):
        return None
    if numerator.constant or divisor.constant or len(divisor.terms) != 1:
        return None
    ((factor, scale),) = divisor.terms
    quotient: dict[Monomial, int] = {}
    for monomial, count in numerator.terms:
        left = list(monomial)
        for atom in factor:
            if atom not in left:
                return None
            left.remove(atom)
        if count % scale:
            return None
        quotient[tuple(left)] = count // scale
    constant = quotient.pop((), 0)
    return make(quotient, constant, numerator.env)


def _opaque(op: str, args: tuple[Dim, ...], env: ShapeEnv) -> Dim:
    inside = [atom for a in args if isinstance(a, SymInt) for monomial, _ in a.terms for atom in monomial]
    if (size := 1 + sum(atom.size for atom in inside if isinstance(atom, Call))) > _LARGEST:
        raise Unsupported("an integer whose formula grows with each operation", break_id=_VALUE)
    return make({(Call(op, args, size),): 1}, 0, env)


# -- helpers for code that handles both -------------------------------------------------------


def is_unbacked(value: object) -> bool:
    """Whether it depends on the data."""
    return isinstance(value, SymInt) and value.env.is_unbacked(value)


def hint(value: Dim) -> int:
    """The value at capture of an integer that may be symbolic."""
    return value.hint if isinstance(value, SymInt) else value


def depends_on_data(value: Dim) -> bool:
    """Whether an unbacked symbol occurs in it."""
    return isinstance(value, SymInt) and value.env.is_unbacked(value)


def same(a: Dim, b: Dim) -> bool:
    """Structurally equal; records nothing."""
    if isinstance(a, SymInt):
        return a.same(b)
    return not isinstance(b, SymInt) and a == b


def _env_of(*values: Dim) -> ShapeEnv | None:
    for value in values:
        if isinstance(value, SymInt):
            return value.env
    return None


def sym_min(a: Dim, b: Dim) -> Dim:
    """``min`` that stays symbolic; records no guard."""
    return _extreme("min", a, b)


def sym_max(a: Dim, b: Dim) -> Dim:
    """``max`` that stays symbolic; records no guard."""
    return _extreme("max", a, b)


def _extreme(op: str, a: Dim, b: Dim) -> Dim:
    env = _env_of(a, b)
    if env is None:
        return _EVALUATE[op](a, b)
    less = env.known(a - b, "<=")
    if less is None and env.known(b - a, "<="):
        less = False
    if less is not None:
        return a if less == (op == "min") else b
    return _call(op, [a, b], env)


def product(values: Any) -> Dim:
    """Product of dimensions (1 for none)."""
    total: Dim = 1
    for value in values:
        total = total * value
    return total
