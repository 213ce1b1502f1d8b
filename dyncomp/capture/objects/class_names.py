"""A class's names, whatever its metaclass says when asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MODULE = vars(type)["__module__"]
_DICT = vars(type)["__dict__"]
_QUALNAME = vars(type)["__qualname__"]


def module_of(cls: type) -> str:
    try:
        found: Any = _MODULE.__get__(cls)
    except AttributeError:
        return ""
    return found if isinstance(found, str) else ""


def qualname_of(cls: type) -> str:
    found: str = _QUALNAME.__get__(cls)
    return found


def class_dict(cls: type) -> Mapping[str, Any]:
    """``vars(cls)``, whatever its metaclass says: no code of the program runs."""
    found: Mapping[str, Any] = _DICT.__get__(cls)
    return found


def shares_namespace(cls: type, other: type) -> bool:
    """Whether objects of two classes may have one ``__dict__``, as a compiled module and its module do."""
    plain = class_dict(cls).get("_dyncomp_class", cls)
    return cls is not other and plain is class_dict(other).get("_dyncomp_class", other)
