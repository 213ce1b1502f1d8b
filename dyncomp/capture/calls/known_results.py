"""What the cache of a function under ``lru_cache`` holds, read without a call that the cache would count."""

from __future__ import annotations

import functools
import gc
from typing import Any

NOTHING: Any = object()
_ENTRY = "_lru_list_elem"


def known_result(cached: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result that the cache has for these arguments, ``NOTHING`` where it has none, or cannot be read."""
    if type(cached) is not functools._lru_cache_wrapper or cached.cache_parameters()["typed"]:
        return NOTHING
    # what the garbage collector is shown: for each entry key, result and the entry's type
    held = gc.get_referents(cached)
    key = _key(held, args, kwargs)
    for position, kind in enumerate(held):
        is_entry = isinstance(kind, type) and kind.__name__ == _ENTRY and position >= 2
        if is_entry and _same_key(held[position - 2], key):
            return held[position - 1]
        if type(kind) is dict and kind is not vars(cached) and cached.cache_parameters()["maxsize"] is None:
            return next((found for own, found in list(kind.items()) if _same_key(own, key)), NOTHING)
    return NOTHING


def lacks_result(cached: object, call: tuple[tuple[Any, ...], dict[str, Any]]) -> bool:
    """Whether the cache is known to hold nothing for these arguments."""
    return known_result(cached, *call) is NOTHING


class HeldResult:
    """A cached function that is only asked for what its cache holds."""

    def __init__(self, cached: Any) -> None:
        self.cached = cached

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if known_result(self.cached, args, kwargs) is NOTHING:
            return NOTHING
        return self.cached(*args, **kwargs)


def _key(held: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not kwargs:
        return args[0] if len(args) == 1 and type(args[0]) in (int, str) else args
    marks = [part for part in held if type(part) is object]
    return (*args, *marks[:1], *(part for item in kwargs.items() for part in item))


def _same_key(found: Any, key: Any) -> bool:
    """Whether the keys are one: of the same types all through, so that comparing them runs no other code."""
    if type(found) is not type(key):
        return False
    if type(key) is tuple:
        return len(found) == len(key) and all(map(_same_key, found, key))
    return found is key or (type(key) in (int, str, bool, float, bytes, type(None)) and bool(found == key))
