"""Calls of global functions that go to stand-ins (``python_code/stand_ins.py``)."""

from __future__ import annotations

import math
import os.path
import types

from dyncomp.python_code.stand_ins import with_stand_ins

NAMES = {"math": math, "os": os, "sqrt": math.sqrt, "len": len}


def replaced(source, *args):
    """What ``f`` of the source gives where calls of functions give their names."""
    space = dict(NAMES)
    exec(source, space)
    f = space["f"]
    calls = []

    def choose(value):
        if not isinstance(value, types.BuiltinFunctionType | types.FunctionType):
            return None
        return lambda *a, **k: calls.append(value.__name__) or value(*a, **k)

    code = with_stand_ins(f.__code__, space, ("math", "os", "posixpath"), choose)
    made = types.FunctionType(code, space, "f", f.__defaults__, f.__closure__)
    assert made(*args) == f(*args)
    return calls


def test_members_of_modules():
    assert replaced("def f(x): return math.sqrt(x) + math.pow(x, y := 2.0) + y", 2.0) == ["sqrt", "pow"]
    assert replaced("def f(x): return os.path.join(x, 'a')", "b") == ["join"]


def test_globals_and_builtins():
    assert replaced("def f(x): return sqrt(len(x)) if x else 0", [1, 2]) == ["len", "sqrt"]


def test_what_is_not_called_stays():
    assert replaced("def f(x): g = math.sqrt; return g(x) + (math.pi if x else math.e)", 2.0) == []
    assert replaced("def f(x): return list(map(math.sqrt, x))", [4.0]) == []


def test_local_imports():
    source = "def f(x):\n import math as m\n from math import sin, cos\n return m.sqrt(x) + sin(x) + cos(x)"
    assert replaced(source, 2.0) == ["sqrt", "sin", "cos"]
    assert replaced("def f(x, m=None):\n import math as m\n return m.sqrt(x)", 2.0) == []
    assert replaced("def f(x):\n import math as m\n if x: m = math\n return m.sqrt(x)", 2.0) == []


def test_generators_jumps_and_many_constants():
    assert replaced("def f(x): return [v for v in (math.sqrt(y) for y in x)]", [4.0, 9.0]) == ["sqrt"] * 2
    many = "\n".join(f" t += {k}.5" for k in range(300))
    source = f"def f(x):\n t = 0.0\n{many}\n for k in range(3):\n  try:\n   t += math.sqrt(k - 1)\n"
    source += "  except ValueError:\n   t += math.exp(1)\n return t"
    assert replaced(source, 1) == ["sqrt", "exp", "sqrt", "sqrt"]
