"""Every kind of guard: it holds where it was made, and misses (without raising) where it does not."""

from __future__ import annotations

import builtins
import collections
import enum
import math
import struct
import types
import weakref

import numpy as np
import pytest

from dyncomp.capture.guards.fact_kinds import CodeFacts, CustomCheck, NoOverlap, SymBinding, SymCondition
from dyncomp.capture.guards.guard import (
    ArrayFacts,
    Guard,
    GuardRefused,
    Kind,
    compile_guards,
    describe_failure,
)
from dyncomp.capture.guards.source import (
    AttrSource,
    BuiltinSource,
    CellContentsSource,
    CellSource,
    ConstSource,
    DictKeySource,
    DictValueSource,
    FreeCellSource,
    GlobalSource,
    GlobalsSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    MappingSource,
    ModuleDictSource,
    ModuleSource,
    ReferentSource,
    TypeAttrSource,
    TypeSource,
)
from dyncomp.hook import _hook
from dyncomp.hook.errstate import read_errstate
from dyncomp.symbolic.integers import ShapeEnv

X = LocalSource("x", 0)
Y = LocalSource("y", 1)


def holds(kind, expected, *args, source=X, namespace=None, closure=None):
    """Whether one guard holds for the arguments; a miss must come with words."""
    program = compile_guards([Guard(source, kind, expected)])
    env = (args, namespace if namespace is not None else {}, builtins.__dict__, closure)
    answer = program.check(*env)
    words = describe_failure(program, *env)
    assert (words is None) == answer
    assert program.first_failure(*env) == (None if answer else 0)
    return answer


def value_of(source, *args, namespace=None, closure=None):
    values = compile_guards([], [source]).read(args, namespace or {}, builtins.__dict__, closure)
    return None if values is None else values[0]


class Point:
    kind = "class attribute"

    def __init__(self, x):
        self.x = x

    def method(self):
        return self.x

    @property
    def prop(self):
        raise AssertionError("user code ran")

    @staticmethod
    def static():
        return 1


class Slotted:
    __slots__ = ("x", "y")


class WithGetattr:
    def __init__(self):
        self.real = 1

    def __getattr__(self, name):
        raise AssertionError("user code ran")


class WithGetattribute:
    def __getattribute__(self, name):
        raise AssertionError("user code ran")


# -- identity and type ------------------------------------------------------------------------
def test_type_is():
    assert holds(Kind.TYPE_IS, int, 3)
    assert not holds(Kind.TYPE_IS, int, True)
    assert not holds(Kind.TYPE_IS, Point, 3)
    assert holds(Kind.NUMPY_SCALAR, np.float32, np.float32(1))
    assert not holds(Kind.NUMPY_SCALAR, np.float32, np.float64(1))


def test_identity():
    obj = object()
    assert holds(Kind.IS, obj, obj)
    assert not holds(Kind.IS, obj, object())
    assert holds(Kind.IS_NOT, obj, object())
    assert not holds(Kind.IS_NOT, obj, obj)
    assert holds(Kind.NONE, None, None)
    assert not holds(Kind.NONE, None, 0)
    assert holds(Kind.NOT_NONE, None, 0)
    assert not holds(Kind.NOT_NONE, None, None)
    assert holds(Kind.BOOL, True, True)
    assert not holds(Kind.BOOL, True, 1)
    assert not holds(Kind.BOOL, False, 0)


def test_same_object():
    array = np.ones(3)
    assert holds(Kind.SAME_OBJECT, Y, array, array)
    assert not holds(Kind.SAME_OBJECT, Y, array, array.copy())
    assert holds(Kind.NOT_SAME_OBJECT, Y, array, array.copy())
    assert not holds(Kind.NOT_SAME_OBJECT, Y, array, array)


NAN2 = struct.unpack("<d", b"\x01\0\0\0\0\0\xf8\xff")[0]
CONSTANTS = [
    0,
    1,
    -1,
    2**31,
    2**63,
    -(2**200),
    True,
    False,
    None,
    ...,
    0.0,
    -0.0,
    1.0,
    math.inf,
    math.nan,
    complex(0.0, -0.0),
    complex(0.0, 0.0),
    complex(math.nan, 1),
    "",
    "text",
    "é",
    b"",
    b"text",
    (),
    (1,),
    (1.0,),
    (True,),
    (1, (2, "a")),
    slice(None),
    slice(1, None, 2),
    range(0),
    range(1, 1),
    range(3),
    range(0, 10**30, 7),
    frozenset(),
    frozenset({1, 2}),
    frozenset({"a"}),
    np.float64(1.0),
    np.float64(-0.0),
    np.float64(0.0),
    np.float32(1.0),
    np.float64(math.nan),
    np.int64(1),
    np.bool_(True),
    np.complex64(1j),
    np.float16(2),
    np.dtype("f4"),
    np.dtype(">f4"),
    np.dtype("f8"),
    np.dtype("S3"),
    np.dtype("M8[s]"),
    np.dtype("M8[ms]"),
]


def test_equals_tells_all_constants_apart():
    for i, wanted in enumerate(CONSTANTS):
        for j, given in enumerate(CONSTANTS):
            assert holds(Kind.EQUALS, wanted, given) == (i == j), (wanted, given)


def test_equals_compares_by_value_not_identity():
    assert holds(Kind.EQUALS, 2**100, int(str(2**100)))
    assert holds(Kind.EQUALS, "ab" * 50, "".join(["ab"] * 50))
    assert holds(Kind.EQUALS, math.nan, NAN2)
    assert holds(Kind.EQUALS, np.float32(math.nan), np.float32(NAN2))
    assert holds(Kind.EQUALS, (1.5, "a", None), (3 / 2, "a", None))
    assert holds(Kind.EQUALS, np.float64(1.5), np.float64(3) / 2)
    assert holds(Kind.EQUALS, frozenset({1, 2}), frozenset([2, 1]))
    assert not holds(Kind.EQUALS, frozenset({1, 2}), frozenset({True, 2}))


def test_equals_refuses_what_runs_user_code():
    class Sub(int):
        pass

    for value in ([1], Sub(1), object(), (Sub(1),), np.longdouble(1), frozenset({1, "a"})):
        with pytest.raises(GuardRefused):
            compile_guards([Guard(X, Kind.EQUALS, value)])


def test_equals_does_not_call_user_eq():
    class Evil(int):
        def __eq__(self, other):
            raise AssertionError("user code ran")

        def __hash__(self):
            raise AssertionError("user code ran")

    assert not holds(Kind.EQUALS, 1, Evil(1))
    assert not holds(Kind.EQUALS, (1, 2), (1, Evil(2)))


# -- containers -------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [list, tuple, set, frozenset, collections.deque])
def test_len(make):
    value = make([1, 2, 3])
    assert holds(Kind.LEN, (make, 3), value)
    assert not holds(Kind.LEN, (make, 2), value)
    assert not holds(Kind.LEN, (make, 3), {1: 1, 2: 2, 3: 3})


def test_len_of_dicts_and_subclasses():
    assert holds(Kind.LEN, (dict, 1), {1: 1})
    assert not holds(Kind.LEN, (dict, 1), collections.OrderedDict({1: 1}))
    assert holds(Kind.LEN, (collections.OrderedDict, 1), collections.OrderedDict({1: 1}))

    class Liar(list):
        def __len__(self):
            return 7

    with pytest.raises(GuardRefused):
        compile_guards([Guard(X, Kind.LEN, (Liar, 7))])


def test_dict_keys():
    assert holds(Kind.DICT_KEYS, ("a", "b"), {"a": 1, "b": 2})
    assert not holds(Kind.DICT_KEYS, ("a", "b"), {"b": 1, "a": 2})
    assert not holds(Kind.DICT_KEYS, ("a", "b"), {"a": 1})
    assert not holds(Kind.DICT_KEYS, (1,), {1.0: 1})
    assert not holds(Kind.DICT_KEYS, (1,), [1])
    assert holds(Kind.DICT_KEYS, (int, len), {int: 1, len: 2})
    ordered = collections.OrderedDict(a=1, b=2)
    assert holds(Kind.DICT_KEYS, ("a", "b"), ordered)
    ordered.move_to_end("a")
    assert not holds(Kind.DICT_KEYS, ("a", "b"), ordered)
    assert holds(Kind.DICT_KEYS, ("b", "a"), ordered)


def test_dict_presence():
    assert holds(Kind.DICT_HAS, "a", {"a": 1})
    assert not holds(Kind.DICT_HAS, "b", {"a": 1})
    assert holds(Kind.DICT_LACKS, "b", {"a": 1})
    assert not holds(Kind.DICT_LACKS, "a", {"a": 1})
    assert not holds(Kind.DICT_LACKS, "a", [1])
    with pytest.raises(GuardRefused):
        compile_guards([Guard(X, Kind.DICT_HAS, Point(1))])


# -- attributes -------------------------------------------------------------------------------
def test_attribute_presence():
    point = Point(1)
    assert holds(Kind.HASATTR, "x", point)
    assert holds(Kind.HASATTR, "kind", point)
    assert not holds(Kind.HASATTR, "nothing", point)
    assert holds(Kind.NOATTR, "nothing", point)
    assert not holds(Kind.NOATTR, "x", point)
    assert holds(Kind.INSTANCE_HAS, "x", point)
    assert not holds(Kind.INSTANCE_HAS, "kind", point)
    assert holds(Kind.INSTANCE_LACKS, "method", point)
    point.method = None
    assert not holds(Kind.INSTANCE_LACKS, "method", point)
    assert not holds(Kind.NOATTR, "nothing", WithGetattr())
    assert not holds(Kind.HASATTR, "nothing", WithGetattr())
    assert not holds(Kind.NOATTR, "nothing", WithGetattribute())
    assert holds(Kind.NOATTR, "nothing", 3)


def test_reading_attributes():
    point = Point(5)
    assert value_of(AttrSource(X, "x"), point) == 5
    assert value_of(AttrSource(X, "kind"), point) == "class attribute"
    assert value_of(AttrSource(X, "static"), point) is Point.static
    assert value_of(AttrSource(X, "real"), WithGetattr()) == 1
    assert value_of(AttrSource(X, "method"), Point) is Point.method
    assert value_of(AttrSource(X, "pi"), math) == math.pi
    assert value_of(InstanceDictSource(X, "x"), point) == 5
    assert value_of(TypeAttrSource(TypeSource(X), "prop"), point) is Point.__dict__["prop"]
    slotted = Slotted()
    slotted.x = 7
    assert value_of(AttrSource(X, "x"), slotted) == 7
    assert value_of(AttrSource(X, "ndim"), np.ones((2, 3))) == 2
    assert value_of(AttrSource(X, "start"), slice(4, 5)) == 4
    assert value_of(AttrSource(X, "imag"), 3j) == 3.0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Point(1), "method"),
        (lambda: Point(1), "prop"),
        (lambda: Point(1), "nothing"),
        (Slotted, "y"),
        (WithGetattr, "nothing"),
        (WithGetattribute, "anything"),
        (lambda: 3, "nothing"),
        (lambda: math, "nothing"),
        (lambda: Point, "nothing"),
    ],
)
def test_reading_attributes_that_miss(make, name):
    assert value_of(AttrSource(X, name), make()) is None


def test_attributes_do_not_make_instance_dicts():
    point = Point(1)
    for name in ("x", "y", "kind"):
        value_of(AttrSource(X, name), point)
        value_of(InstanceDictSource(X, name), point)
    assert "__dict__" not in str(type(point).__slots__ if hasattr(type(point), "__slots__") else "")
    # many instances, shadowing, deletion and real dictionaries
    assert value_of(InstanceDictSource(X, "x"), point) == 1
    vars(point)["late"] = 2
    assert value_of(AttrSource(X, "late"), point) == 2
    del point.x
    assert value_of(AttrSource(X, "x"), point) is None
    point.__dict__ = {"x": 9}
    assert value_of(AttrSource(X, "x"), point) == 9
    point.kind = "own"
    assert value_of(AttrSource(X, "kind"), point) == "own"


def test_many_attributes_and_odd_names():
    point = Point(0)
    for i in range(100):
        setattr(point, f"a{i}", i)
    assert [value_of(AttrSource(X, f"a{i}"), point) for i in range(100)] == list(range(100))
    other = Point(0)
    object.__setattr__(other, "".join(["od", "d"]), 3)
    assert value_of(AttrSource(X, "odd"), other) == 3


def test_attr_kind():
    kinds = [
        (Point(1), "x", "instance"),
        (Point(1), "kind", "class"),
        (Point(1), "static", "static"),
        (Point(1), "method", "method"),
        (Point(1), "prop", "property"),
        (Point(1), "nothing", "missing"),
        (Slotted(), "x", "slot"),
        (np.ones(2), "shape", "getset"),
        (WithGetattr(), "nothing", "getattr"),
        (WithGetattr(), "real", "instance"),
        (Point, "method", "method"),
        (math, "pi", "instance"),
        (holds, "__code__", "getset"),
    ]
    assert _hook.attr_kind(WithGetattribute(), "x") == "custom"
    for obj, name, kind in kinds:
        assert _hook.attr_kind(obj, name) == kind, (type(obj), name)


# -- sources ----------------------------------------------------------------------------------
def test_sources():
    def outer():
        free = 42

        def inner(a, *, b=2):
            return free + a + b

        return inner

    f = outer()
    closure = f.__closure__
    assert value_of(CellSource("free", 0), closure=closure) == 42
    assert value_of(FreeCellSource("free", 0), closure=closure) is closure[0]
    assert value_of(CellContentsSource(FreeCellSource("free", 0)), closure=closure) == 42
    assert value_of(CellSource("free", 5), closure=closure) is None
    assert value_of(CellSource("free", 0)) is None
    assert value_of(CellContentsSource(ItemSource(AttrSource(X, "__closure__"), 0)), f) == 42
    assert value_of(ReferentSource(X), weakref.ref(f)) is f
    assert value_of(ReferentSource(X), f) is None
    behind = {"a": 1}
    assert value_of(MappingSource(X), types.MappingProxyType(behind)) is behind
    assert value_of(MappingSource(X), behind) is None
    assert value_of(AttrSource(X, "__code__"), f) is f.__code__
    assert value_of(AttrSource(X, "__kwdefaults__"), f) == {"b": 2}
    assert value_of(AttrSource(X, "__globals__"), f) is globals()
    assert value_of(AttrSource(X, "__self__"), "abc".upper) == "abc"
    point = Point(1)
    assert value_of(AttrSource(X, "__self__"), point.method) is point
    assert value_of(AttrSource(X, "__func__"), point.method) is Point.method
    assert value_of(GlobalSource("g"), namespace={"g": 1}) == 1
    assert value_of(GlobalSource("h"), namespace={"g": 1}) is None
    assert value_of(BuiltinSource("len")) is len
    namespace = {"z": 1}
    assert value_of(GlobalsSource(), namespace=namespace) is namespace
    assert value_of(ModuleSource("math")) is math
    assert value_of(ItemSource(ModuleDictSource("math"), "pi")) == math.pi
    assert value_of(ConstSource(point, "point")) is point
    assert value_of(TypeSource(X), point) is Point


def test_items():
    assert value_of(ItemSource(X, 1), [1, 2]) == 2
    assert value_of(ItemSource(X, 2), [1, 2]) is None
    assert value_of(ItemSource(X, -1), [1, 2]) is None
    assert value_of(ItemSource(X, 0), (5,)) == 5
    assert value_of(ItemSource(X, "a"), {"a": 1}) == 1
    assert value_of(ItemSource(X, "b"), {"a": 1}) is None
    assert value_of(ItemSource(X, 0), {0: "zero"}) == "zero"
    assert value_of(ItemSource(X, (1, "a")), {(1, "a"): 3}) == 3
    assert value_of(ItemSource(X, 0), "text") is None
    assert value_of(ItemSource(X, "missing"), collections.defaultdict(list)) is None
    assert value_of(DictKeySource(X, 1), {"a": 1, "b": 2}) == "b"
    assert value_of(DictValueSource(X, 1), {"a": 1, "b": 2}) == 2
    assert value_of(DictValueSource(X, 2), {"a": 1, "b": 2}) is None
    with pytest.raises(GuardRefused):
        compile_guards([], [ItemSource(X, Point(1))])


def test_global_missing():
    assert holds(Kind.GLOBAL_MISSING, "len", source=None)
    assert not holds(Kind.GLOBAL_MISSING, "len", source=None, namespace={"len": 1})


def test_code_is():
    def make(n):
        def inner(x):
            return x + 1

        return inner

    first, second = make(1), make(2)
    facts = CodeFacts.of(first)
    assert holds(Kind.CODE_IS, facts, second)
    assert not holds(Kind.CODE_IS, facts, make)
    assert not holds(Kind.CODE_IS, facts, 3)
    stored = CodeFacts(facts.module, facts.qualname, facts.hash, None)
    program = compile_guards([Guard(X, Kind.CODE_IS, stored)])
    for _ in range(2):
        assert program.check((second,), {}, {})
        assert not program.check((make,), {}, {})


# -- arrays -----------------------------------------------------------------------------------
class Sub(np.ndarray):
    """A plain subclass."""


def test_array_static():
    a = np.ones((3, 4))
    facts = ArrayFacts.of(a)
    assert str(facts) == "ndarray float64 (3, 4) C-contiguous"
    assert holds(Kind.ARRAY, facts, a)
    assert holds(Kind.ARRAY, facts, np.zeros((3, 4)))
    for other in (
        a.T,
        a[:, ::-1],
        np.ones((3, 5)),
        np.ones((3, 4, 1)),
        np.ones((3, 4), np.float32),
        a.astype(">f8"),
        np.asfortranarray(a),
        np.ma.masked_array(a),
        a.view(Sub),
        3,
        None,
        [1.0],
        np.float64(1),
        np.frombuffer(b"\0" * 97, np.uint8)[1:].view(np.float64).reshape(3, 4),
    ):
        assert not holds(Kind.ARRAY, facts, other)


def test_array_free_dims_and_layout():
    facts = ArrayFacts(np.dtype("f8"), (None, 4), layout="C")
    assert holds(Kind.ARRAY, facts, np.ones((7, 4)))
    assert holds(Kind.ARRAY, facts, np.ones((0, 4)))
    assert not holds(Kind.ARRAY, facts, np.ones((7, 5)))
    assert not holds(Kind.ARRAY, facts, np.ones((4, 7)).T)
    strided = ArrayFacts(np.dtype("f8"), (None, None), (None, 8))
    assert holds(Kind.ARRAY, strided, np.ones((4, 6))[:, :3])
    assert not holds(Kind.ARRAY, strided, np.ones((4, 6))[:, ::2])
    one = ArrayFacts.of(np.ones((1, 3)))
    assert holds(Kind.ARRAY, one, np.ones((5, 3))[2:3])
    empty = ArrayFacts.of(np.ones((0, 3)))
    assert holds(Kind.ARRAY, empty, np.ones((0, 6))[:, ::2])


def test_array_flags_and_dtypes():
    a = np.ones(3)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    writeable = ArrayFacts.of(a, writeable=True)
    assert holds(Kind.ARRAY, writeable, a)
    assert not holds(Kind.ARRAY, writeable, frozen)
    assert holds(Kind.ARRAY, ArrayFacts.of(a), frozen)
    assert not holds(Kind.ARRAY, ArrayFacts.of(a, writeable=False), a)
    for dtype in ("O", "S3", "U2", "M8[s]", [("a", "f4"), ("b", "i8")], "?", "c16", "g", "f2"):
        array = np.zeros(2, dtype)
        facts = ArrayFacts.of(array)
        assert holds(Kind.ARRAY, facts, np.zeros(2, dtype))
        assert not holds(Kind.ARRAY, facts, np.zeros(2, "i2"))
    assert not holds(Kind.ARRAY, ArrayFacts.of(np.zeros(2, "M8[s]")), np.zeros(2, "M8[ms]"))
    assert not holds(Kind.ARRAY, ArrayFacts.of(np.zeros(2, "S3")), np.zeros(2, "S4"))
    zero_d = ArrayFacts.of(np.array(1.0))
    assert holds(Kind.ARRAY, zero_d, np.array(2.0))
    assert not holds(Kind.ARRAY, zero_d, np.float64(2.0))


def test_no_overlap():
    base = np.zeros((10, 10))
    facts = NoOverlap((X, Y), (0,))
    assert holds(Kind.NO_OVERLAP, facts, base[:5], base[5:], source=None)
    assert not holds(Kind.NO_OVERLAP, facts, base[:6], base[5:], source=None)
    assert not holds(Kind.NO_OVERLAP, facts, base, base, source=None)
    assert not holds(Kind.NO_OVERLAP, facts, base[::-1], base[5:6], source=None)
    assert holds(Kind.NO_OVERLAP, facts, base[4::-1], base[5:6], source=None)
    assert holds(Kind.NO_OVERLAP, facts, base[:0], base, source=None)
    assert not holds(Kind.NO_OVERLAP, facts, base, 3, source=None)
    several = NoOverlap((X, Y, LocalSource("z", 2)), (1,))
    assert holds(Kind.NO_OVERLAP, several, base, np.ones(3), base, source=None)
    assert not holds(Kind.NO_OVERLAP, several, base, base[2], np.ones(3), source=None)


def test_custom_check():
    assert holds(Kind.CUSTOM_ARRAY, CustomCheck(lambda v, e: v > e, 2), 3)
    assert not holds(Kind.CUSTOM_ARRAY, CustomCheck(lambda v, e: v > e, 2), 1)
    assert not holds(Kind.CUSTOM_ARRAY, CustomCheck(lambda v, e: 1 / 0, 2), 1)


def test_errstate():
    mask = read_errstate()
    assert _hook.errstate() == mask
    assert holds(Kind.ERRSTATE, mask, source=None)
    with np.errstate(divide="ignore", invalid="raise"):
        assert _hook.errstate() == read_errstate() != mask
        assert not holds(Kind.ERRSTATE, mask, source=None)
    assert holds(Kind.ERRSTATE, mask, source=None)
    with np.errstate(divide="call"), pytest.raises(GuardRefused):
        compile_guards([Guard(None, Kind.ERRSTATE, read_errstate())])


# -- integers ---------------------------------------------------------------------------------
def test_int64():
    assert holds(Kind.PYINT_FITS_INT64, None, 2**63 - 1)
    assert holds(Kind.PYINT_FITS_INT64, None, -(2**63))
    for bad in (2**63, -(2**63) - 1, True, 1.0, np.int64(1), None):
        assert not holds(Kind.PYINT_FITS_INT64, None, bad)


def test_conditions_from_symint():
    env = ShapeEnv()
    n = env.new_symbol(6, low=0)
    m = env.new_symbol(4, low=0)
    assert n > m
    assert (n * m) % 8 == 0
    assert (n + 1) // 2 < 10
    assert env.guards
    bindings = {"s0": SymBinding("s0", X, "dim", 0), "s1": SymBinding("s1", Y)}
    program = compile_guards([Guard(None, Kind.SYM, SymCondition.of(g, bindings)) for g in env.guards])
    for rows in range(30):
        for number in range(-3, 30):
            expected = rows > number and rows * number % 8 == 0 and (rows + 1) // 2 < 10
            assert program.check((np.ones((rows, 2)), number), {}, {}) == expected
    assert not program.check((np.ones(()), 4), {}, {})
    assert not program.check((np.ones(6), 4.0), {}, {})
    assert not program.check((np.ones(6), 2**64), {}, {})


@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "floordiv", "mod", "min", "max", "eq", "ne", "lt", "le", "gt", "ge"]
)
def test_condition_operators(op):
    import operator

    functions = {"min": min, "max": max}
    function = functions.get(op) or getattr(operator, op)
    bindings = (SymBinding("a", X), SymBinding("b", Y), SymBinding("c", LocalSource("z", 2)))
    condition = SymCondition(("a", "b", op, "c", "sub"), "==", bindings)
    program = compile_guards([Guard(None, Kind.SYM, condition)])
    for a in (-7, -2, 0, 3, 8, 2**62):
        for b in (-3, -1, 0, 2, 5):
            if op in ("floordiv", "mod") and b == 0:
                assert not program.check((a, b, 0), {}, {})
                continue
            right = int(function(a, b))
            if abs(right) < 2**63:
                assert program.check((a, b, right), {}, {})
                assert not program.check((a, b, right + 1), {}, {})
            else:
                assert not program.check((a, b, 0), {}, {})


def test_condition_overflow_and_logic():
    bindings = (SymBinding("a", X), SymBinding("b", Y))
    for program in (("a", "b", "mul"), ("a", "b", "add"), ("a", "neg")):
        compiled = compile_guards([Guard(None, Kind.SYM, SymCondition(program, "!=", bindings))])
        assert not compiled.check((-(2**63), -(2**63)), {}, {})
    both = SymCondition(("a", 0, "gt", "b", 0, "gt", "and", "not"), "==", bindings)
    assert holds(Kind.SYM, both, 1, 2, source=None)
    assert not holds(Kind.SYM, both, 1, 0, source=None)
    either = SymCondition(("a", "b", "or"), "!=", bindings)
    assert holds(Kind.SYM, either, 0, 2, source=None)
    assert not holds(Kind.SYM, either, 0, 0, source=None)


def test_bindings():
    a = np.ones((3, 4), np.float32)
    for what, axis, value in (("dim", 1, 4), ("stride", 0, 16), ("size", 0, 12)):
        condition = SymCondition(("n", value, "sub"), "==", (SymBinding("n", X, what, axis),))
        assert holds(Kind.SYM, condition, a, source=None)
        assert not holds(Kind.SYM, condition, a[:2].T, source=None)
        assert not holds(Kind.SYM, condition, "text", source=None)
    length = SymCondition(("n", 2, "sub"), "==", (SymBinding("n", X, "len"),))
    for value in ([1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, "ab", b"ab"):
        assert holds(Kind.SYM, length, value, source=None)
    assert not holds(Kind.SYM, length, Point(1), source=None)


def test_malformed_conditions():
    for program in ((), ("a",), ("add",), (1, 2), (1, "pow"), (2**70,)):
        with pytest.raises(GuardRefused):
            compile_guards([Guard(None, Kind.SYM, SymCondition(program, "==", ()))])
    with pytest.raises(GuardRefused):
        compile_guards([Guard(None, Kind.SYM, SymCondition((1,), ">", ()))])


# -- programs ---------------------------------------------------------------------------------
def test_duplicates_are_dropped_and_sources_read_once():
    guards = [Guard(AttrSource(X, "x"), Kind.EQUALS, 1) for _ in range(3)]
    guards += [Guard(AttrSource(X, "x"), Kind.TYPE_IS, int)]
    program = compile_guards(guards)
    assert len(program.guards) == 2
    assert "4 instructions, 2 registers" in repr(program)


def test_env_must_hold():
    with pytest.raises(GuardRefused, match="does not hold"):
        compile_guards([Guard(X, Kind.EQUALS, 1)], env=((2,), {}, {}, None))


def test_failures_in_words():
    program = compile_guards(
        [Guard(X, Kind.TYPE_IS, np.ndarray), Guard(X, Kind.ARRAY, ArrayFacts.of(np.ones((2, 2))))]
    )
    assert describe_failure(program, (np.ones((2, 2)),), {}, {}) is None
    words = describe_failure(program, (np.ones((2, 2), np.float32).T,), {}, {})
    assert words == (
        "expected x: ndarray float64 (2, 2) C-contiguous; found ndarray float32 (2, 2) F-contiguous"
    )
    assert program.first_failure((3,), {}, {}) == 0
    assert "int" in describe_failure(program, (3,), {}, {})
    assert "missing" in describe_failure(program, (), {}, {})


def test_malformed_programs():
    ops = _hook.OPS
    bad = [
        [(9999, 0, 0, 0, None, 0)],
        [(ops["IS"], 0, 0, 0, None, 0)],
        [(ops["LOAD_ARG"], 1, 0, 0, None, 0)],
        [(ops["LOAD_ARG"], 0, -1, 0, None, 0)],
        [(ops["LOAD_GLOBAL"], 0, 0, 0, 3, 0)],
        [(ops["ATTR"], 0, 0, 0, "x", 0)],
        [(ops["LOAD_ARG"], 0, 0, 0, None, 0), (ops["ARRAY"], 0, 0, 0, (1, 2), 0)],
        [(ops["LOAD_ARG"], 0, 0, 0, None, 0), (ops["DISJOINT"], 0, 0, 0, ((5,), (0,)), 0)],
        [(ops["LOAD_ARG"], 0, 0, 0, None, 0), (ops["LEN"], 0, 0, 0, 3, 0)],
        [(ops["LOAD_ARG"], 0, 0, 0, None, 0), (ops["SAME"], 0, 3, 0, None, 0)],
        [(ops["CONDITION"], 0, 10, 0, (1, 0), 0)],
        [(1, 2)],
        [None],
    ]
    for instructions in bad:
        with pytest.raises((ValueError, TypeError)):
            _hook.GuardProgram(instructions, 1)
    with pytest.raises(ValueError):
        _hook.GuardProgram([], 1)
    with pytest.raises(ValueError):
        _hook.GuardProgram([(ops["LOAD_ARG"], 0, 0, 0, None, 0)], 1, (), [4])


def test_enum_and_type_keys():
    class Color(enum.Enum):
        RED = 1

    assert holds(Kind.IS, Color.RED, Color.RED)
    assert value_of(ItemSource(X, int), {int: 3}) == 3


def test_hostile_objects_never_raise():
    class Meta(type):
        def __getattribute__(cls, name):
            raise AssertionError("user code ran")

    class Hostile(metaclass=Meta):
        def __getattribute__(self, name):
            raise AssertionError("user code ran")

        def __eq__(self, other):
            raise AssertionError("user code ran")

        def __len__(self):
            raise AssertionError("user code ran")

        def __hash__(self):
            return hash("a")

    hostile = Hostile()
    for value in (hostile, Hostile):
        assert value_of(AttrSource(X, "x"), value) is None
        for kind, expected in (
            (Kind.EQUALS, 1),
            (Kind.LEN, (list, 1)),
            (Kind.DICT_KEYS, ("a",)),
            (Kind.HASATTR, "x"),
            (Kind.NOATTR, "x"),
            (Kind.ARRAY, ArrayFacts.of(np.ones(1))),
            (Kind.PYINT_FITS_INT64, None),
        ):
            program = compile_guards([Guard(X, kind, expected)])
            assert not program.check((value,), {}, {})
