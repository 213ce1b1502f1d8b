"""Functions that are captured in pieces run as they are where that is quicker.

Between the pieces is plain Python, and each piece costs guards and a call: where a program's own steps are
small (objects that hold numbers, loops with a short step) that can take longer than they do. What each costs
is not known beforehand, so early calls, after the first few, are made both ways in turn (``csrc/trial.c``).
The same is done with early iterations of a loop whose body has only small arrays and numbers: where these are
quicker in plain Python, the loop goes on so, and is captured anew to run as it is from the next call on.
So is a function that is captured whole and only calls the library's own routines, or calls torch's on small
arrays. What else is captured whole, has work on a GPU, or must not break is not compared.
"""

from __future__ import annotations

import types
from collections.abc import Iterable

from ...device import CPU
from ...graph.ir import Node
from ...hook import _hook
from ..entries.call_names import location
from ..entries.config import CaptureConfig
from ..environment.regions import breaks_are_errors
from ..loops.scalar_loop_gates import gated_original
from . import cost_model


class Trial:
    """The comparison of one entry's function with the function as it is."""

    def __init__(self, config: CaptureConfig, code: types.CodeType) -> None:
        self.config = config
        self.code = code

    def plain_entry(self, function: types.FunctionType) -> _hook.Entry | None:
        """An entry that runs the original, loops over single numbers compiled whole as ever."""
        graphs = [record.graph for record in self.config.records.entries if record.graph is not None]
        if any(graph.device != CPU for graph in graphs):
            return None  # a call only starts what a GPU does
        return _hook.Entry(None, gated_original(self.config, function), moves=True)

    def decided(self, compiled: int, plain: int) -> None:
        """The original was quicker: it took ``plain`` nanoseconds, what was captured ``compiled``."""
        figures = f"{plain / 1e3:.1f} µs, in captured pieces {compiled / 1e3:.1f} µs"
        reason = f"measured to be quicker as it is: {figures}"
        self.config.records.add_quicker(self.code.co_qualname, location(self.code), reason)


class BodyTrial(Trial):
    """The comparison of one entry of a loop's body with the body as it is."""

    def decided(self, compiled: int, plain: int) -> None:
        super().decided(compiled, plain)
        self.config.leave_body_plain(self.code)


def trial_of(
    config: CaptureConfig, code: types.CodeType, broken: bool, nodes: Iterable[Node]
) -> Trial | None:
    """For an entry of ``code`` with the captured ``nodes``; ``broken``: it ends in a graph break, or at a
    loop."""
    options = config.options
    if not options.measure or options.backend != "inductor" or options.fullgraph or options.capture_plain:
        return None
    if breaks_are_errors():
        return None
    if config.is_loop_body(code):
        return BodyTrial(config, code) if cost_model.is_small(nodes, config.table) else None
    only_calls = cost_model.only_calls(nodes, config.table) or cost_model.calls_on_little(nodes, config.table)
    is_tried = broken or only_calls
    return Trial(config, code) if is_tried and config.function_of(code) is code else None
