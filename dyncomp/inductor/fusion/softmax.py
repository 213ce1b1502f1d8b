"""Kernels of rows that are a softmax: what attention has between its two products."""

from __future__ import annotations

import numpy as np

from ...dataclass import dataclass
from ...dtypes import float32
from ...prims.scalar import SCALARS
from ..loops.loop_ir import Kernel, Stmt
from .epilogue import Tiled


@dataclass(frozen=True)
class Softmax:
    """A kernel of rows as ``softmax(factor * scores)``. ``scores``: the statement's name; ``before``: the
    statements that it takes; ``empty_is_zero``: rows of scores that are all -inf give 0 (else NaN).
    ``hidden_after``: in column ``row + hidden_after + 1`` and those behind it, -inf stands for the scores (in
    all others it does not, but for what they are themselves); ``None``: it stands nowhere."""

    scores: str
    before: tuple[Stmt, ...]
    empty_is_zero: bool
    hidden_after: int | None
    factor: float


def is_softmax(tiled: Tiled) -> bool:
    return find_softmax(tiled.kernel, tiled.sink) is not None


def find_softmax(kernel: Kernel, sink: int, exact: bool = False) -> Softmax | None:
    """The softmax that a kernel of rows computes into its buffer ``sink``, if it does nothing else.
    ``exact``: weights that are rounded to halves are none (products of halves round them anyway)."""
    effects = [s for s in kernel.body if not s.out]
    if len(effects) != 1 or effects[0].op != "store" or effects[0].arg[0] != kernel.buffers[sink].name:
        return None
    return _Matcher(kernel, exact).match(effects[0].args[0])


def hidden_columns(kernel: Kernel, name: str) -> int | None:
    """Where a value is ``where(column - row <= constant, …, -inf)``, the constant."""
    return _Matcher(kernel, False).hidden(name)[1]


class _Matcher:
    def __init__(self, kernel: Kernel, exact: bool) -> None:
        self.exact = exact
        self.by_name = {s.out: s for s in kernel.body if s.out}
        self.body = kernel.body

    def match(self, stored: str) -> Softmax | None:
        weights = self.behind_casts(stored)
        guard = None
        if weights.op == "where":
            chosen, zero, rest = (self.by_name[a] for a in weights.args)
            if not self.is_number(zero.out, 0.0):
                return None
            guard, weights = chosen, self.behind_casts(rest.out)
        if weights.op != "divide":
            return None
        term, total = (self.by_name[a] for a in weights.args)
        if term.op != "exp" or not self.reduces(total, "sum", term.out):
            return None
        shifted = self.by_name[term.args[0]]
        if shifted.op != "subtract" or shifted.dtype is not float32:
            return None
        scores, top = shifted.args
        if not self.reduces(self.by_name[top], "max", scores):
            return None
        if guard is not None and not self.is_lowest(guard, top):
            return None
        scores, hidden_after = self.hidden(scores)
        scores, factor = self.scaled(scores)
        before = self.needed(scores)
        if any(s.op == "reduce" for s in before):
            return None
        return Softmax(scores, before, guard is not None, hidden_after, factor)

    def scaled(self, name: str) -> tuple[str, float]:
        """A value as another times a positive number."""
        stmt = self.by_name[name]
        if stmt.op != "multiply" or stmt.dtype is not float32:
            return name, 1.0
        for one, other in (stmt.args, stmt.args[::-1]):
            number = self.by_name[other]
            if number.op == "const" and 0.0 < float(number.arg) < float("inf"):
                return one, float(number.arg)
        return name, 1.0

    def behind_casts(self, name: str) -> Stmt:
        """What a value was converted from, between floats, or is."""
        stmt = self.by_name[name]
        while stmt.op == "cast" and self.is_followed(stmt):
            stmt = self.by_name[stmt.args[0]]
        return stmt

    def is_followed(self, cast: Stmt) -> bool:
        source, target = self.by_name[cast.args[0]].dtype, cast.dtype
        between = source.is_float and target.is_float
        return bool(between and (not self.exact or np.can_cast(source.numpy, target.numpy)))

    def reduces(self, stmt: Stmt, combiner: str, source: str) -> bool:
        return stmt.op == "reduce" and stmt.arg[0] == combiner and stmt.args == (source,)

    def is_number(self, name: str, value: float) -> bool:
        stmt = self.behind_casts(name)
        return stmt.op == "const" and float(stmt.arg) == value

    def is_lowest(self, stmt: Stmt, top: str) -> bool:
        """Whether ``stmt`` asks whether the largest score of a row is -inf."""
        if stmt.op != "equal":
            return False
        one, other = stmt.args
        return (one == top and self.is_number(other, float("-inf"))) or (
            other == top and self.is_number(one, float("-inf"))
        )

    def needed(self, name: str) -> tuple[Stmt, ...]:
        wanted = {name}
        found: list[Stmt] = []
        for stmt in reversed(self.body):
            if stmt.out in wanted and stmt.out:
                wanted.update(stmt.args)
                found.append(stmt)
        return tuple(reversed(found))

    # -- causality ----------------------------------------------------------------------------
    def hidden(self, name: str) -> tuple[str, int | None]:
        """Scores without their ``where(column - row <= constant, scores, -inf)``, and the constant."""
        stmt = self.by_name[name]
        if stmt.op != "where":
            return name, None
        condition, one, other = stmt.args
        for shown, lowest, holds in ((one, other, True), (other, one, False)):
            if self.is_number(lowest, float("-inf")):
                bound = self.bound(condition, holds)
                if bound is not None:
                    return shown, bound
        return name, None

    def bound(self, name: str, holds: bool = True) -> int | None:
        """The largest ``column - row`` for which a condition holds (or does not hold), where it is one of
        positions."""
        stmt = self.by_name[name]
        if stmt.op == "logical_not":
            return self.bound(stmt.args[0], not holds)
        if stmt.op == "where" and stmt.dtype.is_bool:
            condition, true, false = stmt.args
            known = self.is_number(true, 1) and self.is_number(false, 0)
            return self.bound(condition, holds) if known else None
        if stmt.op == "equal":
            # where(seen, 1, 0) == 1
            inner, one = (self.by_name[a] for a in stmt.args)
            if inner.op != "where" or inner.args[1] != one.out or not self.is_number(one.out, 1.0):
                return None
            return self.bound(inner.args[0], holds) if self.is_number(inner.args[2], 0.0) else None
        row = SCALARS.get(stmt.op)
        if row is None or not row.negation:
            return None
        order = stmt.op if holds else row.negation
        sign = -1 if order.startswith("greater") else 1
        extra = 0 if order.endswith("_equal") else -1
        left, right = (self.position(a) for a in stmt.args)
        if left is None or right is None:
            return None
        # sign * (left - right) <= extra, in columns, rows and a constant
        columns, rows, constant = (sign * (a - b) for a, b in zip(left, right))
        return extra - constant if (columns, rows) == (1, -1) else None

    def position(self, name: str) -> tuple[int, int, int] | None:
        """How often a value has the column's and the row's position, and what is added to them."""
        stmt = self.by_name[name]
        if stmt.op == "const" and isinstance(stmt.arg, int):
            return (0, 0, stmt.arg)
        if stmt.op == "add" and stmt.args == (f"{name}_from", f"{name}_in"):
            return (1, 0, 0) if self.by_name[f"{name}_in"].arg == "c" else (0, 1, 0)
        if stmt.op in ("add", "subtract"):
            left, right = (self.position(a) for a in stmt.args)
            if left is None or right is None:
                return None
            sign = 1 if stmt.op == "add" else -1
            columns, rows, constant = (a + sign * b for a, b in zip(left, right))
            return (columns, rows, constant)
        return None
