"""What ``explain()`` and ``stats()`` say of a loop that is compiled whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...dataclass import dataclass, field
from ...graph.ir import Loc
from ...wording import counted


@dataclass(eq=False)
class NativeLoopRecord:
    """One loop of the program, behind ``gate``. ``versions``: for how many
    combinations of types it was made, in ``seconds``; ``bailed``: why it was left amid the loop, and how
    often; ``problem``: why it is plain Python, where it is; ``source``: the newest version's C++."""

    name: str
    loc: Loc
    kind: str
    versions: int = 0
    seconds: float = 0.0
    bailed: Counter[str] = field(default_factory=Counter)
    problem: str = ""
    source: str = ""
    gate: Any = None

    @property
    def runs(self) -> int:
        """How often compiled code was entered."""
        return 0 if self.gate is None else int(self.gate.runs)

    @property
    def is_native(self) -> bool:
        return self.runs > 0

    def describe(self) -> str:
        """A line, and one for each reason to leave compiled code."""
        where = f"{self.kind} loop of {self.name} at {self.loc}"
        if not self.is_native:
            return f"{where}: plain Python: {self.problem or 'it has not run for long yet'}"
        versions, times = counted(self.versions, "version"), counted(self.runs, "time")
        lines = [f"{where}: {versions}, compiled in {self.seconds * 1e3:.1f} ms, entered {times}"]
        if self.problem:
            lines.append(f"    plain Python for other types: {self.problem}")
        lines += [f"    left {counted(count, 'time')}: {reason}" for reason, count in self.bailed.items()]
        return "\n".join(lines)
