"""Array values: a frontend's reference to a graph value, seen as a Python object."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import numpy as np

from ...dtypes import bool_
from ...frontends.base import ArrayRef, Called, part_shown
from ...prims.layout import has_c_order, has_f_order
from ...symbolic.integers import Dim, is_unbacked, same
from ..arrays.constant_elements import number_of
from ..breaks import Break, Skip
from ..effects import defer
from ..guards.guard import Kind
from ..guards.source import AttrSource, Source
from .base import Codegen, NamedMethodValue, Tracer, Value
from .func import BoundMethodValue
from .iterator import ArrayIterator
from .number import ConstValue
from .seq import SliceValue, TupleValue

_KINDS = {
    "array": "an array",
    "scalar": "an array scalar",
    "python": "a number from an array",
    "masked": "what a boolean mask selects of an array",
}
_FLAGS = {
    "contiguous": "c_contiguous",
    "fortran": "f_contiguous",
    "WRITEABLE": "writeable",
    "W": "writeable",
    "C_CONTIGUOUS": "c_contiguous",
    "C": "c_contiguous",
    "CONTIGUOUS": "c_contiguous",
    "F_CONTIGUOUS": "f_contiguous",
    "F": "f_contiguous",
    "FORTRAN": "f_contiguous",
}


def _only_f_order(shape: Any, strides: Any) -> bool:
    return has_f_order(shape, strides) and not has_c_order(shape, strides)


def _either_order(shape: Any, strides: Any) -> bool:
    return has_f_order(shape, strides) or has_c_order(shape, strides)


_LAYOUTS: dict[str, Callable[[Any, Any], bool]] = {
    "c_contiguous": has_c_order,
    "f_contiguous": has_f_order,
    "fnc": _only_f_order,
    "forc": _either_order,
}


def _is_part(ref: ArrayRef) -> bool:
    """Whether each look at it gives another object: an attribute, not what a call gave."""
    return ref.part is not None and not ref.part[1].endswith("()")


class ArrayValue(Value):
    """An array, an array scalar, or a Python number computed inside the graph (``ref.kind``)."""

    def __init__(self, ref: ArrayRef, pytype: type, source: Source | None = None) -> None:
        self.ref = ref
        self._pytype = pytype
        self.source = source
        self.held_at: Source | None = None  # where its memory is found, if not at the source itself
        self.attributes: dict[str, Value] = {}  # that the frame assigned
        self.symbol: Dim | None = None  # of a Python int that a size or an index is made of

    @property
    def pytype(self) -> type:
        return self._pytype

    def children(self) -> tuple[Value, ...]:
        return tuple(self.attributes.values())

    @property
    def memory_at(self) -> Source | None:
        return self.source if self.held_at is None else self.held_at

    def describe(self) -> str:
        return f"{_KINDS[self.ref.kind]} of type {self.ref.type}"

    def reconstruct(self, cg: Codegen) -> str:
        if self.source is not None:
            return cg.load(self.source)
        if self.ref.kind == "masked":
            return cg.selected(self)
        if self.ref.part is not None and self.ref.var.name not in cg.tracer.builder.spoiled_views:
            base, name = self.ref.part
            return f"{cg.value(cg.tracer.array_value(base))}.{name}"
        cg.tracer.refuse_outside(self.ref)
        return cg.graph_output(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        frontend = tracer.frontend(self.ref)
        found = self._by_rule(tracer, name)
        if found is not None:
            return self._kept(tracer, name) if self._is_kept(tracer, name) else found
        in_python = frontend.python_method(name)
        if in_python is not None:
            return BoundMethodValue(self, tracer.child_or_constant(in_python, None))
        method = frontend.find_method(self.ref, name)
        if method is not None:
            return MethodValue(self, name, method)
        if name == "flags" and frontend.name == "numpy" and self.ref.kind == "array":
            return FlagsValue(self)
        if name == "flat" and frontend.name == "numpy" and self._lies_flat():
            return FlatValue(self)
        self._refuse_missing(tracer, name)
        if self.source is not None and self._takes_attribute(name):
            return self._kept(tracer, name)  # the program's, in the object's dict
        raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")

    def _by_rule(self, tracer: Tracer, name: str) -> Value | None:
        rule = tracer.frontend(self.ref).find_attribute(self.ref, name)
        if rule is None:
            return None
        called = Called("attribute", name)
        what = f"attribute {name!r} of {self.describe()}"
        return tracer.apply_rule(rule, [self], {}, what, tracer.frontend(self.ref), called)

    def _is_kept(self, tracer: Tracer, name: str) -> bool:
        return self.source is not None and tracer.frontend(self.ref).keeps(name)

    def _kept(self, tracer: Tracer, name: str) -> Value:
        """What an array from outside keeps as an attribute: an array, or ``None``."""
        assert self.source is not None
        found = getattr(tracer.input_objects[self.ref.var.name], name)
        return tracer.realize(tracer.child(found, AttrSource(self.source, name)))

    def _keep(self, tracer: Tracer, name: str, value: Value) -> None:
        is_none = value.is_const and value.const is None
        if not is_none and not self._may_keep(value):
            raise Break("unsupported-attribute", f"{value.describe()} as attribute {name!r}")
        self._by_rule(tracer, name)  # refuses what has no such attribute
        self.attributes[name] = value
        self.mutated = True
        tracer.note_mutation(self)

    def _may_keep(self, value: Value) -> bool:
        """Whether the library takes an array for an attribute of this one: it is of the same kind."""
        if not isinstance(value, ArrayValue) or value is self:
            return False
        mine, other = self.ref, value.ref
        alike = mine.dtype == other.dtype and len(mine.shape) == len(other.shape)
        alike = alike and all(map(same, mine.shape, other.shape)) and mine.host == other.host
        return alike and other.kind == "array" and not _is_part(other) and other.frontend == mine.frontend

    def replay(self, cg: Codegen) -> list[str]:
        target = cg.value(self)
        kept = [name for name in self.attributes if cg.tracer.frontend(self.ref).keeps(name)]
        return [f"{target}.{name} = {cg.value(self.attributes[name])}" for name in kept]

    def _lies_flat(self) -> bool:
        return self.ref.kind == "array" and self.ref.part is None and self.ref.type.is_contiguous

    def _refuse_missing(self, tracer: Tracer, name: str) -> None:
        """Raise ``AttributeError`` where neither the class nor the object has the attribute."""
        if hasattr(self.pytype, name) or hasattr(self.pytype, "__getattr__"):
            return
        if self.source is not None:
            if hasattr(tracer.input_objects.get(self.ref.var.name), name):
                return
            tracer.guard(self.source, Kind.NOATTR, name)
        tracer.lacks_attribute(self, name)

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        if self._is_kept(tracer, name):
            self._keep(tracer, name, tracer.realize(value))
            return
        setter = tracer.frontend(self.ref).find_method(self.ref, f"{name}=")
        if setter is not None:
            what = f"assignment to {name!r} of {self.describe()}"
            called = Called("attribute", f"{name}=")
            tracer.apply_rule(setter, [self, value], {}, what, tracer.frontend(self.ref), called)
            return
        if not self._takes_attribute(name) or not value.is_const:
            raise Break("unsupported-attribute", f"assignment to attribute {name!r} of {self.describe()}")
        self.attributes[name] = value
        defer(tracer, setattr, [self, ConstValue(name), value], {})

    def _takes_attribute(self, name: str) -> bool:
        """Whether the object has a dict for it, and no class that has its say."""
        if self.ref.frontend == "numpy" or self.ref.kind != "array" or _is_part(self.ref):
            return False
        plain = self.pytype.__setattr__ is object.__setattr__ and self.pytype.__dictoffset__ != 0
        return plain and getattr_static(self.pytype, name, None) is None

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        return tracer.operator("getitem", [self, key])

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        tracer.operator("setitem", [self, key, value])

    def truth(self, tracer: Tracer) -> bool:
        ref = self.ref
        if ref.kind != "masked" and all(isinstance(n, int) and n == 1 for n in ref.shape):
            number = number_of(tracer, ref.var, relying=True)
            if number is not None:
                return bool(number)
        raise Break("data-dependent-branch", f"a branch on {self.describe()}")

    def length(self, tracer: Tracer) -> Value:
        if self.ref.ndim == 0:
            raise Break("would-raise", "len() of an array without dimensions")
        rule = tracer.frontend(self.ref).find_method(self.ref, "__len__")
        if self.ref.kind == "masked" and rule is not None:
            what, called = f"len() of {self.describe()}", Called("method", "__len__")
            return tracer.apply_rule(rule, [self], {}, what, tracer.frontend(self.ref), called)
        return tracer.wrap_result(self.ref.shape[0])

    def items(self, tracer: Tracer) -> list[Value]:
        self._settle_size(tracer)
        if self.ref.ndim == 0:
            raise Break("would-raise", "iteration over an array without dimensions")
        count = int(self.ref.shape[0])
        if count > tracer.config.options.unroll_ops:
            raise Break("unsupported-operation", f"unpacking of {count} rows")
        return [self.getitem(tracer, ConstValue(i)) for i in range(count)]

    def iterate(self, tracer: Tracer) -> Value:
        self._settle_size(tracer)
        if self.ref.ndim == 0:
            raise Break("would-raise", "iteration over an array without dimensions")
        return ArrayIterator(self)

    def _settle_size(self, tracer: Tracer) -> None:
        if self.ref.kind == "masked":
            tracer.select(self)

    def contains(self, tracer: Tracer, item: Value) -> Value:
        """As NumPy has it: whether any element equals ``item``."""
        known = tracer.realize(item)
        is_number = isinstance(known, ArrayValue) or type(getattr(known, "const", None)) in (int, float, bool)
        if self.ref.frontend != "numpy" or self.ref.kind != "array" or not is_number:
            raise Break("data-dependent-value", f"membership test in {self.describe()}")
        equal = tracer.binary("==", self, known)
        if not isinstance(equal, ArrayValue) or equal.ref.dtype != bool_:
            raise Break("data-dependent-value", f"membership test in {self.describe()}")
        found = tracer.builder.emit("reduce_any", equal.ref.var, axes=tuple(range(equal.ref.ndim)))
        return tracer.array_value(ArrayRef(found, "python", self.ref.frontend))

    def for_rule(self, tracer: Tracer) -> Any:
        return self.ref if self.symbol is None else self.symbol


class MethodValue(NamedMethodValue):
    """A method of an array, bound and not yet called."""

    def __init__(self, owner: ArrayValue, name: str, rule: Callable[..., Any]) -> None:
        super().__init__(owner, name)
        self.array = owner
        self.rule = rule

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        called, frontend = Called("method", self.name), tracer.frontend(self.array.ref)
        return tracer.apply_rule(self.rule, [self.owner, *args], kwargs, self.describe(), frontend, called)


class FlagsValue(Value):
    """``array.flags`` of NumPy: what guards and types say of it."""

    def __init__(self, owner: ArrayValue) -> None:
        self.owner = owner

    @property
    def pytype(self) -> type:
        return type(np.empty(0).flags)

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.value(self.owner)}.flags"

    def getattr(self, tracer: Tracer, name: str) -> Value:
        ref = self.owner.ref
        name = _FLAGS.get(name, name)
        known = (
            part_shown(tracer.builder, ref.var) is None
        )  # else the graph has a copy, laid out in another way
        if name == "writeable" and (known or ref.part is not None):
            while ref.part is not None:
                ref = ref.part[0]
            return ConstValue(not ref.readonly or ref.writeable_outside)
        check = _LAYOUTS.get(name)
        if check is not None and known and not any(map(is_unbacked, (*ref.shape, *ref.strides))):
            return ConstValue(bool(check(ref.shape, ref.strides)))
        raise Break("unsupported-attribute", f"flag {name!r} of {self.owner.describe()}")

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        name = tracer.constant_of(key, "the name of a flag")
        if not isinstance(name, str) or not (name.isupper() and name in _FLAGS):
            raise Break("unsupported-operation", f"flag {name!r} of {self.owner.describe()}")
        return self.getattr(tracer, name)


class FlatValue(Value):
    """``array.flat`` of NumPy, of an array in C order, whose elements in one dimension are a view."""

    def __init__(self, owner: ArrayValue) -> None:
        self.owner = owner
        self.is_stepped = False  # it is an iterator itself, which knows how far it came

    @property
    def pytype(self) -> type:
        return np.flatiter

    def children(self) -> tuple[Value, ...]:
        return (self.owner,)

    def describe(self) -> str:
        return f"the flat iterator of {self.owner.describe()}"

    def reconstruct(self, cg: Codegen) -> str:
        if self.is_stepped:
            raise Skip("a flat iterator that was stepped is kept")
        return f"{cg.value(self.owner)}.flat"

    def _row(self, tracer: Tracer) -> Value:
        return self.owner.getattr(tracer, "reshape").call(tracer, [ConstValue(-1)], {})

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        if key.is_const and isinstance(key.const, (bool, np.bool_)):
            raise Break("unsupported-operation", f"index {key.const} of {self.describe()}")
        found = self._row(tracer).getitem(tracer, key)
        if isinstance(key, (SliceValue, TupleValue)) or (
            key.is_const and (key.const is Ellipsis or key.const == ())
        ):
            return found.getattr(tracer, "copy").call(tracer, [], {})
        return found

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        known = tracer.realize(value)
        one = isinstance(known, ArrayValue) and known.ref.ndim == 0
        if not one and not (known.is_const and isinstance(known.const, (int, float, complex))):
            raise Break("unsupported-operation", f"several values for {self.describe()}")
        self._row(tracer).setitem(tracer, key, known)

    def length(self, tracer: Tracer) -> Value:
        return self._row(tracer).length(tracer)

    def items(self, tracer: Tracer) -> list[Value]:
        self._step()
        return self._row(tracer).items(tracer)

    def iterate(self, tracer: Tracer) -> Value:
        self._step()
        return self._row(tracer).iterate(tracer)

    def _step(self) -> None:
        if self.is_stepped:
            raise Break("unsupported-operation", f"{self.describe()} is stepped twice")
        self.is_stepped = True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "base":
            return self.owner
        if name == "copy":
            return self._row(tracer).getattr(tracer, name)
        raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")
