"""Whether a loop reckons with single numbers only, told from its code and what its variables hold.

An abstract interpretation over kinds of values: numbers, arrays by their number of dimensions, sequences of a
kind, known objects. Operations on whole arrays, and whatever is not understood, say no: such a loop is
captured as any other. A mistake costs time alone.
"""

from __future__ import annotations

import builtins
import cmath
import contextlib
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...python_code.flow import successors
from ...python_code.instr import JUMPS, CanonicalCode, Instr, pops_pushes
from ...python_code.loop_find import Loop
from ...python_code.versions import decode
from ..code.draws import GENERATORS, METHODS, is_draw
from ..kinds import heaps
from ..kinds.creation import is_creation
from ..kinds.kinds import SHORT, is_plain_function

NUMBER: tuple[Any, ...] = ("number",)
UNKNOWN: tuple[Any, ...] = ("unknown",)
Kind = tuple[Any, ...]
_SCALARS = (int, float, bool, complex, type(None), np.generic)
_LOOKED_AT = 8  # items of a list or tuple
_DEEPEST = 3  # functions called by functions
_FAR = 1 << 62  # a length that is not known
_SHORT_SUM = 256  # longer rows are worth compiling as arrays
_SLICE: tuple[Any, ...] = ("slice",)
_FEW_STEPS = 20_000  # instructions looked at
_ON_NUMBERS = frozenset({"BINARY_OP", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT"})


class NotScalar(Exception):
    """The loop works on whole arrays, or it is not understood."""


def kind_of(obj: Any, depth: int = 2) -> Kind:
    """The kind of an object."""
    if issubclass(type(obj), _SCALARS):
        return NUMBER
    if type(obj) is np.ndarray:
        return array_kind(obj.shape) if obj.ndim and obj.dtype.kind in "biufc" else UNKNOWN
    if type(obj) in (str, bytes, bytearray):
        return ("items", NUMBER)  # characters count as numbers
    if type(obj) is range:
        return ("items", NUMBER)
    if type(obj) in (list, tuple) and depth:
        return of_items([kind_of(item, depth - 1) for item in obj[:_LOOKED_AT]])
    return ("object", obj)


def _is_comparable(kind: Kind) -> bool:
    """Whether it is a number, a string or a tuple of numbers."""
    return kind in (NUMBER, ("items", NUMBER)) or (kind[0] == "tuple" and _are_numbers(kind[1:]))


def _are_numbers(kinds: Sequence[Kind]) -> bool:
    return all(kind == NUMBER for kind in kinds)


def array_kind(shape: Sequence[Any]) -> Kind:
    """Arrays by their number of dimensions, and the length of the last one where that is short."""
    last = shape[-1]
    return ("array", len(shape), last if type(last) is int else _FAR)


def _is_row(kind: Kind) -> bool:
    return kind[0] == "array" and kind[1] == 1 and 0 < kind[2] <= SHORT


def of_items(kinds: Sequence[Kind]) -> Kind:
    """The kind of a sequence of items of these kinds."""
    if not kinds:
        return UNKNOWN
    return ("items", kinds[0]) if all(same_kind(kind, kinds[0]) for kind in kinds) else UNKNOWN


def same_kind(a: Kind, b: Kind) -> bool:
    """Whether two kinds are equal; objects are by identity (their ``==`` is the program's)."""
    if a is b or a[0] == b[0] == "object":
        return a is b or a[1] is b[1]
    if a[0] != b[0] or len(a) != len(b):
        return False
    return all(same_kind(x, y) if type(x) is tuple else x == y for x, y in zip(a[1:], b[1:]))


def is_scalar_loop(
    code: CanonicalCode,
    loop: Loop,
    local: Mapping[str, Kind],
    stack: Sequence[Kind],
    namespace: Mapping[str, Any],
) -> bool:
    """Whether every step of ``loop`` works on numbers. ``local`` and ``stack``: kinds before its header."""
    if any(code.instructions[index].op in _STEPS for index in loop.body):
        walk = _Walk(code, namespace, loop.body, 0, [_FEW_STEPS])
        try:
            walk.run(loop.header, dict(local), list(stack))
        except NotScalar:
            return False
        return True
    return False


_STEPS = frozenset({"BINARY_OP", "BINARY_SUBSCR", "STORE_SUBSCR", "COMPARE_OP", "CALL"})


def _join(a: Kind, b: Kind) -> Kind:
    return a if same_kind(a, b) else UNKNOWN


class _Walk:
    """Interprets the instructions of ``region`` (all of them where it is ``None``)."""

    def __init__(
        self,
        code: CanonicalCode,
        namespace: Mapping[str, Any],
        region: frozenset[int] | None,
        depth: int,
        budget: list[int],
    ) -> None:
        self.code = code
        self.namespace = namespace
        self.region = region
        self.depth = depth
        self.budget = budget
        self.result: Kind | None = None
        self.states: dict[int, tuple[dict[str, Kind], list[Kind]]] = {}

    def run(self, start: int, local: dict[str, Kind], stack: list[Kind]) -> Kind:
        """The kind of what is returned (of a function)."""
        work = [(start, local, stack)]
        while work:
            index, local, stack = work.pop()
            if self.region is not None and index not in self.region:
                continue
            merged = self._merged(index, local, stack)
            if merged is None:
                continue
            self.budget[0] -= 1
            if self.budget[0] < 0:
                raise NotScalar
            local, stack = dict(merged[0]), list(merged[1])
            instr = self.code.instructions[index]
            for after in successors(instr):
                now, values = dict(local), list(stack)
                self._step(instr, now, values, instr.op in JUMPS and after == instr.arg)
                work.append((after, now, values))
            if instr.op == "RETURN_VALUE":
                self.result = stack[-1] if self.result is None else _join(self.result, stack[-1])
        return NUMBER if self.result is None else self.result

    def _merged(
        self, index: int, local: dict[str, Kind], stack: list[Kind]
    ) -> tuple[dict[str, Kind], list[Kind]] | None:
        """The state to go on with; ``None`` where it is known."""
        known = self.states.get(index)
        if known is not None:
            joined = {name: _join(known[0].get(name, kind), kind) for name, kind in local.items()}
            joined.update({name: kind for name, kind in known[0].items() if name not in local})
            values = [_join(a, b) for a, b in zip(known[1], stack)]
            if joined == known[0] and values == known[1]:
                return None
            local, stack = joined, values
        self.states[index] = (local, stack)
        return self.states[index]

    def _step(self, instr: Instr, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        handler = _HANDLERS.get(instr.op)
        if handler is not None:
            handler(self, instr.arg, local, stack, jump)
            return
        if instr.op in _ON_NUMBERS:
            count = 1 if instr.op.startswith("UNARY") else 2
            taken = [stack.pop() for _ in range(count)]
            if instr.op == "COMPARE_OP" and all(map(_is_comparable, taken)):
                stack.append(NUMBER)
                return
            rows = [kind for kind in taken if kind != NUMBER]
            if instr.arg == "*" and len(rows) == 1 and rows[0] == ("items", NUMBER):
                stack.append(rows[0])  # [0] * n
                return
            if any(not _is_row(kind) or kind != rows[0] for kind in rows):
                raise NotScalar
            if rows and instr.op == "COMPARE_OP":
                raise NotScalar
            stack.append(rows[0] if rows else NUMBER)
            return
        if instr.op not in _PLAIN:
            raise NotScalar
        pops, pushes = pops_pushes(instr.op, instr.arg, jump)
        del stack[len(stack) - pops :]
        stack += [NUMBER] * pushes

    # -- instructions with a meaning of their own -----------------------------------------------------
    def load_fast(self, name: str, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        stack.append(local.get(name, UNKNOWN))

    def contains(self, arg: object, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        owner, value = stack.pop(), stack.pop()
        if owner != ("items", NUMBER) or value != NUMBER:
            raise NotScalar
        stack.append(NUMBER)

    def store_fast(self, name: str, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        local[name] = stack.pop()

    def load_const(self, obj: object, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        stack.append(NUMBER if type(obj) is str and len(obj) == 1 else kind_of(obj))

    def load_global(self, name: str, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        missing = getattr(builtins, name, None)
        stack.append(kind_of(self.namespace.get(name, missing)))

    def copy(self, count: int, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        stack.append(stack[-count])

    def swap(self, count: int, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        stack[-1], stack[-count] = stack[-count], stack[-1]

    def load_attr(self, name: str, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        owner = stack.pop()
        if owner[0] == "array":
            if name == "sum" and owner[1] == 1 and owner[2] <= _SHORT_SUM:
                stack.append(("object", complex))  # called it gives a number
                return
            if name == "shape":
                stack.append(("tuple", *[NUMBER] * owner[1]))
                return
            if name == "copy":
                stack.append(("method", name, owner))
                return
            if name not in _ATTRIBUTES:
                raise NotScalar
            stack.append(_ATTRIBUTES[name])
        elif owner[0] == "items" and name in _METHODS:
            stack.append(("method", name, owner if name == "copy" else owner[1]))
        elif owner == NUMBER and name in ("real", "imag"):
            stack.append(NUMBER)
        elif owner == NUMBER and name in ("conjugate", "bit_length", "bit_count"):
            stack.append(("object", complex))  # called without arguments it gives a number, too
        elif owner[0] == "object" and type(owner[1]) in GENERATORS and name in METHODS:
            stack.append(("object", complex))  # called it gives a number
        elif owner[0] == "object" and type(owner[1]) is types.ModuleType:
            stack.append(kind_of(vars(owner[1]).get(name)))
        else:
            raise NotScalar

    def binary_subscr(self, arg: object, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        key, owner = stack.pop(), stack.pop()
        stack.append(_element(owner, key))

    def store_subscr(self, arg: object, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        key, owner, value = stack.pop(), stack.pop(), stack.pop()
        place = _element(owner, key)
        if key == _SLICE and owner[0] == "array" and owner[1] == 1 and value == NUMBER:
            return
        if not (place == NUMBER or _is_row(place)) or value not in (NUMBER, place):
            raise NotScalar

    def build_tuple(self, count: int, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        items = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        stack.append(("tuple", *items))

    def build_list(self, count: int, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        items = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        flat = [part for item in items for part in (item[1:] if item[0] == "tuple" else (item,))]
        if any(part != NUMBER for part in flat):
            raise NotScalar
        stack.append(of_items(items or [NUMBER]))

    def build_slice(self, count: int, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        if any(stack.pop() != NUMBER for _ in range(count)):
            raise NotScalar
        stack.append(_SLICE)

    def unpack_sequence(self, count: int, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        owner = stack.pop()
        if owner[0] == "tuple" and len(owner) == count + 1:
            stack += reversed(owner[1:])
        elif owner[0] == "items":
            stack += [owner[1]] * count
        elif owner == NUMBER or _is_row(owner):  # a number: an item of what was empty
            stack += [NUMBER] * count
        else:
            raise NotScalar

    def get_iter(self, arg: object, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        owner = stack.pop()
        if owner[0] == "array":
            owner = ("items", _element(owner, NUMBER))
        if owner[0] != "items":
            raise NotScalar
        stack.append(owner)

    def for_iter(self, arg: object, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        if jump:
            stack.pop()
        elif stack[-1][0] == "items":
            stack.append(stack[-1][1])
        else:
            raise NotScalar

    def call(self, arg: Any, local: dict[str, Kind], stack: list[Kind], jump: bool) -> None:
        count, names = arg
        args = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        callee = stack.pop()
        if callee[0] == "method" and not names:
            stack.append(_changed(callee, args))
            return
        if callee[0] != "object":
            raise NotScalar
        stack.append(self._called(callee[1], args, names))

    def _called(self, function: Any, args: list[Kind], names: tuple[str, ...]) -> Kind:
        if is_creation(function) and args:
            return _created(function, args)
        if type(function) is types.FunctionType:
            return self._followed(function, args, names)
        if names or not (is_plain_function(function) or is_draw(function)):
            raise NotScalar
        numbers = _are_numbers(args)
        if function is range and numbers:
            return ("items", NUMBER)
        if function is len:
            return NUMBER
        if function in (sum, min, max, sorted) and args == [("items", NUMBER)]:
            return args[0] if function is sorted else NUMBER
        if function in heaps.FUNCTIONS and args and args[0][0] == "items":
            return _changed(("method", "append" if args[1:] else "pop", args[0][1]), args[1:])
        if function in (enumerate, zip) and args:
            items = [_element(kind, NUMBER) for kind in args]
            return ("items", ("tuple", *([NUMBER] if function is enumerate else []), *items))
        if function in (np.dot, np.linalg.norm, np.sum) and args and all(map(_is_row, args)):
            return NUMBER
        gives_number = (
            is_draw(function) or isinstance(function, np.ufunc) or function in _CALLED or _is_math(function)
        )
        gives_number = gives_number or (isinstance(function, type) and issubclass(function, np.generic))
        if not gives_number or not numbers:
            raise NotScalar
        return NUMBER

    def _followed(self, function: Any, args: list[Kind], names: tuple[str, ...]) -> Kind:
        raw = function.__code__
        plain = not names and raw.co_argcount == len(args)
        if not plain or raw.co_kwonlyargcount or raw.co_flags & 0x2AC or self.depth >= _DEEPEST:
            raise NotScalar
        walk = _Walk(decode(raw), function.__globals__, None, self.depth + 1, self.budget)
        local = dict(zip(raw.co_varnames, args))
        for name, cell in zip(raw.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # an empty one
                local[name] = kind_of(cell.cell_contents)
        return walk.run(0, local, [])


def _created(function: object, args: list[Kind]) -> Kind:
    """The kind of an array that ``np.zeros`` and such make."""
    shape = args[0]
    if shape[0] == "array":
        return shape
    if shape == NUMBER:
        return _ROW if function is np.zeros and len(args) == 1 else ("array", 1, _FAR)
    if shape[0] != "tuple" or any(part != NUMBER for part in shape[1:]):
        raise NotScalar
    return ("array", len(shape) - 1, _FAR)


def _changed(method: Kind, args: list[Kind]) -> Kind:
    """What ``append`` or ``pop`` of a list gives."""
    name: str = method[1]
    result: Kind = method[2]
    if name == "append":
        if len(args) != 1 or not _are_numbers(args[0][1:] if args[0][0] == "tuple" else args):
            raise NotScalar
        return NUMBER
    if args and (args != [NUMBER] or name == "copy"):
        raise NotScalar
    if name in ("sort", "reverse"):
        return NUMBER
    return result


def _is_math(function: object) -> bool:
    if type(function) is not types.BuiltinFunctionType:
        return False
    return function.__self__ is math or function.__self__ is cmath


def _element(owner: Kind, key: Kind) -> Kind:
    """The kind of ``owner[key]``."""
    if owner[0] == "array":
        keys = key[1:] if key[0] == "tuple" else (key,)
        if _SLICE in keys[1:]:
            keys = keys[: keys.index(_SLICE, 1)]
        if keys == (_SLICE,):
            return ("array", owner[1], owner[2] if owner[1] > 1 else 0)
        if any(part != NUMBER for part in keys) or len(keys) > owner[1]:
            raise NotScalar
        return NUMBER if len(keys) == owner[1] else ("array", owner[1] - len(keys), owner[2])
    if key != NUMBER:
        raise NotScalar
    if owner[0] == "items":
        found: Kind = owner[1]
        return found
    if owner[0] == "tuple" and all(same_kind(item, owner[1]) for item in owner[1:]):
        return owner[1]
    raise NotScalar


_ROW = ("array", 1, 3)
_METHODS = ("append", "pop", "sort", "reverse", "copy")
_ATTRIBUTES: dict[str, Kind] = {
    "size": NUMBER,
    "ndim": NUMBER,
    "dtype": ("object", float),
}
_CALLED = frozenset({ord, chr, abs, int, float, bool, complex, round, pow, min, max})
# they take numbers, or nothing, and give numbers, or nothing
_PLAIN = frozenset(
    {
        "NOP",
        "RESUME",
        "POP_TOP",
        "JUMP",
        "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_TRUE",
        "POP_JUMP_IF_NONE",
        "POP_JUMP_IF_NOT_NONE",
        "UNARY_NOT",
        "IS_OP",
        "TO_BOOL",
        "RETURN_VALUE",
        "RAISE_VARARGS",
        "LOAD_ASSERTION_ERROR",
    }
)
_Handler = Callable[[_Walk, Any, "dict[str, Kind]", "list[Kind]", bool], None]
_HANDLERS: dict[str, _Handler] = {
    "LOAD_FAST": _Walk.load_fast,
    "LOAD_DEREF": _Walk.load_fast,
    "CONTAINS_OP": _Walk.contains,
    "STORE_FAST": _Walk.store_fast,
    "LOAD_CONST": _Walk.load_const,
    "LOAD_GLOBAL": _Walk.load_global,
    "COPY": _Walk.copy,
    "SWAP": _Walk.swap,
    "LOAD_ATTR": _Walk.load_attr,
    "LOAD_METHOD": _Walk.load_attr,
    "BINARY_SUBSCR": _Walk.binary_subscr,
    "STORE_SUBSCR": _Walk.store_subscr,
    "BUILD_TUPLE": _Walk.build_tuple,
    "BUILD_LIST": _Walk.build_list,
    "BUILD_SLICE": _Walk.build_slice,
    "UNPACK_SEQUENCE": _Walk.unpack_sequence,
    "GET_ITER": _Walk.get_iter,
    "FOR_ITER": _Walk.for_iter,
    "CALL": _Walk.call,
}
