"""Small programs with generators; see ``programs.Program``."""

# ruff: noqa: B006, B007, B023, B904, C400, C401, C402, C416, E731, F841, RET505, RET503, SIM105, SIM108, UP028
from __future__ import annotations

from typing import Any

import numpy as np

from tests.capture.programs import Program, one, vec

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


def scaled(x, n):
    for i in range(n):
        yield x * i


def chained(x):
    yield x
    yield from scaled(x, 2)
    return x * 10


def delegating(x):
    found = yield from chained(x)
    yield found + 1


def counting(start):
    n = start
    while True:
        yield n
        n += 1


def accumulate(x):
    total = x
    while True:
        more = yield total
        total = total + more


# -- consumed in the frame, without a break -----------------------------------------------------------
@program(one)
def for_over_generator(x):
    total = 0
    for y in scaled(x, 3):
        total = total + y
    return total


@program(one)
def expanded(x):
    return list(chained(x)), tuple(scaled(x, 2)), sum(scaled(x, 3)), [*scaled(x, 2), 1]


@program(one)
def reduced_numbers(x):
    return max(i for i in range(3)), min(i * i for i in (2, 3)), any(i > 2 for i in range(4)), x + 1


@program(one)
def sorted_items(x):
    return sorted(i % 3 for i in range(5)), sorted((c for c in "bca"), reverse=True), x * 2


@program(one)
def next_with_default(x):
    g = scaled(x, 1)
    return next(g, None), next(g, None), next(g, 3)


@program(one)
def next_of_a_method(x):
    g = scaled(x, 3)
    return g.__next__(), iter(g) is g, g.__next__()


@program(one)
def partly_consumed(x):
    g = scaled(x, 5)
    first = next(g)
    return first, [v + 1 for v in g], list(g)


@program(one)
def sent_values(x):
    g = accumulate(x)
    next(g)
    a = g.send(x)
    b = g.send(2)
    return a, b, g.send(None) if False else b


@program(one)
def sent_none(x):
    g = scaled(x, 3)
    return g.send(None), g.send(None), next(g)


@program(one)
def delegated(x):
    return [v * 2 for v in delegating(x)]


@program(one)
def delegated_to_a_list(x):
    def g():
        yield from [x, x + 1]
        yield from (x * 2,)
        yield from range(2)

    return list(g())


@program(one)
def sent_through_delegation(x):
    def outer():
        yield from accumulate(x)

    g = outer()
    next(g)
    return g.send(1), g.send(x)


@program(one)
def closed(x):
    g = scaled(x, 5)
    first = next(g)
    g.close()
    return first * 2, list(g), next(g, None)


@program(one)
def closed_before_it_starts(x):
    g = scaled(x, 5)
    g.close()
    return list(g), x * 2


@program(one)
def finally_at_the_end(x):
    log = []

    def g():
        try:
            yield x + 1
            yield x + 2
        finally:
            log.append("closed")

    total = 0
    for v in g():
        total = total + v
    return total, log


@program(one)
def endless(x):
    total = 0
    for n in counting(1):
        total = total + x * n
        if n > 3:
            break
    for i, n in zip(range(3), counting(5)):
        total = total + x * i * n
    return total


@program(one)
def interleaved(x):
    a, b = scaled(x, 3), scaled(x + 1, 3)
    return [u + next(b) for u in a]


@program(one)
def zipped_and_enumerated(x):
    found = []
    for i, (a, b) in enumerate(zip(scaled(x, 3), counting(1))):
        found.append(a * b + i)
    return found


@program(one)
def shared_between_consumers(x):
    g = scaled(x, 6)
    return [(a, b) for a, b in zip(g, g)]


@program(one)
def expressions(x):
    n = 3
    return sum(x * i + n for i in range(4)), {i: x * i for i in range(2)}, dict((k, x * k) for k in (1, 2))


@program(one)
def nested_expressions(x):
    return sum(sum(x * i * j for i in range(3)) for j in range(2)), [y for y in (x + k for k in (1, 2))]


@program(one)
def unpacked(x):
    a, *b = scaled(x, 4)
    c, d = scaled(x, 2)
    return a, b, c + d


@program(one)
def star_call(x):
    def add(a, b, c):
        return a + b * c

    return add(*scaled(x, 3))


@program(one)
def passed_to_a_callee(x):
    def take(g, n):
        return [next(g) for _ in range(n)]

    g = scaled(x, 5)
    return take(g, 2), take(g, 3)


@program(one)
def writes_to_cells(x):
    n = 0

    def g():
        nonlocal n
        while n < 4:
            n += 1
            yield x * n

    it = g()
    first = next(it)
    n += 1
    return first, list(it), n


@program(one)
def kept_in_containers(x):
    d = {"g": scaled(x, 4), "h": [scaled(x, 2)]}
    next(d["g"])
    return next(d["g"]), list(d["h"][0]), list(d["g"])


class Chunks:
    def __init__(self, x):
        self.x = x

    def parts(self, n):
        for i in range(0, len(self.x), n):
            yield self.x[i : i + n]

    def __iter__(self):
        yield self.x
        yield self.x * 2


@program(lambda: (Chunks(vec(6)),))
def generator_method(c):
    return [p.sum() for p in c.parts(2)]


@program(lambda: (Chunks(vec(6)),))
def iter_method_that_yields(c):
    total = 0
    for v in c:
        total = total + v
    return total, [v + 1 for v in c]


@program(one)
def arguments_of_every_kind(x):
    def g(a, /, b=2, *rest, c, **more):
        yield a * b
        for r in rest:
            yield a + r
        yield a * c + len(more)

    return list(g(x, 3, 4, 5, c=6, d=7)), list(g(x, c=1))


@program(one)
def recursive_generator(x):
    def walk(n):
        if n:
            yield from walk(n - 1)
            yield x * n

    return list(walk(2))


@program(one)
def pipeline(x):
    squares = (v * v for v in scaled(x, 4))
    shifted = (v + 1 for v in squares)
    return [v for i, v in enumerate(shifted) if i % 2]


@program(one)
def long_loop_inside(x):
    def g():
        for i in range(100):
            yield x * i

    it = g()
    return [next(it) for _ in range(4)]


@program(one)
def mutates_arrays(x):
    def g(a):
        for i in range(3):
            a[i] = i
            yield a.sum()

    y = x.copy()
    return list(g(y)), y


@program(one)
def thrown_and_handled(x):
    log = []

    def g():
        try:
            yield x
        except ValueError as e:
            log.append(str(e))
            yield x + 1
        finally:
            log.append("f")
        yield x + 2

    it = g()
    a = next(it)
    b = it.throw(ValueError("q"))
    return a, b, list(it), log


@program(one)
def thrown_and_not_handled(x):
    def g():
        yield x

    it = g()
    next(it)
    try:
        it.throw(KeyError("k"))
    except KeyError as e:
        return x * 2, e.args, list(it)


@program(one)
def thrown_into_a_delegate(x):
    log = []

    def inner():
        try:
            yield x
            yield x
        except ValueError:
            log.append("in")
            return 7

    def outer():
        r = yield from inner()
        log.append(r)
        yield x * r

    it = outer()
    next(it)
    return it.throw(ValueError), log


@program(one)
def thrown_past_a_delegate(x):
    log = []

    def inner():
        yield x

    def outer():
        try:
            yield from inner()
        except ValueError:
            log.append("o")
        yield x * 3

    it = outer()
    next(it)
    return it.throw(ValueError), log


@program(one)
def closed_inside_finally(x):
    log = []

    def g():
        try:
            yield x
            yield x
        finally:
            log.append("c")

    it = g()
    y = next(it)
    it.close()
    log.append("after")
    return y * 2, log, list(it)


@program(one)
def closed_while_delegating(x):
    log = []

    def inner():
        try:
            yield x
        finally:
            log.append("i")

    def outer():
        try:
            yield from inner()
        finally:
            log.append("o")

    it = outer()
    y = next(it)
    it.close()
    return y * 2, log


@program(one)
def dropped_inside_finally(x):
    log = []

    def g():
        try:
            yield x
            yield x
        finally:
            log.append("c")

    for v in g():
        y = v * 2
        break
    log.append("after")
    return y, log


@program(one)
def value_of_stop_iteration(x):
    def g():
        yield x
        return 5

    it = g()
    next(it)
    try:
        next(it)
    except StopIteration as s:
        return s.value, x * 2


@program(one)
def stop_iteration_becomes_runtime_error(x):
    def g():
        yield x
        next(iter([]))

    it = g()
    next(it)
    try:
        next(it)
    except RuntimeError as e:
        return str(e), x * 2


@program(one)
def error_seen_by_the_consumer(x):
    def g():
        yield x
        raise ValueError("no")

    t = 0
    try:
        for v in g():
            t = t + v
    except ValueError as e:
        return t, str(e)


@program(one)
def ignores_generator_exit(x):
    def g():
        try:
            yield x
        except GeneratorExit:
            yield x + 1

    it = g()
    next(it)
    try:
        it.close()
    except RuntimeError as error:
        return str(error), x * 2


@program(one)
def returns_from_close(x):
    def g():
        try:
            yield x
        except GeneratorExit:
            return 5

    it = g()
    next(it)
    return it.close(), list(it), x * 2


@program(one)
def thrown_before_it_starts(x):
    g = scaled(x, 3)
    try:
        g.throw(ValueError("early"))
    except ValueError as error:
        return str(error), list(g), x + 1


@program(one)
def thrown_class(x):
    def g():
        while True:
            try:
                yield x
            except (KeyError, ValueError) as error:
                yield type(error).__name__

    it = g()
    next(it)
    return it.throw(KeyError), next(it), it.throw(ValueError)


@program(one)
def context_of_what_is_thrown(x):
    def g():
        try:
            yield x
        except ValueError as error:
            raise KeyError("next") from error

    it = g()
    next(it)
    try:
        it.throw(ValueError("first"))
    except KeyError as error:
        return type(error.__cause__).__name__, error.args, x * 2


@program(one)
def suspended_while_handling(x):
    def g():
        try:
            raise ValueError("inside")
        except ValueError as error:
            yield x
            yield str(error)

    return list(g()), x + 1


@program(one, breaks=("raise", "generator", "print"), plain=True)
def suspended_while_handling_at_a_break(x):
    def g():
        try:
            raise ValueError("inside")
        except ValueError as error:
            yield x
            yield str(error)

    it = g()
    y = next(it)
    print(1)
    return y, list(it)


@program(one, breaks=("generator", "print"), plain=True)
def closed_with_a_break_in_finally(x):
    def g():
        try:
            yield x
        finally:
            print("closed")

    it = g()
    y = next(it) + 1
    it.close()
    print("after")
    return y * 2


@program(one, breaks=("generator", "print"), plain=True)
def dropped_with_a_break_in_finally(x):
    def g():
        try:
            yield x
            yield x
        finally:
            print("closed")

    for v in g():
        y = v + 1
        break
    print("after")
    return y * 2


@program(one, breaks=("generator", "print", "loop"), plain=True)
def left_loop_over_a_generator_that_breaks(x):
    def g():
        try:
            for i in range(30):
                print(i)
                yield x + i
        finally:
            print("closed")

    total = 0
    for i, v in enumerate(g()):
        total = total + v
        if i == 10:
            break
    print("after")
    return total * 2


@program(one)
def replaced_and_deleted(x):
    log = []

    def g(name):
        try:
            yield x
            yield x
        finally:
            log.append(name)

    a = g("a")
    y = next(a)
    a = g("b")
    next(a)
    b = a
    del a
    log.append("deleted")
    b = None
    c = g("c")
    next(c)
    d = g("d")
    next(d)
    return y * 2, log


# -- half-way at a break, a return, an effect -------------------------------------------------------------
@program(one, breaks=("print", "loop"))
def half_way_at_a_break(x):
    g = scaled(x, 5)
    a = next(g)
    b = next(g)
    print("hi")
    return a + b, [v + 1 for v in g]


@program(one, breaks=("print", "unsupported-operation"), plain=True)
def delegating_half_way(x):
    g = delegating(x)
    a = next(g)
    b = next(g)
    print(a.sum())
    c = next(g)
    return a, b, c, list(g)


@program(one, breaks=("print", "unsupported-call", "unsupported-attribute"), plain=True)
def sent_after_a_break(x):
    g = accumulate(x)
    next(g)
    a = g.send(x)
    print(1)
    return a, g.send(2), g.send(x)


@program(one, breaks=("print", "unsupported-operation"), plain=True)
def shared_cells_after_a_break(x):
    n = 0

    def g():
        nonlocal n
        while n < 4:
            n += 1
            yield x * n

    it = g()
    first = next(it)
    n += 1
    print(n)
    return first, list(it), n


@program(one, breaks=("print", "unsupported-operation"), plain=True)
def finished_at_a_break(x):
    g = scaled(x, 2)
    y = list(g)
    print(1)
    return y, list(g), g.__name__, type(g).__name__


@program(one, breaks=("print", "unsupported-operation"), plain=True)
def unstarted_at_a_break(x):
    g = scaled(x + 1, 2)
    print(1)
    return list(g), x * 2


@program(one, breaks=("print", "unsupported-operation", "unsupported-attribute"), plain=True)
def names_after_a_break(x):
    g = delegating(x)
    y = next(g)
    print(1)
    code = g.gi_code
    return (
        y,
        g.__name__,
        g.__qualname__,
        code.co_name,
        g.gi_yieldfrom is not None,
        code.co_firstlineno,
        list(g),
    )


@program(one, breaks=("print", "generator", "unsupported-attribute", "unsupported-operation"), plain=True)
def finally_half_way_at_a_break(x):
    log = []

    def g():
        try:
            yield x + 1
            yield x + 2
        finally:
            log.append("closed")

    it = g()
    y = next(it)
    print(1)
    it.close()
    return y * 2, log


@program(one, breaks=("loop", "print"))
def break_inside_the_generator(x):
    def g():
        for i in range(4):
            if i == 2:
                print("x")
            yield x + i

    total = 0
    for v in g():
        total = total + v
    return total * 2


@program(one, breaks=("loop",))
def longer_than_the_limit(x):
    total = 0
    for v in scaled(x, 30):
        total = total + v
    return total * 2


@program(one, breaks=("generator", "print"), plain=True)
def given_up_inside_try(x):
    log = []

    def g():
        try:
            yield x + 1
            yield x + 2
        finally:
            log.append("closed")

    for v in g():
        y = v * 2
        break
    return y, log


@program(one)
def stop_iteration_inside(x):
    def g():
        yield x
        next(iter(()))
        yield x

    try:
        return list(g())
    except RuntimeError as error:
        return str(error), type(error.__cause__).__name__, x * 2


@program(one, breaks=("would-raise", "generator", "raise", "unsupported-call"), plain=True)
def error_inside(x):
    def g():
        yield x
        raise ValueError("no")

    return list(g())


@program(one, breaks=("would-raise",), plain=True)
def exhausted(x):
    g = scaled(x, 1)
    next(g)
    return next(g)


@program(one, breaks=("would-raise", "generator"), plain=True)
def non_none_sent_too_early(x):
    return accumulate(x).send(1)


@program(one, breaks=("data-dependent-branch", "loop", "generator", "unsupported-call"), plain=True)
def filtered_by_data(x):
    return [v for v in (x[i] for i in range(4)) if v > 1], any(v > 2 for v in x)


def escapes(x):
    g = scaled(x + 1, 4)
    y = next(g)
    return g, y


def escapes_within_a_list(x):
    inner = delegating(x)
    return [inner, next(inner), next(inner), inner]


def escapes_after_sends(x):
    g = accumulate(x)
    next(g)
    g.send(x * 2)
    return g


def escapes_from_a_comprehension(x):
    made = [scaled(x, n) for n in (1, 2, 3)]
    for g in made:
        next(g)
    return made


def escapes_with_closure(x):
    def g(k):
        while True:
            k = yield (x, k)

    it = g(np.ones(2))
    next(it)
    return it, g
