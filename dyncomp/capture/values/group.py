"""Exception groups made or raised in the frame."""

from __future__ import annotations

from ..breaks import Break
from .base import Codegen, NamedMethodValue, Tracer, Value
from .exception import ExceptionValue
from .number import ConstValue
from .seq import ListValue, TupleValue

_METHODS = ("split", "subgroup", "derive")


def is_group_class(cls: type) -> bool:
    """Whether making an instance is what ``BaseExceptionGroup`` does, and ``__init__``."""
    if type(cls) is not type or not issubclass(cls, BaseExceptionGroup):
        return False
    own = (base for base in cls.__mro__ if base not in ExceptionGroup.__mro__)
    return cls.__new__ is BaseExceptionGroup.__new__ and all(base.__flags__ & 1 << 9 for base in own)


class GroupValue(ExceptionValue):
    """``message`` is the constant text, ``exceptions`` the tuple of what is in it."""

    def __init__(self, cls: type, args: list[Value], message: str, members: list[ExceptionValue]) -> None:
        # made of a tuple of its own: the list that was given may be another one by the end
        super().__init__(cls, [ConstValue(message), TupleValue([*members])])
        self.args = TupleValue(args)
        self.message = message
        self.members = members
        self.exceptions = MembersValue(self)

    def children(self) -> tuple[Value, ...]:
        return (*super().children(), *self.members)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "message":
            return ConstValue(self.message)
        if name == "exceptions":
            return self.exceptions
        if name in _METHODS and getattr(self.cls, name) == getattr(BaseExceptionGroup, name):
            return GroupMethodValue(self, name)
        return super().getattr(tracer, name)

    def text(self) -> str:
        """``str(group)``."""
        count = len(self.members)
        return f"{self.message} ({count} sub-exception{'s' if count != 1 else ''})"


class MembersValue(TupleValue):
    """``group.exceptions``, the same tuple each time."""

    def __init__(self, owner: GroupValue) -> None:
        super().__init__([*owner.members])
        self.owner = owner

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.owner)}.exceptions"


class GroupMethodValue(NamedMethodValue):
    """``split``, ``subgroup`` or ``derive`` of a group, not yet called."""

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found: Value = tracer.call_group_method(self.owner, self.name, args, kwargs)
        return found


def new_group(tracer: Tracer, cls: type, args: list[Value]) -> GroupValue:
    """``BaseExceptionGroup.__new__(cls, *args)``; breaks where it raises."""
    refusal = Break("unsupported-call", f"construction of {cls.__qualname__} of these arguments")
    if len(args) != 2 or not (args[0].is_const and type(args[0].const) is str):
        raise refusal
    if not isinstance(args[1], (ListValue, TupleValue)):
        raise refusal
    given = [tracer.realize(member) for member in args[1].items(tracer)]
    members = [member for member in given if isinstance(member, ExceptionValue)]
    if not members or len(members) < len(given):
        raise refusal
    plain = all(issubclass(member.cls, Exception) for member in members)
    if issubclass(cls, Exception) and not plain:
        raise Break("would-raise", f"Cannot nest BaseExceptions in {cls.__name__}")
    made = ExceptionGroup if cls is BaseExceptionGroup and plain else cls
    return GroupValue(made, args, args[0].const, members)
