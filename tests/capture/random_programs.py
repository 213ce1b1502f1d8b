"""Random Python programs over arrays, numbers, lists, dicts and an object, as source text.

Every program is a function ``main(a, b, c, n, m, f, out, d, obj)``: three arrays of one length, two ints, a
float, a list, a dict and an object. The grammar holds what may go wrong in capture: aliases, in-place slices,
branches on numbers and on data, loops of constant and of variable trip count, ``break``, ``continue``,
exceptions and handlers, closures, side effects inside calls, generators and context managers.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from .random_arrays import ARRAY_FEATURES
from .random_classes import CLASS_FEATURES
from .random_features import FEATURES
from .random_helpers import Maker, make_arguments
from .random_language import LANGUAGE_FEATURES

ARRAYS = ("a", "b", "c")
INTEGERS = ("n", "m")
ALL_FEATURES = (*FEATURES, *CLASS_FEATURES, *LANGUAGE_FEATURES, *ARRAY_FEATURES)
Draw = Callable[[Any], Any]


# -- the grammar --------------------------------------------------------------------------------------
class Writer:
    """Writes one program. ``number(low, high)`` makes the choices: hypothesis, or a random generator.
    ``budget`` bounds the number of statements."""

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number
        self.lines: list[str] = []
        self.budget = number(2, 20)
        self.loops = 0
        self.names = 0

    def pick(self, *options: str) -> str:
        return options[self.number(0, len(options) - 1)]

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # -- expressions --------------------------------------------------------------------------
    def integer(self) -> str:
        return self.pick(
            "n", "m", "1", "2", "n + 1", "n * 2", "m - 1", "n // 2", "n % 3", "len(a)", "abs(m)", "len(out)",
            "min(n, m)", "-n", "obj.count", "a.shape[0] - 1", "int(f)", "int(a.sum())",
        )  # fmt: skip

    def real(self) -> str:
        return self.pick(
            "f", "0.5", "f * 2", "f + n", "float(n)", "2.0", "-f", "float(b[0])", "a.sum()", "f / 2"
        )

    def array(self, depth: int = 0) -> str:
        simple = ("a", "b", "c", "a", "b", "c", "a + b", "c * 2", "a - f", "b * n", "-c", "a[::-1]")
        if depth > 1 or self.number(0, 2):
            return self.pick(*simple)
        x = self.array(depth + 1)
        forms = [
            f"({x} + {self.real()})",
            f"({x} * {self.integer()})",
            f"np.where({x} > {self.real()}, {self.array(2)}, {x})",
            f"np.minimum({x}, {self.array(2)})",
            f"np.abs({x})",
            f"np.maximum({x}, 0.0)",
            f"({x}).copy()",
            f"scaled({x})",
            f"scaled({x}, k={self.integer()})",
            f"logged({x}, out)",
            f"noisy({x})",
            f"noisy({x}, {self.integer()})",
            f"fails({x}, {self.integer()})",
            f"obj.step({x})",
            "obj.value",
            "obj.twice",
            f"sum(rows({x}, 3))",
            f"sum(rows({x}, {self.integer()} % 4))",
            f"inner({x})",
            f"np.cumsum({x})",
            f"np.sort({x})",
            f"({x} / {self.integer()})",
            f"np.clip({x}, -10.0, 10.0)",
            "d['k']",
            f"d.get('z', {x})",
            "out[-1]",
            f"np.roll({x}, {self.integer()})",
            f"{x}[{self.index()}]",
            f"(lambda v, s={self.integer()}: v + s)({x})",
            "g.sum(axis=1)",
            "g[:, 0] * 1.0",
            "(g[:, 1] + n) % 5",
            "np.einsum('ij->i', g)",
            f"({x} if {self.condition()} else {self.array(2)})",
            f"spread({x}, {self.integer()}, f, k=2)",
            f"spread({x}, *[1, n], **{{'k': 3, 'z': m}})",
            f"deep({x}, {self.number(0, 5)})",
            f"Stack(1, {x}).top",
            f"Stack({x}, c)[0]",
            f"(Stack({x}) + b)[-1]",
            f"np.float32({self.real()}) * {x}",
            f"{x}.astype('f4')",
            f"np.concatenate([{x}, {self.array(2)}])[:len(a)]",
            f"np.stack([{x}, b]).T.sum(axis=1)",
            f"({x} > {self.real()}).astype(float)",
            f"np.full_like({x}, {self.real()})",
            f"np.linspace({self.real()}, 3.0, len(a))",
            f"np.array([{self.real()}] * len(a))",
            f"sorted([{self.integer()}, n, m])[1] * {x}",
            f"[v for v in ({x}, b)][n % 2]",
            f"{{'u': {x}, 'v': c}}['u' if n > m else 'v']",
            f"max([{self.integer()}, n]) + {x}",
            f"next(rows({x}, 2))",
        ]
        return self.pick(*forms)

    def index(self) -> str:
        return self.pick(
            "0", "-1", "n % 4", "1:", ":-1", ":n", "n:", "::2", "a > 0", "[0, 1]", "m % 3:", "1:3", "...",
            "n",
            "::-1",
        )  # fmt: skip

    def condition(self) -> str:
        return self.pick(
            f"n > {self.number(-2, 5)}",
            "m % 2",
            "n < m",
            "len(out) > 3",
            "a.sum() > 0",
            "b[0] > f",
            "(a > b).any()",
            "f > 1",
            "a is b",
            "'k' in d",
            "obj.count > 2",
            "isinstance(f, float) and n > 0",
            "not n or f < 0",
            "c.max() > 3 and n",
            "n",
            "out",
            "a is not None",
        )

    def anything(self) -> str:
        kind = self.number(0, 5)
        if kind == 0:
            return self.integer()
        if kind == 1:
            return self.real()
        if kind == 2:
            return f"({self.array()}, {self.integer()})"
        if kind == 3:
            return f"f'{{n}}-{{m:>3}}-{{{self.integer()}}}'"
        return self.array()

    # -- statements -----------------------------------------------------------------------------
    def block(self, depth: int, size: int, looping: bool) -> None:
        """At least one statement."""
        for _ in range(max(1, min(size, self.budget))):
            self.budget -= 1
            self.statement(depth, looping)

    def statement(self, depth: int, looping: bool) -> None:
        kind = self.number(0, 28)
        if kind >= 22:
            self.feature(depth)
            return
        if kind >= 13 or self.budget < 2 or depth > 3:
            self.simple(depth, looping)
            return
        writers = [
            self.branch, self.branch, self.counted, self.counted, self.conditional, self.attempt,
            self.attempt,
            self.over_list, self.managed, self.nested, self.comprehension, self.endless, self.yielding,
        ]  # fmt: skip
        writers[kind](depth, looping)

    def simple(self, depth: int, looping: bool) -> None:
        x, y = self.pick(*ARRAYS), self.pick(*ARRAYS)
        forms = [
            f"{x} = {self.array()}",
            f"{x} = {self.array()}",
            f"{x} = {self.array()}",
            f"{x} {self.pick('+', '-', '*')}= {self.array()}",
            f"{x} {self.pick('+', '*')}= {self.real()}",
            f"{x}[{self.index()}] = {self.real()}",
            f"{x}[{self.index()}] = {self.array()}",
            f"{x}[{self.index()}] += {self.integer()}",
            f"{x} = {y}",
            f"a, b = b, {x}",
            f"{self.pick(*INTEGERS)} = {self.integer()}",
            f"{self.pick(*INTEGERS)} += {self.number(-3, 3)}",
            f"f = {self.real()}",
            f"out.append({self.anything()})",
            f"out.append({self.anything()})",
            "out.pop()",
            "out.insert(0, n)",
            f"out[-1] = {self.anything()}",
            f"d['k'] = {self.anything()}",
            f"d[{self.integer()} % 3] = {self.array()}",
            "d.pop('k', None)",
            "if 'k' in d: del d['k']",
            f"obj.value = {self.array()}",
            f"obj.count += {self.number(1, 3)}",
            f"obj.{self.pick('extra', 'value')} = {self.anything()}",
            f"print('n', n, {self.pick('m', 'len(out)', 'type(f).__name__')})",
            f"noisy({x}, 'statement')",
            f"{x} = inner({y})",
            "TOTAL += 1",
            f"assert n < 100 or {self.condition()}, 'asserted'",
            f"g[{self.pick('0', '-1', 'n % 4', 'a > 1')}] = {self.integer()}",
            f"g[:, {self.pick('0', 'n % 3', '::2')}] += {self.integer()}",
            f"g = {self.pick('g * 2', 'g.T.copy().T', 'g[::-1]', 'g + n', 'g // 2')}",
            f"stack = Stack({x}, n)",
            f"stack.push({self.anything()})",
            "out.append((len(stack), [type(v).__name__ for v in stack]))",
            f"text = text + f'{{n}}|{{{self.integer()}}}'",
            f"text += {self.pick('str(n)', 'repr(m)', 'type(f).__name__')}",
            f"later.append(lambda v: v * n + {self.integer()})",
            f"{x} = later[-1]({y}) if later else {x}",
            "later = [lambda v, k=k: v + k for k in range(3)]",
            f"out.append([h({x}) for h in later])",
            f"n, m = m, {self.integer()}",
            "n %= 7",
            "m = m % 5 - 2",
            f"({x}, *rest), n = ({self.array(2)}, 1), n",
            f"{x}, {y} = np.atleast_1d({y}, {self.array(2)})",
            f"del {self.pick('text', 'stack')}",
            "out.sort(key=lambda v: str(type(v)))",
            "out = out + [n]",
            "d = {**d, 'new': n}",
            f"out[:] = [{self.anything()}, {self.anything()}]",
            "obj = Thing(3) if obj.count > 4 else obj",
            f"if {self.condition()}: return {self.anything()}",
            f"if n > 20 and {self.condition()}: raise KeyError('raised')",
            f"{x} = np.add({y}, {self.real()}, out={x})",
            f"x, *y = {self.integer()}, {x}, {y}",
            "pass",
        ]
        if looping:
            forms += [f"if {self.condition()}: break", f"if {self.condition()}: continue"] * 3
        self.line(depth, self.pick(*forms))

    def branch(self, depth: int, looping: bool) -> None:
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, 2, looping)
        if self.number(0, 1):
            self.line(depth, "else:")
            self.block(depth + 1, 2, looping)

    def counted(self, depth: int, looping: bool) -> None:
        self.loops += 1
        if self.loops > 3:
            self.simple(depth, looping)
            return
        i = self.fresh("i")
        count = self.pick("3", "3", "12", "n % 15", "abs(m) % 20", "len(a)", "1, 14, 2", "9, -3, -1")
        self.line(depth, f"for {i} in range({count}):")
        if self.number(0, 1):
            self.line(depth + 1, self.pick(f"n = {i}", f"a = a + {i}", f"b[{i} % 4] += 1", f"m += {i}"))
        self.block(depth + 1, 3, True)
        if not self.number(0, 3):
            self.line(depth, "else:")
            self.block(depth + 1, 1, looping)

    def conditional(self, depth: int, looping: bool) -> None:
        self.loops += 1
        if self.loops > 3:
            self.simple(depth, looping)
            return
        w = self.fresh("w")
        self.line(depth, f"{w} = 0")
        condition = self.pick("", "", " and n < 30", " and a.sum() < 100", " and f < 50")
        self.line(depth, f"while {w} < {self.number(2, 14)}{condition}:")
        self.line(depth + 1, f"{w} += 1")
        self.block(depth + 1, 3, True)

    def over_list(self, depth: int, looping: bool) -> None:
        self.loops += 1
        if self.loops > 3:
            self.simple(depth, looping)
            return
        v = self.fresh("v")
        over = self.pick("[a, b, c]", "[1, 2.5, n]", "list(out)[:9]", "enumerate(a)", "zip(a, b)",
                         "sorted(d, key=str)",
                         "rows(a, 3)", "rows(b, n % 12)", "(f, n, 'text')")  # fmt: skip
        self.line(depth, f"for {v} in {over}:")
        self.line(
            depth + 1, self.pick(f"out.append({v})", f"c = c + len(out) if {v} is not None else c", "n += 1")
        )
        self.block(depth + 1, 2, True)

    def endless(self, depth: int, looping: bool) -> None:
        self.loops += 1
        if self.loops > 3:
            self.simple(depth, looping)
            return
        w = self.fresh("w")
        self.line(depth, f"{w} = 0")
        self.line(depth, "while True:")
        self.line(depth + 1, f"{w} += 1")
        self.line(depth + 1, f"if {w} > {self.number(1, 12)} or {self.condition()}:")
        self.line(depth + 2, self.pick("break", "break", "return w" + w[1:], f"a = a + {w}; break"))
        self.block(depth + 1, 2, True)

    def attempt(self, depth: int, looping: bool) -> None:
        self.line(depth, "try:")
        self.block(depth + 1, 3, looping)
        if self.number(0, 3):
            caught = self.pick("Exception", "ValueError", "(KeyError, IndexError)", "ZeroDivisionError")
            e = self.fresh("e")
            self.line(depth, f"except {caught} as {e}:")
            self.line(depth + 1, f"out.append(type({e}).__name__)")
            self.block(depth + 1, 1, looping)
            if not self.number(0, 3):
                self.line(depth + 1, "raise")
            if not self.number(0, 3):
                self.line(depth, "else:")
                self.block(depth + 1, 1, looping)
            if self.number(0, 2):
                return
        self.line(depth, "finally:")
        self.line(depth + 1, "out.append('finally')")

    def managed(self, depth: int, looping: bool) -> None:
        manager = self.pick("Quiet()", "tagged('t')", "np.errstate(all='ignore')", "Quiet(), tagged('u')")
        self.line(depth, f"with {manager}:")
        self.block(depth + 1, 2, looping)

    def nested(self, depth: int, looping: bool) -> None:
        g = self.fresh("g")
        self.line(depth, f"def {g}(v, k={self.integer()}):")
        self.line(depth + 1, "nonlocal m")
        self.line(depth + 1, self.pick("m += 1", "m = m - k", "print('g', m)", "out.append(m)", "v = v + m"))
        self.line(depth + 1, f"return {self.pick('v + k', 'v * m', 'noisy(v)', 'v + n', 'fails(v, m)')}")
        self.line(depth, f"{self.pick(*ARRAYS)} = {g}({self.array()})")

    def yielding(self, depth: int, looping: bool) -> None:
        """A generator of the program's own, consumed at once or in part."""
        y = self.fresh("y")
        self.line(depth, f"def {y}(v, k):")
        self.line(depth + 1, "nonlocal calls")
        self.line(depth + 1, f"for j in range({self.pick('k', '3', 'k * 4')}):")
        self.line(depth + 2, self.pick("calls += 1", "v = v + j", "if j > 2: return", "print('y', j)"))
        self.line(depth + 2, self.pick("yield v", "yield v * j", "yield (j, v)", "yield from [v, j]"))
        x = self.array(2)
        consume = self.pick(
            f"out.extend({y}({x}, 2))",
            f"out.append(next({y}({x}, 1), None))",
            f"for item in {y}({x}, 3): out.append(item)",
            f"out.append(list(zip({y}({x}, 2), [1, 2])))",
            f"out.append([q for q in {y}({x}, n % 4)])",
            f"first, *_ = {y}({x}, 3)",
        )
        self.line(depth, consume)

    def comprehension(self, depth: int, looping: bool) -> None:
        x = self.array(2)
        over = self.pick("range(3)", "range(n % 13)", "[1, 2]", "range(11)")
        form = self.pick(
            f"out.append([{x} * j for j in {over}])",
            f"out.append([j + n for j in {over} if j != m])",
            f"d.update({{j: {x} for j in {over}}})",
            f"a = a + sum(j for j in {over})",
            f"out.extend(noisy({x}, j) for j in {over})",
            f"b = sum([inner({x}) for j in {over}], b)",
        )
        self.line(depth, form)

    def feature(self, depth: int) -> None:
        """A few lines about one feature of the language or library."""
        write = ALL_FEATURES[self.number(0, len(ALL_FEATURES) - 1)]
        for text in write(self):
            self.line(depth, text)

    def program(self) -> str:
        self.line(0, "def bump():")
        self.line(1, "global TOTAL")
        self.line(1, "TOTAL += 1")
        self.line(0, "def main(a, b, c, n, m, f, out, d, obj):")
        self.line(1, "global TOTAL")
        self.line(1, "calls = 0")
        self.line(1, "g = np.arange(len(a) * 3).reshape(len(a), 3)")
        self.line(1, "stack, text, later = Stack(a), '', []")
        self.line(1, "def inner(v):")
        self.line(2, "nonlocal calls")
        self.line(2, "calls += 1")
        self.line(2, self.pick("return v + calls", "return v + n", "return noisy(v) * calls"))
        while self.budget > 0:
            self.block(1, 4, False)
        self.line(1, "return a, b, c, n, m, f, calls, g, stack, text")
        return "\n".join(self.lines) + "\n"


@st.composite
def programs(draw: Draw) -> str:
    """As hypothesis chooses: small programs, and failures shrink."""
    return Writer(lambda low, high: draw(st.integers(low, high))).program()


@st.composite
def arguments(draw: Draw) -> Maker:
    return make_arguments(lambda low, high: draw(st.integers(low, high)))


def compiles(source: str) -> bool:
    """Whether there is a program, and its pieces make valid Python together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, "random", "exec")
        except SyntaxError:
            return False
    return bool(source)


def seeded(seed: int) -> tuple[str, list[Maker]]:
    """As a random generator chooses: a larger variety. A program and arguments for three calls."""
    choices = random.Random(seed)
    source = ""
    while not compiles(source):
        source = Writer(choices.randint).program()
    return source, [make_arguments(choices.randint) for _ in range(3)]
