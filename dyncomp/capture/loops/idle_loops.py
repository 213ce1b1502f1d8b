"""Loops of inlined functions that do no array work: lists of layers' kinds, caches of each layer, names.

Such a loop is unrolled further than others (``LAYERS`` times ``unroll_limit``): its iterations add nothing to
what runs, while a break at it would keep the function, and what its callers capture around it, from being
inlined. That a loop is idle is found out by unrolling it: a known number of iterations is begun with, and
where one adds a node to the graph, or leaves a number computed at run time, the attempt begins anew without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.number import ComputedValue

if TYPE_CHECKING:
    from ...python_code.loops import Loop
    from ..frames import Frame
    from ..values.base import Tracer

# How many times longer a loop over things that are called, or an idle one, may be than others.
LAYERS = 8
MOST_LAYERS = 2 * LAYERS * LAYERS  # times options.unroll_ops: nodes, an optimizer's of each parameter too


def unrolls_library(tracer: Tracer, frame: Frame, trips: int) -> bool:
    """Whether a loop is an array library's own, over arrays of the program: parameters of a network."""
    most = tracer.config.options.unroll_ops
    if trips > LAYERS * most or len(tracer.builder.nodes) > MOST_LAYERS * most:
        return False
    module = str(frame.globals[0].get("__name__", ""))
    return any(frontend.unrolls(module) for frontend in tracer.config.frontends)


def tries_idle(tracer: Tracer, frame: Frame, loop: Loop, count: int) -> bool:
    """Whether a ``for`` loop of ``count`` iterations, more than usual, is unrolled, maybe in vain."""
    options = tracer.config.options
    if len(tracer.frames) == 1 or (frame.raw_code, loop.header) in tracer.decisions.busy_loops:
        return False
    if count > 2 * LAYERS * options.unroll_limit or count * len(loop.body) > 2 * LAYERS * options.unroll_ops:
        return False
    if _computes(frame):
        return False
    note_begin(tracer, frame, loop)
    frame.unrolled.add(loop.header)
    return True


def note_begin(tracer: Tracer, frame: Frame, loop: Loop) -> None:
    """A loop that may be idle begins."""
    frame.idle[loop.header] = len(tracer.builder.nodes)


def check_idle(tracer: Tracer, frame: Frame, header: int) -> None:
    """After an iteration: begin anew without unrolling the loop if it does work after all."""
    if header in frame.unrolled and header in frame.idle and not _is_idle(tracer, frame, header):
        tracer.decisions.busy_loops.add((frame.raw_code, header))
        raise tracer.restart


def goes_on_idle(tracer: Tracer, frame: Frame, header: int, trips: int) -> bool:
    """Whether a loop, whose number of iterations may not be known, goes on beyond the usual limit: further in
    a generator, which can't be left there (``any(m.checkpointing for m in model.modules())``)."""
    options, loop = tracer.config.options, frame.info.loop_at(header)
    limit = LAYERS * (options.unroll_ops if loop is not None and loop.suspends else options.unroll_limit)
    return len(tracer.frames) > 1 and trips <= limit and _is_idle(tracer, frame, header)


def _is_idle(tracer: Tracer, frame: Frame, header: int) -> bool:
    return len(tracer.builder.nodes) == frame.idle.get(header) and not _computes(frame)


def _computes(frame: Frame) -> bool:
    """Whether a variable is a number or text made at run time: its expression would grow by iterations."""
    return any(isinstance(v, ComputedValue) and v.source is None for v in frame.locals.values())
