"""``compile(..., verify=...)``: early calls of each compiled form run beside the original.

The original runs in this process, so the caller gets its results, whatever compiled code does. A forked child
runs the compiled form on the same objects, as they were before the call; what each of the two did is written
down (:mod:`.observe`) and compared. A form that was right as often as was asked is trusted: it takes the
place of the one that compares, and nothing of this is left in the way of a call. A form that was wrong, or
that crashed or did not come to an end, is dropped, and the original runs from then on.
"""

from __future__ import annotations

import inspect
import time
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from ..capture.entries.call_names import location
from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..capture.replacement.assembly import without_body
from ..capture.replacement.replace_source import plain_copy
from ..graph.ir import Loc
from ..hook import _hook
from ..notices import warn_once
from ..options import ALWAYS
from ..python_code.continuation import made_later
from ..python_code.edit import Assembly, Label
from ..python_code.instr import CO_VARARGS, CO_VARKEYWORDS
from ..python_code.transfers import line_loc, transfer_loc
from ..python_code.versions import encode
from . import isolated
from .calls import Call, call_and_observe, roots_of, text_of_ending
from .conditioning import RUNS, excuse, perturb
from .observe import Observation, checksums, differences, readable

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_MOST_TOLD = 5
_SCRIPT_SECONDS = 300.0
_LEAST_SECONDS, _LONGER = 120.0, 50.0  # how long a child may take: at least, and times the original

OnMiss = Callable[[types.FunctionType, tuple[Any, ...], CaptureConfig], "_hook.Entry | None"]


# Writes a script of a call that compiled code gets wrong, and says what to tell of it.
Reproduce = Callable[[types.FunctionType, tuple[Any, ...], dict[str, Any]], str]


def verifying(on_miss: OnMiss, times: int, reproduce: Reproduce | None = None) -> OnMiss:
    """``on_miss`` whose entries are compared with the original in their first ``times`` calls (``ALWAYS``: in
    each). ``reproduce``: is given the calls that go wrong, in a process of their own."""

    def miss(
        function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig
    ) -> _hook.Entry | None:
        entry = on_miss(function, args, config)
        if entry is None or entry.code is None or entry.rank < 0 or isolated.is_child():
            return entry
        if function.__code__.co_flags & _GENERATORS:
            return entry
        return Verified(function.__code__, entry, config, times, reproduce).entry()

    return miss


class Verified:
    """The comparison of one entry with the original."""

    def __init__(
        self,
        code: types.CodeType,
        entry: _hook.Entry,
        config: CaptureConfig,
        times: int,
        reproduce: Reproduce | None = None,
    ) -> None:
        self.code = code
        self.compiled = entry
        self.config = config
        self.reproduce = reproduce
        self.left = times
        making = made_later(config, code)
        self.plain = plain_copy(code) if making is None else making()
        _hook.mark(self.plain, "skip")
        self.comparing: _hook.Entry | None = None

    def entry(self) -> _hook.Entry:
        """The entry that compares."""
        code = calling_code(self.code, self)
        compiled = self.compiled
        self.comparing = _hook.Entry(
            compiled.guards, code, payload=compiled.payload, rank=compiled.rank, arg_order=compiled.arg_order
        )
        return self.comparing

    def __call__(
        self, values: tuple[Any, ...], cells: tuple[Any, ...], namespace: dict[str, Any]
    ) -> tuple[BaseException | None, Any]:
        """A call: its arguments in the order of ``co_varnames``, the function's closure and globals. What it
        is to raise, and what to return."""
        call = Call.of(self.code, values, cells, namespace)
        plain = types.FunctionType(self.plain, namespace, self.code.co_name, None, cells or None)
        active = _hook.set_active(None)
        try:
            if isolated.is_child():
                return None, self._run_compiled(call)
            known = checksums(roots_of(call))
            children: list[isolated.Child] = []
            try:
                children.append(isolated.Child(lambda: self._moved(plain, call), waits=True))
                if self.reproduce is not None:
                    work = partial(self.reproduce, self._function(call), call.args, call.kwargs)
                    children.append(isolated.Child(work, waits=True))
                children.append(
                    isolated.Child(lambda: call_and_observe(lambda: self._run_compiled(call), call, known))
                )
            except (isolated.CannotFork, OSError) as error:
                for child in children:
                    child.kill()
                self._not_verified(str(error))
                return None, self._run_compiled(call)
            try:
                start = time.monotonic()
                mine = call_and_observe(lambda: self._plainly(plain, call, active), call, known, keep=True)
                seconds = max(_LEAST_SECONDS, _LONGER * (time.monotonic() - start))
                exact = self.config.options.numerics == "strict"
                found = _found(mine.seen, children[-1].result(seconds), exact)
                if found and found[1] is not None and not exact:
                    found = _without_noise(found, mine.seen, children[0], seconds)
                script = self._script(children[1:-1]) if found and found[0] else ""
            finally:
                for child in children:
                    child.kill()
            self._judge(found[0] if found else [], script)
        finally:
            _hook.set_active(active)
        return mine.error, mine.result

    def _plainly(self, plain: types.FunctionType, call: Call, active: _hook.HookConfig | None) -> Any:
        _hook.set_active(active)
        try:
            return plain(*call.args, **call.kwargs)
        finally:
            _hook.set_active(None)

    def _run_compiled(self, call: Call) -> Any:
        """The call by the compiled form, which takes its place in this process."""
        self._put(self.compiled)
        return _hook.Dispatcher(self._function(call), self.config)(*call.args, **call.kwargs)

    def _function(self, call: Call) -> types.FunctionType:
        """The program's function."""
        return types.FunctionType(self.code, call.namespace, self.code.co_name, None, call.cells or None)

    def _put(self, entry: _hook.Entry) -> None:
        if self.comparing is not None and _hook.drop_entry(self.code, self.config, self.comparing):
            _hook.add_entry(self.code, self.config, entry)
        self.comparing = None

    def _moved(self, plain: types.FunctionType, call: Call) -> list[Observation]:
        """What the original does where its inputs move by a rounding."""
        seconds = 3600.0  # the parent ends it

        def run(seed: int) -> Observation:
            perturb(roots_of(call), seed)
            seen = call_and_observe(lambda: plain(*call.args, **call.kwargs), call)
            assert isinstance(seen, Observation)
            return seen

        endings = [isolated.run_isolated(partial(run, seed), seconds) for seed in range(RUNS)]
        return [ending.value for ending in endings if ending.kind == isolated.RETURNED]

    def _script(self, children: list[isolated.Child]) -> str:
        """What to say of the script of a call that went wrong."""
        if not children:
            return "dyncomp.minify, or DYNCOMP_REPRO=accuracy, makes a small script of it"
        children[0].go()
        ending = children[0].result(_SCRIPT_SECONDS)
        return str(ending.value) if ending.kind == isolated.RETURNED else "no script of it could be written"

    def _judge(self, found: list[str], script: str) -> None:
        counters = self.config.records.counters
        if not found:
            counters["verified"] += 1
            if self.left != ALWAYS:
                self.left -= 1
                if self.left <= 0:
                    self._put(self.compiled)
            return
        counters["mismatches"] += 1
        record = self.compiled.payload
        name, loc = self._called()
        place = f"{name} at {loc}"
        reason = f"compiled code does not do what plain Python does: {found[0]}"
        if self.comparing is not None:
            _hook.drop_entry(self.code, self.config, self.comparing)
        _hook.mark(self.code, "skip", self.config)
        if isinstance(record, EntryRecord):
            self.config.records.forget_entry(record)
        self.config.records.add_skip(name, loc, reason)
        more = "".join(f"\n    {line}" for line in found[:_MOST_TOLD])
        rest = f"\n    and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        warn_once(
            "verification",
            f"compiled code of {place} does not do what plain Python does; its results were not used, and "
            f"plain Python runs from now on. Please report this:{more}{rest}\n{script}",
            place,
        )

    def _not_verified(self, why: str) -> None:
        self.config.records.counters["unverified"] += 1
        name, loc = self._called()
        warn_once("verification", f"{name} at {loc} is not verified: {why}")

    def _called(self) -> tuple[str, Loc]:
        """What the function is called, and its place."""
        record = self.compiled.payload
        if isinstance(record, EntryRecord):
            return record.name, record.loc
        return self.code.co_qualname, location(self.code)


def _found(
    mine: Observation, ending: isolated.Ending, exact: bool
) -> tuple[list[str], Observation | None] | None:
    """What differs (if it is to be ``exact`` in its last bit), and what compiled code did, if it came to an
    end; ``None`` where nothing does."""
    if ending.kind != isolated.RETURNED:
        return [text_of_ending(ending)], None
    found = differences(mine, ending.value, exact=exact)
    return (found, ending.value) if found else None


def _without_noise(
    found: tuple[list[str], Observation | None], mine: Observation, again: isolated.Child, seconds: float
) -> tuple[list[str], Observation | None]:
    """What of ``found`` is no rounding that grew; ``again`` runs the original on inputs that moved."""
    again.go()
    ending = again.result(seconds)
    lines, other = found
    if ending.kind != isolated.RETURNED or not ending.value or other is None:
        return found
    excused = excuse(mine, ending.value, other)
    starts = tuple(f"{readable(path)}: " for path in excused)
    return [line for line in lines if not line.startswith(starts)], other


def calling_code(code: types.CodeType, target: Callable[..., Any]) -> types.CodeType:
    """Code with the signature and free variables of ``code`` that calls ``target(arguments, cells,
    globals)``, which gives an exception to raise, or ``None``, and what to return. Not seen in tracebacks."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    assembly = Assembly()
    assembly.loc = transfer_loc(line_loc(code.co_firstlineno))
    assembly.emit("RESUME", 0)
    assembly.emit("LOAD_CONST", target)
    for name in code.co_varnames[:count]:
        assembly.emit("LOAD_FAST", name)
    assembly.emit("BUILD_TUPLE", count)
    for name in code.co_freevars:
        assembly.emit("LOAD_CLOSURE", name)
    assembly.emit("BUILD_TUPLE", len(code.co_freevars))
    assembly.emit("LOAD_CONST", globals)
    assembly.emit("CALL", (0, ()))
    assembly.emit("CALL", (3, ()))
    raising = Label()
    assembly.emit("UNPACK_SEQUENCE", 2)
    assembly.emit("COPY", 1)
    assembly.emit("LOAD_CONST", None)
    assembly.emit("IS_OP", False)
    assembly.emit("POP_JUMP_IF_FALSE", raising)
    assembly.emit("POP_TOP")
    assembly.emit("RETURN_VALUE")
    assembly.mark(raising)
    assembly.emit("RAISE_VARARGS", 1)
    like = without_body(code, code.co_varnames[:count])
    return encode(assembly.finish(like))
