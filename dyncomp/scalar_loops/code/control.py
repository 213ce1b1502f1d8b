"""Meaning of instructions that move values and control."""

from __future__ import annotations

import builtins
import types
from typing import Any

from ...python_code.instr import Instr
from ..analysis.affine import Form, symbol
from ..entry.references import is_let_go
from ..kinds import arrays, complexes, iterators, lists, owners, rows, slices, texts
from ..kinds.kinds import (
    BOOL,
    INT,
    LARGEST,
    LARGEST_AXIS,
    NONE_VALUE,
    UNBOUND_VALUE,
    IterDetail,
    Kind,
    TupleValue,
    Value,
    has_tuple,
    is_named_view,
    is_view,
    items_of,
    iter_kind,
    named,
)
from . import arithmetic, calls
from .block import HARD_BUDGET, SOFT_BUDGET, Block, handles, is_leaf, stop_of
from .walk import TAG_UNBOUND, Stop, Version, Walker, clean, int_literal


@handles("NOP", "RESUME")
def _nop(b: Block, instr: Instr) -> None:
    pass


@handles("POP_TOP")
def _pop_top(b: Block, instr: Instr) -> None:
    b.pop()


@handles("COPY")
def _copy(b: Block, instr: Instr) -> None:
    value = b.stack[-instr.arg]
    fresh = value.kind.family == "vector" and value.kind.detail.slot is None
    if fresh or value.kind.family in ("iter", "pending"):
        raise Stop("two references to an iterator or a vector")
    if instr.arg == 1 and is_view(value):
        raise Stop("two names for a view")
    b.stack[-instr.arg] = value = named(value)
    b.push(value)


@handles("SWAP")
def _swap(b: Block, instr: Instr) -> None:
    n = instr.arg
    b.stack[-1], b.stack[-n] = b.stack[-n], b.stack[-1]


@handles("LOAD_CONST")
def _load_const(b: Block, instr: Instr) -> None:
    b.push(b.walker.constant(instr.arg))


@handles("LOAD_FAST")
def _load_fast(b: Block, instr: Instr) -> None:
    b.push(b.load(b.scope.slot(instr.arg)))


@handles("LOAD_DEREF")
def _load_deref(b: Block, instr: Instr) -> None:
    if b.scope.parent is None:
        b.push(b.load(instr.arg))
        return
    function = b.scope.function
    assert function is not None
    number = function.__code__.co_freevars.index(instr.arg)
    try:
        found = (function.__closure__ or ())[number].cell_contents
    except ValueError as error:
        raise Stop(f"{instr.arg} has no value") from error
    b.push(_looked_up(b, function, number, found, instr.arg))


@handles("STORE_FAST")
def _store_fast(b: Block, instr: Instr) -> None:
    slot, value = b.scope.slot(instr.arg), b.pop()
    try:
        value = _to_store(b, slot, value)
    except Stop:
        owners.drop(b, value)
        raise
    b.store(slot, value)
    owners.note_store(b, slot, value)
    b.effect()


def _to_store(b: Block, slot: str, value: Value) -> Value:
    """What a local holds of ``value``."""
    _check_names(b)
    if value.kind.family == "tuple":
        value = _named_tuple(b, value)
    if is_named_view(value) and value.fact != slot:
        raise Stop("a second name for a view")
    if value.kind.family == "vector":
        return rows.to_store(b, slot, value)
    if rows.is_on_stack(b, slot):
        raise Stop("a vector whose name goes to another value")
    return lists.made(b, value) if value.kind.family == "pending" else value


def _named_tuple(b: Block, value: Value) -> Value:
    """A tuple as a local holds it."""
    if has_tuple(value.kind, "h"):
        raise Stop("a second name for a tuple")
    if has_tuple(value.kind, "P"):
        if b.walker.removes_items:
            raise Stop("a name for an item of a list that changes")
        b.walker.names_items = True
    return named(value)


def _check_names(b: Block) -> None:
    """Before an effect: who leaves behind it finds what is on the stack, which is to be no second object."""
    if any(has_tuple(value.kind, "h") or is_named_view(value) for value in b.stack):
        raise Stop("a tuple or a view that has a name in the midst of a statement")


@handles("DELETE_FAST")
def _delete_fast(b: Block, instr: Instr) -> None:
    slot = b.scope.slot(instr.arg)
    b.load(slot)
    if b.scope.parent is None:
        b.line(f"tag_{clean(slot)} = {TAG_UNBOUND};")
    b.env[slot] = UNBOUND_VALUE
    owners.note_store(b, slot, None)
    b.effect()


@handles("LOAD_GLOBAL")
def _load_global(b: Block, instr: Instr) -> None:
    name, namespace = instr.arg, b.scope.namespace
    if name in namespace:
        found = namespace[name]
    else:
        found = vars(builtins).get(name, b)
        if found is b:
            raise Stop(f"{name} is not defined")
    b.push(_looked_up(b, namespace, name, found, name))


def _looked_up(b: Block, holder: object, key: str | int, found: object, name: str) -> Value:
    if not is_let_go(found):
        raise Stop(f"the variable {name}")
    b.walker.assume(holder, key, found)
    return _global(b, found, name)


def _global(b: Block, found: object, name: str) -> Value:
    plain = (int, float, bool, type(None), str, types.ModuleType, types.FunctionType, type)
    if issubclass(type(found), plain) or callable(found):
        return b.walker.constant(found)
    raise Stop(f"the global variable {name}")


@handles("LOAD_ATTR", "LOAD_METHOD")
def _load_attr(b: Block, instr: Instr) -> None:
    value = b.pop()
    holder = value.kind.detail
    if value.kind.family == "constant" and issubclass(type(holder), (types.ModuleType, type)):
        found = vars(holder).get(instr.arg, b)
        if found is b or not issubclass(type(holder), types.ModuleType):
            raise Stop(f"the attribute {instr.arg}")
        b.push(_looked_up(b, holder, instr.arg, found, instr.arg))
        return
    b.push(arrays.attribute(b, value, instr.arg))


@handles("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE")
def _pop_jump_if(b: Block, instr: Instr) -> None:
    value = b.pop()
    condition = b.truth(value)
    if instr.op == "POP_JUMP_IF_FALSE":
        condition = {"true": "false", "false": "true"}.get(condition, f"!({condition})")
    _branch(b, instr, condition, value)


@handles("POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")
def _pop_jump_if_none(b: Block, instr: Instr) -> None:
    kind = b.pop().kind
    if kind.family == "opaque":
        raise Stop("an object of an unknown type")
    is_none = kind.family == "none"
    _branch(b, instr, "true" if is_none == (instr.op == "POP_JUMP_IF_NONE") else "false")


def _branch(b: Block, instr: Instr, condition: str, value: Value = NONE_VALUE) -> None:
    """Go to the instruction's target where ``condition`` holds, else on. ``value``: whose truth it is."""
    b.done = True
    if condition == "true":
        b.line(b.goto(instr.arg))
        return
    jumps_if = instr.op == "POP_JUMP_IF_TRUE"
    if condition != "false":
        b.line(f"if ({condition}) {{ {b.goto_where(instr.arg, value, jumps_if)} }}")
    b.line(b.goto_where(b.index + 1, value, not jumps_if))


@handles("JUMP", "JUMP_NO_INTERRUPT")
def _jump(b: Block, instr: Instr) -> None:
    b.done = True
    b.line(b.goto(instr.arg))


@handles("GET_ITER")
def _get_iter(b: Block, instr: Instr) -> None:
    value = b.pop()
    b.push(iterators.held_iterator(b, value))


@handles("FOR_ITER")
def _for_iter(b: Block, instr: Instr) -> None:
    value = b.stack[-1]
    if value.kind.family != "iter":
        raise Stop(f"iteration over {value.kind}")
    _check_names(b)
    depth = len(b.stack) - 1
    detail: IterDetail = value.kind.detail
    if detail.known is not None:
        _next_known(b, instr, value)
        return
    current, end, step = value.parts[:3]
    order = {0: "!=", 1: "<", -1: ">"}[detail.sign]
    after = b.goto(instr.arg, b.stack[:-1])
    if b.index == b.version.index and is_leaf(b.scope, b.index, value.kind):
        _count_in_advance(b, value, order, after)
    else:
        b.line(f"if (!({current} {order} {end})) {{ {after} }}")
    item = b.temp("i64", current)
    advance = f"{current} += {detail.step or step};"
    low, high = (0 if detail.nonnegative else -LARGEST), LARGEST if detail.source is None else LARGEST_AXIS
    fact = symbol(("item", depth)) if detail.sign else None
    number = Value(INT, (item,), fact, low, high)
    if detail.source is not None:
        number = iterators.item(b, Value(detail.source, value.parts[3:]), number)
    b.line(advance)
    b.push(number)
    b.effect()


def _next_known(b: Block, instr: Instr, value: Value) -> None:
    """A step of a loop that is unrolled, or its end."""
    detail: IterDetail = value.kind.detail
    at, end = detail.known  # type: ignore[misc]
    if at == end:
        b.done = True
        b.line(b.goto(instr.arg, b.stack[:-1]))
        return
    number = Value(INT, (int_literal(at),), Form((), at), at, at)
    if detail.source is not None:
        number = iterators.item(b, Value(detail.source, value.parts[3:]), number)
    after = at + detail.step
    b.line(f"{value.parts[0]} = {int_literal(after)};")
    b.stack[-1] = Value(iter_kind(detail._replace(known=(after, end))), value.parts)
    b.push(number)
    b.effect()


def _is_own(b: Block) -> bool:
    return b.scope.parent is None and b.index == b.walker.subject.loop.header


def _count_in_advance(b: Block, value: Value, order: str, after: str) -> None:
    """A loop with no loop inside takes from the budget for many steps at once, and asks behind each step for
    the next: one loop with one way back for the C++ compiler."""
    detail: IterDetail = value.kind.detail
    current, end, step = value.parts[:3]
    stop = b.walker.variable(stop_of(len(b.stack) - 1), "i64")
    number = b.version.number
    size = f"{abs(detail.step) * SOFT_BUDGET}LL" if detail.step else f"{step} * {SOFT_BUDGET}"
    if detail.step and detail.sign < 0:
        size = f"-{size}"
    far = ">" if detail.sign > 0 else "<"
    b.version.entry = [
        f"{stop} = {end} - {current} {far} {size} ? {current} + {size} : {end};",
        f"budget -= ({stop} - {current}) / {detail.step or step};",
        f"if (!({current} {order} {stop})) goto done{number};",
    ]
    paused = b.pause_label(b.scope, b.index, b.stack)
    limit = HARD_BUDGET if _is_own(b) else 0
    again = f"if (budget < {limit}) goto {paused}; goto enter{number};"
    b.version.tail = [
        f"next{number}: if ({current} {order} {stop}) goto block{number};",
        f"done{number}: if ({current} {order} {end}) {{ {again} }} {after}",
    ]


@handles("BUILD_TUPLE")
def _build_tuple(b: Block, instr: Instr) -> None:
    items = b.stack[len(b.stack) - instr.arg :]
    del b.stack[len(b.stack) - instr.arg :]
    if any(value.kind.family in ("iter", "source", "vector", "pending") for value in items):
        raise Stop("an iterator or a vector in a tuple")
    if any(has_tuple(value.kind, "h") or is_named_view(value) for value in items):
        raise Stop("a tuple or a view that has a name in a tuple")
    b.push(TupleValue(items))


@handles("BUILD_LIST")
def _build_list(b: Block, instr: Instr) -> None:
    items = b.stack[len(b.stack) - instr.arg :]
    del b.stack[len(b.stack) - instr.arg :]
    b.push(lists.pending(items))


@handles("BUILD_SLICE")
def _build_slice(b: Block, instr: Instr) -> None:
    items = b.stack[len(b.stack) - instr.arg :]
    del b.stack[len(b.stack) - instr.arg :]
    b.push(slices.build(b, items))


@handles("UNPACK_SEQUENCE")
def _unpack(b: Block, instr: Instr) -> None:
    value = b.pop()
    if value.kind.family == "tuple" and len(value.kind.detail) == instr.arg:
        items = items_of(value)
    elif rows.is_row(value):
        items = rows.elements(b, value)
        if len(items) != instr.arg:
            raise Stop("unpacking")
    elif value.kind.family == "array" and value.kind.detail.ndim == 1:
        b.check(f"{value.parts[1]} == {instr.arg}", "unpacking")
        items = [arrays.element(b, value, [b.walker.constant(k)]) for k in range(instr.arg)]
    else:
        raise Stop(f"unpacking {value.kind}")
    b.stack.extend(reversed(items))


@handles("BINARY_SUBSCR")
def _binary_subscr(b: Block, instr: Instr) -> None:
    index = b.pop()
    value = b.pop()
    if value.kind.family == "tuple" and index.constant is not None:
        items = items_of(value)
        if -len(items) <= index.constant < len(items):
            b.push(items[index.constant])
            return
    if slices.is_slice(index):
        b.push(slices.view(b, value, index))
        return
    if lists.is_mixed(b, value):
        b.push(lists.mixed_element(b, value, index, lambda item: b.goto(b.index + 1, [*b.stack, item])))
        return
    place = rows if value.kind.family == "vector" else arrays
    b.push(place.element(b, value, _positions(index)))


def _positions(index: Value) -> list[Value]:
    return items_of(index) if index.kind.family == "tuple" else [index]


@handles("STORE_SUBSCR")
def _store_subscr(b: Block, instr: Instr) -> None:
    index, target, value = b.pop(), b.pop(), b.pop()
    if b.scope.parent is not None and not arrays.is_place(target, _positions(index)):
        raise Stop(f"a function that writes to {target.kind}")
    _check_names(b)
    if slices.is_slice(index):
        slices.store(b, target, index, value)
        b.effect()
        return
    place = arrays if target.kind.family != "vector" and not rows.is_row_of(target, index) else rows
    place.store(b, target, _positions(index), value)
    b.effect()


@handles("BINARY_OP")
def _binary_op(b: Block, instr: Instr) -> None:
    right, left = b.pop(), b.pop()
    if "pending" in (left.kind.family, right.kind.family) and instr.arg == "*":
        b.push(lists.repeated(b, *((left, right) if left.kind.family == "pending" else (right, left))))
        return
    if rows.is_row(left) or rows.is_row(right):
        found = rows.binary(b, instr.arg, left, right)
        b.push(Value(found.kind, found.parts))  # in place it goes to the name that it has
        if instr.arg.endswith("=") and rows.is_row(left):
            b.effect()
        return
    b.push(_meaning(left, right).binary(b, instr.arg.removesuffix("="), left, right))


def _meaning(*values: Value) -> Any:
    """The module that knows operators on these values."""
    if any(map(complexes.is_complex, values)):
        return complexes
    return texts if all(map(texts.is_text, values)) else arithmetic


@handles("COMPARE_OP")
def _compare_op(b: Block, instr: Instr) -> None:
    right, left = b.pop(), b.pop()
    if left.kind.family == right.kind.family == "tuple":
        b.push(arithmetic.compare_tuples(b, instr.arg, left, right))
        return
    b.push(_meaning(left, right).compare(b, instr.arg, left, right))


@handles("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
def _unary(b: Block, instr: Instr) -> None:
    value = b.pop()
    if rows.is_row(value):
        b.push(rows.unary(b, instr.op, value))
        return
    b.push((complexes if complexes.is_complex(value) else arithmetic).unary(b, instr.op, value))


@handles("UNARY_NOT", "TO_BOOL")
def _not(b: Block, instr: Instr) -> None:
    value = b.pop()
    if instr.op == "TO_BOOL" and value.kind == BOOL:
        b.push(value)
        return
    condition = b.truth(value)
    if condition in ("true", "false"):
        b.push(b.walker.constant((condition == "true") == (instr.op == "TO_BOOL")))
        return
    b.push(b.new(BOOL, condition if instr.op == "TO_BOOL" else f"!({condition})"))


@handles("IS_OP")
def _is_op(b: Block, instr: Instr) -> None:
    right, left = b.pop(), b.pop()
    kinds: list[Kind] = [left.kind, right.kind]
    if "none" not in (kinds[0].family, kinds[1].family) or any(k.family == "opaque" for k in kinds):
        raise Stop("the identity of objects")
    same = (kinds[0].family == kinds[1].family) != instr.arg
    b.push(b.walker.constant(same))


@handles("CONTAINS_OP")
def _contains(b: Block, instr: Instr) -> None:
    container, value = b.pop(), b.pop()
    if texts.is_text(container) and texts.is_text(value):
        b.push(texts.contains(b, container, value, instr.arg))
        return
    if container.kind.family == "list":
        b.push(lists.contains(b, container, value, instr.arg))
        return
    items = items_of(container) if container.kind.family == "tuple" else []
    plain = (INT, BOOL)
    if value.kind not in plain or not items or any(item.kind not in plain for item in items):
        raise Stop("a search")
    found = " || ".join(f"{value.text} == {item.text}" for item in items)
    b.push(b.new(BOOL, f"!({found})" if instr.arg else found))


@handles("CALL")
def _call(b: Block, instr: Instr) -> None:
    count, names = instr.arg
    args = b.stack[len(b.stack) - count :]
    function = b.stack[len(b.stack) - count - 1]
    is_effect = calls.has_effect(function)
    if is_effect:
        _check_names(b)
    result = calls.call(b, function, args, names, count + 1)
    if result is not None:
        del b.stack[len(b.stack) - count - 1 :]
        b.push(result)
        if is_effect:
            b.effect()


@handles("RETURN_VALUE")
def _return_value(b: Block, instr: Instr) -> None:
    if b.scope.parent is None:
        raise Stop("return")
    calls.give_back(b)


def begin(walker: Walker, place: int, stack: list[Value], env: dict[str, Value]) -> str:
    """Statements that enter the loop at ``place``; makes the first version."""
    first = Version(-1, walker.root, place, tuple(stack), env, None)
    block = Block(walker, first)
    block.lines.append(block.goto(place))
    return "\n  ".join(block.lines)
