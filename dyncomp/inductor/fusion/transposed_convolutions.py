"""Transposed convolutions on CPUs as convolutions: gradients with respect to images are such.

Places of the result that lie a stride apart see the same elements of the kernel, so each such phase is a
convolution of the image with these elements, turned round. The phases are then put between each other
("sub-pixel convolution", Shi et al. 2016).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from ...device import CPU
from ...graph.ir import Graph, Node, OpTable, Var
from ...graph.rewrite import Transformer
from ...prims.convolution import DTYPES
from ..lowering.convolve import MOST_DIMENSIONS

# Phases from which on the pieces are too small.
MOST_PHASES = 16


def as_convolutions(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with each ``convolution_transpose`` that the runtime can do as convolutions."""
    if not any(node.op == "convolution_transpose" for node in graph.nodes):
        return graph
    return _Phases(graph, table).run()


@dataclass(frozen=True)
class _Phase:
    """What one phase is along an axis: elements ``first``, ``first + stride``… of the kernel, ``taps`` of
    them, and ``count`` places of the result from ``start`` on, for an image padded by ``low``, ``high``."""

    first: int
    taps: int
    start: int
    count: int
    low: int
    high: int


def _phases(image: int, kernel: int, out: int, stride: int, padding: int, dilation: int) -> list[_Phase]:
    found = []
    for start in range(min(stride, out)):
        # place padding + start of what the result is cut from sees element ``place - j`` of the image through
        # element ``first + stride * j`` of the kernel
        first, place = (padding + start) % stride, (padding + start) // stride
        count = -(-(out - start) // stride)
        if stride == 1:
            taps, reach = kernel, dilation * (kernel - 1)
        else:
            taps = max(0, -(-(kernel - first) // stride))
            reach = taps - 1
        found.append(_Phase(first, taps, start, count, reach - place, place + count - image))
    return found


class _Phases(Transformer):
    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if node.op == "convolution_transpose":
            made = self.made_of_convolutions(node, *inputs)
            if made is not None:
                return made
        return self.keep(node, inputs)

    def made_of_convolutions(self, node: Node, x: Var, w: Var) -> Var | None:
        params = node.kwargs
        stride, dilation, last = params["stride"], params["dilation"], params["channels_last"]
        shape = node.out.shape
        known = all(type(d) is int and d > 0 for d in (*x.shape, *w.shape, *shape))
        if x.type.device != CPU or x.dtype not in DTYPES or not known or len(stride) > MOST_DIMENSIONS:
            return None
        several = math.prod(stride) > 1
        if several and (last or math.prod(stride) > MOST_PHASES or any(d != 1 for d in dilation)):
            return None
        sizes = zip(x.shape[2:], w.shape[2:], shape[2:], stride, params["padding"], dilation)
        axes = [_phases(*numbers) for numbers in sizes]
        if any(phase.taps and min(phase.low, phase.high) < 0 for axis in axes for phase in axis):
            return None
        kernels = self._turned(w, params["groups"])
        if not several:
            return self._convolved(x, kernels, [axis[0] for axis in axes], params)
        emit = self.builder.emit
        whole: Var = emit("full", shape=shape, value=0.0, dtype=x.dtype, device=x.type.device)
        for phases in itertools.product(*axes):
            if all(phase.taps for phase in phases):
                part = self._convolved(x, self._elements(kernels, phases, stride), phases, params)
                starts = (0, 0, *[phase.start for phase in phases])
                whole = emit(
                    "update_slice", whole, part, starts=starts, sizes=part.shape, steps=(1, 1, *stride)
                )
        return whole

    def _turned(self, w: Var, groups: int) -> Var:
        """The kernels of each channel of the result."""
        emit = self.builder.emit
        channels, kernels, *sizes = w.shape
        if groups > 1:
            split = emit(
                "reshape", emit("contiguous", w), shape=(groups, channels // groups, kernels, *sizes)
            )
            turned = emit("contiguous", emit("transpose", split, perm=(0, 2, 1, *range(3, split.ndim))))
            joined: Var = emit("reshape", turned, shape=(groups * kernels, channels // groups, *sizes))
            return joined
        found: Var = emit("transpose", w, perm=(1, 0, *range(2, w.ndim)))
        return found

    def _elements(self, kernels: Var, phases: tuple[_Phase, ...], stride: tuple[int, ...]) -> Var:
        """Those of a phase."""
        starts = (0, 0, *[phase.first for phase in phases])
        sizes = (*kernels.shape[:2], *[phase.taps for phase in phases])
        part: Var = self.builder.emit(
            "strided_slice", kernels, starts=starts, sizes=sizes, steps=(1, 1, *stride)
        )
        return part

    def _convolved(self, x: Var, kernels: Var, phases: Any, params: dict[str, Any]) -> Var:
        """The image with the kernels turned round."""
        starts = (0, 0, *[n - 1 for n in kernels.shape[2:]])
        back = (1, 1, *[-1] * (kernels.ndim - 2))
        if math.prod(kernels.shape[2:]) > 1:
            kernels = self.builder.emit(
                "strided_slice", kernels, starts=starts, sizes=kernels.shape, steps=back
            )
        found: Var = self.builder.emit(
            "convolution",
            x,
            self.builder.emit("contiguous", kernels),
            stride=(1,) * len(phases),
            padding=tuple((phase.low, phase.high) for phase in phases),
            dilation=params["dilation"],
            groups=params["groups"],
            channels_last=params["channels_last"],
        )
        return found
