"""Complex values as pairs of real ones, for a target without them: a change of a nest's statements.

A complex buffer becomes a real one of twice the size; value ``v`` becomes ``v_re`` and ``v_im``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....dtypes import DType
from ....errors import LoweringError
from ....prims.scalar import SCALARS, ScalarBuilder
from ...loops.loop_ir import Buffer, Index
from ..nest import Accumulator, Nest, Node


def split_complex(nest: Nest) -> None:
    """Replace every complex value, accumulator and buffer of ``nest``. Raises ``LoweringError`` for functions
    that have no real form here."""
    if not any(b.dtype.is_complex for b in nest.kernel.buffers) and not any(
        node.dtype.is_complex for node in nest.nodes
    ):
        return
    nest.nodes = _Splitter(nest.nodes).run()
    buffers = tuple(_real_buffer(b) for b in nest.kernel.buffers)
    nest.kernel = replace(nest.kernel, buffers=buffers)


def _real_buffer(buffer: Buffer) -> Buffer:
    if not buffer.dtype.is_complex:
        return buffer
    return replace(buffer, dtype=buffer.dtype.real, size=buffer.size * 2)


def _part_index(index: Index, part: int) -> Index:
    return Index(tuple((axis, step * 2) for axis, step in index.terms), index.offset * 2 + part)


class _Splitter(ScalarBuilder):
    """Writes the new statements; values of the builder are their names."""

    def __init__(self, nodes: list[Node]) -> None:
        self.old = nodes
        self.made: list[Node] = []
        self.known: dict[str, Node] = {}
        self.dtype_of = {n.out: n.dtype for n in nodes if n.out}
        self.pairs: dict[str, tuple[str, str]] = {}
        self.count = 0

    # -- the scalar builder's hooks -------------------------------------------------------------
    def dtype(self, value: str) -> DType:
        return self.known[value].dtype

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: object = None) -> str:
        axes: frozenset[str] = frozenset().union(*(self.known[a].axes for a in args))
        self.count += 1
        return self.append(Node(f"c{self.count}_{op}", op, args, axes, arg, dtype))

    def append(self, node: Node) -> str:
        self.made.append(node)
        if node.out:
            self.known[node.out] = node
        return node.out

    # -- statements -----------------------------------------------------------------------------
    def run(self) -> list[Node]:
        for node in self.old:
            source = self.dtype_of[node.args[0]] if node.args else node.dtype
            involved = [self.dtype_of[a] for a in node.args] + [node.dtype, source]
            if any(d.is_complex for d in involved):
                self.split(node)
            else:
                self.append(node)
        return self.made

    def split(self, node: Node) -> None:
        handler: Callable[[Node], Any] | None = getattr(self, f"_{node.op}", None)
        if handler is not None:
            handler(node)
            return
        row = SCALARS.get(node.op)
        if row is None or row.pair is None:
            raise LoweringError(f"Triton has no {node.op} for complex numbers")
        self.define(node, row.pair(self, *(self.operand(a) for a in node.args)))

    def operand(self, name: str) -> Any:
        return self.pairs.get(name, name)

    def define(self, node: Node, value: Any) -> None:
        """Give the node's name to what it became."""
        if not isinstance(value, tuple):
            self.append(Node(node.out, "cast", (value,), node.axes, None, node.dtype))
            return
        names = (f"{node.out}_re", f"{node.out}_im")
        for name, part in zip(names, value):
            self.append(Node(name, "cast", (part,), node.axes, None, node.dtype.real))
        self.pairs[node.out] = names

    def _parts(self, node: Node, parts: tuple[Node, Node]) -> None:
        for part in parts:
            self.append(part)
        if node.out:
            self.pairs[node.out] = (parts[0].out, parts[1].out)

    def _at(self, node: Node, part: int) -> Any:
        buffer, index, *rest = node.arg
        if rest:
            strides, *others = rest
            rest = [tuple(s * 2 for s in strides), *others]
        return (buffer, _part_index(index, part), *rest)

    def _load(self, node: Node) -> None:
        real = node.dtype.real
        self._parts(
            node,
            (
                replace(node, out=f"{node.out}_re", arg=self._at(node, 0), dtype=real),
                replace(node, out=f"{node.out}_im", arg=self._at(node, 1), dtype=real),
            ),
        )

    _gather = _load

    def _const(self, node: Node) -> None:
        value = complex(node.arg)
        real = node.dtype.real
        self._parts(
            node,
            (
                replace(node, out=f"{node.out}_re", arg=value.real, dtype=real),
                replace(node, out=f"{node.out}_im", arg=value.imag, dtype=real),
            ),
        )

    def _store(self, node: Node) -> None:
        for part, name in enumerate(self.pairs[node.args[0]]):
            self.append(
                replace(node, args=(name, *node.args[1:]), arg=self._at(node, part), dtype=node.dtype.real)
            )

    def _scatter(self, node: Node) -> None:
        if node.arg[-1] not in ("set", "add"):
            raise LoweringError(f"Triton cannot scatter complex numbers by {node.arg[-1]}")
        self._store(node)

    def _scan(self, node: Node) -> None:
        if node.arg[0] != "sum":
            raise LoweringError(f"Triton has no {node.arg[0]} scan of complex numbers")
        re, im = self.pairs[node.args[0]]
        real = node.dtype.real
        parts = (
            replace(node, out=f"{node.out}_re", args=(re,), dtype=real),
            replace(node, out=f"{node.out}_im", args=(im,), dtype=real),
        )
        self._parts(node, parts)

    # -- reductions -----------------------------------------------------------------------------
    def _accumulators(self, acc: Accumulator) -> list[Accumulator]:
        if acc.combiner != "sum":
            raise LoweringError(f"Triton has no {acc.combiner} of complex numbers")
        real = acc.dtype.real
        return [replace(acc, value=f"{acc.value}_{part}", dtype=real) for part in ("re", "im")]

    def _accumulate(self, node: Node) -> None:
        for acc, name in zip(self._accumulators(node.arg), self.pairs[node.args[0]]):
            self.append(replace(node, args=(name,), arg=acc, dtype=acc.dtype))

    def _finish(self, node: Node) -> None:
        re, im = self._accumulators(node.arg)
        real = node.dtype.real
        parts = (
            replace(node, out=f"{node.out}_re", arg=re, dtype=real),
            replace(node, out=f"{node.out}_im", arg=im, dtype=real),
        )
        self._parts(node, parts)

    # -- conversion -----------------------------------------------------------------------------
    def _cast(self, node: Node) -> None:
        value = self.operand(node.args[0])
        if node.dtype.is_complex:
            if isinstance(value, tuple):
                parts = (self.cast(value[0], node.dtype.real), self.cast(value[1], node.dtype.real))
            else:
                parts = (self.cast(value, node.dtype.real), self.const(0.0, node.dtype.real))
            self.define(node, parts)
        elif node.dtype.is_bool:
            zero = self.const(0.0, self.dtype(value[0]))
            parts = (self.not_equal(value[0], zero), self.not_equal(value[1], zero))
            self.define(node, self.logical_or(*parts))
        else:
            self.define(node, self.cast(value[0], node.dtype))
