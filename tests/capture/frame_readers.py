"""Functions that read the frames of their callers, and programs that call them from all kinds of places."""

from __future__ import annotations

import inspect
import itertools
import logging
import sys
import traceback
import warnings

import numpy as np


# -- readers: what the frame ``depth`` callers up holds --------------------------------------------------
def shown(names):
    """Locals in a form that can be compared, without what the interpreter itself adds."""
    return sorted((k, str(v)) for k, v in names.items() if not k.startswith((".", "__")) and not callable(v))


def by_getframe(depth):
    return shown(sys._getframe(depth + 1).f_locals)


def by_currentframe(depth):
    frame = inspect.currentframe().f_back
    for _ in range(depth):
        frame = frame.f_back
    return shown(frame.f_locals)


def by_stack(depth):
    found = inspect.stack()[depth + 1]
    return found.function, found.lineno, shown(found.frame.f_locals)


def by_name(depth, _get=sys._getframe):
    return shown(_get(depth + 1).f_locals)


def by_getattr(depth):
    return shown(getattr(sys, "_get" + "frame")(depth + 1).f_locals)


def by_traceback(depth):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame.f_back
        for _ in range(depth):
            frame = frame.f_back
        return shown(frame.f_locals)


def by_code(depth):
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_name, frame.f_code.co_varnames, frame.f_lineno, frame.f_globals is globals()


def by_walk(depth):
    return [
        (f.f_code.co_name, line) for f, line in itertools.islice(traceback.walk_stack(None), 1, depth + 2)
    ]


def by_extract(depth):
    return [(f.name, f.lineno) for f in traceback.extract_stack()[-depth - 2 :]]


def by_eval(depth):
    frame = sys._getframe(depth + 1)
    return eval("float(x.sum())", frame.f_globals, frame.f_locals)


class Query:
    """Like pandas: names of the caller, by a resolver of frames that is far from the call."""

    def __init__(self, level):
        self.scope = sys._getframe(level + 2).f_locals.copy()

    def answer(self):
        return shown(self.scope)


def query(depth):
    return Query(depth).answer()


def by_warning(depth):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=depth + 2)
    return [(w.filename == __file__, w.lineno) for w in found]


class _Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        self.found.append((record.funcName, record.lineno))


def by_logging(depth):
    kept = _Kept()
    log = logging.Logger("frames")
    log.addHandler(kept)
    log.warning("careful", stacklevel=depth + 2)
    return kept.found


READERS = [
    by_getframe,
    by_currentframe,
    by_stack,
    by_name,
    by_getattr,
    by_traceback,
    by_code,
    by_walk,
    by_extract,
]
READERS += [by_eval, query, by_warning, by_logging]


# -- callers: ``read`` is asked for the frame of the caller, or of a caller of it -------------------------
def straight(x, read, depth):
    y = x * 2
    unused = 7
    found = read(depth)
    return found, y + 1


def behind_a_break(x, read, depth):
    y = x + 1
    unused = [1]
    print(end="", file=sys.stderr)
    dead = y * 3
    found = read(depth)
    return found, y.sum()


def in_a_loop(x, read, depth):
    found, total = [], x
    for i in range(3):
        total = total + i
        last = i * 2
        found.append(read(depth))
    return found, total


def in_a_long_loop(x, read, depth):
    found, k = [], 0
    while k < 12:
        k += 1
        x = x * 1.5
        if k % 5 == 0:
            found.append(read(depth))
    return found, x


def in_a_comprehension(x, read, depth):
    z = x + 1
    return [read(depth) for _ in range(2)], z


def in_a_handler(x, read, depth):
    y = x - 1
    try:
        raise KeyError(1)
    except KeyError:
        found = read(depth)
    return found, y


def in_a_with(x, read, depth):
    y = x - 1
    with np.errstate(all="ignore"):
        found = read(depth)
    return found, y


def twice(x, read, depth):
    first = read(depth)
    x = x * 3
    return first, read(depth), x


def in_an_argument(x, read, depth):
    y = x * 2
    return y + len(str(read(depth))), read(depth)


def cells(x, read, depth):
    shared = x.sum()

    def inner():
        return shared

    found = read(depth)
    return found, inner()


def conditional(x, read, depth):
    y = x + 2
    if y.sum() > 0:
        found = read(depth)
    else:
        found = None
    return found, y


def deleted(x, read, depth):
    y = x + 2
    z = y * 2
    del y
    return read(depth), z


def by_argument_unpacking(x, read, depth, *rest, **more):
    y = x + 2
    args = (depth,)
    return read(*args), y


def through_map(x, read, depth):
    y = x + 2
    return list(map(read, [depth, depth])), y


def through_sorted(x, read, depth):
    y = x + 2
    return sorted([1], key=lambda _: str(read(depth))), y


def in_a_generator(x, read, depth):
    y = x + 2

    def items():
        mine = y * 2
        yield read(depth)
        yield mine.sum()

    return list(items()), y


def helper(x, read, depth):
    w = x * 2
    found = read(depth)
    return found, w


def helper_behind_a_break(x, read, depth):
    w = x * 2
    print(end="", file=sys.stderr)
    found = read(depth)
    return found, w


def through_a_helper(x, read, depth):
    y = x + 1
    mine = 3
    found, w = helper(y, read, depth)
    return found, w + mine


def through_a_breaking_helper(x, read, depth):
    y = x + 1
    mine = 3
    found, w = helper_behind_a_break(y, read, depth)
    return found, w + mine


def middle(x, read, depth):
    m = x * 4
    return helper(m, read, depth), m


def through_two(x, read, depth):
    y = x + 1
    found, m = middle(y, read, depth)
    return found, m


def a_break_then_two(x, read, depth):
    y = x + 1
    print(end="", file=sys.stderr)
    found, m = middle(y, read, depth)
    return found, m


def a_helper_in_a_loop(x, read, depth):
    found = []
    for i in range(10):
        x = x + i
        found.append(helper(x, read, depth)[0])
    return found, x


CALLERS = [
    straight,
    behind_a_break,
    in_a_loop,
    in_a_long_loop,
    in_a_comprehension,
    in_a_handler,
    in_a_with,
    twice,
]
CALLERS += [in_an_argument, cells, conditional, deleted, by_argument_unpacking, through_map, through_sorted]
CALLERS += [in_a_generator, through_a_helper, through_a_breaking_helper, through_two, a_break_then_two]
CALLERS += [a_helper_in_a_loop]


def outer(x, caller, read, depth):
    """A caller of the callers, for depth 1 and more."""
    o = x * 2
    return caller(o, read, depth)
