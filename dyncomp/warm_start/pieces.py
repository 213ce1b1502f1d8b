"""Constants of replacements that stand for pieces of functions: what they carry on, by place.

Code objects are named by the function that has them; a piece by the code that it is a piece of, where it goes
on, and what it is given. In another process the same piece is made again, and its own entry is found by the
same name (:meth:`Places.name`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any

from ..capture.entries.config import CaptureConfig
from ..capture.frames import code_info
from ..capture.loops.scalar_loop_gates import gates_of, note_owner
from ..capture.replacement.loop_driver import PartlyBound
from ..capture.replacement.pieces import body_of, place_at, resume_function_of
from ..capture.replacement.plain import PlainContinuation, plain_piece
from ..capture.replacement.replace_source import PLAIN_COPY
from ..hook import _hook
from ..python_code.continuation import PlaceToResume
from ..python_code.instr import Loc
from ..python_code.loops import LoopBody
from ..python_code.transfers import pass_on_at
from ..scalar_loops.entry.policy import LoopEntry
from .codes import pack_code, packed_plain_copy
from .descriptions import NotStorable, Stale, find, hash_of, inside, path_to
from .plain import Packer, Unpacker


class PiecePacker:
    """Rows of the pieces among the constants of an entry of ``root``."""

    def __init__(
        self,
        config: CaptureConfig,
        function: types.FunctionType,
        plain: Sequence[tuple[Any, types.CodeType]],
    ) -> None:
        self.config = config
        self.root = function.__code__
        self.globals = function.__globals__
        self.plain = {id(function): origin for function, origin in plain}
        # what is kept of the configuration's pieces, by the id of the object that constants hold
        self.known: dict[int, tuple[Any, ...]] = {}
        for key, found in config.resume_functions.items():
            if key[0] in ("function", "pass on"):
                self.known[id(found[0])] = found
            elif key[0] == "gates":
                for gate in found[0]:
                    self.known[id(gate.entry)] = ("entry", gate, *found[1:])
                    self.known[id(gate.ticks)] = ("ticks", gate, *found[1:])

    def by_type(self) -> dict[type, Any]:
        return {
            types.CodeType: self.code,
            types.FunctionType: self.function,
            types.MethodType: self.method,
            _hook.ResumeFunction: self.resumed,
            PlainContinuation: self.function,
            PartlyBound: self.partly_bound,
            LoopEntry: self.gate,
            _hook.Ticks: self.gate,
        }

    def code(self, packer: Packer, code: types.CodeType) -> list[Any]:
        """A code object among constants: the plain copy of the original, or code put together from it."""
        if code.co_consts[-1:] == (PLAIN_COPY,):
            return packed_plain_copy(code, self.root)
        return ["program code", self.origin(packer, code)]

    def method(self, packer: Packer, method: types.MethodType) -> list[Any]:
        """What makes the original that a piece stands in for, when it is to run."""
        made = self.config.stand_ins.get(id(self.root))
        if made is None or method.__self__ is not made or method.__name__ != "plain_code":
            raise NotStorable(f"the method {method.__qualname__} of an object")
        return ["plain code of root"]

    def namespace(self, packer: Packer, namespace: dict[str, Any]) -> Any:
        return None if namespace is self.globals else packer.value(namespace)

    def function(self, packer: Packer, function: Any) -> list[Any]:
        origin = self.plain.get(id(function))
        if origin is not None:
            code, namespace = _code_of(function)
            parts = (
                packer.row(pack_code(packer, code)),
                self.origin(packer, origin),
                self.namespace(packer, namespace),
            )
            return ["plain piece", *parts]
        known = self.known.get(id(function))
        if known is None:
            return packer.named(function)
        _, raw, index, loc = known
        return ["pass on", self.origin(packer, raw), index, list(loc)]

    def resumed(self, packer: Packer, function: Any) -> list[Any]:
        known = self.known.get(id(function))
        if known is None:
            raise NotStorable("a continuation of a function that was forgotten")
        _, made, namespace = known
        return ["resumed", self.piece(packer, made), self.namespace(packer, namespace)]

    def partly_bound(self, packer: Packer, obj: PartlyBound) -> list[Any]:
        where = self.origin(packer, obj.raw_code), self.namespace(packer, obj.namespace)
        return ["partly bound", *where, obj.at, obj.depth, list(obj.unbound)]

    def gate(self, packer: Packer, obj: Any) -> list[Any]:
        known = self.known.get(id(obj))
        if known is None:
            raise NotStorable("a gate of a loop that was forgotten")
        part, gate, raw, namespace = known
        where = self.origin(packer, raw), self.namespace(packer, namespace)
        return ["gate", *where, gate.facts.loop.header, part]

    def piece(self, packer: Packer, made: Any) -> list[Any]:
        if isinstance(made, PlaceToResume):
            given = [made.at, made.stack_depth, list(made.bound), list(made.unbound)]
            return ["place", self.origin(packer, made.origin), *given]
        assert isinstance(made, LoopBody)
        owner = self.config.owner_of(made.code)
        return ["body", self.origin(packer, owner), made.loop.header, sorted(made.bound), made.start]

    def origin(self, packer: Packer, raw: types.CodeType) -> list[Any]:
        """A code object of the program, or one that stands in for a piece."""
        if raw is self.root:
            return ["root"]
        made = self.config.stand_ins.get(id(raw))
        if made is not None:
            return self.piece(packer, made)
        if raw is self.config.function_of(self.root):
            return ["function of root"]
        path = path_to(raw, self.config.function_of(self.root))
        if path is not None:
            return ["inside of root", path]
        return _named_code(packer, raw)


def _named_code(packer: Packer, raw: types.CodeType) -> list[Any]:
    outer = raw.co_qualname.partition(".<locals>.")[0]
    modules = list(sys.modules.items())
    for name in [n for n, module in modules if getattr(module, "__file__", None) == raw.co_filename]:
        try:
            path = path_to(raw, _code_named(name, outer))
        except Stale:
            continue
        if path is not None:
            packer.modules.add(name)
            return ["code of", name, outer, path, hash_of(raw)]
    raise NotStorable(f"the code of {raw.co_qualname}")


def _code_named(module: str, outer: str) -> types.CodeType:
    """The code of a function found by its name, that of what it wraps where it says so."""
    found: Any = find(module, outer)
    while type(found) is types.FunctionType and "__wrapped__" in vars(found):
        found = vars(found)["__wrapped__"]
    if type(found) is not types.FunctionType:
        raise Stale(f"{module}.{outer} is no function")
    return found.__code__


def _code_of(function: Any) -> tuple[types.CodeType, dict[str, Any]]:
    if isinstance(function, PlainContinuation):
        return function.code, function.namespace
    return function.__code__, function.__globals__


class Places:
    """Finds the pieces of :class:`PiecePacker` for an entry of ``root`` in this process."""

    def __init__(self, config: CaptureConfig, function: types.FunctionType) -> None:
        self.config = config
        self.root = function.__code__
        self.globals = function.__globals__

    def makers(self) -> dict[str, Any]:
        return {
            "plain piece": self._plain,
            "pass on": self._pass_on,
            "resumed": self._resumed,
            "partly bound": self._partly_bound,
            "gate": self._gate,
            "program code": lambda u, p: self.origin(p[0]),
            "plain code of root": lambda u, p: self.config.stand_ins[id(self.root)].plain_code,
        }

    def _namespace(self, unpacker: Unpacker, data: Any) -> dict[str, Any]:
        namespace = self.globals if data is None else unpacker.value(data)
        assert isinstance(namespace, dict)
        return namespace

    def _plain(self, unpacker: Unpacker, parts: list[Any]) -> Any:
        code, origin, namespace = parts
        return plain_piece(unpacker.value(code), self.origin(origin), self._namespace(unpacker, namespace))

    def _pass_on(self, unpacker: Unpacker, parts: list[Any]) -> Any:
        origin, index, loc = parts
        return pass_on_at(self.config.resume_functions, self.origin(origin), index, Loc(*loc))

    def _resumed(self, unpacker: Unpacker, parts: list[Any]) -> Any:
        piece, namespace = parts
        made, raw = self._made(piece)
        like = code_info(self.config, raw).code
        return resume_function_of(self.config, made, self._namespace(unpacker, namespace), like)

    def _partly_bound(self, unpacker: Unpacker, parts: list[Any]) -> PartlyBound:
        origin, namespace, at, depth, unbound = parts
        raw = self.origin(origin)
        code = code_info(self.config, raw).code
        return PartlyBound(code, raw, self._namespace(unpacker, namespace), at, depth, tuple(unbound))

    def _gate(self, unpacker: Unpacker, parts: list[Any]) -> Any:
        origin, namespace, header, part = parts
        raw = self.origin(origin)
        gates = gates_of(
            self.config, raw, code_info(self.config, raw).code, self._namespace(unpacker, namespace)
        )
        found = next((gate for gate in gates if gate.facts.loop.header == header), None)
        if found is None:
            raise Stale("a loop that can have no gate")
        note_owner(gates, header, self.root)
        return found.entry if part == "entry" else found.ticks

    def origin(self, data: list[Any]) -> types.CodeType:
        kind, *parts = data
        if kind == "root":
            return self.root
        if kind == "function of root":
            return self.config.function_of(self.root)
        if kind in ("place", "body"):
            code: types.CodeType = self._made(data)[0].code
            return code
        if kind == "inside of root":
            return inside(self.config.function_of(self.root), parts[0])
        if kind != "code of":
            raise Stale(f"code of the unknown kind {kind!r}")
        module, outer, path, text = parts
        found = inside(_code_named(module, outer), path)
        if hash_of(found) != text:
            raise Stale(f"{module}.{outer} was changed")
        return found

    def _made(self, data: list[Any]) -> tuple[Any, types.CodeType]:
        """A piece, and the code that it is a piece of."""
        kind, origin, *parts = data
        raw = self.origin(origin)
        info = code_info(self.config, raw)
        if kind == "place":
            at, depth, bound, unbound = parts
            return place_at(self.config, raw, info.code, at, depth, tuple(bound), tuple(unbound)), raw
        header, bound, start = parts
        loop = info.loop_at(header)
        if loop is None:
            raise Stale("a loop that is not there")
        body = body_of(self.config, raw, info.code, loop, frozenset(bound), start)
        for owner in {id(code): code for code in (self.root, raw)}.values():
            self.config.add_body_owner(body.code, owner)
        return body, raw


def place_name(config: CaptureConfig, code: types.CodeType) -> list[Any]:
    """What tells a code object from all others in every process."""
    made = config.stand_ins.get(id(code))
    if isinstance(made, PlaceToResume):
        given = [made.at, made.stack_depth, sorted(made.bound), list(made.unbound)]
        return ["place", place_name(config, made.origin), *given]
    if isinstance(made, LoopBody):
        owner = place_name(config, config.owner_of(code))
        return ["body", owner, made.loop.header, sorted(made.bound), made.start]
    return [code.co_filename, code.co_firstlineno, code.co_qualname, hash_of(code)]
