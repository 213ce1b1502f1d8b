"""Composite ops written out in prims, through the rows' ``decomp``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...dataclass import dataclass
from ...errors import VerifyError
from ..ir import Graph, Loc, Node, Ops, OpTable, Var, same_type
from ..rewrite import Rebuilder, Transformer, frozen_key, match_type

_DEPTH_LIMIT = 64  # a composite whose decomposition needs itself is a bug of its row


def decompose(graph: Graph, table: OpTable) -> Graph:
    """Replace every composite by prims, also inside decompositions. Equal calls (same op, types and
    parameters) are decomposed once and repeated by renaming."""
    if not any(getattr(table[node.op], "decomp", None) for node in graph.nodes if node.op in table):
        return graph
    return _Decomposer(graph, table).run()


@dataclass(frozen=True)
class _Template:
    """A decomposition made earlier: nodes over the values ``inputs``, giving ``outputs``."""

    inputs: tuple[Var, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Var, ...]


class PrimBuilder(Rebuilder):
    """Emits prims only: a composite is expanded where it is emitted."""

    depth = 0

    def emit(self, op: str, *inputs: Var, loc: Loc | None = None, **params: Any) -> Any:
        decomp = getattr(self.table.get(op), "decomp", None)
        if decomp is None:
            return super().emit(op, *inputs, loc=loc, **params)
        inferred = self.table[op].meta(*(v.type for v in inputs), **params)
        several = isinstance(inferred, tuple)
        types = inferred if several else (inferred,)
        self.depth += 1
        if self.depth > _DEPTH_LIMIT:
            raise VerifyError(f"the decomposition of {op} does not end")
        try:
            made = decomp(Ops(self), *inputs, **params)
        finally:
            self.depth -= 1
        values = tuple(made) if several else (made,)
        results = []
        for value, type in zip(values, types, strict=True):
            result = match_type(self, value, type)
            if result is None:
                raise VerifyError(f"decomposition of {op} gives {value.type}, its meta says {type}")
            results.append(result)
        return tuple(results) if several else results[0]

    def replay(self, template: _Template, inputs: tuple[Var, ...]) -> tuple[Var, ...]:
        renamed = {old.name: new for old, new in zip(template.inputs, inputs)}
        for node in template.nodes:
            outputs = tuple(self.fresh(v.type) for v in node.outputs)
            renamed.update({old.name: new for old, new in zip(node.outputs, outputs)})
            read = tuple(renamed[v.name] for v in node.inputs)
            self.keep(replace(node, inputs=read, outputs=outputs, loc=self.loc))
        return tuple(renamed[v.name] for v in template.outputs)


class _Decomposer(Transformer):
    builder: PrimBuilder

    def __init__(self, graph: Graph, table: OpTable) -> None:
        super().__init__(graph, table)
        self.templates: dict[Any, _Template] = {}

    def make_builder(self) -> PrimBuilder:
        return PrimBuilder(self.graph, self.table)

    def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        if getattr(self.table.get(node.op), "decomp", None) is None:
            return self.keep(node, inputs)
        key = self._key(node, inputs)
        template = self.templates.get(key)
        if template is None:
            outputs = self._expand(node, inputs, key)
        else:
            outputs = self.builder.replay(template, inputs)
        return outputs if len(node.outputs) != 1 else outputs[0]

    def _expand(self, node: Node, inputs: tuple[Var, ...], key: object) -> tuple[Var, ...]:
        start = len(self.builder.nodes)
        made = self.builder.emit(node.op, *inputs, **node.kwargs)
        outputs = made if isinstance(made, tuple) else (made,)
        for old, new in zip(node.outputs, outputs, strict=True):
            if not same_type(old.type, new.type, strides=True):
                raise VerifyError(f"decomposition of {node.op} gives {new.type}, not {old.type}")
        self.templates[key] = _Template(inputs, tuple(self.builder.nodes[start:]), outputs)
        return outputs

    def _key(self, node: Node, inputs: tuple[Var, ...]) -> Any:
        types = tuple(
            (v.dtype, frozen_key(v.shape), frozen_key(v.type.strides), v.type.device) for v in inputs
        )
        # which inputs are one value matters to rules that look at values
        positions = {v.name: place for place, v in enumerate(inputs)}
        pattern = tuple(positions[v.name] for v in inputs)
        return (node.op, types, pattern, frozen_key(node.params))
