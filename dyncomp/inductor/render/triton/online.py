"""``sum(exp(x - max(x)))`` in the pass that finds the largest: rows not held at once are read once less.

Each accumulator has the largest value so far with the sum of powers relative to it, which shrinks as the
largest grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
"""

from __future__ import annotations

from dataclasses import replace

from ....dtypes import bool_
from ..nest import Nest, Node

# The combiner of such an accumulation, which takes x.
SUM_OF_POWERS = "sum of powers"


def sum_online(nest: Nest) -> None:
    """Have sums of powers that wait for a maximum be found along with it."""
    by_name = {node.out: node for node in nest.nodes if node.out}
    largest = {
        node.arg.value: node for node in nest.nodes if node.op == "accumulate" and node.arg.combiner == "max"
    }
    found: dict[str, tuple[Node, Node, str]] = {}
    for node in nest.nodes:
        match = _match(node, by_name, largest)
        if match is not None:
            found[node.arg.value] = match
    if found:
        nest.nodes = [made for node in nest.nodes for made in _rewritten(node, found)]


def _match(node: Node, by_name: dict[str, Node], largest: dict[str, Node]) -> tuple[Node, Node, str] | None:
    """A sum of ``exp(x - shift)``, ``shift`` being the maximum of ``x`` (or, where that is infinite, a
    number), as the accumulation over ``x``, the maximum's ``finish`` and the name of ``shift``."""
    if node.op != "accumulate" or node.arg.combiner != "sum" or node.dtype.name not in ("float32", "float64"):
        return None
    power = by_name[node.args[0]]
    if power.op != "exp" or power.dtype is not node.dtype:
        return None
    difference = by_name[power.args[0]]
    if difference.op != "subtract" or difference.dtype is not node.dtype:
        return None
    value, shift = difference.args
    top = _maximum_in(by_name[shift], by_name)
    if top is None:
        return None
    over = largest.get(top.arg.value)
    if over is None or over.args != (value,) or over.arg.reduced != node.arg.reduced:
        return None
    acc = replace(node.arg, combiner=SUM_OF_POWERS)
    return replace(node, args=(value,), arg=acc), top, shift


def _maximum_in(shift: Node, by_name: dict[str, Node]) -> Node | None:
    """The finished maximum that a shift is, also ``where(isinf(maximum), number, maximum)``."""
    if shift.op == "finish":
        return shift
    if shift.op != "where":
        return None
    condition, first, second = (by_name[name] for name in shift.args)
    tops = [n for n in (first, second) if n.op == "finish"]
    numbers = [n for n in (first, second) if n.op == "const"]
    if len(tops) != 1 or len(numbers) != 1:
        return None
    return tops[0] if _asks_whether_infinite(condition, tops[0].out, by_name) else None


def _asks_whether_infinite(node: Node, name: str, by_name: dict[str, Node]) -> bool:
    if node.op in ("isinf", "isfinite"):
        return node.args == (name,)
    if node.op == "logical_not":
        return _asks_whether_infinite(by_name[node.args[0]], name, by_name)
    if node.op != "equal":
        return False
    names = set(node.args)
    absolute = {n for n in names if by_name[n].op == "abs" and by_name[n].args == (name,)}
    infinite = {n for n in names if by_name[n].op == "const" and float(by_name[n].arg) in _INFINITIES}
    return bool(infinite) and bool(absolute or name in names)


_INFINITIES = (float("inf"), float("-inf"))


def _rewritten(node: Node, found: dict[str, tuple[Node, Node, str]]) -> list[Node]:
    """A node of the nest as it is where the sums of ``found`` are made along with the maxima."""
    if node.op not in ("accumulate", "finish") or node.arg.value not in found:
        return [node]
    made, top, shift = found[node.arg.value]
    if node.op == "accumulate":
        return [made]
    # the powers are relative to the maximum, or to 0 where that is infinite: by how much the shift differs
    name, axes, dtype = node.out, node.axes, node.dtype

    def value(what: str, op: str, *args: str, arg: object = None, of: object = dtype) -> Node:
        return Node(f"{name}_{what}", op, args, axes if args else frozenset(), arg, of)  # type: ignore[arg-type]

    return [
        replace(node, out=f"{name}_powers", arg=made.arg),
        value("infinite", "isinf", top.out, of=bool_),
        value("none", "const", arg=0.0),
        value("base", "where", f"{name}_infinite", f"{name}_none", top.out),
        value("far", "subtract", f"{name}_base", shift),
        value("factor", "exp", f"{name}_far"),
        replace(node, op="multiply", args=(f"{name}_powers", f"{name}_factor"), arg=None),
    ]
