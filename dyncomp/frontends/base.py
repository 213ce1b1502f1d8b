"""What a frontend provides: the meaning of one array library's objects and callables in ops.

Capture knows arrays only through this interface. A frontend describes the library's array objects,
finds a :class:`Rule` for a callable, method, attribute or operator, and rules emit graph nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, Protocol

from ..dataclass import dataclass, field
from ..device import CPU, Device
from ..dtypes import DType
from ..errors import Unsupported
from ..graph.ir import ArrayType, Graph, GraphBuilder, Node, Ops, Var
from ..symbolic.integers import Dim, ShapeEnv

STRICT = 'numerics="strict"'  # what breaks for its sake say


@dataclass(frozen=True, slots=True)
class StateGuard:
    """Something that captured code relies upon and C cannot see: ``check(obj, expected)`` says whether it
    still holds (``obj`` is ``None`` for the global state of a library), ``text`` what it is, in words.
    ``check`` is a function of a module."""

    check: Callable[[Any, Any], bool]
    expected: Any
    text: str


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """What guards check of a concrete array object.

    ``kind`` ``"array"``: an array object, memory is shared with the caller; ``"scalar"``: an immutable
    scalar object of the library (``np.float64``), passed by value. Strides in elements. ``pytype``: the
    exact Python type. ``extra``: further facts a frontend wants guarded (``requires_grad``…). ``refused``:
    why arrays of this type and these extra facts are not captured; empty where they are. ``checks``:
    further Python checks, called with the array.
    """

    kind: str
    pytype: type
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: Device = CPU
    aligned: bool = True
    writeable: bool = True
    extra: tuple[tuple[str, Any], ...] = ()
    refused: str = ""
    checks: tuple[StateGuard, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphRecorder:
    """How a library records what is launched on a device.

    ``record(index, run, pool)`` calls ``run`` and gives a function that launches all that it launched again,
    what it returned, and the pool that its memory is of (``None``: a new one), which recordings that are not
    replayed side by side may share. ``is_recording()``: whether launches are being recorded now.
    ``copy(targets, sources)`` copies arrays of one dtype; ``clone(array)``, ``fill(array, number)``,
    ``strides(array)`` (in elements), ``size(array)`` (in bytes). ``given(array)`` is a new array of the same
    memory; ``holders(array)`` counts those that keep it: the number is the same again when all are gone that
    the program got by ``given``, and views of them.
    """

    record: Callable[[int, Callable[[], Any], Any], tuple[Callable[[], None], Any, Any]]
    is_recording: Callable[[], bool]
    copy: Callable[[Sequence[Any], Sequence[Any]], Any]
    clone: Callable[[Any], Any]
    fill: Callable[[Any, Any], Any]
    strides: Callable[[Any], tuple[int, ...]]
    size: Callable[[Any], int]
    given: Callable[[Any], Any]
    holders: Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class DeviceLibrary:
    """What compiled graphs ask of a library whose arrays live on a device. Sizes, strides and shapes in
    elements, offsets in bytes from an array's first element; dtypes by name, devices as ``Device``.

    ``empty(shape, strides or None, dtype, device)``, ``full(value, dtype, device)`` (0-d), ``scratch(bytes,
    device)`` and ``upload(NumPy array, device)`` make arrays; ``window(base, offset, shape, strides, dtype)``
    is a view of one's memory; ``without_gradient(array)`` the array as one that no derivative is asked of;
    ``pointer(array)`` its address, ``item(array)`` its one element in Python.
    ``matmul(a, b, out)`` multiplies (batches of) matrices. ``stream(index)``: the handle of a device's
    current stream; ``enter(index)`` makes a device the current one and returns what ``leave`` takes back.
    ``milliseconds(call)``: the time that what a call starts takes on the current device. ``facts(index)``: a
    device's name, its number of multiprocessors, whether it copies by tensor descriptors.
    ``deterministic()``: whether the program asks for the same bits each time. ``routines``: names of ops with
    the library's own function on its arrays. ``graphs``: how launches are recorded and replayed, if they can.
    ``full`` also takes 0-d arrays, those on the CPU too; ``to_host(array)``: a copy on the CPU.
    """

    empty: Callable[..., Any]
    full: Callable[..., Any]
    scratch: Callable[..., Any]
    upload: Callable[..., Any]
    window: Callable[..., Any]
    without_gradient: Callable[[Any], Any]
    pointer: Callable[[Any], int]
    item: Callable[[Any], Any]
    matmul: Callable[[Any, Any, Any], None]
    stream: Callable[[int], int]
    enter: Callable[[int], Any]
    leave: Callable[[Any], None]
    milliseconds: Callable[[Callable[[], None]], float]
    facts: Callable[[int], tuple[str, int, bool]]
    deterministic: Callable[[], bool]
    routines: tuple[tuple[str, Callable[..., Any]], ...] = ()
    graphs: GraphRecorder | None = None
    to_host: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class NumberResult:
    """A size that the forward graph gives, among its results."""

    index: int


Size = Dim | NumberResult


@dataclass(frozen=True, slots=True)
class OutputView:
    """A result that shares memory: a strided window (in elements) on an input (``of_input``) or on a result
    of the forward graph. ``stopped``: no derivative goes through it. Those of a :class:`GradientPair` have no
    symbolic sizes."""

    of_input: bool
    index: int
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size
    stopped: bool = False

    def window(self, results: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Shape, strides and offset beside these results of the forward graph."""
        sizes = (*self.shape, *self.strides, self.offset)
        found: list[Any] = [results[n.index] if isinstance(n, NumberResult) else n for n in sizes]
        rank = len(self.shape)
        return tuple(found[:rank]), tuple(found[rank:-1]), found[-1]


@dataclass(frozen=True, slots=True, eq=False)
class PairBackward:
    """A backward graph: ``run(*saved, *cotangents, *rewritten, *integers)`` gives the gradients by the inputs
    ``wrt``. ``consume`` takes these as a list, which it empties: they go as soon as they have been read.

    ``saved``: which of the saved values it takes; ``given``: which outputs of the forward graph it takes
    cotangents of, in C order; ``rewritten``: inputs of the call that it may write to; ``integers``: names of
    the symbols whose values it takes. ``again()``: the pair of this graph, for second derivatives (``None``:
    nothing in it has a derivative); it may raise ``NotDifferentiableError``. ``call``: the compiled graph
    itself.
    """

    run: Callable[..., Sequence[Any]]
    consume: Callable[[list[Any]], Sequence[Any]]
    saved: tuple[int, ...]
    rewritten: tuple[int, ...]
    given: tuple[int, ...]
    wrt: tuple[int, ...]
    integers: tuple[str, ...]
    again: Callable[[], GradientPair | None]
    call: Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class BackwardPart:
    """A part of a backward graph: ``run(*values, *integers)`` gives the gradients by the inputs ``wrt``, then
    values for later parts. ``reads``: which values it takes, by number: what is saved, all cotangents, then
    what parts before it gave for others. ``run`` is compiled when it is first called."""

    run: Callable[..., Sequence[Any]]
    reads: tuple[int, ...]
    wrt: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BackwardParts:
    """The backward graph of all gradients, in parts that run one after the other. ``given``: the outputs of
    the forward graph whose cotangents it takes; ``integers(values, symbols)``: those that each part takes."""

    parts: tuple[BackwardPart, ...]
    given: tuple[int, ...]
    integers: Callable[[Sequence[Any], dict[str, int]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PairSource:
    """What a :class:`GradientPair` is made from: the functional graph of its results, the inputs and results
    that it is of (``written``: those that replace the contents of inputs), and how much may be saved."""

    plain: Graph
    wrt: tuple[int, ...]
    differentiable: tuple[int, ...]
    written: tuple[int, ...]
    memory_budget: float | None


@dataclass(frozen=True, slots=True, eq=False)
class GradientPair:
    """A graph and its gradients, for a library's reverse mode.

    ``forward(*inputs, *integers)`` gives ``count`` results, and then values that are only saved. Of these
    outputs ``differentiable`` have derivatives. ``saved``: what backward graphs are given, inputs (``True``)
    and outputs, and their numbers; ``rewritten``: inputs that they write to. ``backward(given, wanted)``: the
    backward graph where these outputs have cotangents and these inputs want gradients, compiled when first
    asked for; ``None`` where nothing is to be computed. ``returned``: what the call returns, results by
    number or views. ``written``: inputs that get the contents of a result, (input, result).
    ``symbols(arguments, outputs)``: the values of the symbols that backward graphs take, by name; ``None``
    where there are none. ``describe()``: what is saved, in words. ``source``: what it was made from, ``None``
    where it comes from disk. ``in_parts(limits)``: the backward graph of all gradients in parts that give
    this many bytes of them (the last limit holds for all that follow); ``None`` where there would be one.
    ``listeners`` are told of backward graphs when these were compiled.
    """

    forward: Callable[..., Sequence[Any]]
    backward: Callable[[Sequence[bool], Sequence[bool]], PairBackward | None]
    count: int
    differentiable: tuple[int, ...]
    saved: tuple[tuple[bool, int], ...]
    rewritten: tuple[int, ...]
    returned: tuple[int | OutputView, ...]
    written: tuple[tuple[int, int], ...]
    symbols: Callable[[Sequence[Any], Sequence[Any]], dict[str, int]] | None
    describe: Callable[[], str]
    in_parts: Callable[[Sequence[int]], BackwardParts | None]
    source: PairSource | None
    listeners: list[Callable[[Sequence[bool], Sequence[bool], PairBackward], None]] = field(
        default_factory=list
    )


@dataclass(frozen=True, slots=True)
class Autograd:
    """A library's own reverse mode. ``function(pair)``: a function of a graph's inputs and integers that
    returns what the graph returns, with its derivatives known to the library. ``spent(call, places, count)``:
    ``call``, which gives ``count`` results (a single one bare); those at these places require a gradient and
    have none to give, as their history was used up."""

    function: Callable[[GradientPair], Callable[..., Any]]
    spent: Callable[[Callable[..., Any], Sequence[int], int], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class ArrayOwner:
    """How compiled graphs read and make a library's arrays, where these are not NumPy's.

    ``type``: the array type (subclasses are taken too). ``describe(array) -> (pointer, shape, strides, dtype
    name)``; ``empty(shape, strides, dtype name) -> array``; ``as_strided(base, shape, strides, offset from
    the base's own first element, dtype name) -> array``; strides and offsets in elements. ``to_numpy`` and
    ``from_numpy`` share memory (values that are not arrays pass ``to_numpy`` as they are).
    ``wrote(arrays)`` is called after a graph has written into its inputs. ``routines``: names of ops with the
    library's own function on NumPy arrays, which is called instead of the op's reference. ``own_routines``:
    the same, but they give the library's arrays, which compiled graphs take over: ``taken(array, shape,
    strides, offset, dtype name)`` is the array in this layout if nothing else sees the memory, and nobody
    holds it but the caller, else ``None``. ``devices``: how
    arrays that are not in the computer's own memory are dealt with, if they can be.
    ``autograd``: the library's reverse mode, where it has one.
    ``threads``: the installed package on whose OpenMP runtime the library works: compiled code takes its
    threads, too.
    """

    type: type
    describe: Callable[[Any], tuple[int, tuple[int, ...], tuple[int, ...], str]]
    empty: Callable[..., Any]
    as_strided: Callable[..., Any]
    to_numpy: Callable[[Any], Any]
    from_numpy: Callable[[Any], Any]
    wrote: Callable[[Any], None]
    routines: tuple[tuple[str, Callable[..., Any]], ...] = ()
    own_routines: tuple[tuple[str, Callable[..., Any]], ...] = ()
    taken: Callable[..., Any] | None = None
    devices: DeviceLibrary | None = None
    threads: str = ""
    autograd: Autograd | None = None


@dataclass(frozen=True, slots=True)
class ArrayParts:
    """An array without strides (a sparse one) as the strided arrays that it is made of. ``methods`` of the
    object give these, without a copy. ``check``: whether it is as it was when this was made, its parts
    included. ``constants``: attributes that do not change where that holds. ``facts`` are for rules.
    ``refs``: the parts in the graph."""

    methods: tuple[str, ...]
    check: StateGuard
    constants: tuple[str, ...]
    facts: Any
    refs: tuple[ArrayRef, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedTuple:
    """What a rule returns for an instance of a tuple's subclass: ``cls(items)`` makes it."""

    cls: type
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """A ``range`` with symbolic bounds, as rules take it."""

    start: Dim
    stop: Dim
    step: Dim


@dataclass(frozen=True, slots=True)
class ArrayRef:
    """A traced array value: a graph value and how Python would see it.

    ``kind``: ``"array"`` (an ndarray / Tensor), ``"scalar"`` (a NumPy scalar), ``"python"`` (a Python
    bool, int, float or complex whose value is only known at run time; it is *weak* in promotion),
    ``"masked"`` (the array ``full[mask]``, whose first size is only known at run time: ``var`` is the whole
    of ``full``, whose leading dimensions are those of the boolean value ``mask``; what it holds where the
    mask is false means nothing, and nobody else sees or writes these two values).
    ``frontend``: the name of the library it belongs to. ``readonly``: writing raises, in captured code;
    with ``writeable_outside`` the program's own array is writeable, and left to plain Python to write.
    ``part``: an array and the attribute of it (``"real"``): a copy of it in the graph, a view in
    the program; or how a call gives it anew (``"detach()"``). ``host``: in a graph on a device, an array that
    the program sees on the CPU.
    """

    var: Var
    kind: str = "array"
    frontend: str = "numpy"
    readonly: bool = False
    mask: Var | None = None
    writeable_outside: bool = False
    part: tuple[ArrayRef, str] | None = None
    host: bool = False

    @property
    def dtype(self) -> DType:
        return self.var.type.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.var.type.shape

    @property
    def strides(self) -> tuple[Any, ...]:
        return self.var.type.strides

    @property
    def ndim(self) -> int:
        return len(self.var.type.shape)

    @property
    def type(self) -> ArrayType:
        return self.var.type


# Libraries whose arrays take NumPy's scalars as operands.
_TAKE_SCALARS = frozenset({"cupy"})


def libraries_of(refs: Iterable[ArrayRef]) -> set[str]:
    """The libraries of traced arrays; NumPy's scalars count for none beside arrays of one that takes them."""
    refs = [ref for ref in refs if ref.kind != "python"]
    names = {ref.frontend for ref in refs}
    if names & _TAKE_SCALARS and all(ref.kind == "scalar" for ref in refs if ref.frontend == "numpy"):
        names.discard("numpy")
    return names


def part_shown(builder: GraphBuilder, var: Var) -> Var | None:
    """Of what is in the graph a view of a copy, and in the program of the real or imaginary part of a complex
    array (or of another that the program sees as a view): that copy; else ``None``."""
    node = builder.producer(var)
    while node is not None:
        if var.name in builder.seen_as_views or (node.op in _PARTS and node.inputs[0].dtype.is_complex):
            return var
        if not getattr(builder.table[node.op], "is_view", False):
            return None
        var = node.inputs[0]
        node = builder.producer(var)
    return None


_PARTS = ("real", "imag")


def own_number(tx: TraceContext, value: Var, element: Var) -> Var:
    """``value``, the converted ``element`` of an array, as it is now: a copy where it is the element itself,
    whose memory may be written before the number is read."""
    if value is not element:
        return value
    copy: Var = tx.ops.copy(value)
    return copy


def memory_of(builder: GraphBuilder, var: Var) -> str:
    """The name of the value whose memory ``var`` is, or is a view of."""
    return builder.root(var).name


_MANY = 1 << 31


def is_usual_size(shape: Sequence[Dim]) -> bool:
    """Whether an array of these sizes can be made: they are known, not negative, and nothing overflows."""
    return all(type(size) is int and size >= 0 for size in shape) and math.prod(shape) < _MANY


@dataclass(frozen=True, slots=True)
class Called:
    """What a rule stands for: a ``"function"`` (itself, and its name), or by name a ``"method"``,
    ``"attribute"`` or ``"operator"``."""

    kind: str
    name: str
    function: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class DrawingCall:
    """A library's function that draws random numbers: ``function(*args, **kwargs)`` gives an array of this
    type (``result``) and looks at none. ``keep(kept, owner)`` notes the state of what it draws from: a pair
    of a function and what that is given to put it back. ``example()``: an array like it. ``may_raise``:
    unless that is known not to be. ``is_fraction``: all numbers are at least 0 and below 1."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: ArrayType
    pytype: type
    frontend: str
    owner: Any
    keep: Callable[[list[Any], Any], None]
    example: Callable[[], Any]
    may_raise: bool = True
    is_fraction: bool = False


@dataclass
class TraceContext:
    """What a rule may use: the builder (``tx.ops.add(x, y)`` emits), the symbols, and notes about the
    run-time state that it relied upon (``tx.assume("numpy-errstate")`` makes capture guard it).
    ``states``: more of that, by name, which is guarded whether or not the rule's nodes stay.
    ``memo``: what a frontend remembers of this capture; nodes that it tells of may have been rolled back.
    ``modes``: what blocks of the captured code that it is in have set (``Frontend.mode_of``).
    ``set_mode(setting, function)``: what follows runs under the setting; the real ``function(value)`` is
    called when the captured part ends.
    ``module()``: the name of the module whose code makes the call.
    ``draw(call)``: what a ``DrawingCall`` gives; it is made before the graph, in the order of the program.
    ``require(ref)``: the graph raises, so that the original runs, unless the one element is true.
    ``changes()``: how many random numbers were drawn so far, and what else differs where something that was
    there before was changed. ``attribute(ref, name)``: a constant attribute that an array from outside has in
    C, which is guarded. ``fused_random``: random numbers are drawn in kernels, where a rule can.
    ``same_bits``: what the graph gives has the library's bits (``numerics="strict"``).
    ``unsure``: how many functions the library may round otherwise though their nodes round once at most, such
    as sums of one term, which it adds to a zero.
    ``may_pin()``: symbolic sizes may be made constants, as the program was not captured for many yet."""

    builder: GraphBuilder
    assumptions: set[str] = field(default_factory=set)
    states: dict[str, StateGuard] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict)
    modes: dict[str, dict[str, Any]] = field(default_factory=dict)
    module: Callable[[], str] = lambda: ""
    draw: Callable[[DrawingCall], ArrayRef] | None = None
    require: Callable[[ArrayRef], None] | None = None
    set_mode: Callable[[tuple[str, str, Any], Callable[..., Any]], None] | None = None
    changes: Callable[[], tuple[int, object]] = lambda: (0, None)
    attribute: Callable[[ArrayRef, str], object] = lambda ref, name: None
    fused_random: bool = False
    same_bits: bool = False
    unsure: int = 0
    may_pin: Callable[[], bool] = lambda: False
    recorded: bool = False  # arrays were looked at with their history (``Frontend.with_history``)

    @property
    def ops(self) -> Ops:
        return Ops(self.builder)

    @property
    def env(self) -> ShapeEnv:
        return self.builder.env

    def assume(self, what: str) -> None:
        self.assumptions.add(what)


# A rule is called as rule(tx, *args, **kwargs) with the user's arguments, where arrays are ArrayRef,
# symbolic integers SymInt, and all else (numbers, strings, None, Ellipsis, dtype objects, slices,
# tuples, lists, dicts of these) is as in the user's program. It returns an ArrayRef, a plain Python
# constant, a SymInt, or tuples/lists of these. It raises errors.Unsupported (or anything else) where it
# has no meaning for these arguments: capture then breaks the graph and calls the original, which also
# gives the user the library's own exception. It must emit nothing it cannot complete; nodes emitted
# before raising are rolled back by the caller.
Rule = Callable[..., Any]


class Frontend(Protocol):
    """One array library."""

    name: str
    array_types: tuple[type, ...]  # exact types of array and scalar objects that describe() accepts

    @property
    def owner(self) -> ArrayOwner | None:
        """How graphs read and make the library's arrays; ``None``: they are NumPy's."""
        ...

    def describe(self, obj: object) -> ArrayFacts:
        """Facts of a concrete object of one of ``array_types``; raises ``Unsupported`` (with the
        reason) for what cannot be captured: object or structured dtypes, foreign byte order…"""
        ...

    def parts_of(self, obj: object) -> ArrayParts | None:
        """What an object that ``describe`` refuses is made of, where there are rules for such."""
        ...

    def rule_of_parts(self, called: Called) -> Rule | None:
        """The rule of a function, method or operator for arguments some of which are ``ArrayParts``."""
        ...

    def find_function(self, fn: object) -> Rule | None:
        """The rule of a library callable (``np.add``, ``np.add.reduce``, ``torch.relu``), else None."""
        ...

    def find_method(self, ref: ArrayRef, name: str) -> Rule | None:
        """The rule of method ``name`` of a traced value; called with the value as first argument."""
        ...

    def find_attribute(self, ref: ArrayRef, name: str) -> Rule | None:
        """The rule that computes a data attribute (``shape``, ``T``, ``dtype``) from the value."""
        ...

    def records(self, setting: tuple[str, str, Any]) -> bool:
        """Whether the mode has arrays from outside recorded that are not around captured code."""
        ...

    def with_history(self, obj: Any, facts: ArrayFacts) -> ArrayFacts:
        """The facts of an array with what recording needs to know."""
        ...

    def requires_gradient(self, tx: TraceContext, ref: ArrayRef) -> bool:
        """Whether the library's reverse mode goes through a value."""
        ...

    def stays_inside(self, tx: TraceContext, ref: ArrayRef) -> bool:
        """Whether a value has a history that nothing outside of captured code could have."""
        ...

    def keeps(self, name: str) -> bool:
        """Whether data attribute ``name`` of an array is an array that the object keeps, or ``None``, and may
        be assigned (``grad``). Of an array from outside it is read where that is; the rule of the attribute
        refuses arrays of which it cannot be, and gives what others have at first."""
        ...

    def python_method(self, name: str) -> Any:
        """The library's Python function of a method of an array that is followed (see ``stand_in_for``), or
        ``None``."""
        ...

    def is_spent(self, tx: TraceContext, ref: ArrayRef) -> bool:
        """Whether the derivatives of an array were used up: nothing is kept for them."""
        ...

    def find_operator(self, name: str) -> Rule | None:
        """The rule of an operator by its ``operator`` module name: ``add``, ``iadd``, ``matmul``,
        ``neg``, ``lt``, ``getitem``, ``setitem``, ``invert``, …; operands as in the user's program,
        at least one of them an ArrayRef of this frontend (kind ``"python"`` ones count for any)."""
        ...

    def call_whole(
        self,
        tx: TraceContext,
        called: Called,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        made: Sequence[Node],
    ) -> Any:
        """What a rule gives, by a node that calls the library. ``result`` is what the rule gave with the
        nodes ``made``, which were taken back. Raises ``Unsupported`` where there is no such node."""
        ...

    def accepts(self, pytype: type) -> bool:
        """Whether objects of this exact type are the library's arrays or scalars, also where ``describe``
        will refuse them (so that capture can say why)."""
        ...

    def selected(self, tx: TraceContext, ref: ArrayRef) -> ArrayRef:
        """The array that a ``"masked"`` value stands for, made by the graph; its size is a symbol."""
        ...

    def pytype(self, ref: ArrayRef) -> type:
        """The exact Python type that a traced value will have."""
        ...

    def is_inert_context(self, cls: type, kwargs: dict[str, Any]) -> bool:
        """Whether ``with cls(**kwargs)`` changes nothing for graphs (``np.errstate(all="ignore")``)."""
        ...

    def mode_of(
        self, cls: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, str, Any] | None:
        """What a block ``with cls(*args, **kwargs)`` sets for the captured code in it: the name of a mode
        (``TraceContext.modes``), a key, and the value; ``None`` where it is no such class, or function that
        ``contextmanager`` made."""
        ...

    def acts_when_made(self, cls: Callable[..., Any]) -> bool:
        """Whether such an object sets its mode when it is made, not when its block begins, or is for one
        block only."""
        ...

    def enters_as_itself(self, cls: Callable[..., Any]) -> bool:
        """Whether the ``__enter__`` of such an object gives the object, not ``None``."""
        ...

    def mode_attributes(self, cls: type) -> tuple[str, ...]:
        """Attributes of objects of such a class that are arguments which would make them, else none."""
        ...

    def implementation_of(self, fn: object) -> Any:
        """The Python function behind a C-level dispatcher of the library, ``None`` where there is none."""
        ...

    def stand_in_for(self, fn: object, same_bits: bool = False) -> Any:
        """The Python function that is followed in place of a Python function of the library, or ``None``.
        ``same_bits``: one that rounds as the library's."""
        ...

    def unrolls(self, module: str) -> bool:
        """Whether loops in a module of the library, over arrays of the program, are unrolled though long."""
        ...

    def varies(self, names: Sequence[str]) -> bool:
        """Whether a number changes from call to call, as a rule. ``names``: the attributes and keys that lead
        to it, the last one first."""
        ...

    def state_guard(self) -> StateGuard | None:
        """The state that all captured code with this library's arrays relies upon."""
        ...

    def stored_member(self, obj: object, name: str) -> tuple[str, ...] | None:
        """Where the Python ``__getattr__`` of ``obj``'s class finds attribute ``name``: the instance's dicts
        in the order in which they are searched, the last one being that which has it; ``None`` if that is not
        known. (``nn.Module``: parameters, buffers, modules.)"""
        ...

    def module_behind(self, module: ModuleType) -> ModuleType | None:
        """The module whose attributes a module hands on that it has not itself, or ``None``."""
        ...

    def is_constant(self, obj: object) -> bool:
        """Library objects that are immutable constants to capture (dtypes, ``np.newaxis``, enums)."""
        ...

    def parts_of_constant(self, obj: object) -> tuple[tuple[str, Any], ...]:
        """Attributes, read without running Python code, and their values, which together are the value of a
        constant of which the library makes another object each time (``tensor.device``); else empty."""
        ...


class WithoutDerivatives:
    """What a :class:`Frontend` answers whose library records no derivatives, and has no modes or modules."""

    def call_whole(
        self,
        tx: TraceContext,
        called: Called,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        made: Sequence[Node],
    ) -> Any:
        raise Unsupported(f"{called.name}, which may be rounded otherwise ({STRICT})")

    def acts_when_made(self, cls: Callable[..., Any]) -> bool:
        return False

    def mode_of(self, cls: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        return None

    def enters_as_itself(self, cls: Callable[..., Any]) -> bool:
        return False

    def mode_attributes(self, cls: type) -> tuple[str, ...]:
        return ()

    def unrolls(self, module: str) -> bool:
        return False

    def varies(self, names: Sequence[str]) -> bool:
        return False

    def records(self, setting: tuple[str, str, Any]) -> bool:
        return False

    def with_history(self, obj: Any, facts: ArrayFacts) -> ArrayFacts:
        return facts

    def requires_gradient(self, tx: TraceContext, ref: ArrayRef) -> bool:
        return False

    def stays_inside(self, tx: TraceContext, ref: ArrayRef) -> bool:
        return False

    def keeps(self, name: str) -> bool:
        return False

    def python_method(self, name: str) -> None:
        return None

    def is_spent(self, tx: TraceContext, ref: ArrayRef) -> bool:
        return False

    def stand_in_for(self, fn: object, same_bits: bool = False) -> None:
        return None

    def stored_member(self, obj: object, name: str) -> None:
        return None

    def parts_of_constant(self, obj: object) -> tuple[()]:
        return ()

    def module_behind(self, module: ModuleType) -> None:
        return None
