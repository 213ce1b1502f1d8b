"""Making objects of graphs: of a function that is captured, and of a backend's graph."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..archives.captured import WholeFunction, capture_whole, name_of
from ..errors import GraphError
from ..frontends.base import ArrayOwner
from ..graph.interp import concrete
from ..graph.ir import Graph, verify
from ..hook._hook import Dispatcher
from ..pipeline import op_table
from ..prims.table import TABLE
from .base import GraphBase
from .front import CapturedFront, PlainFront, constant_name, inputs_in
from .normal import identifier, normal_form, renamed, unused_inputs, without_inputs

G = TypeVar("G", bound=GraphBase)


def traced(
    kind: type[G], f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], dynamic: Any = None
) -> G:
    """See ``symbolic_trace``. ``kind``: the class to make."""
    args, kwargs = _distinct(args, kwargs)
    if not _is_python(f):
        f = _called(f)
    whole = capture_whole(f, args, kwargs, dynamic, _nothing_computed)
    compiled = whole.record.compiled
    if whole.record.graph is None or compiled is None:
        raise GraphError(f"{name_of(f)} works on no array")
    return _traced(kind, whole, whole.record.graph, _owner_of(whole))


def _is_python(f: Callable[..., Any]) -> bool:
    """Whether calling ``f`` runs code of Python that capture begins with."""
    if isinstance(f, (types.FunctionType, types.MethodType, Dispatcher)):
        return True
    return isinstance(inspect.getattr_static(type(f), "__call__", None), types.FunctionType)


def _called(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python that calls ``f``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    call.__qualname__ = name_of(f)
    return call


def _distinct(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with copies of arrays that are given twice: the graph is not only for equal ones."""
    seen: set[int] = set()

    def distinct(value: Any) -> Any:
        if not hasattr(value, "__array__") or id(value) not in seen:
            seen.add(id(value))
            return value
        return value.clone() if hasattr(value, "clone") else value.copy()

    return tuple(map(distinct, args)), {name: distinct(value) for name, value in kwargs.items()}


def _owner_of(whole: WholeFunction) -> ArrayOwner | None:
    """The library of the function's arrays; ``None``: NumPy."""
    owner: ArrayOwner | None = whole.record.compiled.owner
    return owner


def _traced(kind: type[G], whole: WholeFunction, graph: Graph, owner: ArrayOwner | None) -> G:
    table = op_table(owner)
    graph = normal_form(graph, table, keep_views=False)
    sources = whole.signature.inputs
    labels = [
        source.expr() if whole.is_given(source) else constant_name(source, whole.first)
        for source, _ in zip(sources, graph.inputs)
    ]
    graph, names = _with_labels(graph, labels)
    front = CapturedFront(whole, names)
    constants: dict[str, tuple[str, Any]] = {}
    taken: set[str] = set()
    for name, label, source in zip(names, labels, sources):
        if whole.is_given(source):
            continue
        value: Any = whole.read(source)
        if owner is not None and hasattr(value, "detach"):
            value = value.detach()  # no parameter, of which a derivative may be asked
        label = _unique(label, taken)
        taken.add(label)
        constants[name] = (label, value)
    unused = unused_inputs(graph) & constants.keys() - inputs_in(front.tree)
    graph = verify(without_inputs(graph, unused), table)
    constants = {name: pair for name, pair in constants.items() if name not in unused}
    name = whole.name.rpartition(".")[2]
    return kind(name, replace(graph, name=name), front, constants, owner)


def _unique(name: str, taken: set[str]) -> str:
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def _with_labels(graph: Graph, labels: Sequence[str]) -> tuple[Graph, list[str]]:
    """The graph with readable names of its inputs."""
    taken = {var.name for node in graph.nodes for var in node.outputs}
    names: list[str] = []
    for label in labels:
        names.append(identifier(label, {*taken, *names}, TABLE))
    mapping = {inp.var.name: name for inp, name in zip(graph.inputs, names)}
    graph = renamed(graph, mapping)
    inputs = tuple(replace(inp, label=label) for inp, label in zip(graph.inputs, labels))
    return replace(graph, inputs=inputs), names


def wrapped(kind: type[G], graph: Graph, owner: ArrayOwner | None) -> G:
    """See ``wrap_graph``. ``kind``: the class to make."""
    table = op_table(owner)
    graph = normal_form(graph, table, keep_views=True)
    labels = [_readable(inp.label) or inp.var.name for inp in graph.inputs]
    graph, names = _with_labels(graph, labels)
    integers = sum(symbol.kind == "int" for symbol in graph.symbols)
    outputs = sum(not out.hidden for out in graph.outputs)
    front = PlainFront(names, outputs, several=True, integers=integers)
    return kind(graph.name, graph, front, {}, owner)


_KEY = re.compile(r"\['?([^'\]]+)'?\]")
_MODULE_PARTS = ("_modules", "_parameters", "_buffers")


def _readable(label: str) -> str:
    """``layers.0.weight`` for what capture calls a module's parameter."""
    if not label.startswith("vars("):
        return label
    return ".".join(key for key in _KEY.findall(label) if key not in _MODULE_PARTS)


# -- capture without a computation ---------------------------------------------------------------------
def _nothing_computed(graph: Graph, examples: Sequence[Any]) -> Callable[..., Any]:
    """A backend: results of the right types, without the computation."""
    types = [out.var.type for out in graph.outputs if not out.hidden]

    def call(*args: Any) -> list[Any]:
        hints = {name: info.hint for name, info in graph.env.symbols.items()}
        return [np.zeros(concrete(type.shape, hints), type.dtype.numpy) for type in types]

    return call
