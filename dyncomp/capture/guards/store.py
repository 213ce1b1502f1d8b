"""Guards as plain data (strings, numbers, bytes, tuples) for artifacts and caches, and back.

Objects are named, never pickled: see :mod:`.serial`. A guard that pins an object of this
process raises ``ValueError`` when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyncomp.capture.guards.class_facts import ClassFacts
from dyncomp.capture.guards.fact_kinds import (
    ArrayFacts,
    CodeFacts,
    CustomCheck,
    NoOverlap,
    SymBinding,
    SymCondition,
    TensorFacts,
)
from dyncomp.capture.guards.guard import Guard, Kind
from dyncomp.capture.guards.module_facts import ModuleFacts
from dyncomp.capture.guards.serial import pack_constant, pack_object, unpack_constant, unpack_object
from dyncomp.capture.guards.source import source_from_tuple, source_to_tuple

Packer = Callable[[Any], Any]


def guard_to_tuple(guard: Guard) -> tuple[Any, ...]:
    """``(source, kind, expected, loc, why)`` as plain data."""
    source = None if guard.source is None else source_to_tuple(guard.source)
    pack, _ = _CODECS[str(guard.kind)]
    loc = guard.loc if isinstance(guard.loc, (str, tuple, type(None))) else str(guard.loc)
    return (source, str(guard.kind), pack(guard.expected), loc, guard.why)


def guard_from_tuple(data: Sequence[Any]) -> Guard:
    """Inverse of :func:`guard_to_tuple`; ``ValueError`` when something named is not there or has changed."""
    if len(data) != 5 or data[1] not in _CODECS:
        raise ValueError(f"not a guard: {data!r}")
    source, kind, expected, loc, why = data
    _, unpack = _CODECS[kind]
    loc = tuple(loc) if isinstance(loc, list) else loc
    where = None if source is None else source_from_tuple(tuple(source))
    return Guard(where, Kind(kind), unpack(expected), loc, why)


def _same(value: object) -> Any:
    return value


def _sizes(values: Any) -> Any:
    return None if values is None else tuple(values)


def _pack_array(facts: ArrayFacts) -> tuple[Any, ...]:
    dtype = pack_constant(facts.dtype)
    kind = pack_object(facts.type)
    return (kind, dtype, facts.shape, facts.strides, facts.layout, facts.aligned, facts.writeable)


def _unpack_array(data: Sequence[Any]) -> ArrayFacts:
    kind, dtype, shape, strides, layout, aligned, writeable = data
    return ArrayFacts(
        dtype=unpack_constant(dtype),
        shape=tuple(shape),
        strides=_sizes(strides),
        layout=layout,
        aligned=aligned,
        writeable=writeable,
        type=unpack_object(kind),
    )


def _pack_tensor(facts: TensorFacts) -> tuple[Any, ...]:
    return (pack_object(facts.type), facts.dtype, facts.shape, facts.strides, facts.device)


def _unpack_tensor(data: Sequence[Any]) -> TensorFacts:
    kind, dtype, shape, strides, device = data
    return TensorFacts(unpack_object(kind), tuple(dtype), tuple(shape), _sizes(strides), tuple(device))


def _pack_code(facts: CodeFacts) -> tuple[Any, ...]:
    return (facts.module, facts.qualname, facts.hash)


def _unpack_code(data: Sequence[Any]) -> CodeFacts:
    return CodeFacts(*data)


def _pack_condition(condition: SymCondition) -> tuple[Any, ...]:
    bindings = tuple((b.symbol, source_to_tuple(b.source), b.what, b.axis) for b in condition.bindings)
    return (condition.program, condition.relation, bindings, condition.text)


def _unpack_condition(data: Sequence[Any]) -> SymCondition:
    program, relation, bindings, text = data
    read = tuple(SymBinding(s, source_from_tuple(tuple(src)), what, axis) for s, src, what, axis in bindings)
    return SymCondition(tuple(program), relation, read, text)


def _pack_overlap(facts: NoOverlap) -> tuple[Any, ...]:
    return (tuple(map(source_to_tuple, facts.arrays)), facts.mutated)


def _unpack_overlap(data: Sequence[Any]) -> NoOverlap:
    arrays, mutated = data
    return NoOverlap(tuple(source_from_tuple(tuple(s)) for s in arrays), tuple(mutated))


def _pack_class(facts: ClassFacts) -> tuple[Any, ...]:
    places = tuple(
        (name, tuple((position, _pack_kind(kind)) for position, kind in found))
        for name, found in sorted(facts.found.items())
    )
    return (pack_object(facts.cls), tuple(sorted(facts.names)), _pack_each(facts.order), places)


def _unpack_class(data: Sequence[Any]) -> ClassFacts:
    cls, names, order, places = data
    found = {
        name: tuple((position, _unpack_kind(kind)) for position, kind in where) for name, where in places
    }
    return ClassFacts(unpack_object(cls), frozenset(names), _unpack_each(order), found)


def _pack_kind(kind: Any) -> tuple[Any, ...]:
    home = getattr(kind, "__objclass__", None)
    if home is None or vars(home).get(kind.__name__) is not kind:
        return ("object", pack_object(kind))
    return ("member", pack_object(home), kind.__name__)


def _unpack_kind(data: Sequence[Any]) -> Any:
    kind, *rest = data
    return unpack_object(rest[0]) if kind == "object" else vars(unpack_object(rest[0]))[rest[1]]


def _pack_module(facts: ModuleFacts) -> tuple[Any, ...]:
    members = tuple((name, pack_object(found)) for name, found in facts.members.items())
    return (pack_object(facts.module), members)


def _unpack_module(data: Sequence[Any]) -> ModuleFacts:
    module, members = data
    return ModuleFacts(unpack_object(module), {name: unpack_object(found) for name, found in members})


def _pack_custom(check: CustomCheck) -> tuple[Any, ...]:
    return (pack_object(check.check), pack_constant(check.expected), check.text)


def _unpack_custom(data: Sequence[Any]) -> CustomCheck:
    check, expected, text = data
    return CustomCheck(unpack_object(check), unpack_constant(expected), text)


def _pack_each(values: Any) -> tuple[Any, ...]:
    return tuple(map(pack_object, values))


def _unpack_each(data: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(unpack_object, data))


def _pack_length(expected: Any) -> tuple[Any, ...]:
    return (pack_object(expected[0]), expected[1])


def _unpack_length(data: Sequence[Any]) -> tuple[Any, ...]:
    return (unpack_object(data[0]), data[1])


def _unpack_source(data: Sequence[Any]) -> Any:
    return source_from_tuple(tuple(data))


_OBJECT = (pack_object, unpack_object)
_PLAIN = (_same, _same)

_CODECS: dict[str, tuple[Packer, Packer]] = {
    "TYPE_IS": _OBJECT,
    "NUMPY_SCALAR": _OBJECT,
    "IS": _OBJECT,
    "IS_NOT": _OBJECT,
    "EQUALS": (pack_constant, unpack_constant),
    "BOOL": _PLAIN,
    "NONE": _PLAIN,
    "NOT_NONE": _PLAIN,
    "LEN": (_pack_length, _unpack_length),
    "DICT_KEYS": (_pack_each, _unpack_each),
    "DICT_HAS": _OBJECT,
    "DICT_LACKS": _OBJECT,
    "HASATTR": _PLAIN,
    "NOATTR": _PLAIN,
    "INSTANCE_HAS": _PLAIN,
    "INSTANCE_LACKS": _PLAIN,
    "CODE_IS": (_pack_code, _unpack_code),
    "GLOBAL_MISSING": _PLAIN,
    "ARRAY": (_pack_array, _unpack_array),
    "PYINT_FITS_INT64": _PLAIN,
    "SYM": (_pack_condition, _unpack_condition),
    "NO_OVERLAP": (_pack_overlap, _unpack_overlap),
    "OVERLAP": (_pack_overlap, _unpack_overlap),
    "REGION": (_same, tuple),
    "SAME_OBJECT": (source_to_tuple, _unpack_source),
    "NOT_SAME_OBJECT": (source_to_tuple, _unpack_source),
    "ERRSTATE": _PLAIN,
    "CLASS": (_pack_class, _unpack_class),
    "MODULE": (_pack_module, _unpack_module),
    "CUSTOM_ARRAY": (_pack_custom, _unpack_custom),
    "TORCH_TENSOR": (_pack_tensor, _unpack_tensor),
}
