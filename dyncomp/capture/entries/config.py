"""What one ``dyncomp.compile`` call gives to capture: options, frontends, how to compile a graph."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import faults
from ...dataclass import dataclass, field
from ...frontends.base import Frontend
from ...graph.ir import Graph
from ...hook import _hook
from ...options import Options
from ...prims.opdef import OpDef
from ...python_code.continuation import MadeLater
from ...symbolic.dynamic_sizes import Argument, DynamicArguments
from ..breaks import Break
from ..calls.substitutes import Substitutes
from ..environment import other_compilers
from ..guards.guard import Failure
from ..policy.not_inlined import RefusedCalls
from .records import Records

if TYPE_CHECKING:
    from ...frontends.torch.modules import ModuleClasses
    from .stored import StoredEntries

# Libraries whose module members and functions are constants to compiled code: nobody reassigns
# ``np.sqrt``. Members of all other modules are guarded.
TRUSTED = frozenset(
    {"numpy", "math", "cmath", "operator", "functools", "itertools", "torch", "cupy", "einops", "builtins"}
)


# Standard modules whose functions work on the interpreter's own state, text or files: they are called, not
# inlined.
# fmt: off
NOT_INLINED = frozenset((
    "warnings", "logging", "threading", "os", "posixpath", "re", "inspect", "importlib", "io", "json",
    "subprocess", "multiprocessing", "asyncio", "unittest", "pickle", "socket", "traceback", "linecache",
    "tokenize", "ast", "dis", "datetime", "locale", "random", "typing", "string", "textwrap", "pathlib",
    "tempfile", "shutil", "weakref", "gc", "contextvars", "concurrent", "queue", "signal", "platform",
    "sysconfig", "codecs", "encodings", "pprint", "reprlib", "decimal", "fractions", "uuid", "hashlib",
    "struct", "zipfile", "csv", "configparser", "argparse", "pytest", "_pytest", "hypothesis", "rich",
    "pandas", "matplotlib", "numpy._core._ufunc_config",
))
# fmt: on

# what of them is inlined all the same, by module and outermost name: it looks at its arguments only
_INLINED_PARTS = frozenset(
    ("inspect", name)
    for name in ["Signature", "Parameter", "BoundArguments", "isclass", "isfunction", "ismethod", "ismodule"]
    + ["isbuiltin", "isgenerator", "isroutine", "iscode", "ismethodwrapper"]
)

# our own Python that runs in captured code
_OWN_CODE = ("dyncomp.capture.polyfills", "dyncomp.autodiff", "dyncomp.frontends.derivatives")


def is_own_code(module: str) -> bool:
    return module.startswith(_OWN_CODE)


@dataclass
class FrameState:
    """What was seen of a code object's inputs: by the source's text, the first value of each type or the last
    shape, and which are to be symbolic from now on."""

    seen: dict[Any, Any] = field(default_factory=dict)
    dynamic: set[tuple[str, type]] = field(default_factory=set)
    dynamic_dims: dict[str, set[int]] = field(default_factory=dict)
    static_dims: dict[str, set[int]] = field(default_factory=dict)
    texts: dict[str, set[str]] = field(default_factory=dict)
    captures: int = 0
    pieces: int = 0  # captures of it and of all that it was cut into
    limited: bool = False  # too many of them, and that was said
    graphs: int = 0  # how many of those pieces gave a graph
    fruitless: int = 0  # and how often one was captured again and gave none
    observed: bool = False
    misses: list[Failure] = field(default_factory=list)


class CaptureConfig(_hook.HookConfig):
    """One compile configuration; C knows it as the key of cache entries."""

    def __init__(
        self,
        options: Options,
        frontends: Callable[[], Sequence[Frontend]],
        table: Mapping[str, OpDef],
        compile_graph: Callable[[Graph, Options, tuple[Any, ...], Any, Any], Any],
        records: Records,
        substitutes: Substitutes | None = None,
    ) -> None:
        super().__init__()
        self.options = options
        self.table = table
        self.compile_graph = compile_graph
        self.records = records
        self.substitutes = substitutes if substitutes is not None else Substitutes()
        self._find_frontends = frontends
        self.stored: StoredEntries | None = None  # entries on disk
        self.reduce: Callable[[Any], Any] | None = None  # how compiled functions are pickled
        self.module_classes: ModuleClasses | None = None  # of the modules compiled with it
        self._states: dict[types.CodeType, FrameState] = {}
        self._varying: dict[types.CodeType, frozenset[str]] = {}
        self._described: set[types.CodeType] = set()
        # a loop compiled whole (see native_loops), where there is a compiler for it
        self.make_native: Callable[..., Any] | None = None
        # a class of objects that stand for the array or number in one of their attributes, to differentiate
        # by; graphs are given the objects themselves
        self.holder: tuple[type, str] | None = None
        # of one derivative: the functions around the user's are the same code for all
        self.is_private = False
        self.warns = True  # of floating-point errors, for which the original runs again
        self.most_unrolled: int | None = None  # nodes up to which loops are unrolled (default: unroll_ops)
        self.pins_trip_counts = False  # loops over a symbolic number of items are unrolled, for that number
        self.not_native: set[tuple[int, int]] = set()  # canonical code (by id) and header of those it refused
        self.code_hashes: dict[int, tuple[types.CodeType, str]] = {}
        self.resume_functions: dict[Any, Any] = {}
        self.stand_ins: dict[int, MadeLater] = {}  # by the id of the code that stands in for it
        # by identity (code objects compare by value), with the body so that its id stays its own
        self._body_owners: dict[int, tuple[types.CodeType, list[types.CodeType]]] = {}
        self._plain_bodies: dict[int, types.CodeType] = {}
        self._quicker_bodies: set[int] = set()
        # bodies and functions in which work worth a call was found; the functions that bodies go on in
        self._array_bodies: set[int] = set()
        self._array_functions: set[types.CodeType] = set()
        self._called_in: dict[int, set[types.CodeType]] = {}
        self._pieces: dict[int, tuple[types.CodeType, types.CodeType]] = {}
        self.read_frames: dict[int, types.CodeType] = {}  # functions whose frames others read
        self.counted_frames: dict[int, types.CodeType] = {}  # those that what they call may count
        self.refused_calls = RefusedCalls()
        # instructions, as `decisions` names them, where what a graph assumes of sizes does not hold
        self.failed_checks: dict[tuple[types.CodeType, int], Break] = {}
        self.not_from_disk: set[types.CodeType] = set()  # whose entries there assume too much of the data
        self.unusual: set[tuple[types.CodeType, int]] = set()  # jumps that did not go as presumed
        self.spent_ms = 0  # what captures took, by an estimate, and whether a graph worked on a large array
        self.has_large_work = False
        self.held_at_most = 0  # bytes of entries, those that are gone since they were last counted included
        self.raise_internal_errors = True  # where options are strict, or under debug_verify

    @property
    def frontends(self) -> Sequence[Frontend]:
        """The array libraries in use; the first one owns plain Python numbers."""
        return self._find_frontends()

    def frontend_named(self, name: str) -> Frontend:
        for frontend in self.frontends:
            if frontend.name == name:
                return frontend
        raise KeyError(name)

    def note_fault(self, place: str, error: BaseException) -> None:
        """Count an error of dyncomp's own, which must not change what the program does, and tell of it; it is
        raised where that was asked for."""
        strict = (self.options.strict or self.options.debug_verify) and self.raise_internal_errors
        if self.records.counters is not faults.counters:
            self.records.counters["internal_errors"] += 1
        self.records.internal_errors.append("".join(traceback.format_exception(error)))
        faults.note(place, error, strict)

    def describe_arguments(self, code: types.CodeType) -> None:
        """Have ``dynamic={…}`` speak of this code's arguments, which must have these names."""
        described = self.options.dynamic
        if not isinstance(described, DynamicArguments):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for argument in described.arguments:
            if argument.name not in names:
                raise ValueError(f"dynamic: {code.co_qualname} has no argument {argument.name!r}")
        self._described.add(code)

    def described_argument(self, code: types.CodeType, name: str) -> Argument | None:
        """What ``dynamic={…}`` says of an argument."""
        if code not in self._described:
            return None
        assert isinstance(self.options.dynamic, DynamicArguments)
        return self.options.dynamic.find(name)

    def state_of(self, code: types.CodeType) -> FrameState:
        found = self._states.get(code)
        if found is None:
            found = self._states[code] = FrameState()
        return found

    def forget(self) -> None:
        """Drop all that is remembered about code objects."""
        self._states.clear()
        self._varying.clear()
        self._body_owners.clear()
        self._plain_bodies.clear()
        self._quicker_bodies.clear()
        self._array_bodies.clear()
        self._array_functions.clear()
        self._called_in.clear()
        self.code_hashes.clear()
        self.resume_functions.clear()
        self.stand_ins.clear()
        self.not_native.clear()
        self._pieces.clear()
        self.refused_calls.clear()
        self.read_frames.clear()
        self.counted_frames.clear()
        self.failed_checks.clear()
        self.unusual.clear()
        self.spent_ms, self.has_large_work = 0, False
        self.records.forget()

    def set_varying(self, code: types.CodeType, names: frozenset[str]) -> None:
        """Arguments of a loop body that change from one iteration to the next."""
        self._varying[code] = names

    def keep_made_later(self, key: object, made: MadeLater, owner: types.CodeType) -> None:
        """Have a piece of ``owner`` found under ``key`` from now on. All else about it is known before: an
        interrupt may come after any line."""
        self.stand_ins[id(made.code)] = made
        self.add_piece(made.code, owner)
        self.resume_functions[key] = made

    def add_piece(self, piece: types.CodeType, owner: types.CodeType) -> None:
        """``piece`` is a continuation of ``owner``, or the body of one of its loops."""
        self._pieces[id(piece)] = (piece, owner)
        _hook.set_origin(piece, owner)

    def function_of(self, code: types.CodeType) -> types.CodeType:
        """The function of the program that ``code`` is a piece of, or is."""
        while id(code) in self._pieces:
            code = self._pieces[id(code)][1]
        return code

    def owner_of(self, piece: types.CodeType) -> types.CodeType:
        """What ``piece`` is a continuation of, or the body of a loop of."""
        return self._pieces[id(piece)][1]

    def count_capture(self, code: types.CodeType, change: int = 1) -> None:
        """Another form of ``code`` is kept, or one less."""
        self.state_of(code).captures += change
        self.state_of(self.function_of(code)).pieces += change

    def add_body_owner(self, body: types.CodeType, owner: types.CodeType) -> None:
        """``body`` runs one iteration of a loop of ``owner``: a function, or a continuation of it."""
        owners = self._body_owners.setdefault(id(body), (body, []))[1]
        if not any(known is owner for known in owners):
            owners.append(owner)

    def bodies_around(self, code: types.CodeType) -> list[types.CodeType]:
        """The bodies of loops that ``code`` is, or is a piece of, innermost first."""
        found = [code] if id(code) in self._body_owners else []
        while id(code) in self._pieces:
            code = self._pieces[id(code)][1]
            if id(code) in self._body_owners:
                found.append(code)
        return found

    def note_array_work(self, code: types.CodeType) -> None:
        """What is worth a call of compiled code was found in ``code``, and so in the loops around it."""
        self._array_bodies.update(map(id, self.bodies_around(code)))
        self._array_functions.add(self.function_of(code))

    def note_called(self, code: types.CodeType, called: Iterable[types.CodeType]) -> None:
        """A capture of ``code`` ended in functions that it called, whose pieces go on from there."""
        functions = set(map(self.function_of, called))
        for body in self.bodies_around(code):
            self._called_in.setdefault(id(body), set()).update(functions)

    def note_plain_body(self, code: types.CodeType) -> None:
        """``code``, or an iteration of the loop whose body it is a piece of, turned out to hold nothing worth
        compiling: have the loop captured anew, to run as it is."""
        for body in self.bodies_around(code)[:1]:
            if id(body) in self._plain_bodies or id(body) in self._array_bodies:
                continue
            self._plain_bodies[id(body)] = body
            for owner in self._body_owners[id(body)][1]:
                _hook.clear(owner, self)

    def leave_body_plain(self, body: types.CodeType) -> None:
        """Iterations of a loop were measured to be quicker as they are: have it captured anew, to run so."""
        self._plain_bodies[id(body)] = body
        self._quicker_bodies.add(id(body))
        for owner in self._body_owners[id(body)][1]:
            _hook.clear(owner, self)

    def is_plain_body(self, body: types.CodeType) -> bool:
        """Whether whole iterations of a loop were captured, and nothing worth compiling was found in any, or
        they were quicker as they are."""
        if id(body) in self._quicker_bodies:
            return True
        if id(body) not in self._plain_bodies or id(body) in self._array_bodies:
            return False
        return self._array_functions.isdisjoint(self._called_in.get(id(body), ()))

    def varying_of(self, code: types.CodeType) -> frozenset[str]:
        return self._varying.get(code, frozenset())

    def is_loop_body(self, code: types.CodeType) -> bool:
        return code in self._varying

    def is_inlinable(self, module: str, qualname: str = "") -> bool:
        """Whether the functions and classes of a module are followed, or that one."""
        if (module, qualname.partition(".")[0]) in _INLINED_PARTS:
            return True
        return module not in NOT_INLINED and module.partition(".")[0] not in NOT_INLINED

    def is_trusted(self, module: str) -> bool:
        return module.partition(".")[0] in TRUSTED or is_own_code(module)


_LIBRARY_FOLDERS = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"]}
)
_SITE = ("site-packages", "dist-packages")
# Array libraries, what dyncomp itself runs on (finalisers of its objects run anywhere), and test runners.
_NOT_HOOKED = tuple(
    f"{os.sep}{name}{os.sep}"
    for name in (
        *("numpy", "torch", "cupy", "cupyx", "triton", "sympy"),
        *("filelock", "platformdirs", "pytest", "_pytest", "hypothesis", *other_compilers.PACKAGES),
    )
)
# But modules of modules: wrappers of torch's own call them in plain Python.
_HOOKED_PARTS = tuple(
    os.path.join(os.sep, "torch", "nn", "modules", f"{name}.py") for name in ("container", "transformer")
)
_OWN = os.path.realpath(sys.modules[__name__.partition(".")[0]].__path__[0]) + os.sep


_real_path = functools.cache(os.path.realpath)


def hook_should_capture(code: types.CodeType) -> bool:
    """Which frames the hook captures while a partly captured function runs: the user's own and other
    packages' code, not the standard library, array libraries' insides, nor dyncomp and what it runs on."""
    filename = code.co_filename
    if filename.startswith("<"):
        return filename.startswith(("<ipython", "<stdin"))
    path = _real_path(filename)
    if path.startswith(_OWN):
        return False
    in_site = any(part in path for part in _SITE)
    if not in_site and path.startswith(_LIBRARY_FOLDERS):
        return False
    if code.co_name == "<module>":
        return False
    if not in_site or not any(package in path for package in _NOT_HOOKED):
        return True
    return code.co_name == "forward" and path.endswith(_HOOKED_PARTS)
