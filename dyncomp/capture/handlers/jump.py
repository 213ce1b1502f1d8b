"""Branches, loops and returns."""

from __future__ import annotations

from typing import Any

from .. import terminators
from ..breaks import Break
from ..calls.modes import block_of_object
from ..control import generators
from ..frames import Steps
from ..guards.guard import Kind
from ..loops.idle_loops import LAYERS, check_idle, note_begin, tries_idle, unrolls_library
from ..loops.raising_branches import truth_at_jump
from ..objects.class_names import class_dict
from ..values.array import ArrayValue
from ..values.base import Frame, OpaqueValue, Tracer
from ..values.context import InertContextValue
from ..values.iterator import IteratorValue, SequenceIterator, ZipIterator
from ..values.mapping import DictIterator
from ..values.number import ConstValue
from ..values.obj import InstanceValue
from ..values.seq import TupleValue
from .registry import handles


def _go(tracer: Tracer, frame: Frame, target: int) -> None:
    if target <= frame.current:
        terminators.back_edge(tracer, frame, target)
    frame.jump(target)


@handles("JUMP", "JUMP_NO_INTERRUPT")
def jump(tracer: Tracer, frame: Frame, target: int) -> None:
    _go(tracer, frame, target)


@handles("POP_JUMP_IF_TRUE")
def pop_jump_if_true(tracer: Tracer, frame: Frame, target: int) -> None:
    if truth_at_jump(tracer, frame, frame.pop(), frame.current):
        _go(tracer, frame, target)


@handles("POP_JUMP_IF_FALSE")
def pop_jump_if_false(tracer: Tracer, frame: Frame, target: int) -> None:
    if not truth_at_jump(tracer, frame, frame.pop(), frame.current):
        _go(tracer, frame, target)


def _is_none(tracer: Tracer, value: Any) -> bool:
    if isinstance(value, OpaqueValue):
        if value.source is None:
            raise Break("opaque-object", f"comparison of {value.describe()} with None")
        tracer.guard(value.source, Kind.TYPE_IS, type(value.obj))
        return value.obj is None
    return value.is_const and value.const is None


@handles("POP_JUMP_IF_NONE")
def pop_jump_if_none(tracer: Tracer, frame: Frame, target: int) -> None:
    if _is_none(tracer, frame.pop()):
        _go(tracer, frame, target)


@handles("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(tracer: Tracer, frame: Frame, target: int) -> None:
    if not _is_none(tracer, frame.pop()):
        _go(tracer, frame, target)


@handles("GET_ITER")
def get_iter(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(frame.pop().iterate(tracer))


@handles("GET_LEN")
def get_len(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(frame.stack[-1].length(tracer))


@handles("FOR_ITER")
def for_iter(tracer: Tracer, frame: Frame, target: int) -> None:
    iterator = frame.stack[-1]
    if not _unrolls(tracer, frame, iterator):
        terminators.end_at_loop(tracer, frame, frame.current)
    item = iterator.next(tracer)
    if item is None:
        frame.pop()
        frame.jump(target)
        return
    if not isinstance(iterator, IteratorValue) or iterator.remaining(tracer) is None:
        _note_layer(tracer, frame, item)
    frame.push(item)


def _note_layer(tracer: Tracer, frame: Frame, item: Any) -> None:
    """An item of an iterator that does not tell how many there are: layers of a network, as long as each can
    be called, or parameters of one, with their names, or with other tensors beside each."""
    loop = frame.info.loop_at(frame.current)
    if loop is None:
        return
    known = tracer.realize(item)
    parts = known.children() if isinstance(known, TupleValue) else (known,)
    given = [tracer.realize(part) for part in parts if part.pytype is not str]
    has_parameters = all(map(_is_tensor, given)) and any(part.source is not None for part in given)
    is_layer = any("__call__" in class_dict(cls) for cls in known.pytype.__mro__)
    for headers, holds in ((frame.layers, is_layer or has_parameters), (frame.parameters, has_parameters)):
        if holds and (not frame.trips.get(loop.header) or loop.header in headers):
            headers.add(loop.header)
        else:
            headers.discard(loop.header)
    tracer.has_layers |= loop.header in frame.layers


def _is_tensor(value: Any) -> bool:
    return isinstance(value, ArrayValue) and value.ref.frontend != "numpy"


def _unrolls(tracer: Tracer, frame: Frame, iterator: Any) -> bool:
    """Whether the loop is short and its trip count known."""
    if frame.trips.get(frame.current):
        check_idle(tracer, frame, frame.current)
        return True  # decided at the first trip
    loop = frame.info.loop_at(frame.current)
    if loop is None:
        return frame.info.outermost_loop(frame.current) is None  # a body that never jumps back: no loop
    frame.idle.pop(loop.header, None)  # what was found of it before was of another iterator
    frame.unrolled.discard(loop.header)
    frame.steps.pop(loop.header, None)
    count = iterator.remaining(tracer) if isinstance(iterator, IteratorValue) else None
    if count is None and isinstance(iterator, IteratorValue) and _pins(tracer, iterator):
        iterator.pin()
        count = iterator.remaining(tracer)
    if count is None:
        note_begin(tracer, frame, loop)
        return iterator.open_ended(tracer)  # the trips are counted where the loop jumps back
    options = tracer.config.options
    if loop.suspends or unrolls_library(tracer, frame, count):
        return True  # (of a generator: whoever consumes it decides)
    if count <= LAYERS * options.unroll_limit and _over_callables(tracer, iterator):
        frame.layers.add(loop.header)
        tracer.has_layers = True
        return True
    if count <= options.unroll_limit:
        return True
    # steps of a recurrent network are worth one graph, and so are layers that are taken by their numbers:
    # decided by what the first ones do (``back_edge``)
    if count <= LAYERS * options.unroll_limit and tracer.works_on_tensors():
        frame.steps[loop.header] = Steps(count, len(tracer.builder.nodes), len(tracer.called))
        return True
    # a loop that cannot be made a function of its own is unrolled somewhat further, and so is one over names,
    # each of which would make the function another one
    names = count <= 2 * LAYERS * options.unroll_limit and _over_names(iterator)
    if not names and tries_idle(tracer, frame, loop, count):
        return True
    if not (names or frame.loop_problem(loop) is not None):
        return False
    if count * len(loop.body) > (2 * LAYERS if names else 4) * options.unroll_ops:
        return False
    frame.unrolled.add(loop.header)
    return True


def _pins(tracer: Tracer, iterator: IteratorValue) -> bool:
    """Whether a loop over a symbolic number of items is captured for the number there are. One over tensors
    is, until that was done for several numbers: steps' overhead in autograd exceeds another graph's cost."""
    if tracer.config.pins_trip_counts:
        return True
    if not tracer.works_on_tensors() or tracer.is_captured_often():
        return False
    count = iterator.expected(tracer)
    return count is not None and count <= LAYERS * tracer.config.options.unroll_limit


def _over_names(iterator: IteratorValue) -> bool:
    """Whether the items are, or hold, strings: keys of dicts, names of columns."""
    if isinstance(iterator, DictIterator):
        return iterator.kind != "values" and any(isinstance(key, str) for key in iterator.keys)
    if isinstance(iterator, SequenceIterator):
        return any(item.pytype is str for item in iterator.sequence)
    return isinstance(iterator, ZipIterator) and any(
        isinstance(source, IteratorValue) and _over_names(source) for source in iterator.sources
    )


def _over_callables(tracer: Tracer, iterator: IteratorValue) -> bool:
    """Whether all items, or one part of each, can be called: layers of a network by themselves, with their
    names or numbers. Each would make another function of the loop's body."""
    if isinstance(iterator, ZipIterator) and iterator.kind != "map":
        return any(isinstance(s, IteratorValue) and _over_callables(tracer, s) for s in iterator.sources)
    items: Any = ()
    if isinstance(iterator, DictIterator) and iterator.kind != "keys":
        items = iterator.owner.contents(tracer).values()
    elif isinstance(iterator, SequenceIterator):
        items = iterator.sequence
    return bool(items) and all(hasattr(item.pytype, "__call__") for item in items)  # noqa: B004


@handles("RETURN_VALUE")
def return_value(tracer: Tracer, frame: Frame, arg: object) -> None:
    if tracer.generators:
        generators.dropped_at_return(tracer, frame)
    frame.result = frame.pop()


@handles("BEFORE_WITH")
def before_with(tracer: Tracer, frame: Frame, arg: object) -> None:
    manager = frame.pop()
    if isinstance(manager, InstanceValue):
        manager = block_of_object(tracer, manager) or manager
    if isinstance(manager, InertContextValue):
        frame.push(manager.enter(tracer))
        frame.push(manager.given())
        return
    if not isinstance(manager, InstanceValue):
        raise Break("with-block", f"with {manager.describe()}")
    enter = manager.special(tracer, "__enter__")
    leave = manager.special(tracer, "__exit__")
    if enter is None or leave is None:
        raise Break("with-block", f"with {manager.describe()}")
    frame.push(leave)
    frame.push(tracer.call_direct(frame, enter, [], {}))


@handles("TO_BOOL")
def to_bool(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(ConstValue(frame.pop().truth(tracer)))
