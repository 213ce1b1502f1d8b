"""CPython hook, C dispatcher and guard programs (``csrc/*.c``). See DESIGN §5 and FACTS §3.

All state is per process, under the GIL; importing into a subinterpreter raises ``ImportError``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from types import CellType, CodeType, FunctionType
from typing import Any, final

OPS: Mapping[str, int]
"""Opcode numbers of guard programs."""

OBJECT_LAYOUT: Mapping[str, int]
"""Where objects keep what compiled loops read in place, in bytes from their beginning (``csrc/layout.c``)."""

INTERFACE_VERSION: int
"""Of what Python sees of this module: ``dyncomp.hook`` raises ``ImportError`` where it is another."""

TRANSFER_COLUMN: int
"""The column that marks calls which carry on the frame of their caller (see ``transfers``)."""

@final
class GuardProgram:
    """A flat guard program. Made by ``capture.guards.guard.compile_guards``; ``instructions`` are tuples
    ``(opcode, register, a, b, object, guard_index)``. ``ValueError``/``TypeError`` for a malformed one."""

    guards: Sequence[Any]
    num_outputs: int
    steps: int | None  # of its shortcut, after it has held a few times
    def __init__(
        self,
        instructions: Sequence[tuple[int, int, int, int, Any, int]],
        num_registers: int,
        guards: Sequence[Any] = ...,
        outputs: Sequence[int] = ...,
    ) -> None: ...
    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """The outputs, of a program that reads arguments alone. ``LookupError`` where they cannot be read."""
    def check(
        self,
        args: tuple[Any, ...],
        globals: dict[str, Any],
        builtins: dict[str, Any],
        closure: tuple[Any, ...] | None = ...,
    ) -> bool:
        """Whether all guards hold. ``args`` is the bound argument array in ``co_varnames`` order."""
    def first_failure(
        self,
        args: tuple[Any, ...],
        globals: dict[str, Any],
        builtins: dict[str, Any],
        closure: tuple[Any, ...] | None = ...,
    ) -> int | None:
        """Index (into ``guards``) of the first guard that fails, ``None`` when all hold, -1 for an output
        that cannot be read."""
    def read(
        self,
        args: tuple[Any, ...],
        globals: dict[str, Any],
        builtins: dict[str, Any],
        closure: tuple[Any, ...] | None = ...,
    ) -> tuple[Any, ...] | None:
        """Values of the outputs when all guards hold, else ``None``."""

class HookConfig:
    """Identity of one ``dyncomp.compile`` (subclass it freely); owns the cache entries made under it.

    ``on_miss(func, bound_args, config) -> Entry | None`` is called when no entry's guards hold; the entry
    returned is appended to the cache of ``(func.__code__, config)`` and run if its guards hold; ``None``
    runs the original this time. An exception propagates to the caller. While it runs, hook and
    dispatchers in this thread run plain Python.
    ``should_capture(code) -> bool`` is asked once per code object that the frame hook meets; false marks
    the code as skipped (for all configs). ``None`` means always.
    """

    on_miss: Callable[[FunctionType, tuple[Any, ...], Any], Entry | None] | None
    should_capture: Callable[[CodeType], bool] | None
    def __init__(self, on_miss: Any = ..., should_capture: Any = ...) -> None: ...

@final
class Entry:
    """What runs when ``guards`` hold; ``guards=None`` always hits.

    Give ``target`` (a callable, best a C one: called with the bound arguments selected by ``arg_order``:
    ``i >= 0`` is bound argument i, ``-1 - k`` is output k of the guard program; ``None`` means the outputs
    if there are any, else all bound arguments), or ``code`` (replacement with the same signature flags,
    argument names prefix and free variables as the original; it sees the function's globals and closure),
    or both (the target is used where possible), or neither (the original runs).
    ``needs_hook``: while it runs, the frame hook is on in this thread under the entry's config.
    ``moves``: the code may let go of its arguments before it returns, so that they must not be held for it.
    ``payload`` is anything the Python side wants to keep with the entry. ``hits`` counts. Entries are tried
    by ``rank``, lowest first, among equals the one hit last first (a negative one is run once, not kept);
    ``last_hit`` orders entries by their last hits. While ``hits`` is less than ``rests_until`` (which starts
    as 0) the original runs instead of ``code``.
    ``trial``: have early calls made both ways, compiled and by the entry ``trial.plain_entry(function)``
    (``None``: no comparison after all), and the quicker kept; where that is the original (``plain_won``),
    ``trial.decided(compiled, plain)`` is told the nanoseconds.
    """

    guards: GuardProgram | None
    code: CodeType | None
    target: Any
    needs_hook: bool
    arg_order: tuple[int, ...] | None
    payload: Any
    hits: int
    rank: int
    last_hit: int
    plain_won: bool
    rests_until: int
    def __init__(
        self,
        guards: GuardProgram | None,
        code: CodeType | None = ...,
        target: Any = ...,
        needs_hook: bool = ...,
        arg_order: Sequence[int] | None = ...,
        payload: Any = ...,
        rank: int = ...,
        moves: bool = ...,
        trial: Any = ...,
    ) -> None: ...

class Dispatcher:
    """The compiled function: a C callable. ``on_miss=None`` uses ``config.on_miss``.

    Binds arguments as CPython would (binding errors raise the function's own ``TypeError``), checks the
    entries of ``(func.__code__, config)`` and runs the first that holds. Binds as a method; forwards unknown
    attributes to ``func``; pickles as ``config.reduce`` says, without it by qualified name.
    """

    __wrapped__: FunctionType
    @property
    def _function(
        self,
    ) -> FunctionType: ...  # what is compiled; ``functools.wraps`` sets ``__wrapped__`` to another
    config: HookConfig
    def __init__(self, func: FunctionType, config: HookConfig, on_miss: Any = ...) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, obj: Any, owner: Any = ...) -> Any: ...

class ResumeFunction(Dispatcher):
    """The continuation after a graph break: a dispatcher made from ``code`` (positional arguments only),
    or that stands in for what ``make_code`` gives when the original is first to run. With free variables,
    ``bind(cells)`` gives the callable; without, call it directly."""

    def __init__(
        self,
        code: CodeType,
        globals: dict[str, Any],
        name: str,
        qualname: str,
        config: HookConfig,
        on_miss: Any = ...,
        make_code: Callable[[], CodeType] | None = ...,
    ) -> None: ...
    def bind(self, cells: tuple[Any, ...]) -> Dispatcher: ...

class TailCall:
    """A call that is still to be made. Only code that the hook or a dispatcher runs returns one, and only C
    code sees it."""

def later(function: Callable[..., Any], *args: Any) -> TailCall:
    """What replacement code returns to go on in another function: the call is made when the frame is gone,
    and its arguments move into the frame of ``function``."""

def run(call: TailCall) -> Any:
    """Make a call of :func:`later` at once, its arguments moving too."""

def instantiate(
    made: list[Any],
    instructions: tuple[tuple[str, int, Any, int], ...],
    tokens: list[str],
    places: list[Any],
    variables: dict[str, tuple[str, Any]],
    local: dict[str, str],
    instr: type,
    no_place: Any,
) -> None:
    """Append the instructions of a template to ``made``: see ``replacement.templates``."""

def insert(
    instructions: tuple[Any, ...],
    after: dict[int, list[tuple[str, Any]]],
    without: Collection[int],
    jumps: frozenset[str],
    instr: type,
) -> tuple[tuple[Any, ...], list[int]]:
    """The instructions with others ``after`` some and ``without`` others, and where each began: see
    ``bytecode.edit``."""

def assemble(
    instructions: list[Any],
    places: dict[int, int] | None,
    first_line: int,
    merge: bool,
    tables: tuple[dict[str, int], bytes, bytes, int],
) -> tuple[bytes, bytes, tuple[list[int], list[int]]] | int:
    """The bytes of real instructions, their location table, and where they begin with and without prefixes;
    or the index of a jump that goes the wrong way: see ``pyver.raw``."""

def check_cell(cell: CellType, name: str) -> None:
    """Raise ``UnboundLocalError`` for the variable ``name`` if its cell is empty."""

def set_active(config: HookConfig | None) -> HookConfig | None:
    """Turn the frame hook on (or off) in this thread; returns what was active before. Put it back in a
    ``finally``: a thread that ends with a config active leaves the hook installed (harmless, but slow).
    While a trace or profile function or a monitoring tool is on, frames run their originals."""

def get_active() -> HookConfig | None: ...
def add_entry(code: CodeType, config: HookConfig, entry: Entry) -> None:
    """Append an entry made elsewhere (for instance read from disk). ``ValueError`` for incompatible code."""

def cache_entries(code: CodeType, config: HookConfig) -> list[Entry]: ...
def all_entries(config: HookConfig) -> list[tuple[CodeType, list[Entry]]]:
    """The entries of every code object under one config."""

def drop_entry(code: CodeType, config: HookConfig, entry: Entry) -> bool:
    """Remove one entry; whether it was there."""

def num_entries(code: CodeType) -> int:
    """How many entries a code object has under all configs."""

def waited(code: CodeType, config: HookConfig) -> int:
    """Nanoseconds of calls that waited with their capture: for which ``on_miss`` gave an entry of a negative
    rank without code. What was captured within such a call leaves it uncounted."""

def set_stance(number: int, for_thread: bool) -> int:
    """What compiled functions do on calls (numbers of ``stance.STANCES``), for the process or this thread,
    where -1 means as the process; returns what was set before. Cheap: calls read a flag."""

def get_stance() -> int:
    """The stance in force in this thread."""

def mark(code: CodeType, what: str | None, config: HookConfig | None = ...) -> None:
    """``"skip"``: without config, the frame hook never looks at the code again; with one, its dispatcher
    always runs the original. ``"disable"`` (without config): nor does it look at what the code calls.
    ``"frozen"`` (with config): entries are used, ``on_miss`` is called no more. ``None`` clears the mark."""

def get_mark(code: CodeType, config: HookConfig | None = ...) -> str | None: ...
def clear(code: CodeType, config: HookConfig | None = ...) -> None:
    """Drop entries and marks of the code under config (or all configs)."""

def clear_all() -> None:
    """Drop every entry and mark of every config."""

def stats() -> dict[str, int]:
    """Counters since ``reset_stats()``: hits, misses, frames_seen, skipped, captures, fresh_misses (new
    entry whose own guards failed), fallbacks (original ran), patched, vectorcalled, deep."""

def reset_stats() -> None: ...
def spans_begin(limit: int, /) -> None:
    """Record calls of compiled functions, look-ups of guards and runs of compiled loops from now on, at most
    so many until they are taken."""

def spans_end() -> None:
    """Record no more."""

def spans_take() -> tuple[list[tuple[int, Any, Any, bool, int, int, int, int]], int]:
    """What was recorded since it was last taken: kind (0 call, 1 guards, 2 loop), code object or gate, code
    object of the program and whether the former is only a piece of it, native thread id, beginning and end
    (nanoseconds of CLOCK_MONOTONIC), and a detail (whether the call returned, the guards held). And how many
    there was no room for."""

def attr_kind(obj: Any, name: str) -> str:
    """How ``obj.name`` would be found, without running user code.

    "instance", "class" (plain value on the type), "static" (staticmethod), "classmethod", "method" (function
    on the type), "slot", "getset" (C level), "property", "descriptor" (other), "custom"
    (``__getattribute__`` in Python or unknown C), "getattr" (missing, but there is a ``__getattr__``),
    "missing". Types: attributes of the class itself by the same words.
    """

def hook_installed() -> bool: ...

REGIONS: ContextVar[Any]
"""Of :mod:`.regions`: (the innermost region, those around it) or None."""

def notices_end(obj: Any) -> bool:
    """Whether something runs when ``obj`` goes: a finalizer, or the callback of a weak reference to it."""

def has_plain_names(obj: dict[Any, Any] | type) -> bool:
    """Whether looking up names in a dict, or in a class and its bases, runs no code of the program: no keys
    but strings and others that are compared in C."""

def set_origin(code: CodeType, original: CodeType) -> None:
    """``code`` carries on calls of ``original``: profilers see no call of its own."""

def set_profiled_as_written(value: bool) -> bool:
    """Whether profilers (``sys.setprofile``, cProfile) see the originals run, as debuggers do; returns the
    setting before."""

def show_get(function: Callable[..., Any]) -> None:
    """What is seen as ``__get__`` of the type of compiled functions; Python calls C's."""

def set_tensor_view(type: type, address: int) -> None:
    """The function that reads tensors of a type, as one of DLPack's exchange table."""

def set_foreign_modules(names: tuple[str, ...]) -> None:
    """The modules of other compilers: C captures nothing below their frames."""

def errstate() -> int | None:
    """NumPy's error modes as ``facts.read_errstate`` packs them, read in C; ``None`` if unknown."""

class Ticks:
    """An iterator that gives ``None`` while any are ``left``."""

    left: int
    def __init__(self, left: int = ...) -> None: ...
    def __iter__(self) -> Ticks: ...
    def __next__(self) -> None: ...

class LoopPlan:
    """How values enter a compiled loop and come back from it: see ``scalar_loops.entry.entry_plan``."""

    program: Any
    def __init__(
        self,
        program: Any,
        address: int,
        words: int,
        unbound: Any,
        inputs: tuple[tuple[int, str, Any, int, int, int, int], ...],
        assumptions: tuple[tuple[Any, str | int, Any], ...],
        outputs: tuple[tuple[int, int, tuple[tuple[str, int, int], ...]], ...],
        leaves: tuple[tuple[int, int], ...],
        owned_at: int,
        num_owned: int,
    ) -> None: ...

class LoopGate:
    """What a gate before a loop asks: ``gate[values]``. Where none of the ``plans`` takes the values, that is
    ``ask(values)`` of a subclass; where one of them ended in a way of its own,
    ``finish(plan, words, values, raised)``."""

    plans: tuple[LoopPlan, ...]
    ticks: Ticks
    fewest: int
    lead: int
    runs: int
    setbacks: int
    def __new__(cls) -> Any: ...
    def __getitem__(self, values: tuple[Any, ...]) -> tuple[Any, Any, Any]: ...

def text_of(value: str | bytes | bytearray) -> tuple[int, int, int]:
    """Of what size a string's characters are (1, 2 or 4 bytes; 0: bytes; -1: a bytearray), where and how
    many."""

def reported(function: Callable[..., Any], note: Callable[[str], object], /) -> Callable[..., Any]:
    """What calls ``function`` so that ``note(text)`` is told of NumPy's warnings about floating-point errors,
    which are made all the same; ``function`` itself where NumPy's modes ask for anything but warnings."""
