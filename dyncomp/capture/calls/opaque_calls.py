"""Calls of functions marked by ``dyncomp.allow_in_graph``: one node of the graph, whatever is inside.

The types of the results are those of a call made at capture, on what the graph so far computes from the first
call's arguments.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ... import dtypes
from ...device import CPU
from ...frontends.base import ArrayRef
from ...graph.ir import ArrayType, Callee, GraphOutput
from ...signals import is_from_handler
from ..breaks import Break
from ..values.array import ArrayValue
from ..values.base import Tracer, Value
from ..values.drawn import DrawnArrayValue
from ..values.number import NumberValue, SymIntValue
from ..values.seq import ListValue, TupleValue


@dataclasses.dataclass(eq=False)
class _Call:
    """A function's call with its arrays left open: calling it with them gives the result."""

    function: Any
    args: list[Any]
    kwargs: dict[str, Any]

    def __call__(self, *arrays: object) -> Any:
        return self.function(
            *(_filled(a, arrays) for a in self.args),
            **{k: _filled(v, arrays) for k, v in self.kwargs.items()},
        )


@dataclasses.dataclass(frozen=True)
class _Open:
    """Array number ``index``; ``kind`` is that of :class:`~dyncomp.frontends.base.ArrayRef`."""

    index: int
    kind: str


def _filled(argument: Any, arrays: tuple[Any, ...]) -> Any:
    if isinstance(argument, _Open):
        array = np.asarray(arrays[argument.index])
        return {"array": array, "scalar": array[()], "python": array.item() if not array.ndim else array}[
            argument.kind
        ]
    if type(argument) in (tuple, list):
        return type(argument)(_filled(part, arrays) for part in argument)
    return argument


def opaque_call(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Emit the call as a node; breaks where its arguments or results are not arrays and constants."""
    tracer.take_direct()
    refs: list[ArrayRef] = []
    name = function.__qualname__
    call = _Call(
        function,
        [_opened(tracer, name, a, refs) for a in args],
        {k: _opened(tracer, name, v, refs) for k, v in kwargs.items()},
    )
    if not any(ref.kind == "array" for ref in refs):
        raise Break("unsupported-call", f"{name}, allowed in graphs, is given no array")
    examples = _examples(tracer, refs)
    try:
        found = call(*examples)
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Break("would-raise", f"{name}: {type(error).__name__}: {error}") from None
    callee = _callee(name, call, found, examples)
    made = tracer.builder.emit("python_call", *(ref.var for ref in refs), callee=callee)
    made = made if isinstance(made, tuple) else (made,)
    frontend = tracer.config.frontends[0]
    tracer.assume_state(frontend)
    values: list[Value] = [
        tracer.array_value(ArrayRef(var, "array" if kind is np.ndarray else "scalar", frontend.name))
        for var, kind in zip(made, callee.kinds)
    ]
    if callee.structure is None:
        return values[0]
    return ListValue(values) if callee.structure is list else TupleValue(values)


def _opened(tracer: Tracer, name: str, value: Value, refs: list[ArrayRef]) -> Any:
    value = tracer.realize(value)
    if isinstance(value, SymIntValue):
        return int(value.sym)
    if isinstance(value, (TupleValue, ListValue)) and value.pytype in (tuple, list):
        return value.pytype([_opened(tracer, name, item, refs) for item in value.items(tracer)])
    if value.is_const:
        return value.const
    ref = value.ref if isinstance(value, ArrayValue) else None
    if isinstance(value, NumberValue):
        ref = tracer.scalar_input(value)
    known = ("array", "scalar", "python")
    if ref is None or ref.kind not in known or ref.frontend != tracer.config.frontends[0].name:
        raise Break("unsupported-call", f"{name}, allowed in graphs, is given {value.describe()}")
    refs.append(ref)
    return _Open(len(refs) - 1, ref.kind)


def _examples(tracer: Tracer, refs: list[ArrayRef]) -> list[Any]:
    """The values of the arguments at capture, as far as they can be had: else arrays like them."""
    try:
        return _computed(tracer, refs)
    except Exception as error:
        if is_from_handler(error):
            raise
        return [_array_like(ref) for ref in refs]


def _computed(tracer: Tracer, refs: list[ArrayRef]) -> list[Any]:
    inputs = []
    for value in tracer.inputs:
        found = tracer.input_objects.get(value.ref.var.name) if isinstance(value, ArrayValue) else None
        if found is not None:
            inputs.append(np.copy(found))
        elif isinstance(value, (NumberValue, DrawnArrayValue)):
            inputs.append(value.hint)
        else:
            raise LookupError("an array scalar, whose value is not kept")
    hints = tracer.env.hints
    integers = {b.index: hints[b.name] for b in tracer.builder.symbols if b.kind == "int"}
    unique = list({ref.var.name: ref.var for ref in refs}.values())
    graph = tracer.builder.finish(tuple(GraphOutput(var) for var in unique))
    eager = dataclasses.replace(tracer.config.options, backend="eager", stop_after="")
    run = tracer.config.compile_graph(graph, eager, tuple(inputs), None, None).call
    results = run(*inputs, *(integers[k] for k in sorted(integers)))
    by_name = dict(zip((var.name for var in unique), results if len(unique) > 1 else (results,)))
    return [np.array(by_name[ref.var.name]) for ref in refs]


def _array_like(ref: ArrayRef) -> Any:
    shape = tuple(int(n) for n in ref.var.type.shape)
    return np.ones(shape, ref.var.type.dtype.numpy)


def _callee(name: str, call: _Call, found: Any, examples: list[Any]) -> Callee:
    structure = type(found) if type(found) in (tuple, list) else None
    results = tuple(found) if structure is not None else (found,)
    for result in results:
        if type(result) is not np.ndarray and not isinstance(result, np.generic):
            raise Break("unsupported-call", f"{name}, allowed in graphs, returns a {type(result).__name__}")
        if isinstance(result, np.ndarray) and any(np.may_share_memory(result, a) for a in examples):
            raise Break("unsupported-call", f"{name}, allowed in graphs, returns memory of its arguments")
    if not results:
        raise Break("unsupported-call", f"{name}, allowed in graphs, returns nothing")
    return Callee(call, name, tuple(_type_of(name, r) for r in results), tuple(map(type, results)), structure)


def _type_of(name: str, result: Any) -> ArrayType:
    dtype = dtypes.from_numpy(result.dtype)
    if dtype is None:
        raise Break("unsupported-call", f"{name}, allowed in graphs, returns {result.dtype}")
    return ArrayType(dtype, result.shape, tuple(s // result.itemsize for s in result.strides), CPU)
