"""What ``inspect`` tells of functions and objects: signatures, argument specifications, static attributes.

A signature is made here as the objects that it consists of; what the program then asks of it (``bind``,
``parameters``, ``replace``) is the standard library's own Python code, followed like any other.
"""

from __future__ import annotations

import collections
import inspect
import types
from typing import Any

from ..breaks import Break
from ..objects import attributes
from ..objects.class_names import class_dict
from ..values.base import Tracer, Value
from ..values.func import BoundMethodValue, FunctionValue, NestedFunctionValue
from ..values.mapping import DictValue
from ..values.mapping_proxy import MappingProxyValue
from ..values.number import ConstValue
from ..values.obj import InstanceValue, ModuleValue
from ..values.partial import PartialValue
from ..values.seq import ListValue, TupleValue
from .registry import NONE, builtin

_MOST_WRAPPERS = 20
_FUNCTIONS = (FunctionValue, NestedFunctionValue)
_EMPTY = ConstValue(inspect.Parameter.empty)
_TRUE = ConstValue(True)
_KINDS: Any = type(inspect.Parameter.VAR_KEYWORD)


@builtin(types.MappingProxyType)
def _mapping_proxy(tracer: Tracer, mapping: Value, /) -> Value:
    if not isinstance(mapping, DictValue):
        raise Break("unsupported-call", f"a mapping proxy of {mapping.describe()}")
    return MappingProxyValue(mapping)


# -- signatures -----------------------------------------------------------------------------------------
@builtin(inspect.signature)
def _signature(tracer: Tracer, obj: Value, *, follow_wrapped: Value = _TRUE) -> Value:
    follow = bool(tracer.constant_of(follow_wrapped, "follow_wrapped"))
    function, bound = _unwrapped(tracer, obj, follow)
    stored = _stored_signature(tracer, function)
    if stored is not None and not bound:
        return stored
    if stored is not None:
        raise Break("unsupported-call", f"the signature of {obj.describe()}, which has __signature__")
    parameters = _parameters(tracer, function)
    if bound:
        _drop_first(obj, parameters)
    return _made(
        tracer,
        inspect.Signature,
        _parameters=MappingProxyValue(
            DictValue({name: made for name, _, made in parameters}, cls=collections.OrderedDict)
        ),
        _return_annotation=_annotations(tracer, function).get("return", _EMPTY),
    )


def _unwrapped(tracer: Tracer, obj: Value, follow: bool) -> tuple[FunctionValue | NestedFunctionValue, bool]:
    """The function that ``inspect.signature`` describes, and whether its first parameter is bound."""
    bound = False
    for _ in range(_MOST_WRAPPERS):
        if isinstance(obj, BoundMethodValue) and isinstance(obj.function, _FUNCTIONS) and not bound:
            obj, bound = obj.function, True
        if obj.is_const and _is_dispatcher(tracer, obj.const):
            obj = tracer.child_or_constant(obj.const.__wrapped__, None)
        if not isinstance(obj, _FUNCTIONS):
            break
        inner = None
        if follow and attributes.maybe_attribute(tracer, obj, "__signature__") is None:
            inner = attributes.maybe_attribute(tracer, obj, "__wrapped__")
        if inner is None:
            return obj, bound
        obj = tracer.realize(inner)
    raise Break("unsupported-call", f"the signature of {obj.describe()}")


def _is_dispatcher(tracer: Tracer, constant: object) -> bool:
    """Whether a library's C function tells by ``__wrapped__`` what signature it has (``np.unique``)."""
    if isinstance(constant, type) or not tracer.config.is_trusted(str(getattr(constant, "__module__", ""))):
        return False
    return isinstance(getattr(constant, "__wrapped__", None), types.FunctionType)


def _stored_signature(tracer: Tracer, function: Value) -> Value | None:
    """A function's ``__signature__``, ``None`` where there is none."""
    for name in ("__text_signature__", "__partialmethod__", "_partialmethod"):
        if attributes.maybe_attribute(tracer, function, name) is not None:
            raise Break("unsupported-call", f"the signature of {function.describe()}, which has {name}")
    found = attributes.maybe_attribute(tracer, function, "__signature__")
    if found is None:
        return None
    found = tracer.realize(found)
    if found.pytype is not inspect.Signature:
        raise Break("unsupported-call", f"the signature of {function.describe()}: {found.describe()}")
    return found


def _drop_first(obj: Value, parameters: list[tuple[str, Any, Value]]) -> None:
    """Leave out the parameter that a bound method has its object for."""
    kind = parameters[0][1] if parameters else None
    if kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        del parameters[0]
    elif kind is not inspect.Parameter.VAR_POSITIONAL:
        raise Break("unsupported-call", f"the signature of {obj.describe()}, which takes no object")


def _code_of(function: FunctionValue | NestedFunctionValue) -> types.CodeType:
    return function.function.__code__ if isinstance(function, FunctionValue) else function.code


def _parameters(
    tracer: Tracer, function: FunctionValue | NestedFunctionValue
) -> list[tuple[str, Any, Value]]:
    """Name, kind and ``Parameter`` of each parameter, in order."""
    defaults = _defaults(tracer, function)
    annotations = _annotations(tracer, function)
    return [
        (
            name,
            kind,
            _made(
                tracer,
                inspect.Parameter,
                _name=ConstValue(name),
                _kind=ConstValue(kind),
                _default=defaults.get(name, _EMPTY),
                _annotation=annotations.get(name, _EMPTY),
            ),
        )
        for name, kind in _names_and_kinds(function)
    ]


def _names_and_kinds(function: FunctionValue | NestedFunctionValue) -> list[tuple[str, Any]]:
    code = _code_of(function)
    names = code.co_varnames
    rest = code.co_argcount + code.co_kwonlyargcount
    found: list[tuple[str, Any]] = []
    for index, name in enumerate(names[: code.co_argcount]):
        only = index < code.co_posonlyargcount
        kind = inspect.Parameter.POSITIONAL_ONLY if only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append((name, kind))
    keyword_only = [(name, inspect.Parameter.KEYWORD_ONLY) for name in names[code.co_argcount : rest]]
    if code.co_flags & inspect.CO_VARARGS:
        found.append((names[rest], inspect.Parameter.VAR_POSITIONAL))
        rest += 1
    found += keyword_only
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append((names[rest], inspect.Parameter.VAR_KEYWORD))
    if not all(name.isidentifier() for name, _ in found):
        raise Break("unsupported-call", f"the signature of {function.describe()}")
    return found


def _defaults(tracer: Tracer, function: FunctionValue | NestedFunctionValue) -> dict[str, Value]:
    code = _code_of(function)
    positional = code.co_varnames[: code.co_argcount]
    given = tracer.realize(function.getattr(tracer, "__defaults__"))
    found: dict[str, Value] = {}
    if not _is_none(given):
        values = given.contents(tracer) if isinstance(given, TupleValue) else given.items(tracer)
        found.update(zip(reversed(positional), reversed(values)))
    keywords = tracer.realize(function.getattr(tracer, "__kwdefaults__"))
    if not _is_none(keywords):
        found.update(_entries(tracer, keywords))
    return found


def _annotations(tracer: Tracer, function: FunctionValue | NestedFunctionValue) -> dict[str, Value]:
    return _entries(tracer, tracer.realize(function.getattr(tracer, "__annotations__")))


def _entries(tracer: Tracer, mapping: Value) -> dict[str, Value]:
    if not isinstance(mapping, DictValue):
        raise Break("unsupported-call", f"the signature of a function with {mapping.describe()}")
    return mapping.contents(tracer)


def _is_none(value: Value) -> bool:
    return value.is_const and value.const is None


def _made(tracer: Tracer, cls: type, **slots: Value) -> InstanceValue:
    made = InstanceValue(cls)
    for name, value in slots.items():
        made.write_slot(tracer, class_dict(cls)[name], value)
    return made


@builtin(inspect.getfullargspec)
def _getfullargspec(tracer: Tracer, func: Value) -> Value:
    function = func.function if isinstance(func, BoundMethodValue) else func
    if not isinstance(function, _FUNCTIONS) or _stored_signature(tracer, function) is not None:
        raise Break("unsupported-call", f"the argument specification of {func.describe()}")
    kinds: dict[Any, list[str]] = {kind: [] for kind in _KINDS}
    for name, kind in _names_and_kinds(function):
        kinds[kind].append(name)
    positional = kinds[inspect.Parameter.POSITIONAL_ONLY] + kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]
    keyword_only = kinds[inspect.Parameter.KEYWORD_ONLY]
    given = _defaults(tracer, function)
    defaults = [given[name] for name in positional if name in given]
    keywords = {name: given[name] for name in keyword_only if name in given}
    annotations = _annotations(tracer, function)
    return TupleValue(
        [
            ListValue([ConstValue(name) for name in positional]),
            _only(kinds[inspect.Parameter.VAR_POSITIONAL]),
            _only(kinds[inspect.Parameter.VAR_KEYWORD]),
            TupleValue(defaults) if defaults else NONE,
            ListValue([ConstValue(name) for name in keyword_only]),
            DictValue(keywords) if keywords else NONE,
            DictValue(_in_order_of_parameters(function, annotations)),
        ],
        None,
        inspect.FullArgSpec,
    )


def _only(names: list[str]) -> Value:
    return ConstValue(names[0]) if names else NONE


def _in_order_of_parameters(
    function: FunctionValue | NestedFunctionValue, annotations: dict[str, Value]
) -> dict[str, Value]:
    names = ["return", *(name for name, _ in _names_and_kinds(function))]
    return {name: annotations[name] for name in names if name in annotations}


# -- static attributes ------------------------------------------------------------------------------------
@builtin(inspect.getattr_static)
def _getattr_static(tracer: Tracer, obj: Value, attr: Value, default: Value | None = None) -> Value:
    name = tracer.constant_of(attr, "an attribute name")
    if type(name) is not str:
        raise Break("unsupported-call", f"getattr_static of a {type(name).__name__}")
    found = _static_attribute(tracer, obj, name) or default
    if found is None:
        raise tracer.raise_exception(AttributeError, name)
    realized: Value = tracer.realize(found)
    return realized


def _static_attribute(tracer: Tracer, obj: Value, name: str) -> Value | None:
    """The attribute as it is kept in the object or its class, ``None`` where neither has it."""
    if obj.is_const and isinstance(obj.const, type):
        return _of_class(tracer, obj.const, name)
    if isinstance(obj, InstanceValue):
        return _of_instance(tracer, obj, name)
    has_dict = obj.pytype.__dictoffset__ != 0 or isinstance(obj, (ModuleValue, PartialValue, *_FUNCTIONS))
    if has_dict or "__dict__" in _members(obj.pytype):
        raise Break("unsupported-call", f"getattr_static of {obj.describe()}")
    return _of_type(tracer, obj.pytype, name)


def _members(cls: type) -> set[str]:
    return {name for base in cls.__mro__ for name in class_dict(base)}


def _of_type(tracer: Tracer, cls: type, name: str) -> Value | None:
    member = attributes.find_member(tracer, cls, name)
    if member is None:
        attributes.guard_absent(tracer, cls, name)
        return None
    return member.as_value(tracer)


def _of_class(tracer: Tracer, cls: type, name: str) -> Value | None:
    order: list[type] = type.mro(type(cls))
    if any("__dict__" in class_dict(meta) for meta in order if meta not in (type, object)):
        raise Break("unsupported-call", f"getattr_static of {cls.__qualname__}, whose class has a __dict__")
    found = _of_type(tracer, cls, name)
    return found if found is not None else _of_type(tracer, type(cls), name)


def _of_instance(tracer: Tracer, obj: InstanceValue, name: str) -> Value | None:
    order: tuple[type, ...] = obj.cls.__mro__
    for base in order:
        given = class_dict(base).get("__dict__")
        if given is not None and type(given) is not types.GetSetDescriptorType:
            raise Break(
                "unsupported-call", f"getattr_static of {obj.describe()}, which has a __dict__ of its own"
            )
    member = attributes.find_member(tracer, obj.cls, name)
    own = obj.namespace.attribute(tracer, name) if attributes.has_namespace(obj.cls) else None
    if own is not None and not (member is not None and member.binds and member.is_data):
        return own
    if member is not None:
        return member.as_value(tracer)
    attributes.guard_absent(tracer, obj.cls, name)
    return None
