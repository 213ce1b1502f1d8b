"""Reductions and scans of the Triton renderer: a block of accumulators per step, combined at the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ....dtypes import DType
from ....errors import LoweringError
from ....prims.scalar import REDUCERS, SCALARS
from ....symbolic.integers import Dim
from ...loops.loop_ir import Index
from ..nest import Accumulator, Node
from .layout import Layout
from .online import SUM_OF_POWERS

NOWHERE = 2**62
_HALVES = ("float16", "bfloat16")


def register_type(dtype: DType) -> str:
    """The type of an accumulator."""
    if dtype.is_bool:
        return "tl.int1"
    return "tl.float32" if dtype.name in _HALVES else f"tl.{dtype.name}"


def accumulator(value: str) -> str:
    """The variable of a reduction."""
    return "acc_" + "".join(c if c.isalnum() or c == "_" else "_" for c in value)


class Writer(Protocol):
    """What is asked of the printer."""

    layout: Layout
    env: dict[str, str]
    vector: str

    @property
    def block(self) -> str: ...

    def line(self, text: str) -> None: ...

    def mask(self, axes: Iterable[str]) -> str: ...

    def at(self, index: Index) -> str: ...

    def dim(self, value: Dim) -> str: ...

    def literal(self, value: object, dtype: DType) -> str: ...


class Reductions:
    """Writes accumulators and scans through its printer. ``partial``: where a reduction is shared by several
    programs, the workspace that takes each one's result, by the accumulator's value."""

    def __init__(self, printer: Writer) -> None:
        self.printer = printer
        self.partial: dict[str, str] = {}

    def identity(self, acc: Accumulator) -> str:
        if acc.combiner == SUM_OF_POWERS:
            return "0.0"
        return self.printer.literal(REDUCERS[acc.combiner].identity(acc.dtype), acc.dtype)

    def declare(self, acc: Accumulator) -> None:
        p = self.printer
        name = accumulator(acc.value)
        p.line(f"{name} = tl.full({p.block}, {self.identity(acc)}, {register_type(acc.dtype)})")
        if acc.position:
            p.line(f"{name}_at = tl.full({p.block}, {NOWHERE}, tl.int64)")
        if acc.combiner == SUM_OF_POWERS:
            p.line(f'{name}_top = tl.full({p.block}, float("-inf"), {register_type(acc.dtype)})')

    def accumulate(self, node: Node) -> None:
        p = self.printer
        acc: Accumulator = node.arg
        name = accumulator(acc.value)
        value = p.env[node.args[0]]
        mask = p.mask({p.vector})
        if acc.position:
            self.accumulate_position(acc, name, value, mask)
            return
        if acc.combiner == SUM_OF_POWERS:
            self.accumulate_powers(name, value, mask)
            return
        kind = register_type(acc.dtype)
        masked = f"tl.where({mask}, {value}, {self.identity(acc)})" if mask else f"({value})"
        row = REDUCERS[acc.combiner].combine
        template = SCALARS[row].spelling("triton", acc.dtype)
        if template is None:
            raise LoweringError(f"Triton has no {row} for {acc.dtype}")
        p.line(f"{name} = ({template.format(name, f'{masked}.to({kind})')}).to({kind})")

    def accumulate_position(self, acc: Accumulator, name: str, value: str, mask: str) -> None:
        p = self.printer
        sign = ">" if acc.combiner == "argmax" else "<"
        if acc.dtype.is_bool:
            # without an order of its own
            p.line(f"take = ({value}.to(tl.int32) {sign} {name}.to(tl.int32))")
        elif acc.dtype.is_float:
            p.line(f"take = ({value} {sign} {name}) | (({value} != {value}) & ({name} == {name}))")
        else:
            p.line(f"take = {value} {sign} {name}")
        if mask:
            p.line(f"take = take & {mask}")
        position = p.at(acc.position[0][0])
        p.line(f"{name}_at = tl.where(take, ({position}).to(tl.int64), {name}_at)")
        p.line(f"{name} = tl.where(take, {value}, {name})")

    def accumulate_powers(self, name: str, value: str, mask: str) -> None:
        p = self.printer
        p.line(f'next = tl.where({mask}, {value}, float("-inf"))' if mask else f"next = {value}")
        p.line(f"top = tl.maximum({name}_top, next, propagate_nan=tl.PropagateNan.ALL)")
        p.line("near = dc_finite_or_zero(top)")
        p.line(f"{name} = dc_shrunk({name}, {name}_top, near) + tl.exp(next - near)")
        p.line(f"{name}_top = top")

    # -- the end of a reduction -----------------------------------------------------------------
    def done(self, acc: Accumulator) -> None:
        p = self.printer
        name = accumulator(acc.value)
        if acc.position:
            self.done_position(acc, name)
        elif acc.combiner in ("max", "min") and acc.dtype.is_float:
            self.done_extreme(acc, name)
        elif acc.combiner == SUM_OF_POWERS:
            p.line(f"near = dc_finite_or_zero(tl.max({name}_top, axis=1)[:, None])")
            p.line(f"{name} = tl.sum(dc_shrunk({name}, {name}_top, near), axis=1)[:, None]")
        else:
            p.line(f"{name} = ({self.combined(acc, name)})[:, None].to({register_type(acc.dtype)})")
        workspace = self.partial.get(acc.value)
        if workspace is not None:
            self.store_partial(acc, name, workspace)

    def combined(self, acc: Accumulator, name: str) -> str:
        if acc.dtype.is_bool:
            # any and max, all and min are the same
            function = "max" if acc.combiner in ("any", "max", "sum") else "min"
            return f"tl.{function}({name}.to(tl.int32), axis=1) != 0"
        if acc.combiner == "prod":
            return f"tl.reduce({name}, 1, dc_product)"
        return f"tl.{acc.combiner}({name}, axis=1)"

    def done_extreme(self, acc: Accumulator, name: str) -> None:
        """tl.max and tl.min drop NaN."""
        p = self.printer
        p.line(f"{name}_nan = tl.max(({name} != {name}).to(tl.int32), axis=1)[:, None]")
        p.line(f"{name} = tl.{acc.combiner}({name}, axis=1)[:, None]")
        p.line(f'{name} = tl.where({name}_nan != 0, float("nan"), {name})')

    def done_position(self, acc: Accumulator, name: str) -> None:
        """The smallest position among the extreme values."""
        p = self.printer
        function = "max" if acc.combiner == "argmax" else "min"
        if acc.dtype.is_bool:
            p.line(f"{name} = {name}.to(tl.int32)")
        p.line(f"{name}_best = tl.{function}({name}, axis=1)[:, None]")
        best = f"{name} == {name}_best"
        if acc.dtype.is_float:
            p.line(f"{name}_nan = tl.max(({name} != {name}).to(tl.int32), axis=1)[:, None] != 0")
            best = f"tl.where({name}_nan, {name} != {name}, {best})"
        p.line(f"{name}_at = tl.min(tl.where({best}, {name}_at, {NOWHERE}), axis=1)[:, None]")
        p.line(f"{name}_at = tl.where({name}_at == {NOWHERE}, 0, {name}_at)")

    def store_partial(self, acc: Accumulator, name: str, workspace: str) -> None:
        p = self.printer
        (group,) = p.layout.kept
        kind = "tl.int8" if acc.dtype.is_bool else register_type(acc.dtype)
        masked = f", mask={group.name}_mask" if group.is_masked else ""
        at = f"part * {p.dim(group.size)} + x"
        p.line(f"tl.store(p_{workspace} + ({at}), {name}.to({kind}){masked})")

    # -- scans ----------------------------------------------------------------------------------
    def start_scan(self, node: Node) -> None:
        """The state of a scan before its first block."""
        p = self.printer
        if p.layout.persistent:
            return
        value = p.literal(REDUCERS[node.arg[0]].identity(node.dtype), node.dtype)
        shape = f"({p.layout.groups[0].name.upper()}BLOCK, 1)"
        kind = "tl.int32" if node.dtype.is_bool else register_type(node.dtype)
        p.line(f"{accumulator(node.out)} = tl.full({shape}, {value}, {kind})")

    def scan(self, node: Node) -> str:
        p = self.printer
        combiner = node.arg[0]
        kind = "tl.int32" if node.dtype.is_bool else register_type(node.dtype)
        name = f"v_{node.out}"
        identity = p.literal(REDUCERS[combiner].identity(node.dtype), node.dtype)
        value = p.env[node.args[0]]
        mask = p.mask({p.vector})
        masked = f"tl.where({mask}, {value}, {identity})" if mask else value
        p.line(
            f"{name} = {masked}.to({kind}) + tl.zeros({p.block}, {kind})"
            if combiner == "sum"
            else f"{name} = tl.broadcast_to({masked}.to({kind}), {p.block})"
        )
        functions = {"sum": "tl.cumsum({0}, 1)", "prod": "tl.cumprod({0}, 1)"}
        text = functions.get(combiner, f"tl.associative_scan({{0}}, 1, dc_{combiner}_of)")
        p.line(f"{name} = ({text.format(name)}).to({kind})")
        if not p.layout.persistent:
            self.carry(node, name, kind)
        if node.dtype.name in _HALVES:
            return f"{name}.to(tl.{node.dtype.name}).to(tl.float32)"
        return f"({name} != 0)" if node.dtype.is_bool else name

    def carry(self, node: Node, name: str, kind: str) -> None:
        """Join a block to what came before it."""
        p = self.printer
        state = accumulator(node.out)
        template = SCALARS[REDUCERS[node.arg[0]].combine].spelling("triton", node.dtype)
        if template is None:
            raise LoweringError(f"Triton has no {node.arg[0]} scan of {node.dtype}")
        p.line(f"{name} = ({template.format(state, name)}).to({kind})")
        last = f"tl.where(tl.arange(0, RBLOCK)[None, :] == RBLOCK - 1, {name}, 0)"
        p.line(f"{state} = tl.sum({last}, axis=1)[:, None].to({kind})")
