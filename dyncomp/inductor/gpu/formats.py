"""Memory formats within a graph: stacks of images between convolutions of halves with channels last.

A GPU's library convolves halves with channels last only and converts what it gets and gives otherwise, at
every call. Here the graph is laid out so: an image is converted where a run of convolutions begins, and what
is pointwise between them, windows and reductions follow the layout of what they read. Whatever leaves the
graph is laid out as it was before. Kernels are converted in each call, as the library would: they may be
written to between calls in ways that leave no trace.
"""

from __future__ import annotations

from dataclasses import replace

from ...dtypes import bfloat16, float16
from ...errors import Unsupported
from ...graph.ir import ArrayType, Graph, GraphOutput, Node, OpTable, Var, same_type
from ...graph.passes.dce import eliminate_dead_code
from ...graph.passes.outputs import own_outputs
from ...graph.rewrite import Rebuilder, match_type, strides_agree, with_strides
from ...prims.layout import strides_in_order
from ...prims.opdef import Contract, Pointwise, Reduce, View
from ...prims.table import TABLE
from ...symbolic.integers import product

HALVES = (float16, bfloat16)
# The axes of a stack of images from outermost to innermost.
ORDER = (0, 2, 3, 1)
# Convolutions of fewer channels, in and out, gain nothing.
FEW_CHANNELS = 64
# What has the same values wherever its operands lie, in memory laid out as they are.
_FOLLOWS = (Pointwise, Reduce, View, Contract)
_COPIES = ("contiguous", "copy")
# What says where in memory its values are.
_PLACES = ("as_strided",)


def lay_out(graph: Graph, table: OpTable) -> Graph:
    """``graph`` with images with channels last between its convolutions, where these are worth it."""
    if not _pays(graph):
        return graph
    made = eliminate_dead_code(_ChannelsLast(graph, table).run(), table)
    return own_outputs(made, table)


def _pays(graph: Graph) -> bool:
    """Whether most of the multiplications are of convolutions that gain by it."""
    gain = lose = 0
    for node in graph.nodes:
        if node.op != "convolution" or len(node.out.shape) != len(ORDER):
            continue
        if not _is_known(node):
            return False
        work = int(product(node.out.shape)) * int(product(node.inputs[1].shape[1:]))
        if _turns(node) and max(*node.inputs[1].shape[:2]) > FEW_CHANNELS:
            gain += work
        else:
            lose += work
    return gain > lose


def _is_known(node: Node) -> bool:
    return all(type(d) is int and d > 0 for v in (*node.inputs, node.out) for d in v.shape)


def _turns(node: Node) -> bool:
    """Whether the library has kernels with channels last for a convolution: of halves, of all channels or of
    one for each group (with groups of several it is slower so). What has one channel, or one place, lies both
    ways, and the library takes it to be in C order."""
    if node.op != "convolution" or len(node.out.shape) != len(ORDER) or not _is_known(node):
        return False
    if node.out.dtype not in HALVES or any(_lies_both_ways(v) for v in (node.inputs[0], node.out)):
        return False
    return node.kwargs.get("groups", 1) == 1 or node.inputs[1].shape[1] == 1


def _lies_both_ways(var: Var) -> bool:
    return var.shape[1] == 1 or product(var.shape[2:]) == 1


class _ChannelsLast:
    """``suited``: each value of the graph as it is laid out now; ``exact``: as it was, made where needed."""

    def __init__(self, graph: Graph, table: OpTable) -> None:
        self.graph = graph
        self.builder = Rebuilder(graph, table)
        self.suited: dict[str, Var] = {v.name: v for v in graph.input_vars}
        self.exact: dict[str, Var] = dict(self.suited)
        self.producers = {v.name: node for node in graph.nodes for v in node.outputs}
        # outputs and what is written to inputs are memory of their own
        self.own = {out.var.name for out in graph.outputs} | {var.name for _, var in graph.mutations}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self.builder.loc = node.loc
            made = self.turned(node)
            if made is None:
                self.keep(node)
            else:
                self.suited[node.out.name] = made
                if same_type(made.type, node.out.type, strides=True):
                    self.exact[node.out.name] = made
        outputs = [self.output(out) for out in self.graph.outputs]
        mutations = [(index, self.exactly(var)) for index, var in self.graph.mutations]
        return self.builder.rebuilt(outputs, mutations)

    def output(self, out: GraphOutput) -> GraphOutput:
        return replace(out, var=self.exactly(out.var))

    def keep(self, node: Node) -> None:
        """The node as it was, of operands as they were."""
        inputs = tuple(map(self.exactly, node.inputs))
        self.builder.keep(node if inputs == node.inputs else replace(node, inputs=inputs))
        for var in node.outputs:
            self.suited[var.name] = self.exact[var.name] = var

    def turned(self, node: Node) -> Var | None:
        """What a node gives with operands as they are laid out now; ``None`` where it stays as it was."""
        if _turns(node):
            image, kernels = (self.channels_last(self.suited[v.name]) for v in node.inputs)
            made: Var = self.builder.emit(
                "convolution", image, kernels, **{**node.kwargs, "channels_last": True}
            )
            return made
        if not any(self.suited[v.name] is not self.exact.get(v.name) for v in node.inputs):
            return None
        if node.op in _COPIES and node.out.name not in self.own:
            return self.suited[node.inputs[0].name]
        follows = isinstance(TABLE[node.op].lower, _FOLLOWS) and node.op not in _PLACES
        return self.following(node) if follows else None

    def following(self, node: Node) -> Var | None:
        """The node of operands as they are laid out now, its result laid out as they are."""
        inputs = [self.suited[v.name] for v in node.inputs]
        try:
            made: Var = self.builder.emit(node.op, *inputs, **node.kwargs)
        except (Unsupported, TypeError, ValueError):
            return None  # a reshape that is no view of what lies so
        return made

    def channels_last(self, var: Var) -> Var:
        strides = strides_in_order(var.shape, ORDER)
        return var if strides_agree(var.type, strides) else with_strides(self.builder, var, strides)

    def exactly(self, var: Var) -> Var:
        """A value of the graph laid out as it was."""
        found = self.exact.get(var.name)
        if found is None:
            found = self.exact[var.name] = self._made_exact(var)
        return found

    def _made_exact(self, var: Var) -> Var:
        node = self.producers[var.name]
        suited = self.suited[var.name]
        if strides_agree(suited.type, var.type.strides):
            made = self.with_axes_of_one(suited, var.type)
            if made is not None:
                return made
        if not TABLE[node.op].is_view:
            made = match_type(self.builder, suited, var.type)
            if made is not None:
                return made
        inputs = tuple(map(self.exactly, node.inputs))
        self.builder.keep(replace(node, inputs=inputs))
        return var

    def with_axes_of_one(self, var: Var, type: ArrayType) -> Var | None:
        """A view of ``var`` whose axes of size 1 have ``type``'s strides; ``None`` where there is none."""
        try:
            inner = self.builder.emit("reshape", var, shape=tuple(d for d in type.shape if d != 1))
            made: Var = self.builder.emit("reshape", inner, shape=type.shape)
        except ValueError:
            return None
        return made if same_type(made.type, type, strides=True) else None
