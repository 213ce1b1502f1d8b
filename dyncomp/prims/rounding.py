"""Which nodes give the same bits whatever computes them: what ``numerics="strict"`` may compute itself.

IEEE 754 fixes the result of an operation that is rounded once; so two libraries agree on a sum or a product,
but not on ``exp``, on a sum of many, or on what is made of several operations. What rounds how is said by the
rows (``OpDef.rounds``); a row that says nothing is taken to differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..device import CPU
from ..graph.ir import COPY, Node, OpTable
from ..graph.passes.rewrite_rules import is_lossless
from .opdef import NEVER, ONCE, WHERE_LOSSY, Constant, Gather, Marker, Scatter, Update, View

_HALVES = frozenset(("float16", "bfloat16"))


def rounding(node: Node, table: OpTable, library: str) -> str:
    """How the results of ``node`` are rounded, also by ``library``: ``NEVER``, ``ONCE``, or ``""`` where
    libraries may differ."""
    if node.op == COPY:
        return NEVER
    row: Any = table[node.op]  # of prims
    dtypes = {var.dtype for var in (*node.inputs, *node.outputs)}
    letters = {"c" if dtype.is_complex else "f" for dtype in dtypes if dtype.is_inexact}
    if not letters or isinstance(row.lower, View | Update | Gather | Constant | Marker):
        return NEVER
    if isinstance(row.lower, Scatter):
        combine = row.lower.combine or node.kwargs["combine"]
        return NEVER if combine == "set" else ""
    if library in row.rounded_otherwise_by:
        return ""
    said = {_said(row.rounds, letter) for letter in letters}
    if len(said) > 1:
        return ""  # such as the absolute value of complex numbers
    (found,) = said
    if found == WHERE_LOSSY:
        return _conversion(node)
    if found == ONCE and (node.inputs and node.inputs[0].type.device != CPU):
        return ""  # compilers for GPUs join operations, and divide by ways of their own
    if found == ONCE and any(dtype.name in _HALVES for dtype in dtypes):
        return ""  # computed in float32, of which more may be kept
    return found


def _said(rounds: Mapping[str, str], letter: str) -> str:
    return next((found for letters, found in rounds.items() if letter in letters), "")


def _conversion(node: Node) -> str:
    source, target = node.inputs[0].dtype, node.outputs[0].dtype
    if is_lossless(source, target) or target.is_bool:
        return NEVER
    if not target.is_inexact:
        return ""  # what does not fit is whatever the processor gives
    if target.name in _HALVES:
        return ""  # some libraries go through float32
    if source.is_complex and not target.is_complex:
        return NEVER if is_lossless(source.real, target) else ""
    return ONCE


def is_as_librarys(nodes: Iterable[Node], table: OpTable, library: str) -> bool:
    """Whether nodes that stand for one function of a library give just what it gives: all are known, and at
    most one rounds. (Of more it is not known in which order, or in which precision, the library does.)"""
    found = [rounding(node, table, library) for node in nodes]
    return "" not in found and found.count(ONCE) <= 1
