"""Programs that notice when objects go: by destructors and weak references. Each gets an array of its own and
a log, and writes to the log; every ``see`` is a graph break."""

from __future__ import annotations

import gc
import weakref

import dyncomp


@dyncomp.disable
def see(log, *what):
    log.append(what)


class Loud:
    """Says when it goes."""

    def __init__(self, log, name):
        self.log = log
        self.name = name

    def __del__(self):
        self.log.append(("gone", self.name))


class Plain:
    pass


def deleted(x, log):
    o = Loud(log, "o")
    see(log, 1)
    del o
    see(log, 2)
    y = x + 1
    see(log, 3)
    return y


def held_until_the_return(x, log):
    o = Loud(log, "o")
    r = weakref.ref(o)
    see(log, r() is None)
    y = x * 2
    see(log, r() is None)
    return y.sum() > 0


def held_to_the_last_instruction(x, log):
    o = Loud(log, "o")
    r = weakref.ref(o)
    see(log, "before")
    see(log, r() is None)


def assigned_anew(x, log):
    o = Loud(log, 1)
    see(log, "a")
    o = Loud(log, 2)
    see(log, "b")
    o = x + 1
    see(log, "c")
    return o


def argument_deleted(x, log):
    r = weakref.ref(x)
    see(log, r() is None)
    del x
    see(log, r() is None)


def argument_replaced(x, log):
    r = weakref.ref(x)
    x = x + 1
    see(log, r() is None)
    s = weakref.ref(x)
    x = x * 2
    see(log, s() is None)
    return x


def takes_and_drops(o, log):
    see(log, "inside", o.name)
    del o
    see(log, "dropped")
    return 3


def temporary_passed_on(x, log):
    k = takes_and_drops(Loud(log, "t"), log)
    see(log, "back")
    return x + k


def argument_passed_on(x, log):
    o = Loud(log, "kept")
    k = takes_and_drops(o, log)
    see(log, "back")
    return x * k


def through_two_callees(x, log):
    def outer(o):
        k = takes_and_drops(o, log)
        see(log, "outer")
        return k

    k = outer(Loud(log, "two"))
    see(log, "back")
    return x + k


def callee_locals_go_at_its_return(x, log):
    def inner():
        o = Loud(log, "inner")
        see(log, "in")
        return o.name

    see(log, inner())
    return x


def in_a_loop(x, log):
    for i in range(30):
        o = Loud(log, i)
        see(log, "step", i)
        x = x + 1
        del o
    return x


def arrays_in_a_loop(x, log):
    for _ in range(30):
        r = weakref.ref(x)
        x = x + 1
        see(log, r() is None)
    return x


def items_of_a_loop(x, log):
    for o in [Loud(log, k) for k in range(3)]:
        see(log, o.name)
        x = x + 1
    del o
    see(log, "after")
    return x


def while_loop(x, log):
    o = None
    k = 0
    while k < 4:
        o = Loud(log, k)
        see(log, "turn", k)
        k += 1
    del o
    see(log, "after")
    return x + k


def left_in_the_middle(x, log):
    found = last = None
    for k in range(20):
        last = Loud(log, k)
        see(log, "turn", k)
        x = x + 1
        if x[0] > 3:
            found = last
            last = None
            break
    else:
        see(log, "never")
    see(log, found.name)
    found = None
    see(log, last)
    return x


def loop_under_a_handler(x, log):
    o = None
    try:
        for k in range(5):
            o = Loud(log, k)
            see(log, "turn", o.name)
            x = x + 1
            if k == 3:
                raise ValueError(k)
    except ValueError as error:
        see(log, "caught", str(error), o.name)
        o = None
    see(log, "after")
    return x


def in_a_branch(x, log):
    o = Loud(log, "branch")
    if x.sum() > 1:
        del o
        see(log, "yes")
    else:
        see(log, "no")
    see(log, "end")
    return x


def with_finally(x, log):
    o = Loud(log, "try")
    try:
        see(log, "body")
        del o
        see(log, "deleted")
    finally:
        see(log, "finally")
    see(log, "end")
    return x + 1


def with_handler(x, log):
    try:
        o = Loud(log, "raised")
        see(log, "before")
        raise ValueError(o.name)
    except ValueError as error:
        see(log, str(error))
        del o
    see(log, "handled")
    return x


def exception_goes(x, log):
    try:
        error = ValueError("one")
        error.load = Loud(log, "load")
        raise error
    except ValueError as caught:
        see(log, str(caught))
        del error
    see(log, "handled")
    return x


def container_of(x, log):
    box = [Loud(log, 1), Loud(log, 2)]
    see(log, len(box))
    box.pop()
    see(log, "popped")
    box.clear()
    see(log, "cleared")
    return x


def attribute_replaced(x, log):
    p = Plain()
    p.o = Loud(log, "attribute")
    see(log, "set")
    p.o = None
    see(log, "replaced")
    return x


def in_a_cell(x, log):
    o = Loud(log, "cell")

    def get():
        return o

    see(log, get().name)
    o = None
    see(log, "emptied")
    return x


def function_goes(x, log):
    def inner():
        return x

    r = weakref.ref(inner)
    see(log, r() is None)
    del inner
    see(log, r() is None)
    return x


def callback(x, log):
    p = Plain()
    r = weakref.ref(p, lambda _: log.append("callback"))
    see(log, r() is None)
    del p
    see(log, r() is None)
    return x


def generator_goes(x, log):
    def steps():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    g = steps()
    see(log, next(g))
    del g
    see(log, "after")
    return x


def cycle(x, log):
    p = Plain()
    p.me = p
    r = weakref.ref(p)
    see(log, r() is None)
    del p
    gc.collect()
    see(log, r() is None)
    return x


def unpacked(x, log):
    a, b = Loud(log, "a"), Loud(log, "b")
    see(log, "both")
    a, b = b, None
    see(log, "moved")
    del a
    see(log, "none")
    return x


def shared(x, log):
    a = b = Loud(log, "shared")
    see(log, 0)
    del a
    see(log, 1)
    del b
    see(log, 2)
    return x


def more_arguments(x, log, *rest, key=None):
    see(log, len(rest), key)
    o = Loud(log, "more")
    see(log, o.name)
    del o
    see(log, "end")
    return x


def recursion(x, log, depth=3):
    o = Loud(log, depth)
    if depth == 0:
        see(log, "bottom")
        return x
    y = recursion(x + 1, log, depth - 1)
    see(log, o.name)
    return y


class Worker:
    def __init__(self, log):
        self.log = log
        self.own = Loud(log, "own")

    def work(self, x):
        o = self.own
        self.own = None
        see(self.log, o.name)
        del o
        see(self.log, "worked")
        return x + 1


def method(x, log):
    w = Worker(log)
    y = w.work(x)
    see(log, "back")
    return y


PROGRAMS = [
    deleted,
    held_until_the_return,
    held_to_the_last_instruction,
    assigned_anew,
    argument_deleted,
    argument_replaced,
    temporary_passed_on,
    argument_passed_on,
    through_two_callees,
    callee_locals_go_at_its_return,
    in_a_loop,
    arrays_in_a_loop,
    items_of_a_loop,
    while_loop,
    left_in_the_middle,
    loop_under_a_handler,
    in_a_branch,
    with_finally,
    with_handler,
    exception_goes,
    container_of,
    attribute_replaced,
    in_a_cell,
    function_goes,
    callback,
    generator_goes,
    cycle,
    unpacked,
    shared,
    more_arguments,
    recursion,
    method,
]
