"""Programs whose operations raise; see ``raised_programs``."""

# ruff: noqa: B007, B012, B016, B017, B018, B020, B023, B030, B904, C408, E722, E731, E741, F821, F841, RET503
# ruff: noqa: RET504, RET505, RET506, RET507, RET508, SIM105, SIM114, SIM115, SIM117, UP028
from __future__ import annotations

from tests.capture.raised_programs import Manager, Plain, broken, parse, whole


# -- raised by operations ---------------------------------------------------------------------------
@whole
def missing_key(x, log):
    d = {"a": 1}
    try:
        return x + d["b"]
    except KeyError as e:
        return x + 1, e.args


@whole
def missing_key_deleted(x, log):
    d = {"a": 1}
    try:
        del d["b"]
    except KeyError as e:
        log.append(e.args[0])
    try:
        d.pop("c")
    except KeyError as e:
        log.append(e.args[0])
    return x + 1


@whole
def index_out_of_range(x, log):
    items = [1, 2]
    for attempt in range(4):
        try:
            if attempt == 0:
                items[5]
            elif attempt == 1:
                (1, 2)[-3]
            elif attempt == 2:
                items[9] = 1
            else:
                "ab"[7]
        except IndexError as e:
            log.append(str(e))
    return x + 1


@whole
def list_methods(x, log):
    for attempt in range(4):
        try:
            if attempt == 0:
                [].pop()
            elif attempt == 1:
                [1].pop(4)
            elif attempt == 2:
                [1].remove(2)
            else:
                [1].index(3)
        except (IndexError, ValueError) as e:
            log.append((type(e).__name__, str(e)))
    return x + 1


@whole
def division_by_zero(x, log):
    for op in (lambda a: 1 / a, lambda a: 1 // a, lambda a: 1 % a, lambda a: divmod(1, a)):
        try:
            op(0)
        except ZeroDivisionError as e:
            log.append(str(e))
    return x + 1


@whole
def conversions(x, log):
    for text in ("1", "x", "2"):
        try:
            x = x + parse(text)
        except ValueError as e:
            log.append(str(e))
    return x + 1


@whole
def stop_iteration(x, log):
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return x + 1, e.value, e.args


@whole
def unbound_local(x, log):
    if len(x) > 100:
        y = 1
    try:
        return x + y
    except NameError as e:
        return x + 1, str(e), type(e).__name__


@whole
def unknown_global(x, log):
    try:
        return x + surely_not_defined_anywhere
    except NameError as e:
        return x + 1, str(e)


@whole
def wrong_number_to_unpack(x, log):
    for values in ((1,), (1, 2, 3)):
        try:
            a, b = values
        except ValueError as e:
            log.append(str(e))
    try:
        a, *b, c = (1,)
    except ValueError as e:
        log.append(str(e))
    return x + 1


@whole
def missing_attribute(x, log):
    m = Manager(log)
    try:
        m.nothing
    except AttributeError as e:
        return x + 1, str(e)


@whole
def mixed_types(x, log):
    for op in (lambda: 1 + "a", lambda: "a" < 1, lambda: len(5)):
        try:
            op()
        except TypeError as e:
            log.append(str(e))
    return x + 1


@whole
def in_place_message(x, log):
    n = 1
    try:
        n += "a"
    except TypeError as e:
        return x + 1, str(e)


@whole
def wrong_arguments(x, log):
    def f(a, b, *, c=1):
        return a

    calls = [((), {}), ((1, 2, 3), {}), ((1, 2), {"d": 3}), ((1, 2), {"a": 3}), ((1,), {})]
    for args, keywords in calls:
        try:
            f(*args, **keywords)
        except TypeError as e:
            log.append(str(e))
    return x + 1


@whole
def empty_range_step(x, log):
    try:
        range(0, 1, 0)
    except ValueError as e:
        return x + 1, str(e)


@whole
def empty_extremes(x, log):
    for f in (min, max):
        try:
            f([])
        except ValueError as e:
            log.append(str(e))
    return x + 1


# -- generators, comprehensions -----------------------------------------------------------------------
@whole
def generator_raises(x, log):
    def steps():
        yield 1
        raise Plain("g")

    total = 0
    try:
        for v in steps():
            total += v
    except Plain:
        total += 10
    return x + total


@whole
def generator_catches(x, log):
    def steps():
        for k in range(4):
            try:
                if k == 2:
                    raise Plain(k)
                yield k
            except Plain:
                yield 100

    return x + sum(list(steps()))


@whole
def stop_iteration_inside_generator(x, log):
    def steps():
        yield 1
        raise StopIteration("no")

    try:
        for v in steps():
            x = x + v
    except RuntimeError as e:
        return x + 1, str(e), type(e.__cause__).__name__


@whole
def comprehension_raises(x, log):
    try:
        return [1 // k for k in (1, 0)]
    except ZeroDivisionError:
        return x + 1


@whole
def comprehension_variable_survives(x, log):
    k = 7
    try:
        y = [1 // k for k in (1, 0)]
    except ZeroDivisionError:
        y = [k]
    return x + y[0]


@whole
def sort_key_raises(x, log):
    def key(v):
        if v == 2:
            raise Plain(v)
        return v

    try:
        return x + sorted([3, 2, 1], key=key)[0]
    except Plain as e:
        return x + e.args[0]


@broken
def extend_half_way(x, log):
    def steps():
        yield 1
        raise Plain("g")

    try:
        log.extend(steps())
    except Plain:
        log.append("caught")
    return x + 1
