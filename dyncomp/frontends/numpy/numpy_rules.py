"""Tables in which modules of this frontend collect their rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rule_table import LibraryRules, below


def resolve(path: str) -> Any:
    """``numpy.<path>``, or ``None`` where this version of NumPy has no such name."""
    return below(np, path)


class RuleTable(LibraryRules):
    """Rules of ``np.<path>``, of methods and attributes of arrays, and of operators."""

    def __init__(self) -> None:
        super().__init__(resolve)
