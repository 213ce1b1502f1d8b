"""Statements of random programs about one feature of the language or its library each.

A feature is a function from the writer to lines of code; it may use the program's variables (see
``random_programs``) and appends what it found to ``out``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Writer = Any
Lines = list[str]


def matching(w: Writer) -> Lines:
    subject = w.pick(
        "n", "(n, m)", "[a, n]", "d", "obj", "text", "{'k': n, 'z': f}", "out", "Point(n, f)", "None"
    )
    return [
        f"match {subject}:",
        "    case None: out.append('none')",
        f"    case {w.number(-1, 3)} | {w.number(4, 6)}: out.append('number')",
        "    case int(v) if v > 1: out.append(('int', v))",
        "    case (int(v), int(u)): out.append(v + u)",
        f"    case [x0, *more]: out.append(len(more)); a = a + {w.pick('1', 'len(more)')}",
        "    case {'k': v, **others}: out.append((v, sorted(map(str, others))))",
        "    case Point(x0, y=v): out.append((x0, v))",
        "    case Thing(count=v): out.append(v)",
        "    case str() as v: out.append(v + '!')",
        "    case _: out.append('other')",
    ]


def chained_exceptions(w: Writer) -> Lines:
    error = w.pick("ValueError", "KeyError", "IndexError", "Problem")
    caught = w.pick("ValueError", "LookupError", "(KeyError, Problem)", "Exception")
    cause = w.pick("", " from e", " from None")
    return [
        "try:",
        "    try:",
        f"        {w.array(2)}",
        f"        if {w.condition()}: raise {error}({w.integer()}, 'first')",
        f"        {w.pick('a', 'b', 'c')} = {w.array(2)}",
        f"    except {caught} as e:",
        "        out.append((type(e).__name__, e.args))",
        f"        if {w.condition()}: raise RuntimeError(str(e)){cause}",
        "    else:",
        "        out.append('no exception')",
        "    finally:",
        f"        {w.pick('n += 1', 'b = b + 1', 'out.append(n)')}",
        "except RuntimeError as e:",
        "    out.append((str(e), type(e.__cause__).__name__, type(e.__context__).__name__))",
        "    out.append(e.__suppress_context__)",
        f"    a = a * 2 + {w.integer()}",
    ]


def missing_key(w: Writer) -> Lines:
    key = w.pick("'k'", "'z'", "n", "1")
    return [
        "try:",
        f"    b = b + d[{key}]",
        "except KeyError as e:",
        f"    out.append(e.args); d[{key}] = {w.array(2)}",
        "except TypeError:",
        "    out.append('type')",
        "a = a + 1",
    ]


def number_of_text(w: Writer) -> Lines:
    return [
        f"for word in {w.pick('(str(n), text, chr(120))', '[text, str(m)]', 'str(n) + str(m)')}:",
        "    try:",
        "        n += int(word)",
        f"    except ValueError{w.pick('', ' as e')}:",
        f"        {w.pick('c = c + 1', 'continue', 'out.append(word)', 'break')}",
        "    a = a + n",
    ]


def groups(w: Writer) -> Lines:
    kinds = w.pick("ValueError(1), KeyError(2)", "ValueError(n)", "Problem('p'), ValueError(3), TypeError(4)")
    return [
        "try:",
        f"    raise ExceptionGroup('several', [{kinds}])",
        "except* ValueError as group:",
        "    out.append([type(e).__name__ for e in group.exceptions])",
        "except* (KeyError, Problem, TypeError):",
        f"    b = b + {w.integer()}",
    ]


def suppressed(w: Writer) -> Lines:
    manager = w.pick(
        "contextlib.suppress(ValueError, KeyError)", "contextlib.nullcontext(n)", "Quiet()", "tagged('q')"
    )
    return [
        f"with {manager}{w.pick('', ' as entered')}:",
        f"    a = {w.array(2)}",
        f"    if {w.condition()}: raise ValueError('inside')",
        f"    b = b * {w.integer()}",
        "c = c - 1",
    ]


def sent(w: Writer) -> Lines:
    return [
        f"talk = averages({w.array(2)})",
        "out.append(next(talk))",
        f"for k in range({w.pick('1', '3', 'n % 5')}):",
        f"    out.append(talk.send({w.pick('k', 'a', 'f')}))",
        w.pick(
            "talk.close()",
            "out.append(next(talk, None))",
            "out.extend(talk)",
            "later.append(lambda v, t=talk: v)",
        ),
    ]


def delegated(w: Writer) -> Lines:
    name = w.fresh("delegate")
    return [
        f"def {name}(v):",
        f"    got = yield from {w.pick('averages(v)', 'rows(v, 3)', '[v, 1]', 'zip(v, v)')}",
        "    out.append(got)",
        f"    yield {w.pick('v', 'n', 'got')}",
        w.pick(
            f"out.extend({name}(a))",
            f"for item in {name}(b): out.append(item)",
            f"out.append(list({name}(c))[-1])",
        ),
    ]


def sets(w: Writer) -> Lines:
    return [
        f"found = {{v for v in (n, m, {w.integer()}) if v == v}}",  # nan is hashed by identity
        w.pick(
            "found.add(3)", "found |= {1, 2}", "found.discard(n)", "found -= {m}", "found = found & {0, 1, 2}"
        ),
        f"out.append((sorted(found), n in found, found {w.pick('<=', '==', '>')} {{0, 1, 2, 3}}))",
        f"b = b + len(found | {{{w.integer()}}})",
    ]


def dict_work(w: Writer) -> Lines:
    return [
        "table = {}",
        f"for k, v in enumerate([a, b, {w.integer()}, f]):",
        f"    table.setdefault({w.pick('k % 2', 'type(v).__name__', 'k')}, []).append(v)",
        f"out.append({w.pick('list(table)', 'list(table.items())', 'sorted(map(str, table))')})",
        w.pick("d.update(table)", "d |= {'t': n}", "table.popitem()", "c = c + len(table)", "d = d | table"),
    ]


def collected(w: Writer) -> Lines:
    return [
        w.pick(
            "queue = collections.deque([a, n], maxlen=3); queue.append(m); queue.rotate(); out += queue",
            "counts = collections.Counter([n, m, 1, 1]); counts[n] += 2; out.append(counts.most_common(1))",
            "bins = collections.defaultdict(list); bins[n % 2].append(a); bins[1]; out.append(bins)",
            "order = collections.OrderedDict(x=a, y=n); order.move_to_end('x'); out.append(list(order))",
            "chain = collections.ChainMap({'q': n}, d); out.append((chain['q'], 'k' in chain))",
        ),
        f"a = a + {w.integer()}",
    ]


def iterated(w: Writer) -> Lines:
    form = w.pick(
        "list(itertools.chain([a], [n, m]))",
        "list(itertools.accumulate([n, m, 2]))",
        "[x * y for x, y in itertools.product([a, n], repeat=2)]",
        "list(itertools.islice(itertools.count(n), 3))",
        "list(itertools.zip_longest([a], [n, m], fillvalue=f))",
        "[k for k, _ in itertools.groupby(sorted([n, m, 1, n]))]",
        "list(itertools.takewhile(lambda q: q < 3, [n, m, 5]))",
        "list(itertools.starmap(scaled, [(a, 2), (b, n)]))",
        "list(itertools.pairwise([n, m, 3]))",
        "functools.reduce(operator.add, [a, b, n])",
        "functools.partial(scaled, k=n)(a)",
        "list(map(scaled, [a, n]))",
        "list(filter(None, [n, m, 0]))",
        "list(zip([a, b], [n, m], strict=True))",
        "sorted([n, m, 4], key=lambda q: -q)",
        "max([n, m, 4], key=abs, default=0)",
        "list(reversed([a, n]))",
        "[*range(n % 4), *out[:1]]",
        "operator.itemgetter(0, -1)([a, n, m])",
        "operator.attrgetter('count')(obj)",
        "math.hypot(f, 2.0) + math.floor(f)",
        "divmod(m, 3) + (pow(2, abs(n) % 99), round(f, 1))",
    )
    return [f"out.append({form})", f"b = b + {w.integer()}"]


def texts(w: Writer) -> Lines:
    form = w.pick(
        "f'{n:04d} {f:.2f} {m!r:>5}'",
        "'%d-%s' % (n, text)",
        "'{} {k}'.format(m, k=f)",
        "','.join(str(v) for v in (n, m, f))",
        "text.upper().strip().split('|')",
        "text.replace('|', str(n))[::-1]",
        "str(a.shape) + str(a.dtype)",
        "f'{a.dtype} {len(out)}'",
        "repr((n, f, None, True))",
        "('yes' if text else 'no').center(9, '*')",
    )
    return [f"out.append({form})", f"c = c + len(text) * {w.integer()}"]


def classes(w: Writer) -> Lines:
    name = w.fresh("Local")
    return [
        f"class {name}({w.pick('Base', 'object', 'Stack')}):",
        f"    factor = {w.integer()}",
        f"    def scale(self, v, k={w.integer()}):",
        f"        return v * self.factor + k + {w.pick('n', '0', '__class__.factor')}",
        f"made = {name}({w.pick('', '')})",
        "a = made.scale(a)",
        "out.append(type(made).__name__)",
    ]


def records(w: Writer) -> Lines:
    return [
        f"p = Point({w.pick('a', 'n', 'f')}, y={w.integer()})",
        w.pick(
            "p = dataclasses.replace(p, y=m)",
            "p.y += 1",
            "out.append(p == Point(p.x, 7))" if w.number(0, 1) else "p.x = n",
            "out.append(p.norm())",
        ),
        f"pair = Pair({w.pick('b', 'm')}, n)",
        w.pick(
            "pair = pair._replace(right=m)",
            "left, right = pair",
            "out.append(pair._fields)",
            "b = b + pair.right",
        ),
        f"colour = {w.pick('Colour.RED', 'Colour(2)', 'Colour.GREEN')}",
        "out.append((p, pair, colour is Colour.RED, colour.name, colour.value))",
    ]


def described(w: Writer) -> Lines:
    return [
        f"item = Described({w.array(2)})",
        w.pick("item.limit = n", "item.limit += 1", "out.append(item.total is item.total)", "del item.extra"),
        f"out.append({w.pick('item.limit', 'item.total', 'item.missing_thing', 'len(item)')})",
        f"out.append({w.pick('item + 1', 'item(2)', 'n in item', 'item')})",
        w.pick(
            "out.append(hasattr(item, 'nothing'))",
            "setattr(item, 'extra', n)",
            "out.append(getattr(item, 'zz', m))",
        ),
    ]


def nested_data(w: Writer) -> Lines:
    return [
        f"nest = {{'x': [a, {{'y': ({w.integer()}, b)}}]}}",
        w.pick(
            "nest['x'][1]['y'] = c", "nest['x'].append(nest)", "twin = copy.copy(nest)", "nest['x'][0] += 1"
        ),
        w.pick(
            "out.append(nest['x'][1])",
            "d['nest'] = nest",
            "deepest = copy.deepcopy(nest['x'][1]); out.append(deepest)",
        ),
    ]


def sizes(w: Writer) -> Lines:
    return [
        w.pick(
            "picked = a[a > 0]; out.append(picked.sum()); out.append(len(picked))",
            "where = np.flatnonzero(b > f); out.append(where); c = c + where.size",
            "values, counts = np.unique(np.round(a), return_counts=True); out.append((values, counts))",
            "out.append(np.zeros(len(a) + n % 3))",
            "out.append(np.arange(a.size * 2).reshape(2, -1))",
            "half = a.shape[0] // 2; out.append((a[:half], a[half:]))",
            "out.append(np.concatenate([a, b[: n % 4], c[::2]]))",
            "rows_, cols_ = np.nonzero(g > n); out.append(g[rows_, cols_])",
            "out.append(np.repeat(a, n % 3))",
            "out.append(np.pad(a, (1, n % 3)))",
        )
    ]


def walrus(w: Writer) -> Lines:
    return [
        f"if (size := len(out)) > {w.number(0, 4)}: b = b + size",
        "out.append([last := v for v in (n, m)])",
        "n = n + last" if w.number(0, 1) else "a = a * last",
    ]


def finishing(w: Writer) -> Lines:
    name = w.fresh("leave")
    return [
        f"def {name}(v):",
        f"    for k in range({w.pick('2', '4', 'n % 4')}):",
        "        try:",
        f"            v = v + {w.pick('k', 'inner(v)', 'fails(v, k)')}",
        f"            if {w.condition()}: {w.pick('return v', 'break', 'continue')}",
        f"        except {w.pick('ValueError', '(ValueError, TypeError)')} as e:",
        f"            {w.pick('out.append(str(e))', 'v = v - 1', 'raise')}",
        "        finally:",
        f"            {w.pick('out.append(k)', 'v = v * 2', 'print(k)')}",
        "    return v",
        f"b = {name}(b)",
    ]


FEATURES: tuple[Callable[[Writer], Lines], ...] = (
    matching,
    chained_exceptions,
    missing_key,
    number_of_text,
    groups,
    suppressed,
    sent,
    delegated,
    sets,
    dict_work,
    collected,
    iterated,
    texts,
    classes,
    records,
    described,
    nested_data,
    sizes,
    walrus,
    finishing,
)
