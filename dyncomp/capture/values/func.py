"""Python functions, bound methods, cells, and ``super()``."""

from __future__ import annotations

import types
from typing import Any

from ..breaks import Break
from ..source import Source
from .base import Codegen, Tracer, Value


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
        return f"{cg.constant(types.CellType)}({cg.value(self.contents)})"

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

    @property
    def pytype(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"function {self.code.co_qualname}"

    def children(self) -> tuple[Value, ...]:
        given = (self.defaults, self.kwdefaults, self.annotations)
        return tuple(v for v in given if v is not None) + tuple(self.closure)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_function(self, args, kwargs)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in ("__name__", "__qualname__"):
            field = {"__name__": self.code.co_name, "__qualname__": self.code.co_qualname}[name]
            return tracer.wrap_result(field)
        raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")

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
        return name


def annotations_of(pairs: Any) -> dict[str, Any]:
    """``MAKE_FUNCTION``'s annotations (a flat tuple of names and values) as a dict."""
    if isinstance(pairs, dict):
        return pairs
    return dict(zip(pairs[::2], pairs[1::2]))


class BoundMethodValue(Value):
    """A Python function bound to its first argument."""

    def __init__(self, owner: Value, function: Value, source: Source | None = None) -> None:
        self.owner = owner
        self.function = function
        self.source = source

    @property
    def pytype(self) -> type:
        return types.MethodType

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
        if name == "__func__":
            return self.function
        return self.function.getattr(tracer, name)

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        return f"{cg.constant(types.MethodType)}({cg.value(self.function)}, {cg.value(self.owner)})"


class BuiltinMethodValue(Value):
    """A method of a traced container or constant (``list.append``), bound and not yet called."""

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    @property
    def pytype(self) -> type:
        return types.BuiltinMethodType

    def describe(self) -> str:
        return f"method {self.name!r} of {self.owner.describe()}"

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_container_method(self.owner, self.name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        owner = cg.value(self.owner)
        return f"{owner if owner.isidentifier() else f'({owner})'}.{self.name}"


class PartialValue(Value):
    """``functools.partial`` made in the frame or found outside."""

    def __init__(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], source: Source | None
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.source = source

    @property
    def pytype(self) -> type:
        import functools

        return functools.partial

    def children(self) -> tuple[Value, ...]:
        return (self.function, *self.args, *self.kwargs.values())

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_value(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        parts = [cg.value(self.function), *(cg.value(a) for a in self.args)]
        parts += [f"{k}={cg.value(v)}" for k, v in self.kwargs.items()]
        return f"{cg.constant(self.pytype)}({', '.join(parts)})"


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


class InitOfObjectValue(Value):
    """``super().__init__`` where that is ``object``'s, which does nothing."""

    def __init__(self, found_by: SuperValue) -> None:
        self.found_by = found_by

    @property
    def pytype(self) -> type:
        import types

        return types.MethodWrapperType

    def children(self) -> tuple[Value, ...]:
        return (self.found_by,)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args or kwargs:
            raise Break("would-raise", "arguments for object.__init__")
        none: Value = tracer.wrap_result(None)
        return none

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.found_by)}.__init__"
