"""Programs whose classes are changed between two calls (see changing_worlds)."""

from __future__ import annotations

CLASSES = {
    "enum_value": """
import enum
class E(enum.Enum):
    A = 1
    B = 2
def f(x): return x * E.A.value
---
E.A._value_ = 7
""",
    "enum_attr": """
import enum
class E(enum.Enum):
    A = 1
    B = 2
    def twice(self): return self.value * 2
def f(x): return x * E.A.twice()
---
E.twice = lambda self: 100
---
E.A.extra = 1
""",
    "enum_arg": """
import enum
class E(enum.Enum):
    A = 1
    B = 2
e = E.A
def f(x): return x * e.value, e.name
---
E.A._value_ = 9
---
e = E.B
---
E.B._name_ = 'Q'
""",
    "enum_by_value": """
import enum
class E(enum.Enum):
    A = 1
    B = 2
def f(x): return x * E(1).value, E['A'].name, E(1) is E.A, [m.name for m in E], len(E)
---
E.A._value_ = 3
""",
    "bases": """
class A: pass
class B: pass
class C(A): pass
c = C()
def f(x): return x + isinstance(c, A), issubclass(C, B)
---
C.__bases__ = (B,)
""",
    "bases_method": """
class A:
    def m(self): return 1
class B:
    def m(self): return 2
class C(A): pass
c = C()
def f(x): return x + c.m()
---
C.__bases__ = (B,)
""",
    "bases_super": """
class A:
    def m(self): return 1
class B:
    def m(self): return 2
class C(A):
    def m(self): return super().m() * 10
c = C()
def f(x): return x + c.m()
---
C.__bases__ = (B,)
---
B.m = lambda self: 5
---
class D(B):
    def m(self): return 77
C.__bases__ = (D,)
---
C.m = lambda self: 3
""",
    "class_of_instance": """
class A:
    k = 1
class B:
    k = 2
o = A()
def f(x): return x * o.k, isinstance(o, A)
---
o.__class__ = B
""",
    "eq_added": """
class A:
    pass
a, b = A(), A()
def f(x): return x * (a == b), a != b, [a] == [b], a in [b], (a,) == (b,)
---
A.__eq__ = lambda s, o: True
---
del A.__eq__
---
A.__ne__ = lambda s, o: 5
""",
    "eq_base_added": """
class Base: pass
class A(Base):
    pass
a, b = A(), A()
def f(x): return x * (a == b), a != b, [a] == [b], a in [b], {1: a} == {1: b}
---
Base.__eq__ = lambda s, o: True
""",
    "hash_added": """
class A:
    pass
a = A()
d = {}
def f(x): return x * (hash(a) == 5)
---
A.__hash__ = lambda s: 5
""",
    "bool_added": """
class A: pass
a = A()
def f(x): return (x + 1 if a else x - 1), bool(a), not a
---
A.__bool__ = lambda s: False
---
del A.__bool__
---
A.__len__ = lambda s: 0
""",
    "len_added": """
class A:
    def __len__(self): return 3
a = A()
def f(x): return (x + 1 if a else x - 1), len(a)
---
A.__len__ = lambda s: 0
---
A.__bool__ = lambda s: True
---
del A.__len__
""",
    "getattr_added": """
class A:
    def __init__(self): self.v = 1
a = A()
def f(x): return x + a.v, getattr(a, 'w', 5), hasattr(a, 'w')
---
A.__getattr__ = lambda s, n: 9
---
del A.__getattr__
---
A.__getattribute__ = lambda s, n: 11
""",
    "call_added": """
class A:
    pass
a = A()
def f(x):
    return x + (a(1) if callable(a) else 0)
---
A.__call__ = lambda s, v: 9
---
del A.__call__
""",
    "call_changed": """
class A:
    def __call__(self, v): return 1
a = A()
def f(x):
    return x + a(1)
---
A.__call__ = lambda s, v: 9
---
del A.__call__
""",
    "property_added": """
class A:
    def __init__(self): self.v = 1
a = A()
def f(x):
    return x + a.v
---
A.v = property(lambda s: 50)
---
del A.v
---
class D:
    def __get__(s, o, t): return 99
    def __set__(s, o, v): pass
A.v = D()
---
A.v = 3
""",
    "nondata_becomes_data": """
class D:
    def __get__(s, o, t): return 99
class A:
    v = D()
    def __init__(self): self.__dict__['v'] = 1
a = A()
def f(x):
    return x + a.v
---
D.__set__ = lambda s, o, v: None
---
del D.__set__
---
D.__delete__ = lambda s, o: None
---
del D.__delete__
---
del a.__dict__['v']
---
D.__get__ = lambda s, o, t: 5
---
del D.__get__
x2 = a.v
def f2(x): return x
""",
    "setattr_added": """
class A: pass
a = A()
def f(x):
    a.q = 3
    return x + a.__dict__['q']
---
A.__setattr__ = lambda s, n, v: object.__setattr__(s, n, v * 2)
---
del A.__setattr__
---
A.q = property(lambda s: 0, lambda s, v: s.__dict__.__setitem__('q', 70))
""",
    "delattr_added": """
class A: pass
a = A()
def f(x):
    a.q = 3
    del a.q
    return x + hasattr(a, 'q')
---
A.__delattr__ = lambda s, n: None
""",
    "module_attr_deleted": """
import types, sys
mod = types.ModuleType('mod'); mod.k = 3
def f(x):
    return x + mod.k
---
del mod.k
---
mod.__getattr__ = lambda n: 44
---
mod.k = 2
""",
    "module_getattr": """
import types, sys
mod = types.ModuleType('mod'); mod.__getattr__ = lambda n: 44
def f(x):
    return x + mod.k, hasattr(mod, 'zz')
---
mod.__getattr__ = lambda n: 45
---
mod.k = 2
---
del mod.k
---
del mod.__getattr__
""",
    "module_class": """
import types, sys
mod = types.ModuleType('mod'); mod.k = 3
def f(x):
    return x + mod.k
---
class M(types.ModuleType):
    k = property(lambda s: 5)
mod.__class__ = M
""",
    "global_deleted": """
k = 3
def f(x):
    return x + k
---
del k
---
import builtins
builtins.k = 5
---
del builtins.k
""",
    "builtin_shadowed": """
def f(x):
    return x + len([1, 2])
---
len = lambda v: 100
---
del len
---
import builtins
_l = builtins.len
builtins.len = lambda v: 55
---
builtins.len = _l
""",
    "defaults": """
def g(a, b=2, *, c=3): return a * b + c
def f(x):
    return g(x)
---
g.__defaults__ = (5,)
---
g.__defaults__ = None
---
g.__defaults__ = (1, 2)
---
g.__kwdefaults__ = {'c': 100}
---
g.__kwdefaults__['c'] = 7
---
g.__kwdefaults__ = None
---
g.__kwdefaults__ = {'c': 1, 'd': 3}
""",
    "defaults_root": """
def f(x, b=2, *, c=3):
    return x * b + c
---
f.__defaults__ = (5,)
---
f.__kwdefaults__ = {'c': 8}
---
f.__kwdefaults__['c'] = 9
---
f.__defaults__ = None
""",
    "code_root": """
def f(x):
    return x * 2
def g(x):
    return x * 3
---
f.__code__ = g.__code__
""",
    "code": """
def g(a): return a * 2
def h(a): return a * 3
def f(x):
    return g(x)
---
g.__code__ = h.__code__
""",
}
