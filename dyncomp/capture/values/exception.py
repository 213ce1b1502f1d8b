"""Exceptions made or raised in the frame, and their tracebacks."""

from __future__ import annotations

import inspect
import types
from typing import Any

from ..breaks import Break
from .base import Codegen, NamedMethodValue, Tracer, Value
from .number import ConstValue
from .obj import InstanceValue
from .seq import ListValue, TupleValue

_MISSING = object()
_NONE = ConstValue(None)
# what their constructors do beyond keeping the arguments is known: one attribute that is the first argument
_FIRST_ARGUMENT: dict[type, str] = {StopIteration: "value", SystemExit: "code"}
# their constructors set attributes from keywords, and nothing from a single argument
_PLAIN_WITHOUT_KEYWORDS = (AttributeError, NameError, ImportError, OSError)


def builtin_base(cls: type) -> type:
    """The first class of the resolution order that is written in C."""
    return next(base for base in cls.__mro__ if not base.__flags__ & 1 << 9)


def is_traceable_class(cls: type) -> bool:
    """Whether making an instance does nothing but keep the arguments and run ``__init__``."""
    base = builtin_base(cls)
    if type(cls) is not type or not issubclass(base, BaseException) or cls.__new__ is not base.__new__:
        return False
    if any(not issubclass(base, other) for other in cls.__mro__ if not other.__flags__ & 1 << 9):
        return False  # also derives from another builtin class
    simple = base.__basicsize__ == BaseException.__basicsize__
    return simple or base in _FIRST_ARGUMENT or issubclass(base, _PLAIN_WITHOUT_KEYWORDS)


def initializer(cls: type) -> Any:
    """``cls.__init__``."""
    return type.__getattribute__(cls, "__init__")


class ExceptionValue(InstanceValue):
    """An exception object. Once it has been raised its traceback matters: where such an object is needed
    outside of the captured part, the capture begins again and leaves the raise to plain Python.

    ``origin``: ``(code, instruction)`` where it was raised first. ``context`` is ``None`` where it is not
    known (what is being handled outside of the captured code would be it).
    """

    def __init__(self, cls: type, args: list[Value]) -> None:
        super().__init__(cls)
        self.made_with = args
        self.initialized_with: list[Value] | None = None
        self.args: Value = TupleValue(args)
        self.cause: Value = _NONE
        self.context: Value | None = None
        self.suppress_context = False
        self.origin: tuple[types.CodeType, int] | None = None
        self.problem: Break | None = None
        self.traceback: object = None  # another one whenever CPython adds to ``__traceback__``

    def describe(self) -> str:
        return f"an exception of class {self.cls.__qualname__}"

    def children(self) -> tuple[Value, ...]:
        linked = () if self.context is None else (self.context,)
        return (*self.made_with, self.args, self.cause, *linked, *self.written.values())

    def initialize(self, args: list[Value]) -> None:
        """``BaseException.__init__``."""
        self.initialized_with = args
        self.args = TupleValue(args)

    # -- attributes ---------------------------------------------------------------------------
    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "args":
            return self.args
        if name == "__cause__":
            return self.cause
        if name == "__suppress_context__":
            return ConstValue(self.suppress_context)
        if name == "__context__" and (self.context is not None or self.origin is None):
            return self.context or _NONE
        if name == "__traceback__":
            return _NONE if self.origin is None else TracebackValue(self)
        if name == _FIRST_ARGUMENT.get(builtin_base(self.cls)) and name not in self.written:
            given = self.initialized_with or []
            return given[0] if len(given) == 1 else TupleValue(given) if given else _NONE
        if name == "__init__" and not isinstance(initializer(self.cls), types.FunctionType):
            return ExceptionInitValue(self)
        if name == "add_note" and getattr(self.cls, name) is BaseException.add_note:
            return AddNoteValue(self, name)
        return super().getattr(tracer, name)

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        value = tracer.realize(value)
        if name == "args":
            self.args = TupleValue(value.items(tracer))
        elif name == "__cause__" and _is_exception_or_none(value):
            self.set_cause(value)
        elif name == "__traceback__" and isinstance(value, TracebackValue) and value.exception is self:
            pass  # what contextlib does: the traceback that it has already
        elif name == "__suppress_context__" and value.is_const and type(value.const) is bool:
            self.suppress_context = value.const
        else:
            self._set_own(tracer, name, value)

    def _set_own(self, tracer: Tracer, name: str, value: Value) -> None:
        plain = self.cls.__setattr__ in (BaseException.__setattr__, object.__setattr__)
        found = inspect.getattr_static(self.cls, name, _MISSING)
        if not plain or hasattr(type(found), "__set__") or name.startswith("__"):
            raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {self.describe()}")
        self.written[name] = value
        self.mutated = True

    def set_cause(self, cause: Value) -> None:
        self.cause = cause
        self.suppress_context = True

    # -- rebuilding ---------------------------------------------------------------------------
    def reconstruct(self, cg: Codegen) -> str:
        if self.origin is not None:
            cg.tracer.leave_raise_to_python(self)
        new = cg.constant(self.cls.__new__)
        given = "".join(f", {cg.value(a)}" for a in self.made_with)
        name: str = cg.temporary(f"{new}({cg.constant(self.cls)}{given})")
        cg.remember(self, name)
        if self.initialized_with is not None:
            init = cg.constant(initializer(builtin_base(self.cls)))
            again = "".join(f", {cg.value(a)}" for a in self.initialized_with)
            cg.line(f"{init}({name}{again})")
        cg.line(f"{name}.args = {cg.value(self.args)}")
        for line in self.replay(cg):
            cg.line(line)
        if self.cause is not _NONE:
            cg.line(f"{name}.__cause__ = {cg.value(self.cause)}")
        if self.suppress_context:
            cg.line(f"{name}.__suppress_context__ = True")
        return name


def _is_exception_or_none(value: Value) -> bool:
    return isinstance(value, ExceptionValue) or (value.is_const and value.const is None)


class ExceptionInitValue(Value):
    """The bound ``__init__`` of an exception's builtin base class."""

    def __init__(self, owner: ExceptionValue) -> None:
        self.owner = owner

    @property
    def pytype(self) -> type:
        return types.MethodWrapperType

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        base = builtin_base(self.owner.cls)
        if kwargs or (issubclass(base, OSError) and len(args) > 1):
            raise Break("unsupported-call", f"{base.__name__}.__init__ with these arguments")
        self.owner.initialize(args)
        return _NONE

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.owner)}.__init__"


class AddNoteValue(NamedMethodValue):
    """``exception.add_note``, not yet called."""

    owner: ExceptionValue

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        if kwargs or len(args) != 1 or args[0].pytype is not str:
            raise Break("would-raise", "add_note() of what is no string")
        notes = self.owner.written.get("__notes__")
        if notes is None:
            notes = self.owner.written["__notes__"] = ListValue([])
            self.owner.mutated = True
        if not isinstance(notes, ListValue):
            raise Break("unsupported-call", f"add_note() of {self.owner.describe()}")
        found: Value = tracer.call_value(notes.getattr(tracer, "append"), args, {})
        return found


class TracebackValue(Value):
    """The traceback of an exception raised in the frame: it can be passed on inside, and exists for real only
    where the raise was left to plain Python."""

    def __init__(self, exception: ExceptionValue) -> None:
        self.exception = exception

    @property
    def pytype(self) -> type:
        return types.TracebackType

    def truth(self, tracer: Tracer) -> bool:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        cg.tracer.leave_raise_to_python(self.exception)
        raise AssertionError("unreachable")


class LastInstructionValue(Value):
    """The mark that a handler finds below the exception (the address of what raised)."""

    @property
    def pytype(self) -> type:
        return int
