"""Programs in which builtins consume iterators and combine what they give: what happens when."""

from __future__ import annotations

import heapq
from collections import deque


class Number:
    def __init__(self, v, log):
        self.v = v
        self.log = log

    def __add__(self, o):
        self.log.append(("add", self.v))
        return Number(self.v + (o.v if isinstance(o, Number) else o), self.log)

    __radd__ = __add__

    def __lt__(self, o):
        self.log.append(("lt", self.v, o.v))
        return self.v < o.v

    def __eq__(self, o):
        self.log.append(("eq", self.v))
        return isinstance(o, Number) and self.v == o.v

    def __hash__(self):
        self.log.append(("hash", self.v))
        return hash(self.v)

    def __bool__(self):
        self.log.append(("bool", self.v))
        return self.v > 0


def gen(log, n=3, cls=Number):
    for i in range(n):
        log.append(("yield", i))
        yield cls(i, log) if cls else i
    log.append("end")


def fin(log, n=3):
    try:
        for i in range(n):
            log.append(("yield", i))
            yield i
    finally:
        log.append("fin")


def program_sum():
    log = []
    r = sum(gen(log))
    return r.v, log


def program_sum_start():
    log = []
    r = sum(gen(log), Number(5, log))
    return r.v, log


def program_min():
    log = []
    r = min(gen(log))
    return r.v, log


def program_max_key():
    log = []
    r = max(gen(log), key=lambda q: (log.append("key"), -q.v)[1])
    return r.v, log


def program_any():
    log = []
    r = any(gen(log))
    return r, log


def program_all():
    log = []
    r = all(gen(log))
    return r, log


def program_any_fin():
    log = []
    g = fin(log)
    r = any(g)
    log.append("after")
    return r, next(g, None), log


def program_sorted():
    log = []
    r = sorted(gen(log))
    return [q.v for q in r], log


def program_set():
    log = []
    r = set(gen(log))
    return len(r), log


def program_setupdate():
    log = []
    s = set()
    s.update(gen(log))
    return len(s), log


def program_setupdate_look():
    s = {100}

    def it():
        for _i in range(4):
            yield len(s)

    s.update(it())
    return sorted(s)


def program_set_ior_look():
    s = {100}

    def it():
        for _i in range(4):
            yield len(s)

    s |= set(it())
    return sorted(s)


def program_set_and_look():
    s = {0, 1, 2, 3, 4}

    def it():
        for i in range(4):
            yield len(s)
            s.discard(i)

    s.intersection_update(it())
    return sorted(s)


def program_set_diff_look():
    s = {0, 1, 2, 3, 4}

    def it():
        for _i in range(4):
            yield len(s) - 1

    s.difference_update(it())
    return sorted(s)


def program_set_symdiff_look():
    s = {0, 1, 2, 3, 4}

    def it():
        for _i in range(4):
            yield len(s)

    s.symmetric_difference_update(it())
    return sorted(s)


def program_set_methods_look():
    s = {0, 1, 2}
    log = []

    def it(k):
        for i in range(k):
            log.append(len(s))
            s.add(10 + i)
            yield i

    a = s.union(it(2))
    b = s.intersection(it(2))
    c = s.difference(it(3))
    d = s.issubset(it(2))
    e = s.issuperset(it(4))
    f = s.isdisjoint(it(2))
    g = s.symmetric_difference(it(3))
    return sorted(a), sorted(b), sorted(c), d, e, f, sorted(g), log


def program_list_extend_look():
    items = [1]

    def it():
        for _i in range(4):
            yield len(items)

    items.extend(it())
    items += it()
    items[1:2] = it()
    items[len(items) :] = it()
    return items


def program_list_slice_map():
    items = [1, 2]

    def f(x):
        items.append(x)
        return x

    items[1:] = map(f, [5, 6, 7])
    return items


def program_list_slice_gen_grow():
    items = [1, 2, 3]

    def it():
        for i in range(3):
            items.append(i * 10)
            yield i

    items[1:2] = it()
    return items


def program_list_slice_step():
    items = [1, 2, 3, 4]

    def it():
        yield len(items)
        yield items[-1]

    items[::2] = it()
    return items


def program_extend_self():
    items = [1, 2]
    items.extend(items)
    items += items
    items.extend(iter(items[:]))
    return items


def program_extend_own_iter():
    items = [1, 2]
    items.extend(x for x in items if len(items) < 8)
    return items


def program_deque_extend_look():
    d = deque([1], maxlen=5)

    def it():
        for _i in range(4):
            yield len(d)

    d.extend(it())
    d.extendleft(it())
    d += it()
    return d


def program_deque_extend_grow():
    d = deque()

    def it():
        for i in range(3):
            d.append(i * 10)
            yield i

    d.extend(it())
    return d


def program_dict_update_look():
    d = {"a": 1}

    def it():
        for i in range(3):
            yield (i, len(d))

    d.update(it())
    d |= it()
    d.update({"x": len(d)}, y=len(d))
    return d


def program_dict_fromkeys_look():
    log = []
    return dict.fromkeys(gen(log, 3, None), 0), log


def program_dict_ctor():
    log = []
    return {i: log.append("use") for i in gen(log, 3, None)}, log


def program_dict_mapping():
    log = []

    class M:
        def keys(self):
            log.append("keys")
            return gen(log, 3, None)

        def __getitem__(self, k):
            log.append(("get", k))
            return k * 2

    d = {}
    d.update(M())
    return d, dict(M()), {**M()}, log


def program_heappush_grow():
    h = []

    class G:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            if len(h) < 6:
                h.append(G(99))
            return self.v < o.v

    for v in (5, 3, 1):
        heapq.heappush(h, G(v))
    return [g.v for g in h]


def program_heappush_shrink():
    h = []

    class G:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            if len(h) > 2:
                h.pop()
            return self.v < o.v

    out = []
    for v in (5, 3, 1, 0, 7):
        try:
            heapq.heappush(h, G(v))
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return [g.v for g in h], out


def program_heappop_grow():
    h = []

    class G:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            if len(h) == 4:
                h.append(G(50))
            return self.v < o.v

    h[:] = [G(v) for v in (1, 2, 3, 4, 5)]
    out = []
    for _ in range(3):
        try:
            out.append(heapq.heappop(h).v)
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out, [g.v for g in h]


def program_heapify_grow():
    h = []

    class G:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            if len(h) == 4:
                h.append(G(50))
            return self.v < o.v

    h[:] = [G(v) for v in (4, 2, 3, 1)]
    try:
        heapq.heapify(h)
        r = None
    except Exception as e:
        r = (type(e).__name__, str(e))
    return r, [g.v for g in h]


def program_heap_others():
    h = []

    class G:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            if len(h) == 4:
                h.append(G(50))
            return self.v < o.v

    h[:] = [G(v) for v in (1, 2, 3, 4)]
    out = []
    for fn in (heapq.heapreplace, heapq.heappushpop):
        try:
            out.append(fn(h, G(3)).v)
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out, [g.v for g in h]


def program_join():
    log = []

    def g():
        for i in range(3):
            log.append(i)
            yield str(i)

    return ",".join(g()), ",".join(map(str, gen(log, 2, None))), log


def program_zip():
    log = []
    return list(zip(gen(log, 2, None), gen(log, 3, None))), log


def program_zip_strict():
    log = []
    try:
        list(zip(gen(log, 2, None), gen(log, 3, None), strict=True))
    except ValueError as e:
        log.append(str(e))
    return log


def program_map2():
    log = []
    return list(map(lambda a, b: log.append((a, b)), gen(log, 3, None), gen(log, 2, None))), log


def program_filter_enum():
    log = []
    return list(filter(lambda q: log.append(("f", q)) or q, enumerate(gen(log, 3, None)))), log


def program_tuple_list():
    log = []
    return (
        tuple(q.v for q in gen(log)),
        [*gen(log, 2, None)],
        (*gen(log, 2, None), 5),
        {*gen(log, 2, None)},
        log,
    )


def program_unpack():
    log = []
    a, *b = gen(log, 4, None)
    try:
        c, d = gen(log, 4, None)
    except ValueError as e:
        log.append(str(e))
    try:
        c, d, e_ = gen(log, 2, None)
    except ValueError as e:
        log.append(str(e))
    return a, b, log


PROGRAMS = [found for name, found in list(globals().items()) if name.startswith("program_")]
