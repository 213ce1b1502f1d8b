"""Which classes are ordinary ones, whose instances are what their attributes are."""

from __future__ import annotations

import types
import typing

from .class_names import class_dict

SPECIAL_FORM: type = type(typing.Union)  # of ``Union``, ``Literal``, ``ClassVar``…: one object each

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_plain_class(cls: type) -> bool:
    """An ordinary Python class: all bases but ``object`` are written in Python."""
    if issubclass(cls, (tuple, list, dict, set, str, int, float, BaseException)):
        return False
    return all(base is types.SimpleNamespace or _made_in_python(base) for base in cls.__mro__[:-1])


# what a subclass of a namedtuple may not define for its objects to be seen as tuples
_TUPLE_METHODS = frozenset(
    [
        "__getitem__",
        "__iter__",
        "__len__",
        "__contains__",
        "__bool__",
        "__getattribute__",
        "__getattr__",
        "__setattr__",
    ]
)


def is_plain_namedtuple(cls: type) -> bool:
    """A class by ``namedtuple`` or a subclass whose objects still are tuples in all that matters."""
    if not (issubclass(cls, tuple) and hasattr(cls, "_fields")) or cls.__new__ is tuple.__new__:
        return False
    own = cls.__mro__[: cls.__mro__.index(tuple)]
    return not any(name in _TUPLE_METHODS for base in own for name in class_dict(base))


def is_struct_sequence(cls: type) -> bool:
    """A class of named tuples made in C (``torch.return_types.max``), without hidden fields."""
    if cls.__bases__ != (tuple,) or cls.__new__ is tuple.__new__ or hasattr(cls, "_fields"):
        return False
    own = class_dict(cls)
    fields = own.get("__match_args__", ())
    return (
        not isinstance(cls.__new__, types.FunctionType)
        and type(own.get("n_fields")) is int
        and own["n_fields"] == own.get("n_sequence_fields") == len(fields)
        and all(type(own.get(name)) is types.MemberDescriptorType for name in fields)
    )


def _made_in_python(cls: type) -> bool:
    """A heap type that adds at most ``__dict__``, ``__weakref__`` and slots to its base's memory."""
    if not cls.__flags__ & _HEAP_TYPE:
        return False
    if cls.__base__ is types.SimpleNamespace:
        return True
    slots = class_dict(cls).get("__slots__", ())
    count = 1 if isinstance(slots, str) else len(tuple(slots))
    assert cls.__base__ is not None
    return cls.__basicsize__ <= cls.__base__.__basicsize__ + 8 * (2 + count)
