"""Exceptions executed symbolically: raising, the handled exception, and leaving a raise to plain Python.

A raise is executed symbolically only where some frame of the trace has a handler around its current
instruction. Otherwise, and wherever the exception object or its being handled would be seen outside of the
captured part (it leaves the root frame; the graph breaks while it is handled; it is stored or returned), the
instruction that raises is a graph break: then it happens in plain Python with its own traceback.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NoReturn

from ...faults import is_fault
from ...signals import is_from_handler
from .. import frames
from ..breaks import Break
from ..calls.folding import is_computed, pure_operand, python_call
from ..guards.source import ConstSource, TypeAttrSource
from ..objects.class_names import module_of, qualname_of
from ..values.base import Frame, Resumption, Tracer, Value
from ..values.exception import (
    ExceptionInitValue,
    ExceptionValue,
    builtin_base,
    initializer,
    is_traceable_class,
)
from ..values.generator import GeneratorValue
from ..values.group import GroupValue, is_group_class, new_group
from ..values.number import ConstValue
from ..values.obj import InstanceValue

_NONE = ConstValue(None)


class Raised(Exception):  # noqa: N818 - it is not an error of dyncomp's
    """The traced program raises ``value``; caught by the machine."""

    def __init__(self, value: ExceptionValue) -> None:
        super().__init__()
        self.value = value


# -- raising ----------------------------------------------------------------------------------------
def is_caught(tracer: Tracer) -> bool:
    """Whether a handler of some frame, or an operation under way, would see an exception raised now."""
    return tracer.catching > 0 or any(frame.info.in_try[frame.current] for frame in tracer.frames)


def raise_exception(tracer: Tracer, cls: type[BaseException], *args: object) -> NoReturn:
    """The traced operation raises ``cls(*args)`` in plain Python, exactly."""
    shown = ", ".join(str(a) for a in args if not isinstance(a, Value))
    problem = Break("would-raise", f"{cls.__name__}: {shown:.200}")
    value = ExceptionValue(cls, [a if isinstance(a, Value) else tracer.wrap_result(a) for a in args])
    value.initialize(value.made_with)
    raise_value(tracer, value, problem)


def raise_like(tracer: Tracer, function: Callable[..., Any], *args: object) -> NoReturn:
    """Raise what ``function(*args)`` raises: an operation that fails in the same way as the traced one."""
    try:
        function(*args)
    except Exception as error:
        if is_from_handler(error):
            raise
        raise_known(tracer, error)
    raise AssertionError("nothing was raised")


def break_for(tracer: Tracer, error: Exception, what: str) -> Break:
    """What a rule raised, as a break: plain Python will raise it. A fault of the rule is told."""
    if is_from_handler(error):
        raise error
    if is_fault(error):
        tracer.config.note_fault(f"{what} runs as plain Python", error)
    return Break("would-raise", f"{what}: {type(error).__name__}: {error}")


def raise_known(tracer: Tracer, error: BaseException) -> NoReturn:
    """Raise what an operation on the same constants raised; breaks where it cannot be described."""
    cls = type(error)
    simple = is_traceable_class(cls) and error.__cause__ is None and builtin_base(cls) is cls
    if simple and not issubclass(cls, OSError) and all(_is_plain_constant(a) for a in error.args):
        raise_exception(tracer, cls, *error.args)
    raise Break("would-raise", f"{cls.__name__}: {error}") from None


def raise_stop_iteration(tracer: Tracer, iterator: Value) -> NoReturn:
    """Raise what ``next`` of an iterator that has just ended raises."""
    value = iterator.returned if isinstance(iterator, GeneratorValue) else _NONE
    given = [] if value.is_const and value.const is None else [value]
    raise_exception(tracer, StopIteration, *given)


def _is_plain_constant(obj: object) -> bool:
    if type(obj) is tuple:
        return all(_is_plain_constant(item) for item in obj)
    return type(obj) in (int, float, complex, bool, str, bytes, type(None))


def raise_value(tracer: Tracer, value: ExceptionValue, problem: Break) -> NoReturn:
    """Raise an exception object as ``raise value`` does; ``problem`` is the break where nobody catches it."""
    if not is_caught(tracer):
        raise problem
    mark_origin(tracer, value, problem)
    raise Raised(value)


def mark_origin(tracer: Tracer, value: ExceptionValue, problem: Break) -> None:
    """``value`` is about to be raised by this instruction, which ``problem`` would leave to plain Python."""
    _link_context(value, handled(tracer))
    value.traceback = object()
    if value.origin is None:
        frame = tracer.frames[-1]
        value.origin = (frame.raw_code, frame.current)
        value.problem = problem


def handled(tracer: Tracer) -> ExceptionValue | None:
    """The exception that ``sys.exc_info()`` gives; ``None``: whatever was handled outside of the trace."""
    for frame in reversed(tracer.frames):
        if frame.handling is not None:
            found: ExceptionValue = frame.handling
            return found
    return None


def _link_context(value: ExceptionValue, context: ExceptionValue | None) -> None:
    """``__context__`` as CPython sets it, without making a cycle."""
    if context is None or context is value:
        return
    link: Value | None = context
    while isinstance(link, ExceptionValue):
        if link.context is value:
            link.context = _NONE
            break
        link = link.context
    value.context = context


def unless_raised(
    tracer: Tracer,
    cls: type[BaseException] | tuple[type[BaseException], ...],
    operation: Callable[[], Value | None],
) -> Value | None:
    """What an operation gives, ``None`` where it raises ``cls`` (as ``hasattr`` and ``for`` catch it)."""
    return result_or_exception(tracer, cls, operation)[0]


def result_or_exception(
    tracer: Tracer,
    cls: type[BaseException] | tuple[type[BaseException], ...],
    operation: Callable[[], Value | None],
) -> tuple[Value | None, ExceptionValue | None]:
    """What an operation gives, or the ``cls`` that it raises."""
    tracer.catching += 1
    try:
        return operation(), None
    except Raised as raised:
        if not issubclass(raised.value.cls, cls):
            raise
        return None, raised.value
    finally:
        tracer.catching -= 1


# -- the raise statement ------------------------------------------------------------------------------
def raise_statement(tracer: Tracer, operands: list[Value]) -> NoReturn:
    """``raise``, ``raise exc`` and ``raise exc from cause``."""
    problem = Break("raise", f"the program raises {_text_of(operands)}")
    if not is_caught(tracer):
        raise problem
    if not operands:
        current = handled(tracer)
        if current is None:
            raise problem
        raise Raised(current)
    made = [_instance(tracer, v, position) for position, v in enumerate(operands)]
    value = made[0]
    assert isinstance(value, ExceptionValue)
    if len(made) > 1:
        value.set_cause(made[1])
    raise_value(tracer, value, problem)


def _text_of(operands: list[Value]) -> str:
    """An exception and its message, where that is a constant."""
    value = operands[0] if operands else None
    if not isinstance(value, ExceptionValue) or len(value.made_with) != 1 or not value.made_with[0].is_const:
        return "an exception"
    return f"{value.cls.__qualname__}: {value.made_with[0].const}"


def instance_of(tracer: Tracer, operand: Value) -> ExceptionValue:
    """The exception that ``raise operand`` raises."""
    found = _instance(tracer, operand, 0)
    assert isinstance(found, ExceptionValue)
    return found


def _instance(tracer: Tracer, value: Value, position: int) -> Value:
    if value.is_const and isinstance(value.const, type) and issubclass(value.const, BaseException):
        value = tracer.call_value(value, [], {})
    if isinstance(value, ExceptionValue) or (position and value.is_const and value.const is None):
        return value
    if value.is_const or isinstance(value, InstanceValue):
        what = "exception causes must derive" if position else "exceptions must derive"
        raise_exception(tracer, TypeError, f"{what} from BaseException")
    raise Break("raise", f"the program raises {value.describe()}")


# -- leaving it to plain Python -------------------------------------------------------------------------
def leave_to_python(tracer: Tracer, value: ExceptionValue) -> NoReturn:
    """Begin the capture again with a graph break at the instruction that raised ``value``."""
    assert value.origin is not None and value.problem is not None
    value.problem.forget_frames()
    tracer.decisions.breaks[value.origin] = value.problem
    raise tracer.restart from None


def refuse_while_handling(tracer: Tracer) -> None:
    """Before the capture ends inside of handlers: what they handle must have been raised for real."""
    for frame in tracer.frames:
        if frame.handling is not None:
            leave_to_python(tracer, frame.handling)


# -- making exception objects ---------------------------------------------------------------------------
def construct(
    tracer: Tracer, cls: type, args: list[Value], kwargs: dict[str, Value], direct: Frame | Resumption | None
) -> ExceptionValue:
    """A call of an exception class; a Python ``__init__`` is inlined."""
    if is_group_class(cls):
        value: ExceptionValue = new_group(tracer, cls, args)
    elif is_traceable_class(cls):
        value = ExceptionValue(cls, args)
    else:
        raise Break("unsupported-call", f"construction of {module_of(cls)}.{qualname_of(cls)}")
    init = initializer(cls)
    tracer.rely_on(cls)
    if not isinstance(init, types.FunctionType):
        if kwargs or init is not initializer(builtin_base(cls)):
            raise Break("unsupported-call", f"construction of {cls.__qualname__}")
        ExceptionInitValue(value).call(tracer, args, {})
        return value
    if not tracer.config.is_inlinable(module_of(cls)):
        raise Break("unsupported-call", f"construction of {module_of(cls)}.{qualname_of(cls)}")
    source = TypeAttrSource(ConstSource(cls, qualname_of(cls)), "__init__")
    function = tracer.child_or_constant(init, source)
    if isinstance(direct, frames.Frame):
        tracer.call_direct(frames.Resumption(direct, value), function, [value, *args], kwargs)
    else:
        tracer.call_value(function, [value, *args], kwargs)
    return value


# -- what handlers ask ----------------------------------------------------------------------------------
def matches(tracer: Tracer, value: ExceptionValue, wanted: Value) -> bool:
    """``except wanted:``; subclass hooks are not asked, as in CPython."""
    given = tracer.constant_of(wanted, "an exception class")
    classes = given if type(given) is tuple else (given,)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            text = "catching classes that do not inherit from BaseException is not allowed"
            raise_exception(tracer, TypeError, text)
    tracer.rely_on(value.cls)
    return any(cls in value.cls.__mro__ for cls in classes)


def text_of(tracer: Tracer, value: ExceptionValue, name: str) -> Value:
    """``str(value)`` (``name`` is ``__str__``) or ``repr(value)``."""
    method = getattr(value.cls, name)
    if isinstance(method, types.FunctionType):
        return tracer.call_value(value.getattr(tracer, name), [], {})
    if name == "__str__" and isinstance(value.cls.__repr__, types.FunctionType) and method is object.__str__:
        return text_of(tracer, value, "__repr__")
    if isinstance(value, GroupValue) and method is BaseExceptionGroup.__str__:
        return ConstValue(value.text())
    args = value.args.items(tracer)
    text = _Text(builtin_base(value.cls), value.cls.__name__ if name == "__repr__" else "")
    if any(is_computed(arg) for arg in args) and all(pure_operand(arg) for arg in args):
        return python_call(tracer, text, args)
    if not all(arg.is_const and _is_plain_constant(arg.const) for arg in args):
        raise Break("unsupported-operation", f"the text of {value.describe()}")
    return ConstValue(text(*(arg.const for arg in args)))


class _Text:
    """``str`` of an exception of builtin class ``base`` with given arguments, or ``repr`` under ``name``."""

    def __init__(self, base: type, name: str) -> None:
        self.base = base
        self.name = name
        self.__name__ = "text_of_exception"

    def __call__(self, *args: object) -> str:
        if not self.name:
            return str(self.base(*args))
        return f"{self.name}({args[0]!r})" if len(args) == 1 else f"{self.name}{args!r}"


def formatted(tracer: Tracer, value: ExceptionValue, spec: Value) -> Value:
    """The text of an exception in an f-string."""
    empty = spec.is_const and spec.const == ""
    if not empty or value.cls.__format__ is not object.__format__:
        raise Break("unsupported-operation", f"formatting of {value.describe()}")
    return text_of(tracer, value, "__str__")


def generator_exception(tracer: Tracer, value: ExceptionValue) -> ExceptionValue:
    """What leaves a generator that raises ``value``: ``StopIteration`` becomes ``RuntimeError``."""
    if not issubclass(value.cls, StopIteration):
        return value
    made = ExceptionValue(RuntimeError, [tracer.wrap_result("generator raised StopIteration")])
    made.initialize(made.made_with)
    made.set_cause(value)
    made.context = value
    made.origin, made.problem = value.origin, value.problem
    return made
