"""Programs whose constructors and protocols are changed between two calls (see changing_worlds)."""

from __future__ import annotations

DEFINITIONS = {
    "code_method": """
class A:
    def m(self): return 2
def h(a): return 3
a = A()
def f(x):
    return x * a.m()
---
A.m.__code__ = h.__code__
""",
    "closure": """
def make():
    k = 1
    def get(x): return x * k
    def put(v):
        nonlocal k
        k = v
    def drop():
        nonlocal k
        del k
    return get, put, drop
get, put, drop = make()
def f(x):
    return get(x)
---
put(3)
---
put(3.5)
---
put('a')
---
drop()
---
put(2)
---
get.__closure__[0].cell_contents = 20
""",
    "closure_root": """
def make():
    k = 1
    def get(x): return x * k
    def put(v):
        nonlocal k
        k = v
    def drop():
        nonlocal k
        del k
    return get, put, drop
f, put, drop = make()
---
put(3)
---
drop()
---
put(2)
""",
    "dataclass_replaced": """
from dataclasses import dataclass
@dataclass
class P:
    a: int = 1
    b: int = 2
def f(x):
    p = P(b=4)
    return x * p.a + p.b, p == P(1, 4), repr(p)
---
P.a = 10
---
P.__init__.__defaults__ = (5, 6)
---
P.__eq__ = lambda s, o: False
---
P.__repr__ = lambda s: 'hi'
---
@dataclass
class P:
    a: int = 3
    b: int = 2
    c: int = 9
""",
    "dataclass_fields": """
from dataclasses import dataclass, fields, asdict, replace, field
@dataclass
class P:
    a: int = 1
    b: list = field(default_factory=list)
def f(x):
    p = P()
    return x * p.a, [q.name for q in fields(p)], asdict(p), replace(p, a=3)
---
P.__dataclass_fields__['a'].name = 'zz'
---
P.__dataclass_fields__['a'].name = 'a'
del P.__dataclass_fields__['b']
""",
    "dataclass_post": """
from dataclasses import dataclass
@dataclass
class P:
    a: int = 1
    def __post_init__(self): self.c = self.a * 2
def f(x):
    return x * P(3).c
---
P.__post_init__ = lambda s: setattr(s, 'c', 100)
---
P.__new__ = lambda cls, *a: object.__new__(cls)
---
del P.__post_init__
P.c = 5
""",
    "namedtuple": """
from collections import namedtuple
P = namedtuple('P', 'a b')
def f(x):
    p = P(1, 2)
    return x * p.a + p.b, p._replace(a=3), p._asdict()
---
P.a = property(lambda s: 100)
---
P = namedtuple('P', 'b a')
---
P.__new__.__defaults__ = (1,)
---
P._fields = ('q', 'r')
""",
    "namedtuple_arg": """
from collections import namedtuple
P = namedtuple('P', 'a b')
p = P(1, 2)
def f(x):
    return x * p.a + p.b, p[0]
---
P.a = property(lambda s: 100)
---
P.__getitem__ = lambda s, i: 9
---
P.__getattribute__ = lambda s, i: 10
""",
    "new_added": """
class A:
    def __init__(self, v=1): self.v = v
def f(x):
    return x * A(3).v
---
def new(cls, *a):
    o = object.__new__(cls); o.w = 5; return o
A.__new__ = new
---
A.__init__ = lambda s, v: setattr(s, 'v', 9)
---
del A.__init__
A.v = 6
""",
    "init_added": """
class A:
    v = 1
def f(x):
    return x * A().v
---
A.__init__ = lambda s: setattr(s, 'v', 9)
---
def new(cls, *a):
    o = object.__new__(cls); o.v = 5; return o
A.__new__ = new
---
del A.__init__
""",
    "meta_call": """
class M(type):
    pass
class A(metaclass=M):
    def __init__(self): self.v = 1
def f(x):
    return x * A().v
---
def call_(cls, *a):
    o = type.__call__(cls, *a); o.v = 3; return o
M.__call__ = call_
---
del M.__call__
""",
    "meta_instancecheck": """
class M(type):
    pass
class A(metaclass=M): pass
class B(A): pass
b = B()
def f(x):
    return x * isinstance(b, A), isinstance(3, A), issubclass(B, A), issubclass(int, A)
---
M.__instancecheck__ = lambda c, o: False
---
M.__subclasscheck__ = lambda c, o: True
---
M.__instancecheck__ = lambda c, o: True
---
del M.__instancecheck__
""",
    "abc_register": """
import abc
class A(abc.ABC): pass
class B: pass
b = B()
def f(x):
    return x * isinstance(b, A), issubclass(B, A)
---
A.register(B)
""",
    "abc_register_collections": """
import collections.abc
class B: pass
b = B()
def f(x):
    return x * isinstance(b, collections.abc.Sized), isinstance(b, collections.abc.Iterable), \\
        isinstance(b, collections.abc.Sequence)
---
B.__len__ = lambda s: 3
---
B.__iter__ = lambda s: iter(())
---
collections.abc.Sequence.register(B)
""",
    "protocol": """
from typing import Protocol, runtime_checkable
@runtime_checkable
class P(Protocol):
    def go(self): ...
class B: pass
b = B()
def f(x):
    return x * isinstance(b, P)
---
B.go = lambda s: 1
""",
    "meta_getattr": """
class M(type): pass
class A(metaclass=M):
    k = 1
def f(x):
    return x * A.k, getattr(A, 'zz', 5)
---
M.k = 5
---
M.k = property(lambda c: 9)
---
M.__getattr__ = lambda c, n: 12
---
M.__getattribute__ = lambda c, n: 13
""",
    "iter_added": """
class A:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i
a = A()
def f(x):
    return x * sum(list(a)), 1 in a
---
A.__iter__ = lambda s: iter((5, 6))
---
A.__contains__ = lambda s, v: True
---
A.__iter__ = None
---
del A.__iter__
""",
    "binary_added": """
class A:
    def __init__(self, v): self.v = v
    def __add__(self, o): return A(self.v + o.v)
class B(A): pass
a, b = A(1), B(2)
def f(x):
    return x * (a + b).v
---
B.__radd__ = lambda s, o: A(50)
---
A.__radd__ = lambda s, o: A(60)
---
del B.__radd__
---
A.__add__ = lambda s, o: NotImplemented
""",
    "iadd_added": """
class A:
    def __init__(self, v): self.v = v
    def __add__(self, o): return A(self.v + o)
a = A(1)
def f(x):
    b = a
    b += 2
    return x * b.v
---
def iadd(s, o):
    s.v += 100; return s
A.__iadd__ = iadd
""",
    "array_ufunc_added": """
class A:
    def __radd__(self, o): return 5
a = A()
def f(x):
    return x + a
---
A.__array_ufunc__ = None
---
A.__array_ufunc__ = lambda s, *a, **k: 'uf'
---
del A.__array_ufunc__
A.__array_priority__ = 1000
---
A.__array__ = lambda s, dtype=None, copy=None: np.ones(4)
""",
    "array_protocol_added": """
class A:
    pass
a = A()
def f(x):
    return np.shape(a), np.asarray(a).dtype
---
A.__array__ = lambda s, dtype=None, copy=None: np.ones(4)
---
A.__array_interface__ = property(lambda s: np.zeros(2).__array_interface__)
""",
    "index_added": """
class A:
    pass
a = A()
def f(x):
    try:
        return x[a]
    except Exception as e:
        return type(e).__name__
---
A.__index__ = lambda s: 2
---
A.__index__ = lambda s: 3
""",
    "slots_dict": """
class A:
    __slots__ = ('a',)
    def __init__(self): self.a = 1
o = A()
def f(x):
    return x * getattr(o, 'a', 77)
---
del o.a
---
o.a = 4
---
A.a = 10
""",
    "enum_override": """
import enum
class E(enum.Enum):
    A = 1
    B = 2
    @property
    def value(self): print('v'); return self._value_ * 5
def f(x): return x * E.A.value, E.A.name
---
E.A._value_ = 7
---
E.value = property(lambda s: 3)
""",
    "nt_override": """
from collections import namedtuple
class P(namedtuple('P', 'a b')):
    @property
    def a(self): return 50
    c = 3
p = P(1, 2)
def f(x): return x * p.a + p.b, p[0], p.c, P(3, 4).a, P(3, 4).b, p._fields
---
P.c = 4
---
P.b = 7
""",
    "nt_defaults": """
from typing import NamedTuple
class P(NamedTuple):
    a: int
    b: int = 3
def f(x): return x * P(1).b, P(1)._replace(b=9), P(2)._asdict()
---
P.__new__.__defaults__ = (6,)
---
P.__new__.__defaults__ = (6, 7)
---
P._replace = lambda s, **k: 5
""",
    "wrapped_lru": """
import functools
@functools.lru_cache
def g(k): return k * K
K = 2
def f(x): return x * g(3)
---
K = 5
---
g.cache_clear()
""",
    "partial_changed": """
import functools
def g(a, b=1): return a * b
h = functools.partial(g, b=2)
def f(x): return h(x)
---
h = functools.partial(g, b=3)
---
h.__setstate__((g, (), {'b': 9}, None))
---
g.__code__ = (lambda a, b=1: a + b).__code__
""",
    "method_object": """
class A:
    def __init__(self): self.v = 2
    def m(self, x): return x * self.v
a = A()
m = a.m
def f(x): return m(x)
---
a.v = 5
---
A.m = lambda s, x: x
---
m = a.m
""",
}
