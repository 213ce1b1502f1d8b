"""Runs of single loops as generated code, for tests: functions that begin with their loop.

``def f(it, s, a): for i in it: …`` is entered at the header with the arguments as its locals; where generated
code leaves it, a continuation of the original goes on in plain Python.
"""

import copy
import types
from collections import Counter

import numpy as np

from dyncomp.python_code.loop_find import find_loops
from dyncomp.python_code.loops import UNBOUND
from dyncomp.python_code.resume import make_continuation
from dyncomp.python_code.versions import decode
from dyncomp.scalar_loops.build import build
from dyncomp.scalar_loops.entry.native_loop import NativeLoop

MOST_PAUSES = 1000


class Record:
    """What a loop tells of itself."""

    def __init__(self):
        self.versions, self.seconds, self.source = 0, 0.0, ""
        self.bailed = Counter()


class Run:
    """The first loop of ``function`` that begins with it. ``record`` counts why it was left."""

    def __init__(self, function):
        self.function = function
        self.code = decode(function.__code__)
        self.loop = min(find_loops(self.code), key=lambda loop: (loop.level, loop.header))
        self.names = tuple(self.code.varnames)
        self.record = Record()
        self.native = NativeLoop(self.code, self.loop, self.names, function.__globals__, build, self.record)
        self.is_native = False

    def __call__(self, *args):
        local = dict(zip(self.code.arg_names, args))
        values = [local.get(name, UNBOUND) for name in self.names]
        is_for = self.loop.kind == "for"
        stack = [iter(args[0])] if is_for else []
        place = self.loop.header
        for _ in range(MOST_PAUSES):
            state = self.native.prepare(*stack, *values)
            self.is_native = state is not None
            if state is None:
                break
            self.native.execute(state)
            place, *rest = self.native.results(state)
            stack, values = rest[: len(rest) - len(self.names)], rest[len(rest) - len(self.names) :]
            if place != self.loop.header or not self.native.has_paused:
                break
        bound = {name: value for name, value in zip(self.names, values) if value is not UNBOUND}
        made = make_continuation(self.code, place, stack_depth=len(stack), bound=tuple(bound))
        rest = types.FunctionType(made.code, self.function.__globals__, "rest")
        given = {("stack", k): value for k, value in enumerate(stack)}
        given.update({("local", name): value for name, value in bound.items()})
        return rest(*[given[arg.kind, arg.key] for arg in made.args])


def outcome(function, args):
    """Result or exception, and the arguments afterwards, in a form that can be compared."""
    args = copy.deepcopy(args)
    try:
        with np.errstate(all="ignore"):
            result = ("returned", shown(function(*args)))
    except Exception as error:
        result = ("raised", type(error).__name__, str(error))
    return result, [shown(arg) for arg in args]


def shown(value):
    """A value with its exact type and bits."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shown(item) for item in value]
    if isinstance(value, np.ndarray):
        bits = value.tobytes() if value.size > 20 else value.tolist()
        return "array", value.dtype.str, value.shape, hash(bits) if isinstance(bits, bytes) else str(bits)
    if isinstance(value, np.generic):
        return type(value).__name__, value.tobytes() if value == value else "nan"
    if isinstance(value, float):
        return "float", value.hex()
    return type(value).__name__, repr(value)


def check(function, *args, native=True, left=None):
    """Plain Python and generated code do the same. ``left``: whether generated code is left early."""
    run = Run(function)
    expected = outcome(function, args)
    found = outcome(run, args)
    assert found == expected, (found, expected, run.native.problem, dict(run.record.bailed))
    assert native is None or run.is_native == native, run.native.problem
    if left is not None:
        assert bool(run.record.bailed) == left, dict(run.record.bailed)
    return run
