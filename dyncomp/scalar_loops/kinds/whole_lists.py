"""What CPython does with a whole list of numbers: ``sum(a)``, ``max(a)``, ``sorted(a)``, ``a.sort()``.

Its own functions are called where all items are of the type that they are taken to be of: so sums are
rounded as the version does it, and equal numbers stay in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..code.block import Block
from ..code.walk import Stop
from . import lists
from .kinds import FLOAT, INT, NONE_VALUE, Kind, Unowned, Value, list_kind

_TYPES: dict[Kind, str] = {INT: "PyLong_Type", FLOAT: "PyFloat_Type"}
_IN_PLACE = {"sort": "PyList_Sort", "reverse": "PyList_Reverse"}
METHODS = (*_IN_PLACE, "copy")


def is_one(args: list[Value]) -> bool:
    """Whether a call is of a single list."""
    return len(args) == 1 and args[0].kind.family == "list"


def _check_items(b: Block, target: Value) -> Kind:
    """The type of all of its items."""
    kind: Kind | None = target.kind.detail.item
    if kind not in _TYPES:
        raise Stop(f"a function of {target.kind}")
    b.check(f"list_is_all({target.parts[0]}, &{_TYPES[kind]})", lists.OTHER_ITEM)
    return kind


def _given(b: Block, target: Value) -> str:
    """The arguments of a call, in C."""
    found = b.walker.variable("given1[1]", "char*").partition("[")[0]
    b.line(f"{found}[0] = {target.parts[0]}; Py_IncRef({target.parts[0]});")
    return found


def number(b: Block, name: str, args: list[Value]) -> Value:
    """``sum``, ``min`` or ``max`` of a list."""
    if not is_one(args):
        raise Stop(f"a call of {name}")
    kind = _check_items(b, args[0])
    function = b.walker.member(f"builtin_{name}", "builtins", name)
    given = _given(b, args[0])
    found = b.walker.temp(kind.parts[0][1])
    b.check(f"call_{kind.family}({function}, 1, {given}, &{found})", f"{name} of a list")
    return Value(kind, (found,))


def _sorted(b: Block, args: list[Value]) -> Value:
    if not is_one(args):
        raise Stop("a call of sorted")
    kind = _check_items(b, args[0])
    function = b.walker.member("builtin_sorted", "builtins", "sorted")
    b.check_made_here()
    return _made(b, kind, f"call_python({function}, 1, {_given(b, args[0])})")


def _made(b: Block, kind: Kind, call: str) -> Value:
    """A new list of such items."""
    b.walker.makes_tuples = b.walker.subject.makes_lists = True
    made = b.temp("char*", call)
    b.age += lists.GONE
    b.check(f"{made} != 0", "no memory")
    return Unowned(list_kind(kind), (made, f"(i64){made}"))


def method(b: Block, target: Value, name: str, args: list[Value]) -> Value:
    """``a.sort()``, ``a.reverse()``, ``a.copy()``."""
    if args:
        raise Stop(f"a call of the method {name} of a list")
    kind = _check_items(b, target)
    if name == "copy":
        b.check_made_here()
        return _made(b, kind, f"PyList_GetSlice({target.parts[0]}, 0, LIST({target.parts[0]})->size)")
    if b.scope.parent is not None:
        raise Stop("a function that changes a list")
    b.check(f"list_changed({_IN_PLACE[name]}({target.parts[0]}))", "no memory")
    return NONE_VALUE


def _sum(b: Block, args: list[Value]) -> Value:
    return number(b, "sum", args)


FUNCTIONS: dict[Any, Callable[[Block, list[Value]], Value]] = {sum: _sum, sorted: _sorted}
PRELUDE = """\
extern "C" { int PyList_Sort(char*); int PyList_Reverse(char*); char* PyList_GetSlice(char*, i64, i64); }
static bool list_is_all(char* list, char* type) {
  bool all = true;
  for (i64 k = 0; k < LIST(list)->size; k++) all &= TYPE(LIST(list)->items[k]) == type;
  return all;
}
static inline bool list_changed(int failed) {
  if (failed) PyErr_Clear();
  return !failed;
}
"""
DEFINED = ("list_is_all(",)
