"""The guards of an entry as a tree, by the object that they are of, and what checking them costs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from ...capture.entries.records import EntryRecord
from ...capture.guards.guard import Guard, describe_failure
from ...capture.guards.program import GuardRefused, lower_all
from ...capture.guards.source import InstanceDictSource, LocalSource, Source, TypeAttrSource
from ...dataclass import dataclass, field
from ...hook import _hook
from ..call import Environment, ExplainedCall, GoneError

# Where guards of no object are shown.
NOWHERE = "modules, sizes and settings"
_ROUNDS, _CHECKS = 7, 200
# Guards of one object and of a page that are shown, and characters of one.
_MOST_OF_ONE, _MOST_ALTOGETHER, _LONGEST = 200, 8_000, 300


@dataclass
class GuardBranch:
    """The guards of one object (``label``: its part of the path; ``left_out``: how many are not shown), and
    what is below it. ``steps``: of the
    guard program, all below included; ``ns``: their part of the whole check's time."""

    label: str
    guards: list[str] = field(default_factory=list)
    left_out: int = 0
    below: dict[str, GuardBranch] = field(default_factory=dict)
    count: int = 0
    steps: int = 0
    ns: float | None = None


@dataclass
class GuardCheck:
    """The guards of one entry. ``ns``: one check of all; ``how``: how that is known, or why it is not."""

    entry: EntryRecord
    branches: list[GuardBranch]
    count: int
    steps: int
    ns: float | None
    how: str


def guard_checks(entries: Sequence[EntryRecord], call: ExplainedCall | None) -> list[GuardCheck]:
    """The guards of each entry that has some; the time of those of the function called is measured now."""
    found: list[GuardCheck] = []
    measured: list[tuple[float, int]] = []
    left = [_MOST_ALTOGETHER]
    for entry in entries:
        if not entry.guards:
            continue
        steps = _steps(entry.guards)
        branches = _tree(entry.guards, steps, left)
        total = sum(branch.steps for branch in branches)
        ns, how = _measure(entry, call)
        if ns is not None and total:
            measured.append((ns, total))
        found.append(GuardCheck(entry, branches, len(entry.guards), total, ns, how))
    if measured:
        rate = sum(ns for ns, _ in measured) / sum(steps for _, steps in measured)
        for check in found:
            if check.ns is None:
                check.ns = rate * check.steps
                check.how = f"estimated: {rate:.1f} ns per step of the guard program, as measured above"
    for check in found:
        if check.ns is not None and check.steps:
            for branch in check.branches:
                _apportion(branch, check.ns / check.steps)
    return found


def _apportion(branch: GuardBranch, rate: float) -> None:
    branch.ns = rate * branch.steps
    for below in branch.below.values():
        _apportion(below, rate)


def _steps(guards: Sequence[Guard]) -> dict[int, int]:
    """How many instructions of the guard program each guard takes, by its identity."""
    try:
        low, kept, _ = lower_all(guards, ())
    except GuardRefused:
        return {id(guard): 1 for guard in guards}
    counted = Counter(instruction[-1] for instruction in low.instructions)
    return {id(guard): counted[number] for number, guard in enumerate(kept)}


def _measure(entry: EntryRecord, call: ExplainedCall | None) -> tuple[float | None, str]:
    """Nanoseconds of a check of all guards of ``entry`` with the call's own arguments."""
    if call is None:
        return None, "not measured: the call's arguments are not known"
    try:
        env = call.environment(entry)
    except GoneError as gone:
        return None, f"not measured: {gone}"
    if env is None:
        return None, "not measured: of a call inside"
    program = call.programs[id(entry)]
    failure = describe_failure(program, env.args, env.globals, env.builtins, env.closure)
    if failure is not None:
        return None, f"not measured: when this page was written they did not hold: {failure}"
    nothing = _hook.GuardProgram([], 0, (), ())
    whole, empty = _time(program, env), _time(nothing, env)
    return max(whole - empty, 0.0), "measured now, on the call's own arguments"


def _time(program: _hook.GuardProgram, env: Environment) -> float:
    """Nanoseconds of a check called from Python."""
    check, best = program.check, float("inf")
    args, names, builtins, closure = env.args, env.globals, env.builtins, env.closure
    for _ in range(_ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(_CHECKS):
            check(args, names, builtins, closure)
        best = min(best, (time.perf_counter_ns() - start) / _CHECKS)
    return best


def _tree(guards: Sequence[Guard], steps: dict[int, int], left: list[int]) -> list[GuardBranch]:
    """``left``: how many guards may still be shown."""
    top = GuardBranch("")
    for guard in guards:
        cost = steps.get(id(guard), 0)
        branch = top
        for label in _path(guard.source):
            branch = branch.below.setdefault(label, GuardBranch(label))
            branch.count += 1
            branch.steps += cost
        if len(branch.guards) < _MOST_OF_ONE and left[0] > 0:
            left[0] -= 1
            branch.guards.append(f"{guard!s:.{_LONGEST}}")
        else:
            branch.left_out += 1
    return sorted(top.below.values(), key=lambda branch: (branch.label == NOWHERE, -branch.count))


def _label(step: Source, text: str, before: str) -> str:
    """What is read from the object before: ``.attr``, ``[0]``."""
    if isinstance(step, InstanceDictSource):
        return f".{step.attr}"
    if isinstance(step, TypeAttrSource):
        return f".{step.attr} of its class"
    return text.removeprefix(before) if before and text.startswith(before) else text


def _path(source: Source | None) -> list[str]:
    """The labels from the root variable to the object itself."""
    if source is None:
        return [NOWHERE]
    chain: list[Source] = []
    at: Source | None = source
    while at is not None:
        chain.append(at)
        at = at.parent
    labels = []
    before = ""
    for step in reversed(chain):
        text = step.expr()
        labels.append(_label(step, text, before))
        before = text
    root = chain[-1]
    if not isinstance(root, LocalSource) or root.local.startswith("."):
        labels.insert(0, "globals and closures")
    return labels
