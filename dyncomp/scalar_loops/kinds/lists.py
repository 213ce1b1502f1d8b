"""Lists of numbers or of tuples of numbers, and lists of such lists, in generated code: CPython's own
objects, read and written in place.

Of which type the items are is guessed from the last one; where an item is of another, generated code leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from ..code.arithmetic import bounds
from ..code.block import Block
from ..code.walk import Stop
from .kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    LARGEST_AXIS,
    NONE_VALUE,
    NUMPY,
    Item,
    Kind,
    ListDetail,
    TupleValue,
    Unowned,
    Value,
    has_tuple,
    item_tuple_kind,
    items_of,
    list_kind,
    method_kind,
    pending_kind,
    tuple_kind,
)

_MADE = {BOOL: "PyBool_FromLong", COMPLEX: "PyComplex_FromDoubles"}

_METHODS = ("append", "pop", "sort", "reverse", "copy")
SPARE = "spare"
"""The variable with the numbers that were last taken out of lists. They are let go of when others follow: of
two items that change places neither is made anew; one that nobody else holds becomes the next new number."""
GONE = 2
"""By so much a block ages where anything may have been let go of, or garbage is collected."""
OTHER_ITEM = "an item of another type"
_OTHERS: dict[Kind | None, Kind] = {
    INT: NUMPY["i8"], NUMPY["i8"]: INT, FLOAT: NUMPY["f8"], NUMPY["f8"]: FLOAT,
}  # fmt: skip


def length(b: Block, value: Value) -> Value:
    return b.new(INT, f"LIST({value.parts[0]})->size", 0, LARGEST_AXIS)


def element(b: Block, value: Value, index: Value) -> Value:
    """``value[index]``."""
    return item_at(b, value, _position(b, value, index))


def is_mixed(b: Block, value: Value) -> bool:
    """Whether items of a list of numbers may be NumPy's beside Python's, or the other way round."""
    return b.walker.subject.mixes and value.kind.family == "list" and value.kind.detail.item in _OTHERS


def mixed_element(b: Block, value: Value, index: Value, go: Callable[[Value], str]) -> Value:
    """``value[index]`` of such a list. ``go``: statements that go on with an item of the other type."""
    kind = value.kind.detail.item
    other = _OTHERS[kind]
    item = b.temp("char*", f"LIST({value.parts[0]})->items[{_position(b, value, index)}]")
    found = b.walker.temp(other.parts[0][1])
    if other.family == "numpy":
        condition = f"TYPE({item}) == {_numpy_type(b, other)}"
        taken = f"{found} = LOAD({other.parts[0][1]}, {item} + SCALAR_VALUE);"
    else:
        condition, taken = f"item_{other.family}({item}, &{found})", ""
    if other.parts[0][1] == "double":
        held = f"LOAD(double, {item} + FLOAT_VALUE)"
        condition += f" && {held} == {held}"  # as _check_no_nan
    b.line(f"if ({condition}) {{ {taken} {go(Value(other, (found,)))} }}")
    return read(b, item, kind)


def item_at(b: Block, value: Value, position: str) -> Value:
    """The item at a position within bounds."""
    detail: ListDetail = value.kind.detail
    if detail.item is None:
        raise Stop("an item of a list that was empty")
    item = b.temp("char*", f"LIST({value.parts[0]})->items[{position}]")
    kind = detail.item
    if kind.family == "list":
        b.check(f"TYPE({item}) == &PyList_Type", OTHER_ITEM)
        inner = list_kind(kind.detail.item, detail.depth + 1)
        return Value(inner, (item, *value.parts[1:], position))
    found = read(b, item, kind)
    if kind.family == "tuple":
        return TupleValue(
            items_of(found), item_tuple_kind(kind.detail, detail.depth + 1), (*value.parts[1:], position)
        )
    return found


def read(b: Block, item: str, kind: Kind) -> Value:
    """What a number, or a tuple of numbers, is; generated code leaves where it is something else."""
    if kind.family == "tuple":
        size = len(kind.detail)
        b.check(f"TYPE({item}) == &PyTuple_Type && LIST({item})->size == {size}", OTHER_ITEM)
        inner = [b.temp("char*", f"LOAD(char*, {item} + TUPLE_ITEMS + {8 * k})") for k in range(size)]
        return TupleValue([read(b, text, found) for text, found in zip(inner, kind.detail)])
    if kind.family == "numpy":
        b.check(f"TYPE({item}) == {_numpy_type(b, kind)}", OTHER_ITEM)
        number = b.temp(kind.parts[0][1], f"LOAD({kind.parts[0][1]}, {item} + SCALAR_VALUE)")
        found = Item(kind, (number,), item, b.age)
        _check_no_nan(b, found)
        return found
    names = tuple(b.walker.temp(ctype) for _, ctype in kind.parts)
    places = ", ".join(f"&{name}" for name in names)
    b.check(f"item_{kind.family}({item}, {places})", OTHER_ITEM)
    found = Item(kind, names, item, b.age)
    _check_no_nan(b, found)
    return found


def _check_no_nan(b: Block, value: Value) -> None:
    """``in`` and ``count`` find a NaN by identity, which generated code does not keep: it is left to plain
    Python before it is read, or put into a list."""
    if any(ctype in ("double", "float") for _, ctype in value.kind.parts):
        b.check(" && ".join(f"{part} == {part}" for part in value.parts), "a NaN in a list")


def _numpy_type(b: Block, kind: Kind) -> str:
    """The C variable with the address of a scalar type of NumPy."""
    if kind.code == "b1":
        raise Stop("NumPy's bools in a list")
    return b.walker.numpy_type(kind)


def check_new(b: Block, value: Value) -> None:
    """Whether a new object in a list does as well as the one that plain Python puts there: a tuple that
    nobody else holds, and numbers but NaN."""
    if value.kind.family != "tuple":
        _check_no_nan(b, value)
        return
    if value.kind.code[0] != "t":
        raise Stop("a tuple that others hold is put into a list")
    for item in items_of(value):
        check_new(b, item)


def removes(b: Block, item: Kind | None) -> None:
    """Before an item is removed or replaced: no tuple of the loop is found by its place."""
    if item is None or item.family != "tuple":
        return
    if b.walker.names_items or any(has_tuple(value.kind, "P") for value in b.stack):
        raise Stop("items that are held are removed from a list")
    b.walker.removes_items = True


def object_of(b: Block, value: Value) -> str:
    """A new reference to a number or a tuple of numbers; where there is no memory generated code leaves."""
    kind = value.kind
    if isinstance(value, Item) and b.age - value.age <= 1:
        b.line(f"Py_IncRef({value.object});")
        return value.object
    if kind.family == "tuple":
        if not kind.detail:
            raise Stop("an empty tuple in a list")
        b.walker.makes_tuples = True
        items = [object_of(b, item) for item in items_of(value)]
        b.age += GONE
        made = b.temp("char*", f"PyTuple_New({len(items)})")
        b.check(f"{made} != 0", "no memory")
        for k, item in enumerate(items):
            b.line(f"STORE(char*, {made} + TUPLE_ITEMS + {8 * k}, {item});")
        return made
    if kind.family == "numpy":
        found = _numpy_type(b, kind)
        made = b.temp("char*", f"new_scalar(&{spare(b)}, {found})")
        b.age += GONE
        b.check(f"{made} != 0", "no memory")
        b.line(f"STORE({kind.parts[0][1]}, {made} + SCALAR_VALUE, {value.text});")
        return made
    if kind not in (INT, FLOAT, *_MADE):
        raise Stop(f"{kind} is put into a list")
    if kind in (INT, FLOAT):
        made = b.temp("char*", f"new_{kind.family}(&{spare(b)}, {value.text})")
        b.age += GONE
    else:
        made = b.temp("char*", f"{_MADE[kind]}({', '.join(value.parts)})")
    b.check(f"{made} != 0", "no memory")
    return made


def spare(b: Block) -> str:
    b.walker.has_spare = True
    return SPARE


def _position(b: Block, value: Value, index: Value) -> str:
    if index.kind.family == "numpy" and index.kind.detail.kind in "iu" and index.kind.code != "u8":
        index = b.new(INT, f"(i64){index.text}")
    if index.kind != INT:
        raise Stop(f"an index of type {index.kind}")
    text, low = index.text, bounds(index)[0]
    size = b.temp("i64", f"LIST({value.parts[0]})->size")
    if low < 0:
        text = b.temp("i64", f"{text} < 0 ? {text} + {size} : {text}")
    b.check(f"(u64){text} < (u64){size}", "an index out of range")
    return text


def contains(b: Block, container: Value, value: Value, negated: bool) -> Value:
    """``value in container`` for an int among ints."""
    if container.kind.detail.item != INT or value.kind != INT:
        raise Stop("a search in a list")
    found = b.walker.temp("bool")
    b.check(f"list_has_int({container.parts[0]}, {value.text}, &{found})", OTHER_ITEM)
    return b.new(BOOL, f"!{found}" if negated else found, 0, 1)


# -- lists made in the loop ---------------------------------------------------------------------------------
def pending(items: list[Value]) -> Value:
    """A list of these items, to be made when a local gets it."""
    if len({item.kind for item in items}) > 1:
        raise Stop("a list of items of several types")
    return Value(pending_kind([item.kind for item in items], False), tuple(p for i in items for p in i.parts))


def repeated(b: Block, value: Value, count: Value) -> Value:
    """``[x] * n``."""
    if value.kind.code[1] != "0" or len(value.kind.detail) != 1 or count.kind != INT:
        raise Stop(f"{value.kind} * {count.kind}")
    return Value(pending_kind(value.kind.detail, True), (*value.parts, count.text))


def made(b: Block, value: Value) -> Value:
    """The object."""
    b.check_made_here()
    kinds, at, items = value.kind.detail, 0, []
    for kind in kinds:
        items.append(Value(kind, value.parts[at : at + len(kind.parts)]))
        at += len(kind.parts)
    for item in items:
        check_new(b, item)
    is_repeated = value.kind.code[1] == "1"
    if is_repeated:
        b.check(f"(u64){value.parts[-1]} < {LARGEST_AXIS}", "a list of no items, or of very many")
    b.walker.makes_tuples = True
    objects = [object_of(b, item) for item in items]
    b.age += GONE
    found = b.temp("char*", f"PyList_New({len(items)})")
    b.check(f"{found} != 0", "no memory")
    for k, text in enumerate(objects):
        b.line(f"LIST({found})->items[{k}] = {text};")
    if is_repeated:
        one, found = found, b.temp("char*", f"PySequence_Repeat({found}, {value.parts[-1]})")
        b.line(f"Py_DecRef({one}); if (!{found}) PyErr_Clear();")
        b.check(f"{found} != 0", "no memory")
    return Unowned(list_kind(kinds[0] if kinds else None), (found, f"(i64){found}"))


def store(b: Block, target: Value, index: Value, value: Value) -> None:
    """``target[index] = value`` where what was there is a number, too, or a tuple as it is."""
    item = target.kind.detail.item
    removes(b, item)
    check_new(b, value)
    position = _position(b, target, index)
    old = b.temp("char*", f"LIST({target.parts[0]})->items[{position}]")
    if is_mixed(b, target):
        assert item is not None
        known = _numpy_type(b, item if item.family == "numpy" else _OTHERS[item])
        b.check(f"is_plain_number({old}) || TYPE({old}) == {known}", "an item of another type is replaced")
    elif item is not None and item.family in ("tuple", "numpy"):
        read(b, old, item)
    else:
        b.check(f"is_plain_number({old})", "an item of another type is replaced")
    made = object_of(b, value)
    place = f"LIST({target.parts[0]})->items[{position}]"
    if value.kind.family == "tuple":  # garbage may have been collected meanwhile, and run code of the program
        again = f"{position} < LIST({target.parts[0]})->size && {place} == {old}"
        leave = b.leave_label("a list that changed meanwhile")
        b.line(f"if (unlikely(!({again}))) {{ Py_DecRef({made}); goto {leave}; }}")
    b.line(f"{place} = {made};")
    if value.kind.family == "tuple" or (item is not None and item.family == "tuple"):
        b.line(f"Py_DecRef({old});")
        b.age += GONE
    else:
        b.line(f"let_go_later(&{spare(b)}, {old});")
        b.age += 1


def attribute(b: Block, value: Value, name: str) -> Value:
    if name not in _METHODS:
        raise Stop(f"the attribute {name} of a list")
    return Value(method_kind(value.kind, name), value.parts)


def call(b: Block, target: Value, name: str, args: list[Value]) -> Value:
    """A method."""
    check_resizable(b)
    if name == "append" and len(args) == 1:
        return _append(b, target, args[0])
    if name == "pop" and (not args or (len(args) == 1 and args[0].constant == -1)):
        return _pop(b, target)
    raise Stop(f"a call of the method {name} of a list")


def check_resizable(b: Block) -> None:
    """A list changes its size where no loop goes over one, and in the loop's own function."""
    if b.scope.parent is not None:
        raise Stop("a function that changes a list")
    for held in b.stack:
        if held.kind.family == "iter" and held.kind.detail.source is not None and "list" in held.kind.code:
            raise Stop("a list changes its size in a loop over a list")


def _append(b: Block, target: Value, value: Value) -> Value:
    check_new(b, value)
    made = object_of(b, value)
    if target.kind.detail.item is None:
        learn(b, target, value.kind)
    b.check(f"list_append({target.parts[0]}, {made})", "no memory")
    return NONE_VALUE


def learn(b: Block, target: Value, item: Kind) -> None:
    """Locals that hold a list which was empty: from now on it is one of such items."""
    kind = tuple_kind(item.detail) if item.family == "tuple" else item
    for slot, value in list(b.env.items()):
        if value.kind == target.kind and value.parts == target.parts:
            b.store(slot, Value(list_kind(kind, target.kind.detail.depth), value.parts))


def _pop(b: Block, target: Value) -> Value:
    """The last item. Where CPython gives memory back, it is asked to."""
    item = target.kind.detail.item
    if item is None or item.family == "list":
        raise Stop("pop of a list of lists")
    removes(b, item)
    size = b.temp("i64", f"LIST({target.parts[0]})->size - 1")
    b.check(f"{size} >= 0", "pop from an empty list")
    held = b.temp("char*", f"LIST({target.parts[0]})->items[{size}]")
    value = read(b, held, item)
    check_unshared(b, item, held)
    if item.family == "tuple":
        b.check(f"list_shrink({target.parts[0]}, {size}, {held}, 0)", "no memory")
    else:
        b.check(f"list_shrink({target.parts[0]}, {size}, {held}, &{spare(b)})", "no memory")
    b.age += GONE
    return value


def check_unshared(b: Block, item: Kind, held: str) -> None:
    """Of an item that is taken off: a tuple that only the list holds is as good as a new one."""
    if item.family == "tuple" and b.scope.code.instructions[b.index + 1].op != "UNPACK_SEQUENCE":
        # how many hold it is in the lower half
        b.check(f"(u32)LIST({held})->references == 1", "a tuple that others hold is taken off a list")


def let_go(b: Block, item: Kind, held: str) -> None:
    """Let go of what was taken off."""
    b.line(f"Py_DecRef({held});" if item.family == "tuple" else f"let_go_later(&{spare(b)}, {held});")
    b.age += GONE
