# ruff: noqa: E501
"""Statements of random programs about classes, closures, generators, ``try``, calls, views and sizes; see
``random_features``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Writer = Any
Lines = list[str]


def breaking(w: Writer) -> str:
    """A statement that breaks the graph, or may."""
    return w.pick(
        "print('break', n)", "noisy(a)", "opaque(n)", "b = opaque(b)", "pass", "out.append(opaque(m))"
    )


def indented(lines: Lines, depth: int = 1) -> Lines:
    return ["    " * depth + line for line in lines]


# -- classes ------------------------------------------------------------------------------------------
def inheritance(w: Writer) -> Lines:
    name, parent = w.fresh("Child"), w.fresh("Parent")
    return [
        f"class {parent}({w.pick('Base', 'object', 'Mixin', 'Mixin, Base')}):",
        "    made = 0",
        "    def __init__(self, v, *rest, k=1):",
        f"        {w.pick('super().__init__()', 'pass', 'print(type(self).__name__)')}",
        "        self.v, self.k, self.rest = v, k, rest",
        "        type(self).made += 1",
        "    def step(self, x):",
        f"        {breaking(w)}".replace("b = opaque(b)", "x = opaque(x)"),
        f"        return x + self.k * {w.pick('1', 'n', 'self.made')}",
        "    @classmethod",
        "    def build(cls, v): return cls(v, 1, 2, k=3)",
        "    @staticmethod",
        f"    def half(v): return v * {w.pick('0.5', 'n', '2')}",
        f"class {name}({parent}):",
        f"    def __init__(self, v, *rest, **named): super().__init__({w.pick('v', 'v + 1', 'v * n')}, *rest, **named)",
        f"    def step(self, x): return {w.pick('super().step(x) * 2', f'{parent}.step(self, x)', 'super().half(x)')}",
        f"kid = {w.pick(f'{name}(a)', f'{name}.build(b)', f'{name}(c, n, k=m)', f'{parent}(a)')}",
        f"a = kid.step({w.array(2)})",
        f"out.append({w.pick('kid.half(b)', 'kid.v', 'kid.rest', f'{name}.made', 'type(kid).__mro__[1].__name__')})",
        f"out.append((isinstance(kid, {name}), issubclass({name}, Base), hasattr(kid, 'scale')))",
    ]


def properties(w: Writer) -> Lines:
    name = w.fresh("Prop")
    return [
        f"class {name}:",
        f"    {w.pick('__slots__ = ()', 'limit = 3', '')}".rstrip() or "    pass",
        f"    __slots__ = {w.pick(repr(('_v', 'count')), repr(['_v', 'count', '__dict__']))}",
        "    def __init__(self, v): self._v, self.count = v, 0",
        "    @property",
        "    def v(self):",
        "        self.count += 1",
        f"        {w.pick('return self._v', 'print(self.count); return self._v', 'return self._v * self.count')}",
        "    @v.setter",
        "    def v(self, new):",
        f"        if {w.condition()}: raise AttributeError('set')",
        "        self._v = new",
        f"item = {name}({w.pick('a', 'b', 'n', 'f')})",
        "try:",
        f"    item.v = {w.array(2)}",
        f"    item.v {w.pick('+', '-', '*')}= {w.integer()}",
        f"    {w.pick('item.other = 1', 'del item.count', 'del item.v', 'item.count = n')}",
        "except AttributeError as e:",
        "    out.append('attribute')",
        f"out.append(({w.pick('item.v', 'item._v')}, getattr(item, 'count', 'gone')))",
    ]


def operators(w: Writer) -> Lines:
    name = w.fresh("Op")
    other = w.pick("2", "a", "n", f"{name}(b)", "np.float64(2.0)", "'text'", "None")
    return [
        f"class {name}:",
        "    def __init__(self, v): self.v = v",
        "    def __add__(self, other):",
        f"        if isinstance(other, {w.pick('str', 'int', '(str, type(None))')}): return NotImplemented",
        f"        return {name}(self.v + getattr(other, 'v', other))",
        "    def __radd__(self, other): return ('radd', self.v)",
        f"    {w.pick('__array_ufunc__ = None', '__array_priority__ = 1000', 'kind = 1')}",
        f"    def __eq__(self, other): return {w.pick('isinstance(other, type(self))', 'self is other', 'NotImplemented')}",
        "    __hash__ = object.__hash__",
        f"    def __lt__(self, other): {w.pick('return True', 'noisy(n); return n > 1', 'return NotImplemented')}",
        "    def __getitem__(self, i): return self.v[i]",
        "    def __bool__(self): return n > 0",
        "    def __iadd__(self, other): self.v = self.v + other; return self",
        "    def __neg__(self): return -self.v",
        f"x1 = {name}({w.pick('a', 'b', 'c')})",
        "try:",
        f"    out.append({w.pick(f'x1 + {other}', f'{other} + x1', f'x1 == {other}', f'x1 < {other}', '-x1', 'x1[0]')})",
        f"    x1 += {w.pick('1', 'n', 'c')}",
        "    out.append(x1.v)",
        "except TypeError as e: out.append('type error')",
        "if x1: b = b + 1",
        f"out.append({w.pick('not x1', 'x1 and n', '[x1].index(x1)', 'x1 in [x1]', 'len({x1: 1})')})",
    ]


def special_methods(w: Writer) -> Lines:
    name = w.fresh("Special")
    return [
        f"class {name}:",
        "    def __init__(self): self.log = []",
        "    def __getattr__(self, key):",
        "        if key.startswith('_'): raise AttributeError(key)",
        "        self.log.append(key)",
        f"        return {w.pick('len(self.log)', 'key', 'a')}",
        "    def __setattr__(self, key, value):",
        f"        {w.pick('object.__setattr__(self, key, value)', 'self.__dict__[key] = value', 'super().__setattr__(key, value)')}",
        "    def __call__(self, *args, **kwargs):",
        f"        {breaking(w)}".replace("b = opaque(b)", "pass"),
        "        return len(args) + len(kwargs)",
        "    def __iter__(self):",
        f"        yield from {w.pick('self.log', 'range(n % 3)', '(a, b)')}",
        "    def __enter__(self): self.log.append('in'); return self",
        "    def __exit__(self, *exc): self.log.append(exc[0]); return "
        + w.pick("False", "True", "n > 0", "None"),
        f"s1 = {name}()",
        f"out.append({w.pick('s1.anything', 's1(a, k=1)', 'list(s1)', 's1.log', 'getattr(s1, chr(95), 7)')})",
        "with s1 as same:",
        f"    a = {w.array(2)}",
        f"    {breaking(w)}",
        f"    {w.pick('same.z = n', 'if n > 1: raise ValueError(n)', 'same.log.append(a)', 'same.log[0] = 1')}",
        "out.append(s1.log)",
    ]


# -- functions and closures ------------------------------------------------------------------------------
def closures(w: Writer) -> Lines:
    name = w.fresh("make")
    return [
        f"def {name}(start, scale={w.integer()}):",
        "    count, held = start, a",
        "    def add(v, *more, k=1, **named):",
        "        nonlocal count, held",
        "        count += k",
        f"        {breaking(w)}".replace("b = opaque(b)", "held = opaque(held)"),
        f"        held = held + {w.pick('count', 'v', 'len(more)', 'scale')}",
        "        return held * count",
        "    def peek(): return count, held",
        "    return add, peek",
        f"add1, peek1 = {name}({w.integer()})",
        f"add2, peek2 = {name}({w.pick('n', '0', 'm')}, {w.pick('2', 'n')})",
        f"b = add1({w.array(2)}{w.pick('', ', 1, 2', ', k=n', ', *[m, n], **dict(z=1, k=2)')})",
        w.pick("c = add2(b)", "c = add1(b, k=m)", "c = c + peek2()[0]", "print(peek1()[0])"),
        f"out.append({w.pick('peek1()', 'peek2()', '(peek1(), peek2())', 'peek1')})",
    ]


def returned_functions(w: Writer) -> Lines:
    return [
        f"fs = [lambda v, i=i: {w.pick('v + i', 'v * n + i', 'noisy(v, i)')} for i in range({w.pick('2', '3', 'n % 4')})]",
        f"for fn in fs{w.pick('', '[::-1]', '[:1]')}: a = fn(a)",
        "compose = lambda p, q: lambda v: p(q(v))",
        f"b = compose({w.pick('inner', 'scaled', 'noisy')}, {w.pick('np.abs', 'inner', 'lambda v: v - n')})(b)",
        f"out.append({w.pick('len(fs)', 'fs', '[fn(1) for fn in fs]')})",
    ]


def signatures(w: Writer) -> Lines:
    name = w.fresh("call")
    call = w.pick(
        "a, 1", "a, q=n", "a, 1, 2, 3, r=4", "*[a, n]", "a, **{'q': 1}", "a, z=1", "", "a, 1, p=2", "q=1, p=a",
        "a, 1, **{'r': m, 'zz': f}", "*(a, n), *out[:1]",
    )  # fmt: skip
    return [
        f"def {name}(p, /, q=1, *rest, r={w.integer()}, **named):",
        f"    {w.pick('pass', 'print(len(rest), sorted(named))', 'q = q + len(rest)')}",
        f"    return p + q * r, {w.pick('rest', 'named', 'sorted(named)')}",
        "try:",
        f"    out.append({name}({call}))",
        "except TypeError as e:",
        "    out.append(str(e)[-40:])",
    ]


def recursion(w: Writer) -> Lines:
    name = w.fresh("walk")
    return [
        f"def {name}(v, k):",
        "    if not 0 < k < 60:",  # not as deep as the stack is, even where k is nan
        f"        {w.pick('print(k)', 'raise ValueError(k)', 'return v', 'out.append(k)')}",
        "        return v",
        f"    {w.pick('v = v + k', 'try_ = k', 'out.append(k)')}",
        f"    return {name}(v {w.pick('+', '*')} 1, k - {w.pick('1', '2')}) {w.pick('+ k', '', '* 1.0')}".rstrip(),
        "try:",
        f"    c = {name}({w.array(2)}, {w.pick('n % 7', '3', '5', 'abs(m) % 9', '14')})",
        f"except {w.pick('ValueError', 'RecursionError', 'Exception')} as e:",
        f"    out.append(type(e).__name__); {w.pick('pass', 'raise', 'c = c - 1')}",
    ]


def globals_written(w: Writer) -> Lines:
    return [
        w.pick("TOTAL = TOTAL + n", "TOTAL *= 2", "TOTAL -= len(out)", "TOTAL = int(a.sum())"),
        breaking(w),
        w.pick("out.append(TOTAL)", "b = b + TOTAL % 3", "n = TOTAL % 4", "bump(); out.append(TOTAL)"),
    ]


# -- exceptions --------------------------------------------------------------------------------------------
def through_frames(w: Writer) -> Lines:
    outer, middle = w.fresh("outer"), w.fresh("middle")
    return [
        f"def {middle}(v, k):",
        "    try:",
        f"        v = {w.pick('fails(v, k)', 'deeper(v, k)', 'v[k]', 'd[k]')} + 1",
        f"    {w.pick('finally:', 'except KeyError:')}",
        f"        {w.pick('out.append(k)', 'print(k)', 'v = v + 1', 'k += 1')}",
        "    return v",
        f"def {outer}(v, k):",
        f"    with {w.pick('Quiet()', 'tagged(k)', 'contextlib.nullcontext()')}:",
        f"        return {middle}(v, k) * 2",
        f"    return {w.pick('v', 'None', 'k')}",
        "try:",
        f"    {w.pick('c', 'a')} = {outer}({w.array(2)}, {w.integer()})",
        f"except {w.pick('ValueError', '(KeyError, IndexError)', 'Exception', 'LookupError')} as e:",
        "    out.append((type(e).__name__, str(e)[:30], depth_of(e)))",
        w.pick("b = b + 1", "c = a if c is None else c"),
    ]


def nested_finally(w: Writer) -> Lines:
    name = w.fresh("tidy")
    leave = w.pick("return v", "raise KeyError('tidy')", "v = v + 1", "return", "pass")
    return [
        f"def {name}(v):",
        "    try:",
        "        try:",
        f"            with {w.pick('Quiet()', 'tagged(1)', 'Quiet(), tagged(2)')}:",
        f"                {breaking(w)}".replace("b = opaque(b)", "v = opaque(v)"),
        f"                if {w.condition()}: {leave}",
        f"                v = {w.pick('fails(v, n)', 'v + 1', 'inner(v)')}",
        "        finally:",
        f"            {breaking(w)}".replace("b = opaque(b)", "v = opaque(v)"),
        f"            {w.pick('pass', 'if n > 3: return v', 'v = v * 2', 'if m < 0: raise IndexError(m)')}",
        f"    except {w.pick('KeyError', 'ValueError', 'Exception')} as e:",
        f"        {w.pick('out.append(e.args)', 'raise RuntimeError from e', 'return e.args', 'raise')}",
        "    else:",
        f"        {w.pick('out.append(1)', 'v = v - 1', 'return v + 3')}",
        "    finally:",
        "        out.append('tidied')",
        "    return v",
        f"for k in range({w.pick('1', '2', '11')}):",
        f"    {w.pick('out.append', 'print')}({name}({w.pick('a', 'b')}))",
        f"    {w.pick('n += 1', 'm -= 1', 'pass')}",
    ]


# -- generators ----------------------------------------------------------------------------------------------
def generators(w: Writer) -> Lines:
    name = w.fresh("gen")
    return [
        f"def {name}(v, k):",
        "    got = None",
        "    try:",
        f"        for j in range({w.pick('3', 'k', '12')}):",
        "            try:",
        f"                got = yield {w.pick('v + j', '(j, got)', 'v')}",
        f"                {breaking(w)}".replace("b = opaque(b)", "v = opaque(v)"),
        f"            except {w.pick('ValueError', 'KeyError')} as e:",
        f"                out.append(('caught', e.args)); {w.pick('pass', 'return j', 'yield 7', 'raise')}",
        "    finally:",
        f"        {w.pick('out.append(got)', 'print(k)', 'pass')}",
        f"    return {w.pick('v', 'k', 'got')}",
        f"gen = {name}({w.pick('a', 'b')}, {w.integer()})",
        "try:",
        "    out.append(next(gen))",
        *[
            f"    out.append({w.pick('next(gen)', 'gen.send(n)', 'gen.send(b)', 'gen.throw(ValueError(n))', 'next(gen, 0)')})"
            for _ in range(w.number(0, 3))
        ],
        f"    {w.pick('gen.close()', 'del gen', 'out.extend(gen)', 'pass', 'later.append(lambda v: next(gen))')}",
        f"except {w.pick('StopIteration', '(StopIteration, ValueError)', 'Exception')} as e:",
        "    out.append((type(e).__name__, getattr(e, 'value', None)))",
        "a = a + 1",
    ]


def lazy(w: Writer) -> Lines:
    return [
        f"lz = ({w.pick('v * n', 'inner(v)', '(v, m)', 'noisy(v)')} for v in {w.pick('(a, b, c)', 'rows(a, 3)', '[n, m]', 'out')} "
        f"if {w.pick('True', 'v is not b', 'n > 0')})",
        w.pick("n += 1", "a = a + 1", breaking(w)),
        f"out.append({w.pick('list(lz)', 'next(lz, None)', 'sum(1 for _ in lz)', 'tuple(lz)[-1:]', 'max([len(out)], default=0)')})",
        f"out.append({w.pick('[t for t in lz]', 'any(v is a for v in (a, b))', 'dict(enumerate(lz))')})",
    ]


def comprehensions(w: Writer) -> Lines:
    return [
        w.pick(
            "out.append([y for v in (n, m, 3) if (y := v * 2) > 1])",
            "out.append({k: (z := v) for k, v in zip('ab', (n, m))})",
            "out.append([[i * j for j in range(3)] for i in range(n % 4)])",
            "out.append({v % 3 for v in range(abs(n) % 9)})",
            "while (size := len(out)) < 4: out.append(size)",
            "out.append([v + w_ for v in (a, b) for w_ in range(2)])",
            "out.append([inner(v) for v in (a, b) if (tot := v.sum()) is not None])",
            "out.append(sum(x_ for x_ in [n, m] if x_ > 0))",
            "out.append(list(map(lambda v: v + n, [a, 1])))",
        ),
        breaking(w),
        "a = a + len(out)",
    ]


# -- arrays ----------------------------------------------------------------------------------------------
def views(w: Writer) -> Lines:
    return [
        f"view = {w.pick('a[1:]', 'a[::2]', 'a[::-1]', 'g[:, 0]', 'g.T', 'g[::2, 1:]', 'b[:n]', 'a.reshape(-1, 1)', 'g.ravel()')}",
        w.pick("view[...] = n", "view += 1", "view[:1] *= 2", "view[-1] = m", "view[view > 1] = 0", "pass"),
        breaking(w),
        f"alias = {w.pick('view', 'a', 'g', 'view[...]', 'view.copy()')}",
        w.pick(
            "alias[0] = 5", "alias -= 1", "np.negative(alias, out=alias)", "alias[...] = alias[::-1]", "pass"
        ),
        f"out.append(({w.pick('view', 'alias', 'view + 0')}, {w.pick('a', 'g', 'view.base is not None', 'alias is view')}))",
        w.pick("a = a * 1", "d['view'] = view", "obj.value = view", "pass"),
    ]


def masks(w: Writer) -> Lines:
    x = w.pick("a", "b", "c")
    mask = w.pick(
        "a > 0", "(b > f) & (a < 2)", "~(c > n)", "np.isfinite(a)", "a == a", "b != n", "g[:, 0] > 3"
    )
    return [
        f"mask = {mask}",
        w.pick(f"{x}[mask] = {w.real()}", f"{x}[mask] += 1", f"{x}[mask] = {x}[mask] * 2", f"sub = {x}[mask]", f"{x}[~mask] -= n"),
        w.pick(f"out.append({x}[mask])", f"out.append({x}[mask].sum())", "out.append(mask.any())",
               "out.append(int(mask.sum()))", breaking(w)),
        w.pick(f"{x} = np.where(mask, {x}, n)", f"out.append(len({x}[mask]))", "b[mask] = a[mask]", "out.append(np.nonzero(mask))"),
    ]  # fmt: skip


def dynamic_sizes(w: Writer) -> Lines:
    return [
        f"for size in range({w.pick('1', '2', '3')}, {w.pick('4', '5', 'len(a) + 3')}):",
        f"    grown = {w.pick('np.ones(size)', 'np.arange(size * 1.0)', 'np.zeros((size, 2))', 'a[:size]', 'np.tile(a, size)')}",
        f"    {breaking(w)}",
        f"    total = {w.pick('grown.sum()', 'grown.max()', '(grown * size).mean()', 'grown.size', 'len(grown)')}",
        f"    {w.pick('out.append(total)', 'out.append(grown)', 'a = a + total', 'if total > 4: break')}",
    ]


def containers(w: Writer) -> Lines:
    return [
        w.pick(
            "box = dict(zip('xyz', (a, n, f)))",
            "box = {'x': a, 'y': n, 'z': [b]}",
            "box = collections.OrderedDict(x=a, y=n, z=f)",
            "box = collections.defaultdict(lambda: n, x=a, z=1)",
        ),
        f"box[{w.pick(repr('x'), 'n', '(n, m)')}] = {w.pick('n', 'b', 'box')}" if w.number(0, 2) else "box['w'] = m",
        breaking(w),
        w.pick("box.update(y=2, q=c)", "box.pop('y', None)", "box.setdefault('v', []).append(n)", "del box['z']"),
        f"out.append({w.pick('list(box)', 'len(box)', 'sorted(map(str, box))', 'box.get(n)', '[*box.values()][1:2]')})",
        w.pick(
            "bag = {n, m, 1}; bag ^= {1, 2}; out.append(sorted(bag, key=repr))",
            "line = collections.deque([n, a], 2); line.appendleft(m); out.append(list(line))",
            "seq = [n, m, 3]; seq[1:2] = [a, b]; del seq[0]; seq.extend(range(2)); out.append(seq)",
            "seq = [3, n, m]; seq.sort(reverse=True); seq.reverse(); out.append((seq, seq.count(n), seq.index(n)))",
            "tup = (n, a) + (m,) * 2; out.append((tup[::-1], tup.count(m)))",
            "one, *mid, two = [n, a, m, b]; out.append((mid, one, two))",
        ),
    ]  # fmt: skip


def formatted(w: Writer) -> Lines:
    return [
        f"text = text + f'{{n:>{w.number(1, 6)}}}|{{f:.{w.number(0, 4)}f}}|{{m!r}}|{{n + m = }}'",
        w.pick("text = text.replace('|', ';', 1)", "text = '-'.join([text, str(m)])", "text = (text * 2)[:40]", "text = text[-12:]", breaking(w)),
        f"out.append({w.pick('len(text)', 'text.split(chr(124))', 'text.find(str(n))', 'text.encode()', 'text[n % 3:]', 'text.partition(str(m))')})",
        "out.append('{:>8}{!s}{z[0]}'.format(n, f, z=(m,)))" if w.number(0, 1) else f"a = a + len(text) % {w.number(1, 4)}",
    ]  # fmt: skip


def matched_classes(w: Writer) -> Lines:
    return [
        f"for subject in ({w.pick('Point(n, m)', 'Pair(a, n)', 'n', 'Colour.RED')}, {w.pick('[n, m, 1]', '(a, b)', 'out', 'd')}, "
        f"{w.pick('text', 'f', 'None', 'True', 'a')}):",
        "    match subject:",
        "        case Point(x=0, y=y0) | Point(x=y0, y=0): out.append(y0)",
        f"        case Point(x, y) if x {w.pick('<', '==', '>')} y: {breaking(w)}",
        "        case Pair(left=l0): out.append(l0)",
        "        case Colour.RED | Colour.GREEN: out.append('colour')",
        "        case [first, _, *rest_] if rest_: out.append(rest_)",
        "        case (p0, q0): b = p0 * 1",
        "        case {'k': _, **kw}: out.append(len(kw))",
        "        case bool() | None as t0: out.append(t0)",
        "        case float(z0) | int(z0): n = n + 1",
        "        case str(): text = subject + '.'",
        "        case unknown: out.append(type(unknown).__name__)",
    ]


CLASS_FEATURES: tuple[Callable[[Writer], Lines], ...] = (
    inheritance,
    properties,
    operators,
    special_methods,
    closures,
    returned_functions,
    signatures,
    recursion,
    globals_written,
    through_frames,
    nested_finally,
    generators,
    lazy,
    comprehensions,
    views,
    masks,
    dynamic_sizes,
    containers,
    formatted,
    matched_classes,
)
