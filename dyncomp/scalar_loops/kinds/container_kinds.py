"""Kinds of dicts, sets and deques: CPython's own objects, which are given at entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .kinds import Kind, Objects, object_at, tuple_kind


class DictDetail(NamedTuple):
    """The kinds that keys and values are taken to be of; None: not known. ``default``: the kind of zeros that
    a ``defaultdict`` puts in."""

    key: Kind | None
    item: Kind | None
    default: Kind | None


class ItemDetail(NamedTuple):
    """The kind that the items of a set or a deque are taken to be of; None: not known."""

    item: Kind | None


_ADDRESS = (("_p", "char*"),)


def _box(values: Sequence[Any], objects: Objects) -> Any:
    return object_at(values[0])


def _code(kind: Kind | None) -> str:
    return kind.code if kind else "e"


def dict_kind(key: Kind | None, item: Kind | None, default: Kind | None = None) -> Kind:
    """Dicts, and ``defaultdict``. Part: the object's address."""
    code = f"dict{_code(key)}_{_code(item)}_{_code(default)}_"
    return Kind("dict", code, _ADDRESS, _box, DictDetail(key, item, default))


def set_kind(item: Kind | None) -> Kind:
    """Sets. Part: the object's address."""
    return Kind("set", f"set{_code(item)}_", _ADDRESS, _box, ItemDetail(item))


def deque_kind(item: Kind | None) -> Kind:
    """Deques without a greatest length. Part: the object's address."""
    return Kind("deque", f"deque{_code(item)}_", _ADDRESS, _box, ItemDetail(item))


def kept_tuple_kind(items: Sequence[Kind]) -> Kind:
    """Tuples that have become keys: behind the parts of their items the object, which locals keep."""
    plain = tuple_kind(items)

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return object_at(values[-1])

    return Kind("tuple", "K" + plain.code[1:], (*plain.parts, ("_id", "i64")), box, plain.detail)
