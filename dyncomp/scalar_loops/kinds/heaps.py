"""``heapq.heappush`` and ``heappop`` on lists of numbers, or of tuples of numbers, in generated code.

The walks are those of ``_heapqmodule.c``, so that items lie where CPython would put them. What has to be
compared is compared before anything moves, and where Python has to compare, generated code leaves.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from ..code.block import Block
from ..code.walk import Stop
from . import lists
from .kinds import NONE_VALUE, NUMPY, Kind, Value

_COMPARED = "items that Python has to compare"


def _target(b: Block, args: list[Value], count: int) -> Value:
    lists.check_resizable(b)
    if len(args) != count or args[0].kind.family != "list":
        raise Stop("a call of a function of heapq")
    for code in ("i8", "f8"):
        b.line(f"heap_{code} = {b.walker.numpy_type(NUMPY[code])};")
    return args[0]


def _push(b: Block, args: list[Value]) -> Value:
    target, value = _target(b, args, 2), args[1]
    lists.check_new(b, value)
    made = lists.object_of(b, value)
    done = b.temp("bool", f"heap_push({target.parts[0]}, {made})")
    b.check(done, _COMPARED)
    if target.kind.detail.item is None:
        lists.learn(b, target, value.kind)
    return NONE_VALUE


def _pop(b: Block, args: list[Value]) -> Value:
    target = _target(b, args, 1)
    item: Kind | None = target.kind.detail.item
    if item is None or item.family == "list":
        raise Stop("heappop of a list of lists")
    lists.removes(b, item)
    place = f"LIST({target.parts[0]})"
    b.check(f"{place}->size > 0", "heappop from an empty list")
    held = b.temp("char*", f"{place}->items[0]")
    value = lists.read(b, held, item)
    lists.check_unshared(b, item, held)
    b.check(f"heap_pop({target.parts[0]})", _COMPARED)
    lists.let_go(b, item, held)
    return value


FUNCTIONS: dict[Any, Callable[[Block, list[Value]], Value]] = {heapq.heappush: _push, heapq.heappop: _pop}

PRELUDE = """\
static char *heap_i8, *heap_f8;
/* A number: 1 for an int, 2 for a float, 0 for what is none of them. */
static inline int number_in(char* item, i64* whole, double* value) {
  char* type = TYPE(item);
  if (type == &PyFloat_Type || type == heap_f8) { *value = LOAD(double, item + FLOAT_VALUE); return 2; }
  if (type == heap_i8) *whole = LOAD(i64, item + SCALAR_VALUE);
  else if (!item_int(item, whole)) return 0;
  *value = (double)*whole;
  return 1;
}
/* How two numbers compare: -1, 0, 1; 2: not at all (a NaN); 3: Python has to say. */
static inline int order_of_numbers(char* a, char* b) {
  i64 m, n;
  double x, y;
  int first = number_in(a, &m, &x), second = number_in(b, &n, &y);
  if (first == 1 && second == 1) return m < n ? -1 : m > n;
  if (!first || !second) return 3;
  const i64 exact = 1LL << 53;
  if (first == 1 && (m > exact || m < -exact)) return 3;
  if (second == 1 && (n > exact || n < -exact)) return 3;
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}
/* Whether a is less than b: 1, 0; -1: Python has to say. */
static int item_less(char* a, char* b) {
  if (TYPE(a) != &PyTuple_Type || TYPE(b) != &PyTuple_Type) {
    int order = order_of_numbers(a, b);
    return order == 3 ? -1 : order == -1;
  }
  i64 size = LIST(a)->size, other = LIST(b)->size;
  for (i64 k = 0; k < size && k < other; k++) {
    char *x = LOAD(char*, a + TUPLE_ITEMS + 8 * k), *y = LOAD(char*, b + TUPLE_ITEMS + 8 * k);
    if (x == y) continue; /* equal, whatever it is */
    int order = order_of_numbers(x, y);
    if (order == 3) return -1;
    if (order) return order == -1;
  }
  return size < other;
}
/* Takes the reference to the item, whatever comes of it. */
static bool heap_push(char* list, char* item) {
  Reference* items = LIST(list)->items;
  i64 size = LIST(list)->size, at = size;
  while (at > 0) {
    int less = item_less(item, items[(at - 1) >> 1]);
    if (less < 0) { Py_DecRef(item); return false; }
    if (!less) break;
    at = (at - 1) >> 1;
  }
  if (!list_append(list, item)) return false;
  items = LIST(list)->items;
  for (i64 k = size; k > at; k = (k - 1) >> 1) items[k] = items[(k - 1) >> 1];
  items[at] = item;
  return true;
}
/* Takes off the first item; the caller gets the list's reference to it. */
static bool heap_pop(char* list) {
  Reference* items = LIST(list)->items;
  i64 size = LIST(list)->size - 1, path[64];
  int depth = 0, found;
  char* last = items[size];
  path[0] = 0;
  if (size) {
    for (i64 at = 0; at < size >> 1;) {
      i64 child = 2 * at + 1;
      if (child + 1 < size) {
        int less = item_less(items[child], items[child + 1]);
        if (less < 0) return false;
        child += !less;
      }
      path[++depth] = at = child;
    }
    for (; depth > 0; depth--) {
      found = item_less(last, items[path[depth]]);
      if (found < 0) return false;
      if (!found) break;
    }
  }
  if (size < LIST(list)->allocated >> 1) {
    Py_IncRef(last);
    if (PyList_SetSlice(list, size, size + 1, 0)) {
      PyErr_Clear();
      Py_DecRef(last);
      return false;
    }
    items = LIST(list)->items;
  } else {
    LIST(list)->size = size;
  }
  if (size) {
    for (int k = 0; k < depth; k++) items[path[k]] = items[path[k + 1]];
    items[path[depth]] = last;
  }
  return true;
}
"""
DEFINED = ("heap_push(", "heap_pop(")
