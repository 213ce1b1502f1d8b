"""A loop that is not unrolled, as source: ``for``/``while`` around calls of the captured body function."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from typing import Any

from ...hook import _hook
from ...hook._hook import later
from ...python_code.instr import CanonicalCode
from ...python_code.loops import UNBOUND, Loop, LoopBody
from ...python_code.resume import make_continuation
from ..control import generators
from ..entries.config import CaptureConfig
from ..frames import Frame
from ..values.generator import GeneratorValue
from ..values.iterator import IteratorValue
from . import pieces
from .codegen import UNBOUND_SLOT, Codegen
from .lifetimes import locals_needed


def known_body(config: CaptureConfig, frame: Frame, loop: Loop) -> LoopBody | None:
    """The body function of a loop, if it was made before."""
    return pieces.known_body(config, frame.raw_code, frame.code, loop, frame.locals, frame.start)


def loop_body(cg: Codegen, frame: Frame, loop: Loop) -> LoopBody:
    """The body function of a loop, made once per function of the program and set of bound locals."""
    config = cg.tracer.config
    body = pieces.body_of(config, frame.raw_code, frame.code, loop, frame.locals, frame.start)
    for owner in {id(code): code for code in (cg.tracer.code, frame.raw_code)}.values():
        config.add_body_owner(body.code, owner)
    return body


def assigned_in(frame: Frame, region: Collection[int]) -> set[str]:
    """The locals that the instructions of ``region`` assign or delete."""
    stores = (frame.code.instructions[index] for index in region)
    return {i.arg for i in stores if i.op in ("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR")}


def changed_by(
    frame: Frame, body: LoopBody, exits: Collection[int], handled: bool = False
) -> dict[str, bool]:
    """The locals that a loop assigns, and whether they surely have values of their own where it was left by
    one of ``exits``, or by an exception that was ``handled``."""
    given = [set(body.returns[k]) - body.sentinels for k in exits]
    if handled:
        given.append(set(body.on_error) - body.sentinels)
    return {name: all(name in names for names in given) for name in assigned_in(frame, body.region)}


class LoopEmitter:
    """Writes the loop and what follows each of its exits."""

    def __init__(self, cg: Codegen, frame: Frame, body: LoopBody, unwinding: Any, resume_call: Any) -> None:
        self.cg = cg
        self.frame = frame
        self.body = body
        self.unwinding = unwinding
        self.resume_call = resume_call
        self.stack: list[str] = unwinding.stacks[-1]
        self.carried = {
            name: cg.fresh(f"v_{_clean(name)}_")
            for name in dict.fromkeys(
                [a.key for a in body.args if a.kind == "local"]
                + [n for names in body.returns.values() for n in names]
            )
        }

    def local(self, name: str) -> str:
        if name in self.carried:
            return self.carried[name]
        return self.cg.value(self.frame.locals[name])

    def start(self) -> None:
        for name, variable in self.carried.items():
            if name in self.frame.locals:
                self.cg.line(f"{variable} = {self.cg.value(self.frame.locals[name])}")
            elif name in self.body.sentinels:
                self.cg.line(f"{variable} = {self.cg.constant(UNBOUND)}")

    def run(self, loop: Loop, function: str) -> str:
        """The loop; where it is left by ``break`` the returned name holds the exit number."""
        cg = self.cg
        result, exit_name, item = cg.fresh("r"), cg.fresh("exit"), cg.fresh("item")
        args = ", ".join(self._argument(arg, item) for arg in self.body.args)
        if loop.kind == "for":
            cg.line(f"for {item} in {self.stack[-1]}:")
        else:
            cg.line("while True:")
        cg.line(f"    {result} = {function}({args})", transfer=True)
        cg.line(f"    {exit_name} = {result}[0]")
        cg.line(f"    if {exit_name}: break")
        names = self.body.returns[0]
        if names:
            cg.line(f"    (_, {', '.join(self.carried[n] for n in names)}) = {result}")
        self.result = result
        return exit_name

    def _argument(self, arg: Any, item: str) -> str:
        if arg.kind == "item":
            return item
        return self.stack[arg.key] if arg.kind == "stack" else self.local(arg.key)

    def leave(self, loop: Loop, exit_name: str, closing: list[str]) -> None:
        """Go on, or return the frame's result, as the exit that was taken wants it; ``closing``: statements
        to begin with."""
        cg = self.cg
        if loop.kind == "for":
            cg.line("else:")
            for text in closing:
                cg.line(f"    {text}")
            self._resume(0, self.frame.code.instructions[loop.header].arg, self.stack[:-1])
        for text in closing:
            cg.line(text)
        for k, target in sorted(self.body.exits.items()):
            cg.line(f"if {exit_name} == {k}:")
            names = [self.carried[n] for n in self.body.returns[k]]
            if names:
                cg.line(f"    (_, {', '.join(names)}) = {self.result}")
            self._resume(k, target, self.stack[: len(self.stack) - self.body.pops.get(k, 0)])
        if self.body.may_return:
            cg.line(f"return {self.result}[1]")

    def _resume(self, k: int, target: int, stack: list[str]) -> None:
        """Go on at ``target`` behind exit ``k``; where a local that may be unbound is, in plain Python."""
        cg, frame = self.cg, self.frame
        available = set(self.frame.locals) | set(self.carried)
        changed = changed_by(self.frame, self.body, [k])
        needed = locals_needed(cg, self.frame, target, available, changed)
        unsure = [n for n in needed if n in self.body.sentinels]
        rest = self.resume_call(cg, self.frame, target, stack, self.local, needed)
        if not unsure:
            cg.line(f"    return {rest.returned}")
            return
        unbound = tuple(slot for slot, text in enumerate(stack) if text == UNBOUND_SLOT)
        passed = [text for text in stack if text != UNBOUND_SLOT]
        test = " or ".join(f"{self.local(n)} is {cg.constant(UNBOUND)}" for n in unsure)
        partly = cg.constant(
            PartlyBound(frame.code, frame.raw_code, frame.globals[0], target, len(stack), unbound)
        )
        pairs = ", ".join(f"{n!r}: {self.local(n)}" for n in needed)
        cells = ", ".join(f"{n!r}: {cg.value(c)}" for n, c in self.frame.cells.items())
        cg.line(f"    if {test}:")
        values = f"[{', '.join(passed)}], {{{pairs}}}, {{{cells}}}"
        cg.line(f"        return {cg.constant(later)}({partly}, {values})")
        cg.line(f"    return {rest.returned}")


class PartlyBound:
    """Goes on after a loop, as plain Python, where some locals turned out to be unbound."""

    def __init__(
        self,
        code: CanonicalCode,
        raw_code: types.CodeType,
        namespace: dict[str, Any],
        at: int,
        depth: int,
        unbound: tuple[int, ...],
    ) -> None:
        self.code = code
        self.raw_code = raw_code
        self.namespace = namespace
        self.at = at
        self.depth = depth
        self.unbound = unbound
        self.__name__ = "partly_bound"

    def __call__(self, stack: list[Any], local: dict[str, Any], cells: dict[str, types.CellType]) -> Any:
        bound = {name: value for name, value in local.items() if value is not UNBOUND}
        made = make_continuation(
            self.code, self.at, stack_depth=self.depth, bound=tuple(bound), unbound_slots=self.unbound
        )
        _hook.mark(made.code, "skip")
        _hook.set_origin(made.code, self.raw_code)
        closure = tuple(cells[name] for name in made.freevars)
        function = types.FunctionType(made.code, self.namespace, self.code.name, None, closure)
        args = []
        values = iter(stack)
        for arg in made.args:
            if arg.kind == "stack":
                args.append(next(values))
            elif arg.kind == "cell":
                args.append(cells[arg.key].cell_contents)
            else:
                args.append(bound[arg.key])
        return later(function, *args)


def _clean(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def emit_loop(
    cg: Codegen,
    frame: Frame,
    loop: Loop,
    unwinding: Any,
    resume_function: Callable[..., Any],
    resume_call: Callable[..., Any],
) -> None:
    """Write the loop at which the capture stopped, and what follows it."""
    body = loop_body(cg, frame, loop)
    places = [*body.exits.values()]
    if loop.kind == "for":
        places.append(frame.code.instructions[loop.header].arg)
    also = [a.key for a in body.args if a.kind == "local" and a.key in frame.locals]
    unwinding.prepare(places, also, rebound=assigned_in(frame, body.region))
    emitter = LoopEmitter(cg, frame, body, unwinding, resume_call)
    function = cg.constant(resume_function(cg, frame, body))
    if body.freevars:
        cells = ", ".join(cg.value(frame.cells[name]) for name in body.freevars)
        function = cg.temporary(f"{function}.bind(({cells},))")
    emitter.start()
    exit_name = emitter.run(loop, function)
    closing = []
    if loop.kind == "for" and closes_when_left(cg, frame.stack[-1]):
        closing.append(f"del {', '.join(cg.value(v) for v in _chain(frame.stack[-1]))}")
    emitter.leave(loop, exit_name, closing)


def closes_when_left(cg: Codegen, iterator: object) -> bool:
    """Whether a loop that is left lets go of a generator which then runs code of its own."""
    protected = any(isinstance(v, GeneratorValue) and any(v.frame.info.in_try) for v in _chain(iterator))
    return protected and all(generators.holders(cg.tracer, v) == 1 for v in _chain(iterator))


def _chain(iterator: object) -> list[Any]:
    """An iterator and those that it steps."""
    if not isinstance(iterator, IteratorValue):
        return []
    inner = () if isinstance(iterator, GeneratorValue) else iterator.children()
    return [iterator, *(found for value in inner for found in _chain(value))]
