"""Small programs of attributes, descriptors and special methods; see ``programs.Program``."""

# ruff: noqa: E711, E721, PLR0133, PLR0124, SIM300, UP003, B006, B007, B009, B010, B023, B904, C403, C405, C408, C416, C417, C419, E731, F601, F841, PLW1641, RET505, RET503, SIM105, SIM108, UP031, UP032
from __future__ import annotations

import functools
import math
import operator
import types
from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


# -- attributes -----------------------------------------------------------------------------------------
class Base:
    """A base class."""

    scale = 2.0
    shared = "base"

    def __init__(self, x):
        self.x = x
        self.notes = {}

    @property
    def doubled(self):
        return self.x * 2

    @doubled.setter
    def doubled(self, value):
        self.x = value / 2

    @doubled.deleter
    def doubled(self):
        self.x = None

    @classmethod
    def make(cls, x):
        return cls(x)

    @staticmethod
    def halve(x):
        return x / 2

    def scaled(self, k=1):
        return self.x * self.scale * k


class Derived(Base):
    scale = 3.0

    def scaled(self, k=1):
        return super().scaled(k) + 1

    @property
    def doubled(self):
        return super().doubled + 1

    @classmethod
    def make(cls, x):
        made = super().make(x)
        made.extra = 1
        return made


@program(lambda: (Base(vec()),), lambda: (Derived(vec()),))
def properties(o):
    a = o.doubled
    return a + o.scaled(2) + o.scale


@program(lambda: (Base(vec()), vec()))
def property_setter(o, y):
    o.doubled = y
    z = o.x + 1
    del o.doubled
    return z, o.x


@program(lambda: (Base(vec()),), lambda: (Derived(vec()),))
def class_and_static_methods(o):
    made = o.make(o.x + 1)
    other = Derived.make(o.x)
    return made.x + Base.halve(other.x) + o.halve(o.x), made, other, type(made) is type(o)


@program(one)
def objects_made_here(x):
    a = Base(x)
    b = Derived(x + 1)
    a.other = b
    b.other = a
    return a, b, a.scaled(3) + b.scaled() + b.doubled


@program(lambda: (Base(vec()),))
def deleted_attributes(o):
    o.temp = o.x + 1
    y = o.temp * 2
    del o.temp
    del o.notes
    o.last = 1
    o.notes = 5
    return y, hasattr(o, "temp"), list(vars(o))


@program(one)
def deleted_attribute_of_a_new_object(x):
    o = Base(x)
    del o.x
    o.z = 1
    o.x = x + 1
    return o, list(o.__dict__)


@program(lambda: (Base(vec()),))
def instance_dict(o):
    o.y = o.x + 1
    d = o.__dict__
    d["z"] = o.x * 2
    o.w = 5
    return o.z + d["x"] + o.y, list(d), len(vars(o)), "w" in d, d


@program(one)
def instance_dict_of_a_new_object(x):
    o = Base(x)
    o.__dict__.update(y=x + 1, z=2)
    vars(o)["x"] = x * 2
    return o, o.y + o.x, sorted(vars(o))


@program(lambda: (Base(vec()), "y"))
def attributes_by_name(o, name):
    setattr(o, name, o.x * 2)
    a = getattr(o, name)
    b = getattr(o, "nothing", None)
    c = getattr(o, "nothing", 3)
    if hasattr(o, name) and not hasattr(o, "nothing"):
        a = a + c
    delattr(o, name)
    return a, b, hasattr(o, name)


@program(lambda: (Base(vec()),))
def class_facts(o):
    cls = o.__class__
    facts = (cls.__name__, type(o).__qualname__, o.__module__, o.__doc__, cls.__bases__, cls.__mro__)
    return o.x + len(facts), facts, cls is Base, cls.scale


class Slotted:
    __slots__ = ("a", "b", "__dict__")
    kind = "slotted"

    def __init__(self, a):
        self.a = a

    def total(self):
        self.b = self.a + 1
        return self.a + self.b


class OnlySlots:
    __slots__ = ("p", "q")

    def __init__(self, p, q=None):
        self.p = p
        if q is not None:
            self.q = q


@program(lambda: (Slotted(vec()),))
def slots(o):
    t = o.total()
    o.c = t * 2
    return t + o.a, o.c, o.kind, hasattr(o, "b"), o.b


@program(lambda: (OnlySlots(vec()),), lambda: (OnlySlots(vec(), vec()),))
def only_slots(o):
    if hasattr(o, "q"):
        return o.p + o.q
    o.q = o.p * 2
    made = OnlySlots(o.q, 3)
    return made.p + made.q, hasattr(OnlySlots(1), "q")


@program(lambda: (OnlySlots(vec(), 1),))
def slot_returned(o):
    o.q = o.p * 2
    made = OnlySlots(o.q + 1)
    del o.q
    return [made.p, hasattr(o, "q"), hasattr(made, "q")]


class Positive:
    """A data descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return getattr(obj, self.name) * 1.0

    def __set__(self, obj, value):
        setattr(obj, self.name, np.abs(value))

    def __delete__(self, obj):
        setattr(obj, self.name, None)


class NonData:
    def __init__(self, k):
        self.k = k

    def __get__(self, obj, owner):
        if obj is None:
            return owner.__name__
        return obj.value * self.k


class Described:
    value = Positive()
    tripled = NonData(3)

    def __init__(self, value):
        self.value = value


@program(lambda: (Described(vec() - 1),))
def descriptors(o):
    a = o.value + o.tripled
    o.value = -a
    o.tripled = a
    made = Described(o.value)
    return a, o.value, o.tripled, made.tripled, Described.tripled, o.__dict__["_value"]


@program(lambda: (Described(vec() - 1),))
def descriptor_deleted(o):
    a = o.value
    del o.value
    return a, o._value


class Lazy:
    def __init__(self, x):
        self.x = x
        self.computed = 0

    @functools.cached_property
    def squared(self):
        self.computed += 1
        return self.x * self.x


@program(lambda: (Lazy(vec()),))
def cached_property(o):
    a = o.squared
    b = o.squared
    made = Lazy(o.x)
    return a + b + made.squared, a is b, o.computed, made, "squared" in o.__dict__


class Dynamic:
    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        if name.startswith("x"):
            return self.x * int(name[1:])
        raise AttributeError(name)


class Recorder:
    def __init__(self, x):
        object.__setattr__(self, "log", [])
        self.x = x

    def __setattr__(self, name, value):
        self.log.append(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.log.append("del " + name)
        object.__delattr__(self, name)


class Everything:
    def __init__(self, x):
        self.x = x

    def __getattribute__(self, name):
        if name == "twice":
            return object.__getattribute__(self, "x") * 2
        return super().__getattribute__(name)


@program(lambda: (Dynamic(vec()),))
def getattr_hook(o):
    made = Dynamic(o.x + 1)
    return o.x3 + made.x2, getattr(o, "y", "none"), hasattr(made, "q")


@program(lambda: (Recorder(vec()),))
def setattr_hook(o):
    o.y = o.x + 1
    o.x = 2
    made = Recorder(o.y)
    made.z = 1
    del made.z
    return o, made, o.log, made.log + o.log


@program(lambda: (Everything(vec()),))
def getattribute_hook(o):
    return o.twice + o.x, Everything(o.x).twice


def decorated(x):
    """Documented."""
    return x + 1


decorated.factor = 3
decorated.calls = 0


@program(one)
def function_attributes(x):
    decorated.calls += 1
    name = decorated.__name__
    return (
        x * decorated.factor,
        name,
        decorated.__doc__,
        decorated.__module__,
        decorated.__qualname__,
        decorated.calls >= 1,
    )


@program(lambda: (Base(vec()),), breaks=("unsupported-operation",))
def bound_methods(o):
    m = o.scaled
    made = Base(o.x).scaled
    return m(2), m.__self__ is o, m.__func__ is Base.scaled, m.__name__, made.__func__(o), m, m == o.scaled


@program(one)
def partial_attributes(x):
    p = functools.partial(Base.halve, x)
    q = functools.partial(functools.partial(decorated), x)
    return p(), q(), p.args, p.keywords, p.func is Base.halve, q.func is decorated, q.args


@program(one)
def module_attributes(x):
    return x * math.pi, math.__name__, np.__name__, hasattr(math, "nothing"), getattr(math, "nothing", 1)


class Counter:
    count = 0
    seen = []

    def __init__(self, x):
        type(self).count += 1
        Counter.seen.append(self.count)
        self.x = x


@program(one)
def class_attributes_written(x):
    Counter.count = 0
    Counter.seen.clear()
    a = Counter(x)
    b = Counter(x + 1)
    return a.x + b.x + Counter.count, a.count, list(Counter.seen)


class SubCounter(Counter):
    pass


@program(one, breaks=("unsupported-attribute",), plain=True)
def class_attributes_through_subclasses(x):
    Counter.count = 10
    SubCounter.count = 5
    a = SubCounter(x)
    del SubCounter.count
    return a.x + SubCounter.count, Counter.count, a.count, "count" in vars(SubCounter)


class Meta(type):
    registry = {}

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = cls.label
        return made

    @property
    def label(cls):
        return cls.__name__.lower()

    def describe(cls):
        return "class " + cls.__name__

    def __len__(cls):
        return 7

    def __contains__(cls, item):
        return item == 3

    def __getitem__(cls, item):
        return (cls, item)


class WithMeta(metaclass=Meta):
    def __init__(self, x):
        self.x = x


@program(one)
def metaclass(x):
    made = WithMeta(x)
    return made, made.x + len(WithMeta), WithMeta.label, WithMeta.describe(), 3 in WithMeta, WithMeta[x][1]


# -- special methods --------------------------------------------------------------------------------------
class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        if isinstance(other, Number):
            return Number(self.v + other.v)
        if isinstance(other, (int, float)):
            return Number(self.v + other)
        return NotImplemented

    def __radd__(self, other):
        return Number(self.v + other)

    def __sub__(self, other):
        return Number(self.v - other.v)

    def __imul__(self, other):
        self.v = self.v * other
        return self

    def __mul__(self, other):
        return Number(self.v * getattr(other, "v", other))

    __rmul__ = __mul__

    def __matmul__(self, other):
        return Number(self.v @ other.v)

    def __pow__(self, k):
        return Number(self.v**k)

    def __neg__(self):
        return Number(-self.v)

    def __pos__(self):
        return self

    def __invert__(self):
        return "inverted"

    def __abs__(self):
        return Number(np.abs(self.v))

    def __floordiv__(self, other):
        return "floor"

    def __divmod__(self, other):
        return "divmod"

    def __round__(self, digits=None):
        return f"rounded {digits}"

    def __lshift__(self, k):
        return ("lshift", k)

    def __rshift__(self, k):
        return ("rshift", k)

    def __and__(self, k):
        return ("and", k)

    def __rand__(self, k):
        return ("rand", k)


class SubNumber(Number):
    def __radd__(self, other):
        return "sub radd"


class Same:
    def __add__(self, other):
        return NotImplemented

    def __radd__(self, other):
        return "radd of same"


@program(lambda: (Number(vec()), Number(vec())))
def operators(a, b):
    c = a + b
    c = c + 1
    c = 2 + c
    c *= 3
    c = -c * b - a
    return c.v, (a @ b).v, (a**2).v, +a is a, ~a, abs(c).v, (2.0 * a).v


@program(lambda: (Number(vec()), SubNumber(vec())), breaks=("would-raise", "unsupported-call"))
def operators_and_subclasses(a, b):
    return a.v + b.v, a + b, a // b, divmod(a, b), round(a), round(a, 2), a << 1, a >> 2, a & 1, 1 & a


@program(one)
def operators_of_one_type(x):
    try:
        Same() + Same()
    except TypeError as e:
        found = str(e)
    return x + 1, found, 1 + Same()


class Ordered:
    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return self.key < other.key

    def __eq__(self, other):
        if not isinstance(other, Ordered):
            return NotImplemented
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)


@functools.total_ordering
class Total:
    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return self.key < other.key

    def __eq__(self, other):
        return self.key == other.key


class Plain:
    pass


@program(one)
def comparisons(x):
    a, b = Ordered(1), Ordered(2)
    p, q = Plain(), Plain()
    found = (
        a < b,
        a > b,
        a == b,
        a != b,
        a == Ordered(1),
        a == 3,
        a != 3,
        p == p,
        p == q,
        p != q,
        p == 1,
        p == None,
        None == p,
    )
    return x + 1, found


@program(one)
def total_ordering(x):
    a, b = Total(1), Total(2)
    return x * 2, a < b, a <= b, a > b, a >= b, a == b, a != b


@program(one, breaks=("data-dependent-value",))
def sorted_objects(x):
    items = [Ordered(3), Ordered(1), Ordered(2)]
    best = min(items)
    worst = max(items, key=lambda o: o.key)
    return x * best.key + worst.key, [o.key for o in sorted(items)]


class Bag:
    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Bag(self.items[i])
        return self.items[i]

    def __setitem__(self, i, v):
        self.items[i] = v

    def __delitem__(self, i):
        del self.items[i]

    def __contains__(self, v):
        return any(v is i for i in self.items)

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return iter(self.items[::-1])

    def __bool__(self):
        return True

    def __call__(self, *args, **kwargs):
        return len(args) + len(kwargs)


@program(lambda: (Bag([vec(), vec(3), 5]),))
def container_methods(b):
    b[2] = b[0] + 1
    del b[1]
    total = 0
    for item in b:
        total = total + item
    y = b[0]
    first, second = b
    return (
        total,
        len(b),
        y in b,
        3 in b,
        b(1, k=2),
        [*b],
        list(b[1:]),
        first + second,
        bool(b),
        list(reversed(b)),
    )


class OldSequence:
    def __init__(self, items):
        self.items = items

    def __getitem__(self, i):
        return self.items[i]


@program(one, breaks=("data-dependent-branch",))
def getitem_iteration(x):
    s = OldSequence((x, x + 1, 2))
    total = 0
    for item in s:
        total = total + item
    return total, 2 in s


class CountUp:
    def __init__(self, n):
        self.i = 0
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i


@program(one)
def class_iterator(x):
    for i in CountUp(3):
        x = x + i
    it = CountUp(2)
    a = next(it)
    b = next(it)
    c = next(it, "end")
    return x, a, b, c, list(CountUp(3)), sum(CountUp(4)), it


class Truthy:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


class Converts:
    def __int__(self):
        return 3

    def __float__(self):
        return 2.5

    def __index__(self):
        return 2

    def __complex__(self):
        return 1j

    def __bool__(self):
        return False

    def __str__(self):
        return "str!"

    def __repr__(self):
        return "repr!"

    def __format__(self, spec):
        return f"<{spec}>"

    def __hash__(self):
        return 42

    def __round__(self):
        return 9

    def __trunc__(self):
        return 8

    def __floor__(self):
        return 7

    def __ceil__(self):
        return 6


@program(
    one,
    breaks=(
        "data-dependent-value",
        "unsupported-call",
    ),
)
def conversions(x):
    c = Converts()
    y = x * float(c) + int(c)
    facts = (complex(c), bool(c), str(c), repr(c), f"{c} {c!r} {c:>5}", format(c, "q"), hash(c), round(c))
    more = (math.trunc(c), math.floor(c), math.ceil(c), [1, 2, 3, 4][c], operator.index(c))
    return y + x[c], facts, more, not c, bool(Truthy(0)), bool(Truthy(2)), not Plain()


class Manager:
    def __init__(self):
        self.log = []

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, tb):
        self.log.append(kind)
        return False


@program(one)
def own_manager(x):
    with Manager() as m:
        y = x + 1
    return y, m.log


class Made:
    def __new__(cls, x, *rest):
        self = super().__new__(cls)
        self.made = len(rest)
        return self

    def __init__(self, x, *rest):
        self.x = x


class Cached:
    known = None

    def __new__(cls):
        if cls.known is None:
            return "not one"
        return cls.known


class Single:
    instance = None

    def __new__(cls, x):
        if cls.instance is None:
            cls.instance = object.__new__(cls)
        return cls.instance

    def __init__(self, x):
        self.x = x


@program(one)
def new_in_python(x):
    m = Made(x, 1, 2)
    n = Made.__new__(Made, 1)
    o = object.__new__(Base)
    return m, m.x + m.made, Cached(), n.made, vars(o), object.__new__(Plain)


@program(one)
def singleton(x):
    Single.instance = None
    a = Single(x)
    b = Single(x + 1)
    Single.instance = None
    return a is b, a.x + b.x, a


class Registered:
    found = []

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__()
        Registered.found.append(cls.__name__)

    def __class_getitem__(cls, item):
        return (cls.__name__, item)


class InRegistry(Registered):
    pass


@program(one)
def class_getitem(x):
    return x + len(Registered.found), Registered[3], list[int] == list[int], dict[str, int].__origin__ is dict


class Matching(type):
    def __instancecheck__(cls, obj):
        return hasattr(obj, "x")

    def __subclasscheck__(cls, other):
        return other is int


class Duck(metaclass=Matching):
    pass


@program(lambda: (Base(vec()),))
def instance_checks(o):
    return o.x + 1, isinstance(o, Duck), isinstance(3, Duck), issubclass(int, Duck), issubclass(str, Duck)


# -- array protocols ----------------------------------------------------------------------------------
class Arrayish:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x if dtype is None else self.x.astype(dtype)


class Ufuncish:
    def __init__(self, x):
        self.x = x

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [getattr(i, "x", i) for i in inputs]
        return ("ufunc", getattr(ufunc, method)(*plain, **kwargs))

    def __array_function__(self, func, types, args, kwargs):
        return ("function", func.__name__)


@program(lambda: (Arrayish(vec()), vec()), breaks=("unsupported-call",))
def array_protocol(o, x):
    return np.sin(o) + x, np.asarray(o) * 2, x + o


@program(lambda: (Ufuncish(vec()), vec()), breaks=("unsupported-call",), plain=True)
def array_ufunc_protocol(o, x):
    return np.sin(o), np.add(x, o), x + o, np.concatenate([x, o]), x * 2


# -- identity -----------------------------------------------------------------------------------------
@program(lambda: (Base(vec()), Base(vec())), lambda: (lambda b: (b, b))(Base(vec())))
def identity_of_arguments(a, b):
    same = a is b
    a.x = a.x + 1
    return b.x * 2, same, a is not b


@program(lambda: (vec(), vec()), lambda: (lambda b: (b, b))(vec()))
def identity_of_arrays(a, b):
    if a is b:
        return a * 2
    return a + b


BIG = 10**6


def _equal_ints():
    return vec(), int("1000"), int("1000")


def _same_ints():
    n = int("1000")
    return vec(), n, n


@program(_equal_ints, _same_ints)
def identity_of_ints(x, a, b):
    return x + 1, a is b, a == b


@program(lambda: (vec(), 5, 5))
def identity_of_small_ints(x, a, b):
    return x + 1, a is b, a is not b, a is None, x is None, True is True


@program(one)
def types_by_identity(x):
    return x + 1, type(x) is np.ndarray, type(1) is int, type(x) in (list, np.ndarray), type([]) == list


@program(
    lambda: (vec(), 1),
    lambda: (vec(), 1.5),
    lambda: (vec(), True),
    lambda: (vec(), "s"),
    lambda: (vec(), None),
)
def instance_of_unions(x, v):
    if isinstance(v, int | float):
        x = x + v
    return (
        x,
        isinstance(v, (str, (bytes, int))),
        isinstance(v, str | None),
        callable(v),
        callable(len),
        callable(Plain),
    )


@program(lambda: (types.SimpleNamespace(x=vec(), y=1),))
def simple_namespace(n):
    n.z = n.x + n.y
    made = types.SimpleNamespace(a=n.z, b=2)
    made.c = made.a * made.b
    return made, made.c, n.z
