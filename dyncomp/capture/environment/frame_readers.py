"""Python functions that read the frames of their callers: these callers run as they are.

Compiled code has other frames than the program. How far up a function may look is found by its code
(``sys._getframe(1)``, ``f_back``, ``inspect.stack``), and in what it calls by names that lead to functions of
the program: globals, variables of closures, attributes of modules, methods of the same object. Where names
lead to objects, their properties and methods by those names count too, special methods of their classes,
which operators call, and the items of small containers.

What only counts frames (``stacklevel=3`` of a warning or record) finds as many behind graph breaks as in the
program, but for loops, of which an iteration may be a function of its own: there it is none
(:func:`~dyncomp.capture.lifetimes.loop_variables.kept_problem`).
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...hook import _hook
from ...python_code.flow import always_raises, remembered
from ...python_code.instr import CanonicalCode, Instr
from ..breaks import Break, Skip
from ..decisions import Restart
from ..entries.config import CaptureConfig
from ..frames import code_info
from ..lifetimes.by_identity import WeakIdentityDict
from ..values.base import LazyValue, Tracer, Value
from ..values.func import FunctionValue
from ..values.obj import InstanceValue

FAR = 100
"""As many callers as there may be."""
READS = "it calls {}, which reads the frames of its callers"

_OUTWARDS = frozenset({"f_back", "tb_frame", "getouterframes", "walk_stack", "extract_stack", "format_stack"})
_OUTWARDS |= {"print_stack"}
_LOOKS = _OUTWARDS | {"stack", "_getframe"}
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD")
_MOST_FUNCTIONS = 300

Follows = Callable[[types.CodeType], bool]


class Reach(NamedTuple):
    """How many callers of a function up it, or what it calls, may look, and may have a warning count."""

    looks: int
    counts: int


_NOWHERE = Reach(0, 0)


@remembered
def own_reach(code: CanonicalCode) -> int:
    """How many callers up the code itself may look."""
    outwards, deepest = 0, 0
    for instr, following in zip(code.instructions, code.instructions[1:]):
        if instr.op not in _LOADS or (instr.arg in _LOOKS and always_raises(code, instr.index)):
            continue
        if instr.arg == "stack" and instr.op != "LOAD_GLOBAL" and _is_of(code, instr.index, "inspect"):
            return FAR
        if instr.arg in _OUTWARDS:
            outwards += 1
            if instr.arg not in ("f_back", "tb_frame"):
                return FAR
        elif instr.arg == "_getframe":
            known = following.op == "LOAD_CONST" and isinstance(following.arg, int)
            called = code.instructions[following.index + 1 if known else following.index]
            if called.op != "CALL":
                return FAR
            deepest = max(deepest, following.arg if known else 0)
    if "_getframe" in code_constants(code) or (outwards and _loops(code)):
        return FAR
    return deepest + outwards


@remembered
def own_count(code: CanonicalCode) -> int:
    """How many callers up the code itself may have a warning or record count."""
    calls = (i for i in code.instructions if i.op == "CALL" and "stacklevel" in i.arg[1])
    return max((_stack_level(code, call) - 1 for call in calls), default=0)


def _stack_level(code: CanonicalCode, call: Instr) -> int:
    """What ``stacklevel=`` of a warning or record says: a caller at 2 is the frame that a break leaves."""
    before = code.instructions[call.index - 1]
    is_last = call.arg[1][-1] == "stacklevel"
    if not is_last or before.op != "LOAD_CONST" or not isinstance(before.arg, int):
        return FAR
    return before.arg if before.arg > 2 else 1


def code_constants(code: CanonicalCode) -> set[str]:
    return {i.arg for i in code.instructions if i.op == "LOAD_CONST" and isinstance(i.arg, str)}


def _is_of(code: CanonicalCode, index: int, module: str) -> bool:
    before = code.instructions[index - 1]
    return before.op in ("LOAD_GLOBAL", "LOAD_NAME") and before.arg == module


def _loops(code: CanonicalCode) -> bool:
    return any(isinstance(i.arg, int) and i.op.startswith(("JUMP", "POP_JUMP")) and i.arg <= i.index
               for i in code.instructions)  # fmt: skip


def _decoded(code: types.CodeType) -> CanonicalCode:
    return code_info(None, code).code


class _Search:
    """How far functions look, from one of them on."""

    def __init__(self, follows: Follows) -> None:
        self.follows = follows
        self.reaches: dict[tuple[int, int], Reach] = {}
        self.kept: list[Any] = []  # so that ids stay their own

    def reach(self, function: types.FunctionType, owner: type | None) -> Reach:
        key = id(function), id(owner)
        found = self.reaches.get(key) or _known_of(function).get(owner)
        if found is not None:
            return found
        if len(self.kept) >= _MOST_FUNCTIONS:
            return _NOWHERE
        self.kept.append((function, owner))
        self.reaches[key] = _NOWHERE  # of recursion
        if not self.follows(function.__code__):
            return _NOWHERE
        code = _decoded(function.__code__)
        looks, counts = own_reach(code), own_count(code)
        if any(value is sys._getframe for value in _held(function)):
            looks = FAR
        if looks < FAR:
            for callee, its_owner in callees(function, owner):
                further = self.reach(callee, its_owner)
                looks, counts = max(looks, further.looks - 1), max(counts, further.counts - 1)
        found = self.reaches[key] = Reach(looks, counts)
        return found

    def remember(self) -> None:
        """Where nothing looks anywhere, that is so for each function met; else recursion may hide some."""
        if len(self.kept) < _MOST_FUNCTIONS and all(each == _NOWHERE for each in self.reaches.values()):
            for function, owner in self.kept:
                _known_of(function)[owner] = _NOWHERE


def _held(function: types.FunctionType) -> Iterator[Any]:
    """Values that the function brings along: defaults, variables of its closure, globals that it names."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield function.__globals__[name]


def callees(function: types.FunctionType, owner: type | None) -> Iterator[tuple[types.FunctionType, Any]]:
    """Python functions that the names in a function's code lead to, with the class of their object."""
    for value in _held(function):
        yield from functions_of(value)
        yield from _special_methods(value)
        for item in _items_of(value):
            yield from functions_of(item)
    yield from _by_attributes(_decoded(function.__code__), function, owner)


def _by_attributes(
    code: CanonicalCode, function: types.FunctionType, owner: type | None
) -> Iterator[tuple[types.FunctionType, Any]]:
    """Members of modules and classes, methods of the function's own object; also in nested functions."""
    first = code.arg_names[0] if code.arg_names else None
    value: Any = None
    for instr in code.instructions:
        if instr.op in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = function.__globals__.get(instr.arg)
            if instr.arg not in function.__code__.co_names:
                yield from functions_of(value)
        elif instr.op == "LOAD_FAST" and instr.arg == first and owner is not None:
            value = owner
        elif instr.op == "LOAD_DEREF":
            value = _in_closure(function, instr.arg)
        elif instr.op in ("LOAD_ATTR", "LOAD_METHOD") and value is not None:
            its_class = owner if value is owner else _class_of_instance(value)
            value = _member(value, instr.arg)
            yield from functions_of(value, its_class)
            yield from _special_methods(value)
        else:
            if instr.op == "LOAD_CONST" and isinstance(instr.arg, types.CodeType):
                yield from _by_attributes(_decoded(instr.arg), function, None)
            value = None


def _in_closure(function: types.FunctionType, name: str) -> Any:
    for cell_name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if cell_name == name:
            try:
                return cell.cell_contents
            except ValueError:
                return None
    return None


def _member(value: Any, name: str) -> Any:
    """What an object has under a name, or its class; descriptors as they are, and nothing of theirs runs."""
    kind = type(value)
    if issubclass(kind, (types.ModuleType, type)):
        return _static(value, name)
    found, own = _static(kind, name), _static(kind, "__dict__")
    if isinstance(found, types.MemberDescriptorType):  # a slot
        try:
            return found.__get__(value)
        except AttributeError:
            return None
    if found is None and isinstance(own, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        names = own.__get__(value)
        return names.get(name) if type(names) is dict else None
    return found


def _class_of_instance(value: object) -> type | None:
    kind = type(value)
    return None if issubclass(kind, (types.ModuleType, type)) else kind


def _special_methods(value: object) -> Iterator[tuple[types.FunctionType, Any]]:
    """Those in Python of the object's class, which operators, calls and look-ups run."""
    kind = type(value)
    if issubclass(kind, (types.ModuleType, types.FunctionType)) or not kind.__flags__ & _IN_PYTHON:
        return
    for base in _MRO(kind):
        for name, member in list(_NAMES(base).items()) if base.__flags__ & _IN_PYTHON else ():
            if name.startswith("__") and name not in _OF_NEW_OBJECTS:
                yield from functions_of(member, kind)


_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE, of some classes in C as well
_OF_NEW_OBJECTS = frozenset({"__init__", "__new__", "__del__", "__class__", "__init_subclass__"})
_FEW_ITEMS = 32


def _items_of(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple) and len(value) <= _FEW_ITEMS:
        yield from list(value)
    elif type(value) is dict and len(value) <= _FEW_ITEMS:
        yield from list(value.values())


_MRO = type.__dict__["__mro__"].__get__
_NAMES = type.__dict__["__dict__"].__get__


def _static(owner: types.ModuleType | type, name: str) -> Any:
    """What a module or class has under a name; metaclasses are not asked."""
    if issubclass(type(owner), types.ModuleType):
        return types.ModuleType.__getattribute__(owner, "__dict__").get(name)
    for base in _MRO(owner):
        names = _NAMES(base)
        if name in names:
            return names[name]
    return None


def functions_of(value: Any, owner: type | None = None) -> Iterator[tuple[types.FunctionType, Any]]:
    """The Python functions that a call of a value runs. No code of the program runs meanwhile."""
    kind = type(value)
    if issubclass(kind, types.FunctionType):
        yield value, owner
    elif issubclass(kind, types.MethodType):
        yield from functions_of(value.__func__, type(value.__self__))
    elif issubclass(kind, (staticmethod, classmethod)):
        yield from functions_of(value.__func__, owner)
    elif issubclass(kind, functools.partial):
        yield from functions_of(value.func)
    elif kind is functools._lru_cache_wrapper:
        yield from functions_of(_member(value, "__wrapped__"), owner)
    elif issubclass(kind, property):
        yield from functions_of(value.fget, owner)
    elif issubclass(kind, type):
        for name in ("__init__", "__new__"):
            yield from functions_of(_static(value, name), value)
        if kind is not type:
            yield from functions_of(_static(kind, "__call__"), kind)
    elif isinstance(_static(kind, "_function"), types.MemberDescriptorType):
        yield value._function, owner  # compiled
    elif kind.__flags__ & _IN_PYTHON:  # maybe a descriptor
        getter = _static(kind, "__get__")
        if isinstance(getter, types.FunctionType):
            yield getter, kind


# By the program's functions: how far they look. Globals that change are found where they are called.
_known: WeakIdentityDict[dict[Any, Reach]] = WeakIdentityDict()


def _known_of(function: types.FunctionType) -> dict[Any, Reach]:
    """By the class that ``function`` is a method of."""
    known = _known.get(function)
    if known is None:
        known = _known[function] = {}
    return known


def reach_of(function: types.FunctionType, owner: type | None, follows: Follows) -> Reach:
    """How far ``function`` looks, as a method of ``owner``."""
    known = _known_of(function)
    if owner not in known:
        search = _Search(follows)
        known[owner] = search.reach(function, owner)
        search.remember()
    return known[owner]


def reader_in(
    function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig, follows: Follows
) -> str:
    """The name of what ``function`` calls that reads its frame, or a caller's; empty if none does. Notes
    whether something counts frames beyond it."""
    owner = type(args[0]) if args else None
    found = [each for arg in args if not issubclass(type(arg), type) for each in functions_of(arg)]
    for callee, its_owner in (*callees(function, owner), *found):
        if _is_read_by(callee, its_owner, function.__code__, config, follows):
            return callee.__qualname__
    return ""


def _is_read_by(
    callee: types.FunctionType,
    owner: type | None,
    code: types.CodeType,
    config: CaptureConfig,
    follows: Follows,
) -> bool:
    """Whether what a function calls reads the function's frame."""
    reach = reach_of(callee, owner, follows)
    if reach.counts > 1:
        config.counted_frames[id(code)] = code
    return reach.looks > 0


# -- while capturing ------------------------------------------------------------------------------------
def refuse_root(tracer: Tracer, function: types.FunctionType, args: tuple[Any, ...]) -> None:
    """Have a function whose frame is read run as it is."""
    if id(function.__code__) in tracer.config.read_frames:
        raise Skip(READS.format("a function"))
    reader = reader_in(function, args, tracer.config, _follows(tracer))
    if reader:
        raise Skip(READS.format(reader))


def refuse_inlining(tracer: Tracer, code: types.CodeType, function: Any, args: list[Value]) -> None:
    """Break where a function is called that reads frames, or that runs as it is because its frame is read."""
    config, name = tracer.config, code.co_qualname
    if isinstance(function, FunctionValue):
        owner = args[0].pytype if args and isinstance(args[0], InstanceValue) else None
        reach = reach_of(function.function, owner, _follows(tracer)).looks
    else:
        reach = own_reach(_decoded(code))
    if reach > 0:
        _leave_callers_plain(tracer, reach, name)
        raise Break("inline-refused", f"{function.describe()} reads the frames of its callers")
    reader = ""
    if isinstance(function, FunctionValue):
        known = tracer.frame_readers.get(function.function)
        reader = reader_in(function.function, (), config, _follows(tracer)) if known is None else known
        tracer.frame_readers[function.function] = reader
    for arg in args:
        for callee, its_owner in functions_of(_object_of(arg)):
            if _is_read_by(callee, its_owner, code, config, _follows(tracer)):
                tracer.realize(arg) if isinstance(arg, LazyValue) else None
                reader = callee.__qualname__
    if reader or id(code) in config.read_frames:
        raise Break("inline-refused", f"{function.describe()}: {READS.format(reader or 'a function')}")


def _leave_callers_plain(tracer: Tracer, reach: int, name: str) -> None:
    """The frames that a reader sees are to be those of the program: where the function captured is one of
    them, it runs as it is, and functions that were inlined are called."""
    config = tracer.config
    fresh = False
    for frame in tracer.frames[-reach:]:
        code = config.function_of(frame.raw_code)
        fresh |= id(code) not in config.read_frames
        config.read_frames[id(code)] = code
    root = tracer.frames[0].raw_code
    if reach < len(tracer.frames):
        if fresh:
            raise Restart
    elif config.function_of(root) is root and not tracer.frames[0].start:
        raise Skip(READS.format(name))
    else:  # too late for this call
        _hook.clear(config.function_of(root), config)


def _object_of(value: Value) -> Any:
    """The function, or bound method, that a value from outside is."""
    if isinstance(value, LazyValue):
        return value.obj
    return value.function if isinstance(value, FunctionValue) else None


def _follows(tracer: Tracer) -> Follows:
    should = getattr(tracer.config, "should_capture", None) or (lambda code: True)
    return lambda code: code.co_filename == _GENERATED or should(code)


_GENERATED = "<string>"  # methods of dataclasses, which call the program's
