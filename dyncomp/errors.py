"""Exceptions that dyncomp raises or uses between its parts."""

from __future__ import annotations

from types import CodeType


class DyncompError(Exception):
    """Base class of every error that dyncomp itself raises."""


class Unsupported(DyncompError):
    """A construct cannot be captured or lowered.

    Inside capture this becomes a graph break (or, with ``fullgraph=True``, a
    :class:`GraphBreakError`). ``break_id`` names an entry of the break registry. ``whole_frame``: not even
    what was captured before can stay; the frame runs as plain Python.
    """

    def __init__(self, reason: str, *, break_id: str = "unsupported-call", whole_frame: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.break_id = break_id
        self.whole_frame = whole_frame


class GraphBreakError(DyncompError):
    """``fullgraph=True`` or ``error_on_graph_break(True)`` was asked for and the graph needs a break.

    ``break_id`` names an entry of the break registry (empty where the whole function is left plain).
    ``place``: code and number of the instruction, where that is in the function itself."""

    def __init__(self, message: str, break_id: str = "", place: tuple[CodeType, int] | None = None) -> None:
        super().__init__(message)
        self.break_id = break_id
        self.place = place


class RecompileError(DyncompError):
    """A function needs to be compiled again under the stance ``fail_on_recompile``."""


class ConstraintError(DyncompError):
    """The program fixes a size that :func:`dyncomp.mark_dynamic` says varies."""


class NotDifferentiableError(DyncompError):
    """A derivative was asked for of something that has none; says where in the program, and why."""


class ExportError(DyncompError):
    """A function cannot be exported, or a file cannot be loaded; says why."""


class GraphError(DyncompError, ValueError):
    """A graph cannot be changed as asked; names the node, the program's line and the reason."""


class NotBatchableError(DyncompError):
    """``vmap`` was asked for of something that cannot run for a whole batch; says where, and why."""


class VerifyError(DyncompError):
    """An intermediate form breaks one of its own rules: a bug in dyncomp."""


class LoweringError(DyncompError):
    """A captured graph could not be turned into code; the caller falls back to the original."""


class LoweringFault(LoweringError):
    """The code generator made something that it cannot write: a bug in dyncomp."""


class ToolchainError(DyncompError):
    """No usable compiler, or the compiler refused generated code."""


class RejectedCode(ToolchainError):
    """The compiler found an error in generated code: a bug in dyncomp."""


class SetupError(ToolchainError):
    """Nothing can be compiled on this computer as it is set up; the user was told (``notices``)."""
