"""Programs, and what is changed in their world between two calls: classes, functions, modules, closures.

A program is a module that defines ``f``; the parts behind lines of dashes are run in it one after another.
"""

from __future__ import annotations

from tests.capture.changing_classes import CLASSES
from tests.capture.changing_definitions import DEFINITIONS

WORLDS = {
    **CLASSES,
    **DEFINITIONS,
    "property_fget": """
class A:
    _k = 1
    @property
    def v(self): return self._k
a = A()
def f(x): return x * a.v
---
A._k = 4
---
a._k = 6
---
A.v = property(lambda s: 100)
---
A.v.fget.__code__ = (lambda s: 7).__code__
""",
    "super_cell": """
class A:
    def m(self): return 1
class B(A):
    def m(self): return super().m() + 1
b = B()
def f(x): return x * b.m()
---
class C:
    def m(self): return 70
class B2(B, C): pass
b.__class__ = B2
---
A.m = lambda s: 5
---
B.m = C.m
""",
    "globals_of_other": """
import types, sys
mod = types.ModuleType('othermod'); sys.modules['othermod'] = mod
exec('''
K = 2
def g(x): return x * K + H()
def H(): return 1
''', mod.__dict__)
g = mod.g
def f(x): return g(x)
---
mod.K = 5
---
mod.H = lambda: 50
---
del mod.K
---
mod.K = np.arange(4.)
---
mod.H.__code__ = (lambda: 9).__code__
---
sys.modules['othermod'] = types.ModuleType('othermod')
sys.modules['othermod'].K = 77
""",
    "import_in_frame": """
import types, sys
mod = types.ModuleType('othermod2'); sys.modules['othermod2'] = mod; mod.K = 3
def f(x):
    import othermod2
    from othermod2 import K
    return x * K + othermod2.K
---
mod.K = 5
---
m2 = types.ModuleType('othermod2'); m2.K = 8
sys.modules['othermod2'] = m2
---
del sys.modules['othermod2']
""",
    "descr_get_changed": """
class D:
    def __get__(self, o, t): return 3
class A: d = D()
a = A()
def f(x): return x * a.d + A.d
---
D.__get__ = lambda s, o, t: 4
---
A.d = 7
---
D.__set_name__ = lambda *a: None
A.d = D()
---
del D.__get__
A.d = 5
""",
    "context_manager_changed": """
class M:
    def __enter__(self): return 1
    def __exit__(self, *a): return False
m = M()
def f(x):
    try:
        with m as v:
            x = x + v
            raise ValueError('q')
    except ValueError:
        x = x - 10
    return x
---
M.__enter__ = lambda s: 5
---
M.__exit__ = lambda s, *a: True
---
m.__class__ = type('N', (), dict(__enter__=lambda s: 7, __exit__=lambda s, *a: None))
""",
    "iterator_changed": """
class It:
    def __init__(self, n): self.n = n
    def __iter__(self): self.i = 0; return self
    def __next__(self):
        self.i += 1
        if self.i > self.n: raise StopIteration
        return self.i
it = It(3)
def f(x):
    for v in it: x = x + v
    return x, list(it), sum(it)
---
It.__next__ = lambda s: (_ for _ in ()).throw(StopIteration)
---
def nx(self):
    self.i += 1
    if self.i > 2: raise StopIteration
    return 100
It.__next__ = nx
---
It.__iter__ = lambda s: iter([9])
---
It.__length_hint__ = lambda s: 3
""",
    "match_args": """
class P:
    __match_args__ = ('a', 'b')
    def __init__(self): self.a, self.b = 1, 2
p = P()
def f(x):
    match p:
        case P(u, v): return x * u + v
    return x
---
P.__match_args__ = ('b', 'a')
---
P.__match_args__ = ['b', 'a']
""",
    "dataclass_eq_order": """
from dataclasses import dataclass
@dataclass(order=True)
class P:
    a: int
    b: float = 2.0
ps = [P(2), P(1)]
def f(x):
    s = sorted(ps)
    return x * s[0].a, max(ps).a, ps[0] < ps[1], ps[0] == P(2)
---
P.__lt__ = lambda s, o: s.a > o.a
---
P.__gt__ = lambda s, o: False
---
P.__eq__ = lambda s, o: False
""",
    "hash_key": """
class K:
    def __init__(self, v): self.v = v
    def __hash__(self): return hash(self.v)
    def __eq__(self, o): return self.v == o.v
k1, k2 = K(1), K(1)
d = {k1: 5}
def f(x):
    return x * d.get(k2, 0), k2 in d, len({k1, k2})
---
K.__eq__ = lambda s, o: s is o
---
K.__hash__ = lambda s: id(s)
---
d[k2] = 9
""",
    "format_str": """
class A: pass
a = A()
def f(x):
    s = f"{a!s:.3}" if hasattr(A, '__str__') else ''
    return x, f"{a:>3}" if type(a).__format__ is not object.__format__ else 'none', str(a)[:3]
---
A.__str__ = lambda s: 'abcdef'
---
A.__format__ = lambda s, spec: 'F' + spec
---
A.__repr__ = lambda s: 'rrrrr'
---
del A.__str__
""",
    "list_subclass": """
class L(list):
    pass
l = L([1, 2, 3])
def f(x):
    return x * len(l), l[0], sum(l), 2 in l, list(l), l == [1, 2, 3], bool(l)
---
L.__len__ = lambda s: 9
---
L.__getitem__ = lambda s, i: 70
---
L.__iter__ = lambda s: iter([5, 5])
---
L.__contains__ = lambda s, v: False
---
L.__eq__ = lambda s, o: False
---
L.__bool__ = lambda s: False
---
l.append(4)
""",
    "dict_subclass": """
class D(dict): pass
d = D(a=1, b=2)
def f(x):
    return x * d['a'], len(d), list(d), d.get('z', 3), 'a' in d, d.setdefault('a', 9), dict(d), {**d}
---
D.__missing__ = lambda s, k: 8
del d['a']
---
D.__getitem__ = lambda s, k: 11
---
D.keys = lambda s: ['q']
---
D.get = lambda s, k, e: 33
---
D.__iter__ = lambda s: iter(['w'])
""",
    "int_subclass": """
class I(int): pass
i = I(3)
def f(x):
    return x * i, i + 1, 1 + i, -i, i == 3, hash(i), str(i), bool(i), [10, 20, 30, 40][i]
---
I.__add__ = lambda s, o: 50
---
I.__radd__ = lambda s, o: 60
---
I.__eq__ = lambda s, o: False
---
I.__index__ = lambda s: 1
---
I.__str__ = lambda s: 'I'
---
I.__bool__ = lambda s: False
---
I.__mul__ = lambda s, o: 5
---
I.__array_ufunc__ = None
I.__rmul__ = lambda s, o: 'rmul'
""",
    "exception_class": """
class Err(Exception): pass
class Err2(Err): pass
def g(x):
    raise Err2('a', 1)
def f(x):
    try:
        g(x)
    except Err as e:
        return x + 1, str(e), e.args
    except Exception as e:
        return x + 2, str(e)
---
Err2.__init__ = lambda s, *a: Exception.__init__(s, 'zz')
---
Err2.__str__ = lambda s: 'str'
---
class Err3(Exception): pass
Err2.__bases__ = (Err3,)
""",
    "singledispatch": """
import functools
@functools.singledispatch
def g(a): return 1
class A: pass
class B(A): pass
b = B()
def f(x): return x * g(b)
---
g.register(A, lambda a: 2)
---
g.register(B, lambda a: 3)
""",
    "cached_property": """
import functools
class A:
    k = 2
    @functools.cached_property
    def v(self): return self.k * 10
a = A()
def f(x): return x * a.v
---
del a.v
A.k = 3
---
a.__dict__['v'] = 1
---
A.v = property(lambda s: 4)
""",
    "init_subclass": """
class A:
    def __init_subclass__(cls, **k): cls.tag = 5
def f(x):
    class B(A): pass
    return x * B.tag
---
A.__init_subclass__ = classmethod(lambda cls, **k: setattr(cls, 'tag', 8))
""",
    "set_name_slots": """
class A:
    __slots__ = ('a', '__dict__')
a = A(); a.a = 1; a.b = 2
def f(x): return x * a.a + a.b
---
A.b = property(lambda s: 5)
---
A.a = 8
""",
    "annotations_docs": """
def g(a: int = 3) -> float:
    "doc"
    return a
class A:
    "cdoc"
    k: int = 3
def f(x):
    return x, g.__doc__, dict(g.__annotations__), g.__name__, A.__doc__, A.__name__, A.__annotations__, \\
        A.__qualname__, A.__module__
---
g.__doc__ = 'new'
---
g.__annotations__['a'] = str
---
g.__name__ = 'ggg'
---
A.__doc__ = 'n'
---
A.__name__ = 'AA'
---
A.__annotations__['k'] = str
---
A.__module__ = 'mm'
""",
    "fn_attrs": """
def g(): return 1
g.k = 2
def f(x): return x * g.k, getattr(g, 'zz', 0)
---
g.k = 5
---
g.zz = 3
---
del g.k
""",
    "instance_method_shadow": """
class A:
    def m(self): return 1
a = A()
def f(x): return x * a.m()
---
a.m = lambda: 5
---
del a.m
---
a.__dict__['m'] = lambda: 6
---
A.m = property(lambda s: (lambda: 8))
""",
    "builtin_exc": """
def f(x):
    try:
        raise KeyError('a')
    except KeyError as e:
        return x, repr(e)
---
KeyError = ValueError
---
del KeyError
""",
    "numpy_patch": """
def f(x): return np.sin(x) * np.pi
---
_s = np.sin
np.sin = lambda v: v * 0 + 5
---
np.sin = _s
""",
    "math_patch": """
import math
def f(x): return x * math.sqrt(4), math.pi
---
_s = math.sqrt
math.sqrt = lambda v: 50
---
math.sqrt = _s
_p = math.pi
math.pi = 3
---
math.pi = _p
""",
    "defaultfactory": """
from collections import defaultdict
d = defaultdict(int)
def f(x):
    return x + d['q'], len(d)
---
d.default_factory = lambda: 5
del d['q']
---
d.default_factory = None
del d['q']
""",
    "contextvar": """
from contextvars import ContextVar
c = ContextVar('c', default=3)
def f(x): return x * c.get()
---
tok = c.set(5)
---
c.reset(tok)
""",
    "bound_builtin": """
l = [1, 2]
ap = l.append
def f(x):
    ap(3)
    return x, len(l)
---
l2 = []
ap = l2.append
""",
    "closure_func_swapped": """
def deco(fn):
    def inner(x): return fn(x) + 1
    return inner
@deco
def f(x): return x * 2
---
f.__closure__[0].cell_contents = lambda x: x * 100
---
f.__closure__[0].cell_contents = np.sin
---
f.__closure__[0].cell_contents = 5
""",
}
