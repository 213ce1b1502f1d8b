"""As in_turn_programs: calls, sums and the library."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
from collections import Counter, deque

import numpy as np

from tests.capture.in_turn_programs import Number, gen


def program_star_call():
    log = []

    def f(*a, **k):
        log.append("call")
        return a, k

    def mk():
        log.append("kw")
        return {"z": 1}

    return f(*gen(log, 2, None), *gen(log, 1, None), **mk()), log


def program_counter():
    log = []
    c = Counter(gen(log))
    c.update(gen(log))
    return len(c), log


def program_counter_look():
    c = Counter()

    def it():
        for _i in range(3):
            yield len(c)

    c.update(it())
    c.subtract(it())
    return c


def program_in():
    log = []
    return 1 in gen(log, 3, None), Number(1, log) in gen(log), log


def program_reduce_acc():
    log = []
    return (
        functools.reduce(lambda a, b: (log.append(("r", a, b)), a + b)[1], gen(log, 3, None)),
        list(itertools.accumulate(gen(log, 3, None), lambda a, b: (log.append("acc"), a + b)[1])),
        log,
    )


def program_itertools():
    log = []
    a = list(itertools.chain(gen(log, 2, None), gen(log, 1, None)))
    b = list(itertools.islice(gen(log, 5, None), 2))
    log.append("|")
    c = list(itertools.takewhile(lambda v: v < 1, gen(log, 3, None)))
    log.append("|")
    d = list(itertools.product(gen(log, 2, None), gen(log, 2, None)))
    log.append("|")
    e = list(itertools.zip_longest(gen(log, 1, None), gen(log, 2, None)))
    log.append("|")
    f = [
        (k, list(g)) for k, g in itertools.groupby(gen(log, 4, None), lambda v: (log.append("k"), v // 2)[1])
    ]
    log.append("|")
    t1, t2 = itertools.tee(gen(log, 2, None))
    g = next(t1), next(t1), next(t2)
    h = list(itertools.pairwise(gen(log, 3, None)))
    i = list(itertools.starmap(lambda a, b: log.append("s"), ((v, v) for v in gen(log, 2, None))))
    j = list(itertools.compress(gen(log, 3, None), gen(log, 2, None)))
    k = list(itertools.dropwhile(lambda v: log.append("d") or v < 1, gen(log, 3, None)))
    return a, b, c, d, e, f, g, h, i, j, k, log


def program_sorted_key_gen():
    log = []
    return sorted(gen(log, 3, None), key=lambda v: (log.append("k"), -v)[1]), log


def program_sum_raise():
    log = []

    class B:
        def __radd__(self, o):
            log.append("radd")
            raise KeyError("b")

    def it():
        try:
            for i in range(3):
                log.append(i)
                yield B() if i == 1 else i
        finally:
            log.append("closed")

    try:
        sum(it())
    except KeyError:
        log.append("caught")
    return log


def program_list_raise():
    log = []
    items = [1]

    def it():
        yield 1
        yield 2
        raise KeyError("x")

    for fn in (items.extend, lambda q: items.__setitem__(slice(0, 1), q), lambda q: items.__iadd__(q)):
        try:
            fn(it())
        except KeyError:
            log.append(list(items))
    s = {0}
    d = {}
    dq = deque()
    for fn in (
        s.update,
        dq.extend,
        lambda q: d.update((v, v) for v in q),
        dq.extendleft,
        s.difference_update,
        s.intersection_update,
    ):
        try:
            fn(it())
        except KeyError:
            log.append((sorted(s), dict(d), list(dq)))
    return log


def program_bytes():
    log = []
    return bytes(gen(log, 3, None)), bytearray(gen(log, 3, None)), log


def program_np():
    log = []
    return np.fromiter(gen(log, 3, None), float), np.array(list(gen(log, 2, None))), log


def program_minmax_default():
    log = []
    return min(gen(log, 0), default=3), max((v for v in ()), default=None), log


def program_nlargest():
    log = []
    return [q.v for q in heapq.nlargest(2, gen(log, 4))], [q.v for q in heapq.nsmallest(2, gen(log, 4))], log


def program_merge():
    log = []
    return list(heapq.merge(gen(log, 2, None), gen(log, 2, None))), log


def program_bisect():
    log = []
    items = [Number(v, log) for v in (1, 3, 5)]
    bisect.insort(items, Number(4, log))
    return bisect.bisect(items, Number(2, log)), [q.v for q in items], log


def program_index_loop():
    items = [1, 2, 3, 4]
    out = []
    for v in items:
        out.append(v)
        if v == 2:
            items.remove(1)
        if v == 4:
            items.append(9)
    return out, items


def program_dict_iter_change():
    d = {1: 1, 2: 2}
    out = []
    try:
        for k in d:
            out.append(k)
            d[k + 10] = 0
    except RuntimeError as e:
        out.append(str(e))
    return out, d


def program_next_default():
    log = []
    g = gen(log, 1, None)
    return next(g, "d"), next(g, "d"), next(g, "e"), log


def program_divmod_order():
    log = []

    def t(v):
        log.append(v)
        return v

    x = t(1) + t(2) * t(3)
    d = {t(4): t(5), t(6): t(7)}
    items = [t(8)]
    items[t(0)] = t(9)
    d[t(10)], d[t(11)] = t(12), t(13)
    items[t(0)] += t(1)
    return x, d, items, log


def program_sum_buffer():
    buf = np.zeros(3)

    def it():
        nonlocal buf
        for i in range(3):
            buf += i + 1
            yield buf

    return sum(it()), buf


def program_sum_buffer2():
    buf = np.zeros(3)

    def it():
        for i in range(3):
            buf[:] = buf + i + 1
            yield buf

    return (
        sum(it(), np.ones(3)),
        buf,
        functools.reduce(lambda a, b: a + b, it()),
        list(itertools.accumulate(it())),
    )


def program_sum_mixed():
    log = []

    def it():
        yield 1
        yield 2.5
        yield np.float64(3)
        yield np.ones(2)
        log.append("x")
        yield 4
        yield np.arange(2)

    return sum(it()), log


def program_math_prod():
    log = []
    return math.prod(gen(log, 3, None)), math.fsum(gen(log, 3, None)), log


def program_sum_lists():
    a = [[1], [2], [3]]
    r = sum(a, [])
    s = sum(([i] for i in range(3)), [])
    t = sum([(1,), (2,)], ())
    return r, s, t, a


def program_max_objs():
    log = []
    return (
        max(gen(log, 4)).v,
        min(gen(log, 4), key=lambda q: q.v % 2).v,
        max([Number(3, log), Number(1, log)]).v,
        max(Number(3, log), Number(1, log)).v,
        log,
    )


PROGRAMS = [found for name, found in list(globals().items()) if name.startswith("program_")]
