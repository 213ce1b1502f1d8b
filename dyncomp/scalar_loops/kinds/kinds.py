"""Kinds: the types that generated code tells apart, and how their values cross its border.

A value of a kind is a fixed number of C variables, its *parts*. Kinds are equal when their codes are; a
code is
part of the names of variables.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...python_code.loops import UNBOUND
from ..analysis.affine import Form
from ..analysis.ranges import NOTHING, Below
from ..entry.references import refer, referent

Box = Callable[[Sequence[Any], "Objects"], Any]
"""Makes the Python object from the values of the parts and the objects of the run."""


class Objects(NamedTuple):
    """What boxing may need: the objects given at entry, and the constants of the loop."""

    given: Sequence[Any]
    constants: Sequence[Any]


class Kind:
    """One type. ``family`` groups kinds; ``parts`` are (suffix, C type); ``detail`` is the family's own."""

    __slots__ = ("family", "code", "parts", "detail", "box", "formats")

    def __init__(
        self, family: str, code: str, parts: tuple[tuple[str, str], ...], box: Box, detail: Any = None
    ) -> None:
        self.family = family
        self.code = code
        self.parts = parts
        self.detail = detail
        self.box = box
        self.formats = "".join(_FORMATS[ctype] for _, ctype in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind) and other.code == self.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return f"<{self.code}>"


# how a part lies in the buffer between Python and generated code: eight bytes each
_FORMATS = {
    "i64": "q", "u64": "Q", "i32": "q", "u32": "q", "i16": "q", "u16": "q", "i8": "q", "u8": "q", "bool": "q",
    "double": "d", "float": "d", "char*": "q",
}  # fmt: skip


def _first(values: Sequence[Any], objects: Objects) -> Any:
    return values[0]


def _as_bool(values: Sequence[Any], objects: Objects) -> bool:
    return values[0] != 0


def _given(values: Sequence[Any], objects: Objects) -> Any:
    return objects.given[values[0]]


def object_at(address: int) -> Any:
    """The object at an address, which something keeps alive."""
    return ctypes.cast(address, ctypes.py_object).value


INT = Kind("int", "i", (("", "i64"),), _first)
FLOAT = Kind("float", "f", (("", "double"),), _first)
BOOL = Kind("bool", "b", (("", "bool"),), _as_bool)
NONE = Kind("none", "n", (), lambda values, objects: None)
OPAQUE = Kind("opaque", "o", (("_id", "i64"),), _given)
"""An object of the program that generated code only carries around."""
UNBOUND_KIND = Kind("unbound", "u", (), lambda values, objects: UNBOUND)

CHAR = Kind("char", "ch", (("", "i64"),), lambda values, objects: chr(values[0]))
"""A string of one character."""


def _made_at_entry(values: Sequence[Any], objects: Objects) -> Any:
    return objects.given[values[1]]


def _made_of_given(values: Sequence[Any], objects: Objects) -> Any:
    return objects.given[values[2]]


_BUFFER = (("_data", "char*"), ("_n", "i64"), ("_id", "i64"))
TEXTS = {width: Kind("text", f"tx{width}", _BUFFER, _made_of_given, width) for width in (1, 2, 4)}
"""Strings given at entry, by the size of what a character is kept in. Parts: where these are, how many, the
number of the object."""
BYTES = {
    is_array: Kind("bytes", f"by{is_array:d}", _BUFFER, _made_of_given, is_array)
    for is_array in (False, True)
}
"""The same for bytes and bytearrays."""

# NumPy's scalar types: code in kinds, dtype, C type
_NUMPY = {
    "b1": (np.bool_, "bool"),
    "i1": (np.int8, "i8"),
    "i2": (np.int16, "i16"),
    "i4": (np.int32, "i32"),
    "i8": (np.int64, "i64"),
    "u1": (np.uint8, "u8"),
    "u2": (np.uint16, "u16"),
    "u4": (np.uint32, "u32"),
    "u8": (np.uint64, "u64"),
    "f4": (np.float32, "float"),
    "f8": (np.float64, "double"),
}


def _make_scalar(code: str) -> Kind:
    scalar, ctype = _NUMPY[code]
    return Kind("numpy", code, (("", ctype),), lambda values, objects: scalar(values[0]), np.dtype(scalar))


NUMPY = {code: _make_scalar(code) for code in _NUMPY}
NP_BOOL, NP_FLOAT = NUMPY["b1"], NUMPY["f8"]

_COMPLEX = (("_re", "double"), ("_im", "double"))
COMPLEX = Kind("complex", "c", _COMPLEX, lambda values, objects: complex(*values))
NP_COMPLEX = Kind(
    "complex",
    "c16",
    _COMPLEX,
    lambda values, objects: np.complex128(complex(*values)),
    np.dtype(np.complex128),
)
NUMPY["c16"] = NP_COMPLEX
KIND_OF_TYPE: dict[type, Kind] = {
    int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, np.complex128: NP_COMPLEX, type(None): NONE,
}  # fmt: skip
KIND_OF_TYPE.update({scalar: NUMPY[code] for code, (scalar, _) in _NUMPY.items()})
"""The kinds of numbers by their exact types."""

LARGEST = 2**31
"""Ranges beyond this, either way, are left to plain Python: sums and products of two of their numbers fit."""
LARGEST_AXIS = 2**40
_LONGEST_STEP = 2**20
MOST_AXES = 6


SHORT = 4
"""Up to this length the last axis of an array is part of its kind."""


class ArrayDetail(NamedTuple):
    """``path``: the indices (i) and slices (s) that lead from the array given at entry to this view.
    ``last``: the length of the last axis where it is short, else 0."""

    scalar: Kind
    ndim: int
    writeable: bool
    dense: bool
    path: str
    last: int


_WORDS = {"i": 1, "s": 3}


def array_kind(code: str, ndim: int, writeable: bool, dense: bool, path: str = "", last: int = 0) -> Kind:
    """Arrays of NumPy scalars ``code``; ``dense``: the last axis is contiguous. Parts: data, sizes,
    strides in bytes (of a dense array without the last), the address of the object, and the indices that
    lead to a view."""
    name = f"a{ndim}{code}{'w' if writeable else 'r'}{'c' if dense else 's'}{path}"
    name += f"l{last}" if last else ""
    sizes = [(f"_n{k}", "i64") for k in range(ndim)]
    strides = [(f"_s{k}", "i64") for k in range(ndim - dense)]
    indices = [(f"_x{k}", "i64") for k in range(sum(_WORDS[step] for step in path))]
    parts = (("_data", "char*"), *sizes, *strides, ("_id", "i64"), *indices)

    def box(values: Sequence[Any], objects: Objects) -> Any:
        at = len(values) - len(indices)
        found = object_at(values[at - 1])
        for step in path:
            taken = values[at : at + _WORDS[step]]
            found = found[slice(*taken) if step == "s" else taken[0]]
            at += len(taken)
        return found

    return Kind("array", name, parts, box, ArrayDetail(NUMPY[code], ndim, writeable, dense, path, last))


class VectorDetail(NamedTuple):
    """``slot``: the local that holds it, None of one that was just made."""

    scalar: Kind
    size: int
    slot: str | None = None


def vector_kind(detail: VectorDetail) -> Kind:
    """Short arrays made in the loop: their elements."""
    scalar, slot = detail.scalar, detail.slot

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return np.array(values, scalar.detail)

    parts = tuple((f"_{k}", scalar.parts[0][1]) for k in range(detail.size))
    held = (
        ""
        if slot is None
        else "h" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}" for c in slot)
    )
    return Kind("vector", f"v{detail.size}{scalar.code}{held}", parts, box, detail)


class ListDetail(NamedTuple):
    """``item``: the kind that items are taken to be of; None: not known. ``depth``: how many
    indices lead from the list given at entry to this one."""

    item: Kind | None
    depth: int


def list_kind(item: Kind | None, depth: int = 0) -> Kind:
    """Lists. Parts: the object's address, that of the outermost list around it and the indices from there."""
    path = [(f"_x{k}", "i64") for k in range(depth)]

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return object_at(values[0])

    name = f"list{depth or ''}{item.code if item else 'e'}"
    return Kind("list", name, (("_p", "char*"), ("_id", "i64"), *path), box, ListDetail(item, depth))


def pending_kind(items: Sequence[Kind], is_repeated: bool) -> Kind:
    """Lists that are not made yet: their items; of a repeated one these and how often."""
    plain = tuple_kind(items)
    more = (("_count", "i64"),) if is_repeated else ()

    def box(values: Sequence[Any], objects: Objects) -> Any:
        found = list(plain.box(values, objects))
        return found * values[-1] if is_repeated else found

    return Kind("pending", f"n{is_repeated:d}{plain.code}", (*plain.parts, *more), box, tuple(items))


Access = tuple[str, int, Form]
"""An array in a local, an axis and where it is accessed; without a local: an int of 64 bits."""


class IterDetail(NamedTuple):
    """``step``: 0 for one known only at run time; ``sign``: its sign, 0 if unknown. ``nonnegative``: no
    number of it is below 0. ``facts``: the accesses that were found to be within bounds for all of its
    numbers; None: not looked at yet. ``source``: what gives the items where they are not the
    numbers themselves. ``known``: the next number and the end of a loop that is unrolled."""

    step: int
    sign: int
    nonnegative: bool
    facts: frozenset[Access] | None
    source: Kind | None = None
    known: tuple[int, int] | None = None


def iter_kind(detail: IterDetail) -> Kind:
    """Iterators over ranges: the next number, the first that is not of it any more, the step."""
    facts = detail.facts
    shown = "" if facts is None else f"k{sorted(facts)}"
    source = detail.source
    known = "u{}_{}".format(*detail.known) if detail.known is not None else ""
    name = f"r{_progress(detail)}{known}{shown}{source.code if source else ''}"
    parts = (("_cur", "i64"), ("_end", "i64"), ("_step", "i64"), *(source.parts if source else ()))

    def box(values: Sequence[Any], objects: Objects) -> Any:
        if source is None:
            return iter(range(*values))
        return source.box((values[0], *values[3:]), objects)

    return Kind("iter", name, parts, box, detail)


def source_kind(what: str, *inner: Kind) -> Kind:
    """What gives the items of a loop: see ``iterators``. Boxed with the number of items
    that it gave in front."""
    parts = [(f"_{k}{suffix}", ctype) for k, kind in enumerate(inner) for suffix, ctype in kind.parts]
    if what.startswith("enumerate"):
        parts.insert(0, ("_first", "i64"))

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return make_iterator(source, values[1:], values[0], objects)

    source = Kind("source", f"{what}_{'_'.join(k.code for k in inner)}_e", tuple(parts), box, (what, inner))
    return source


def make_iterator(source: Kind, values: Sequence[Any], position: int, objects: Objects) -> Any:
    """The iterator over a source that has given ``position`` items."""
    what, inner = source.detail
    if what == "range":
        return iter(inner[0].box(values, objects)[position:])
    if what in ("array", "items", "list", "text", "bytes"):
        made = iter(inner[0].box(values, objects))
        made.__setstate__(position)
        return made
    at = int(what.startswith("enumerate"))
    found = []
    for kind in inner:
        found.append(make_iterator(kind, values[at : at + len(kind.parts)], position, objects))
        at += len(kind.parts)
    return zip(*found) if what == "zip" else enumerate(found[0], values[0] + position)


def _progress(detail: IterDetail) -> str:
    step = detail.step or ("up" if detail.sign > 0 else "down" if detail.sign else "any")
    return f"{step}{'p' if detail.nonnegative else ''}"


def progress(step: int, start: int) -> IterDetail:
    """What is known of a range from the step and the least that its start may be."""
    known = step if abs(step) < _LONGEST_STEP else 0
    sign = (step > 0) - (step < 0)
    return IterDetail(known, sign, sign > 0 and start >= 0, None)


def range_kind(detail: IterDetail) -> Kind:
    """``range`` objects: start, stop, step, and the number of the object where it was given at entry."""
    name = f"R{_progress(detail)}"
    parts = (("_start", "i64"), ("_stop", "i64"), ("_step", "i64"), ("_id", "i64"))

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return objects.given[values[3]] if values[3] >= 0 else range(*values[:3])

    return Kind("range", name, parts, box, detail)


def tuple_kind(items: Sequence[Kind]) -> Kind:
    """Tuples of values that are in variables of their own."""
    parts = tuple((f"_{k}{suffix}", ctype) for k, kind in enumerate(items) for suffix, ctype in kind.parts)

    def box(values: Sequence[Any], objects: Objects) -> Any:
        boxed, at = [], 0
        for kind in items:
            boxed.append(kind.box(values[at : at + len(kind.parts)], objects))
            at += len(kind.parts)
        return tuple(boxed)

    return Kind("tuple", "t" + "".join(f"{kind.code}_" for kind in items) + "e", parts, box, tuple(items))


def named_tuple_kind(items: Sequence[Kind]) -> Kind:
    """Tuples made in the loop that a local holds: they get no second name, which would be another object."""
    plain = tuple_kind(items)
    return Kind("tuple", "h" + plain.code[1:], plain.parts, plain.box, plain.detail)


def given_tuple_kind(items: Sequence[Kind]) -> Kind:
    """Tuples given at entry, and constants: behind the parts of their items the number of the object, of a
    constant its complement."""
    plain = tuple_kind(items)

    def box(values: Sequence[Any], objects: Objects) -> Any:
        number = values[-1]
        return objects.given[number] if number >= 0 else objects.constants[~number]

    return Kind("tuple", "T" + plain.code[1:], (*plain.parts, ("_id", "i64")), box, plain.detail)


def item_tuple_kind(items: Sequence[Kind], depth: int) -> Kind:
    """Tuples that are items of lists: behind the parts of their items the address of the outermost list
    and the ``depth`` indices that lead from there."""
    plain = tuple_kind(items)
    path = [("_id", "i64"), *((f"_x{k}", "i64") for k in range(depth))]

    def box(values: Sequence[Any], objects: Objects) -> Any:
        found = object_at(values[-1 - depth])
        for index in values[len(values) - depth :]:
            found = found[index]
        return found

    return Kind("tuple", f"P{depth}{plain.code[1:]}", (*plain.parts, *path), box, plain.detail)


def has_tuple(kind: Kind, letter: str) -> bool:
    """Whether there is a tuple in ``kind`` that is fresh (t), named (h), given (T) or an item (P)."""
    if kind.family != "tuple":
        return False
    return kind.code[0] == letter or any(has_tuple(item, letter) for item in kind.detail)


def slice_kind(items: Sequence[Kind], step: int) -> Kind:
    """Slices of bounds (ints or None) with a known step."""
    plain = tuple_kind(items)

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return slice(*plain.box(values, objects))

    return Kind("slice", f"s{step}{plain.code}", plain.parts, box, (tuple(items), step))


def generator_kind(of: type) -> Kind:
    """NumPy's random generators of the type ``of``."""
    return Kind("generator", f"rng{of.__name__}", (("_p", "char*"), ("_id", "i64")), _made_at_entry, of)


class ConstantKind(Kind):
    """The kind of a single object, which it refers to weakly where it can (``references``)."""

    __slots__ = ("reference",)

    def __init__(self, number: int, value: object) -> None:
        super().__init__("constant", f"k{number}", (), lambda values, objects: objects.constants[number])
        self.reference = refer(value)

    @property
    def detail(self) -> Any:
        return referent(self.reference)

    @detail.setter
    def detail(self, value: object) -> None:
        """What all kinds have; ``reference`` stands for it here."""


def constant_kind(number: int, value: object) -> Kind:
    """An object known when the loop is compiled: constant ``number`` of the loop."""
    return ConstantKind(number, value)


def method_kind(array: Kind, name: str) -> Kind:
    """The bound method ``name`` of an array."""

    def box(values: Sequence[Any], objects: Objects) -> Any:
        return getattr(array.box(values, objects), name)

    return Kind("method", f"m{name}_{array.code}", array.parts, box, (array, name))


_FUNCTION_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    np.ufunc,
    type(np.zeros_like),
    type,
)


def is_plain_function(obj: object) -> bool:
    """Whether ``obj`` is a function or a class of a kind that is hashed, compared and asked for its name
    without running code of the program."""
    return any(type(obj) is known for known in _FUNCTION_TYPES)


Fact = Form | str
"""What is known of a value besides its kind: what an integer is made of; the local that holds an array."""


class Value:
    """A value in generated code: C expressions for its parts, and what is known of it at compile time.

    ``low`` and ``high`` bound an integer; ``below``: variables that keep their values, with numbers: it is
    less than each plus its number (0: it is less, 1: it is not more).
    """

    __slots__ = ("kind", "parts", "fact", "low", "high", "below")

    def __init__(
        self,
        kind: Kind,
        parts: tuple[str, ...],
        fact: Fact | None = None,
        low: int | None = None,
        high: int | None = None,
    ) -> None:
        self.kind = kind
        self.parts = parts
        self.fact = fact
        self.low = low
        self.high = high
        self.below: Below = NOTHING

    @property
    def text(self) -> str:
        return self.parts[0]

    @property
    def constant(self) -> int | None:
        """The value of an integer that is known at compile time."""
        return self.low if self.low is not None and self.low == self.high else None


class Item(Value):
    """A number read from a list: ``object`` in C, which lives as long as nothing more than the item itself is
    let go of; ``age``: of the block when it was read."""

    __slots__ = ("object", "age")

    def __init__(self, kind: Kind, parts: tuple[str, ...], item: str, age: int) -> None:
        super().__init__(kind, parts)
        self.object = item
        self.age = age


class Compared(Value):
    """A bool that tells how two ints compare."""

    __slots__ = ("op", "left", "right")

    def __init__(self, text: str, op: str, left: Value, right: Value) -> None:
        super().__init__(BOOL, (text,), None, 0, 1)
        self.op = op
        self.left = left
        self.right = right


def held(kind: Kind, parts: tuple[str, ...], fact: Fact | None) -> Value:
    """A value found in variables: an int that is known to be one number still is."""
    known = fact.offset if isinstance(fact, Form) and not fact.terms else None
    return Value(kind, parts, fact, known, known)


def moved(value: Value, parts: tuple[str, ...], fact: Fact | None) -> Value:
    """The same number in other variables, of which ``fact`` is known."""
    found = Value(value.kind, parts, fact, value.low, value.high)
    found.below = value.below
    return found


UNBOUND_VALUE = Value(UNBOUND_KIND, ())
NONE_VALUE = Value(NONE, ())


class TupleValue(Value):
    """A tuple made or read in this block: what is known of its items is still known."""

    __slots__ = ("values",)

    def __init__(self, values: list[Value], kind: Kind | None = None, others: tuple[str, ...] = ()) -> None:
        """``others``: the parts of ``kind`` behind those of the items."""
        if kind is None:
            kind = tuple_kind([v.kind for v in values])
        super().__init__(kind, (*(p for v in values for p in v.parts), *others))
        self.values = tuple(values)


class Unowned(Value):
    """An array or a list that was just made: nobody holds it."""


def items_of(value: Value) -> list[Value]:
    """The items of a tuple."""
    if isinstance(value, TupleValue):
        return list(value.values)
    found, at = [], 0
    for kind in value.kind.detail:
        found.append(Value(kind, value.parts[at : at + len(kind.parts)]))
        at += len(kind.parts)
    return found


def named(value: Value) -> Value:
    """What a local holds of ``value``: of a fresh tuple, and of such in it, the kind says that it has a
    name."""
    if value.kind.family != "tuple" or value.kind.code[0] != "t":
        return value
    items = [named(item) for item in items_of(value)]
    return TupleValue(items, named_tuple_kind([item.kind for item in items]))


def is_view(value: Value) -> bool:
    """Whether it is an array that indices lead to: outside each of its values becomes an array of its own."""
    return value.kind.family == "array" and bool(value.kind.detail.path)


def is_named_view(value: Value) -> bool:
    """Whether it is a view that a local holds."""
    return is_view(value) and isinstance(value.fact, str)
