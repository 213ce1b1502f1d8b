"""A table of small programs: each runs compiled and plain, and says which breaks it may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.capture.comparing import break_ids, check


def arrays() -> tuple[Any, ...]:
    return (np.arange(6.0) + 1,)


@dataclass
class Case:
    """``breaks``: whether the graph may break."""

    function: Callable[..., Any]
    makers: tuple[Callable[[], tuple[Any, ...]], ...]
    breaks: bool

    @property
    def name(self) -> str:
        return self.function.__name__


class Table:
    """Collects cases by decoration: ``@table`` or ``@table(maker, breaks=True)``."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def __call__(self, *makers: Any, breaks: bool = False) -> Any:
        if len(makers) == 1 and getattr(makers[0], "__name__", "") != "<lambda>" and not breaks:
            self.cases.append(Case(makers[0], (arrays,), False))
            return makers[0]

        def add(function: Any) -> Any:
            self.cases.append(Case(function, makers or (arrays,), breaks))
            return function

        return add

    def names(self) -> list[str]:
        return [case.name for case in self.cases]


def run(case: Case, **settings: Any) -> None:
    """Compiled equals plain; and where no break is allowed everything was captured."""
    records = check(case.function, *case.makers, **settings)
    assert records.counters["internal_errors"] == 0, records.skipped
    if not case.breaks:
        assert not break_ids(records), [b for e in records.entries for b in e.breaks]
        assert not records.skipped, records.skipped
