"""Traced values: what a Python object looks like to the machine while a function is captured.

A :class:`Value` stands for one object of the running program. It may have a *source* (where the object
is found when the compiled code runs) and then a guard says what was assumed of it; values made in the
frame have none and are rebuilt by ``reconstruct`` where they are still needed.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from ..breaks import Break
from ..guards.source import Source
from ..objects.class_names import module_of, qualname_of

if TYPE_CHECKING:
    from ..frames import Frame as Frame
    from ..frames import Resumption as Resumption
    from ..replacement.codegen import Codegen as Codegen
    from ..tracer import Tracer as Tracer
else:  # they import this package: at run time they are but names in annotations, which nobody evaluates
    Tracer = Codegen = Frame = Resumption = None


class Value:
    """Base class. Every operation breaks the graph unless a subclass gives it a meaning."""

    source: Source | None = None
    mutated = False  # from outside, and changed: ``replay`` brings it up to date

    @property
    def pytype(self) -> type:
        """The exact type of the object."""
        raise NotImplementedError

    def describe(self) -> str:
        """A few words for break reasons."""
        return self.pytype.__name__

    # -- constants ----------------------------------------------------------------------------
    @property
    def is_const(self) -> bool:
        """The object is an immutable constant that ``const`` gives."""
        return False

    @property
    def const(self) -> Any:
        raise Break("opaque-object", f"the value of {self.describe()} is not known at capture")

    # -- what it turns into when compiled code needs it ------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        """A Python expression for the object; may append statements to ``cg``."""
        raise NotImplementedError(f"{type(self).__name__}.reconstruct")

    def replay(self, cg: Codegen) -> list[str]:
        """Statements that bring a changed object from outside up to date."""
        raise NotImplementedError(f"{type(self).__name__}.replay")

    def children(self) -> tuple[Value, ...]:
        """Values reachable from this one (for identity and escape analysis)."""
        return ()

    # -- operations -----------------------------------------------------------------------------
    def getattr(self, tracer: Tracer, name: str) -> Value:
        raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {self.describe()}")

    def delattr(self, tracer: Tracer, name: str) -> None:
        raise Break("unsupported-attribute", f"deletion of attribute {name!r} of {self.describe()}")

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Break("unsupported-call", f"call of {self.describe()}")

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        raise Break("unsupported-operation", f"indexing of {self.describe()}")

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        raise Break("unsupported-operation", f"item assignment to {self.describe()}")

    def delitem(self, tracer: Tracer, key: Value) -> None:
        raise Break("unsupported-operation", f"item deletion from {self.describe()}")

    def contains(self, tracer: Tracer, item: Value) -> Value:
        raise Break("unsupported-operation", f"membership test in {self.describe()}")

    def iterate(self, tracer: Tracer) -> Value:
        """``iter(self)``."""
        raise Break("unsupported-operation", f"iteration over {self.describe()}")

    def next(self, tracer: Tracer) -> Value | None:
        """``next(self)``; ``None`` when exhausted."""
        raise Break("unsupported-operation", f"next() of {self.describe()}")

    def open_ended(self, tracer: Tracer) -> bool:
        """Whether this is an iterator that capture steps itself though nobody knows how many items come."""
        return False

    def items(self, tracer: Tracer) -> list[Value]:
        """All items, for unpacking; breaks where their number is not known."""
        raise Break("unsupported-operation", f"unpacking of {self.describe()}")

    def truth(self, tracer: Tracer) -> bool:
        """``bool(self)``, known at capture (recording guards); breaks otherwise."""
        raise Break("unsupported-operation", f"truth value of {self.describe()}")

    def length(self, tracer: Tracer) -> Value:
        raise Break("unsupported-operation", f"len() of {self.describe()}")

    def for_rule(self, tracer: Tracer) -> Any:
        """The argument as a frontend rule takes it (see ``frontends.base``)."""
        words = self.describe()
        what = f"an argument of type {words}" if words == self.pytype.__name__ else f"{words} as an argument"
        raise Break("unsupported-call", f"{what} in an array function")


class NamedMethodValue(Value):
    """A method of a traced value that the interpreter provides, found by name and not yet called."""

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    @property
    def pytype(self) -> type:
        return type([].append)

    def describe(self) -> str:
        return f"method {self.name!r} of {self.owner.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def reconstruct(self, cg: Codegen) -> str:
        owner = cg.value(self.owner)
        return f"{owner if owner.isidentifier() else f'({owner})'}.{self.name}"


class UnboundValue(Value):
    """The mark for an unbound local (inlined comprehensions push it)."""

    @property
    def pytype(self) -> type:
        return type(None)


class LazyValue(Value):
    """An object that the program has not looked at yet: no guard, no cost. ``tracer.realize`` wraps it."""

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj = obj
        self.source = source

    @property
    def pytype(self) -> type:
        return type(self.obj)

    def reconstruct(self, cg: Codegen) -> str:
        assert self.source is not None
        return cg.load(self.source)

    def for_rule(self, tracer: Tracer) -> Any:
        return tracer.realize(self).for_rule(tracer)


class OpaqueValue(Value):
    """An object of a type that capture does not model: it can be passed on, and compared by identity."""

    def __init__(self, obj: Any, source: Source, reason: str = "") -> None:
        self.obj = obj
        self.source = source
        self.reason = reason

    @property
    def pytype(self) -> type:
        return type(self.obj)

    def describe(self) -> str:
        cls = type(self.obj)
        kind = f"an object of type {module_of(cls)}.{qualname_of(cls)}"
        if cls is types.BuiltinFunctionType:
            kind = self.obj.__qualname__
        return f"{kind} ({self.reason})" if self.reason else kind

    def reconstruct(self, cg: Codegen) -> str:
        assert self.source is not None
        return cg.load(self.source)
