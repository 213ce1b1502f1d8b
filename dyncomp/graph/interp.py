"""Run a graph on NumPy arrays, node by node, through the rows' references.

In a graph that is not functionalized the results of view ops are real NumPy views and ``copy_`` writes
through them, so the interpreter is the executable definition of both forms, and the ``eager`` backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import VerifyError
from ..symbolic.integers import Dim, SymGuard, SymInt
from .ir import COPY, Graph, GraphInput, GraphOutput, Node, OpTable, Var, ViewOf

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


def concrete(value: object, symbols: Symbols) -> Any:
    """``value`` with every symbolic integer, also inside containers, replaced by its value."""
    if isinstance(value, SymInt):
        return value.evaluate(symbols)
    if isinstance(value, tuple):
        return tuple(concrete(v, symbols) for v in value)
    if isinstance(value, list):
        return [concrete(v, symbols) for v in value]
    if isinstance(value, dict):
        return {k: concrete(v, symbols) for k, v in value.items()}
    return value


def symbols_in(value: object) -> set[str]:
    """The names of the symbols that occur in ``value``, also inside containers."""
    if isinstance(value, SymInt):
        return value.symbols()
    if isinstance(value, dict):
        value = tuple(value.values())
    return set().union(*map(symbols_in, value)) if isinstance(value, (tuple, list)) else set()


def has_symbols(value: object) -> bool:
    """Whether a symbolic integer occurs in ``value``."""
    kind = type(value)
    if kind is int or kind is str:
        return False
    if isinstance(value, SymInt):
        return True
    if isinstance(value, (tuple, list)):
        return any(map(has_symbols, value))
    if isinstance(value, dict):
        return any(map(has_symbols, value.values()))
    return False


def bind_symbols(graph: Graph, inputs: Sequence[Any], integers: Sequence[int]) -> dict[str, int]:
    """The values of the graph's symbols in one call."""
    values: dict[str, int] = {}
    for symbol in graph.symbols:
        if symbol.kind == "int":
            values[symbol.name] = int(integers[symbol.index])
        elif symbol.kind == "dim":
            values[symbol.name] = inputs[symbol.index].shape[symbol.axis]
        elif symbol.kind == "stride":
            array = inputs[symbol.index]
            values[symbol.name] = array.strides[symbol.axis] // array.itemsize
    return values


def define_symbols(node: Node, row: Any, results: Sequence[Array], symbols: dict[str, int]) -> None:
    """Give the symbols that ``node`` defines their values; ``ValueError`` where its results do not agree with
    what is known of them."""
    if row.defines == "value":
        symbols[str(node.kwargs["value"])] = int(results[0])
        return
    for var, array in zip(node.outputs, results, strict=True):
        if len(var.shape) != array.ndim:
            raise ValueError(f"{node.op}: {array.ndim} dimensions where there should be {len(var.shape)}")
        for dim, size in zip(var.shape, array.shape):
            if isinstance(dim, SymInt) and str(dim) not in symbols and str(dim) in dim.symbols():
                symbols[str(dim)] = size
            elif concrete(dim, symbols) != size:
                raise ValueError(f"{node.op}: size {size} where {dim} should be")


def check_guards(guards: Sequence[SymGuard], symbols: Symbols) -> None:
    """Raise ``ValueError`` for the first guard that does not hold, of those whose symbols are all known; the
    environment remembers it."""
    for guard in guards:
        if guard.expr.symbols() <= symbols.keys() and not guard.holds(symbols):
            guard.expr.env.failed = guard
            raise ValueError(f"a size that depends on the data: {guard} does not hold")


def dense_empty(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array whose dimensions lie in memory in the order that ``strides`` say."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    array = np.empty([shape[axis] for axis in order], dtype)
    inverse = sorted(range(len(shape)), key=order.__getitem__)
    return array.transpose(inverse)


class _Memory:
    """Keeps ``owner`` alive while an array made from ``__array_interface__`` uses its memory."""

    def __init__(self, owner: Array, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def _array_over(base: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array | None:
    """A view whose ``.base`` is an array, so that NumPy's rules about the writeable flag hold; ``None`` where
    the array that owns the memory is not one block."""
    root = base
    while isinstance(root.base, np.ndarray):
        root = root.base
    place = base.__array_interface__["data"][0] - root.__array_interface__["data"][0] + offset
    try:
        window: Array = np.ndarray(shape, base.dtype, root, place, strides)
    except (ValueError, TypeError, BufferError):
        return None
    if not base.flags.writeable:
        window.flags.writeable = False
    return window


def strided_window(base: Array, shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
    """A view of ``base``'s memory: strides and offset in elements from its first element.

    Unlike ``numpy.lib.stride_tricks.as_strided`` the offset may be negative (a flipped flipped array).
    The caller answers for staying inside the memory.
    """
    item = base.itemsize
    found = _array_over(base, tuple(shape), tuple(stride * item for stride in strides), offset * item)
    if found is not None:
        return found
    interface = dict(base.__array_interface__)
    address, readonly = interface["data"]
    interface["data"] = (address + offset * item, readonly)
    interface["shape"] = tuple(shape)
    interface["strides"] = tuple(stride * item for stride in strides)
    window = np.asarray(_Memory(base, interface))
    if window.dtype != base.dtype:
        # extension types (bfloat16) pass through the interface as raw bytes
        window = window.view(base.dtype)
    return window


class Interpreter:
    """Runs one graph. Subclass and override :meth:`run_node` to look at or change every value.

    ``table`` is a mapping from op names to rows that have ``ref`` (``prims.table.TABLE``).
    """

    def __init__(self, graph: Graph, table: OpTable) -> None:
        self.graph = graph
        self.table = table
        self._steps = [_Step(node, table) for node in graph.nodes]
        self._writes = any(node.op == COPY for node in graph.nodes)
        _plan_frees(graph, self._steps)

    def run(self, *args: Any) -> list[Any]:
        """Run on the graph's inputs followed by its integer arguments; the visible outputs.

        Inputs of a functionalized graph are written only after every node has run.
        """
        count = len(self.graph.inputs)
        inputs = [_wrap(inp, arg) for inp, arg in zip(self.graph.inputs, args)]
        if len(inputs) != count:
            raise TypeError(f"{self.graph.name} takes {count} inputs, got {len(inputs)}")
        symbols = bind_symbols(self.graph, inputs, args[count:])
        values = {inp.var.name: array for inp, array in zip(self.graph.inputs, inputs)}
        for step in self._steps:
            self._run_step(step, values, symbols)
        outputs = self._outputs(values, inputs, symbols)
        self._write_back(values, inputs)
        return outputs

    __call__ = run

    def run_node(self, node: Node, inputs: list[Array], params: dict[str, Any]) -> Any:
        """The value (or tuple of values) of a node; ``params`` have no symbols left in them."""
        return self.table[node.op].ref(*inputs, **params)

    def _run_step(self, step: _Step, values: dict[str, Array], symbols: dict[str, int]) -> None:
        node = step.node
        inputs = [values[name] for name in step.inputs]
        if step.is_copy:
            inputs[0][...] = inputs[1]
        else:
            params = concrete(step.params, symbols) if step.symbolic else step.params
            result = self.run_node(node, inputs, params)
            several = result if isinstance(result, (tuple, list)) else (result,)
            if step.defines:
                define_symbols(node, self.table[node.op], several, symbols)
                check_guards(self.graph.env.unbacked_guards(), symbols)
            for made, value in zip(step.outputs, several, strict=True):
                values[made.name] = step.settle(made, value, inputs, symbols, self._writes)
        for name in step.frees:
            del values[name]

    def _outputs(self, values: dict[str, Array], inputs: list[Array], symbols: Symbols) -> list[Any]:
        made: list[Array | None] = []
        taken = list(inputs)
        for out in self.graph.outputs:
            if out.view is not None:
                made.append(None)
                continue
            array = values[out.var.name]
            if self.graph.functional and _must_copy(array, out, taken):
                array = array.copy(order="K")
            taken.append(array)
            made.append(array)
        results = []
        for out, value in zip(self.graph.outputs, made):
            if out.hidden:
                continue
            if out.view is not None:
                value = _window(out.view, inputs, made, symbols)
            assert value is not None
            results.append(_unwrap(out, value))
        return results

    def _write_back(self, values: dict[str, Array], inputs: list[Array]) -> None:
        mutated = [inputs[index] for index, _ in self.graph.mutations]
        for array in mutated:
            if not array.flags.writeable:
                raise ValueError("assignment destination is read-only")
        sources = []
        for _, var in self.graph.mutations:
            value = values[var.name]
            aliased = any(np.may_share_memory(value, array) for array in mutated)
            sources.append(value.copy() if aliased else value)
        for array, value in zip(mutated, sources):
            array[...] = value


class _Made:
    """What a node promises of one of its results."""

    __slots__ = ("name", "type", "dtype", "strides")

    def __init__(self, var: Var) -> None:
        self.name = var.name
        self.type = var.type
        self.dtype = var.type.dtype.numpy
        known = all(isinstance(s, int) for s in var.type.strides)
        self.strides = tuple(s * self.dtype.itemsize for s in var.type.strides) if known else None


class _Step:
    """A node, made ready to run."""

    __slots__ = ("node", "is_copy", "inputs", "outputs", "params", "symbolic", "view", "frees", "defines")

    def __init__(self, node: Node, table: OpTable) -> None:
        self.node = node
        self.is_copy = node.op == COPY
        self.inputs = [var.name for var in node.inputs]
        self.outputs = [_Made(var) for var in node.outputs]
        self.params = node.kwargs
        self.defines = not self.is_copy and bool(getattr(table[node.op], "defines", ""))
        self.symbolic = has_symbols(self.params) and not self.defines
        self.view = not self.is_copy and bool(getattr(table[node.op], "is_view", False))
        self.frees: list[str] = []

    def settle(
        self, made: _Made, value: object, inputs: list[Array], symbols: Symbols, writes: bool
    ) -> Array:
        """Make a reference's result keep the promises of its type: an array of the dtype; a view where
        the op is one; otherwise memory of its own, laid out as the type says."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        if array.dtype is not made.dtype and array.dtype != made.dtype:
            raise VerifyError(f"{self.node.op}: reference gives {array.dtype}, type says {made.type}")
        if self.view:
            if writes and array.size and not np.may_share_memory(array, inputs[0]):
                raise VerifyError(f"{self.node.op}: not a view for an array of strides {inputs[0].strides}")
            return _as_writeable_as(inputs[0], array) if writes else array
        if _is_borrowed(array, inputs):
            array = array.copy(order="K")
        if array.strides == made.strides:
            return array
        return laid_out(array, made.type.strides, symbols)


def _is_borrowed(array: Array, inputs: list[Array]) -> bool:
    if array.flags.owndata:
        for known in inputs:  # noqa: SIM110 - faster than any()
            if array is known:
                return True
        return False
    return any(np.may_share_memory(array, known) for known in inputs)


def _as_writeable_as(base: Array, view: Array) -> Array:
    """NumPy hands out diagonals and broadcasts read-only; where no elements coincide, ``copy_`` may write."""
    if base.flags.writeable and not view.flags.writeable:
        if not view.size or all(s or n == 1 for n, s in zip(view.shape, view.strides)):
            view.flags.writeable = True
    return view


def laid_out(array: Array, strides: tuple[Dim, ...], symbols: Symbols) -> Array:
    """``array``, or a copy that lies in memory as ``strides`` (in elements) say."""
    if array.ndim == 0 or array.size == 0:
        return array
    item = array.itemsize
    wanted = [s if isinstance(s, int) else s.evaluate(symbols) for s in strides]
    if all(n == 1 or have == want * item for n, have, want in zip(array.shape, array.strides, wanted)):
        return array
    fixed = dense_empty(array.shape, wanted, array.dtype)
    fixed[...] = array
    return fixed


def _plan_frees(graph: Graph, steps: list[_Step]) -> None:
    """Let every value go after its last use."""
    keep = {out.var.name for out in graph.outputs} | {var.name for _, var in graph.mutations}
    keep |= {inp.var.name for inp in graph.inputs}
    seen: set[str] = set()
    for step in reversed(steps):
        for var in (*step.node.inputs, *step.node.outputs):
            if var.name not in seen and var.name not in keep:
                seen.add(var.name)
                step.frees.append(var.name)


def _wrap(inp: GraphInput, value: object) -> Array:
    """An argument as an array; scalars become zero-dimensional arrays of the input's dtype."""
    if isinstance(value, np.ndarray) and inp.kind == "array":
        return value
    if inp.kind == "array":
        raise TypeError(f"input {inp.label or inp.var.name} is a {type(value).__name__}, not a numpy array")
    return np.asarray(value, inp.var.dtype.numpy)


def _must_copy(array: Array, out: GraphOutput, taken: list[Array]) -> bool:
    """An output has memory of its own, that it may write (NumPy's broadcasts are read-only)."""
    if any(np.may_share_memory(array, other) for other in taken):
        return True
    return not out.readonly and not array.flags.writeable


def _unwrap(out: GraphOutput, array: Array) -> Any:
    if out.kind == "scalar":
        return array[()]
    if out.kind == "python":
        return array.item()
    if out.readonly and array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _window(view: ViewOf, inputs: list[Array], outputs: list[Array | None], symbols: Symbols) -> Array:
    base = inputs[view.index] if view.kind == "input" else outputs[view.index]
    assert base is not None
    shape, strides, offset = concrete((view.shape, view.strides, view.offset), symbols)
    return strided_window(base, shape, strides, offset)


def run(graph: Graph, table: OpTable, *args: object) -> list[Any]:
    """Run ``graph`` once on its inputs followed by its integer arguments; its visible outputs."""
    return Interpreter(graph, table).run(*args)


def as_callable(graph: Graph, table: OpTable) -> Callable[..., Any]:
    """A function of the graph's inputs and integers; one output is returned bare, several as a tuple."""
    interpreter = Interpreter(graph, table)

    def call(*args: object) -> Any:
        results = interpreter.run(*args)
        return results[0] if len(results) == 1 else tuple(results)

    call.__name__ = graph.name
    return call
