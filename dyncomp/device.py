"""Where an array lives."""

from __future__ import annotations

from .dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """A device kind (``"cpu"``, ``"cuda"``) and its ordinal."""

    kind: str = "cpu"
    index: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    @staticmethod
    def parse(text: str) -> Device:
        """The inverse of ``str``: ``Device.parse("cuda:1")``."""
        kind, _, index = text.partition(":")
        return Device(kind, int(index) if index else 0)


CPU = Device("cpu", 0)
