# ruff: noqa: E501
"""Statements of random programs about class bodies, metaclasses, delegation, unpacking, slices, views of dicts and
decorators; see ``random_features``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .random_classes import breaking

Writer = Any
Lines = list[str]


def metaclasses(w: Writer) -> Lines:
    meta, name = w.fresh("Meta"), w.fresh("Made")
    return [
        f"class {meta}(type):",
        f"    {w.pick('count = 0', 'limit = n', 'names = []')}",
        "    def __new__(mcs, name, bases, space, **named):",
        f"        {w.pick('pass', 'print(name)', 'space[chr(122)] = n', 'out.append(sorted(k for k in space if k[0] != chr(95)))')}",
        "        cls = super().__new__(mcs, name, bases, space)",
        f"        cls.tag = named.get('tag', {w.integer()})",
        "        return cls",
        "    def __init__(cls, name, bases, space, **named): super().__init__(name, bases, space)",
        f"    def __call__(cls, *args): {w.pick('return super().__call__(*args)', 'made = super().__call__(*args); made.by = cls.tag; return made', 'print(cls.__name__); return super().__call__(*args)')}",
        f"    {w.pick('def __len__(cls): return 3', 'def __contains__(cls, v): return v == cls.tag', 'def __getattr__(cls, k): return k', 'size = property(lambda cls: 4)')}",
        f"class {name}(metaclass={meta}{w.pick('', ', tag=m', ', tag=n + 1')}):",
        f"    base = {w.integer()}",
        "    def __init__(self, v): self.v = v",
        "    def more(self, x): return x + self.v * self.tag",
        f"thing = {name}({w.pick('a', 'n', 'f')})",
        f"a = a + {w.pick(f'{name}.tag', 'thing.base', 'thing.more(b)', f'{name}.base')}",
        f"out.append((type({name}).__name__, type(thing).__name__, isinstance({name}, {meta}), sorted(vars(thing))))",
    ]


def class_bodies(w: Writer) -> Lines:
    name = w.fresh("Body")
    return [
        f"class {name}{w.pick('', '(Base)', '(dict)', '(list)', '(collections.namedtuple(chr(80), (chr(112), chr(113))))')}:",
        f"    first = {w.pick('n', 'a', '[v * 2 for v in (n, m)]', '{k: n for k in range(2)}', 'len(out)')}",
        f"    {breaking(w)}".replace("b = opaque(b)", "other = opaque(n)"),
        f"    for turn in range({w.pick('2', '0', 'n % 3')}):",
        f"        {w.pick('last = turn', 'first = turn', 'out.append(turn)')}",
        f"    if {w.condition()}:",
        f"        def ask(self, x=first): return {w.pick('x', 'self.first', 'n')}",
        "    else:",
        f"        ask = {w.pick('lambda self: 5', 'staticmethod(len)', 'property(lambda self: self.first)', 'None')}",
        f"out.append(({name}.first, {name}.__name__, {name}.__qualname__, hasattr({name}, 'last'), '__module__' in vars({name})))",
        w.pick(
            f"out.append({name}.ask is None)",
            f"{name}.first = m; out.append({name}.first)",
            f"del {name}.first; out.append(hasattr({name}, 'first'))",
            f"out.append([k for k in vars({name}) if k[0] != '_'])",
        ),
        "a = a + 1",
    ]


def hooks_of_classes(w: Writer) -> Lines:
    root, name = w.fresh("Root"), w.fresh("Leaf")
    return [
        f"class {root}:",
        f"    known = {w.pick('[]', '{}', 'None')}",
        "    def __init_subclass__(cls, weight=1, **named):",
        "        super().__init_subclass__(**named)",
        f"        cls.weight = weight; {w.pick('print(cls.__name__)', 'out.append(weight)', 'pass')}",
        f"    def __class_getitem__(cls, k): return {w.pick('k', 'cls.weight * 2', '(cls.__name__, k)')}",
        f"class {name}({root}{w.pick('', ', weight=n', ', weight=2')}):",
        f"    def __new__(cls, *args): {w.pick('return super().__new__(cls)', 'self = object.__new__(cls); self.early = n; return self', 'return args[0]')}",
        f"    def __init__(self, v=1): {w.pick('self.v = v', 'self.v = v; print(v is a)', 'pass')}",
        f"leaf = {name}({w.pick('a', 'n', 'm')})",
        f"out.append((getattr({name}, 'weight', None), {name}[1], getattr(leaf, 'early', 0), type(leaf).__name__))",
        f"b = b * {w.pick(f'{name}.weight', '2')}",
    ]


def delegation(w: Writer) -> Lines:
    inner, outer = w.fresh("part"), w.fresh("whole")
    caught = w.pick("ValueError", "KeyError", "GeneratorExit")
    return [
        f"def {inner}(v):",
        "    total = v",
        f"    for j in range({w.pick('2', '4', 'n % 5')}):",
        "        try:",
        f"            got = yield {w.pick('total', 'j', '(j, v)')}",
        f"            if got is not None: {w.pick('total = total + got', 'print(type(got).__name__)', 'return total')}",
        f"        except {caught} as e:",
        f"            out.append(('part', type(e).__name__)); {w.pick('raise', 'return j', 'total = total * 2', 'raise KeyError(j)')}",
        f"        {w.pick('finally: out.append(j)', 'else: pass', 'finally: print(j)')}",
        "    return total",
        f"def {outer}(v):",
        "    try:",
        f"        end = yield from {inner}(v)",
        f"        out.append(end); yield from {w.pick('(1, n)', 'rows(v, 2)', f'{inner}(n)', '{n: m}')}",
        f"    {w.pick('finally:', 'except KeyError:', 'except LookupError:')}",
        f"        {breaking(w)}".replace("b = opaque(b)", "v = opaque(v)"),
        f"    return {w.pick('v', 'n', 'end')}",
        f"talk = {outer}({w.pick('a', 'n')})",
        "try:",
        "    out.append(next(talk))",
        *[
            f"    out.append({w.pick('next(talk)', 'talk.send(m)', 'talk.send(None)', 'talk.throw(ValueError(n))', 'talk.throw(KeyError)', 'talk.gi_yieldfrom is None')})"
            for _ in range(w.number(1, 4))
        ],
        f"    {w.pick('talk.close()', 'out += talk', 'x, *y = talk', 'pass')}",
        "except Exception as e:",
        "    out.append((type(e).__name__, e.args))",
        "b = b + 1",
    ]


def unpacking(w: Writer) -> Lines:
    source = w.pick(
        "[n, a, m]", "rows(a, 3)", "(v * 2 for v in (n, m, 3))", "'abc'", "{'p': n, 'q': m, 'r': a}", "out", "a", "zip(a, b)",
        "Stack(1, n, a)", "range(n)",
    )  # fmt: skip
    return [
        "try:",
        f"    {w.pick('x0, x1, x2', 'x0, *x1, x2', '*x1, x2', 'x0, (x1, *x2)', '[x0, x1], x2', 'x0, x1')} = {source}",
        f"    {w.pick('out.append(x1)', 'out.append(x2)', 'd[chr(117)] = x1', 'print(type(x1).__name__)')}",
        f"except {w.pick('ValueError', '(ValueError, TypeError)', 'Exception')} as e:",
        "    out.append(str(e))",
        f"out.append([*{w.pick('(n, m)', 'out[:2]', 'range(n % 4)', 'd')}, {w.integer()}, *{w.pick('()', '[a]', 'text', 'sorted(d, key=str)')}])",
        f"out.append({{**{w.pick('{}', 'd', '{chr(107): 1}')}, 'k': {w.integer()}, **{w.pick('{}', 'dict(z=n)')}}}.get('k'))",
        f"out.append(spread(*{w.pick('[a, n]', '(b,)', 'rows(a, 2)')}, **{w.pick('{}', 'dict(k=n)', '{chr(122): m}')}))",
    ]


def slices(w: Writer) -> Lines:
    where = w.pick("1:2", ":", "n:", "::2", "-1:", "2:1", ":n % 3", "slice(0, 2)", "::-1")
    return [
        f"seq = {w.pick('[n, m, 3, a]', 'list(range(5))', '[a, b, c]', 'out[:4]', 'list(text)')}",
        "try:",
        f"    {w.pick(f'seq[{where}] = [n, m]', f'seq[{where}] = ()', f'seq[{where}] = rows(a, 2)', f'del seq[{where}]', f'seq[{where}] = seq', f'seq[{where}] += [n]', f'seq[{where}] *= 2')}",
        "except ValueError as e:",
        "    out.append(str(e))",
        breaking(w),
        f"out.append({w.pick('seq', 'len(seq)', 'seq[::-1]', 'seq[-2:]', 'seq == seq[:]')})",
        f"out.append({w.pick('text[::2]', '(n, m, f)[1:]', 'range(10)[2::3]', 'list(range(9))[n:m]', 'b[slice(None, n)]')})",
    ]


def views_of_dicts(w: Writer) -> Lines:
    return [
        f"table = {w.pick('dict(p=n, q=m)', '{n: a, m: b}', 'dict.fromkeys([n, m, 1], f)', 'd', '{1: {2: n}}')}",
        f"keys, items = table.keys(), {w.pick('table.items()', 'table.values()')}",
        w.pick("table['new'] = n", "table.pop('p', None)", "table.update(q=a)", "table.setdefault('p', b)", "pass", "table.clear()"),
        breaking(w),
        f"out.append({w.pick('list(keys)', 'len(items)', '[*items][-1:]', 'keys & {n, 1}', 'keys | {3}', 'sorted(map(str, keys))', 'n in keys', 'list(reversed(keys))', 'keys <= {1, 2}', 'keys == set(table)')})",
        "try:",
        f"    for k in {w.pick('table', 'list(table)', 'keys', 'items')}:",
        f"        {w.pick('table[(k,) if not isinstance(k, tuple) else 0] = n', 'table[k] = m' if w.number(0, 1) else 'pass', 'table.pop(k, None)', 'out.append(str(type(k)))')}",
        f"        if {w.condition()} or len(table) > 9: break",
        "except (RuntimeError, TypeError) as e:",
        "    out.append(str(e))",
    ]  # fmt: skip


def decorated(w: Writer) -> Lines:
    deco, name = w.fresh("deco"), w.fresh("worked")
    return [
        f"def {deco}({w.pick('function', 'function, times=2')}):",
        f"    {w.pick('@functools.wraps(function)', 'calls_of = [0]')}",
        "    def wrapper(*args, **named):",
        f"        {w.pick('print(function.__name__)', 'out.append(len(args))', 'pass', 'out.append(sorted(named))')}",
        f"        return function(*args, **named) {w.pick('', '* 2', '+ n')}".rstrip(),
        f"    return {w.pick('wrapper', 'wrapper', 'functools.partial(wrapper, k=n)')}",
        f"@{deco}",
        f"def {name}(v, k={w.integer()}):",
        "    'text of it'",
        f"    {breaking(w)}".replace("b = opaque(b)", "v = opaque(v)"),
        "    return v + k",
        f"{w.pick('a', 'b', 'c')} = {name}({w.array(2)}{w.pick('', ', k=m', ', k=2')})",
        f"out.append((getattr({name}, '__name__', None), getattr({name}, '__doc__', None), hasattr({name}, '__wrapped__')))",
    ]


def dispatched(w: Writer) -> Lines:
    name = w.fresh("shown")
    return [
        "@functools.singledispatch",
        f"def {name}(v): return type(v).__name__",
        f"@{name}.register",
        "def _(v: int): return v + n",
        f"@{name}.register(float)",
        f"def _(v): {w.pick('return v * 2', 'print(v); return v', 'return noisy(v)')}",
        f"@{name}.register(np.ndarray)",
        f"def _(v): return v {w.pick('+ 1', '* n', '.sum()')}",
        f"out.append([{name}(v) for v in ({w.pick('n, f, a', 'a, text, None', 'True, [n], b')})])",
    ]


def remembered(w: Writer) -> Lines:
    name = w.fresh("fib")
    return [
        f"@functools.{w.pick('lru_cache(maxsize=None)', 'cache', 'lru_cache(maxsize=2)', 'lru_cache')}",
        f"def {name}(k):",
        f"    {w.pick('print(k)', 'out.append(k)', 'pass')}",
        f"    return k if not 1 < k < 20 else {name}(k - 1) + {name}(k - 2)",
        "try:",
        f"    n = {name}({w.pick('n', '7', 'abs(m)', 'n % 5')})",
        f"    out.append({w.pick(f'{name}.cache_info()', f'{name}(3)', f'{name}.__wrapped__(1)')})",
        "except TypeError as e:",
        "    out.append(str(e))",
        "n = n % 9 if isinstance(n, int) else n",
        "a = a + n",
    ]


def groups_nested(w: Writer) -> Lines:
    members = w.pick(
        "ValueError(n), ExceptionGroup('in', [KeyError(m), TypeError('t')])", "KeyError(1), OSError(2, 'no')",
        "Problem(n), ExceptionGroup('in', [Problem(m)])", "ValueError('v'), ValueError(n)",
    )  # fmt: skip
    return [
        "try:",
        "    try:",
        f"        if {w.condition()}: raise ExceptionGroup('g', [{members}])",
        f"        elif {w.condition()}: raise {w.pick('KeyError(n)', 'ValueError(m)')}",
        f"    except* {w.pick('KeyError', '(KeyError, ValueError)', 'LookupError')} as found:",
        "        out.append((type(found).__name__, len(found.exceptions)))",
        f"        {w.pick('pass', 'raise', 'raise RuntimeError(n)', 'b = b + 1')}",
        f"    except* {w.pick('TypeError', 'OSError', 'Exception')} as rest_:",
        f"        {breaking(w)}",
        f"    {w.pick('finally:', 'else:')}",
        "        out.append('after')",
        f"except {w.pick('ExceptionGroup', 'Exception', 'ValueError')} as e:",
        "    out.append((type(e).__name__, str(e), [type(v).__name__ for v in getattr(e, 'exceptions', ())]))",
    ]


LANGUAGE_FEATURES: tuple[Callable[[Writer], Lines], ...] = (
    metaclasses,
    class_bodies,
    hooks_of_classes,
    delegation,
    unpacking,
    slices,
    views_of_dicts,
    decorated,
    dispatched,
    remembered,
    groups_nested,
)
