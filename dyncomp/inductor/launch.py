"""The launch plan: what a compiled graph's C entry does with its arguments, as plain data.

A :class:`LaunchPlan` names the graph's buffers and says where each comes from; :func:`build` joins it with
a loaded library of kernels into a ``CompiledGraph``: a C callable that takes the graph's inputs
positionally and runs with no Python in between (``dyncomp/runtime/csrc``).

Buffers are numbered in one row: inputs, fresh outputs, arena slots, constants. Kernels get that row as
``void** buffers`` (see :func:`abi_declarations`). Shapes are in elements; **strides and offsets are in
elements of the buffer's own dtype**, not bytes; only arena offsets and sizes are in bytes.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dyncomp.build.library import Library
from dyncomp.dataclass import dataclass
from dyncomp.dtypes import DType, int64
from dyncomp.runtime import _launch, set_num_threads
from dyncomp.runtime.openmp import share_threads_of

if TYPE_CHECKING:
    from dyncomp.frontends.base import ArrayOwner


@functools.cache
def abi_declarations() -> str:
    """What every generated translation unit begins with: the marked part of ``runtime/csrc/abi.h``."""
    text = (resources.files("dyncomp.runtime") / "csrc" / "abi.h").read_text()
    return text.partition("/* BEGIN */\n")[2].partition("/* END */")[0]


# Index into Runtime.blas of each CBLAS routine (64-bit integer arguments), and of
# ``void set_num_threads(int)``, which bounds the BLAS's own threads (see ``blas_serial``).
_BLAS_NAMES = ("sgemm", "dgemm", "cgemm", "zgemm", "sgemv", "dgemv", "cgemv", "zgemv", "sdot", "ddot")
BLAS_INDEX = {name: index for index, name in enumerate((*_BLAS_NAMES, "ssyrk", "dsyrk", "set_num_threads"))}


@dataclass(frozen=True, slots=True)
class SizeRef:
    """A size known only at the call: entry ``index`` of what the library's ``sizes`` function writes."""

    index: int


Size = int | SizeRef


@dataclass(frozen=True, slots=True)
class InputSlot:
    """One positional argument.

    ``kind``: ``"array"`` (the data pointer is taken as is); ``"float"``, ``"complex"``, ``"bool"``, ``"int"``
    (a Python or NumPy scalar, converted to a 0-d value of ``dtype``); ``"symint"`` (a Python int that may
    feed symbols; its buffer is an int64); ``"object"`` (not looked at: NULL buffer, for passing through).
    For arrays type, dtype, ``ndim``, alignment and (``writable``) the writeable flag are checked at every
    call, and those entries of ``shape`` and ``strides`` (elements) that are not ``None``; a mismatch raises
    ``TypeError``.
    """

    kind: Literal["array", "float", "complex", "bool", "int", "symint", "object"]
    dtype: DType | None = None
    ndim: int = 0
    writable: bool = False
    shape: tuple[int | None, ...] | None = None
    strides: tuple[int | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class SymbolSlot:
    """``syms[k]``: the value of a symint input, or an array input's ``shape[dim]`` or ``strides[dim]``
    (in elements; ``TypeError`` at the call if the byte stride is no multiple of the item size)."""

    kind: Literal["value", "shape", "stride"]
    input: int
    dim: int = 0


@dataclass(frozen=True, slots=True)
class OutputSlot:
    """A fresh array. ``strides`` ``None`` means C order, otherwise a dense layout (a permutation of a
    contiguous one). ``kind`` says what :class:`OutputResult` hands out: the array, for 0-d a NumPy or
    Python scalar, or (of arrays on a device) a copy on the CPU."""

    dtype: DType
    shape: tuple[Size, ...]
    strides: tuple[Size, ...] | None = None
    kind: Literal["array", "numpy_scalar", "python_scalar", "host"] = "array"


@dataclass(frozen=True, slots=True)
class ArenaSlot:
    """Scratch memory at byte ``offset`` (a multiple of 64) of the graph's arena, for ``elements`` of one
    array."""

    offset: Size
    elements: Size | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What profiles say of one kernel, product or routine of a step. ``kind``: ``"kernel"``, ``"product"`` or
    ``"library"``; ``origin``: the user's functions and lines; ``bytes`` that it reads and writes, ``None``
    where that depends on the call."""

    name: str
    kind: str
    origin: tuple[str, ...] = ()
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class KernelStep:
    """Run the library's function ``symbol``, which has these ``parts``. ``last_read``: inputs that no later
    step reads, and no result is a view of; a caller that hands them over (``CompiledGraph.consume``) has them
    released then."""

    symbol: str = "run"
    last_read: tuple[int, ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A typed view of buffer number ``buffer`` (numbered as in ``void** buffers``)."""

    buffer: int
    dtype: DType
    shape: tuple[Size, ...]
    strides: tuple[Size, ...] | None = None
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class PyCallStep:
    """Call ``func(*inputs)`` on arrays over the buffers (no copies) and copy its result (an array or
    scalar, or a tuple or list of them) into ``outputs``, casting as ``same_kind``; a shape that differs
    raises ``ValueError``. ``func`` is a callable or ``"module:qualified.name"``. Its exceptions propagate.
    ``together``: this call and those that follow, so many in all, may run at the same time."""

    func: Callable[..., Any] | str
    inputs: tuple[BufferRef, ...]
    outputs: tuple[BufferRef, ...]
    part: Part | None = None
    together: int = 1


@dataclass(frozen=True, slots=True)
class OutputResult:
    """Fresh output ``index``, handed out as its slot's ``kind``."""

    index: int


@dataclass(frozen=True, slots=True)
class InputResult:
    """The input object itself."""

    index: int


@dataclass(frozen=True, slots=True)
class ViewOutput:
    """A view of an array input or of a fresh output; ``offset`` and ``strides`` in elements of ``dtype``.
    The writeable flag is the base's; ``writeable=False`` drops it (``broadcast_to``)."""

    base: Literal["input", "output"]
    index: int
    dtype: DType
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0
    writeable: bool = True


@dataclass(frozen=True, slots=True)
class ConstantResult:
    """The same object at every call."""

    value: Any


Step = KernelStep | PyCallStep
Result = OutputResult | InputResult | ViewOutput | ConstantResult


@dataclass(frozen=True, slots=True)
class TensorOwner:
    """How to handle arrays that are not NumPy's when the type has no DLPack exchange table.

    ``type``: the array type (subclasses are taken too).
    ``describe(array) -> (pointer, shape, strides, dtype name)``;
    ``empty(shape, strides, dtype name) -> array``;
    ``as_strided(base, shape, strides, offset from the base's own first element, dtype name) -> array``,
    used with the table too. ``use_table=False`` ignores the table. Steps may return such arrays, which are
    NumPy's by ``to_numpy(array)``, and taken over where ``taken(array, shape, strides, offset, dtype name)``
    gives them in this layout: nothing else sees their memory, nor holds them but the caller; else ``None``.
    """

    type: type
    describe: Callable[[Any], tuple[int, tuple[int, ...], tuple[int, ...], str]]
    empty: Callable[..., Any]
    as_strided: Callable[..., Any]
    use_table: bool = True
    to_numpy: Callable[[Any], Any] | None = None
    taken: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One graph's launch. ``size_count``: entries that the library's ``sizes`` function writes (0: none).
    ``arena_bytes``: the arena's size. ``constants``: arrays kept alive, their data pointers passed.
    ``errors``: what kernels raise: ``(exception type, message)``, ``{0}``…``{3}`` in the message stand for
    the error details. ``single``: return the only result itself instead of a tuple. ``release_gil``: let
    other Python threads run meanwhile (costs about 100 ns; for work above ~50 µs).
    ``owner``: ``None`` for NumPy arrays.

    ``on_status(flags, written)`` is told of floating-point errors (NumPy's flags) in the steps: before step
    ``first_write``, the first that writes to inputs, and at the end. What it raises ends the call, and what
    was written is taken back if it was kept (``watched.h``). If not (``written``), it returns whether that
    shall be so from the next call on. ``on_status.saves``: from the first. ``on_status.always``: flags of
    every call."""

    inputs: tuple[InputSlot, ...]
    outputs: tuple[OutputSlot, ...]
    results: tuple[Result, ...]
    steps: tuple[Step, ...]
    symbols: tuple[SymbolSlot, ...] = ()
    size_count: int = 0
    sizes_symbol: str = "sizes"
    arena: tuple[ArenaSlot, ...] = ()
    arena_bytes: Size = 0
    constants: tuple[Any, ...] = ()
    errors: tuple[tuple[type[BaseException], str], ...] = ()
    single: bool = True
    release_gil: bool = False
    owner: TensorOwner | None = None
    on_status: Any = None
    first_write: int | None = None
    name: str = "graph"


_INPUT_KINDS = ("array", "float", "complex", "bool", "int", "symint", "object")
_SYMBOL_KINDS = ("value", "shape", "stride")
_OUTPUT_KINDS = ("array", "numpy_scalar", "python_scalar")


def tensor_owner(owner: ArrayOwner | None) -> TensorOwner | None:
    """The launcher's form of a frontend's ``ArrayOwner``."""
    if owner is None:
        return None
    functions = (owner.describe, owner.empty, owner.as_strided)
    return TensorOwner(owner.type, *functions, to_numpy=owner.to_numpy, taken=owner.taken)


def choose_threads(number: int, owner: ArrayOwner | None) -> None:
    """Have compiled code run on so many threads (0: as the machine has it), on those of the owner's library
    where it shares them."""
    if number:
        set_num_threads(number)
    if owner is not None and owner.threads:
        share_threads_of(owner.threads)


def build(plan: LaunchPlan, library: Library | None = None) -> _launch.CompiledGraph:
    """The callable for ``plan``. ``library`` may be absent if no step is a kernel and no size is symbolic.

    Raises ``ValueError`` for a plan that contradicts itself and ``LookupError`` for a missing symbol.
    """
    return _launch.CompiledGraph(
        (
            plan.name,
            tuple(_input(slot) for slot in plan.inputs),
            tuple((_SYMBOL_KINDS.index(s.kind), s.input, s.dim) for s in plan.symbols),
            plan.size_count,
            _address(library, plan.sizes_symbol) if plan.size_count else 0,
            tuple(_output(slot) for slot in plan.outputs),
            tuple(_size(slot.offset) for slot in plan.arena),
            _size(plan.arena_bytes),
            tuple((value, _data_pointer(value)) for value in plan.constants),
            tuple(_step(step, library) for step in plan.steps),
            tuple(_result(result) for result in plan.results),
            plan.errors,
            plan.single,
            plan.release_gil,
            _owner(plan.owner),
            library,
            plan.on_status,
            len(plan.steps) if plan.first_write is None else plan.first_write,
            bool(getattr(plan.on_status, "saves", False)),
            int(getattr(plan.on_status, "always", 0)),
            _labels(plan),
        )
    )


def addresses(plan: LaunchPlan, library: Library) -> tuple[int, tuple[int, ...], Library]:
    """What ``CompiledGraph.retarget`` takes to run another build of the same kernels: addresses of the
    function of sizes and of each step (0: none), and their library."""
    steps = [_address(library, s.symbol) if isinstance(s, KernelStep) else 0 for s in plan.steps]
    return (_address(library, plan.sizes_symbol) if plan.size_count else 0, tuple(steps), library)


def _address(library: Library | None, name: str) -> int:
    if library is None:
        raise ValueError(f"launch plan: {name!r} is wanted but there is no library")
    return library.symbol(name)


def _size(size: Size) -> int | tuple[int]:
    return (size.index,) if isinstance(size, SizeRef) else int(size)


def _sizes(sizes: Sequence[Size] | None) -> tuple[int | tuple[int], ...] | None:
    return None if sizes is None else tuple(_size(size) for size in sizes)


def _input(slot: InputSlot) -> tuple[Any, ...]:
    dtype = slot.dtype
    if slot.kind == "symint":
        dtype = int64
    elif dtype is None and slot.kind != "object":
        raise ValueError(f"launch plan: an input of kind {slot.kind!r} has no dtype")
    descr = None if dtype is None else dtype.numpy
    return (_INPUT_KINDS.index(slot.kind), descr, slot.ndim, slot.writable, slot.shape, slot.strides)


def _output(slot: OutputSlot) -> tuple[Any, ...]:
    return (slot.dtype.numpy, _sizes(slot.shape), _sizes(slot.strides), _OUTPUT_KINDS.index(slot.kind))


def _data_pointer(value: Any) -> int:
    return value.ctypes.data if isinstance(value, np.ndarray) else value.data_ptr()


def _buffer(ref: BufferRef) -> tuple[Any, ...]:
    return (ref.buffer, ref.dtype.numpy, _sizes(ref.shape), _sizes(ref.strides), _size(ref.offset))


def _step(step: Step, library: Library | None) -> tuple[Any, ...]:
    if isinstance(step, KernelStep):
        return (_address(library, step.symbol), step.last_read)
    func = resolve_name(step.func) if isinstance(step.func, str) else step.func
    inputs, outputs = (tuple(_buffer(ref) for ref in refs) for refs in (step.inputs, step.outputs))
    return (func, inputs, outputs, step.together)


def _labels(plan: LaunchPlan) -> tuple[Any, ...]:
    """What spans of the graph and its parts are called, and how many parts each step has."""
    parts = [parts_of(step) for step in plan.steps]
    flat = tuple(part for of_step in parts for part in of_step)
    names = (f"dyncomp {plan.name}", *(f"dyncomp {part.name}" for part in flat))
    return ((names, (plan.name, flat)), tuple(map(len, parts)))


def parts_of(step: Step) -> tuple[Part, ...]:
    """The parts of a step, at least one."""
    if isinstance(step, KernelStep):
        return step.parts or (Part(step.symbol, "kernel"),)
    return (step.part or Part(_name_of(step.func), "library"),)


def _name_of(func: Callable[..., Any] | str) -> str:
    if isinstance(func, str):
        return func.rpartition(":")[2]
    function = func.func if isinstance(func, functools.partial) else func
    return str(getattr(function, "__name__", type(function).__name__))


def _result(result: Result) -> tuple[Any, ...]:
    if isinstance(result, OutputResult):
        return (0, result.index)
    if isinstance(result, InputResult):
        return (1, result.index)
    if isinstance(result, ConstantResult):
        return (3, result.value)
    return (
        2,
        result.base == "input",
        result.index,
        result.dtype.numpy,
        _sizes(result.shape),
        _sizes(result.strides),
        _size(result.offset),
        result.writeable,
    )


def _owner(owner: TensorOwner | None) -> tuple[Any, ...] | None:
    if owner is None:
        return None
    functions = (owner.describe, owner.empty, owner.as_strided)
    return (owner.type, *functions, owner.use_table, owner.to_numpy, owner.taken)


def resolve_name(name: str) -> Callable[..., Any]:
    """The object called ``"module:qualified.name"``; ``ValueError`` for any other text."""
    module, colon, qualified = name.partition(":")
    if not colon:
        raise ValueError(f"not of the form module:qualified.name: {name!r}")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    return found
