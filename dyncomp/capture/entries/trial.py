"""Functions that are captured in pieces run as they are where that is quicker.

Between the pieces is plain Python, and each piece costs guards and a call: where a program's own steps are
small (objects that hold numbers, loops with a short step) that can take longer than they do. What each costs
is not known beforehand, so early calls, after the first few, are made both ways in turn (``csrc/trial.c``).
What is captured whole, has work on a GPU, or must not break is not compared.
"""

from __future__ import annotations

import types
from typing import Any

from ...device import CPU
from .. import _hook
from ..native_loops.choice import gated_original
from ..regions import breaks_are_errors
from .config import CaptureConfig
from .recompile import location


class Trial:
    """The comparison of one entry's function with the function as it is."""

    def __init__(self, config: CaptureConfig, code: types.CodeType) -> None:
        self.config = config
        self.code = code

    def plain_entry(self, function: Any) -> _hook.Entry | None:
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


def trial_of(config: CaptureConfig, code: types.CodeType) -> Trial | None:
    """For an entry of ``code`` that ends in a graph break, or at a loop."""
    options = config.options
    if not options.measure or options.backend != "inductor" or options.fullgraph or options.capture_plain:
        return None
    is_piece = config.function_of(code) is not code or config.is_loop_body(code)
    return None if is_piece or breaks_are_errors() else Trial(config, code)
