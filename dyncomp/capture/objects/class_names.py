"""A class's names, whatever its metaclass says when asked for them."""

from __future__ import annotations

from typing import Any

_MODULE = vars(type)["__module__"]
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
