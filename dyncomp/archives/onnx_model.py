"""``Exported.to_onnx``: the graph as an ONNX model, for runtimes of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..aot_autograd.functionalize import functionalize
from ..aot_autograd.joint import seen
from ..dtypes import DType
from ..errors import ExportError, Unsupported
from ..graph.ir import Graph, GraphOutput, Node
from ..graph.passes.cse import eliminate_common_subexpressions
from ..graph.passes.dce import eliminate_dead_code
from ..graph.passes.decompose import decompose
from ..graph.passes.fold import fold_constants
from ..graph.rewrite import Rebuilder
from ..prims.onnx import KEPT, TRANSLATIONS
from ..prims.opdef import OpDef
from ..prims.table import TABLE
from ..symbolic.integers import Dim, SymInt
from .captured import WholeFunction

OPSET = 18
_TYPES = {
    "bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8",
    "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float16": "FLOAT16", "bfloat16": "BFLOAT16",
    "float32": "FLOAT", "float64": "DOUBLE",
}  # fmt: skip
Array = np.ndarray[Any, Any]


def write_onnx(whole: WholeFunction, path: Path) -> None:
    """Write the model of a captured function. Raises :class:`ExportError` for what ONNX has no operator for,
    with all such operations, and without the package ``onnx``."""
    graph = whole.record.graph
    assert graph is not None
    inputs = []
    for source in whole.signature.inputs:
        name = source.expr().removeprefix("self.")
        inputs.append((name, None if whole.is_given(source) else _on_host(whole.read(source))))
    made, onnx = model_of(functionalize(graph, TABLE), inputs, whole.name)
    onnx.save(made, str(path))


def model_of(graph: Graph, inputs: Sequence[tuple[str, Array | None]], name: str) -> tuple[Any, Any]:
    """A functional graph as a checked model, and the package ``onnx``. ``inputs``: names, and the values of
    those that are to be part of the model. Raises as :func:`write_onnx`."""
    try:
        import onnx
    except ImportError as error:
        raise ExportError("ONNX models need the package onnx: pip install 'dyncomp[onnx]'") from error
    try:
        made = _Model(graph, inputs, name, onnx).made()
        onnx.checker.check_model(made, full_check=True)
    except Unsupported as error:
        raise ExportError(f"{name}: ONNX has no {error}") from error
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(f"{name}: {error}") from error  # an operator that does not take the dtype
    return made, onnx


def _values(graph: Graph, table: Mapping[str, OpDef]) -> Graph:
    """The graph with composites written out but those that ONNX has, and every output a value of its own."""
    if graph.mutations:
        raise ExportError("the function writes to its arguments, which ONNX has no word for")
    builder = Rebuilder(graph, table)
    for node in graph.nodes:
        builder.keep(node)
    visible = [out for out in graph.outputs if not out.hidden]
    outputs = tuple(GraphOutput(seen(builder, graph, out)) for out in visible)
    whole = builder.rebuilt(outputs, ())
    kept = {name: replace(row, decomp=None) if name in KEPT else row for name, row in table.items()}
    for tidy in (decompose, fold_constants, eliminate_common_subexpressions, eliminate_dead_code):
        whole = tidy(whole, kept)
    return whole


class _Model:
    """Puts a model together; what :class:`~dyncomp.prims.onnx.Writer` says."""

    def __init__(
        self, graph: Graph, inputs: Sequence[tuple[str, Array | None]], name: str, onnx: Any
    ) -> None:
        self.given = inputs
        self.name = name
        self.onnx = onnx
        self.graph = _values(graph, TABLE)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[str, str] = {}
        self._count = 0
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def made(self) -> Any:
        helper = self.onnx.helper
        inputs = self._inputs()
        unknown = []
        for node in self.graph.nodes:
            try:
                self.names[node.out.name] = self._translated(node)
            except Unsupported as error:
                self.names.update((var.name, "") for var in node.outputs)  # all are to be named
                unknown.append(f"{error}{f' at {node.loc}' if node.loc is not None else ''}")
        if unknown:
            raise ExportError(f"{self.name}: ONNX has no operators for {'; '.join(dict.fromkeys(unknown))}")
        outputs = []
        for number, out in enumerate(self.graph.outputs):
            name = f"output_{number}"
            self.nodes.append(helper.make_node("Identity", [self.names[out.var.name]], [name]))
            dims = self._dims(out.var.shape)
            outputs.append(helper.make_tensor_value_info(name, self._type(out.var.dtype), dims))
        name = "".join(c if c.isalnum() else "_" for c in self.name)
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, producer_name="dyncomp", ir_version=8)

    def _inputs(self) -> list[Any]:
        """Arguments as inputs, everything else as part of the model."""
        found = []
        for (name, value), inp in zip(self.given, self.graph.inputs, strict=True):
            self.names[inp.var.name] = name
            if value is None:
                dims = self._dims(inp.var.shape)
                found.append(self.onnx.helper.make_tensor_value_info(name, self._type(inp.var.dtype), dims))
            else:
                self.initializers.append(self._tensor(name, value))
        return found

    def _translated(self, node: Node) -> str:
        translation = TRANSLATIONS.get(node.op)
        if translation is None:
            raise Unsupported(node.op)
        for var in (*node.inputs, node.out):
            self._type(var.dtype)
        return translation(self, node, [self.names[var.name] for var in node.inputs])

    def _type(self, dtype: DType) -> int:
        if dtype.name not in _TYPES:
            raise Unsupported(f"arrays of {dtype.name}")
        number: int = getattr(self.onnx.TensorProto, _TYPES[dtype.name])
        return number

    def _dims(self, shape: Sequence[Dim]) -> list[int | str]:
        return [str(dim) if isinstance(dim, SymInt) else dim for dim in shape]

    def _tensor(self, name: str, value: Array) -> Any:
        return self.onnx.numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)

    # -- Writer ---------------------------------------------------------------------------------------
    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def op(self, name: str, *inputs: str, **attributes: object) -> str:
        made = self._fresh()
        self.nodes.append(self.onnx.helper.make_node(name, list(inputs), [made], **attributes))
        return made

    def constant(self, value: Array) -> str:
        value = np.asarray(value)
        key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self._constants:
            self._constants[key] = f"c{len(self._constants)}"
            self.initializers.append(self._tensor(self._constants[key], value))
        return self._constants[key]

    def sizes(self, dims: Sequence[Dim]) -> str:
        if all(isinstance(dim, int) for dim in dims):
            return self.constant(np.asarray(dims, np.int64))
        parts = [
            self._size(dim) if isinstance(dim, SymInt) else self.constant(np.asarray([dim], np.int64))
            for dim in dims
        ]
        return self.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def cast(self, value: str, dtype: DType) -> str:
        return self.op("Cast", value, to=self._type(dtype))

    def _size(self, size: SymInt) -> str:
        """A size as a vector of one number: a polynomial in sizes of the inputs."""
        total = self.constant(np.asarray([size.constant], np.int64))
        for monomial, factor in size.terms:
            product = self.constant(np.asarray([factor], np.int64))
            for atom in monomial:
                product = self.op("Mul", product, self._symbol(str(atom)))
            total = self.op("Add", total, product)
        return total

    def _symbol(self, name: str) -> str:
        for symbol in self.graph.symbols:
            if symbol.name == name and symbol.kind == "dim":
                given = self.names[self.graph.inputs[symbol.index].var.name]
                whole = self.op("Shape", given)
                return self.op("Gather", whole, self.constant(np.asarray([symbol.axis], np.int64)), axis=0)
        raise Unsupported(f"the size {name}")


def _on_host(value: Any) -> Array:
    for name in ("detach", "cpu", "numpy"):
        if hasattr(value, name):
            value = getattr(value, name)()
    return np.asarray(value)
