"""Corner cases of objects and classes, with prints that show the order; see ``programs.Program``."""

# ruff: noqa
from __future__ import annotations

import abc
import collections
import copy
import dataclasses
import enum
import functools
import typing
from typing import Any

import numpy as np

from tests.capture.programs import Program

PROGRAMS: list[Program] = []


def one() -> tuple[Any, ...]:
    return (np.ones(3),)


class A:
    k = 2

    def __init__(self, x):
        self.x = x

    def m(self):
        return self.x * self.k

    @property
    def p(self):
        return self.x + 1


class B:
    def __init__(self, x):
        self.x = x

    @property
    def bad(self):
        raise AttributeError("inner")

    def __getattr__(self, name):
        return ("hook", name)


def getattr_after_a_failing_property(b):
    return b.bad, b.other, hasattr(b, "q"), b.x + 1


PROGRAMS.append(Program(getattr_after_a_failing_property, ((lambda: (B(np.ones(3)),)),), plain=True))


class C:
    def __init__(self, x):
        self.x = x
        print("init")
        self.y = x + 1

    @property
    def p(self):
        print("p")
        return self.y * 2

    def __call__(self, k):
        print("call")
        return self.x * k

    def __setattr__(self, n, v):
        if n == "z":
            print("set")
        object.__setattr__(self, n, v)

    def __add__(self, o):
        print("add")
        return self.x + o

    def __getitem__(self, i):
        print("get")
        return self.x[i]

    def __bool__(self):
        print("bool")
        return True


def prints_in_special_methods(x):
    c = C(x)
    a = c.p + c(3)
    c.z = a
    b = c + 1
    if c:
        b = b + c[0]
    return a, b, c


PROGRAMS.append(Program(prints_in_special_methods, ((one),), plain=True))


def dict_across_a_break(o, x):
    d = o.__dict__
    print("break")
    d["new"] = x + 1
    y = o.new * 2
    o.new2 = y
    return d["new2"], list(d), y


PROGRAMS.append(Program(dict_across_a_break, ((lambda: (A(np.ones(3)), np.ones(3))),), plain=True))


def instance_and_its_dict(o, d):
    o.q = d["x"] + 1
    return d["q"] * 2, len(d)


def mk6():
    o = A(np.ones(3))
    return (o, o.__dict__)


PROGRAMS.append(Program(instance_and_its_dict, ((mk6),), plain=True))


def mk6b():
    return (A(np.ones(3)), {"x": np.ones(3), "q": 5})


PROGRAMS.append(
    Program(
        instance_and_its_dict,
        (
            (mk6b),
            (mk6),
        ),
        plain=True,
    )
)


class Node:
    def __init__(self, v):
        self.v = v
        self.next = None


def deep_copy_of_a_cycle(n, x):
    m = copy.deepcopy(n)
    m.v = x
    n.v = n.v + 1
    return m, m.next is m, n, m.next.v


def mk7():
    n = Node(np.ones(2))
    n.next = n
    return n, np.zeros(2)


PROGRAMS.append(Program(deep_copy_of_a_cycle, ((mk7),), plain=True))


def functions_by_identity(f, g, x):
    return f is g, f == g, x + 1, f.__name__


h = lambda: 1
PROGRAMS.append(
    Program(
        functions_by_identity,
        (
            (lambda: (h, h, np.ones(2))),
            (lambda: (h, lambda: 2, np.ones(2))),
        ),
        plain=True,
    )
)


def partial_with_attributes(x):
    p = functools.partial(max, 1)
    p.tag = "t"
    p.keywords["key"] = abs
    q = functools.partial(p, 2)
    return x + 1, q.args, p.tag, q.func is p


PROGRAMS.append(Program(partial_with_attributes, ((one),), plain=True))


@dataclasses.dataclass
class D:
    a: object
    b: int = 1


def dataclass_equality(x, y):
    return D(x) == D(x), x + 1, D(x, 1) == D(x, 2)


PROGRAMS.append(
    Program(
        dataclass_equality,
        (
            (lambda: (np.ones(3), 1)),
            (lambda: (1, 2)),
        ),
        plain=True,
    )
)


class S:
    __slots__ = ("a", "b")


def slots_that_are_empty(s, x):
    had = hasattr(s, "b")
    s.a = x + 1
    s.b = s.a * 2
    if had:
        del s.a
    return had, hasattr(s, "a"), s.b


def mk12():
    s = S()
    return s, np.ones(3)


def mk12b():
    s = S()
    s.b = 1
    return s, np.ones(3)


PROGRAMS.append(
    Program(
        slots_that_are_empty,
        (
            (mk12),
            (mk12b),
            (mk12),
        ),
        plain=True,
    )
)


class Cnt:
    total = 0
    log = []

    def __init__(self, x):
        Cnt.total += 1
        self.n = Cnt.total
        print("made", self.n)


def counted_instances(x):
    Cnt.total = 0
    a = Cnt(x)
    b = Cnt(x)
    return x + a.n + b.n, Cnt.total


PROGRAMS.append(Program(counted_instances, ((one),), plain=True))


def texts_of_errors(x):
    try:
        A.nothing
    except AttributeError as e:
        m = str(e)
    try:
        A(x).nothing
    except AttributeError as e:
        m2 = str(e), e.name
    try:
        A(x).p = 3
    except AttributeError as e:
        m3 = str(e)
    try:
        del A(x).nope
    except AttributeError as e:
        m4 = str(e)
    try:
        len(A(x))
    except TypeError as e:
        m5 = str(e)
    try:
        A(x) < A(x)
    except TypeError as e:
        m6 = str(e)
    try:
        A(x)()
    except TypeError as e:
        m7 = str(e)
    try:
        A(x)[0]
    except TypeError as e:
        m8 = str(e)
    try:
        A()
    except TypeError as e:
        m9 = str(e)
    try:
        iter(A(x))
    except TypeError as e:
        m10 = str(e)
    try:
        S().zz = 1
    except AttributeError as e:
        m11 = str(e)
    try:
        texts_of_errors.nothing
    except AttributeError as e:
        m12 = str(e)
    return x + 1, m, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12


PROGRAMS.append(Program(texts_of_errors, ((one),), plain=True))


def lambda_in_an_attribute(x, o):
    o.cb = lambda v: v + x
    g = o.cb
    return g(1), o.cb(2), o


PROGRAMS.append(Program(lambda_in_an_attribute, ((lambda: (np.ones(2), A(1))),), plain=True))


class Meta2(type):
    def __call__(cls, *a, **k):
        print("meta")
        return super().__call__(*a, **k)


class M2(metaclass=Meta2):
    def __init__(self, x, y=1):
        self.z = x * y


def metaclass_call_that_prints(x):
    return M2(x).z + M2(x, y=2).z


PROGRAMS.append(Program(metaclass_call_that_prints, ((one),), plain=True))


class P:
    items = []
    shared = {"n": 0}

    def __init__(self, x):
        self.x = x
        self.__priv = x + 1

    def priv(self):
        return self.__priv

    def add(self, v):
        self.items.append(v)
        self.shared["n"] += 1
        return len(self.items)

    def again(self):
        return type(self)(self.x * 2)

    def again2(self):
        return self.__class__(self.x * 3)

    def gen(self):
        for i in range(2):
            yield self.x * i

    @staticmethod
    def st(x):
        return x - 1

    def nested(self):
        def inner():
            return __class__.__name__, self.x

        return inner()


class Q(P):
    def __init__(self, x):
        super().__init__(x)
        self.y = 1

    def priv(self):
        return super().priv() * 10

    @property
    def pp(self):
        return super().priv()

    @staticmethod
    def st(x):
        return super(Q, Q).st(x) * 2

    def gen(self):
        yield from super().gen()

    def __getattribute__(self, n):
        if n == "magic":
            return 42
        return super().__getattribute__(n)

    def __setattr__(self, n, v):
        super().__setattr__(n, v)


def inheritance_corners(x):
    P.items.clear()
    P.shared["n"] = 0
    p = P(x)
    q = Q(x)
    return (
        p.add(1),
        q.add(2),
        p.items is q.items,
        P.shared,
        p.again().x + q.again2().y,
        type(q.again()).__name__,
        q.magic,
        q.priv(),
        q.pp,
        list(q.gen()),
        q.st(x),
        q.nested(),
        p.nested()[0],
        p.priv(),
    )


PROGRAMS.append(Program(inheritance_corners, (one,), plain=True))


def method_identity(x):
    p = P(x)
    m = p.add
    return m is p.add, p.add.__func__ is P.add, m.__self__ is p, P.st(1), p.st is P.st


PROGRAMS.append(Program(method_identity, (one,), plain=True))


class E(enum.Enum):
    A = 1
    B = 2

    def __init__(self, v):
        self.half = v / 2

    @classmethod
    def parse(cls, s):
        return cls[s.upper()]

    @property
    def sq(self):
        return self.value**2

    def __add__(self, o):
        return ("E+", o)

    def __lt__(self, o):
        return self.value < o.value


def enum_corners(x, e):
    return (
        x * e.half,
        E.parse("b") is E.B,
        e.sq,
        e + 1,
        e < E.B,
        sorted([E.B, E.A]),
        max(E, key=lambda m: m.value),
        e in E,
        [m.name for m in E],
        E(2).half,
        hash(e) == hash(E.A),
        str(e),
        f"{e}",
        repr(e),
        e is E.A,
        {E.A: 1}.get(e),
        e.__class__ is E,
        isinstance(e, E),
    )


PROGRAMS.append(
    Program(
        enum_corners,
        (
            lambda: (np.ones(2), E.A),
            lambda: (np.ones(2), E.B),
        ),
        plain=True,
    )
)


class Fl(enum.IntFlag):
    R = 4
    W = 2


def int_flags(x, f):
    return x + 1, f | Fl.W, bool(f & Fl.R), f == 4, ~f, Fl(6), f.value * x


PROGRAMS.append(Program(int_flags, (lambda: (np.ones(2), Fl.R),), plain=True))
NT = collections.namedtuple("NT", "a b")


class NT2(NT):
    def __new__(cls, a, b=5):
        return super().__new__(cls, a, b)

    def __eq__(self, o):
        return "eq"

    __hash__ = None

    @property
    def s(self):
        return self.a + self.b

    @classmethod
    def mk(cls, x):
        return cls(x)


class NT3(NT):
    def __init__(self, *a):
        self.extra = 1


def namedtuple_with_new(x, n):
    t = NT2(x)
    u = NT2.mk(x)
    return (
        t,
        t.s,
        t == u,
        t != 3,
        n.s,
        NT2(1, 2)[0],
        len(t),
        [*t],
        t._replace(a=1),
        NT(1, 2) == (1, 2),
        NT(1, 2) < NT(1, 3),
        NT(b=1, a=x).b,
        (1, 2) == NT(1, 2),
        type(t._replace(a=0)) is NT2,
        t + (1,),
        NT(1, 2) * 2,
    )


PROGRAMS.append(Program(namedtuple_with_new, (lambda: (np.ones(2), NT2(1, 2)),), plain=True))


def namedtuple_with_init(x, n):
    n2 = NT3(1, 2)
    return n.a + x, n.extra, n2.extra, n2, vars(n2)


PROGRAMS.append(Program(namedtuple_with_init, (lambda: (np.ones(2), NT3(1, 2)),), plain=True))


class V:
    def __init__(s, v):
        s.v = v

    def __eq__(s, o):
        return isinstance(o, V) and s.v == o.v

    def __hash__(s):
        return hash(s.v)


def equality_in_containers(x, vs):
    return (
        V(1) in vs,
        vs.index(V(2)),
        vs.count(V(1)),
        V(1) == V(1),
        V(1) != V(1),
        [V(1)] == [V(1)],
        (V(1),) == (V(1),),
        x + 1,
        {"a": V(1)} == {"a": V(1)},
    )


PROGRAMS.append(Program(equality_in_containers, (lambda: (np.ones(2), [V(1), V(2)]),), plain=True))


def objects_as_keys(x):
    d = {V(1): x}
    s = {V(1), V(2)}
    return d[V(1)] + 1, len(s), V(2) in s


PROGRAMS.append(Program(objects_as_keys, (one,), plain=True))


@dataclasses.dataclass
class DC:
    a: object
    b: list = dataclasses.field(default_factory=list)
    c: typing.ClassVar[int] = 3

    def __post_init__(self):
        self.b.append(self.a)


@dataclasses.dataclass(frozen=True, order=True)
class DF:
    n: int
    t: object = dataclasses.field(compare=False, default=None)

    def up(self, **k):
        return dataclasses.replace(self, **k)


def dataclass_corners(x, d):
    e = DC(x)
    f = copy.deepcopy(d)
    g = dataclasses.replace(DF(1), n=5, t=x)
    return (
        e,
        f,
        f.b is d.b,
        g,
        g.up(n=6),
        DF(1) < DF(2),
        hash(DF(1)) == hash(DF(1)),
        repr(DF(1)),
        dataclasses.asdict(DC(1)),
        DC.c,
        dataclasses.fields(DC)[0].name,
    )


PROGRAMS.append(Program(dataclass_corners, (lambda: (np.ones(2), DC(np.zeros(1))),), plain=True))


class It:
    def __init__(s, n):
        s.n = n

    def __iter__(s):
        for i in range(s.n):
            yield i

    def __len__(s):
        return s.n

    def __getitem__(s, i):
        if i >= s.n:
            raise IndexError(i)
        return i * 10

    def __reversed__(s):
        return iter([3, 2, 1])


def iterables_in_builtins(x, t):
    a, b, c = t
    return (
        [*t],
        sum(t),
        max(t),
        list(reversed(t)),
        list(zip(t, t)),
        dict(enumerate(t)),
        tuple(map(str, t)),
        x + a + b + c,
        t[1],
        1 in t,
        bool(It(0)),
        sorted(It(2), reverse=True),
        any(t),
        set(t),
        "".join(str(i) for i in t),
        [i for i in t if i],
    )


PROGRAMS.append(Program(iterables_in_builtins, (lambda: (np.ones(2), It(3)),), plain=True))


class Ctx:
    def __init__(s):
        s.log = []

    def __enter__(s):
        s.log.append("in")
        return s

    def __exit__(s, t, v, tb):
        s.log.append(t and t.__name__)
        return t is ValueError


def manager_that_suppresses(x):
    c = Ctx()
    with c as d:
        y = x + 1
        raise ValueError("v")
    with c:
        z = x * 2
    try:
        with c:
            raise KeyError("k")
    except KeyError as e:
        k = e.args
    return c.log, y, z, k


PROGRAMS.append(Program(manager_that_suppresses, (one,), plain=True))


class AB(abc.ABC):
    @abc.abstractmethod
    def go(s): ...
    @classmethod
    def __subclasshook__(c, o):
        return True if o is int else NotImplemented


class Im(AB):
    def go(s):
        return 1


class Vir:
    pass


AB.register(Vir)


def abstract_base_classes(x, v):
    return (
        x + 1,
        isinstance(v, AB),
        isinstance(3, AB),
        isinstance(Im(), AB),
        issubclass(Vir, AB),
        isinstance("s", AB),
        Im().go(),
    )


PROGRAMS.append(
    Program(
        abstract_base_classes,
        (
            lambda: (np.ones(2), Vir()),
            lambda: (np.ones(2), Im()),
            lambda: (np.ones(2), []),
        ),
        plain=True,
    )
)


class W:
    __slots__ = ("a", "__weakref__")

    def __init__(s, a):
        s.a = a


def slots_and_copies(x, w):
    c = W(x)
    w.a = c.a + 1
    return c.a * 2, w.a, copy.copy(c).a, hasattr(w, "b")


PROGRAMS.append(Program(slots_and_copies, (lambda: (np.ones(2), W(1)),), plain=True))


def attributes_of_changing_names(o, x, name):
    setattr(o, name, x + 1)
    if not hasattr(o, "cnt"):
        o.cnt = 0
    o.cnt += 1
    o.__dict__.setdefault("z", []).append(o.cnt)
    del o.__dict__[name]
    return o.cnt, getattr(o, name, None), o.z, vars(o)


PROGRAMS.append(
    Program(attributes_of_changing_names, (lambda: (P(np.ones(1)), np.ones(2), "foo"),), plain=True)
)


def attributes_of_an_outside_function(x, fn):
    fn.n = getattr(fn, "n", 0) + 1
    return x * fn(x), fn.n


def mkf():
    def q(v):
        return v + 1

    return np.ones(2), q


PROGRAMS.append(
    Program(
        attributes_of_an_outside_function,
        (
            mkf,
            mkf,
        ),
        plain=True,
    )
)


class Desc:
    def __get__(s, o, t=None):
        return ("get", o is None, t.__name__)


class Cd:
    d = Desc()
    e = property(lambda s: s.__dict__.get("e", 7), lambda s, v: s.__dict__.__setitem__("e", v))


def descriptors_and_properties(x):
    c = Cd()
    a = c.d
    c.d = 5
    b = c.d
    c.e = x + 1
    return a, b, Cd.d, c.e, Cd().e, vars(c)


PROGRAMS.append(Program(descriptors_and_properties, (one,), plain=True))


def decorators_in_the_frame(x):
    @functools.lru_cache(None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    @functools.wraps(descriptors_and_properties)
    def w(*a):
        return descriptors_and_properties(*a)

    return (
        x * fib(6),
        fib.cache_info().hits,
        w.__name__,
        w.__wrapped__ is descriptors_and_properties,
        w.__doc__,
    )


PROGRAMS.append(Program(decorators_in_the_frame, (one,), plain=True))


def match_of_everything(x, k):
    match k:
        case {"a": [P(x=v), *r], **rest}:
            return v + x, r, rest
        case [NT(a, b)] | (NT2(a=a, b=b),):
            return x + a + b
        case E.A | E.B as e:
            return e
        case str() as s if s:
            return s
        case float(v) | int(v):
            return x * v
        case None | True:
            return "n"
        case _:
            return "d"


PROGRAMS.append(
    Program(
        match_of_everything,
        (
            lambda: (np.ones(2), {"a": [P(np.ones(2)), 1, 2], "z": 3}),
            lambda: (np.ones(2), [NT(1, 2)]),
            lambda: (np.ones(2), E.B),
            lambda: (np.ones(2), ""),
            lambda: (np.ones(2), 2.5),
            lambda: (np.ones(2), None),
            lambda: (np.ones(2), "q"),
            lambda: (np.ones(2), (NT2(1, 2),)),
            lambda: (np.ones(2), True),
        ),
        plain=True,
    )
)
