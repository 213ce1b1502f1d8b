"""Context variables that the frame sets, and the tokens by which it sets them back."""

from __future__ import annotations

from contextvars import ContextVar, Token, copy_context
from typing import Any

from ..guards.source import Source
from .base import Codegen, Tracer, Value
from .number import ConstValue


class ContextVariableState(Value):
    """What the frame has set a context variable to and not set back; the innermost is its value."""

    def __init__(self, obj: ContextVar[Any], source: Source) -> None:
        self.obj = obj
        self.source = source
        self.pending: list[TokenValue] = []
        self.mutated = True

    @property
    def pytype(self) -> type:
        return ContextVar

    def children(self) -> tuple[Value, ...]:
        return tuple(self.pending)

    def reconstruct(self, cg: Codegen) -> str:
        return str(cg.constant(self.obj))

    def set(self, value: Value) -> TokenValue:
        """The variable's new value; what sets it back."""
        token = TokenValue(self, value, self.pending[-1].value if self.pending else None)
        self.pending.append(token)
        return token

    def reset(self) -> None:
        """Use the last token."""
        self.pending.pop().used = True

    def replay(self, cg: Codegen) -> list[str]:
        """Set the variable, keeping the tokens, for which the program may ask."""
        for token in self.pending:
            cg.remember(
                token,
                cg.temporary(f"{cg.constant(ContextVar.set)}({cg.value(self)}, {cg.value(token.value)})"),
            )
        return []


class TokenValue(Value):
    """What ``ContextVar.set`` returned; ``before``: the value that the frame had set then, if any."""

    def __init__(self, state: ContextVariableState, value: Value, before: Value | None) -> None:
        self.state = state
        self.value = value
        self.before = before
        self.used = False

    @property
    def pytype(self) -> type:
        return Token

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "var":
            return ConstValue(self.state.obj)
        if name == "old_value" and self.before is not None:
            return self.before
        return super().getattr(tracer, name)

    def children(self) -> tuple[Value, ...]:
        return (self.value,) if self.before is None else (self.value, self.before)

    def reconstruct(self, cg: Codegen) -> str:
        if not self.used:
            cg.replay(self.state)
            return str(cg.value(self))
        variable = cg.value(self.state)
        if self.before is not None:
            before = f"({cg.value(self.before)},)"
        else:
            before = cg.fresh("b")
            cg.prelude.append(f"{before} = {cg.constant(value_of)}({variable})")
        name: str = cg.temporary(f"{cg.constant(used_token)}({variable}, {cg.value(self.value)}, {before})")
        return name


_MISSING: Any = object()


def value_of(variable: ContextVar[Any]) -> tuple[Any, ...]:
    """The value, nothing where the variable has none."""
    found = variable.get(_MISSING)
    return () if found is _MISSING else (found,)


def used_token(variable: ContextVar[Any], value: object, before: tuple[Any, ...]) -> Token[Any]:
    """A token of a ``set`` that was taken back, when the variable had the value ``before``."""

    def use() -> Token[Any]:
        for old in before:
            variable.set(old)
        token = variable.set(value)
        variable.reset(token)
        return token

    return copy_context().run(use)
