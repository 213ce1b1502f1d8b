"""Tables in which modules of this frontend collect their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ..base import Rule, TraceContext
from ..rule_table import LibraryRules, below
from .library import torch


def resolve(path: str) -> Any:
    """``torch.<path>``, or ``None`` where this version of torch has no such name; ``F.`` stands for
    ``nn.functional.``."""
    return below(torch, path.replace("F.", "nn.functional."))


class RuleTable(LibraryRules):
    """Rules of ``torch.<path>``, of methods and attributes of tensors, and of operators."""

    def __init__(self) -> None:
        super().__init__(resolve)

    def refusal(self, what: str) -> Callable[[], None]:
        """A function for what is followed in place of the library's Python: capture breaks the graph where
        that calls it."""

        def refuse() -> None:
            """Capture breaks the graph here."""

        def rule(tx: TraceContext) -> None:
            raise Unsupported(what)

        self.functions[refuse] = rule
        return refuse


def of_rank(rule: Rule, rank: int) -> Rule:
    """The rule of torch's function for this number of dimensions: ``rule(tx, rank, ...)``."""

    def ranked(tx: TraceContext, *args: object, **kwargs: object) -> Any:
        return rule(tx, rank, *args, **kwargs)

    return ranked
