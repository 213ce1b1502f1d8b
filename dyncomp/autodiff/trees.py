"""Containers of arrays: dicts, lists, tuples, named tuples, dataclasses and registered classes.

Plain Python, since it runs in captured code, where an object is followed but no library in C is: there
``optree`` would be a graph break.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

_REGISTERED: dict[type, tuple[Callable[[Any], list[Any]], Callable[[Any, list[Any]], Any]]] = {}


def register_tree(
    cls: type, children: Callable[[Any], list[Any]], rebuild: Callable[[Any, list[Any]], Any]
) -> None:
    """Have objects of exactly this class be containers for ``grad`` and its like: ``children(tree)`` lists
    what is in one, ``rebuild(tree, children)`` makes another with these in their places."""
    if not isinstance(cls, type):
        raise TypeError(f"register_tree takes a class, not {cls!r}")
    _REGISTERED[cls] = (children, rebuild)


def mapped(make: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with ``make(leaf)`` in place of each leaf, in order."""
    kind = type(tree)
    if kind is list:
        return [mapped(make, child) for child in tree]
    if kind is tuple:
        return tuple([mapped(make, child) for child in tree])
    if kind is dict or kind is collections.OrderedDict:
        return kind([(key, mapped(make, child)) for key, child in tree.items()])
    if kind in _REGISTERED:
        children, rebuild = _REGISTERED[kind]
        return rebuild(tree, [mapped(make, child) for child in children(tree)])
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind(*[mapped(make, child) for child in tree])
    if hasattr(kind, "__dataclass_fields__"):
        return kind(**{name: mapped(make, getattr(tree, name)) for name in kind.__dataclass_fields__})
    return make(tree)


def mapped_along(make: Callable[[Any, Any], Any], tree: Any, axes: Any) -> Any:
    """The tree with ``make(leaf, axis)`` in place of each leaf, in order. ``axes``: an axis (or ``None``) for
    all of the tree, or a dict, list or tuple like it with what is for its children."""
    if axes is None or isinstance(axes, int):
        return mapped(lambda leaf: make(leaf, axes), tree)
    kind = type(tree)
    if isinstance(axes, dict):
        if not isinstance(tree, dict) or axes.keys() != tree.keys():
            raise ValueError(f"axes {axes!r} are for another dict")
        return kind([(key, mapped_along(make, child, axes[key])) for key, child in tree.items()])
    if not isinstance(tree, (list, tuple)) or len(axes) != len(tree):
        raise ValueError(f"axes {axes!r} are for a list or tuple of {len(axes)}")
    children = [mapped_along(make, child, axis) for child, axis in zip(tree, axes)]
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def leaves(tree: Any) -> list[Any]:
    """All leaves, in order."""
    found: list[Any] = []

    def note(leaf: Any) -> None:
        found.append(leaf)

    mapped(note, tree)
    return found
