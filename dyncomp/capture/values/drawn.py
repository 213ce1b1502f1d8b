"""Random numbers that compiled code draws before its graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ...frontends.base import ArrayRef
from ...symbolic.integers import SymInt
from ..breaks import Skip
from .array import ArrayValue
from .base import Codegen, Tracer, Value


@dataclass(eq=False)
class Draw:
    """Call number ``number`` of those that draw: ``function(*args, **kwargs)``, or that method of ``owner``,
    whose state ``keep(kept, owner)`` notes, so that it can be put back (``None``: the generator is made here,
    perhaps by this call). Arguments are traced values, constants, symbols, and tuples and lists of these.
    ``may_raise``: unless it is known to draw. ``may_fail_late``: once it has drawn it may still raise, or
    give an array of another type than the one that capture inferred. ``is_fraction``: of ``DrawingCall``."""

    number: int
    function: Any
    owner: Any
    keep: Callable[[list[Any], Any], None] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    may_raise: bool = True
    may_fail_late: bool = False
    is_fraction: bool = False

    def owner_text(self, cg: Codegen) -> str:
        return cg.value(self.owner) if isinstance(self.owner, Value) else cg.constant(self.owner)

    def text(self, cg: Codegen) -> str:
        """The call."""
        parts = [_text(cg, value) for value in self.args]
        parts += [f"{name}={_text(cg, value)}" for name, value in self.kwargs.items()]
        is_method = isinstance(self.function, str)
        callee = f"{self.owner_text(cg)}.{self.function}" if is_method else cg.constant(self.function)
        return f"{callee}({', '.join(parts)})"


def _text(cg: Codegen, value: object) -> str:
    """An argument, made before the graph."""
    if type(value) in (tuple, list):
        return _display(cg, value, type(value) is list)
    if isinstance(value, Value):
        return value.reconstruct(cg)
    return cg.symbolic(value) if isinstance(value, SymInt) else cg.constant(value)


def _display(cg: Codegen, items: Any, is_list: bool) -> str:
    inside = "".join(f"{_text(cg, item)}, " for item in items)
    return f"[{inside}]" if is_list else f"({inside})"


def take_back(tracer: Tracer, number: int) -> None:
    """Forget the draws from this one on, and the inputs that they are: what made them was refused."""
    if len(tracer.draws) == number:
        return
    del tracer.draws[number:]
    drawn = [isinstance(v, DrawnArrayValue) and v.draw.number >= number for v in tracer.inputs]
    first = drawn.index(True) if any(drawn) else len(drawn)
    if not all(drawn[first:]):
        raise Skip("an input of the graph behind random numbers that were taken back")
    for value in tracer.inputs[first:]:
        assert isinstance(value, DrawnArrayValue)
        tracer.by_ref.pop(value.ref, None)
    del tracer.inputs[first:], tracer.builder.inputs[first:]


class DrawnArrayValue(ArrayValue):
    """An array or array scalar that a call draws: an input of the graph that nobody else has seen."""

    def __init__(self, ref: ArrayRef, pytype: type, draw: Draw, example: Callable[[], Any]) -> None:
        super().__init__(ref, pytype)
        self.draw = draw
        self.example = example

    @property
    def hint(self) -> Any:
        """An array like it."""
        return self.example()

    def reconstruct(self, cg: Codegen) -> str:
        return cg.drawn(self.draw)


class DrawnNumber(Value):
    """What a call draws, as a part of the expression of a Python number."""

    def __init__(self, draw: Draw, pytype: type) -> None:
        self.draw = draw
        self._pytype = pytype

    @property
    def pytype(self) -> type:
        return self._pytype

    def reconstruct(self, cg: Codegen) -> str:
        return cg.drawn(self.draw)
