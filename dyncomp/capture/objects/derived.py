"""Methods and operators that a class derived from a builtin one leaves to it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from .. import containers
from ..breaks import Break
from ..guards.guard import Kind
from ..guards.source import ConstSource, TypeAttrSource
from ..values.base import Tracer, Value
from ..values.derived import DerivedValue, DictPart, ListPart, builtin_part, merged_part
from ..values.mapping import DictValue
from ..values.number import ConstValue
from ..values.seq import ListValue, TupleValue
from . import attributes
from .class_names import class_dict, module_of

_NONE = ConstValue(None)
_C_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)


def is_native(tracer: Tracer, value: DerivedValue, name: str) -> bool:
    """Whether ``type(value).name`` is the builtin class's, guarded."""
    member = attributes.find_member(tracer, value.cls, name)
    if member is None or member.value is not None or member.raw is not _of_builtin(value.base, name):
        return False
    if not tracer.config.is_trusted(module_of(value.cls)):
        source = TypeAttrSource(ConstSource(value.cls, value.cls.__qualname__), name)
        tracer.guard(source, Kind.IS, member.raw)
    return True


def _of_builtin(base: type, name: str) -> Any:
    for home in base.__mro__:
        if name in class_dict(home):
            return class_dict(home)[name]
    return None


# -- making them ----------------------------------------------------------------------------------------
def allocate(
    tracer: Tracer, cls: type, new: object, args: list[Value], kwargs: dict[str, Value]
) -> DerivedValue | None:
    """``new(cls, *args, **kwargs)`` where ``new`` is the builtin class's; ``None`` where it is not, or the
    class does not derive from one that capture knows."""
    base = builtin_part(cls)
    if base is None or new is not base.__new__:
        return None
    if type(cls) is not type and "__abstractmethods__" in class_dict(cls) and cls.__abstractmethods__:  # type: ignore[attr-defined]
        raise Break("would-raise", f"Can't instantiate abstract class {cls.__name__}")
    value = DerivedValue(cls, base)
    if isinstance(value.part, (DictPart, ListPart)):
        return value
    part = tracer.realize(tracer.call_value(ConstValue(base), args, kwargs))
    if base is tuple:
        value.part = TupleValue([tracer.realize(v) for v in part.items(tracer)])
    elif type(part) is ConstValue and type(part.const) is base:
        value.part = ConstValue(part.const)
    else:
        raise Break("unsupported-call", f"construction of {cls.__qualname__} of {part.describe()}")
    return value


# -- methods --------------------------------------------------------------------------------------------
def call_method(tracer: Tracer, raw: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``raw(*args, **kwargs)`` where ``raw`` is a method of the builtin class of the first argument, which is
    an instance of a derived class; ``None`` where it is no such call."""
    if type(raw) not in _C_METHODS or not args or not isinstance(args[0], DerivedValue):
        return None
    owner = args[0]
    if _of_builtin(owner.base, raw.__name__) is not raw or raw.__objclass__ is object:
        return None
    tracer.take_direct()
    special = _SPECIAL.get(raw.__name__)
    if special is not None:
        return special(tracer, owner, *args[1:], **kwargs)
    if raw.__name__ in _OPERATORS and len(args) == 2 and not kwargs:
        found = operator(tracer, owner, raw.__name__, args[1])
        return found if found is not None else ConstValue(NotImplemented)
    _check_ordered(tracer, owner, raw.__name__)
    part = owner.part if isinstance(owner.part, (DictPart, ListPart)) else owner.operand(tracer)
    if raw.__name__.startswith("__") or not containers.has_method(part, raw.__name__):
        raise Break("unsupported-call", f"{raw.__name__}() of {owner.describe()}")
    return containers.call_method(tracer, part, raw.__name__, args[1:], kwargs)


# methods of OrderedDict that call those of the class, or make an object of the class
_BY_METHODS = frozenset({"pop", "popitem", "setdefault"})
_MAKING_ANOTHER = frozenset({"copy"})
_HOOKS = ("__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "keys")


def _check_ordered(tracer: Tracer, owner: DerivedValue, name: str) -> None:
    if owner.base is dict or not isinstance(owner.part, DictPart):
        return
    plain = all(owner.is_native(tracer, hook) for hook in _HOOKS) and not hasattr(owner.cls, "__missing__")
    if name in _MAKING_ANOTHER or (name in _BY_METHODS and not plain):
        raise Break("unsupported-call", f"{name}() of {owner.describe()}")


def _initialize(tracer: Tracer, owner: DerivedValue, *args: Value, **kwargs: Value) -> Value:
    """``list.__init__``, ``dict.__init__``."""
    if isinstance(owner.part, ListPart):
        if len(args) > 1 or kwargs:
            raise Break("would-raise", "list expected at most 1 argument")
        items = [tracer.realize(v) for v in args[0].items(tracer)] if args else []
        contents = owner.part.contents(tracer)
        owner.part.touch(tracer)
        contents[:] = items
        return _NONE
    return _update(tracer, owner, *args, **kwargs)


def _update(tracer: Tracer, owner: DerivedValue, *args: Value, **kwargs: Value) -> Value:
    """``update``: that of dict stores by itself, that of OrderedDict by the class's ``__setitem__``."""
    if not isinstance(owner.part, DictPart) or len(args) > 1:
        raise Break("unsupported-call", f"update() of {owner.describe()}")
    given = [merged_part(tracer, arg) for arg in args]
    if owner.base is dict or owner.is_native(tracer, "__setitem__"):
        return containers.call_method(tracer, owner.part, "update", given, kwargs)
    entries = DictValue({})
    containers.call_method(tracer, entries, "update", given, kwargs)
    for key, value in list(entries.contents(tracer).items()):
        owner.setitem(tracer, ConstValue(key), tracer.realize(value))
    return _NONE


def _get_item(tracer: Tracer, owner: DerivedValue, key: Value) -> Value:
    return owner.operand(tracer).getitem(tracer, key)


def _set_item(tracer: Tracer, owner: DerivedValue, key: Value, value: Value) -> Value:
    owner.part.setitem(tracer, key, value)
    return _NONE


def _delete_item(tracer: Tracer, owner: DerivedValue, key: Value) -> Value:
    owner.part.delitem(tracer, key)
    return _NONE


def _length(tracer: Tracer, owner: DerivedValue) -> Value:
    return owner.part.length(tracer)


def _contains(tracer: Tracer, owner: DerivedValue, item: Value) -> Value:
    return owner.part.contains(tracer, item)


def _iterate(tracer: Tracer, owner: DerivedValue) -> Value:
    return owner.part.iterate(tracer)


def _truth(tracer: Tracer, owner: DerivedValue) -> Value:
    return ConstValue(owner.part.truth(tracer))


def hash_of(tracer: Tracer, owner: DerivedValue) -> Value:
    """``hash(obj)`` where the class leaves it to the builtin class."""
    hashed = tracer.constant_of(owner.operand(tracer), "what is hashed")
    if type(hashed) in (float, complex) and hashed != hashed:
        raise Break("unsupported-call", f"hash of {owner.describe()}: a NaN is hashed by its identity")
    return ConstValue(tracer.fold(hash, hashed))


_SPECIAL: dict[str, Callable[..., Value]] = {
    "__init__": _initialize,
    "update": _update,
    "__getitem__": _get_item,
    "__setitem__": _set_item,
    "__delitem__": _delete_item,
    "__len__": _length,
    "__contains__": _contains,
    "__iter__": _iterate,
    "__bool__": _truth,
    "__hash__": hash_of,
}


# -- operators ------------------------------------------------------------------------------------------
_ARITHMETIC: dict[str, str] = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_COMPARISONS = {"__lt__": "<", "__le__": "<=", "__eq__": "==", "__ne__": "!=", "__gt__": ">", "__ge__": ">="}
_OPERATORS: dict[str, tuple[str, bool]] = {
    **{f"__{name}__": (sign, False) for name, sign in _ARITHMETIC.items()},
    **{f"__r{name}__": (sign, True) for name, sign in _ARITHMETIC.items()},
    **{name: (sign, False) for name, sign in _COMPARISONS.items()},
}
_NUMBERS = (int, float, complex, bool)
_CHANGING = ("__iadd__", "__imul__", "__ior__")


def operator(tracer: Tracer, owner: Value, name: str, other: Value) -> Value | None:
    """``type(owner).name(owner, other)`` by the builtin class, where one of the two is of a derived class;
    ``None`` for ``NotImplemented``."""
    if name in _CHANGING and isinstance(owner, DerivedValue):
        return _change(tracer, owner, name, other)
    if name not in _OPERATORS:
        raise Break("unsupported-operation", f"{name} of {owner.describe()}")
    sign, swapped = _OPERATORS[name]
    a, b = _operand(tracer, owner), _operand(tracer, other)
    if not _applies(sign, a, b):
        return None
    return tracer.binary(sign, b, a) if swapped else tracer.binary(sign, a, b)


def _operand(tracer: Tracer, value: Value) -> Value:
    return value.operand(tracer) if isinstance(value, DerivedValue) else value


def _applies(sign: str, a: Value, b: Value) -> bool:
    """Whether the builtin operator gives an answer; breaks where it would raise, or is not followed."""
    kinds = (a.pytype, b.pytype)
    if all(kind in _NUMBERS for kind in kinds):
        return True
    alike = kinds[0] is kinds[1] or all(issubclass(kind, dict) for kind in kinds)
    if sign in _COMPARISONS.values():
        return alike
    if alike and sign == "+" and kinds[0] in (list, tuple, str, bytes):
        return True
    if sign == "*" and (int in kinds) and any(kind in (list, tuple, str, bytes) for kind in kinds):
        return True
    if alike and sign == "|" and kinds[0] is dict:
        return True
    if kinds[0] in _NUMBERS:
        return False
    raise Break("unsupported-operation", f"{sign} of {a.describe()} and {b.describe()}")


def _change(tracer: Tracer, owner: DerivedValue, name: str, other: Value) -> Value | None:
    """``+=``, ``*=`` and ``|=`` change the object itself."""
    part = owner.part
    if isinstance(part, ListPart) and name != "__ior__":
        tracer.binary("+=" if name == "__iadd__" else "*=", part, _operand(tracer, other))
        return owner
    if isinstance(part, DictPart) and name == "__ior__" and owner.base is dict:
        containers.call_method(tracer, part, "update", [merged_part(tracer, other)], {})
        return owner
    raise Break("unsupported-operation", f"{name} of {owner.describe()}")


def leaves_to_array(tracer: Tracer, value: Value, name: str) -> bool:
    """Whether the operator of a number's class is the builtin one, which leaves arrays to what they do."""
    return (
        isinstance(value, DerivedValue) and value.base in _NUMBERS and is_native(tracer, value, f"__{name}__")
    )


def native_operator(tracer: Tracer, owner: Value, name: str, other: Value) -> tuple[bool, Value | None]:
    """Whether the special method is the builtin class's, and then what it gives (``None``: nothing)."""
    if isinstance(owner, DerivedValue):
        if not is_native(tracer, owner, name):
            return False, None
        return True, operator(tracer, owner, name, other)
    if not isinstance(other, DerivedValue) or _of_builtin(owner.pytype, name) is None:
        return False, None
    known = isinstance(owner, (ListValue, TupleValue, DictValue)) or owner.is_const
    if not known or owner.pytype not in (list, tuple, dict, str, bytes, *_NUMBERS):
        return False, None
    return True, operator(tracer, owner, name, other)
