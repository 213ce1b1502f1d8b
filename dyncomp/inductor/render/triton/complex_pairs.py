"""Complex values as pairs of real ones, for a target without them: a change of a nest's statements.

A complex buffer becomes a real one of twice the size; value ``v`` becomes ``v_re`` and ``v_im``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....dtypes import DType
from ....errors import LoweringError
from ....prims.scalar import ScalarBuilder
from ...loops.loop_ir import Buffer, Index
from ..nest import Accumulator, Nest, Node

Pair = tuple[Any, Any]


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

    def emit(self, op: str, args: tuple[Any, ...], dtype: DType, arg: Any = None) -> str:
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
        rule = _RULES.get(node.op)
        if rule is None:
            raise LoweringError(f"Triton has no {node.op} for complex numbers")
        self.define(node, rule(self, *(self.operand(a) for a in node.args)))

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


# -- functions ----------------------------------------------------------------------------------
def _multiply(s: Any, a: Pair, b: Pair) -> Pair:
    re = s.subtract(s.multiply(a[0], b[0]), s.multiply(a[1], b[1]))
    return re, s.add(s.multiply(a[0], b[1]), s.multiply(a[1], b[0]))


def _divide(s: Any, a: Pair, b: Pair) -> Pair:
    """Smith's method, as NumPy's loops."""
    large = s.greater_equal(s.abs(b[0]), s.abs(b[1]))
    zero = s.const(0.0, s.dtype(b[0]))
    top, bottom = s.where(large, b[0], b[1]), s.where(large, b[1], b[0])
    ratio = s.divide(bottom, top)
    scale = s.divide(s.const(1.0, s.dtype(top)), s.add(top, s.multiply(bottom, ratio)))
    first, second = s.where(large, a[0], a[1]), s.where(large, a[1], a[0])
    re = s.multiply(s.add(first, s.multiply(second, ratio)), scale)
    turned = s.subtract(second, s.multiply(first, ratio))
    im = s.multiply(s.where(large, turned, s.negative(turned)), scale)
    both_zero = s.logical_and(s.equal(b[0], zero), s.equal(b[1], zero))
    return (
        s.where(both_zero, s.divide(a[0], s.abs(b[0])), re),
        s.where(both_zero, s.divide(a[1], s.abs(b[0])), im),
    )


def _exp(s: Any, a: Pair) -> Pair:
    size = s.exp(a[0])
    plain = s.equal(a[1], s.const(0.0, s.dtype(a[1])))
    re = s.where(plain, size, s.multiply(size, s.cos(a[1])))
    return re, s.where(plain, a[1], s.multiply(size, s.sin(a[1])))


def _ordered(strict: str) -> Callable[[Any, Pair, Pair], Any]:
    def rule(s: Any, a: Pair, b: Pair) -> Any:
        first = s.apply(strict.removesuffix("_equal"), a[0], b[0])
        return s.logical_or(first, s.logical_and(s.equal(a[0], b[0]), s.apply(strict, a[1], b[1])))

    return rule


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda s, a, b: (s.add(a[0], b[0]), s.add(a[1], b[1])),
    "subtract": lambda s, a, b: (s.subtract(a[0], b[0]), s.subtract(a[1], b[1])),
    "multiply": _multiply,
    "divide": _divide,
    "negative": lambda s, a: (s.negative(a[0]), s.negative(a[1])),
    "conj": lambda s, a: (a[0], s.negative(a[1])),
    "real": lambda s, a: a[0],
    "imag": lambda s, a: a[1],
    "abs": lambda s, a: s.hypot(a[0], a[1]),
    "complex": lambda s, re, im: (re, im),
    "where": lambda s, c, a, b: (s.where(c, a[0], b[0]), s.where(c, a[1], b[1])),
    "exp": _exp,
    "equal": lambda s, a, b: s.logical_and(s.equal(a[0], b[0]), s.equal(a[1], b[1])),
    "not_equal": lambda s, a, b: s.logical_or(s.not_equal(a[0], b[0]), s.not_equal(a[1], b[1])),
    "isnan": lambda s, a: s.logical_or(s.isnan(a[0]), s.isnan(a[1])),
    "isinf": lambda s, a: s.logical_or(s.isinf(a[0]), s.isinf(a[1])),
    "isfinite": lambda s, a: s.logical_and(s.isfinite(a[0]), s.isfinite(a[1])),
    **{name: _ordered(name) for name in ("less", "less_equal", "greater", "greater_equal")},
}
