"""Python functions, bound methods, cells, and ``super()``."""

from __future__ import annotations

import types
from typing import Any

from ..breaks import Break
from ..guards.source import Source
from ..objects.class_names import class_dict
from .base import Codegen, NamedMethodValue, Tracer, Value


class CellValue(Value):
    """A closure cell. ``contents`` is ``None`` while it is empty. A cell from outside (``source``) is
    written back when it was assigned."""

    def __init__(self, name: str, contents: Value | None, source: Source | None = None) -> None:
        self.name = name
        self.contents = contents
        self.source = source
        self.mutated = False

    @property
    def pytype(self) -> type:
        return types.CellType

    def children(self) -> tuple[Value, ...]:
        return (self.contents,) if self.contents is not None else ()

    def store(self, tracer: Tracer, value: Value | None) -> None:
        self.contents = value
        self.mutated = True
        tracer.note_mutation(self)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.cell_object(self)
        if self.contents is None:
            return f"{cg.constant(types.CellType)}()"
        if isinstance(self.contents, NestedFunctionValue):
            return self._filled_later(cg, self.contents)
        return f"{cg.constant(types.CellType)}({cg.value(self.contents)})"

    def _filled_later(self, cg: Codegen, function: Value) -> str:
        """A cell of a function that may refer to itself by it."""
        name: str = cg.temporary(f"{cg.constant(types.CellType)}()")
        cg.remember(self, name)
        cg.line(f"{name}.cell_contents = {cg.value(function)}")
        return name

    def replay(self, cg: Codegen) -> list[str]:
        target = cg.cell_object(self)
        if self.contents is None:
            return [f"del {target}.cell_contents"]
        return [f"{target}.cell_contents = {cg.value(self.contents)}"]


class FunctionValue(Value):
    """A Python function that exists outside of the frame."""

    def __init__(self, function: types.FunctionType, source: Source) -> None:
        self.function = function
        self.source = source

    @property
    def pytype(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"function {self.function.__qualname__}"

    def reconstruct(self, cg: Codegen) -> str:
        assert self.source is not None
        return cg.load(self.source)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_function(self, args, kwargs)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.function_attribute(self, name)

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        tracer.set_function_attribute(self, name, value)

    def delattr(self, tracer: Tracer, name: str) -> None:
        tracer.set_function_attribute(self, name, None)


class NestedFunctionValue(Value):
    """A function made in the frame by ``def`` or ``lambda``."""

    def __init__(
        self,
        code: types.CodeType,
        globals_of: Any,
        defaults: Value | None,
        kwdefaults: Value | None,
        annotations: Value | None,
        closure: list[CellValue],
    ) -> None:
        self.code = code
        self.globals_of = globals_of
        self.defaults = defaults
        self.kwdefaults = kwdefaults
        self.annotations = annotations
        self.closure = closure
        self.written: dict[str, Value] = {}

    @property
    def pytype(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"function {self.code.co_qualname}"

    def children(self) -> tuple[Value, ...]:
        given = (self.defaults, self.kwdefaults, self.annotations, *self.written.values())
        return tuple(v for v in given if v is not None) + tuple(self.closure)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_function(self, args, kwargs)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in self.written:
            return self.written[name]
        if name in ("__name__", "__qualname__"):
            return tracer.wrap_result(getattr(self.code, f"co_{name.strip('_')}"))
        if name == "__doc__":
            return tracer.wrap_result(docstring(self.code))
        if name == "__module__":
            return tracer.wrap_result(self.globals_of[0].get("__name__"))
        given = {"__defaults__": self.defaults, "__kwdefaults__": self.kwdefaults}
        if name in given:
            return given[name] or tracer.wrap_result(None)
        if name == "__get__":
            return FunctionGetValue(self)
        if name == "__code__":
            return tracer.wrap_result(self.code)
        if name == "__class__":
            return tracer.wrap_result(types.FunctionType)
        if name == "__annotations__":
            self.written[name] = tracer.annotations_value(self.annotations)
            return self.written[name]
        if name == "__type_params__" and hasattr(types.FunctionType, name):
            return tracer.wrap_result(())
        if not is_member(types.FunctionType, name):
            raise tracer.raise_exception(AttributeError, f"'function' object has no attribute {name!r}")
        raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")

    def is_field(self, name: str) -> bool:
        """Whether an attribute is a field of functions, not an entry of their ``__dict__``."""
        return name in _NAMES or name in _FIELDS

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        if name in _NAMES and not (value.is_const and type(value.const) is str):
            raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {self.describe()}")
        if name.startswith("__") and not self.is_field(name) and name not in _DUNDERS_IN_DICT:
            raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {self.describe()}")
        if name == "__annotations__" and value.pytype is not dict:
            raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {self.describe()}")
        tracer.steps += 1
        self.written[name] = value

    def delattr(self, tracer: Tracer, name: str) -> None:
        if name not in self.written or name.startswith("__"):
            raise Break("unsupported-attribute", f"deletion of attribute {name!r} of {self.describe()}")
        tracer.steps += 1
        del self.written[name]

    def reconstruct(self, cg: Codegen) -> str:
        closure = ", ".join(cg.value(c) for c in self.closure)
        closure_text = f"({closure},)" if closure else "None"
        defaults = cg.value(self.defaults) if self.defaults is not None else "None"
        make = cg.constant(types.FunctionType)
        place = cg.globals_dict(self.globals_of)
        text = f"{make}({cg.constant(self.code)}, {place}, {self.code.co_name!r}, {defaults}, {closure_text})"
        name = cg.temporary(text)
        if self.kwdefaults is not None:
            cg.line(f"{name}.__kwdefaults__ = {cg.value(self.kwdefaults)}")
        if self.annotations is not None:
            pairs = cg.value(self.annotations)
            cg.line(f"{name}.__annotations__ = {cg.constant(annotations_of)}({pairs})")
        cg.remember(self, name)
        for attribute, value in self.written.items():
            cg.line(f"{name}.{attribute} = {cg.value(value)}")
        return name


_BOUND_IN_C: dict[type, type] = {
    types.MethodDescriptorType: types.BuiltinMethodType,
    types.WrapperDescriptorType: types.MethodWrapperType,
}
_NAMES = ("__name__", "__qualname__", "__module__")
_FIELDS = ("__doc__", "__annotations__", "__type_params__")
_DUNDERS_IN_DICT = ("__wrapped__", "__isabstractmethod__")


# what methods give of their functions, though their type has attributes of these names
_OF_FUNCTION = ("__doc__", "__name__", "__qualname__", "__text_signature__")


def is_member(cls: type, name: str) -> bool:
    """Whether objects of the class find the attribute there; those that all classes have are not theirs."""
    return any(name in class_dict(base) for base in cls.__mro__)


def docstring(code: types.CodeType) -> Any:
    """A function's docstring, as CPython finds it in the constants of its code."""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None


def annotations_of(pairs: Any) -> dict[str, Any]:
    """``MAKE_FUNCTION``'s annotations (a flat tuple of names and values) as a dict."""
    if isinstance(pairs, dict):
        return pairs
    return dict(zip(pairs[::2], pairs[1::2]))


class FunctionGetValue(Value):
    """``function.__get__``, by which descriptors written in Python bind functions."""

    def __init__(self, function: Value) -> None:
        self.function = function

    @property
    def pytype(self) -> type:
        return types.MethodWrapperType

    def children(self) -> tuple[Value, ...]:
        return (self.function,)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        if kwargs or not 1 <= len(args) <= 2:
            raise Break("would-raise", "__get__() with other arguments than an object and a class")
        owner = args[0]
        if not owner.is_const or owner.const is not None:
            return BoundMethodValue(owner, self.function)
        if len(args) == 1 or (args[1].is_const and args[1].const in (None, type(None))):
            raise Break("unsupported-call", "__get__() for None")
        return self.function

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.function)}.__get__"


class BoundMethodValue(Value):
    """A Python function bound to its first argument."""

    def __init__(self, owner: Value, function: Value, source: Source | None = None) -> None:
        self.owner = owner
        self.function = function
        self.source = source

    @property
    def pytype(self) -> type:
        return _BOUND_IN_C[type(self.function.const)] if self._in_c else types.MethodType

    def describe(self) -> str:
        return f"method {self.function.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.owner, self.function)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tracer, [self.owner, *args], kwargs)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "__self__":
            return self.owner
        if name == "__func__" and not self._in_c:
            return self.function
        if name == "__class__":
            return tracer.wrap_result(self.pytype)
        if name not in _OF_FUNCTION and is_member(self.pytype, name):
            raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
        return self.function.getattr(tracer, name)

    @property
    def _in_c(self) -> bool:
        """Whether the function is a method that a C type defines (``object.__init__``)."""
        return self.function.is_const and type(self.function.const) in _BOUND_IN_C

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        if self._in_c:
            # with the class, without which methods that are told their class crash
            return (
                f"{cg.value(self.function)}.__get__({cg.value(self.owner)}, {cg.constant(self.owner.pytype)})"
            )
        return f"{cg.constant(types.MethodType)}({cg.value(self.function)}, {cg.value(self.owner)})"


class BuiltinMethodValue(NamedMethodValue):
    """A method of a traced container or constant (``list.append``), bound and not yet called."""

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_container_method(self.owner, self.name, args, kwargs)


class SuperValue(Value):
    """``super()`` of a method: looks attributes up behind ``cls`` in the type's resolution order."""

    def __init__(self, cls: type, owner: Value) -> None:
        self.cls = cls
        self.owner = owner

    @property
    def pytype(self) -> type:
        return super

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.super_attribute(self, name)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.constant(super)}({cg.constant(self.cls)}, {cg.value(self.owner)})"
