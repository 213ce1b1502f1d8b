"""Calls: inlining of Python functions, classes, library functions through frontends, attributes of
classes and functions."""

from __future__ import annotations

import builtins
import enum
import inspect
import sys
import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ...frontends.base import Called
from ...hook import _hook
from .. import containers, frames, machine
from ..breaks import Break, Skip
from ..control import recursion
from ..environment import frame_readers
from ..environment.other_compilers import answer_whether_compiling, is_foreign
from ..environment.regions import disabled_reason, mark_of
from ..guards.guard import Kind
from ..guards.source import (
    AttrSource,
    CellContentsSource,
    ConstSource,
    InstanceDictSource,
    ItemSource,
    Source,
)
from ..immutable import methods as frozen
from ..library import functions
from ..objects import attributes, classes, derived, instance_checks, protocols
from ..values.array import ArrayValue
from ..values.base import Frame, Tracer, Value
from ..values.context import InertContextValue
from ..values.func import (
    BuiltinMethodValue,
    CellValue,
    FunctionGetValue,
    FunctionValue,
    NestedFunctionValue,
    SuperValue,
    is_member,
)
from ..values.generator import GeneratorValue
from ..values.mapping import DictValue
from ..values.number import ConstValue, NumberValue
from ..values.obj import InstanceValue
from ..values.seq import ListValue, TupleValue, spread
from ..values.states import state_of, write_state
from ..wrap import pinned
from . import builtin_calls, modes
from .constant_calls import constant_result
from .dispatch import is_of_two_libraries, overrides_numpy, overriding
from .float_calls import math_call
from .opaque_calls import opaque_call
from .substitutes import find_polyfill
from .wrong_arguments import raise_type_error

_MISSING = object()
_PLAIN_CONSTANTS = (str, bytes, types.NoneType, types.EllipsisType, types.NotImplementedType)
_WITHOUT_ATTRIBUTES = (list, tuple, dict, set, frozenset, slice, range)  # but those of the type
_MARKED_CALLS = {"constant result": constant_result, "in graph": opaque_call}
_FRAME_FUNCTIONS = (locals, eval, exec, sys._getframe)
_ENUM_FIELDS = {name: vars(enum.Enum)[name] for name in ("name", "value")}
_COROUTINE_FLAGS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


# -- Python functions -----------------------------------------------------------------------------
def call_function(
    tracer: Tracer, function: FunctionValue | NestedFunctionValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Inline a Python function: run its bytecode symbolically in a frame of its own."""
    direct = tracer.take_direct()
    if isinstance(function, FunctionValue):
        override = library_rule(tracer, function.function, args, kwargs)
        if override is not None:
            return override
        handler = builtin_calls.find(function.function)
        if handler is not None:
            return handler(tracer, args, kwargs)
        if tracer.config.options.assume_compiling:
            asking = str(tracer.frames[-1].globals[0].get("__name__", ""))
            answer = answer_whether_compiling(function.function, asking)
            if answer is not None:
                tracer.guard(function.source, Kind.IS, function.function)
                return ConstValue(answer)
        for frontend in tracer.config.frontends:
            replacement = frontend.stand_in_for(function.function, tracer.is_strict)
            if replacement is not None:
                tracer.guard(function.source, Kind.IS, function.function)
                return call_instead(tracer, replacement, args, kwargs)
        block = inert_context(tracer, function.function, args, kwargs)
        if block is not None:
            tracer.guard(function.source, Kind.IS, function.function)
            return block
        found = functions.dispatched(tracer, function, args)
        if found is not None:
            return found
        marked = _MARKED_CALLS.get(mark_of(function.function))
        if marked is not None:
            tracer.guard(function.source, Kind.IS, function.function)
            return marked(tracer, function.function, args, kwargs)
    if type(function_globals(function)[0]) is not dict:
        raise Break("unsupported-call", f"{function.describe()}: its globals are a mapping of its own kind")
    code = function.function.__code__ if isinstance(function, FunctionValue) else function.code
    refuse_inlining(tracer, code, function, [*args, *kwargs.values()])
    bound = bind_arguments(tracer, function, code, args, kwargs)
    closure = closure_of(tracer, function)
    frame = frames.Frame.make(tracer, code, function_globals(function), bound, closure, direct)
    if code.co_flags & inspect.CO_GENERATOR:
        frame.resumption = None
        generator = GeneratorValue(function, args, kwargs, frame)
        tracer.generators.append(generator)
        return generator
    return machine.run_inlined(tracer, frame)


def refuse_inlining(
    tracer: Tracer, code: types.CodeType, function: FunctionValue | NestedFunctionValue, args: list[Value]
) -> None:
    """Break where a function is better called than inlined."""
    if code.co_flags & _COROUTINE_FLAGS:
        raise Break("generator", f"{function.describe()} is a coroutine")
    module = function_globals(function)[0].get("__name__", "")
    if is_foreign(str(module)):
        raise Break("opaque", f"{function.describe()} is another compiler's ({module})")
    if not tracer.config.is_inlinable(str(module), code.co_qualname):
        raise Break("unsupported-call", f"{function.describe()} of module {module} is called, not inlined")
    if _is_nested_too_deeply(tracer):
        raise Break("inline-refused", f"{function.describe()}: calls nested too deeply")
    inside = [frame for frame in tracer.frames if frame.raw_code is code]
    if inside and not is_library_frame(tracer, inside[-1]):
        called = recursion.identity(code, closure_of(tracer, function))
        levels = sum(recursion.identity_of(frame) == called for frame in inside)
        recursion.check(tracer, code, levels, args, function.describe())
    info = frames.code_info(tracer.config, code)
    if info.uses_tools:
        raise Skip(f"{function.describe()}: {frames.TOOLS}")  # whose user looks at the callers too
    frame_readers.refuse_inlining(tracer, code, function, args)
    if info.looks_at_frame:
        raise Break("inline-refused", f"{function.describe()}: {frames.LOOKS}")
    if isinstance(function, FunctionValue) and disabled_reason(function.function):
        reason = disabled_reason(function.function)
        raise Break("disabled", f"{function.describe()} is disabled: {reason}")


def _is_nested_too_deeply(tracer: Tracer) -> bool:
    """Whether there are too many frames: of the program's own, or at all."""
    depth = tracer.config.options.inline_depth
    if len(tracer.frames) <= depth:
        return False
    own = sum(not is_library_frame(tracer, frame) for frame in tracer.frames)
    return own > depth or len(tracer.frames) > 4 * depth


def is_library_frame(tracer: Tracer, frame: Frame) -> bool:
    """Whether a frame runs an array library's Python code (which calls itself for nested objects), or what
    stands in for such."""
    module = str(frame.globals[0].get("__name__"))
    return tracer.config.is_trusted(module) or any(f.unrolls(module) for f in tracer.config.frontends)


def function_globals(function: FunctionValue | NestedFunctionValue) -> Any:
    """What a frame reads globals from: ``(dict, source of the dict or None for the root's)``."""
    if isinstance(function, NestedFunctionValue):
        return function.globals_of
    return (function.function.__globals__, function.source)


def closure_of(tracer: Tracer, function: FunctionValue | NestedFunctionValue) -> list[CellValue]:
    if isinstance(function, NestedFunctionValue):
        return function.closure
    cells = function.function.__closure__ or ()
    assert function.source is not None
    found: list[CellValue] = []
    for index, (name, cell) in enumerate(zip(function.function.__code__.co_freevars, cells)):
        source = ItemSource(AttrSource(function.source, "__closure__"), index)
        found.append(outside_cell(tracer, cell, source, name))
    return found


def outside_cell(tracer: Tracer, cell: types.CellType, source: Source, name: str) -> CellValue:
    """The one value of a cell object that exists outside of the frame."""
    known = tracer.by_id.get(id(cell))
    if known is not None and isinstance(known[0], CellValue):
        return known[0]
    try:
        contents: Value | None = tracer.child(cell.cell_contents, CellContentsSource(source))
    except ValueError:
        contents = None
    value = CellValue(name, contents, source)
    tracer.by_id[id(cell)] = (value, cell)
    return value


def bind_arguments(
    tracer: Tracer,
    function: FunctionValue | NestedFunctionValue,
    code: types.CodeType,
    args: list[Value],
    kwargs: dict[str, Value],
) -> dict[str, Value]:
    """Arguments by name, as CPython binds them, or ``TypeError``."""
    try:
        return _bind(tracer, function, code, args, kwargs)
    except Break as problem:
        if problem.break_id != "would-raise":
            raise
        qualname = code.co_qualname
        if isinstance(function, FunctionValue):
            qualname = function.function.__qualname__
        defaults = len(positional_defaults(tracer, function))
        keywords = frozenset(keyword_only_defaults(tracer, function))
        raise_type_error(tracer, code, qualname, (defaults, keywords), args, kwargs, problem)
        raise


def _bind(
    tracer: Tracer,
    function: FunctionValue | NestedFunctionValue,
    code: types.CodeType,
    args: list[Value],
    kwargs: dict[str, Value],
) -> dict[str, Value]:
    positional = code.co_varnames[: code.co_argcount]
    keyword_only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = code.co_argcount + code.co_kwonlyargcount
    bound: dict[str, Value] = dict(zip(positional, args))
    extra = args[len(positional) :]
    remaining = dict(kwargs)
    for name in (*positional[code.co_posonlyargcount :], *keyword_only):
        if name in remaining:
            if name in bound:
                raise Break("would-raise", f"{function.describe()} got several values for {name!r}")
            bound[name] = remaining.pop(name)
    _fill_defaults(tracer, function, positional, keyword_only, bound)
    if code.co_flags & inspect.CO_VARARGS:
        bound[code.co_varnames[rest]] = TupleValue(extra)
        rest += 1
    elif extra:
        raise Break("would-raise", f"{function.describe()} takes {len(positional)} arguments")
    if code.co_flags & inspect.CO_VARKEYWORDS:
        bound[code.co_varnames[rest]] = DictValue(dict(remaining))
    elif remaining:
        raise Break(
            "would-raise", f"{function.describe()} got an unexpected keyword {next(iter(remaining))!r}"
        )
    return bound


def _fill_defaults(
    tracer: Tracer,
    function: FunctionValue | NestedFunctionValue,
    positional: tuple[str, ...],
    keyword_only: tuple[str, ...],
    bound: dict[str, Value],
) -> None:
    missing = [name for name in positional if name not in bound]
    if missing:
        defaults = positional_defaults(tracer, function)
        by_name = dict(zip(reversed(positional), reversed(defaults)))
        for name in missing:
            if name not in by_name:
                raise Break("would-raise", f"{function.describe()} misses argument {name!r}")
            bound[name] = by_name[name]
    missing = [name for name in keyword_only if name not in bound]
    if missing:
        keyword_defaults = keyword_only_defaults(tracer, function)
        for name in missing:
            if name not in keyword_defaults:
                raise Break("would-raise", f"{function.describe()} misses keyword argument {name!r}")
            bound[name] = keyword_defaults[name]


def positional_defaults(tracer: Tracer, function: FunctionValue | NestedFunctionValue) -> list[Value]:
    if isinstance(function, NestedFunctionValue):
        return function.defaults.items(tracer) if function.defaults is not None else []
    assert function.source is not None
    base = AttrSource(function.source, "__defaults__")
    given = function.function.__defaults__
    if given is None:
        tracer.guard(base, Kind.NONE)
        return []
    tracer.guard(base, Kind.LEN, (tuple, len(given)))
    return [tracer.child(v, ItemSource(base, i)) for i, v in enumerate(given)]


def keyword_only_defaults(tracer: Tracer, function: FunctionValue | NestedFunctionValue) -> dict[str, Value]:
    if isinstance(function, NestedFunctionValue):
        if function.kwdefaults is None:
            return {}
        assert isinstance(function.kwdefaults, DictValue)
        return function.kwdefaults.contents(tracer)
    assert function.source is not None
    base = AttrSource(function.source, "__kwdefaults__")
    given = function.function.__kwdefaults__
    if given is None:
        tracer.guard(base, Kind.NONE)
        return {}
    return {k: tracer.child(v, ItemSource(base, k)) for k, v in given.items()}


# -- everything else that is called -----------------------------------------------------------------
def library_rule(tracer: Tracer, fn: object, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The result by a frontend's rule, ``None`` where no frontend knows the callable."""
    for frontend in tracer.config.frontends:
        rule = frontend.find_function(fn)
        if rule is not None:
            given = (*args, *kwargs.values())
            frontend, rule = overriding(tracer, frontend, rule, fn, given)
            tracer.assume_state(frontend)
            name = f"{frontend.name}.{getattr(fn, '__name__', repr(fn))}"
            nodes = len(tracer.builder.nodes)
            called = Called("function", getattr(fn, "__name__", ""), fn)
            found = tracer.apply_rule(rule, args, kwargs, name, frontend, called)
            if is_of_two_libraries(tracer, frontend, given, found):
                del tracer.builder.nodes[nodes:]
                raise Break("unsupported-operation", f"{name} of arrays of another library")
            return found
    return None


def call_object(
    tracer: Tracer, obj: object, source: Source | None, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Call of a constant: a library function, a builtin, or a class."""
    replacement = tracer.config.substitutes.find(obj)
    if replacement is not None:
        return call_instead(tracer, replacement, args, kwargs)
    inherited = derived.call_method(tracer, obj, args, kwargs)
    if inherited is not None:
        return inherited
    try:
        found = library_rule(tracer, obj, args, kwargs) or frozen.call(tracer, obj, args, kwargs)
    except Break as problem:
        inner = wrapped_library_function(tracer, obj, args, kwargs)
        if inner is None or problem.break_id != "unsupported-call":
            raise
        problem.forget_frames()
        tracer.take_direct()
        return call_function(tracer, inner, args, kwargs)  # which may do with what is known
    if found is not None:
        tracer.take_direct()
        return found
    special = protocols.call_builtin(tracer, obj, args, kwargs)
    if special is not None:
        return special
    handler = builtin_calls.find(obj)
    if handler is not None:
        tracer.take_direct()
        return handler(tracer, args, kwargs)
    for fold in (builtin_calls.fold_call, math_call):
        folded = fold(tracer, obj, args, kwargs)
        if folded is not None:
            tracer.take_direct()
            return folded
    alias = instance_checks.call_alias(tracer, obj, args, kwargs)
    if alias is not None:
        return alias
    replacement = find_polyfill(obj)
    if replacement is not None:
        return call_instead(tracer, replacement, args, kwargs)
    if isinstance(obj, type):
        inert = inert_context(tracer, obj, args, kwargs)
        return inert if inert is not None else classes.call_class(tracer, obj, args, kwargs)
    if type(obj) is _hook.Dispatcher:
        original: Any = obj._function
        return call_function(tracer, FunctionValue(original, pinned(original)), args, kwargs)
    if any(obj is f for f in _FRAME_FUNCTIONS) or ((obj is vars or obj is dir) and not args):
        raise Skip(f"{_callable_name(obj)} looks at the frame that calls it")
    if obj is builtins.__build_class__:
        raise Break("class-definition", "a class is made")
    method = unbound_method(obj, args)
    if method is not None:
        return tracer.call_value(method, args[1:], kwargs)
    inner = wrapped_library_function(tracer, obj, args, kwargs)
    if inner is not None:
        tracer.take_direct()  # a break inside is not resumed there: the library is then called
        return call_function(tracer, inner, args, kwargs)
    raise Break("unsupported-call", f"call of {_callable_name(obj)}")


def call_instead(
    tracer: Tracer, function: types.FunctionType, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Trace a Python function in place of a C function. A break inside it is not resumed there, as its frame
    is none of the program's: what it stands for is then called."""
    tracer.take_direct()
    return call_function(tracer, FunctionValue(function, pinned(function)), args, kwargs)


def unbound_method(obj: object, args: list[Value]) -> Value | None:
    """``list.append(items, x)``: the method of the first argument, ``None`` where it is no such call."""
    if type(obj) is not types.MethodDescriptorType or not args:
        return None
    owner = spread(args[0])
    if not issubclass(owner.pytype, obj.__objclass__) or not containers.has_method(owner, obj.__name__):
        return None
    if inspect.getattr_static(owner.pytype, obj.__name__, None) is not obj:
        return None  # dict.pop() of an OrderedDict is not the method of its own
    return BuiltinMethodValue(owner, obj.__name__)


def _callable_name(obj: object) -> str:
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or repr(obj)
    return f"{module}.{name}" if module and module != "builtins" else str(name)


def wrapped_library_function(
    tracer: Tracer, obj: object, args: list[Value], kwargs: dict[str, Value]
) -> FunctionValue | None:
    """The Python implementation behind a library's C-level dispatcher (NumPy's ``__array_function__``
    wrappers, ``apply`` of torch's functions), where the arguments are such that it would call just that."""
    for frontend in tracer.config.frontends:
        unwrap = getattr(frontend, "implementation_of", None)
        inner = unwrap(obj) if unwrap is not None else None
        if inner is not None and all(_plain_argument(tracer, v) for v in (*args, *kwargs.values())):
            found = tracer.child_or_constant(inner, None)
            if isinstance(found, FunctionValue):
                return found
    return None


def _plain_argument(tracer: Tracer, value: Value) -> bool:
    if isinstance(value, (ListValue, TupleValue)):
        return all(_plain_argument(tracer, v) for v in value.children())
    if isinstance(value, (FunctionValue, NestedFunctionValue)):
        return True
    if overrides_numpy(value):
        return False
    if isinstance(value, (InstanceValue, DictValue)):  # handed on
        return not any(frontend.accepts(value.pytype) for frontend in tracer.config.frontends)
    return isinstance(value, (ArrayValue, NumberValue, SuperValue)) or value.is_const or hasattr(value, "sym")


def inert_context(
    tracer: Tracer, cls: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """A library's context manager that changes nothing for graphs, ``None`` where it is not one. ``cls``: a
    class, or a function that ``contextmanager`` made."""
    if not all(v.is_const for v in (*args, *kwargs.values())):
        return None
    constants = {k: v.const for k, v in kwargs.items()}
    for frontend in tracer.config.frontends:
        if not args and isinstance(cls, type) and frontend.is_inert_context(cls, constants):
            tracer.take_direct()
            tracer.assume_state(frontend)
            return InertContextValue(cls, constants)
        mode = modes.block_of_class(tracer, frontend, cls, [v.const for v in args], constants)
        if mode is not None:
            return mode
    return None


# -- attributes ---------------------------------------------------------------------------------------
def const_getattr(tracer: Tracer, value: ConstValue, name: str) -> Value:
    """Attribute of a constant: class attributes, methods of strings and numbers, dtype fields."""
    obj = value.const
    if isinstance(obj, type):
        return attributes.class_attribute(tracer, value, name)
    if name == "__class__":
        return ConstValue(type(obj))
    if isinstance(obj, enum.Enum):
        return _enum_attribute(tracer, value, name)
    if type(obj) is tuple:
        return spread(value).getattr(tracer, name)
    if type(obj) is ContextVar:
        return class_attribute(tracer, value, name)
    if type(obj) is types.CodeType and name.startswith("co_"):
        return tracer.wrap_result(tracer.fold(getattr, obj, name))
    if isinstance(obj, (str, bytes, int, float, complex)) and not isinstance(obj, bool | type):
        member = inspect.getattr_static(type(obj), name, _MISSING)
        if isinstance(member, types.MethodDescriptorType):
            return BuiltinMethodValue(value, name)
    if any(f.is_constant(obj) for f in tracer.config.frontends) or isinstance(obj, (int, float, complex)):
        found = tracer.fold(getattr, obj, name)
        if callable(found) and not isinstance(found, type):
            return tracer.child_or_constant(found, None)
        return tracer.wrap_result(found)
    if isinstance(obj, (types.BuiltinFunctionType, type(len))) or callable(obj):
        found = tracer.fold(getattr, obj, name)
        if isinstance(found, (str, int, type(None))) or callable(found):
            return tracer.wrap_result(found)
    if type(obj) in _PLAIN_CONSTANTS and not hasattr(type(obj), name):
        raise attributes.no_attribute(tracer, value, name)
    raise Break("unsupported-attribute", f"attribute {name!r} of {value.describe()}")


def _enum_attribute(tracer: Tracer, value: ConstValue, name: str) -> Value:
    """Attribute of a member of an enum."""
    member: Any = value.const
    found = attributes.find_member(tracer, type(member), name)
    if found is not None and found.raw is _ENUM_FIELDS.get(name, _MISSING):
        name = f"_{name}_"
    elif found is not None and found.is_data:
        return class_attribute(tracer, value, name)
    if name not in vars(member):
        return class_attribute(tracer, value, name)
    source = InstanceDictSource(ConstSource(member, str(member)), name)
    return tracer.child_or_constant(vars(member)[name], source)


def class_attribute(tracer: Tracer, value: Value, name: str) -> Value:
    """Attribute of an object that only its class can have (methods of namedtuples, of enum members)."""
    if name == "__class__":
        return ConstValue(value.pytype)
    direct = tracer.take_direct()
    member = attributes.find_member(tracer, value.pytype, name)
    if member is None:
        raise attributes.no_attribute(tracer, value, name)
    return attributes.bind_member(tracer, member, value, value.pytype, name, direct)


_FUNCTION_FIELDS: tuple[str, ...] = (
    "__name__",
    "__qualname__",
    "__module__",
    "__doc__",
    "__defaults__",
    "__kwdefaults__",
)
_FUNCTION_FIELDS += ("__annotations__", "__type_params__", "__code__")


def function_attribute(tracer: Tracer, value: FunctionValue, name: str) -> Value:
    """Attribute of a function from outside."""
    function = value.function
    assert value.source is not None
    state = tracer.states.get(id(function))
    if state is not None and name in state.written:
        found = state.written[name]
        if found is None:
            raise Break("would-raise", f"{value.describe()} has no attribute {name!r}")
        return found
    if name in vars(function) or (name in _FUNCTION_FIELDS and hasattr(function, name)):
        return tracer.child(getattr(function, name), AttrSource(value.source, name))
    if name == "__class__":
        return ConstValue(types.FunctionType)
    if name == "__get__":
        return FunctionGetValue(value)
    if not is_member(types.FunctionType, name):
        tracer.guard(value.source, Kind.NOATTR, name)
        raise tracer.raise_exception(AttributeError, f"'function' object has no attribute {name!r}")
    raise Break("unsupported-attribute", f"attribute {name!r} of {value.describe()}")


def annotations_value(tracer: Tracer, given: Value | None) -> Value:
    """``MAKE_FUNCTION``'s annotations (a flat tuple of names and values) as a dict."""
    flat = [] if given is None else given.items(tracer)
    if isinstance(given, DictValue):
        return given
    names = [tracer.constant_of(name, "an annotated name") for name in flat[::2]]
    return DictValue(dict(zip(names, flat[1::2])))


def set_function_attribute(tracer: Tracer, value: FunctionValue, name: str, new: Value | None) -> None:
    """``function.name = new``, or its deletion (``None``), of a function from outside."""
    if name.startswith("__") or new is None:
        raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {value.describe()}")
    assert value.source is not None
    tracer.guard(value.source, Kind.IS, value.function)
    state = state_of(tracer, value.function, value.source)
    write_state(tracer, state, name, new)


def container_method(tracer: Tracer, owner: Value, name: str) -> Value:
    if not containers.has_method(owner, name):
        if owner.pytype in _WITHOUT_ATTRIBUTES and not hasattr(owner.pytype, name):
            raise attributes.no_attribute(tracer, owner, name)
        raise Break("unsupported-attribute", f"attribute {name!r} of {owner.describe()}")
    return BuiltinMethodValue(owner, name)


def call_container_method(
    tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    return containers.call_method(tracer, owner, name, args, kwargs)
