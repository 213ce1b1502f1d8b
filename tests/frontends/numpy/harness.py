"""Runs small array programs through the NumPy frontend and compares them with NumPy itself.

A program is a function ``program(np, *arguments)`` that takes its ``np`` as an argument. ``check`` runs
it on NumPy and, with a stand-in for ``np`` and proxies for the arrays, through the frontend's rules
into a graph, which the interpreter then runs: values, dtypes, shapes, strides, kinds of results,
mutation of arguments and sharing of memory must agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dyncomp.aot_autograd.functionalize import functionalize
from dyncomp.errors import Unsupported
from dyncomp.frontends.base import ArrayRef, TraceContext
from dyncomp.frontends.numpy.frontend import NumpyFrontend
from dyncomp.graph.interp import Interpreter
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, verify
from dyncomp.prims.table import TABLE
from dyncomp.symbolic.integers import ShapeEnv, SymInt

FRONTEND = NumpyFrontend()
Program = Callable[..., Any]


class Tracer:
    """Traces one program."""

    def __init__(self, arguments: tuple[Any, ...], dynamic: bool) -> None:
        self.builder = GraphBuilder(TABLE, ShapeEnv())
        self.tx = TraceContext(self.builder)
        self.proxies: dict[int, Proxy] = {}
        self.keep: list[ArrayRef] = []
        self.dynamic = dynamic
        self.arguments = [self._argument(a) for a in arguments]

    def _argument(self, value: Any) -> Any:
        if not isinstance(value, FRONTEND.array_types):
            return value
        facts = FRONTEND.describe(value)
        index = len(self.builder.inputs)
        shape = tuple(self._dim(d, index, axis) for axis, d in enumerate(facts.shape))
        strides = facts.strides
        if self.dynamic:
            strides = self._strides(facts, shape)
        var = self.builder.add_input(ArrayType(facts.dtype, shape, strides), facts.kind)
        return self.wrap(ArrayRef(var, facts.kind, readonly=not facts.writeable))

    def _dim(self, size: int, index: int, axis: int) -> Any:
        if not self.dynamic or size < 2:
            return size
        symbol = self.builder.env.new_symbol(size, low=2)
        self.builder.bind_symbol(symbol, "dim", index, axis)
        return symbol

    def _strides(self, facts: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Symbolic strides of a C-contiguous argument."""
        strides = []
        step: Any = 1
        for dim in reversed(shape):
            strides.append(step)
            step = step * dim
        return tuple(reversed(strides))

    def wrap(self, value: Any) -> Any:
        if isinstance(value, ArrayRef):
            if id(value) not in self.proxies:
                self.keep.append(value)
                self.proxies[id(value)] = Proxy(self, value)
            return self.proxies[id(value)]
        if isinstance(value, (tuple, list)):
            return _rebuilt(value, [self.wrap(v) for v in value])
        return value

    def unwrap(self, value: Any) -> Any:
        if isinstance(value, Proxy):
            return value._ref
        if isinstance(value, (tuple, list)):
            return _rebuilt(value, [self.unwrap(v) for v in value])
        if isinstance(value, slice):
            return slice(*map(self.unwrap, (value.start, value.stop, value.step)))
        if isinstance(value, Module):
            return value._object
        return value

    def call(self, rule: Any, *args: Any, **kwargs: Any) -> Any:
        if rule is None:
            raise Unsupported("no rule")
        plain = [self.unwrap(a) for a in args]
        named = {k: self.unwrap(v) for k, v in kwargs.items()}
        return self.wrap(rule(self.tx, *plain, **named))

    def finish(self, result: Any) -> tuple[Graph, Any]:
        """The graph, and the result with output numbers in place of the proxies."""
        outputs: list[GraphOutput] = []

        def place(value: Any) -> Any:
            if isinstance(value, Proxy):
                outputs.append(GraphOutput(value._ref.var, value._ref.kind))
                return Slot(len(outputs) - 1)
            if isinstance(value, (tuple, list)):
                return _rebuilt(value, [place(v) for v in value])
            return value

        template = place(result)
        return self.builder.finish(tuple(outputs)), template


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    """A list, tuple or named tuple of the same type."""
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


class Slot:
    def __init__(self, number: int) -> None:
        self.number = number


class Proxy:
    """A traced array as the program sees it."""

    __array_ufunc__ = None

    def __init__(self, tracer: Tracer, ref: ArrayRef) -> None:
        self._tracer = tracer
        self._ref = ref

    def __getattr__(self, name: str) -> Any:
        attribute = FRONTEND.find_attribute(self._ref, name)
        if attribute is not None:
            return self._tracer.call(attribute, self)
        method = FRONTEND.find_method(self._ref, name)
        if method is None:
            raise Unsupported(f"no attribute {name}")
        return lambda *args, **kwargs: self._tracer.call(method, self, *args, **kwargs)

    def __iter__(self) -> Any:
        return (self[i] for i in range(int(self.shape[0])))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __bool__(self) -> bool:
        raise Unsupported("a branch on array data")


def _install(dunder: str, name: str, reflected: bool = False) -> None:
    def apply(self: Proxy, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        return self._tracer.call(FRONTEND.find_operator(name), *operands)

    setattr(Proxy, dunder, apply)


for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "matmul",
]:
    _operator = {"and": "and_", "or": "or_"}.get(_name, _name)
    _install(f"__{_name}__", _operator)
    _install(f"__r{_name}__", _operator, reflected=True)
    _install(f"__i{_name}__", f"i{_name}")
for _name in ["neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "getitem", "setitem"]:
    _install(f"__{_name}__", _name)


class Module:
    """Stands for ``numpy``, a submodule, or a callable of it."""

    def __init__(self, tracer: Tracer, obj: Any) -> None:
        self._tracer = tracer
        self._object = obj

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._object, name)
        return (
            Module(self._tracer, found)
            if callable(found) or hasattr(found, "__path__")
            else _submodule(self._tracer, found)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rule = FRONTEND.find_function(self._object)
        if rule is None:
            raise Unsupported(f"no rule for {self._object!r}")
        return self._tracer.call(rule, *args, **kwargs)


def _submodule(tracer: Tracer, found: Any) -> Any:
    return Module(tracer, found) if type(found).__name__ == "module" else found


def trace(program: Program, *arguments: Any, dynamic: bool = False) -> tuple[Graph, Any, Tracer]:
    """The graph of a program, where its results are, and the tracer."""
    tracer = Tracer(arguments, dynamic)
    result = program(Module(tracer, np), *tracer.arguments)
    graph, template = tracer.finish(result)
    return verify(graph, TABLE), template, tracer


def _copies(arguments: tuple[Any, ...]) -> list[Any]:
    """Copies with the same memory layout, strides and offset included."""
    made = []
    for value in arguments:
        if not isinstance(value, np.ndarray):
            made.append(value)
            continue
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        memory = np.frombuffer(bytearray(root.ravel(order="K").tobytes()) or bytearray(8), np.uint8)
        offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        offset = offset if value.size else 0
        window = np.ndarray(value.shape, value.dtype, memory, offset, value.strides if value.size else None)
        window.flags.writeable = value.flags.writeable
        made.append(window)
    return made


def check(
    program: Program,
    *arguments: Any,
    rtol: float = 1e-12,
    strides: bool = True,
    alias: bool = True,
    dynamic: bool = False,
) -> Graph:
    """Compare; raises ``Unsupported`` where the frontend has no meaning for the program."""
    graph, template, _ = trace(program, *arguments, dynamic=dynamic)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        reference_args = _copies(arguments)
        expected = program(np, *reference_args)
        for functional in (False, True):
            graph_args = _copies(arguments)
            runnable = functionalize(graph, TABLE) if functional else graph
            inputs = [a for a in graph_args if isinstance(a, FRONTEND.array_types)]
            outputs = Interpreter(runnable, TABLE).run(*inputs)
            actual = _fill(template, outputs)
            _compare(actual, expected, rtol, strides)
            for a, b in zip(graph_args, reference_args):
                if isinstance(a, np.ndarray):
                    _compare_array(a, b, rtol, False)
            if alias:
                _compare_aliasing(actual, graph_args, expected, reference_args)
    return graph


def _fill(template: Any, outputs: list[Any]) -> Any:
    if isinstance(template, Slot):
        return outputs[template.number]
    if isinstance(template, (tuple, list)):
        return _rebuilt(template, [_fill(t, outputs) for t in template])
    return template


def _compare(actual: Any, expected: Any, rtol: float, strides: bool) -> None:
    if isinstance(expected, (tuple, list)):
        assert type(actual) is type(expected) and len(actual) == len(expected)
        for a, e in zip(actual, expected):
            _compare(a, e, rtol, strides)
        return
    if isinstance(actual, SymInt):
        actual = actual.hint
    assert type(actual) is type(expected), (type(actual), type(expected))
    if isinstance(expected, (np.ndarray, np.generic)):
        _compare_array(actual, expected, rtol, strides)
    elif isinstance(expected, (float, complex)):
        np.testing.assert_allclose(actual, expected, rtol=rtol)
    else:
        assert actual == expected


def _compare_array(actual: Any, expected: Any, rtol: float, strides: bool) -> None:
    assert actual.dtype == expected.dtype, (actual.dtype, expected.dtype)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    if strides and expected.size:
        wanted = [s for d, s in zip(expected.shape, expected.strides) if d > 1]
        found = [s for d, s in zip(expected.shape, actual.strides) if d > 1]
        assert found == wanted, (found, wanted)
    if expected.dtype.kind in "fc":
        scale = {2: 2e-3, 4: 2e-6}.get(expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1), 0)
        tolerance = max(rtol, scale)
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(actual, expected)


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in _arrays(v)]
    return [value] if isinstance(value, np.ndarray) else []


def _compare_aliasing(actual: Any, args: list[Any], expected: Any, reference_args: list[Any]) -> None:
    found = _pattern([*_arrays(actual), *_arrays(list(args))])
    wanted = _pattern([*_arrays(expected), *_arrays(list(reference_args))])
    assert found == wanted, (found, wanted)


def _pattern(arrays: list[np.ndarray[Any, Any]]) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i in range(len(arrays))
        for j in range(i)
        if arrays[i].size and arrays[j].size and np.may_share_memory(arrays[i], arrays[j])
    ]
