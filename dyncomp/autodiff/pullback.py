"""Reverse mode in two parts: a run of the forward graph, which saves what the backward graph needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import pipeline
from ..aot_autograd.joint import Joint, joint
from ..aot_autograd.partition import Halves, partition
from ..graph.ir import Graph, SymbolBinding
from .record import Piece, Run


class Halved:
    """The halves of a piece: ``extend`` of :class:`~.record.Recorded`, and what :func:`pullback` runs."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.joint: Joint = joint(piece.graph, pipeline.op_table(), piece.wrt)
        self.halves: Halves = partition(self.joint, pipeline.op_table())
        self._call: Callable[..., Any] | None = None
        if self.halves.backward.symbols:
            self.backward()  # now, while what it assumes of sizes becomes guards

    def backward(self) -> Callable[..., Any]:
        if self._call is None:
            self._call = self.piece.compile(self.halves.backward).call
        return self._call


def forward(piece: Piece) -> Graph:
    """The forward half of a piece, which keeps both."""
    piece.halved = made = Halved(piece)
    return made.halves.forward


def pullback(run: Run, numbers: Sequence[int]) -> Callable[..., Sequence[Any]]:
    """What gives the gradients by the inputs of a run of :func:`forward`, of cotangents of the results with
    these numbers. The program may write into its arrays before that."""
    halved: Halved = run.piece.halved
    graph, halves = run.piece.graph, halved.halves
    results = iter([*run.outputs, *run.more])
    found: list[Any] = [None if out.hidden else next(results) for out in halves.forward.outputs]
    places = {"input": run.inputs, "output": found}
    saved = [
        np.array(places[at.kind][at.index], order="K")
        if at.kind == "input" or at.index < len(graph.outputs)
        else found[at.index]
        for at in halves.saved
    ]
    integers = [_integer(binding, run, len(graph.inputs), found) for binding in halves.integers]
    shapes = [(np.shape(found[k]), graph.outputs[k].var.dtype.numpy) for k in halved.joint.outputs]

    def pull(*cotangents: Any) -> Sequence[Any]:
        given: dict[int, Any] = {}
        for k, cotangent in zip(numbers, cotangents):  # a result may be given twice
            given[k] = given[k] + cotangent if k in given else cotangent
        each = [
            given[k] if k in given else np.zeros(shape, dtype)
            for k, (shape, dtype) in zip(halved.joint.outputs, shapes)
        ]
        gradients = halved.backward()(*saved, *each, *integers)
        return gradients if isinstance(gradients, (tuple, list)) else (gradients,)

    return pull


def _integer(binding: SymbolBinding, run: Run, count: int, found: Sequence[Any]) -> int:
    if binding.kind == "int":
        return int(run.inputs[count + binding.index])
    if binding.kind == "output":
        return int(found[binding.index])
    array = run.inputs[binding.index]
    if binding.kind == "dim":
        return int(array.shape[binding.axis])
    return int(array.strides[binding.axis] // array.itemsize)
