"""``dyncomp.minify``: from a program that goes wrong to a script of a few lines, and the layer at fault."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..dataclass import dataclass
from ..errors import DyncompError
from ..hook import _hook
from ..verification import isolated
from ..wording import counted
from .case import Case
from .derivatives import gradient_fault, shrink_gradient, single_operations
from .layers import Fault, examine, refine
from .literals import CannotWrite
from .program import Arguments, Check, Program, interpreted
from .replay import read_script
from .script import graph_script, source_script
from .shrink import Budget, shrink
from .source import Source, program_of, shrink_source, source_of

_SECONDS = 60.0  # what one run of a graph may take
CAPTURE, GUARDS, DERIVATIVES = "capture", "guards", "derivatives"


@dataclass
class Minified:
    """What :func:`minify` found. ``fault``: the layer and what it does; ``path``: the script, ``None`` where
    none can be written (``note`` says why); ``operations``: how many there were and are; ``tries`` and
    ``seconds`` of the search; ``stopped``: whether it was interrupted or ran out of time."""

    fault: Fault
    path: Path | None
    operations: tuple[int, int]
    tries: int
    seconds: float
    stopped: bool = False
    note: str = ""

    def __str__(self) -> str:
        before, after = counted(self.operations[0], "operation"), self.operations[1]
        lines = [
            f"At fault: {self.fault.describe()}",
            f"{before} shrunk to {after} by {self.tries:,} tries in {self.seconds:.0f} s"
            + (" (not to the end)" if self.stopped else ""),
        ]
        lines.append(
            f"To see it again: python {self.path}" if self.path else f"No script was written: {self.note}"
        )
        return "\n".join(lines)

    __repr__ = __str__

    def facts(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "layer": self.fault.layer,
            "kind": self.fault.kind,
            "detail": self.fault.detail,
            "text": self.fault.text,
            "path": None if self.path is None else str(self.path),
            "operations": list(self.operations),
            "tries": self.tries,
            "seconds": round(self.seconds, 2),
            "stopped": self.stopped,
            "note": self.note,
        }


def minify(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]] | None = None,
    check: Check | str | None = None,
    folder: str | os.PathLike[str] = ".",
    seconds: float = 120.0,
    progress: str = "auto",
    **settings: Any,
) -> Minified | None:
    """Shrink a program that compiled code gets wrong to a small script, and find the layer at fault.

    ``function`` is called with ``args`` and ``kwargs``, or several times with those of ``calls``, in plain
    Python and compiled with ``settings`` (as for :func:`dyncomp.compile`). All of it happens in copies of
    this process, so crashes and endless loops do no harm, and nothing here changes.

    What goes wrong: results, mutated arguments or exceptions that are not plain Python's; crashes; calls
    without an end; code that the C++ compiler rejects. ``check``: a function of a call's result that says
    whether it is good, instead; or ``"gradient"``: the derivative of a function of arrays is compared with
    differences of its values. ``folder``: where the script goes; ``seconds``: for the search, which an
    interrupt ends early, too; ``progress``: ``"on"``, ``"off"``, or ``"auto"``: where standard error is a
    terminal.

    ``None`` where nothing goes wrong. Raises ``ValueError`` for a check of another name, and
    :class:`~dyncomp.verification.isolated.CannotFork` where the process cannot be copied.
    """
    if isinstance(check, str) and check != "gradient":
        raise ValueError(f"check must be a function or 'gradient', is {check!r}")
    isolated.check_fork()
    if isinstance(function, _hook.Dispatcher):
        function = function._function
    given = (
        ((tuple(args), dict(kwargs or {})),)
        if calls is None
        else tuple((tuple(a), dict(k)) for a, k in calls)
    )
    budget = Budget(seconds, tell=_teller(progress))
    program = Program(function, given, settings, check if callable(check) else None)
    try:
        if check == "gradient":
            found = _of_gradient(program, budget)
        else:
            found = _of_program(program, budget)
    finally:
        if budget.tell is not None:
            print(file=sys.stderr)
    if found is None:
        return None
    return written(found, budget, Path(folder))


def shrunk_further(path: Path, folder: Path, seconds: float) -> Minified | None:
    """Go on from a script that :func:`minify` wrote; ``None`` where nothing goes wrong in it any more."""
    isolated.check_fork()
    subject = read_script(path)
    budget = Budget(seconds, tell=_teller("auto"))
    if isinstance(subject, Program):
        found = _of_program(subject, budget)
    else:
        found = minify_case(subject, budget) or _gradient_found(subject, budget)
    return None if found is None else written(found, budget, folder)


@dataclass
class Found:
    """A shrunk graph (``case``; ``gradient``: its derivative is wrong) or function (``source``)."""

    fault: Fault
    before: int
    case: Case | None = None
    source: Source | None = None
    settings: Mapping[str, Any] | None = None
    note: str = ""
    gradient: bool = False

    @property
    def after(self) -> int:
        if self.case is not None:
            return len(self.case.graph.nodes)
        return self.source.operations if self.source is not None else self.before


def minify_case(case: Case, budget: Budget, fault: Fault | None = None) -> Found | None:
    """Shrink a graph. ``fault``: what :func:`~.layers.examine` said of it, if that was asked."""
    fault = examine(case, _SECONDS) if fault is None else fault
    if fault is None:
        return None
    wanted = fault

    def fails(candidate: Case) -> bool:
        return wanted.is_like(examine(candidate, _SECONDS, only=wanted.layer))

    best = shrink(case, fails, budget)
    final = examine(best, _SECONDS)
    return Found(refine(best, final or fault, _SECONDS), len(case.graph.nodes), case=best)


def _of_program(program: Program, budget: Budget) -> Found | None:
    wanted = program.plainly()
    if wanted.kind != isolated.RETURNED:
        raise DyncompError(
            f"plain Python does not come through: {wanted.text.strip().rpartition(chr(10))[2]}"
        )
    early = program.problem(wanted, CAPTURE, backend=interpreted)
    if early is None:
        for case in program.graphs():
            found = minify_case(case, budget)
            if found is not None:
                return found
    whole = early or program.problem(wanted)
    if whole is None:
        return None
    if "gradient" in whole.text:
        for case in program.graphs():
            found = _gradient_found(case, budget)
            if found is not None:
                return found
    fault = early or replace(whole, layer="launch")
    if len(program.calls) > 1 and _each_alone_is_right(program):
        fault = replace(fault, layer=GUARDS)
    return _of_source(program, fault, budget)


def _each_alone_is_right(program: Program) -> bool:
    """Whether every call goes well in a process of its own."""
    return all(replace(program, calls=(call,)).problem(backend=interpreted) is None for call in program.calls)


def _of_source(program: Program, fault: Fault, budget: Budget) -> Found:
    backend: dict[str, Any] = {} if fault.layer == "launch" else {"backend": interpreted}
    try:
        source = source_of(program.function, program.calls)
        program_of(source, program)
    except Exception as error:  # there is none, or it does not run
        return Found(fault, sum(len(case.graph.nodes) for case in program.graphs()), note=str(error))
    quick = replace(program, seconds=min(program.seconds, 30.0))

    def fails(candidate: Source) -> bool:
        try:
            made = program_of(candidate, quick)
        except Exception:
            return False
        wanted = made.plainly()
        if wanted.kind != isolated.RETURNED or _is_broken(wanted.value):
            return False
        problem = made.problem(wanted, fault.layer, **backend)
        if problem is None or problem.kind != fault.kind:
            return False
        return fault.layer != GUARDS or len(candidate.calls) > 1

    if not fails(source):
        return Found(fault, source.operations, note="the function behaves otherwise in a file of its own")
    best = shrink_source(source, fails, budget)
    final = program_of(best, quick).problem(layer=fault.layer, **backend) or fault
    return Found(final, source.operations, source=best, settings=program.settings)


def _is_broken(observations: Sequence[Any]) -> bool:
    """Whether plain Python raised what a program without a part of it raises."""
    for seen in observations:
        kind = getattr(getattr(seen, "items", {}).get("error[0]"), "value", "")
        if kind in ("NameError", "UnboundLocalError", "AttributeError", "TypeError", "SyntaxError"):
            return True
    return False


def _of_gradient(program: Program, budget: Budget) -> Found | None:
    for case in program.graphs():
        found = _gradient_found(case, budget)
        if found is not None:
            return found
    return None


def _gradient_found(case: Case, budget: Budget) -> Found | None:
    """The operations whose derivative is wrong: of one alone, or of several together."""
    text, best = gradient_fault(case), case
    if text:
        best = shrink_gradient(case, budget)
    else:  # of a long program differences may say nothing
        alone = next(
            ((part, said) for part in single_operations(case) if (said := gradient_fault(part))), None
        )
        if alone is None:
            return None
        best, text = alone
    ops = ", ".join(dict.fromkeys(node.op for node in best.graph.nodes))
    fault = Fault(DERIVATIVES, "wrong", gradient_fault(best) or text, f"of {ops}")
    return Found(fault, len(case.graph.nodes), case=best, gradient=True)


# -- what users see --------------------------------------------------------------------------------
def written(found: Found, budget: Budget, folder: Path) -> Minified:
    """Write the script of what was found into ``folder``."""
    seconds = time.monotonic() - budget.start
    note = f"Shrunk from {counted(found.before, 'operation')} to {found.after}."
    path: Path | None = None
    why = found.note
    try:
        if found.case is not None:
            name = _name(found.fault, found.case.graph.name, found.case)
            text = graph_script(found.case, found.fault, note, folder / name, found.gradient)
        elif found.source is not None:
            name = _name(found.fault, found.source.name, found.source)
            text = source_script(found.source, found.settings or {}, found.fault, note, folder / name)
        else:
            raise CannotWrite(why or "the failing part cannot be written down")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(text)
    except CannotWrite as error:
        why = str(error)
    stopped = budget.left <= 0
    return Minified(
        found.fault, path, (found.before, found.after), budget.tries, seconds, stopped, "" if path else why
    )


def _name(fault: Fault, function: str, what: object) -> str:
    digest = hashlib.sha256(repr(what).encode()).hexdigest()[:6]
    parts = ["repro", fault.layer.replace(" ", "_"), "".join(c for c in function if c.isalnum() or c == "_")]
    return "_".join(filter(None, parts))[:60] + f"_{digest}.py"


def _teller(progress: str) -> Callable[[str], None] | None:
    if progress not in ("auto", "on", "off"):
        raise ValueError(f"progress must be 'auto', 'on' or 'off', is {progress!r}")
    if progress == "off" or (progress == "auto" and not sys.stderr.isatty()):
        return None
    last = [0.0]

    def tell(text: str) -> None:
        now = time.monotonic()
        if now - last[0] > 0.2:
            last[0] = now
            print(f"\rminify: {text:<60}", end="", file=sys.stderr, flush=True)

    return tell


__all__ = ["Arguments", "Minified", "minify", "minify_case"]
