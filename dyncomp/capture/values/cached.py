"""Functions under ``functools.lru_cache`` that the frame made: their results are kept at capture."""

from __future__ import annotations

import functools
from typing import Any

from ..breaks import Break
from .base import Codegen, NamedMethodValue, Tracer, Value
from .number import ConstValue
from .seq import TupleValue

_NAMES = (*functools.WRAPPER_ASSIGNMENTS, "cache_parameters", "__wrapped__")
_INFO: Any = functools._CacheInfo  # type: ignore[attr-defined]
_PLAIN = (int, float, bool, str, bytes, type(None))


class CachedFunctionValue(Value):
    """``maxsize``: how many results are kept, ``None``: all. Where the object itself is needed while it keeps
    results, the capture begins again and breaks where it was made."""

    def __init__(self, tracer: Tracer, function: Value, maxsize: int | None, typed: bool) -> None:
        self.function = function
        self.maxsize = maxsize
        self.typed = typed
        self.results: dict[Any, Value] = {}  # oldest first
        self.hits = self.misses = 0
        self.attributes: dict[str, Value] = {}
        frame = tracer.frames[0]
        self.place = (frame.raw_code, frame.current)

    @property
    def pytype(self) -> type:
        return functools._lru_cache_wrapper

    def describe(self) -> str:
        return f"{self.function.describe()} under lru_cache"

    def children(self) -> tuple[Value, ...]:
        return (self.function, *self.attributes.values(), *self.results.values())

    def truth(self, tracer: Tracer) -> bool:
        return True

    # -- attributes -----------------------------------------------------------------------------
    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        if name in ("cache_info", "cache_clear"):
            return CacheMethodValue(self, name)
        return super().getattr(tracer, name)

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        """What ``lru_cache`` itself sets."""
        if name not in _NAMES or name in self.attributes:
            super().setattr(tracer, name, value)
        self.attributes[name] = value

    # -- calls ------------------------------------------------------------------------------------
    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        key = self._key(args, kwargs)
        tracer.steps += 1
        if key in self.results:
            self.hits += 1
            found = self.results[key] = self.results.pop(key)
            return found
        self.misses += 1
        result: Value = tracer.realize(tracer.call_value(self.function, args, kwargs))
        if key not in self.results and self.maxsize != 0:
            if self.maxsize is not None and len(self.results) >= self.maxsize:
                del self.results[next(iter(self.results))]
            self.results[key] = result
        return result

    def _key(self, args: list[Value], kwargs: dict[str, Value]) -> Any:
        values = [*args, *kwargs.values()]
        if not all(value.is_const and type(value.const) in _PLAIN for value in values):
            raise Break("unsupported-call", f"call of {self.describe()} with what is no plain constant")
        constants = [value.const for value in values]
        if any(constant != constant for constant in constants):
            raise Break("unsupported-call", f"call of {self.describe()} with what is not a number")
        if len(args) == 1 and not kwargs and not self.typed and type(constants[0]) in (int, str):
            return constants[0]  # which equals no float: others are kept by tuples
        kinds = tuple(map(type, constants)) if self.typed else ()
        return (tuple(constants[: len(args)]), tuple(zip(kwargs, constants[len(args) :])), kinds)

    # -- rebuilding -------------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        if self.hits or self.misses:
            problem = Break("unsupported-call", f"{self.describe()} is kept, with its results")
            cg.tracer.decisions.breaks[self.place] = problem
            raise cg.tracer.restart
        make = cg.constant(functools.lru_cache)
        return f"{make}({self.maxsize!r}, {self.typed!r})({cg.value(self.function)})"


class CacheMethodValue(NamedMethodValue):
    """``cache_info`` or ``cache_clear``, not yet called."""

    owner: CachedFunctionValue

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        owner = self.owner
        if args or kwargs:
            raise Break("would-raise", f"{self.name}() takes no arguments")
        if self.name == "cache_clear":
            tracer.steps += 1
            owner.results.clear()
            owner.hits = owner.misses = 0
            return ConstValue(None)
        counts = (owner.hits, owner.misses, owner.maxsize, len(owner.results))
        return TupleValue([ConstValue(count) for count in counts], None, _INFO)
