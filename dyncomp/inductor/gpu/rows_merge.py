"""Kernels of rows that are one function of a tile, with what they reduce along rows: the middle of the
backward pass of attention.

The matrices that products make of a tile, and what kernels make of these, are values in registers. A
reduction along rows is a *statistic*: it is found in a pass of its own over all columns, and later passes
read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...dataclass import dataclass, field
from ...dtypes import DType, float32
from ...symbolic.integers import SymInt
from ..fusion.softmax import hidden_columns
from ..loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt

Held = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Statistic:
    """A reduction along rows. ``name``: of its statement; ``kind``: ``max`` or ``sum``; ``source``: what is
    reduced; ``level``: the number of its pass; ``top``: of a sum of ``exp(x - top)``, the maximum of x, which
    is found in the same pass."""

    name: str
    kind: str
    source: str
    level: int
    top: str = ""


@dataclass
class Merged:
    """One function of a tile. ``made``: names of the values of matrices; ``statistics`` in order."""

    body: list[Stmt] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    made: dict[int, str] = field(default_factory=dict)
    statistics: list[Statistic] = field(default_factory=list)
    size: SymInt | None = None
    by_name: dict[str, Stmt] = field(default_factory=dict)

    def add(self, stmt: Stmt) -> None:
        self.body.append(stmt)
        self.by_name[stmt.out] = stmt

    def needed(self, targets: Sequence[str]) -> list[Stmt]:
        """The statements that ``targets`` take, beginning with matrices and statistics."""
        wanted = {*targets}
        found = []
        for stmt in reversed(self.body):
            if stmt.out in wanted:
                found.append(stmt)
                if stmt.op != "reduce":
                    wanted.update(stmt.args)
        return found[::-1]

    def tile(self, targets: Sequence[str]) -> Kernel:
        """A kernel that stores ``targets`` in buffers ``want_…`` and reads statistics from ``stat_…``."""
        assert self.size is not None
        env = self.size.env
        place = Index((("c", 1), ("r", env.symbol("tile_row"))), 0)
        body = [_from_statistic(stmt) for stmt in self.needed(targets)]
        buffers = dict(self.buffers)
        for stmt in body:
            if stmt.op == "load" and stmt.arg[0] not in buffers:
                buffers[stmt.arg[0]] = Buffer(stmt.arg[0], stmt.dtype, 1, "in")
        for name in targets:
            dtype = self.by_name[name].dtype
            buffers[f"want_{name}"] = Buffer(f"want_{name}", dtype, 1, "out")
            body.append(Stmt("", "store", (name,), ("r", "c"), (f"want_{name}", place), dtype))
        axes = (Axis("r", env.symbol("rows")), Axis("c", env.symbol("cols")))
        return Kernel("tile", axes, tuple(buffers.values()), tuple(body))

    # -- causality ----------------------------------------------------------------------------
    def hidden_after(self, targets: Sequence[str]) -> int | None:
        """Where all that is taken of columns beyond ``row + hidden_after`` is nothing: maxima of -inf there,
        sums and products of zeros. Each row sees its first column."""
        kernel = Kernel("", (), (), tuple(self.body))
        bounds = [self.lowest(s.source, kernel) for s in self.statistics if s.kind == "max"]
        zeros = [*targets, *(s.source for s in self.statistics if s.kind == "sum")]
        bounds += [self.zero(name, kernel) for name in zeros]
        known = [b for b in bounds if b is not None]
        if len(known) < len(bounds) or not known or min(known) < 0:
            return None
        return max(known)

    def lowest(self, name: str, kernel: Kernel) -> int | None:
        """Beyond which column a value is -inf."""
        stmt = self.by_name[name]
        bound = hidden_columns(kernel, name)
        if bound is not None:
            return bound
        if stmt.op == "cast" and stmt.dtype.is_float:
            return self.lowest(stmt.args[0], kernel)
        if stmt.op == "subtract" and "c" not in self.by_name[stmt.args[1]].axes:
            return self.lowest(stmt.args[0], kernel)
        if stmt.op == "multiply":
            for one, other in (stmt.args, stmt.args[::-1]):
                number = self.by_name[other]
                if number.op == "const" and 0.0 < float(number.arg) < float("inf"):
                    return self.lowest(one, kernel)
        return None

    def zero(self, name: str, kernel: Kernel) -> int | None:
        """Beyond which column a value is 0 (or not a number, where something there is infinite)."""
        stmt = self.by_name[name]
        if stmt.op in ("exp", "exp2"):
            return self.lowest(stmt.args[0], kernel)
        if stmt.op in ("cast", "negative") and stmt.dtype.is_float:
            return self.zero(stmt.args[0], kernel)
        if stmt.op == "divide" and "c" not in self.by_name[stmt.args[1]].axes:
            return self.zero(stmt.args[0], kernel)
        if stmt.op == "multiply":
            bounds = [b for b in (self.zero(a, kernel) for a in stmt.args) if b is not None]
            return min(bounds) if bounds else None
        if stmt.op in ("add", "subtract"):
            both = [self.zero(a, kernel) for a in stmt.args]
            return None if None in both else max(b for b in both if b is not None)
        return None


def _from_statistic(stmt: Stmt) -> Stmt:
    if stmt.op != "reduce":
        return stmt
    return Stmt(stmt.out, "load", (), ("r",), (f"stat_{stmt.out}", Index((("r", 1),))), stmt.dtype)


def merge(kernels: Sequence[tuple[Kernel, Held]], products: Mapping[int, DType]) -> Merged | None:
    """Kernels over blocks of rows as one function of a tile. ``products``: the element types of the matrices
    that products make. ``None``: one of them does something that has no form here."""
    merged = Merged()
    place = Index((("c", 1),))
    for number, dtype in products.items():
        merged.add(Stmt(f"m{number}", "load", (), ("r", "c"), (f"m{number}", place), dtype))
        merged.made[number] = f"m{number}"
    for number, (kernel, held) in enumerate(kernels):
        if not _add(merged, kernel, dict(held), f"k{number}_"):
            return None
    if merged.size is None or not _find_statistics(merged):
        return None
    return merged


def _add(merged: Merged, kernel: Kernel, held: dict[int, int], prefix: str) -> bool:
    matrices = {kernel.buffers[k].name: number for k, number in held.items()}
    if not isinstance(kernel.axes[0].size, SymInt):
        return False
    merged.size = merged.size or kernel.axes[0].size
    names: dict[str, str] = {}
    for buffer in kernel.buffers:
        if buffer.name not in matrices:
            if buffer.mode != "in" or buffer.dtype.is_complex:
                return False
            merged.buffers[prefix + buffer.name] = replace(buffer, name=prefix + buffer.name)
    for stmt in kernel.body:
        args = tuple(names[a] for a in stmt.args)
        matrix = matrices.get(stmt.arg[0]) if stmt.op in ("load", "store") else None
        if matrix is not None and stmt.op == "load":
            if matrix not in merged.made:
                return False
            names[stmt.out] = merged.made[matrix]
        elif matrix is not None:
            if matrix in merged.made:
                return False
            merged.made[matrix] = args[0]
        elif stmt.op in ("store", "scatter", "gather", "check", "scan"):
            return False
        else:
            names[stmt.out] = prefix + stmt.out
            arg = (prefix + stmt.arg[0], stmt.arg[1]) if stmt.op == "load" else stmt.arg
            merged.add(Stmt(prefix + stmt.out, stmt.op, args, stmt.axes, arg, stmt.dtype))
    return True


# -- statistics -------------------------------------------------------------------------------
def _find_statistics(merged: Merged) -> bool:
    """The reductions with their passes; false for such as are neither sums nor maxima of a softmax."""
    levels: dict[str, int] = {}
    passes: dict[str, int] = {}
    for stmt in merged.body:
        level = max((levels[a] for a in stmt.args), default=0)
        if stmt.op == "reduce":
            made = _statistic(merged, stmt, level, passes)
            if made is None:
                return False
            merged.statistics.append(made)
            passes[stmt.out] = made.level
            level = made.level + 1
        levels[stmt.out] = level
    return True


def _statistic(merged: Merged, stmt: Stmt, level: int, passes: Mapping[str, int]) -> Statistic | None:
    (source,) = stmt.args
    kind = stmt.arg[0]
    if stmt.dtype is not float32 or merged.by_name[source].dtype is not float32:
        return None
    if kind == "max":
        return Statistic(stmt.out, kind, source, level)
    if kind != "sum":
        return None
    power = merged.by_name[source]
    if power.op == "exp":
        shifted = merged.by_name[power.args[0]]
        top = merged.by_name.get(shifted.args[1]) if shifted.op == "subtract" else None
        if top is not None and top.op == "reduce" and top.arg[0] == "max" and top.args[0] == shifted.args[0]:
            if _is_only_subtracted(merged, top.out, shifted.args[0]):
                return Statistic(stmt.out, kind, source, passes[top.out], top.out)
    return Statistic(stmt.out, kind, source, level)


def _is_only_subtracted(merged: Merged, name: str, source: str) -> bool:
    """Whether a maximum is only taken off its own row before exp, or compared: then NaN may stand for an
    infinite one, which makes NaN of the row's sum."""
    for stmt in merged.body:
        if name in stmt.args:
            if stmt.op == "equal":
                continue
            if stmt.op != "subtract" or stmt.args != (source, name):
                return False
            if any(s.op != "exp" for s in merged.body if stmt.out in s.args):
                return False
    return True
