"""Guards as data: what must hold of a function's inputs for an entry to be used again.

A :class:`Guard` says something about the value that a :class:`~dyncomp.capture.guards.source.Source` yields.
:func:`compile_guards` turns a list of them into a ``_hook.GuardProgram``, a flat program over a tree of
accessors that runs in C: every source is read once, every access checks the type it needs first, so that
the program never raises and never runs user code (``CUSTOM_ARRAY`` callables excepted); whatever goes
wrong counts as a miss. :func:`describe_failure` says in words which guard failed and what it found.

    program = compile_guards([Guard(x, Kind.ARRAY, ArrayFacts.of(array))])
    program.check((array,), f.__globals__, builtins.__dict__, f.__closure__)
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dyncomp.capture.guards.fact_kinds import (
    ArrayFacts,
    CodeFacts,
    CustomCheck,
    Elements,
    NoOverlap,
    SymBinding,
    SymCondition,
    TensorFacts,
)
from dyncomp.capture.guards.program import GuardRefused, lower_guards
from dyncomp.capture.guards.serial import is_numpy_number
from dyncomp.capture.guards.source import Source
from dyncomp.capture.objects.class_names import module_of, qualname_of
from dyncomp.dataclass import dataclass, field
from dyncomp.hook import _hook
from dyncomp.hook.errstate import errstate_name, read_errstate

__all__ = [
    "ArrayFacts",
    "CodeFacts",
    "CustomCheck",
    "Elements",
    "Failure",
    "Guard",
    "GuardRefused",
    "Kind",
    "NoOverlap",
    "SymBinding",
    "SymCondition",
    "TensorFacts",
    "compile_guards",
    "describe_failure",
    "errstate_name",
    "find_failure",
    "read_errstate",
]


class Kind(enum.StrEnum):
    """What a guard says of ``value``, the object its source yields (E is ``expected``)."""

    TYPE_IS = "TYPE_IS"  # type(value) is E
    IS = "IS"  # value is E
    IS_NOT = "IS_NOT"  # value is not E
    EQUALS = "EQUALS"  # same exact type and value as the constant E (-0.0 is not 0.0; nan equals nan)
    BOOL = "BOOL"  # value is E, a bool
    NONE = "NONE"  # value is None
    NOT_NONE = "NOT_NONE"  # value is not None
    LEN = "LEN"  # E = (type, n): exact type and length of a list, tuple, dict, set, str, bytes, deque…
    DICT_KEYS = "DICT_KEYS"  # E = tuple of keys: the dict's keys, in order, by value and type or by identity
    DICT_HAS = "DICT_HAS"  # key E is in the dict
    DICT_LACKS = "DICT_LACKS"  # key E is not in the dict
    HASATTR = "HASATTR"  # attribute E is found without running Python code
    NOATTR = "NOATTR"  # attribute E is neither on the instance nor on its type (and no __getattr__)
    INSTANCE_HAS = "INSTANCE_HAS"  # attribute E is in the instance's own __dict__
    INSTANCE_LACKS = "INSTANCE_LACKS"  # attribute E is not in the instance's own __dict__
    CODE_IS = "CODE_IS"  # a Python function with the code of E: CodeFacts
    GLOBAL_MISSING = "GLOBAL_MISSING"  # no source: global E is absent (so that the builtin is meant)
    ARRAY = "ARRAY"  # a NumPy array as E: ArrayFacts says
    NUMPY_SCALAR = "NUMPY_SCALAR"  # type(value) is E, a NumPy scalar type
    PYINT_FITS_INT64 = "PYINT_FITS_INT64"  # an exact int that fits int64
    SYM = "SYM"  # no source: E is a SymCondition
    NO_OVERLAP = "NO_OVERLAP"  # no source: E is a NoOverlap
    SAME_OBJECT = "SAME_OBJECT"  # value is what the source E yields
    NOT_SAME_OBJECT = "NOT_SAME_OBJECT"  # value is not what the source E yields
    DISTINCT = "DISTINCT"  # no source: E is a Distinct
    OVERLAP = "OVERLAP"  # no source: not as the NoOverlap E says
    REGION = "REGION"  # no source: E = (whether breaks are errors, whether outside of all regions)
    ERRSTATE = "ERRSTATE"  # no source: NumPy's error modes are E (read_errstate())
    CLASS = "CLASS"  # no source: E = ClassFacts
    MODULE = "MODULE"  # no source: E = ModuleFacts
    CUSTOM_ARRAY = "CUSTOM_ARRAY"  # E: CustomCheck
    ELEMENTS = "ELEMENTS"  # a small array or tensor on the CPU holds E: Elements
    TORCH_TENSOR = "TORCH_TENSOR"  # E: TensorFacts, checked through DLPack's exchange table


# kinds whose E is any object of the program, hashing or comparing which may run the program's code
BY_IDENTITY = frozenset({Kind.TYPE_IS, Kind.IS, Kind.IS_NOT})


@dataclass(frozen=True, eq=False)
class Guard:
    """``source`` (``None`` for the kinds that say so), ``kind`` and ``expected`` as :class:`Kind` says.

    ``loc`` is the user's place, ``(file, line)`` or any printable, and ``why`` a few words.
    """

    source: Source | None
    kind: Kind
    expected: Any = None
    loc: Any = field(default=None)
    why: str = field(default="")

    def __str__(self) -> str:
        return guard_text(self)


def compile_guards(
    guards: Iterable[Guard],
    outputs: Sequence[Source] = (),
    env: tuple[Any, Any, Any, Any] | None = None,
) -> _hook.GuardProgram:
    """A C program that checks ``guards`` in the given order (duplicates dropped).

    ``outputs`` are sources whose values an ``Entry`` hands to its target (see ``Entry.arg_order``).
    ``env`` is ``(args, globals, builtins, closure)`` as at capture: the program must hold there.
    Raises :class:`GuardRefused` for a guard that C cannot check without running user code, and for one
    that does not hold in ``env``.
    """
    program = lower_guards(guards, outputs)
    if env is not None:
        problem = describe_failure(program, *env)
        if problem is not None:
            raise GuardRefused(f"does not hold at capture: {problem}")
    return program


# -- words ------------------------------------------------------------------------------------
def guard_text(guard: Guard) -> str:
    """One line, such as ``x: ndarray float64 (3, 4) C-contiguous``."""
    place = guard.source.expr() if guard.source is not None else ""
    text = _TEXTS[str(guard.kind)](place, guard.expected)
    return f"{text}  # {guard.why}" if guard.why else text


_NAMED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)
_SCALARS = (int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented))
_SEQUENCES = (tuple, list, set, frozenset)


def short(value: Any) -> str:
    """A few words about any object; runs no user code."""
    kind = type(value)
    if issubclass(kind, type):
        return _type_name(value)
    if _is_plain(value):
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."
    if kind in _NAMED:
        return f"{kind.__name__} {value.__name__}"
    if issubclass(kind, enum.Enum):
        return f"{_type_name(kind)}.{object.__getattribute__(value, '__dict__').get('_name_')}"
    if kind in _DESCRIPTORS or issubclass(kind, (np.ufunc, np.dtype)):
        return repr(value)
    if kind in _SEQUENCES or kind is dict:
        return f"a {kind.__name__} of {len(value)}"
    return f"{_type_name(kind)} object at {id(value):#x}"


def _type_name(kind: type) -> str:
    module, name = module_of(kind), qualname_of(kind)
    return name if module == "builtins" else f"{module}.{name}"


def _is_plain(value: Any) -> bool:
    """Whether ``repr`` runs no user code and is short enough to make."""
    kind = type(value)
    if kind in _SEQUENCES:
        return len(value) <= 8 and all(type(item) in _SCALARS for item in value)
    if kind is int:
        return value.bit_length() < 200
    if kind is slice:
        return all(type(part) in _SCALARS for part in (value.start, value.stop, value.step))
    return kind in _SCALARS or kind is range or is_numpy_number(value) or issubclass(kind, np.dtype)


_TEXTS: dict[str, Callable[[str, Any], str]] = {
    "TYPE_IS": lambda x, e: f"type({x}) is {short(e)}",
    "NUMPY_SCALAR": lambda x, e: f"{x}: NumPy scalar {short(e)}",
    "IS": lambda x, e: f"{x} is {short(e)}",
    "IS_NOT": lambda x, e: f"{x} is not {short(e)}",
    "EQUALS": lambda x, e: f"{x} == {short(e)} ({type(e).__name__})",
    "BOOL": lambda x, e: f"{x} is {e}",
    "NONE": lambda x, e: f"{x} is None",
    "NOT_NONE": lambda x, e: f"{x} is not None",
    "LEN": lambda x, e: f"{x}: {short(e[0])} of length {e[1]}",
    "DICT_KEYS": lambda x, e: f"list({x}) == [{', '.join(map(short, e))}]",
    "DICT_HAS": lambda x, e: f"{short(e)} in {x}",
    "DICT_LACKS": lambda x, e: f"{short(e)} not in {x}",
    "HASATTR": lambda x, e: f"hasattr({x}, {e!r})",
    "NOATTR": lambda x, e: f"not hasattr({x}, {e!r})",
    "INSTANCE_HAS": lambda x, e: f"{e!r} in vars({x})",
    "INSTANCE_LACKS": lambda x, e: f"{e!r} not in vars({x})",
    "CODE_IS": lambda x, e: f"{x}: {e}",
    "GLOBAL_MISSING": lambda x, e: f"{e!r} not in globals()",
    "ARRAY": lambda x, e: f"{x}: {e}",
    "PYINT_FITS_INT64": lambda x, e: f"{x}: int of 64 bits",
    "SYM": lambda x, e: str(e),
    "NO_OVERLAP": lambda x, e: str(e),
    "SAME_OBJECT": lambda x, e: f"{x} is {e.expr()}",
    "NOT_SAME_OBJECT": lambda x, e: f"{x} is not {e.expr()}",
    "DISTINCT": lambda x, e: str(e),
    "OVERLAP": lambda x, e: f"not: {e}",
    "REGION": lambda x, e: f"graph breaks are {'errors' if e[0] else 'allowed'} (error_on_graph_break)",
    "ERRSTATE": lambda x, e: f"np.errstate({errstate_name(e)})",
    "CLASS": lambda x, e: str(e),
    "MODULE": lambda x, e: str(e),
    "CUSTOM_ARRAY": lambda x, e: f"{x}: {e}",
    "ELEMENTS": lambda x, e: f"{x}: {e}",
    "TORCH_TENSOR": lambda x, e: f"{x}: {e}",
}


@dataclass(frozen=True)
class Failure:
    """A guard that does not hold. ``found``: what is there instead, in words; empty where nothing is."""

    guard: Guard | None
    found: str

    def __str__(self) -> str:
        if self.guard is None:
            return "an output cannot be read"
        if not self.found:
            assert self.guard.source is not None
            place = self.guard.source.expr()
            return f"expected {self.guard}; {place} is missing or needs user code to be read"
        return f"expected {self.guard}; found {self.found}"


def find_failure(
    program: _hook.GuardProgram,
    args: tuple[Any, ...],
    globals: dict[str, Any],
    builtins: dict[str, Any],
    closure: tuple[Any, ...] | None = None,
) -> Failure | None:
    """The first guard that fails; ``None`` if all hold."""
    env = (args, globals, builtins, closure)
    index = program.first_failure(*env)
    if index is None:
        return None
    if index < 0:
        return Failure(None, "")
    guard: Guard = program.guards[index]
    if guard.source is None:
        return Failure(guard, _actual_global(guard, env))
    found, value = _read(guard.source, env)
    return Failure(guard, _actual(guard, value) if found else "")


def describe_failure(
    program: _hook.GuardProgram,
    args: tuple[Any, ...],
    globals: dict[str, Any],
    builtins: dict[str, Any],
    closure: tuple[Any, ...] | None = None,
) -> str | None:
    """The first guard that fails and what was found instead, in words; ``None`` if all hold."""
    failure = find_failure(program, args, globals, builtins, closure)
    return None if failure is None else str(failure)


def _read(source: Source, env: tuple[Any, ...]) -> tuple[bool, Any]:
    values = lower_guards((), [source]).read(*env)
    return (False, None) if values is None else (True, values[0])


def _actual(guard: Guard, value: Any) -> str:
    kind = guard.kind
    if kind in (Kind.TYPE_IS, Kind.NUMPY_SCALAR):
        return f"type {short(type(value))}"
    if kind is Kind.ARRAY:
        return describe_array(value)
    if kind is Kind.LEN:
        length = f" of length {len(value)}" if type(value) in (*_SEQUENCES, dict, str) else ""
        return short(type(value)) + length
    if kind is Kind.DICT_KEYS and type(value) is dict:
        return f"[{', '.join(map(short, value))}]"
    if kind is Kind.EQUALS:
        return f"{short(value)} ({_type_name(type(value))})"
    return short(value)


def describe_array(value: Any) -> str:
    """An array's facts in words; for other objects their type."""
    if issubclass(type(value), np.ndarray):
        writeable = "" if value.flags.writeable else " read-only"
        return f"{ArrayFacts.of(value)}{writeable}"
    return short(type(value))


def _actual_global(guard: Guard, env: tuple[Any, ...]) -> str:
    if guard.kind is Kind.ERRSTATE:
        return f"np.errstate({errstate_name(read_errstate())})"
    if guard.kind is Kind.SYM:
        values = []
        for binding in guard.expected.bindings:
            found, value = _read(binding.source, env)
            values.append(f"{binding.expr()} = {_bound(binding, value) if found else 'missing'}")
        return ", ".join(values)
    return _FOUND_INSTEAD[guard.kind]


_FOUND_INSTEAD = {
    Kind.NO_OVERLAP: "overlapping memory",
    Kind.DISTINCT: "two that are the same object",
    Kind.OVERLAP: "memory that does not overlap",
    Kind.REGION: "another region",
    Kind.GLOBAL_MISSING: "a global of that name",
    Kind.CLASS: "attributes or bases that were changed",
    Kind.MODULE: "something else in the module",
}


def _bound(binding: SymBinding, value: object) -> str:
    if isinstance(value, np.ndarray) and binding.what in ("dim", "stride"):
        sizes = value.shape if binding.what == "dim" else value.strides
        return str(sizes[binding.axis]) if binding.axis < len(sizes) else "no such axis"
    return describe_array(value) if isinstance(value, np.ndarray) else short(value)
