"""When a loop's compiled form is entered, and how its outcome is told to the gate before the loop.

Compiling takes as long as plain Python needs for some hundred thousand instructions: a loop is compiled when
it has run, or is about to run, for longer. Steps are counted by the gates, not timed, so that programs do the
same each time they run; only what calls functions is timed, since nobody knows what these do. Inner loops
count for those around them, which are compiled with them; they are compiled by themselves where those cannot
be, or for a single long run.
"""

from __future__ import annotations

import math
import operator
import sys
import time
import types
import weakref
from typing import Any

from ... import faults
from ...errors import ToolchainError
from ...hook import _hook
from ...hook._hook import LoopGate
from ...hook.errstate import raises_floating_point_errors
from ...python_code.gates import LoopFacts
from ...python_code.instr import CanonicalCode
from ...signals import is_from_handler
from .entry_plan import make_plan
from .record import NativeLoopRecord

# microseconds: an instruction in plain Python, and entering compiled code
_INSTRUCTION = 0.03
_ENTER, _ENTER_BY_PLAN = 5.0, 0.5
_ENTER_WITHOUT_PLAN = 30.0
_FEW_STEPS, _FEW_ENTRIES = 256, 4  # in plain Python, until it is asked again whether to enter without a plan
_MOST_PLANS = 8
_LONGEST_STEP = 1000.0
_MOST_REFUSALS = 2  # at first, before it is taken to be so for good
_ALONE = 8  # how many times longer than others an inner loop must run to be compiled without those around it
_LOOKS = 4  # at inner loops, until those around them are to be compiled
_FEWEST, _MANY, _MOST, _FEW_CALLS = 16, 1 << 12, 1 << 20, 64  # ticks given at a time
_FOREVER = 1 << 62
_MANY_SETBACKS = 4
_OFTEN = 32  # how many times it is left early before these are counted against all runs
_EXAMPLES: tuple[Any, ...] = (range(0), range(1 << 70), [], ())
_COUNTED = tuple(type(iter(items)) for items in _EXAMPLES)


class LoopEntry(LoopGate):
    """The ``entry`` of a gate: ``entry[iterator, *values]`` or ``entry[values]`` says where to go on.

    (A subscript, not a call: behind a call CPython may run signal handlers, and where these raise an
    exception the outcome would be lost.) C enters what was compiled where it has a plan for it (``plans``),
    and asks otherwise (``ask``); ``setbacks`` counts how often in a row it was left early. ``outer`` is the
    entry of the loop around; ``entries`` are this one and those of the loops within, by header.
    """

    def __new__(cls, *args: object) -> Any:
        return super().__new__(cls)

    def __init__(
        self,
        config: Any,
        code: CanonicalCode,
        facts: LoopFacts,
        namespace: dict[str, Any],
        record: NativeLoopRecord,
        outer: LoopEntry | None,
    ) -> None:
        # gates are constants of code, which the collector does not look into
        self._config = weakref.ref(config)
        self.options = config.options
        self.make_native = config.make_native
        self.owners: list[types.CodeType] = []  # code whose captures end at this loop
        self.code = code
        self.facts = facts
        self.namespace = namespace
        self.record = record
        self.outer = outer
        self.entries: dict[int, LoopEntry] = {facts.loop.header: self}
        around = outer
        while around is not None:
            around.entries[facts.loop.header] = self
            around = around.outer
        record.gate = self
        self.ways = {place: way for way, place in enumerate(facts.places)}
        self._given = 0
        self._spent = 0.0  # microseconds in plain Python, loops within included
        self._steps = 0  # in plain Python
        self._worked = 0.0  # microseconds in plain Python by the number of instructions
        self._step = _INSTRUCTION * len(facts.loop.body)
        self._calls = any(code.instructions[index].op == "CALL" for index in facts.loop.body)
        self._since = 0.0
        self._native: Any = None
        self._is_refused = False
        self._is_wanted = False
        self._is_ready = False  # it was compiled for some types
        self._bails = 0
        self._early = 0
        self._refusals = 0
        self._changed = [facts.names.index(name) for name in facts.changed]

    def ask(self, values: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """``(None, None, ())``, or way, exception to raise there, and payload (see ``gates``)."""
        self._count()
        if self._is_refused:
            return self._plain(_FOREVER)
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return self._plain(_MOST)  # tools see plain Python
        if raises_floating_point_errors():
            return self._plain(_MANY)  # compiled code raises none
        ticks = self._ticks_until_worth(values)
        if ticks:
            return self._plain(ticks)
        self._is_wanted = False
        state = self._prepared(values)
        if state is None:
            return self._declined()
        raised: BaseException
        try:
            self._native.execute(state)
            return self._outcome(self._native.results(state), None)
        except BaseException as error:  # a signal handler's: there is no other point here where one may run
            raised = error
        found = self._native.results(state)
        if found is None:
            raise raised
        return self._outcome(found, _without_own_frames(raised))

    def finish(self, plan: Any, words: bytes, values: tuple[Any, ...], raised: Any) -> tuple[Any, Any, Any]:
        """The same from what was run by a plan and did not end as usual. ``raised``: by signal handlers."""
        run = self._native.made(plan.program, words, values)
        try:
            return self._outcome(self._native.results(run), raised and _without_own_frames(raised))
        except BaseException as error:  # a signal handler's
            raised = error
        return self._outcome(self._native.results(run), _without_own_frames(raised))

    # -- when ----------------------------------------------------------------------------------------
    def _plain(self, ticks: int) -> tuple[None, None, tuple[()]]:
        self._given = self.ticks.left = ticks
        if self._calls:
            self._since = time.perf_counter()
        return None, None, ()

    def _count(self) -> None:
        """Add the steps made since the last time."""
        self._steps += self._given - self.ticks.left
        spent = worked = (self._given - self.ticks.left) * self._step
        if self._calls and self._since:
            steps = self._given - self.ticks.left  # in between there may have been much else
            spent = max(spent, min((time.perf_counter() - self._since) * 1e6, steps * _LONGEST_STEP))
            self._since = 0.0
        self._given = self.ticks.left = 0
        entry: LoopEntry | None = self
        while entry is not None:
            entry._spent += spent
            entry._worked += worked
            if entry is not self and entry._is_due() and entry._is_hopeful:
                entry._given -= entry.ticks.left
                entry.ticks.left = 0
            entry = entry.outer

    @property
    def _threshold(self) -> float:
        limit: float = self.options.native_loop_us
        return limit

    @property
    def _is_hopeful(self) -> bool:
        return not self._is_refused and self.setbacks < _MANY_SETBACKS

    def _is_due(self) -> bool:
        return self._is_ready or self._spent >= self._threshold

    def _ticks_until_worth(self, values: tuple[Any, ...]) -> int:
        """How many steps are to be made in plain Python before the loop is looked at again; 0: enter it."""
        if self._is_wanted or not self._threshold:
            return 0
        steps = _steps_left(values[0]) if self.facts.loop.kind == "for" else None
        expected = 0.0 if steps is None else steps * self._step
        if self._is_ready and not self.plans and steps is not None:
            mean = self._mean_step()
            few = min(_FEW_STEPS, int(_FEW_ENTRIES * _ENTER_WITHOUT_PLAN / mean))
            return 0 if steps * mean >= _ENTER_WITHOUT_PLAN else max(steps + 1, few)
        if self._is_ready:
            return 0 if steps is None or expected >= _ENTER or len(self.entries) > 1 else steps + 1
        if self._is_within_another():
            wanted = _ALONE * self._threshold - expected
            most = self._threshold / _LOOKS  # those around are to know in time what is spent here
        else:
            wanted = most = self._threshold - self._spent - expected
        if wanted <= 0:
            return 0
        wanted = min(wanted, most)
        return min(max(int(wanted / self._step), _FEWEST), _FEW_CALLS if self._calls else _MOST)

    def _mean_step(self) -> float:
        """Microseconds of a step in plain Python, with the loops within."""
        return max(self._step, self._worked / self._steps if self._steps else 0.0)

    def _is_within_another(self) -> bool:
        """Whether a loop around may still be compiled with this one in it."""
        outer = self.outer
        while outer is not None:
            if outer._is_hopeful:
                return True
            outer = outer.outer
        return False

    # -- running -------------------------------------------------------------------------------------
    def _prepared(self, values: tuple[Any, ...]) -> Any:
        """What compiled code is given; ``None`` where it does not take these values."""
        try:
            if self._native is None:
                self._native = self.make_native(
                    self.code, self.facts.loop, self.facts.names, self.namespace, self.record
                )
            state = self._native.prepare(*values)
            if state is not None:
                self._is_ready = True
                self.runs += 1
                self._plan(state)
        except ToolchainError as error:
            if faults.is_fault(error):
                self._note(error)
            self.record.problem = str(error)
            self._is_refused = True
            return None
        except Exception as error:  # a bug in dyncomp must never change what the program does
            if is_from_handler(error):
                raise
            self._note(error)
            self.record.problem = "an internal error"
            self._is_refused = True
            return None
        return state

    def _note(self, error: Exception) -> None:
        config = self._config()
        if config is not None:
            config.note_fault(f"the loop of {self.code.qualname} runs as plain Python", error)

    def _plan(self, run: object) -> None:
        """From now on C enters what is compiled for these types."""
        program = getattr(run, "program", None)
        if program is None or any(plan.program is program for plan in self.plans):
            return
        plan = make_plan(self._native, program, self.ways, self.facts.changed)
        if plan is not None:
            self.plans = (plan, *self.plans[: _MOST_PLANS - 1])
            many = len(self.entries) > 1 or not self._threshold
            few = 0 if many else math.ceil(_ENTER_BY_PLAN / self._step)
            self.fewest, self.lead = (few, 0) if self.facts.loop.kind == "for" else (0, few)

    def _declined(self) -> tuple[None, None, tuple[()]]:
        native = self._native
        if native is not None and not self._is_refused:
            self.record.problem = native.problem
            self._refusals += 1
            in_vain = not self._is_ready and self._refusals >= _MOST_REFUSALS
            self._is_refused = native.is_hopeless or in_vain
            if self._is_refused:
                self._capture_otherwise()
        if self._is_refused:
            return self._plain(_FOREVER)
        return self._set_back()

    def _capture_otherwise(self) -> None:
        """What the loop calls may be worth capturing: from the next call on it is captured as others are."""
        instructions, config = self.code.instructions, self._config()
        if config is not None and any(instructions[index].op == "CALL" for index in self.facts.loop.body):
            config.not_native.add((id(self.code), self.facts.loop.header))
            for owner in self.owners:
                _hook.clear(owner, config)

    def _set_back(self) -> tuple[None, None, tuple[()]]:
        self.setbacks += 1
        return self._plain(1 << min(self.setbacks + 4, 30))

    def _outcome(self, found: tuple[Any, ...], raised: object) -> tuple[Any, Any, Any]:
        place, way = found[0], self.ways[found[0]]
        if self._native.is_stale:
            self._native.is_stale = False
            self.plans, self.setbacks = (), 0
        split = 1 + self.facts.depths[way]
        assert len(found) == split + len(self.facts.names), (place, len(found))
        local = found[split:]
        payload = (*[local[index] for index in self._changed], *found[split - 1 : 0 : -1])
        bails = sum(self.record.bailed.values())
        paused = place in self.entries and bails == self._bails
        self._bails = bails
        if paused:
            entry = self.entries[place]
            entry._is_wanted = True
            entry.ticks.left = entry._given = 0
        elif place in self.facts.loop.body:
            self._left_early()
        else:
            self.setbacks = 0
        return way, raised, payload

    def _left_early(self) -> None:
        """Something rare happened: compiled code is entered again with the next step, or some later one."""
        self.setbacks += 1
        self._early += 1
        if self._early > _OFTEN and 2 * self._early > self.runs:
            self.setbacks = max(self.setbacks, 2 * _MANY_SETBACKS + (self._early - _OFTEN) // _OFTEN)
        few = self.setbacks < _MANY_SETBACKS
        self.ticks.left = self._given = 0 if few else 1 << min(self.setbacks - 2, 20)


def _without_own_frames(error: BaseException) -> BaseException:
    found = error.__traceback__
    while found is not None and str(found.tb_frame.f_globals.get("__name__")).startswith("dyncomp."):
        found = found.tb_next
    return error.with_traceback(found)


def _steps_left(iterator: object) -> int | None:
    """How often a loop over ``iterator`` will still run, where that is known."""
    return operator.length_hint(iterator) if type(iterator) in _COUNTED else None
