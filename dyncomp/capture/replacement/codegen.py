"""The function that replaces a captured frame, written as Python source.

It loads what the graph needs, calls the compiled graph, rebuilds the objects that are still needed, replays
effects and returns, or executes the breaking instruction and calls a continuation. Objects of this process
(the graph, continuations, classes) are named ``__k…`` in the source and become constants of the code.

Loading and the graph are all-or-nothing: whatever raises there has had no effect yet, and the original code
then runs instead from the start (``except``), so that exceptions are exactly the original's.
"""

from __future__ import annotations

import builtins
import gc
import inspect
import keyword
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ...device import CPU
from ...frontends.base import ArrayRef, libraries_of
from ...graph.ir import COPY, Var
from ...python_code.instr import CO_VARARGS, CO_VARKEYWORDS, Loc
from ...python_code.transfers import line_loc, transfer_loc
from ...runtime._launch import select
from ...symbolic.integers import SymInt
from ..breaks import Skip
from ..effects import DeferredCall
from ..guards.source import (
    AttrSource,
    BuiltinSource,
    CellContentsSource,
    CellSource,
    ConstSource,
    DictKeySource,
    DictValueSource,
    FreeCellSource,
    GlobalSource,
    GlobalsSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    MappingSource,
    ModuleDictSource,
    ModuleSource,
    PartSource,
    ReferentSource,
    Source,
    TypeAttrSource,
    TypeSource,
)
from ..sizes.unbacked import definition
from ..values.array import ArrayValue
from ..values.base import Frame, Tracer, UnboundValue, Value
from ..values.drawn import Draw
from ..values.func import CellValue
from ..values.number import ComputedValue, ConstValue, SymIntValue, is_late
from ..values.obj import InstanceValue
from .displays import LONG, display_items, end_of_constants, end_of_items, many_constants
from .masked import uncopied

# the text of a stack slot that holds no value
UNBOUND_SLOT = "<unbound>"
# a statement: what nobody needs any more goes here
RELEASE = "__release"
_INLINE = (int, str, bool, type(None), bytes)
_SYMBOL = re.compile(r"\bs\d+\b")
_LONGEST = 1000  # characters of a text in the source; a longer one is a constant by name
_LARGE = 10**30  # longer numbers are constants by name: turning them into text takes long, or is forbidden


def _is_literal(obj: Any) -> bool:
    """Whether the source may say ``repr(obj)``."""
    if type(obj) is int:
        return -_LARGE < obj < _LARGE
    if type(obj) in (str, bytes) and len(obj) > _LONGEST:
        return False
    return type(obj) in _INLINE or (type(obj) is float and obj == obj and abs(obj) != float("inf"))


def _would_be_interned(text: str) -> bool:
    """Whether a code object would replace its constant ``text``, made at run time, by another object."""
    if len(text) > _LONGEST:
        return True  # not worth looking at
    if not text.isascii() or not text.replace("_", "a").isalnum():
        return False
    return sys.intern(text[:1] + text[1:]) is not text  # a copy is interned, so that text stays as it is


class Codegen:
    """Collects the lines of one replacement function."""

    def __init__(self, tracer: Tracer, code: types.CodeType) -> None:
        self.tracer = tracer
        self.code = code
        self.constants: dict[str, Any] = {}
        self._constant_names: dict[int, str] = {}
        self.originals: dict[tuple[type, str], Any] = {}  # the objects that literals in the source stand for
        self.prelude: list[str] = []
        self.body: list[tuple[str, Loc]] = []
        self.own: list[object] = []  # containers among the constants that are no objects of the program
        self.plain: list[tuple[Any, types.CodeType]] = []  # continuations in plain Python, and of what
        self.reads: tuple[Any, list[Source]] | None = None  # the program that reads many values, and which
        self.outputs: list[ArrayValue] = []
        self._memo: dict[int, str] = {}
        self._kept: list[Value] = []
        self.loads: dict[Source, str] = {}
        self._lists: dict[str, str] = {}  # of the keys or values of dicts
        self._symbols: set[str] = set()
        self._building: set[int] = set()
        self._replayed: set[int] = set()
        self._modes_set: set[str] = set()
        self._drawn: list[str] = []
        self._kept_states: dict[str, tuple[int, str]] = {}  # generator -> place in the prelude, statement
        self.kept = ""  # the variable for the states of generators before the first draw
        self.first_draw = 0  # how many statements of the prelude come before it
        self.may_fail_after_draw = False  # whether one of those behind it may raise
        self._count = 0
        self.place = line_loc(code.co_firstlineno)  # what the statements added now stand for
        self.frames: list[Frame] = []  # of the trace where it ended, outermost first
        self.held: set[str] = set()  # names of objects that variables of the program hold until it returns
        self.parameters = _parameter_names(code)
        self._taken = set(self.parameters) | set(code.co_freevars)
        if code.co_freevars:
            self._taken.add(code.co_name)  # in the function around that has them, the name is a local one

    def owner(self) -> Any:
        """How the graph's arrays are read and made; one graph holds arrays of one library."""
        refs = [v.ref for v in (*self.tracer.inputs, *self.outputs) if isinstance(v, ArrayValue)]
        names = libraries_of(refs)
        if len(names) == 2 and self._may_lend():
            names.discard("numpy")
        if len(names) > 1:
            raise Skip(f"arrays of {' and '.join(sorted(names))} in one graph")
        return self.tracer.config.frontend_named(names.pop()).owner if names else None

    def _may_lend(self) -> bool:
        """Whether NumPy's arrays are only read here, by code that NumPy would not warn in: another library's
        graph is given arrays of its own over their memory."""
        tracer, builder = self.tracer, self.tracer.builder
        lent = [v for v in tracer.inputs if isinstance(v, ArrayValue) and is_of_numpy(v)]
        written = {builder.root(node.inputs[0]).name for node in builder.nodes if node.op == COPY}
        return (
            builder.device == CPU
            and not tracer.tx.assumptions & {"numpy-warnings", "numpy-errstate"}
            and all(v.source and v.ref.kind == "array" and v.ref.type.is_contiguous for v in lent)
            and not written.intersection(v.ref.var.name for v in lent)
            and not any(map(is_of_numpy, self.outputs))
        )

    # -- names ----------------------------------------------------------------------------------
    def fresh(self, prefix: str = "t") -> str:
        self._count += 1
        return f"__{prefix}{self._count}"

    def constant(self, obj: object) -> str:
        """An expression for an object that is fixed in the code."""
        if _is_literal(obj) and not (type(obj) is str and _would_be_interned(obj)):
            text = repr(obj)
            if self.originals.setdefault((type(obj), text), obj) is obj:
                return text if not isinstance(obj, (int, float)) or obj >= 0 else f"({text})"
        if type(obj) is str and _would_be_interned(obj):
            return f"{self.own_constant([obj])}[0]"
        name = self._constant_names.get(id(obj))
        if name is None:
            label = getattr(obj, "__name__", type(obj).__name__)
            clean = "".join(c if c.isalnum() else "_" for c in str(label))
            name = f"__k{len(self.constants)}_{clean}"
            self._constant_names[id(obj)] = name
            self.constants[name] = obj
        return name

    def own_constant(self, obj: object) -> str:
        """:meth:`constant` of a container that was made for this function."""
        self.own.append(obj)
        return self.constant(obj)

    def line(self, text: str, transfer: bool = False) -> None:
        """Add a statement. ``transfer``: it calls what carries on the frame itself (see ``transfers``)."""
        self.body.append((text, transfer_loc(self.place) if transfer else self.place))

    def stand_at(self, frame: Frame) -> None:
        """What is added from now on stands for the current instruction of ``frame``."""
        loc = frame.code.instructions[frame.current].loc
        known_in_part = loc.line is not None and None in loc
        self.place = line_loc(frame.loc.line) if known_in_part else loc

    def temporary(self, text: str) -> str:
        """Assign an expression to a fresh name, after the graph."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def remember(self, value: Value, name: str) -> None:
        """``name`` holds the object of ``value`` from here on (objects that contain themselves)."""
        self._memo[id(value)] = name
        self._kept.append(value)

    def is_built(self, value: Value) -> bool:
        """Whether the object of ``value`` exists when the function ends."""
        return id(value) in self._memo

    # -- values -----------------------------------------------------------------------------------
    def value(self, value: Value) -> str:
        """An expression without side effects for the object of ``value``; the same object each time."""
        if isinstance(value, UnboundValue):
            return UNBOUND_SLOT
        known = self._memo.get(id(value))
        if known is not None:
            return known
        if id(value) in self._building:
            raise Skip(f"{value.describe()} contains itself")
        self._building.add(id(value))
        text = value.reconstruct(self)
        self._building.discard(id(value))
        if id(value) in self._memo:
            return self._memo[id(value)]
        if not isinstance(value, (ConstValue, SymIntValue)) and not text.isidentifier():
            text = self.temporary(text)
        self.remember(value, text)
        return text

    def items(self, values: Iterable[Value]) -> str:
        """The expressions for the objects of ``values``, as they stand in a display or as arguments."""
        values = list(values)
        if len(values) < LONG:
            return ", ".join([self.value(value) for value in values])
        texts: list[str] = []
        while len(texts) < len(values):
            texts += self._next_items(values, len(texts))
        return display_items([text for text in texts if text])

    def _next_items(self, values: list[Value], start: int) -> list[str]:
        """The expressions for some values from ``start`` on, as many as they are: of those that one
        expression stands for, all but the first are empty."""
        end = end_of_constants(values, start)
        if end > start:
            objects = many_constants(values[start:end])
            first = None if objects is None else f"*{self.own_constant(objects)}"
        else:
            end = end_of_items(values, start, self.is_built)
            first = self._slice(values[start].source, end - start)
        if first is None:
            return [self.value(value) for value in values[start:end]]
        return [first, *[""] * (end - start - 1)]

    def _slice(self, source: Source | None, count: int) -> str | None:
        """``count`` items from ``source`` on, if they are many and those of a list or tuple itself."""
        if count < LONG or not isinstance(source, ItemSource):
            return None
        owner = self.tracer.by_source.get(source.base)
        if owner is None or owner.pytype not in (list, tuple):
            return None
        name = self.fresh("in")
        self._read(f"{name} = {self.load(source.base)}[{source.key}:{source.key + count}]")
        return f"*{name}"

    def entries(self, entries: Mapping[Any, Value]) -> str:
        """The display of a dict with these keys and values."""
        objects = many_constants(list(entries.values()))
        if objects is not None:
            return f"{{**{self.own_constant(dict(zip(entries, objects)))}}}"
        pairs = [f"{self.constant(key)}: {self.value(value)}" for key, value in entries.items()]
        return f"{{{', '.join(pairs)}}}"

    def graph_output(self, value: ArrayValue) -> str:
        for index, known in enumerate(self.outputs):
            if known is value:
                return f"__g{index}"
        self.outputs.append(value)
        return f"__g{len(self.outputs) - 1}"

    def selected(self, value: ArrayValue) -> str:
        """``full[mask]`` of a masked value: a fresh array, as the program's own subscript gave."""
        ref = value.ref
        assert ref.mask is not None
        full, mask = self._unmasked(ref, ref.var), self._unmasked(ref, ref.mask)
        if ref.frontend != "numpy":
            return f"{full}[{mask}]"
        return f"{self.constant(select)}({full}, {mask})"

    def _unmasked(self, ref: ArrayRef, var: Var) -> str:
        origin = uncopied(self.tracer.builder, var)
        for value in self.tracer.inputs:
            if isinstance(value, ArrayValue) and value.ref.var == origin:
                return self.value(value)
        return self.value(self.tracer.array_value(ArrayRef(origin, "array", ref.frontend)))

    def number(self, value: ComputedValue) -> str:
        """A Python number or text, computed before the graph."""
        known = self._memo.get(id(value))
        if known is None:
            parts = [p if isinstance(p, str) else self._number_part(p) for p in value.parts]
            known = self.fresh("n")
            text = f"{known} = {''.join(parts)}"
            self.may_fail_after_draw |= bool(self._drawn) and len(parts) > 1
            if is_late(self.tracer, value):
                self.line(text)
            else:
                self.prelude.append(text)
            self.remember(value, known)
        return known

    def _number_part(self, part: Value) -> str:
        if isinstance(part, ComputedValue):
            return self.load(part.source) if part.source is not None else self.number(part)
        return part.reconstruct(self)

    def drawn(self, draw: Draw) -> str:
        """What a call draws: it is made after those that come before it in the program."""
        while len(self._drawn) <= draw.number:
            self._make_draw(self.tracer.draws[len(self._drawn)])
        return self._drawn[draw.number]

    def make_all_draws(self) -> None:
        if self.tracer.draws:
            self.drawn(self.tracer.draws[-1])

    def _make_draw(self, draw: Draw) -> None:
        text = draw.text(self)
        self.first_draw = self.first_draw if self._drawn else len(self.prelude)
        if draw.keep is not None:
            self._keep_state(draw.keep, draw.owner_text(self))
        name = self.fresh("d")
        self.prelude.append(f"{name} = {text}")
        self.may_fail_after_draw |= draw.may_fail_late or (bool(self._drawn) and draw.may_raise)
        self._drawn.append(name)

    def _keep_state(self, keep: Callable[[list[Any], Any], None], owner: str) -> None:
        self.kept = self.kept or self.fresh("kept")
        if owner not in self._kept_states:
            text = f"{self.constant(keep)}({self.kept}, {owner})"
            self._kept_states[owner] = (len(self.prelude), text)

    def _read(self, text: str) -> None:
        """Add a statement that only reads: before the first draw, as it may find that things have changed."""
        self.prelude.insert(self.first_draw if self._drawn else len(self.prelude), text)
        if self._drawn:
            self.first_draw += 1
            self._kept_states = {name: (at + 1, keep) for name, (at, keep) in self._kept_states.items()}

    def replace_reads(self, names: Collection[str], text: str) -> None:
        """Put a statement in the place of the first of those that assign to ``names``, which only read; after
        :meth:`keep_states`."""
        gone = [k for k, line in enumerate(self.prelude) if line.partition(" = ")[0] in names]
        self.prelude[gone[0]] = text
        for k in reversed(gone[1:]):
            del self.prelude[k]
        if self._drawn:
            self.first_draw -= len(gone) - 1

    def keep_states(self) -> None:
        """Note the states of generators before the draws, as what is behind these may fail."""
        for place, text in reversed(self._kept_states.values()):
            self.prelude.insert(place, text)

    def symbolic(self, value: Any) -> str:
        """A Python expression for an integer that may be symbolic."""
        if not isinstance(value, SymInt):
            return self.constant(int(value))
        for name in sorted(value.symbols()):
            self._symbol(name)
        text = (
            _SYMBOL.sub(lambda found: self._symbol_name(found[0]), str(value))
            .replace("min(", f"{self.constant(min)}(")
            .replace("max(", f"{self.constant(max)}(")
        )
        return text if text.isidentifier() else f"({text})"

    def _symbol(self, name: str) -> None:
        if name in self._symbols:
            return
        self._symbols.add(name)
        place = self.tracer.places.get(name)
        if place is None:
            self._unbacked(name)
            return
        base = self.number(place.value) if place.source is None else self.load(place.source)
        if place.what == "dim":
            base = f"{base}.shape[{place.axis}]"
        elif place.what == "stride":
            base = f"{self.constant(element_stride)}({base}, {place.axis})"
        self.prelude.append(f"{self._symbol_name(name)} = {base}")

    def _symbol_name(self, symbol: str) -> str:
        """What holds a symbol's value: a variable of the program may be called ``s0``, too."""
        return f"__{symbol}" if symbol in self._taken else symbol

    def _unbacked(self, name: str) -> None:
        """A number that the graph computes, or a size of what it gives."""
        value, axis = definition(self.tracer, name)
        text = self.value(value)
        name = self._symbol_name(name)
        self.line(f"{name} = {text}" if axis < 0 else f"{name} = {text}.shape[{axis}]")

    def cell_object(self, value: CellValue) -> str:
        assert value.source is not None
        return self.load(value.source)

    def globals_dict(self, globals_of: tuple[dict[str, Any], Source | None]) -> str:
        """The globals dict of a frame."""
        namespace, function = globals_of
        if namespace is self.tracer.root_globals:
            return f"{self.constant(globals)}()"
        module = sys.modules.get(namespace.get("__name__", ""))
        if module is not None and vars(module) is namespace:
            return self.load(ModuleDictSource(module.__name__))
        assert function is not None
        return self.load(AttrSource(function, "__globals__"))

    # -- sources ------------------------------------------------------------------------------------
    def load(self, source: Source) -> str:
        """The object found at ``source`` when the function is entered."""
        if isinstance(source, LocalSource):
            return self.parameters[source.index]
        if isinstance(source, (ConstSource, BuiltinSource, ModuleSource)):
            return self._fixed(source)
        known = self.loads.get(source)
        if known is None:
            text = self._source_text(source)
            known = self.fresh("in")
            self._read(f"{known} = {text}")
            self.loads[source] = known
        return known

    def namespace_of(self, target: str, cls: type | None) -> str:
        """The ``__dict__`` of an instance, without a ``__getattribute__`` of its class."""
        if cls is not None and cls.__getattribute__ is object.__getattribute__:
            return f"{target}.__dict__"
        return f"{self.constant(object.__getattribute__)}({target}, '__dict__')"

    def _fixed(self, source: Source) -> str:
        if isinstance(source, BuiltinSource):
            return self.constant(getattr(builtins, source.key))
        if isinstance(source, ModuleSource):
            return self.constant(sys.modules[source.module])
        assert isinstance(source, ConstSource)
        return self.constant(source.obj)

    def _source_text(self, source: Source) -> str:
        if isinstance(source, CellSource):
            return source.local
        if isinstance(source, FreeCellSource):
            return f"(lambda: {source.local}).__closure__[0]"
        if isinstance(source, GlobalSource):
            if source.key in self._taken or _SYMBOL.fullmatch(source.key) or not source.key.isidentifier():
                return f"{self.constant(globals)}()[{source.key!r}]"
            return source.key
        if isinstance(source, GlobalsSource):
            return f"{self.constant(globals)}()"
        if isinstance(source, ModuleDictSource):
            return f"{self.constant(sys.modules[source.module])}.__dict__"
        parent = source.parent
        assert parent is not None, source
        base = self.load(parent)
        if isinstance(source, AttrSource):
            owner = self.tracer.by_source.get(parent)
            if source.attr == "__dict__" and isinstance(owner, InstanceValue):
                return self.namespace_of(base, owner.pytype)
            if source.attr.isidentifier() and not keyword.iskeyword(source.attr):
                return f"{base}.{source.attr}"
            return f"{self.constant(getattr)}({base}, {source.attr!r})"
        if isinstance(source, TypeAttrSource):
            return f"{self.constant(inspect.getattr_static)}({base}, {source.attr!r})"
        if isinstance(source, InstanceDictSource):
            owner = self.tracer.by_source.get(parent)
            return f"{self.namespace_of(base, owner.pytype if owner else None)}[{source.attr!r}]"
        if isinstance(source, ItemSource):
            return self._item_text(parent, base, source.key)
        if isinstance(source, TypeSource):
            return f"{self.constant(type)}({base})"
        if isinstance(source, CellContentsSource):
            return f"{base}.cell_contents"
        if isinstance(source, ReferentSource):
            return f"{base}()"
        if isinstance(source, PartSource):
            return f"{base}.{source.method}()"
        if isinstance(source, MappingSource):
            return f"{self.constant(gc.get_referents)}({base})[0]"
        if isinstance(source, (DictKeySource, DictValueSource)):
            which = "" if isinstance(source, DictKeySource) else ".values()"
            return f"{self._listed(f'{base}{which}')}[{source.index}]"
        raise Skip(f"a value read from {source.expr()}")

    def _listed(self, text: str) -> str:
        """A list of the keys or values of a dict from outside, which many may be read from."""
        if text not in self._lists:
            self._lists[text] = self.fresh("in")
            self._read(f"{self._lists[text]} = {self.constant(list)}({text})")
        return self._lists[text]

    def _item_text(self, parent: Source, base: str, key: object) -> str:
        """An item as guards read it: by the builtin class from which the object's own derives, if any."""
        reader = getattr(self.tracer.by_source.get(parent), "item_reader", None)
        if reader is None:
            return f"{base}[{self.constant(key)}]"
        return f"{self.constant(reader)}({base}, {self.constant(key)})"

    # -- effects ------------------------------------------------------------------------------------
    def replay(self, value: Value) -> None:
        """Bring one object from outside up to date, once."""
        if value.source is None or not value.mutated or id(value) in self._replayed:
            return
        self._replayed.add(id(value))
        for text in value.replay(self):
            self.line(text)

    def replay_effects(self) -> None:
        """Bring objects from outside up to date: containers, attributes, cells, globals. Then make the calls
        that were put off."""
        for value in list(self.tracer.mutated):
            self.replay(value)
        for globals_of, name, written in self.tracer.global_writes.values():
            target = self.globals_dict(globals_of)
            if written is None:
                self.line(f"del {target}[{name!r}]")
            else:
                self.line(f"{target}[{name!r}] = {self.value(written)}")
        for call in self.tracer.deferred:
            self._deferred_call(call)
        self.set_modes()

    def set_modes(self) -> None:
        """Have what captured code set for good hold from here on, once."""
        for name, made in self.tracer.modes_set.items():
            if name not in self._modes_set:
                self._modes_set.add(name)
                self.line(f"{self.constant(made.function)}({self.constant(made.value)})")

    def _deferred_call(self, call: DeferredCall) -> None:
        parts = [self.value(arg) for arg in call.args]
        parts += [f"{name}={self.value(value)}" for name, value in call.kwargs.items()]
        before, self.place = self.place, call.place
        self.line(f"{self.constant(call.function)}({', '.join(parts)})")
        self.place = before

    def exists(self, value: Value) -> bool:
        """Whether the object of ``value`` is at hand: it came from outside, or something needed it."""
        known = isinstance(value.source, LocalSource) or value.source in self.loads
        return known or self.is_built(value)

    def release(self, variables: dict[str, Value], cells: dict[str, CellValue]) -> None:
        """From here on only what is still needed, and what ``variables`` and ``cells`` of the program hold,
        is kept alive."""
        for value in (*variables.values(), *cells.values()):
            if self.exists(value):
                self.held.add(self.value(value))
        self.line(RELEASE)

    # -- the whole function -----------------------------------------------------------------------------
    def arguments_again(self) -> str:
        """The call arguments that pass everything on to the original."""
        code = self.code
        names = list(self.parameters)
        positional = names[: code.co_argcount]
        keyword_only = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        rest = names[code.co_argcount + code.co_kwonlyargcount :]
        parts = list(positional)
        if code.co_flags & CO_VARARGS:
            parts.append(f"*{rest.pop(0)}")
        originals = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        parts += [f"{original}={name}" for original, name in zip(originals, keyword_only)]
        if code.co_flags & CO_VARKEYWORDS:
            parts.append(f"**{rest.pop(0)}")
        return ", ".join(parts)


def element_stride(array: Any, axis: int) -> int:
    """Stride of an array in elements."""
    stride = array.strides[axis] // array.itemsize if hasattr(array, "strides") else array.stride(axis)
    return int(stride)


def _parameter_names(code: types.CodeType) -> list[str]:
    total = code.co_argcount + code.co_kwonlyargcount
    total += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    names = []
    for index, name in enumerate(code.co_varnames[:total]):
        usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
        usable = usable and name not in ("min", "max")
        names.append(name if usable else f"__arg{index}")
    return names


def is_of_numpy(value: object) -> bool:
    """Whether it is an array of NumPy's (``Codegen.owner``), not a Python number."""
    return isinstance(value, ArrayValue) and value.ref.frontend == "numpy" and value.ref.kind != "python"
