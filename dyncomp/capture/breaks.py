"""The registry of graph breaks: every reason why capture stops at an instruction, as data.

A break has an id, an explanation and a hint. ``docs/breaks.md`` is generated from this table and a test
demands a golden example for each id.
"""

from __future__ import annotations

import textwrap

from ..dataclass import dataclass
from ..errors import DyncompError
from ..graph.ir import Loc


@dataclass(frozen=True)
class BreakKind:
    """One registered reason."""

    id: str
    explanation: str
    hint: str


_KINDS = (
    BreakKind(
        "unsupported-call",
        "A call of something that capture has no meaning for: a C function, or a library function on "
        "these arguments. It is called as in plain Python between two graphs.",
        "Use an array function that dyncomp knows (docs/numpy.md), or move the call out of the hot path.",
    ),
    BreakKind(
        "unsupported-operation",
        "An operator or index expression that the array's frontend has no meaning for on these operands.",
        "See the reason given; convert the operands to plain arrays first.",
    ),
    BreakKind(
        "unsupported-attribute",
        "An attribute read or write that may run code which capture cannot follow.",
        "Store the value in a plain attribute or pass it as an argument.",
    ),
    BreakKind(
        "data-dependent-branch",
        "A branch on array contents: which way it goes is known only when the graph has run.",
        "Use np.where, or keep the branch: both sides are captured as graphs of their own.",
    ),
    BreakKind(
        "data-dependent-value",
        "A Python value is made from array contents (int(x), an index, a size).",
        "Keep the value in an array, or accept the break.",
    ),
    BreakKind(
        "data-dependent-shape",
        "How large a result is depends on array contents, and what is done with it needs to know.",
        "Keep the size at its bound and use a mask, or accept the break.",
    ),
    BreakKind(
        "loop",
        "A loop whose trip count is long or unknown. It is never unrolled: its body is compiled once and "
        "called in each iteration.",
        "Nothing to do; a loop of up to options['unroll_limit'] iterations is unrolled instead.",
    ),
    BreakKind(
        "loop-not-extracted",
        "A loop whose body cannot be made a function of its own (it yields, returns out of try or with, or "
        "changes values that lie below it on the stack). The rest of the function runs as plain Python.",
        "Move the loop into a function of its own, outside of try and with.",
    ),
    BreakKind(
        "would-raise",
        "The operation raises an exception for the values seen at capture; it is left to plain Python.",
        "Nothing to do: the exception is the program's own.",
    ),
    BreakKind(
        "raise",
        "The program raises an exception here.",
        "Nothing to do: the exception is the program's own.",
    ),
    BreakKind(
        "unsupported-opcode",
        "A bytecode instruction that capture does not execute symbolically.",
        "See the instruction named in the reason.",
    ),
    BreakKind(
        "with-block",
        "Entering or leaving a context manager runs code that capture does not follow.",
        "Nothing to do: the block's body is captured as a graph of its own.",
    ),
    BreakKind(
        "generator",
        "A generator is created or consumed here.",
        "Use a list comprehension, or an array expression.",
    ),
    BreakKind(
        "class-definition",
        "A class is made here. Its body and its metaclass run as in plain Python.",
        "Define the class outside of the function.",
    ),
    BreakKind(
        "import",
        "An import that has to load a module or that fails. Imports of what is loaded already are followed.",
        "Import at the top of the module.",
    ),
    BreakKind(
        "inline-refused",
        "A Python function is called rather than inlined (too deep, recursive, disabled, or a break inside "
        "it could not be resumed).",
        "Nothing to do: the callee is captured by itself where possible.",
    ),
    BreakKind(
        "graph-break",
        "The program asks for a graph break: dyncomp.graph_break().",
        "Nothing to do; remove the call to capture on.",
    ),
    BreakKind(
        "disabled",
        "A function is called that dyncomp.disable marks: it runs as plain Python.",
        "Nothing to do; remove the mark to have the function captured.",
    ),
    BreakKind(
        "opaque",
        "A function of another compiler (PyTorch's own, Numba, JAX) is called: it runs as that made it, and "
        "nothing below it is captured.",
        "Have one compiler do both: leave out the other's decorator.",
    ),
    BreakKind(
        "print",
        "Output is written here: to a stream that the program put in place of the interpreter's own, at once "
        "(flush=True), or by a logger. Other prints are made when the graph has run.",
        "Remove the print from the hot path, or raise the logger's level.",
    ),
    BreakKind(
        "clock",
        "The clock is read, or waited for: what the program does before and after has to be done then.",
        "Measure around the compiled function, not inside of it.",
    ),
    BreakKind(
        "destructor",
        "The last variable lets go of an object whose end the program may notice: it has a destructor, a "
        "weak reference to it calls back, or it is a generator that stands inside of try or with.",
        "Nothing to do; let go of such objects outside of the hot path.",
    ),
    BreakKind(
        "opaque-object",
        "An operation on an object of a type that capture does not model.",
        "Pass arrays, numbers, containers or plain objects.",
    ),
)

BREAKS: dict[str, BreakKind] = {kind.id: kind for kind in _KINDS}


class Break(DyncompError):
    """Raised by capture where the current instruction cannot be executed symbolically."""

    def __init__(self, break_id: str, reason: str) -> None:
        if break_id not in BREAKS:
            raise KeyError(f"unregistered break id {break_id!r}")
        super().__init__(reason)
        self.break_id = break_id
        self.reason = reason

    def forget_frames(self) -> None:
        """Before it is kept: frames of tracebacks refer to the program's frames, and so to its objects."""
        self.__traceback__ = None
        self.__context__ = None
        self.__cause__ = None


class Skip(DyncompError):
    """The frame (or what is left of it) cannot be captured at all: the original code runs. ``calls``:
    functions that it calls may be captured all the same."""

    def __init__(self, reason: str, calls: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.calls = calls


@dataclass(frozen=True)
class BreakRecord:
    """One break that happened: what, why, where; ``stack`` is the user's call stack, outermost first."""

    id: str
    reason: str
    loc: Loc | None
    stack: tuple[Loc, ...] = ()

    def describe(self) -> str:
        kind = BREAKS[self.id]
        where = str(self.loc) if self.loc else "?"
        parts = [f"[{self.id}] {where}: {self.reason}"]
        parts += [f"    called at {loc} in {loc.function}" for loc in reversed(self.stack[:-1])]
        parts += [_wrapped(kind.explanation), _wrapped(f"hint: {kind.hint}")]
        return "\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
