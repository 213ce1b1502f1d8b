"""Random programs of loops over single numbers: a function as source text, and its arguments, from a seed."""

from __future__ import annotations

import heapq
import random
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ARRAYS = {
    "a": ("float64", 1), "b": ("int64", 1), "c": ("float32", 1), "d": ("uint8", 1), "e": ("bool", 1),
    "f": ("int32", 1), "m": ("float64", 2), "p": ("int64", 2), "q": ("int16", 1), "u": ("uint64", 1),
    "g": ("complex128", 1),
}  # fmt: skip
NUMBERS = ("i", "j", "k", "x", "y", "z")
_SIZE = 12
_ROWS = 5


@dataclass
class Program:
    """``text`` defines ``program``; ``names`` are its arguments, made by :func:`arguments`."""

    seed: int
    text: str
    names: tuple[str, ...]

    def function(self) -> Any:
        namespace: dict[str, Any] = {"np": np, "math": __import__("math"), "random": random}
        namespace.update(heapq=heapq, deque=deque)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            exec(compile(self.text, f"<scalar program {self.seed}>", "exec"), namespace)  # noqa: S102
        return namespace["program"]


def arguments(program: Program, variant: int) -> tuple[Any, ...]:
    """Fresh arguments; other numbers for other variants. Some arrays may be one, or views of one."""
    rng = np.random.default_rng(program.seed * 16 + variant)
    made: dict[str, Any] = {"n": int(rng.integers(3, _SIZE)), "t": float(np.round(rng.normal() * 3, 2))}
    for name, (dtype, ndim) in ARRAYS.items():
        made[name] = _array(rng, dtype, ndim)
    made["r"] = np.round(rng.normal(size=(_SIZE, int(rng.choice((2, 3, 3, 4, 6))))), 1)
    made["l"] = rng.integers(-5, 9, _SIZE).tolist()
    made["h"] = [(int(k), float(k) / 2) for k in rng.integers(-5, 9, 4)]
    if variant % 3 == 2:
        made["a"] = made["m"][:, 1] if rng.random() < 0.5 else made["a"][::-1]
        made["b"] = made["p"].reshape(-1)[:_SIZE]
    return tuple(made[name] for name in program.names)


def _array(rng: Any, dtype: str, ndim: int) -> Any:
    shape = (_SIZE,) if ndim == 1 else (_ROWS, _SIZE)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "complex128":
        return np.round(rng.normal(size=shape) * 2, 1) + 1j * np.round(rng.normal(size=shape) * 2, 1)
    if dtype.startswith("float"):
        return np.round(rng.normal(size=shape) * 4, 1).astype(dtype)
    low = 0 if dtype.startswith("u") else -6
    found = rng.integers(low, 12, size=shape).astype(dtype)
    if rng.random() < 0.15:
        found.flat[3] = np.iinfo(dtype).max
    return found


@dataclass
class Writer:
    """Writes statements; ``depth`` loops are around."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    loops: int = 0
    counters: int = 0
    helper: str = ""
    with_complex: bool = False
    extra: Callable[[Writer], str] | None = None

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    # -- expressions ------------------------------------------------------------------------------
    def expression(self, depth: int = 2) -> str:
        if depth <= 0 or self.rng.random() < 0.2:
            return self.atom()
        kind = self.rng.random()
        if kind < 0.5:
            plain = ("+", "-", "*", "+", "-", "*", "/")
            operator = self.pick(
                *plain, *(("//", "%", "&", "|", "^", "<<", ">>", "**")[self.with_complex * 7 :])
            )
            right = self.pick("2", "3", "1") if operator in ("**", "<<", ">>") else self.expression(depth - 1)
            return f"({self.expression(depth - 1)} {operator} {right})"
        if kind < 0.6:
            return f"({self.pick('-', '-', '~', '+', 'not ')}{self.expression(depth - 1)})"
        if kind < 0.7:
            return f"({self.expression(depth - 1)} if {self.condition()} else {self.expression(depth - 1)})"
        if kind < 0.8:
            return self.call(depth)
        if kind < 0.88:
            return f"({self.condition()})"
        return self.element()

    def call(self, depth: int) -> str:
        inner = self.expression(depth - 1)
        if self.helper and self.rng.random() < 0.3:
            return f"{self.helper}({inner}, {self.atom()})"
        choice = self.rng.random()
        if self.with_complex and choice < 0.2:
            atom = self.atom()
            return self.pick(f"complex({atom})", f"abs({atom})", f"{self.element()}.real", f"({inner} * 1j)")
        if choice < 0.35:
            return f"{self.pick('abs', 'int', 'float', 'bool', 'round')}({inner})"
        if choice < 0.6:
            return f"{self.pick('min', 'max')}({inner}, {self.atom()})"
        if choice < 0.75:
            return f"math.{self.pick('sqrt', 'floor', 'ceil', 'fabs', 'sin')}({inner})"
        if choice < 0.85:
            return f"np.{self.pick('float32', 'int64', 'float64', 'int32', 'uint8')}({inner})"
        if choice < 0.95:
            return f"np.{self.pick('sqrt', 'abs', 'floor')}({inner})"
        return f"divmod({inner}, {self.atom()})[{self.pick(0, 1)}]"

    def atom(self) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return self.pick(*NUMBERS, "n", "t")
        if kind < 0.75:
            return self.pick("0", "1", "2", "3", "7", "-1", "1.5", "0.5", "-2.0", "True", "100", "1e10")
        if kind < 0.9:
            return self.element()
        return self.pick("len(a)", "m.shape[0]", "m.shape[1]", "a.size", "m.ndim", "9223372036854775807")

    def element(self) -> str:
        name = self.pick(*ARRAYS)
        if name == "g" and not self.with_complex:
            name = "a"
        return f"{name}[{self.index(name)}]"

    def index(self, name: str) -> str:
        size = _SIZE
        if ARRAYS[name][1] == 2:
            return f"{self.single_index(_ROWS)}, {self.single_index(size)}"
        return self.single_index(size)

    def single_index(self, size: int) -> str:
        kind = self.rng.random()
        if kind < 0.45:
            return f"{self.pick('i', 'j', 'k')} % {size}"
        if kind < 0.7:
            return self.pick("0", "1", "2", "-1", "3")
        if kind < 0.93:
            return self.pick("i", "j", "k", "i - 1", "j + 1", "-i")
        return self.pick("n", "x", f"b[{self.pick('i', 'j', '0')}]")

    def condition(self) -> str:
        kind = self.rng.random()
        if kind < 0.6:
            return f"{self.atom()} {self.pick('<', '<=', '==', '!=', '>', '>=')} {self.expression(1)}"
        if kind < 0.7:
            return f"{self.atom()} < {self.atom()} <= {self.atom()}"
        if kind < 0.85:
            return f"{self.atom()} > {self.atom()} {self.pick('and', 'or')} {self.atom()}"
        if kind < 0.92:
            return f"{self.atom()} is {self.pick('', 'not ')}None"
        return f"not {self.atom()}"

    # -- statements -------------------------------------------------------------------------------
    def block(self, count: int) -> None:
        self.indent += 1
        for _ in range(count):
            self.statement()
        self.indent -= 1

    def statement(self) -> None:
        if self.extra is not None and self.rng.random() < 0.4:
            self.line(self.extra(self))
            return
        kind = self.rng.random()
        if kind < 0.3:
            self.line(f"{self.pick(*NUMBERS)} = {self.expression()}")
        elif kind < 0.45:
            operator = self.pick("+=", "-=", "*=", "+=", "/=", "//=", "%=", "^=")
            self.line(f"{self.pick(*NUMBERS)} {operator} {self.expression(1)}")
        elif kind < 0.62:
            operator = self.pick("=", "=", "+=", "-=", "*=")
            self.line(f"{self.element()} {operator} {self.expression()}")
        elif kind < 0.78 and self.indent < 5:
            self.line(f"if {self.condition()}:")
            self.block(self.rng.randint(1, 2))
            if self.rng.random() < 0.4:
                self.line("else:")
                self.block(1)
        elif kind < 0.84:
            first, second = self.rng.sample(NUMBERS, 2)
            self.line(f"{first}, {second} = {second}, {self.expression(1)}")
        elif kind < 0.87:
            self.line("b, p = b, p" if self.rng.random() < 0.5 else "a, c = c, a")
        elif kind < 0.92 and self.loops:
            self.line(f"if {self.condition()}:")
            self.indent += 1
            self.line(self.pick("break", "continue", "break", f"return {self.pick(*NUMBERS)}, 'early'"))
            self.indent -= 1
        elif self.loops < 3 and self.indent < 4:
            self.loop()
        else:
            self.line(f"{self.pick(*NUMBERS)} = {self.element()}")

    def limit_growth(self, start: int) -> None:
        """Numbers that grow from step to step would in the end take all the time there is."""
        body = [text.strip() for text in self.lines[start:]]
        for name in NUMBERS:
            assigned = [text for text in body if text.startswith(f"{name} ") or f", {name} = " in text]
            if any("*" in text or "<<" in text or "^" in text or "," in text for text in assigned):
                text = f"{name} = {name} if -1e20 < {name} < 1e20 else 3"
                self.lines.insert(start, "    " * (self.indent + 1) + text)

    def loop(self) -> None:
        self.loops += 1
        if self.rng.random() < 0.7:
            bounds = self.pick(
                *("n", "2, n", "n, 0, -1", f"{_ROWS}", "len(a)", "m.shape[0]", "i % 9", "0", "1, n, 2"),
                *("3", "-1, 2", "4, -3, -2"),
            )
            self.line(f"for {self.pick('i', 'j', 'k')} in range({bounds}):")
            start = len(self.lines)
            self.block(self.rng.randint(1, 4))
            self.limit_growth(start)
        else:
            self.counters += 1
            counter = f"w{self.counters}"
            self.line(f"{counter} = 0")
            self.line(f"while {counter} < {self.pick('n', '9', '20')} and ({self.condition()}):")
            self.indent += 1
            self.line(f"{counter} += 1")
            self.indent -= 1
            start = len(self.lines)
            self.block(self.rng.randint(1, 4))
            self.limit_growth(start)
        self.loops -= 1
        if self.rng.random() < 0.15:
            self.line("else:")
            self.block(1)


def _with_rows(w: Writer) -> str:
    """A statement with short rows of ``r``, vectors and slices."""
    i, j = w.single_index(_SIZE), w.pick("i % 12", "j % 12", "0", "-1")
    row, other = w.pick("v", "o", f"r[{i}]", f"r[{j}, :]"), w.pick("v", "o", f"r[{j}]", "t", "2", "k")
    operator = w.pick("+", "-", "*", "*")
    return w.pick(
        f"v = {row} {operator} {other}",
        f"o = {other} {operator} {row}",
        f"r[{i}] {operator}= {other}",
        f"v {operator}= {other}",
        f"v[{w.pick(0, 1, -1, 2)}] = {w.expression(1)}",
        f"o = -{row}",
        f"o = {w.pick('r', 'a')}[{j}]" if w.rng.random() < 0.3 else f"r[{i}] = {row}",
        f"x = {row}[{w.pick(0, 1, -1)}]",
        f"a[{i} : {j}] = {w.atom()}",
        f"y = a[{i} : {j} : {w.pick(1, 2, 5)}][0]",
        f"a[1:] = m[{w.pick(0, 1)}, :-1]",
        "v, o = o, v",
    )


def _with_lists(w: Writer) -> str:
    """A statement with ``l``, a list of ints, or ``h``, one of tuples."""
    return w.pick(
        f"l.append({w.pick('i', 'k', 'j * 2', w.expression(1), 'b[i % 12]')})",
        "x = l.pop() if l else 0",
        "y = l.pop()",
        f"l[{w.single_index(_SIZE)}] = {w.pick('i', 'k', 'x', 'b[1]')}",
        f"x = l[{w.single_index(_SIZE)}]",
        f"h.append(({w.pick('i', 'k')}, {w.pick('t', 'x', 'y')}))",
        "j, x = h.pop()",
        f"h[{w.pick(0, 'i % 3')}] = (j, {w.pick('t', 'x')})",
        "y = h[-1][1] + len(l) + len(h)",
    )


def _with_made(w: Writer) -> str:
    """A statement that makes an array or a list, or draws a random number."""
    place = w.single_index(_SIZE)
    return w.pick(
        f"s1 = [{w.pick('0', 'i', 'x', '1.5', w.expression(1))}] * {w.pick('n', '3', 'k', '(j % 5)')}",
        f"s1 = [{w.pick('i', 'k')}, {w.pick('j', '2', 'x')}]",
        "s2 = s1",
        f"s2 = {w.pick('[]', '[i]', 's1', 'l')}",
        f"{w.pick('s1', 's2', 'l')}.append({w.pick('i', 'k', 'x', 'b[0]')})",
        f"{w.pick('s1', 's2')}[{place}] = {w.pick('i', 'y', 't', 'b[1]')}",
        f"x = {w.pick('s1', 's2')}[{w.pick('0', '-1', place)}]",
        f"h = [({w.pick('i', 'k')}, {w.pick('t', 'x')})]",
        "j, y = h.pop()",
        f"a = {w.pick('a.copy()', 'np.zeros(12)', 'np.full(12, t)', 'np.zeros_like(a)', 'np.ones(n)', 'c')}",
        f"b = {w.pick('np.zeros(12, dtype=np.int64)', 'b.copy()', 'np.full(n, 3)', 'np.empty_like(b) * 0')}",
        f"m = {w.pick('np.zeros((5, 12))', 'm.copy()', 'np.zeros_like(m)', 'np.ones((n, 12))')}",
        "c = a",
        f"v = {w.pick('m[1]', 'm[0]', 'a')}",
        f"x = {w.pick('random.random()', 'np.random.normal()', 'rng.random()', 'np.random.uniform(t, 9.0)')}",
        f"k = {w.pick('random.randint(0, 5)', 'np.random.randint(7)', 'rng.integers(0, 9)')}",
        f"for y in {w.pick('a', 's1', 'l')}:\n{'    ' * (w.indent + 1)}x = y",
    )


def _with_containers(w: Writer) -> str:
    """A statement with a dict, a set, a deque, a heap or a whole list."""
    number = w.pick("i", "k", "j * 3", "b[i % 12]", "(i + j) % 5", w.expression(1))
    key = w.pick(number, "(i % 3, j)", "(k, 1)", "x")
    return w.pick(
        f"dd[{key}] = dd.get({key}, {w.pick('0', '1.5')}) + {w.pick('1', 'k', 't')}",
        f"y = {w.pick('dd', 'ss')}.__len__()" if w.rng.random() < 0.05 else "y = len(dd) + len(ss)",
        f"dd[{key}] = {w.pick('i', 'x', 'i * 100000', 't')}",
        f"x = dd[{w.pick('i', '0', key)}]"
        if w.rng.random() < 0.3
        else f"x = dd.get({key}, {w.pick('3', 'y')})",
        f"z = {w.pick('i', key)} in {w.pick('dd', 'ss')}",
        f"ss.{w.pick('add', 'add', 'discard')}({key})",
        f"dd = {w.pick('{}', 'dd', '{1: 2}')}" if w.rng.random() < 0.3 else f"ss.add({number})",
        f"w = (i, {w.pick('j', 'k')}); dd[w] = {w.pick('i', 't')}",
        f"qq.{w.pick('append', 'appendleft')}({w.pick('i', 'k', 'x')})",
        f"x = qq.{w.pick('pop', 'popleft')}() if qq else 1",
        f"heapq.heappush(hh, {w.pick('i', 'j * 2', 't', 'k')})",
        "y = heapq.heappop(hh) if hh else 0",
        f"heapq.heappush(pp, ({w.pick('i', 't', 'x')}, {w.pick('j', 'k')}))",
        "y, j = heapq.heappop(pp) if pp else (1, 2)",
        f"x = {w.pick('sum', 'min', 'max')}({w.pick('l', 'hh')})",
        f"l.{w.pick('sort', 'reverse')}()",
        f"y = {w.pick('i', 'k', '-j')}.bit_length()" if w.rng.random() < 0.5 else "y = (-j).bit_count()",
        f"l = {w.pick('sorted(l)', 'l.copy()')}",
        f"put(a, {w.single_index(_SIZE)}, {w.pick('x', 't', 'i')})",
        f"z = put(b, {w.single_index(_SIZE)}, {w.pick('k', 'i', 'y')})",
    )


_PUT = "def put(v, p, w):\n    v[p] += w\n    v[p - 1] = v[p] // (v[p - 2] - 3)\n    return v[p - 3]\n"
_HELPERS = (
    "def helper(v, w):\n    if v > w:\n        return v - w\n    return w + 1\n",
    "def helper(v, w):\n    s = 0\n    for r in range(3):\n        s += v * r\n    return s + w\n",
    "def helper(v, w):\n    return v * w + 0.5\n",
)


def make_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    writer = Writer(rng)
    names = ("n", "t", *ARRAYS, "r", "l", "h")
    writer.with_complex = seed % 4 == 3
    writer.extra = {1: _with_rows, 2: _with_lists}.get(seed % 4)
    head = ""
    if rng.random() < 0.3:
        head = rng.choice(_HELPERS)
        writer.helper = "helper"
    if seed % 8 == 4:
        writer.extra = _with_made
        writer.line("np.random.seed(3); random.seed(3); rng = np.random.default_rng(3)")
        writer.line("s1, s2 = [1, 2, 3], [0.5]")
    if seed % 8 == 0:
        writer.extra = _with_containers
        head += _PUT
        writer.line("dd, ss, qq, hh, pp = {}, {1}, deque([2]), [3], [(1, 2)]")
    writer.line("i = j = k = 0")
    writer.line("v, o = r[0] * 2.0, r[1]")
    first = "1j" if writer.with_complex else rng.choice(("0.0", "0", "t"))
    writer.line(f"x, y, z = {first}, {rng.choice(('1', '1.0', 'n'))}, 2")
    writer.line("try:" if rng.random() < 0.15 else "if True:")
    caught = writer.lines[-1].endswith("try:")
    writer.indent += 1
    for _ in range(rng.randint(1, 2)):
        writer.loop()
    writer.indent -= 1
    if caught:
        writer.line("except (IndexError, ZeroDivisionError, OverflowError, ValueError) as error:")
        writer.line("    return str(error), i, j, k, x, y, z")
    more = ""
    if seed % 8 == 4:
        more = ", m, s1, s2, s1 is s2, a is c, rng.random(), random.random(), np.random.normal()"
    if seed % 8 == 0:
        more = ", dd, ss, list(qq), hh, pp"
    writer.line(f"return i, j, k, x, y, z, a, b, c, g, r, v, o, v is o, l, h{more}")
    text = f"{head}def program({', '.join(names)}):\n" + "\n".join(writer.lines) + "\n"
    return Program(seed, text, names)
