"""Guards, sources and other objects as plain data: the round trip keeps their meaning."""

from __future__ import annotations

import builtins
import json
import math

import numpy as np
import pytest

from dyncomp.capture.guards.fact_kinds import (
    ArrayFacts,
    CodeFacts,
    CustomCheck,
    NoOverlap,
    SymBinding,
    SymCondition,
)
from dyncomp.capture.guards.guard import Guard, Kind, compile_guards
from dyncomp.capture.guards.serial import code_hash
from dyncomp.capture.guards.source import (
    AttrSource,
    CellContentsSource,
    CellSource,
    ConstSource,
    DictKeySource,
    GlobalSource,
    ItemSource,
    LocalSource,
    MappingSource,
    ModuleDictSource,
    ReferentSource,
    TypeAttrSource,
    TypeSource,
)
from dyncomp.warm_start.guards import BY_TYPE, MAKERS
from dyncomp.warm_start.plain import Packer, Unpacker

X = LocalSource("x", 0)
Y = LocalSource("y", 1)


def packed(obj):
    packer = Packer(BY_TYPE)
    value = packer.value(obj)
    return [packer.rows, value]


def unpacked(data):
    rows, value = data
    return Unpacker(rows, MAKERS).value(value)


def helper(x):
    return x + 1


def is_positive(value, expected):
    return value > expected


SOURCES = [
    X,
    CellSource("c", 2),
    GlobalSource("np"),
    AttrSource(AttrSource(X, "layers"), "w"),
    ItemSource(AttrSource(X, "d"), "key"),
    ItemSource(X, 0),
    ItemSource(X, 0.0),
    ItemSource(X, (1, "a", None)),
    DictKeySource(X, 3),
    TypeAttrSource(TypeSource(X), "method"),
    CellContentsSource(ItemSource(AttrSource(X, "__closure__"), 0)),
    ReferentSource(AttrSource(X, "owner")),
    MappingSource(AttrSource(X, "shown")),
    ItemSource(ModuleDictSource("math"), "pi"),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.expr())
def test_sources_round_trip(source):
    data = packed(source)
    assert json.loads(json.dumps(data)) == data
    back = unpacked(data)
    assert back == source
    assert back.expr() == source.expr()
    assert hash(back) == hash(source)


def test_equal_looking_keys_differ():
    assert len({ItemSource(X, 0), ItemSource(X, 0.0), ItemSource(X, False)}) == 3


def test_bad_data():
    with pytest.raises(ValueError):
        packed(AttrSource(ConstSource(object(), "obj"), "x"))
    for row in (["nothing"], ["module", "no_such_module"], ["object", "math", "no_such_name", "float"]):
        with pytest.raises(ValueError):
            unpacked([[row], [0]])


GUARDS = [
    (Guard(X, Kind.TYPE_IS, np.ndarray, ("file.py", 3), "why"), (np.ones(2),), (3,)),
    (Guard(X, Kind.IS, math), (math,), (np,)),
    (Guard(X, Kind.IS, helper), (helper,), (is_positive,)),
    (Guard(X, Kind.EQUALS, -0.0), (-0.0,), (0.0,)),
    (Guard(X, Kind.EQUALS, (1, "a", 2.5, None, np.float32(3))), ((1, "a", 2.5, None, np.float32(3)),), ((),)),
    (Guard(X, Kind.EQUALS, slice(1, None)), (slice(1, None),), (slice(1, 2),)),
    (Guard(X, Kind.BOOL, True), (True,), (1,)),
    (Guard(X, Kind.NONE), (None,), (0,)),
    (Guard(X, Kind.LEN, (list, 2)), ([1, 2],), ([1],)),
    (Guard(X, Kind.DICT_KEYS, ("a", int, 3)), ({"a": 1, int: 2, 3: 4},), ({},)),
    (Guard(X, Kind.HASATTR, "shape"), (np.ones(1),), (3,)),
    (Guard(X, Kind.CODE_IS, CodeFacts.of(helper)), (helper,), (is_positive,)),
    (Guard(X, Kind.ARRAY, ArrayFacts.of(np.ones((2, 3)))), (np.ones((2, 3)),), (np.ones((3, 2)),)),
    (
        Guard(X, Kind.ARRAY, ArrayFacts(np.dtype(">i4"), (None,), layout="C")),
        (np.ones(3, ">i4"),),
        (np.ones(3, "i4"),),
    ),
    (
        Guard(
            None, Kind.SYM, SymCondition(("n", -3, "add"), "<=", (SymBinding("n", X, "dim", 0),), "n <= 3")
        ),
        (np.ones(3),),
        (np.ones(4),),
    ),
    (Guard(None, Kind.NO_OVERLAP, NoOverlap((X, Y), (1,))), (np.ones(2), np.ones(2)), (1, 2)),
    (Guard(X, Kind.NOT_SAME_OBJECT, Y), (1, 2), (1, 1)),
    (Guard(X, Kind.CUSTOM_ARRAY, CustomCheck(is_positive, 0)), (1,), (-1,)),
]


@pytest.mark.parametrize(
    ("guard", "good", "bad"), GUARDS, ids=lambda g: str(g)[:40] if isinstance(g, Guard) else ""
)
def test_guards_round_trip(guard, good, bad):
    data = packed(guard)
    assert json.loads(json.dumps(data)) == data
    back = unpacked(data)
    assert str(back) == str(guard)
    assert packed(back) == data
    for one in (guard, back):
        program = compile_guards([one])
        assert program.check(good, {}, builtins.__dict__)
        assert not program.check(bad, {}, builtins.__dict__)


def test_objects_without_a_name_are_refused():
    def local():
        return None

    for value in (object(), local, lambda: 1):
        with pytest.raises(ValueError):
            packed(value)


def test_changed_code_is_noticed():
    rows, value = packed(helper)
    assert unpacked([rows, value]) is helper
    (row,) = rows
    with pytest.raises(ValueError, match="another function"):
        unpacked([[[*row[:3], ["0" * 64]]], value])


def test_code_hash_ignores_lines_and_sees_constants():
    first, second, third = {}, {}, {}
    exec(compile("def f(x): return x + 1", "a.py", "exec"), first)
    exec(compile("\n\n\ndef f(x): return x + 1", "b.py", "exec"), second)
    exec(compile("def f(x): return x + 1.0", "a.py", "exec"), third)
    assert code_hash(first["f"].__code__) == code_hash(second["f"].__code__)
    assert code_hash(first["f"].__code__) != code_hash(third["f"].__code__)
