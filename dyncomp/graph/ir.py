"""The graph IR: a frozen list of nodes in single-assignment form.

A :class:`Graph` has array and scalar inputs, symbols for sizes that are not constants, nodes, outputs,
and, once functionalized, a list of input arrays whose new contents are to be written back. Before
functionalization the one effect a node may have is ``copy_(dst, src)``, which writes ``src`` into the
memory that ``dst`` views, and nodes whose row lowers as a ``View`` alias their first input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..dataclass import dataclass, field
from ..device import CPU, Device
from ..dtypes import DType
from ..errors import VerifyError
from ..symbolic.integers import Dim, ShapeEnv, SymInt, product, same

# How a graph's caller passes an input, or gets an output back. ``array``: an array object.
# ``scalar``: a zero-dimensional value passed by value (Python or NumPy scalar; as an output: the
# frontend's scalar object). ``python``: as an output, a Python bool, int, float or complex. ``host``: as an
# output of a graph on a device, a new array on the CPU.
KINDS = ("array", "scalar", "python", "host")

COPY = "copy_"


GRADIENT_OF = "gradient of "  # before the name of a function


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in the user's program."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def of_gradient(self) -> Loc:
        """The place of what is the derivative of what is written here."""
        if self.function.startswith(GRADIENT_OF):
            return self
        return Loc(self.file, self.line, GRADIENT_OF + self.function)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Element type, shape, strides (in elements) and device of a value."""

    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    device: Device = CPU

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """C-contiguous, structurally (records no guard)."""
        return all(same(a, b) for a, b in zip(self.strides, contiguous_strides(self.shape)))

    def __str__(self) -> str:
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if not self.is_contiguous:
            text += f"{{{', '.join(map(str, self.strides))}}}"
        return text if self.device == CPU else f"{text}@{self.device}"


def contiguous_strides(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """C-order strides in elements (dimensions of size 0 count as 1, as in NumPy)."""
    strides: list[Dim] = []
    step: Dim = 1
    for dim in reversed(shape):
        strides.append(step)
        step = step * (1 if isinstance(dim, int) and dim == 0 else dim)
    return tuple(reversed(strides))


def array_type(dtype: DType, shape: tuple[Dim, ...], device: Device = CPU) -> ArrayType:
    """A C-contiguous :class:`ArrayType`."""
    return ArrayType(dtype, shape, contiguous_strides(shape), device)


@dataclass(frozen=True, eq=False)
class Callee:
    """A Python function as a node parameter, with the types of its results: arrays or (``kinds``) array
    scalars, several in a tuple or list (``structure``). ``path``: where a library has it (``"math.sin"``), if
    rows may name it. ``work_ns``: about how long a call takes on one core, if calls may run at the same time
    as others; else 0. ``whole``: it stands for a function that has ops (``numerics="strict"``)."""

    function: Callable[..., Any]
    name: str
    results: tuple[ArrayType, ...]
    kinds: tuple[type, ...]
    structure: type | None = None
    path: str = ""
    work_ns: float = 0.0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    """A small constant array as a node parameter; equal by contents."""

    dtype: DType
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(array: np.ndarray[Any, Any], dtype: DType) -> Literal:
        return Literal(dtype, tuple(array.shape), np.ascontiguousarray(array).tobytes())

    def to_numpy(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.data, self.dtype.numpy).reshape(self.shape).copy()


@dataclass(frozen=True, slots=True)
class Var:
    """One value. Names are unique within a graph."""

    name: str
    type: ArrayType

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Node:
    """``outputs = op(*inputs, **params)``; ``params`` is a tuple of (name, value) pairs."""

    op: str
    inputs: tuple[Var, ...]
    params: tuple[tuple[str, Any], ...]
    outputs: tuple[Var, ...]
    loc: Loc | None = None

    @property
    def out(self) -> Var:
        """The only output."""
        (value,) = self.outputs
        return value

    @property
    def kwargs(self) -> dict[str, Any]:
        return dict(self.params)


@dataclass(frozen=True, slots=True)
class GraphInput:
    """An input: its value, how it is passed (see ``KINDS``) and the user's name for it. ``differentiated``:
    the arrays' library records derivatives by it. ``spare``: nothing but this call may need it, so that its
    memory is given back as soon as nothing here reads it any more (where it is handed over). ``unheard``: the
    library's derivatives are not told that it is written."""

    var: Var
    kind: str = "array"
    label: str = ""
    differentiated: bool = False
    spare: bool = False
    unheard: bool = False


@dataclass(frozen=True, slots=True)
class SymbolBinding:
    """Where a symbol's value comes from at run time.

    ``kind`` ``"int"``: the integer argument number ``index``, counted after the graph's inputs (a
    graph is called as ``graph(*inputs, *integers)``); ``"dim"`` / ``"stride"``: dimension / stride in
    elements ``axis`` of input number ``index``; ``"node"``: the node that has the symbol as a size of its
    outputs, or as a parameter, and defines it (``OpDef.defines``).
    """

    name: str
    kind: str
    index: int
    axis: int = 0


@dataclass(frozen=True, slots=True)
class ViewOf:
    """An output that shares memory: a strided window (in elements) on input or output number
    ``index`` (``kind`` ``"input"`` or ``"output"``). ``stopped``: no derivative goes through it."""

    kind: str
    index: int
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """An output: its value, how it is returned, and after functionalization what it is a view of.

    Where ``view`` is set, ``var`` is the value of what is viewed (the input's own value, or the value of
    the output number ``view.index``): the view itself is not computed by any node. An output without a
    view is memory of its own. ``hidden`` outputs exist only as the base of views, come last, and are not
    returned. ``readonly``: handed out with the writeable flag cleared. ``spent``: it has a history that was
    used up (its value comes through ``stop_gradient``)."""

    var: Var
    kind: str = "array"
    view: ViewOf | None = None
    hidden: bool = False
    readonly: bool = False
    spent: bool = False


@dataclass(frozen=True)
class Graph:
    """See the module's docstring. ``mutations``: pairs (input number, value of the same type) to be
    written back when, and only when, the whole graph has run without an error. ``functional``: set by
    functionalization; then nodes are pure values and only ``view`` outputs share memory, whereas before
    it the results of view ops alias their inputs and an output may alias an input."""

    name: str
    inputs: tuple[GraphInput, ...]
    symbols: tuple[SymbolBinding, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[GraphOutput, ...]
    mutations: tuple[tuple[int, Var], ...] = ()
    functional: bool = False
    env: ShapeEnv = field(default_factory=ShapeEnv, compare=False, repr=False)

    @property
    def input_vars(self) -> tuple[Var, ...]:
        return tuple(i.var for i in self.inputs)

    @property
    def device(self) -> Device:
        """Where the arrays live."""
        return next((v.type.device for v in self.values() if v.type.device != CPU), CPU)

    def values(self) -> Iterator[Var]:
        """Every value in order of definition."""
        yield from self.input_vars
        for node in self.nodes:
            yield from node.outputs

    def uses(self) -> dict[str, int]:
        """How often each value is read (by nodes, outputs and mutations)."""
        count = {v.name: 0 for v in self.values()}
        for node in self.nodes:
            for v in node.inputs:
                count[v.name] += 1
        for out in self.outputs:
            count[out.var.name] += 1
        for _, v in self.mutations:
            count[v.name] += 1
        return count


class OpRow(Protocol):
    """What the graph layer needs to know of an op; ``prims.opdef.OpDef`` provides it."""

    @property
    def name(self) -> str: ...

    @property
    def params(self) -> tuple[str, ...]: ...

    @property
    def meta(self) -> Any: ...

    @property
    def ref(self) -> Callable[..., Any]: ...

    @property
    def is_view(self) -> bool: ...

    @property
    def is_involution(self) -> bool: ...


OpTable = Mapping[str, OpRow]


class HeldArrays(Protocol):
    """What inputs hold that the program's own objects keep: see ``capture.arrays.held_elements``."""

    def elements(self, var: Var) -> Any: ...
    def rely(self, var: Var) -> None: ...


class GraphBuilder:
    """Appends nodes one by one, inferring the type of every value through the op's ``meta``."""

    def __init__(self, table: OpTable, env: ShapeEnv | None = None, name: str = "graph") -> None:
        self.table = table
        self.env = env if env is not None else ShapeEnv()
        self.name = name
        self.inputs: list[GraphInput] = []
        self.symbols: list[SymbolBinding] = []
        self.nodes: list[Node] = []
        self.loc: Loc | None = None
        self.device: Device | None = None  # where all arrays of the graph live, once one of them is known
        # copies that the program sees as views of another value's memory: their names, and that value's
        self.seen_as_views: dict[str, str] = {}
        # views that the library's derivatives do not hear of writes through, those of which nothing outside
        # may be made, and the writes
        self.unheard_views: set[str] = set()
        self.spoiled_views: set[str] = set()
        self.unheard: list[Node] = []
        # names of inputs that are (see GraphInput), and of values that the program made leaves: these are in
        # ``leaves``, too
        self.differentiated: set[str] = set()
        self.leaves: set[str] = set()
        self.producers: dict[str, Node] = {}
        self.held: HeldArrays | None = None
        self._counter = 0
        self._input_counter = 0

    def producer(self, var: Var) -> Node | None:
        """The node whose output ``var`` is; ``None`` for an input."""
        return self.producers.get(var.name)

    def fresh(self, type: ArrayType, prefix: str = "v") -> Var:
        var = Var(f"{prefix}{self._counter}", type)
        self._counter += 1
        return var

    def add_input(
        self, type: ArrayType, kind: str = "array", label: str = "", differentiated: bool = False
    ) -> Var:
        if kind == "array":
            self.device = self.device or type.device
        elif self.device is not None:
            type = replace(type, device=self.device)
        var = Var(f"in{self._input_counter}", type)
        self._input_counter += 1
        self.inputs.append(GraphInput(var, kind, label, differentiated))
        if differentiated:
            self.differentiated.add(var.name)
        return var

    def bind_symbol(self, symbol: SymInt, kind: str, index: int, axis: int = 0) -> None:
        """Say where the value of a bare symbol comes from (see :class:`SymbolBinding`)."""
        self.symbols.append(SymbolBinding(str(symbol), kind, index, axis))

    def emit(self, op: str, *inputs: Var, loc: Loc | None = None, **params: object) -> Any:
        """Append a node. Returns its value, a tuple where the op has several, ``None`` for ``copy_``.

        Whatever ``meta`` raises for ill-typed inputs passes through and nothing is appended.
        """
        if op == COPY:
            return self._emit_copy(inputs, loc)
        if self.device is not None and self.device != CPU and "device" in self.table[op].params:
            params["device"] = self.device
        inferred = self.table[op].meta(*[v.type for v in inputs], **params)
        several = isinstance(inferred, tuple)
        outputs = tuple(map(self.fresh, inferred)) if several else (self.fresh(inferred),)
        node = Node(op, inputs, tuple(params.items()), outputs, loc or self.loc)
        self.nodes.append(node)
        for var in outputs:
            self.producers[var.name] = node
        return outputs if several else outputs[0]

    def _emit_copy(self, inputs: tuple[Var, ...], loc: Loc | None) -> None:
        check_copy(inputs)
        self.nodes.append(Node(COPY, inputs, (), (), loc or self.loc))

    def root(self, var: Var) -> Var:
        """The value whose memory ``var`` is, or is a view of."""
        node = self.producer(var)
        while node is not None and getattr(self.table[node.op], "is_view", False):
            var = node.inputs[0]
            node = self.producer(var)
        return var

    def _inputs(self) -> list[GraphInput]:
        """The inputs, with the notes of how they are written."""
        if not self.unheard:
            return self.inputs
        unheard = {id(node) for node in self.unheard}
        how: dict[str, bool] = {}
        for node in self.nodes:
            if node.op == COPY:
                name = self.root(node.inputs[0]).name
                how[name] = how.get(name, True) and id(node) in unheard
        return [replace(inp, unheard=how.get(inp.var.name, False)) for inp in self.inputs]

    def finish(self, outputs: tuple[GraphOutput, ...]) -> Graph:
        return Graph(
            self.name,
            tuple(self._inputs()),
            tuple(self.symbols),
            tuple(self.nodes),
            outputs,
            env=self.env,
        )


class Ops:
    """Sugar over a builder: ``ops.add(x, y)`` for ``builder.emit("add", x, y)``."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder

    @property
    def builder(self) -> GraphBuilder:
        return self._builder

    def __getattr__(self, op: str) -> Any:
        if op.startswith("__") or op not in self._builder.table:
            raise AttributeError(f"no op named {op!r}")

        def emit(*inputs: Var, **params: Any) -> Any:
            return self._builder.emit(op, *inputs, **params)

        return emit


def check_copy(inputs: tuple[Var, ...]) -> None:
    dst, src = inputs
    if dst.dtype != src.dtype or not same_shape(dst.shape, src.shape):
        raise VerifyError(f"copy_ of {src.type} into {dst.type}: shape and dtype must be equal")


def same_shape(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
    """Structurally equal shapes; records no guard."""
    return a is b or (len(a) == len(b) and all(same(x, y) for x, y in zip(a, b)))


def same_type(a: ArrayType, b: ArrayType, *, strides: bool = False) -> bool:
    """Structurally equal types; strides count only where asked for."""
    equal = a.dtype == b.dtype and a.device == b.device and same_shape(a.shape, b.shape)
    return equal and (not strides or same_shape(a.strides, b.strides))


def verify(graph: Graph, table: OpTable, *, functional: bool | None = None) -> Graph:
    """Check the rules of the IR and return the graph; raises :class:`VerifyError` naming the node.

    Every value is defined once and before it is used; every node's op exists and its outputs have the
    types its ``meta`` gives; symbols in types are bound; with ``functional`` no ``copy_`` is left and
    mutated inputs get values of their own type. ``functional`` defaults to the graph's own field.
    """
    functional = graph.functional if functional is None else functional
    defined: dict[str, Var] = {}
    bound = {s.name for s in graph.symbols}
    for inp in graph.inputs:
        _define(defined, inp.var, bound, f"input {inp.var.name}")
        if inp.kind not in KINDS:
            raise VerifyError(f"input {inp.var.name}: unknown kind {inp.kind!r}")
    for number, node in enumerate(graph.nodes):
        where = f"node {number} ({node.op})"
        for value in node.inputs:
            if defined.get(value.name) is not value and defined.get(value.name) != value:
                raise VerifyError(f"{where}: {value.name} is not defined before it")
        if node.op == COPY:
            if functional:
                raise VerifyError(f"{where}: copy_ in a functional graph")
            check_copy(node.inputs)
            continue
        _check_node(node, table, where)
        for value in node.outputs:
            _define(defined, value, bound, where)
    for out in graph.outputs:
        if out.var.name not in defined:
            raise VerifyError(f"output {out.var.name} is not defined")
        if out.view is not None:
            _check_view(graph, out.var, out.view)
    for index, value in graph.mutations:
        target = graph.inputs[index].var
        if value.name not in defined or not same_type(value.type, target.type):
            raise VerifyError(f"mutation of {target.name}: {value.name} is undefined or of another type")
    return graph


def _check_view(graph: Graph, value: Var, view: ViewOf) -> None:
    if view.kind == "input":
        bases: tuple[Var, ...] = graph.input_vars
    else:
        bases = tuple(o.var for o in graph.outputs)
    if not 0 <= view.index < len(bases) or bases[view.index].name != value.name:
        raise VerifyError(f"output view of {view.kind} {view.index}: {value.name} is not its value")
    if view.kind == "output" and graph.outputs[view.index].view is not None:
        raise VerifyError(f"output view of output {view.index}, which is itself a view")


def _define(defined: dict[str, Var], value: Var, bound: set[str], where: str) -> None:
    if value.name in defined:
        raise VerifyError(f"{where}: {value.name} is defined twice")
    for dim in (*value.type.shape, *value.type.strides):
        if isinstance(dim, SymInt) and not dim.symbols() <= bound:
            raise VerifyError(f"{where}: {value.name} has an unbound symbol in {value.type}")
    defined[value.name] = value


def _check_node(node: Node, table: OpTable, where: str) -> None:
    row = table.get(node.op)
    if row is None:
        raise VerifyError(f"{where}: no such op")
    inferred = row.meta(*(v.type for v in node.inputs), **node.kwargs)
    types = inferred if isinstance(inferred, tuple) else (inferred,)
    if len(types) != len(node.outputs):
        raise VerifyError(f"{where}: {len(node.outputs)} outputs, meta gives {len(types)}")
    for value, expected in zip(node.outputs, types):
        if not same_type(value.type, expected, strides=True):
            raise VerifyError(f"{where}: {value.name} is {value.type}, meta gives {expected}")
