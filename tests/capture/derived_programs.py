"""Programs with instances of classes that derive from builtin ones; see ``programs.Program``."""

# ruff: noqa: B006, B023, C400, C408, C416, RET503, SIM118, SIM300
from __future__ import annotations

import collections
import dataclasses
import typing
from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


class Plain(dict):
    pass


class Attributes(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Bunch(dict):
    """As in sklearn.utils."""

    def __init__(self, **kwargs):
        super().__init__(kwargs)
        self.__dict__["_deprecated"] = {}

    def __getitem__(self, key):
        if key in self.__dict__.get("_deprecated", {}):
            raise KeyError(key)
        return super().__getitem__(key)

    def __setattr__(self, key, value):
        self[key] = value

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key) from None


class Doubling(dict):
    def __missing__(self, key):
        value = self[key] = key * 2
        return value


class Loud(dict):
    """Each access goes through the class's own methods, and is seen."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = []

    def __getitem__(self, key):
        self.log.append(("get", key))
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        self.log.append(("set", key))
        super().__setitem__(key, value)

    def __delitem__(self, key):
        self.log.append(("del", key))
        super().__delitem__(key)

    def __contains__(self, key):
        self.log.append(("in", key))
        return super().__contains__(key)

    def __len__(self):
        return 100 + super().__len__()

    def __iter__(self):
        self.log.append("iter")
        return iter(sorted(super().__iter__()))

    def raw(self):
        return [(k, dict.__getitem__(self, k)) for k in dict.__iter__(self)]


class Ordered(collections.OrderedDict):
    def first(self):
        return next(iter(self.values()))


class ModelOutput(collections.OrderedDict):
    """As in transformers.utils."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def __getitem__(self, k):
        if isinstance(k, str):
            inner = dict(self.items())
            return inner[k]
        return self.to_tuple()[k]

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


@dataclasses.dataclass
class Output(ModelOutput):
    logits: Any = None
    hidden: Any = None


class Stack(list):
    def push(self, value):
        self.append(value)

    def peek(self):
        return self[-1]


class Matrix(list):
    def __init__(self, rows):
        super().__init__(rows)
        self.n = len(rows)

    def __getitem__(self, key):
        if isinstance(key, tuple):
            return super().__getitem__(key[0])[key[1]]
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        if isinstance(key, tuple):
            super().__getitem__(key[0])[key[1]] = value
        else:
            super().__setitem__(key, value)


class Twice(list):
    def append(self, value):
        super().append(value)
        super().append(value)

    def __len__(self):
        return 7


class Vector(tuple):
    def __add__(self, other):
        return Vector(a + b for a, b in zip(self, other))

    def __mul__(self, k):
        return Vector(a * k for a in self)

    @property
    def first(self):
        return self[0]


class Pair(tuple):
    def __new__(cls, a, b):
        made = super().__new__(cls, (a, b))
        made.total = a + b
        return made


class Name(str):
    def shout(self):
        return self.upper() + "!"


class Tagged(str):
    def __new__(cls, text, tag=0):
        made = super().__new__(cls, text)
        made.tag = tag
        return made


class Meters(float):
    def double(self):
        return self * 2


class Count(int):
    def next(self):
        return Count(self + 1)


class Wrapping(int):
    def __add__(self, other):
        return Wrapping((int(self) + int(other)) % 10)


class Point(typing.NamedTuple):
    x: Any
    y: Any

    def moved(self, d):
        return self._replace(x=self.x + d)


class Tally(collections.Counter):
    def top(self):
        return max(self.values())


# -- dicts ------------------------------------------------------------------------------------------
@program(lambda: (Plain(a=1, b=2), vec()))
def reads_a_dict(d, x):
    total = sum(d.values()) + len(d) + ("a" in d) + ("z" in d) + bool(d)
    return x + d["a"] + d.get("b") + d.get("c", 5) + total, list(d), list(d.items()), dict(d), {**d, "q": 1}


@program(lambda: (Plain(a=1, b=2), vec()))
def writes_a_dict(d, x):
    d["c"] = x + 1
    d["a"] = 5
    del d["b"]
    d.update(e=3)
    d.setdefault("f", [])
    return d, d.pop("e"), d.setdefault("a", 9)


@program(one)
def makes_dicts(x):
    a, b, c, d = Plain(), Plain(p=x), Plain({"q": 1}, r=2), Plain([("s", x + 1)])
    a["x"] = x * 2
    return a, b, c, d, type(a) is Plain, c == {"q": 1}, b is b, isinstance(c, dict), Plain(a=1) == {"a": 1}


@program(lambda: (Plain(a=1), Plain(a=1), vec()))
def compares_dicts(d, e, x):
    return x + 1, d == e, d is e, d != {"a": 2}, d | {"z": 3}, {"z": 3} | d


@program(lambda: (Attributes(lr=0.5, name="n"), vec()))
def dict_with_attributes(cfg, x):
    cfg.step = 3
    cfg["more"] = x.sum() if False else 1
    return x * cfg.lr, cfg.name, hasattr(cfg, "nothing"), getattr(cfg, "nothing", 7), cfg


@program(one)
def makes_attributes(x):
    cfg = Attributes(a=1)
    cfg.b = x + cfg.a
    return cfg, cfg.b * 2


@program(lambda: (Bunch(data=vec(3), target=2), vec(3)))
def bunch_from_outside(b, x):
    return b.data * x + b["target"] + b.target, b


@program(one)
def bunch_made(x):
    b = Bunch(data=x * 2, feature_names=["a"])
    b.extra = 3
    return b, vars(b), b.data + b.extra


@program(lambda: (Doubling({1: 5}), vec()))
def missing_keys(d, x):
    return x + d[1] + d[4], d.get(9), d


@program(lambda: (Loud(b=1, a=2), vec()), breaks=("unsupported-call",))
def overridden_methods(d, x):
    d["c"] = 4
    y = x + d["a"] + len(d)
    d.update(q=8)
    names = list(d)
    found = "a" in d
    del d["b"]
    return y, names, found, d.raw(), d.log, d.get("a"), d.pop("c")


@program(one)
def overridden_methods_inside(x):
    d = Loud(b=1)
    d["a"] = x
    return d["a"] * 2 + d["b"] + len(d), d.raw(), d.log, [k for k in d]


@program(lambda: (Loud(b=1, a=2), vec()), breaks=("graph-break", "unsupported-operation"))
def escapes_at_a_break(d, x):
    import dyncomp

    d["n"] = x + 1
    local = Loud(z=3)
    local["y"] = x * 2
    view = d.values()
    dyncomp.graph_break()
    d["m"] = x * 3
    local["w"] = d["n"] + local["y"]
    return d.raw(), d.log, local.raw(), local.log, len(view)


@program(lambda: (Ordered(a=1, b=2), vec()))
def ordered(d, x):
    d.move_to_end("a")
    d["c"] = x
    return x + d.first() + d["a"], list(d), d, d == collections.OrderedDict(a=1, b=2)


@program(one)
def ordered_made(x):
    d = Ordered()
    d["z"] = x + 1
    d["a"] = 2
    d.move_to_end("z")
    return d, d.first(), list(d.items())


@program(one)
def model_output(x):
    out = Output(logits=x + 1)
    loss = out.logits * 2 + out["logits"] + out[0]
    out.hidden = x
    return out, loss, len(out), out.to_tuple(), out.keys() == {"logits"}


@program(lambda: (Output(logits=vec(), hidden=vec()), vec()))
def model_output_from_outside(out, x):
    return out.logits + out["hidden"] + out[1] + x, list(out)


@program(one, breaks=("graph-break",))
def model_output_over_a_break(x):
    import dyncomp

    out = Output(logits=x + 1)
    dyncomp.graph_break()
    out.hidden = out.logits * 2
    return out, out[0], vars(out)


@program(lambda: (Plain(a=1, b=2), vec()))
def star_star(d, x):
    def g(a, b=0, **rest):
        return a + b + len(rest)

    return x + g(**d) + g(1, **Plain(q=1))


@program(one)
def tally(x):
    t = Tally("abracadabra")
    t["z"] += 3
    return x + t["a"] + t["nothing"] + t.top(), t, t.most_common(1)


class Registry(dict):
    def register(self, function):
        self[function.__name__] = function
        return function


OPERATIONS = Registry()


@OPERATIONS.register
def square(x):
    return x * x


@program(one)
def registry(x):
    return OPERATIONS["square"](x) + len(OPERATIONS)


# -- lists ------------------------------------------------------------------------------------------
@program(lambda: (Stack([1, 2, 3]), vec()))
def reads_a_list(s, x):
    a, *rest = s
    return (
        x + s[0] + s[-1] + len(s) + sum(s) + s.peek() + (2 in s) + a,
        s[1:],
        rest,
        s.index(2),
        list(s),
        s == [1],
    )


@program(lambda: (Stack([1, 2, 3]), vec()))
def writes_a_list(s, x):
    s.push(x + 1)
    s[0] = 7
    s.insert(1, "i")
    s += [4]
    s.extend(i for i in range(2))
    del s[2]
    return s, s.pop()


@program(lambda: (Stack([1]), vec()))
def appends_only(s, x):
    s.append(x * 2)
    s.append(s)
    return x + 1


@program(one)
def makes_lists(x):
    s = Stack()
    s.push(x)
    s.push(x * 2)
    s.note = "n"
    t = Stack([3, 1, 2])
    t.sort()
    return (
        s,
        vars(s),
        s.pop() + s.peek(),
        t,
        t + [1],
        [1] + t,
        t * 2,
        t == [1, 2, 3],
        t < [9],
        t.copy(),
        type(t + t),
    )


@program(lambda: (Matrix([[1, 2], [3, 4]]), vec()))
def matrix(m, x):
    made = Matrix([[x, 1], [2, 3]])
    made[0, 1] = x + 1
    made[1] = [5, 6]
    m[0, 0] = 9
    return x * m[0, 1] + m.n, made, made[0, 0] + made[0, 1], m[1], vars(m)


@program(lambda: (Twice([1]), vec()))
def own_append_and_length(t, x):
    t.append(2)
    t += [5]
    made = Twice([x])
    made.append(x + 1)
    return x + len(t), bool(t), [v for v in t], made, list.__len__(made)


@program(lambda: (Stack([1.0, 2.0]), Vector((1.0, 2.0)), np.ones(2)))
def sequences_as_arrays(s, t, x):
    return np.asarray(s) + x, x * np.array(t), np.stack(Stack([x, x]))


# -- tuples -----------------------------------------------------------------------------------------
@program(lambda: (Vector((1, 2)), vec()))
def tuples(v, x):
    w = v + Vector((1, x)) + (0, 1)
    a, b = v
    return (
        w,
        w * 2,
        v.first + x + len(v) + a + b,
        v[::-1],
        v[:],
        v == (1, 2),
        hash(v) == hash((1, 2)),
        type(v[:]),
        (0, *v),
    )


@program(one)
def tuple_with_new(x):
    p = Pair(1, 2)
    q = Pair(x, x + 1)
    return p, p.total, q, q.total, q[0] + p[1], isinstance(p, tuple)


@program(one)
def named_tuples(x):
    p = Point(x, 2)
    return p.moved(1), p._asdict(), Point._make([1, 2]), p.x + p[1], p == (1, 2) if False else p.y == 2


# -- strings and numbers ----------------------------------------------------------------------------
@program(lambda: (Name("abc"), vec()))
def strings(s, x):
    t = Name("q")
    return (
        x + len(s) + ("b" in s),
        s.shout(),
        s + "d",
        t,
        t.shout(),
        s == "abc",
        "abc" == s,
        s[0],
        {"abc": 1}.get(str(s)),
        f"{s}-{t}",
        s,
    )


@program(one)
def tagged(x):
    t = Tagged("lr", tag=3)
    return x * t.tag, t, t.tag, t.upper(), str(t), type(str(t))


@program(lambda: (Meters(2.5), Count(3), vec()))
def numbers(m, n, x):
    return (
        x * m,
        x + n,
        m * x,
        m.double(),
        n.next(),
        n + 1,
        1 + n,
        m > 2,
        n == 3,
        float(m),
        int(n),
        -1 * n,
        x,
        n,
        m,
        [10, 20, 30, 40][int(n)],
    )


@program(lambda: (Wrapping(7), vec()))
def own_arithmetic(n, x):
    return n + 5, 5 + n, n * 3, x + int(n + 8), n < 9, f"{n:03d}", repr(n), str(n)


@program(lambda: (np.ones(2, np.int8), np.ones(2, np.float32)))
def numbers_are_not_weak(a, b):
    return a + Count(300), b * Meters(2.0), b * Count(2), a * True


@program(lambda: (Meters("nan"), Meters(-0.0), vec()))
def odd_floats(a, b, x):
    return x + a, x * b, a != a, b == 0.0, a, b


@program(lambda: (Plain(x=[1]), vec()))
def identity(d, x):
    e = d
    made = Plain(d)
    made["self"] = made
    made["d"] = d
    return e is d, made, made["d"] is d, x + 1


@program(lambda: ([Plain(a=1), Plain(a=2)], vec()))
def in_a_loop(ds, x):
    for d in ds:
        d["n"] = len(d)
        x = x + d["a"] * d["n"]
    return x, ds


@program(one, breaks=("would-raise",))
def missing_key_raises(x):
    try:
        Plain(a=1)["b"]
    except KeyError as error:
        x = x + len(error.args)
    return x, Vector((1,))[3]


@program(lambda: (Stack(range(40)), vec()), breaks=("loop",))
def long_loop(s, x):
    total = Stack()
    for v in s:
        x = x + v
        total.append(v)
    return x, total


# -- bytes and complex numbers --------------------------------------------------------------------------
class Raw(bytes):
    def first(self):
        return self[0]


class LoudRaw(bytes):
    def __getitem__(self, key):
        return "loud"

    def __len__(self):
        return 7


class Phasor(complex):
    def twice(self):
        return self * 2


class OddPhasor(complex):
    def __add__(self, other):
        return "odd"

    def __neg__(self):
        return "negative"


@program(one)
def raw_bytes(x):
    b = Raw(b"abc")
    texts = b[1:], b + b"d", b * 2, b == b"abc", b.upper(), b"b" in b, list(b), b.hex(), b"x" + b
    return x * len(b), b, b.first(), texts, bytes(b), hash(b) == hash(b"abc"), Raw(2), Raw("a", "ascii")


@program(one)
def raw_bytes_with_methods(x):
    b = LoudRaw(b"ab")
    return x * len(b), b[0], bytes(b)


@program(one)
def complex_points(x):
    z = Phasor(1, 2)
    z.tag = 3
    parts = z.real, z.imag, abs(z), complex(z), -z, z.conjugate(), bool(z)
    return x * z, z + 1, z.twice(), z == 1 + 2j, parts, 2 * z, x + z, z, Phasor("1+2j")


@program(one)
def odd_points(x):
    z = OddPhasor(1, 2)
    return z + 1, x * 2, 1 + z, z * 2, -z, +z


@program(
    lambda: (vec(), Raw(b"ab"), Phasor(1, 2), Count(4)),
    lambda: (vec(), Raw(b"ac"), Phasor(1, -0.0), Count(4)),
    lambda: (vec(), Raw(b"ac"), Phasor(1, 0.0), Count(5)),
)
def bytes_and_numbers_given(x, b, z, n):
    return x * len(b) + z, b, z, b.first(), z * 2, b + b"c", -n, ~n, n.real, n.numerator, x * n
