"""What an entry is made for in this process."""

from __future__ import annotations

import json
import types
from typing import Any, Protocol

from ..capture.entries.config import CaptureConfig
from ..capture.policy.fallback import Fallback
from ..dataclass import dataclass, field
from ..symbolic.integers import ShapeEnv


class Parts(Protocol):
    """Texts that are kept beside an entry, by name: backward graphs, which are compiled later."""

    def read(self, name: str) -> str | None: ...
    def write(self, name: str, text: str) -> None: ...


def read_part(details: str, name: str) -> Any:
    """A part of what explains an entry."""
    return json.loads(details)[name]


@dataclass(eq=False)
class Context:
    """The function's code, its configuration, and the texts of the entry; then what reading it made: the
    fallback, and what the graph assumes of sizes that depend on the data."""

    code: types.CodeType
    config: CaptureConfig
    parts: Parts
    details: str
    made: Fallback | None = None

    assumed: ShapeEnv = field(default_factory=ShapeEnv)

    def fallback(self, breaks_are_errors: bool, presumes: bool) -> Fallback:
        self.made = Fallback(self.config, self.code, breaks_are_errors, presumes=presumes)
        return self.made
