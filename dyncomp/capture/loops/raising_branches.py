"""Branches on data one side of which always raises: checks of arguments (``if (x < 0).any(): raise …``); and
those on whether there are numbers that are not finite, one side of which is seldom taken.

The graph is taken on behind the check, and checks when it runs, before any of its effects: where the program
would take the other side the graph raises, and the original runs from its start: it raises what is the
program's own. Where the first call is such a one, or many are, the branch breaks the graph from then on
(``policy.fallback``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from ...device import CPU
from ...dtypes import bool_, int64
from ...errors import Unsupported
from ...frontends.base import ArrayRef
from ...graph.ir import GraphBuilder, Var
from ...python_code.flow import always_raises
from ..arrays.constant_elements import number_of
from ..arrays.finite_tests import usual_truth
from ..arrays.fractions import truth_of_comparison
from ..breaks import Break
from ..control.exceptions import is_caught
from ..values.array import ArrayValue
from ..values.base import Frame, Tracer, Value
from ..values.number import ConstValue

_JUMPS = {"POP_JUMP_IF_TRUE": True, "POP_JUMP_IF_FALSE": False}
_BRANCH = "data-dependent-branch"


def truth_at_jump(tracer: Tracer, frame: Frame, value: Value, index: int) -> bool:
    """The truth of what the conditional jump at ``index`` asks for; of data, that which does not lead to an
    exception."""
    try:
        return value.truth(tracer)
    except (Break, Unsupported) as problem:
        if problem.break_id != _BRANCH:
            raise
        array = tracer.realize(value)
        known = truth_of_comparison(tracer, array)
        if known is not None:
            return known
        wanted = _truth_that_goes_on(tracer, frame, index)
        if wanted is None:
            wanted = _usual_truth(tracer, frame, array, index)
        if wanted is None:
            raise
        if not isinstance(array, ArrayValue) or not _can_be_checked(array):
            return _presumed(tracer, lambda: value.truth(tracer), wanted, problem)
    check(tracer, array, wanted)
    return wanted


def _usual_truth(tracer: Tracer, frame: Frame, value: Value, index: int) -> bool | None:
    """The truth of a test for numbers that are not finite, unless earlier calls found it otherwise."""
    place = frame.raw_code, index
    if not isinstance(value, ArrayValue) or place in tracer.config.unusual or not _can_be_checked(value):
        return None
    found = usual_truth(tracer.builder, tracer.config.table, value.ref.var)
    if found is not None:
        tracer.presumed.append((weakref.ref(frame.raw_code), index))
    return found


def compared(tracer: Tracer, frame: Frame, run: Callable[[], Value]) -> Value:
    """The result of a comparison, in a jump's condition as above: of sizes that depend on the data."""
    try:
        return run()
    except (Break, Unsupported) as problem:
        index = frame.current + 1
        wanted = _truth_that_goes_on(tracer, frame, index) if problem.break_id == _BRANCH else None
        if wanted is None:
            raise
        return ConstValue(_presumed(tracer, lambda: run().truth(tracer), wanted, problem))


def _presumed(tracer: Tracer, ask: Callable[[], bool], wanted: bool, problem: Exception) -> bool:
    """``wanted``, if it is the answer to a question about sizes for one of the ways in which that may be."""
    env = tracer.env
    count, nodes = len(env.guards), len(tracer.builder.nodes)
    for answer in (True, False):
        env.presumed = answer
        try:
            if ask() is wanted:
                return wanted
        except (Break, Unsupported):
            pass
        finally:
            env.presumed = None
        env.forget(count)
        del tracer.builder.nodes[nodes:]
    raise problem from None


def _truth_that_goes_on(tracer: Tracer, frame: Frame, index: int) -> bool | None:
    """The truth without which the program certainly raises at the jump at ``index``, out of all that is
    captured; ``None`` where both sides may go on."""
    code = frame.code
    jump = code.instructions[index]
    jumps_if = _JUMPS.get(jump.op)
    if jumps_if is None or is_caught(tracer):
        return None
    jumped, passed = always_raises(code, jump.arg), always_raises(code, index + 1)
    if jumped == passed:
        return None
    return not jumps_if if jumped else jumps_if


def _can_be_checked(value: ArrayValue) -> bool:
    """Whether the graph can (on a device an index out of bounds would stop the device)."""
    ref = value.ref
    one = all(isinstance(n, int) and n == 1 for n in ref.shape)
    return one and ref.kind != "masked" and ref.type.device == CPU


def check(tracer: Tracer, value: ArrayValue, expected: bool) -> None:
    """Have the graph raise where the truth of ``value`` is not as expected: an index out of bounds."""
    builder = tracer.builder
    builder.loc = tracer.loc
    number = number_of(tracer, value.ref.var)
    if number is not None and bool(number) is expected:
        return
    var = _truth(builder, value.ref.var)
    wrong = builder.emit("logical_not", var) if expected else var
    place = builder.emit("convert", wrong, dtype=int64)
    only = builder.emit("full", shape=(1,), value=0, dtype=int64, device=CPU)
    found = builder.emit("index", only, place, dims=(0,), position=0)
    if not tracer.checks:
        # an output, so that there is a graph; passes leave nothing out that may raise
        tracer.note_may_raise(tracer.array_value(ArrayRef(found, "python", value.ref.frontend)))
    tracer.checks += 1


def negated(tracer: Tracer, value: ArrayValue) -> Value:
    """``not value`` of a Python bool that the graph computes."""
    tracer.builder.loc = tracer.loc
    var = tracer.builder.emit("logical_not", _truth(tracer.builder, value.ref.var))
    return tracer.array_value(ArrayRef(var, "python", value.ref.frontend))


def _truth(builder: GraphBuilder, var: Var) -> Var:
    if var.ndim:
        var = builder.emit("reshape", var, shape=())
    return var if var.dtype == bool_ else builder.emit("convert", var, dtype=bool_)
