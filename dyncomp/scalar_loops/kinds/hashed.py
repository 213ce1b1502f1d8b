"""Dicts and sets of numbers, of single characters and of tuples of ints in generated code: CPython's own
objects, looked into in place (``dictobject.c:dictkeys_generic_lookup``, ``setobject.c:set_lookkey``) and
changed by its functions.

Keys are compared here where all that have the same hash are ints, strings or tuples of ints; where one is
something else, whose ``==`` may be the program's, generated code leaves. What dicts hold is guessed from the
entry that came last.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from ..code.block import USED_AT, Block
from ..code.walk import Stop
from . import lists, owners
from .container_kinds import deque_kind, dict_kind, kept_tuple_kind, set_kind
from .kinds import (
    BOOL,
    CHAR,
    FLOAT,
    INT,
    LARGEST_AXIS,
    NONE_VALUE,
    NUMPY,
    Kind,
    TupleValue,
    Unowned,
    Value,
    items_of,
    list_kind,
    method_kind,
    tuple_kind,
)

_METHODS = {"dict": ("get",), "set": ("add", "discard")}
_NEW_ITEMS = (INT, FLOAT, BOOL, *(kind for code, kind in NUMPY.items() if code not in ("b1", "c16")))
_EMPTY = "what was empty"
_ODD_KEY = "a key that Python has to compare"


def length(b: Block, value: Value) -> Value:
    """``len(value)``."""
    return b.new(INT, f"LOAD(i64, {value.parts[0]} + {USED_AT[value.kind.family]})", 0, LARGEST_AXIS)


# -- keys ---------------------------------------------------------------------------------------------------
def _is_int(kind: Kind) -> bool:
    return kind == INT or (kind.family == "numpy" and kind.detail.kind in "iu" and kind.code != "u8")


def _key(b: Block, key: Value) -> str:
    """A key as generated code compares it, in C."""
    kind = key.kind
    int64 = NUMPY["i8"]
    if kind == CHAR:
        return f"CharKey({key.text})"
    if _is_int(kind):
        scalar = int64 if kind == INT else kind
        return f"IntKey<{scalar.parts[0][1]}>({key.text}, {b.walker.numpy_type(scalar)})"
    if kind.family == "tuple" and kind.detail and all(item in (INT, int64) for item in kind.detail):
        numbers = ", ".join(f"(i64){item.text}" for item in items_of(key))
        return f"TupleKey<{len(kind.detail)}>{{{{{numbers}}}, {b.walker.numpy_type(int64)}}}"
    raise Stop(f"{kind} as a key")


def _find(b: Block, target: Value, key: Value) -> tuple[str, str]:
    """Variables in C: whether there is a key (0 or 1), and where its value is."""
    place = b.walker.temp("Reference*")
    if _kind_of_keys(target) is None:
        _key(b, key)
        b.check(f"!({b.truth(target)})", _EMPTY)
        return "0", place
    more = f", &{place}" if target.kind.family == "dict" else ""
    found = b.temp("i64", f"{target.kind.family}_find({target.parts[0]}, {_key(b, key)}{more})")
    b.check(f"{found} >= 0", _ODD_KEY)
    return found, place


def _kind_of_keys(target: Value) -> Kind | None:
    found: Kind | None = target.kind.detail[0]
    return found


def _check_new_key(b: Block, key: Value) -> None:
    if _is_named(key):
        if not b.walker.subject.makes_arrays:
            raise Stop("a tuple that has a name becomes a key")
        return
    if key.kind.family != "tuple" and key.kind != CHAR and not _is_int(key.kind):
        raise Stop(f"{key.kind} becomes a key")
    if key.kind != CHAR:
        lists.check_new(b, key)


def _is_named(key: Value) -> bool:
    """Whether it is a tuple made in the loop that a local holds: that is to be the object that becomes the
    key."""
    return key.kind.family == "tuple" and key.kind.code[0] == "h"


def _name_key(b: Block, target: Value, key: Value, made: str, kind: Kind, stack: list[Value]) -> list[str]:
    """Statements that go on behind the instruction, with this stack, where a tuple became a key: its locals
    hold the object ``made``, and keep it; what locals hold that hold ``target`` is of ``kind``."""
    walker = b.walker
    walker.makes_arrays = walker.subject.makes_containers = True
    before = dict(b.env), b.lines, b.stack, b.leave_place, b.leave_stack, b.is_settled
    b.lines, b.stack = [], stack
    kept = TupleValue(items_of(key), kept_tuple_kind(key.kind.detail), (f"(i64){made}",))
    for slot, value in before[0].items():
        if value.kind == key.kind and value.parts == key.parts:
            b.store(slot, kept)
            owners.note_store(b, slot, kept)
    if kind != target.kind:
        lists.rename(b, target, kind)
    b.effect()
    b.line(b.goto(b.index + 1))
    lines = b.lines
    b.env, b.lines, b.stack, b.leave_place, b.leave_stack, b.is_settled = before
    return lines


def _new_key(b: Block, key: Value) -> str:
    """A new reference to the object that becomes a key, in C; NULL where there is no memory."""
    if key.kind == CHAR:
        return b.temp("char*", f"PyUnicode_FromOrdinal((int){key.text})")
    return lists.object_of(b, TupleValue(items_of(key)) if _is_named(key) else key)


def contains(b: Block, container: Value, key: Value, negated: bool) -> Value:
    """``key in container``."""
    found, _ = _find(b, container, key)
    return b.new(BOOL, f"!{found}" if negated else f"{found} != 0", 0, 1)


# -- dicts --------------------------------------------------------------------------------------------------
def element(b: Block, target: Value, key: Value) -> Value:
    """``target[key]``."""
    default = target.kind.detail.default
    if default is not None and _is_augmented(b):
        return _found_or(b, target, key, b.walker.constant(0 if default == INT else 0.0), b.stack)
    found, place = _find(b, target, key)
    if found == "0":
        raise Stop("an item of a dict that was empty")
    b.check(found, "a key that is not there")
    return _item(b, target, key, b.temp("char*", f"*{place}"))


def _item(b: Block, target: Value, key: Value, item: str) -> Value:
    kind = target.kind.detail.item
    if kind.family == "tuple":
        return TupleValue(items_of(lists.read(b, item, kind)))
    if kind.family != "list":
        return lists.read(b, item, kind)
    if key.kind != INT:
        raise Stop(f"a list at the key {key.kind}")
    b.check(f"TYPE({item}) == &PyList_Type", lists.OTHER_ITEM)
    return Value(list_kind(kind.detail.item, 1), (item, f"(i64){target.parts[0]}", key.text))


def store(b: Block, target: Value, key: Value, value: Value) -> None:
    """``target[key] = value`` where what was there is a number, or nothing."""
    item = target.kind.detail.item
    if item is not None and item.family in ("list", "tuple"):
        raise Stop("items of a dict that are no numbers are replaced")
    if value.kind not in _NEW_ITEMS:
        raise Stop(f"{value.kind} is put into a dict")
    lists.check_new(b, value)
    _check_new_key(b, key)
    found, place = _find(b, target, key)
    if found != "0":
        _replace(b, target, found, place, value)
    learned = dict_kind(_plain(key.kind), value.kind, target.kind.detail.default)
    kind = target.kind if item is not None else learned
    after = b.walker.temp("bool")
    b.line(f"{after} = true;")
    b.line(f"if (!{found}) {{")
    held = lists.object_of(b, value)
    made = _new_key(b, key)
    b.line(f"{after} = dict_put({target.parts[0]}, {made}, {held}); Py_DecRef({made});")
    if _is_named(key):
        b.check(after, "no memory")
        b.lines += _name_key(b, target, key, made, kind, b.stack)
    b.line("}")
    b.age += lists.GONE
    b.check(after, "no memory")
    if item is None:
        lists.rename(b, target, kind)


def _replace(b: Block, target: Value, found: str, place: str, value: Value) -> None:
    """The item of a key that is there: a number that nobody else holds is written over."""
    old = b.walker.temp("char*")
    b.line(f"if ({found}) {{ {old} = *{place};")
    scalars = [f"TYPE({old}) == {b.walker.numpy_type(NUMPY[code])}" for code in ("f8", "i8")]
    b.check(f"is_plain_number({old}) || {' || '.join(scalars)}", "an item of another type is replaced")
    alone = {"int": "put_int", "float": "put_float"}.get(value.kind.family)
    if alone:
        b.line(f"if (!{alone}({old}, {value.text})) {{")
    done = b.walker.temp("bool")
    held = lists.object_of(b, value)
    key = f"key_of({target.parts[0]}, {place})"
    b.line(f"{done} = dict_put({target.parts[0]}, {key}, {held});")
    b.check(done, "no memory")
    b.line("}}" if alone else "}")
    b.age += lists.GONE


def _plain(key: Kind) -> Kind:
    return tuple_kind(key.detail) if key.family == "tuple" else key


_PLAIN = frozenset({"LOAD_FAST", "LOAD_CONST", "BINARY_OP", "BINARY_SUBSCR", "BUILD_TUPLE", "SWAP", "NOP"})


def _is_augmented(b: Block) -> bool:
    """Whether this reads the item for ``d[key] += …``, where nothing else looks into a dict meanwhile: that a
    default is put into the dict before it is replaced is not seen."""
    instructions, at = b.scope.code.instructions, b.index + 1
    if b.scope.parent is not None or any(i.op != "COPY" or i.arg != 2 for i in instructions[at - 3 : at - 1]):
        return False
    while instructions[at].op in _PLAIN:
        instr = instructions[at]
        if instr.op == "LOAD_FAST" and b.env.get(instr.arg, NONE_VALUE).kind.family in ("dict", "method"):
            return False
        at += 1
    return instructions[at].op == "STORE_SUBSCR"


def _get(b: Block, target: Value, args: list[Value]) -> Value:
    """``target.get(key, default)``."""
    if len(args) not in (1, 2):
        raise Stop("a call of get")
    otherwise = args[1] if len(args) == 2 else NONE_VALUE
    return _found_or(b, target, args[0], otherwise, b.stack[: len(b.stack) - len(args) - 1])


def _found_or(b: Block, target: Value, key: Value, otherwise: Value, below: list[Value]) -> Value:
    """The item, or ``otherwise`` where there is no such key. ``below``: the stack without what is to come."""
    found, place = _find(b, target, key)
    if found == "0":
        return otherwise
    kind = target.kind.detail.item
    if kind.family in ("list", "tuple") or otherwise.kind != kind:
        b.line(f"if (!{found}) {{ {b.goto(b.index + 1, [*below, otherwise])} }}")
        return _item(b, target, key, b.temp("char*", f"*{place}"))
    chosen = tuple(b.walker.temp(ctype) for _, ctype in kind.parts)
    b.line(f"if ({found}) {{")
    item = _item(b, target, key, b.temp("char*", f"*{place}"))
    b.line(" ".join(f"{name} = {text};" for name, text in zip(chosen, item.parts)))
    b.line("} else {")
    b.line(" ".join(f"{name} = {text};" for name, text in zip(chosen, otherwise.parts)) + " }")
    return Value(kind, chosen)


def new_dict(b: Block) -> Value:
    """``{}``."""
    return _created(b, dict_kind(None, None), "PyDict_New()")


def _created(b: Block, kind: Kind, call: str) -> Value:
    """A new container without items."""
    b.check_made_here()
    b.walker.makes_tuples = True  # garbage may be collected
    b.walker.subject.makes_containers = True
    made = b.temp("char*", call)
    b.age += lists.GONE
    b.check(f"{made} != 0", "no memory")
    return Unowned(kind, (made,))


def _no_arguments(name: str, args: list[Value]) -> None:
    if args:
        raise Stop(f"a call of {name}")


def _dict(b: Block, args: list[Value]) -> Value:
    _no_arguments("dict", args)
    return new_dict(b)


def _set(b: Block, args: list[Value]) -> Value:
    _no_arguments("set", args)
    return _created(b, set_kind(None), "PySet_New(0)")


def _deque(b: Block, args: list[Value]) -> Value:
    _no_arguments("deque", args)
    made = b.walker.member("type_deque", "collections", "deque")
    return _created(b, deque_kind(None), f"PyObject_Vectorcall({made}, 0, 0, 0)")


FUNCTIONS: dict[Any, Callable[[Block, list[Value]], Value]] = {
    dict: _dict,
    set: _set,
    collections.deque: _deque,
}


# -- methods ------------------------------------------------------------------------------------------------
def attribute(b: Block, value: Value, name: str) -> Value:
    """A method."""
    if name not in _METHODS[value.kind.family]:
        raise Stop(f"the attribute {name} of a {value.kind.family}")
    return Value(method_kind(value.kind, name), value.parts)


def call(b: Block, target: Value, name: str, args: list[Value]) -> Value:
    """A method of a dict or a set."""
    if name == "get":
        return _get(b, target, args)
    if b.scope.parent is not None:
        raise Stop("a function that changes a set")
    if len(args) != 1:
        raise Stop(f"a call of {name}")
    return _add(b, target, args[0]) if name == "add" else _discard(b, target, args[0])


def _add(b: Block, target: Value, key: Value) -> Value:
    _check_new_key(b, key)
    found, _ = _find(b, target, key)
    done = b.walker.temp("bool")
    b.line(f"{done} = true; if (!{found}) {{")
    made = _new_key(b, key)
    b.line(f"{done} = set_add({target.parts[0]}, {made});")
    kind = target.kind if target.kind.detail.item is not None else set_kind(_plain(key.kind))
    if _is_named(key):
        b.check(done, "no memory")
        b.lines += _name_key(b, target, key, made, kind, [*b.stack[:-2], NONE_VALUE])
    b.line("}")
    b.age += lists.GONE
    b.check(done, "no memory")
    if kind != target.kind:
        lists.rename(b, target, kind)
    return NONE_VALUE


def _discard(b: Block, target: Value, key: Value) -> Value:
    _check_new_key(b, key)
    found, _ = _find(b, target, key)
    if found == "0":
        return NONE_VALUE
    done = b.walker.temp("bool")
    b.line(f"{done} = true; if ({found}) {{")
    made = _new_key(b, key)
    b.line(f"{done} = set_discard({target.parts[0]}, {made}); }}")
    b.age += lists.GONE
    b.check(done, "no memory")
    return NONE_VALUE


PRELUDE = """\
extern "C" {
extern char PyUnicode_Type;
int PyDict_SetItem(char*, char*, char*); int PySet_Add(char*, char*); int PySet_Discard(char*, char*);
char* PyUnicode_FromOrdinal(int); int PyUnicode_Compare(char*, char*);
i64 PyObject_Hash(char*);
char* PyDict_New(); char* PySet_New(char*);
}
/* Keys: their hashes, and whether they are equal to one that has the same: 1, 0, or -1 where Python has to
   say. Ints of less than 60 bits are their own hashes, NumPy's too; but -1. */
static inline bool is_small_key(i64 value) { return (u64)value + (1ULL << 60) < (1ULL << 61); }
static inline u64 hash_of_int(i64 value) { return value == -1 ? (u64)-2 : (u64)value; }
template <typename T> static inline int same_int(char* key, i64 value, char* type) {
  i64 found;
  if (item_int(key, &found)) return found == value;
  if (TYPE(key) == type) return (i64)LOAD(T, key + SCALAR_VALUE) == value;
  return -1;
}
template <typename T> struct IntKey {
  static const int is_text = 0;
  i64 value; char* type;
  IntKey(i64 value, char* type) : value(value), type(type) {}
  bool is_plain() const { return is_small_key(value); }
  u64 hash() const { return hash_of_int(value); }
  int same(char* key) const { return same_int<T>(key, value, type); }
};
/* As tupleobject.c:tuplehash has it. */
template <int N> struct TupleKey {
  static const int is_text = 0;
  i64 values[N]; char* type;
  bool is_plain() const {
    bool plain = true;
    for (int k = 0; k < N; k++) plain &= is_small_key(values[k]);
    return plain;
  }
  u64 hash() const {
    u64 found = 2870177450012600261ULL;
    for (int k = 0; k < N; k++) {
      found += hash_of_int(values[k]) * 14029467366897019727ULL;
      found = (found << 31 | found >> 33) * 11400714785074694791ULL;
    }
    found += N ^ (2870177450012600261ULL ^ 3527539ULL);
    return found == (u64)-1 ? 1546275796 : found;
  }
  int same(char* key) const {
    if (TYPE(key) != &PyTuple_Type) return -1;
    if (LIST(key)->size != N) return 0;
    for (int k = 0; k < N; k++) {
      int same = same_int<i64>(LOAD(char*, key + TUPLE_ITEMS + 8 * k), values[k], type);
      if (same != 1) return same;
    }
    return 1;
  }
};
/* A character that is there once: of the first 256. */
struct CharKey {
  static const int is_text = 1;
  char* text;
  CharKey(i64 code) : text(code < 256 ? PyUnicode_FromOrdinal((int)code) : 0) {
    if (text) Py_DecRef(text);
    else PyErr_Clear();
  }
  bool is_plain() const { return text; }
  u64 hash() const { return (u64)PyObject_Hash(text); }
  int same(char* key) const {
    if (key == text) return 1;
    if (TYPE(key) != &PyUnicode_Type) return -1;
    return PyUnicode_Compare(key, text) == 0;
  }
};
template <typename Key> static int dict_find(char* dict, const Key& key, Reference** place) {
  char *keys = LOAD(char*, dict + DICT_KEYS), *indices = keys + KEYS_INDICES;
  char* entries = indices + (1LL << LOAD(u8, keys + KEYS_INDEX_BITS));
  int bits = LOAD(u8, keys + KEYS_BITS), kind = LOAD(u8, keys + KEYS_KIND); /* 1: strings, 2: attributes */
  if (!key.is_plain() || kind > 1) return -1;
  if (kind && !Key::is_text) return 0;
  u64 hash = key.hash(), mask = (1ULL << bits) - 1, at = hash & mask, rest = hash;
  while (true) {
    i64 number = bits < 8 ? LOAD(i8, indices + at) : bits < 16 ? LOAD(i16, indices + 2 * at)
      : bits < 32 ? LOAD(i32, indices + 4 * at) : LOAD(i64, indices + 8 * at);
    if (number == -1) return 0;
    if (number >= 0) {
      char* entry = entries + (kind ? TEXT_ENTRY_SIZE : ENTRY_SIZE) * number;
      char* held = LOAD(char*, entry + (kind ? TEXT_ENTRY_KEY : ENTRY_KEY));
      if ((kind ? LOAD(u64, held + TEXT_HASH) : LOAD(u64, entry + ENTRY_HASH)) == hash) {
        int same = key.same(held);
        *place = (Reference*)(entry + (kind ? TEXT_ENTRY_VALUE : ENTRY_VALUE));
        if (same) return same;
      }
    }
    rest >>= 5;
    at = (at * 5 + rest + 1) & mask;
  }
}
template <typename Key> static int set_find(char* set, const Key& key) {
  if (!key.is_plain()) return -1;
  char* table = LOAD(char*, set + SET_TABLE);
  u64 mask = LOAD(u64, set + SET_MASK), hash = key.hash(), at = hash & mask, rest = hash;
  while (true) {
    char* entry = table + SET_ENTRY_SIZE * at;
    int more = at + 9 <= mask ? 9 : 0;
    do {
      char* held = LOAD(char*, entry + SET_ENTRY_KEY);
      u64 found = LOAD(u64, entry + SET_ENTRY_HASH);
      if (!held && !found) return 0;
      if (held && found == hash) {
        int same = key.same(held);
        if (same) return same;
      }
      entry += SET_ENTRY_SIZE;
    } while (more--);
    rest >>= 5;
    at = (at * 5 + 1 + rest) & mask;
  }
}
/* The key of the entry with this value. */
static inline char* key_of(char* dict, Reference* place) { return place[-1]; }
/* Takes the reference to the value. */
static bool dict_put(char* dict, char* key, char* value) {
  int failed = !key || PyDict_SetItem(dict, key, value);
  if (failed) PyErr_Clear();
  Py_DecRef(value);
  return !failed;
}
static bool set_add(char* set, char* key) {
  int failed = !key || PySet_Add(set, key);
  if (failed) PyErr_Clear();
  if (key) Py_DecRef(key);
  return !failed;
}
static bool set_discard(char* set, char* key) {
  int failed = !key || PySet_Discard(set, key) < 0;
  if (failed) PyErr_Clear();
  if (key) Py_DecRef(key);
  return !failed;
}
/* A number that only its container holds becomes another one. */
static inline bool put_float(char* item, double value) {
  if (TYPE(item) != &PyFloat_Type || LOAD(u32, item) != 1) return false;
  STORE(double, item + FLOAT_VALUE, value);
  return true;
}
static inline bool put_int(char* item, i64 value) {
  return TYPE(item) == &PyLong_Type && LOAD(u32, item) == 1 && write_int(item, value);
}
"""
DEFINED = ("Key<", "CharKey(", "dict_put(", "set_add(", "PyDict_New(", "PySet_New(")
