"""``collections.deque`` of numbers, or of tuples of numbers, in generated code: read and changed in place
within a block (``_collectionsmodule.c``), and by its own methods where one begins or ends."""

from __future__ import annotations

from ..code.block import Block
from ..code.walk import Stop
from . import lists
from .container_kinds import deque_kind
from .kinds import INT, LARGEST_AXIS, NONE_VALUE, Kind, TupleValue, Value, items_of, method_kind, tuple_kind

_TAKING = {"pop": ("last", "pop"), "popleft": ("first", "popleft")}
_METHODS = ("append", "appendleft", "pop", "popleft")
_BOUNDED = "a deque with a greatest length"


def length(b: Block, value: Value) -> Value:
    """``len(value)``."""
    return b.new(INT, f"LIST({value.parts[0]})->size", 0, LARGEST_AXIS)


def element(b: Block, target: Value, index: Value) -> Value:
    """``target[0]`` or ``target[-1]``."""
    if index.constant not in (0, -1):
        raise Stop("an item of a deque")
    return _read(b, target, "first" if index.constant == 0 else "last")[0]


def _read(b: Block, target: Value, which: str) -> tuple[Value, str]:
    """The item at an end, and its object in C."""
    kind: Kind | None = target.kind.detail.item
    if kind is None:
        raise Stop("an item of a deque that was empty")
    b.check(b.truth(target), "an empty deque")
    held = b.temp("char*", f"deque_{which}({target.parts[0]})")
    found = lists.read(b, held, kind)
    return (TupleValue(items_of(found)) if kind.family == "tuple" else found), held


def attribute(b: Block, value: Value, name: str) -> Value:
    """A method."""
    if name not in _METHODS:
        raise Stop(f"the attribute {name} of a deque")
    return Value(method_kind(value.kind, name), value.parts)


def call(b: Block, target: Value, name: str, args: list[Value]) -> Value:
    """A method."""
    if b.scope.parent is not None:
        raise Stop("a function that changes a deque")
    if name in _TAKING and not args:
        value, held = _read(b, target, _TAKING[name][0])
        lists.check_unshared(b, value.kind, held)
        b.check(f"deque_{name}({target.parts[0]})", "no memory")
        lists.let_go(b, value.kind, held)
        return value
    if len(args) != 1 or name in _TAKING:
        raise Stop(f"a call of the method {name} of a deque")
    lists.check_new(b, args[0])
    b.check(f"LOAD(i64, {target.parts[0]} + DEQUE_MAX_LENGTH) < 0", _BOUNDED)
    made = lists.object_of(b, args[0])
    b.check(f"deque_{name}({target.parts[0]}, {made})", "no memory")
    if target.kind.detail.item is None:
        _learn(b, target, args[0].kind)
    return NONE_VALUE


def _learn(b: Block, target: Value, item: Kind) -> None:
    kind = deque_kind(tuple_kind(item.detail) if item.family == "tuple" else item)
    lists.rename(b, target, kind)


PRELUDE = """\
/* Blocks of 64 items between links; the ends are given by a block and a position in it. */
static inline char* deque_first(char* deque) {
  return LOAD(char*, LOAD(char*, deque + DEQUE_LEFT) + BLOCK_ITEMS + 8 * LOAD(i64, deque + DEQUE_LEFT_INDEX));
}
static inline char* deque_last(char* deque) {
  i64 at = LOAD(i64, deque + DEQUE_RIGHT_INDEX);
  return LOAD(char*, LOAD(char*, deque + DEQUE_RIGHT) + BLOCK_ITEMS + 8 * at);
}
static inline void deque_resize(char* deque, int by) {
  LIST(deque)->size += by;
  STORE(i64, deque + DEQUE_STATE, LOAD(i64, deque + DEQUE_STATE) + 1);
}
static bool deque_call(char* deque, const char* method, char* item) {
  char* found = PyObject_CallMethod(deque, method, item ? "(O)" : "()", item);
  if (!found) PyErr_Clear();
  else Py_DecRef(found);
  return found;
}
/* The caller gets the deque's reference to `item`, which is taken off: within its block the index at `end`
 * moves to `next`, else the deque's own method does it. */
static inline bool deque_take(char* deque, char* item, i64 end, i64 next, bool within,
                              const char* method) {
  if (within) {
    STORE(i64, deque + end, next);
    deque_resize(deque, -1);
    return true;
  }
  Py_IncRef(item);
  if (deque_call(deque, method, 0)) return true;
  Py_DecRef(item);
  return false;
}
static inline bool deque_popleft(char* deque) {
  i64 at = LOAD(i64, deque + DEQUE_LEFT_INDEX);
  return deque_take(deque, deque_first(deque), DEQUE_LEFT_INDEX, at + 1, at < DEQUE_BLOCK - 1, "popleft");
}
static inline bool deque_pop(char* deque) {
  i64 at = LOAD(i64, deque + DEQUE_RIGHT_INDEX);
  return deque_take(deque, deque_last(deque), DEQUE_RIGHT_INDEX, at - 1, at > 0, "pop");
}
/* These take the reference to the item, whatever comes of it. */
static inline bool deque_append(char* deque, char* item) {
  i64 at = LOAD(i64, deque + DEQUE_RIGHT_INDEX);
  if (at < DEQUE_BLOCK - 1) {
    STORE(char*, LOAD(char*, deque + DEQUE_RIGHT) + BLOCK_ITEMS + 8 * (at + 1), item);
    STORE(i64, deque + DEQUE_RIGHT_INDEX, at + 1);
    deque_resize(deque, 1);
    return true;
  }
  bool done = deque_call(deque, "append", item);
  Py_DecRef(item);
  return done;
}
static inline bool deque_appendleft(char* deque, char* item) {
  i64 at = LOAD(i64, deque + DEQUE_LEFT_INDEX);
  if (at > 0) {
    STORE(char*, LOAD(char*, deque + DEQUE_LEFT) + BLOCK_ITEMS + 8 * (at - 1), item);
    STORE(i64, deque + DEQUE_LEFT_INDEX, at - 1);
    deque_resize(deque, 1);
    return true;
  }
  bool done = deque_call(deque, "appendleft", item);
  Py_DecRef(item);
  return done;
}
"""
DEFINED = ("deque_",)
