"""Small programs of classes, dataclasses, enums, namedtuples, imports, copies; see ``programs.Program``."""

# ruff: noqa: F401, F821, PIE796, UP042, B006, B007, B009, B010, B023, B904, C403, C405, C408, C416, C417, C419, E731, F403, F601, F841, I001, PLC0415, PLW0602, PLW0603, RET505, RET503, SIM105, SIM108, UP014, UP031, UP032
from __future__ import annotations

import abc
import collections
import collections.abc
import copy
import dataclasses
import enum
import numbers
import typing
from typing import Any, NamedTuple


from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


# -- construction ---------------------------------------------------------------------------------------
class Left:
    def __init__(self, x, **rest):
        super().__init__(x, **rest)
        self.left = x + 1

    def name(self):
        return ["left", *super().name()]


class Right:
    def __init__(self, x, extra=0):
        self.right = x + extra

    def name(self):
        return ["right"]


class Both(Left, Right):
    def __init__(self, x):
        super().__init__(x, extra=5)

    def name(self):
        return ["both", *super().name()]


@program(one)
def cooperative_super(x):
    b = Both(x)
    return b, b.name(), b.left + b.right, super(Left, b).name(), Left.name(b)


@dataclasses.dataclass
class Item:
    value: Any
    weight: float = 2.0
    tags: list = dataclasses.field(default_factory=list)
    total: Any = dataclasses.field(init=False, default=None)

    def __post_init__(self):
        self.total = self.value * self.weight


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: int = 1


@dataclasses.dataclass(slots=True)
class Compact:
    a: Any
    b: int = 1


@dataclasses.dataclass(order=True, kw_only=True)
class Keyed:
    rank: int
    data: Any = dataclasses.field(compare=False, default=None)


@dataclasses.dataclass
class SubItem(Item):
    more: int = 0


@program(lambda: (Item(vec()),))
def dataclass_object(i):
    i.tags.append(i.total)
    made = Item(i.total, weight=3.0)
    other = SubItem(made.total, more=2)
    return made, other, made.total + other.total, made.tags is other.tags, i


@program(lambda: (Frozen(vec()),))
def frozen_dataclass(f):
    made = Frozen(f.a + 1, b=2)
    again = dataclasses.replace(made, b=5)
    return made, again, again.a * again.b


@program(lambda: (Frozen(vec()),))
def frozen_assignment(f):
    y = f.a + 1
    try:
        f.a = 3
    except dataclasses.FrozenInstanceError as e:
        return y, str(e), type(e) is dataclasses.FrozenInstanceError


@program(lambda: (Compact(vec()),))
def slotted_dataclass(c):
    c.b = 3
    made = Compact(c.a * c.b)
    return made.a + made.b, c.b, Compact.__slots__


@program(one, breaks=("data-dependent-value",))
def dataclass_comparison(x):
    a, b = Keyed(rank=1, data=x), Keyed(rank=2)
    return x + 1, a < b, a >= b, a == Keyed(rank=1), a != b, sorted([b, a])[0] is a


@program(lambda: (Item(vec()),))
def dataclass_helpers(i):
    names = [f.name for f in dataclasses.fields(i)]
    return i.value + 1, names, dataclasses.is_dataclass(i), dataclasses.is_dataclass(Item)


@program(
    lambda: (Compact([1, {"k": Frozen(2)}]), vec()),
    breaks=(
        "generator",
        "loop",
    ),
    plain=True,
)
def dataclass_as_dict(c, x):
    return x + 1, dataclasses.asdict(c), dataclasses.astuple(c)


class Pair(NamedTuple):
    a: Any
    b: Any = 2

    def total(self):
        return self.a * self.b

    @property
    def both(self):
        return (self.a, self.b)


Triple = collections.namedtuple("Triple", "x y z", defaults=[0])


class Vector(Triple):
    __slots__ = ()

    def __add__(self, other):
        return Vector(*(p + q for p, q in zip(self, other)))

    @property
    def norm(self):
        return self.x**2 + self.y**2 + self.z**2


@program(lambda: (Pair(vec()),), lambda: (Pair(vec(), b=3),))
def namedtuples(p):
    q = p._replace(b=4)
    r = Pair._make([p.a, 1])
    a, b = q
    return (
        q,
        r,
        p.total() + q.total(),
        p.both,
        q._asdict(),
        Pair._fields,
        len(p),
        p[0] is p.a,
        a * b,
        p._field_defaults,
    )


@program(one, breaks=("unsupported-call",))
def namedtuple_subclass(x):
    v = Vector(x, 1, 2)
    w = v + Vector(1, x)
    t = Triple(1, z=2, y=3)
    return (
        v,
        w,
        w.norm,
        t,
        t == (1, 3, 2),
        isinstance(v, tuple),
        t._replace(x=0),
        hash(t) == hash((1, 3, 2)),
        t.count(1),
        t.index(3),
        t + (1,),
        t[1:],
    )


@program(lambda: (Vector(vec(), 1, 2),))
def namedtuple_subclass_argument(v):
    return v.norm + v.x, v


class Color(enum.Enum):
    RED = 1
    GREEN = "g"
    CRIMSON = 1

    @property
    def lower(self):
        return self.name.lower()

    @classmethod
    def first(cls):
        return cls.RED

    def mixed(self, x):
        return x * 2 if self is Color.RED else x


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    AB = A | B


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@program(lambda: (vec(), Color.RED), lambda: (vec(), Color.GREEN))
def enums(x, c):
    if c is Color.RED or c == Color.CRIMSON:
        x = x + c.value
    return (
        c.mixed(x),
        c.name,
        c.lower,
        Color.first(),
        c in (Color.RED,),
        c != Color.GREEN,
        type(c) is Color,
        {c: 1}[c],
    )


@program(one)
def enum_lookup(x):
    members = [m.name for m in Color]
    return (
        x + Color(1).value,
        Color["GREEN"],
        members,
        len(Color),
        Color("g") is Color.GREEN,
        Color.RED in Color,
    )


@program(
    lambda: (vec(), Level.HIGH, Flags.A, Mode.FAST),
    lambda: (vec(), Level.LOW, Flags.AB, Mode.SLOW),
    breaks=(
        "unsupported-call",
        "unsupported-operation",
    ),
    plain=True,
)
def enum_values(x, level, flags, mode):
    if flags & Flags.B:
        x = x + 1
    if mode == "fast":
        x = x * 2
    if level > Level.LOW:
        x = x * level
    return x, flags | Flags.B, level + 1, mode.value, Flags.A in flags, level == 3, f"{level.value}"


# -- subclasses of builtins ---------------------------------------------------------------------------
class AttrDict(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Stack(list):
    def push(self, item):
        self.append(item)
        return self

    @property
    def top(self):
        return self[-1]


class Meters(float):
    def __add__(self, other):
        return Meters(float(self) + other)


class Name(str):
    def shout(self):
        return self.upper() + "!"


class Index(int):
    pass


class Lower(dict):
    def __missing__(self, key):
        return len(key)


@program(
    lambda: (AttrDict(x=vec(), k=2),),
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
        "unsupported-operation",
    ),
    plain=True,
)
def dict_subclass(d):
    d.y = d.x * d.k
    d["z"] = d["y"] + 1
    made = AttrDict(d, more=1)
    return d, made, d.z, len(d), made.more, list(d), getattr(d, "none", 7)


@program(
    lambda: (Lower(a=1), vec()),
    breaks=(
        "unsupported-attribute",
        "unsupported-operation",
    ),
    plain=True,
)
def missing_hook(d, x):
    return x + d["abc"], d.get("abc"), "abc" in d, d["a"]


@program(
    lambda: (Stack([vec(), 2]),),
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
        "unsupported-operation",
    ),
    plain=True,
)
def list_subclass(s):
    s.push(s[0] * s.top).push(1)
    made = Stack([1, 2])
    made.push(3)
    made.note = "n"
    return s, made, made.top, len(s), sum(made), made.note


@program(
    lambda: (vec(), Meters(2.0), Name("ab"), Index(3)),
    breaks=(
        "unsupported-attribute",
        "unsupported-call",
        "unsupported-operation",
    ),
    plain=True,
)
def scalar_subclasses(x, m, n, i):
    return x * (m + 1), n.shout(), x[i], i + 1, type(m + 1) is Meters, n + "c", type(n + "c") is str, i == 3


# -- abstract and generic classes -----------------------------------------------------------------------
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    @property
    @abc.abstractmethod
    def kind(self): ...


class Square(Shape):
    kind = "square"

    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, item: T):
        self.item = item

    def get(self) -> T:
        return self.item


class HasArea(typing.Protocol):
    def area(self): ...


@typing.runtime_checkable
class Sized(typing.Protocol):
    def __len__(self): ...


@program(one)
def abstract_classes(x):
    s = Square(x)
    return s, s.area(), s.kind, isinstance(s, Shape), issubclass(Square, Shape)


@program(one, breaks=("would-raise",))
def abstract_construction(x):
    y = x + 1
    try:
        Shape()
    except TypeError:
        return y * 2


@program(one)
def generic_classes(x):
    b = Box(x)
    c = Box[int](3)
    return b.get() * c.get(), b, c


@program(lambda: (vec(), [1, 2], {"a": 1}, 3), breaks=("unsupported-call",))
def abstract_checks(x, a, d, n):
    return (
        x + 1,
        isinstance(a, collections.abc.Sequence),
        isinstance(d, collections.abc.Mapping),
        isinstance(n, numbers.Integral),
        isinstance(1.5, numbers.Real),
        isinstance(a, collections.abc.Hashable),
        isinstance(len, collections.abc.Callable),
        isinstance(x, collections.abc.Iterable),
        isinstance(a, Sized),
    )


# -- class bodies in the frame ----------------------------------------------------------------------------
@program(one, breaks=("class-definition",))
def class_in_the_frame(x):
    y = x + 1

    class Local:
        scale = 3

        def __init__(self, v):
            self.v = v

        def total(self):
            return self.v * self.scale + y

    return Local(y * 2).total() + 1, Local.__name__, Local.__qualname__


@program(one, breaks=("class-definition",))
def class_with_bases_in_the_frame(x):
    k = 2

    class Local(Right, metaclass=abc.ABCMeta):
        factor = k + 1
        both = [factor * i for i in range(3)]

        def name(self):
            return [__class__.__name__, *super().name()]

    o = Local(x)
    return o.right * Local.factor, o.name(), Local.both


@program(one, breaks=("loop",), plain=True)
def classes_in_a_loop(x):
    made = []
    for i in range(3):

        class Local:
            index = i

        made.append(Local)
    return x + 1, [c.index for c in made], made[0] is not made[1]


@program(
    one,
    breaks=(
        "class-definition",
        "unsupported-attribute",
        "unsupported-call",
        "unsupported-operation",
    ),
    plain=True,
)
def dataclass_in_the_frame(x):
    @dataclasses.dataclass
    class Local:
        a: Any
        b: int = 2

    o = Local(x)
    return o.a * o.b


@program(
    one,
    breaks=(
        "class-definition",
        "inline-refused",
    ),
)
def types_made_in_the_frame(x):
    kind = type("Kind", (Right,), {"k": 3})
    row = collections.namedtuple("row", "p q")
    return kind(x).right * kind.k + row(1, 2).q


# -- functions made in the frame ----------------------------------------------------------------------------
@program(one)
def nested_functions(x):
    count = 0
    seen = []

    def step(v, k=2, *rest, scale: float = 1.5, **kw) -> Any:
        """Step."""
        nonlocal count
        count += 1
        seen.append(k)
        return v * k * scale + len(rest) + len(kw)

    y = step(x) + step(x, 3, 4, scale=2, z=1)
    return (
        y,
        count,
        seen,
        step.__name__,
        step.__doc__,
        step.__defaults__,
        step.__kwdefaults__,
        step.__qualname__,
    )


@program(one)
def recursive_closure(x):
    def power(v, n):
        return v if n <= 1 else v * power(v, n - 1)

    return power(x, 3)


@program(one)
def mutual_closures(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return x + 1, even(2), odd(1)


@program(one)
def escaping_functions(x):
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    def read():
        return total

    add(5)
    return [f() for f in (read,)][0] + x, _use(add, read)


def _use(add, read):
    add(2)
    return read()


def twice(f):
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) * 2

    return wrapper


def with_factor(k):
    def decorate(f):
        def wrapper(x):
            return f(x) * k

        wrapper.factor = k
        return wrapper

    return decorate


@program(one)
def decorated_functions(x):
    @twice
    @with_factor(3)
    def f(v):
        return v + 1

    g = with_factor(2)(f)
    return f(x), g(x), g.factor


@program(one)
def function_attributes_made_here(x):
    def f(v):
        f.calls += 1
        return v + f.calls

    f.calls = 0
    f.__name__ = "other"
    return f(x), f(x), f.calls, f.__name__


@program(one)
def lambdas_in_containers(x):
    table = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b}
    fs = [lambda v, i=i: v + i for i in range(3)]
    late = [lambda: i for i in range(3)]
    return table["add"](x, 1), table["mul"](x, x), [f(1) for f in fs], [f() for f in late]


# -- globals, imports ---------------------------------------------------------------------------------
TOTAL = 0


@program(one, breaks=("unsupported-call",))
def global_writes(x):
    global TOTAL, FRESH
    TOTAL = 5
    TOTAL += 1
    FRESH = x
    y = FRESH + TOTAL
    del FRESH
    TOTAL = 0
    return y, "FRESH" in globals()


@program(one)
def imports_in_the_frame(x):
    import math
    import os.path
    import collections.abc as cabc
    from math import pi, tau as full
    from os import path
    import numpy.linalg
    from numpy import sin, linalg

    return sin(x) * pi + math.e, full, path is os.path, cabc.Sequence.__name__, linalg is numpy.linalg


@program(one, breaks=("opaque-object",))
def imports_that_load(x):
    import sys

    sys.modules.pop("tests.capture.lazily", None)
    y = x + 1
    from tests.capture import lazily

    return y * lazily.VALUE


@program(one, breaks=("import",))
def imports_that_fail(x):
    y = x + 1
    try:
        import no_such_module_at_all
    except ImportError as e:
        return y, str(e), e.name
    try:
        from math import nothing
    except ImportError as e:
        return y, str(e)


@program(one, breaks=("import",), plain=True)
def import_of_a_missing_name(x):
    y = x + 1
    try:
        from math import nothing
    except ImportError as e:
        return y, str(e)


# -- copies ---------------------------------------------------------------------------------------------
class Copied:
    def __init__(self, x):
        self.x = x
        self.inner = [x, 1]

    def __copy__(self):
        return Copied(self.x + 1)

    def __deepcopy__(self, memo):
        return Copied(copy.deepcopy(self.x, memo) + 2)


@program(lambda: ({"a": [vec(), 1], "b": (1, 2)}, Right(vec())))
def copies(d, o):
    shallow = copy.copy(d)
    deep = copy.deepcopy(d)
    other = copy.copy(o)
    third = copy.deepcopy(o)
    other.right = 1
    deep["a"][0] += 1
    return shallow, deep, other, third, shallow["a"] is d["a"], deep["b"] is d["b"], copy.copy(3), o


@program(lambda: (Copied(vec()), vec()))
def copy_hooks(c, x):
    return (
        copy.copy(c),
        copy.deepcopy([c, c]),
        copy.copy(x) + 1,
        copy.deepcopy(x),
        copy.copy([x]),
        copy.deepcopy((x, 1)),
    )


@program(one)
def copies_of_shared_objects(x):
    inner = [x]
    both = {"p": inner, "q": inner}
    made = copy.deepcopy(both)
    made["p"].append(1)
    return made, made["p"] is made["q"], both
