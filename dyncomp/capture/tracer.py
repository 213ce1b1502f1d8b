"""The state of one capture: graph under construction, guards, symbols, memo of objects, effects.

A :class:`Tracer` lives for one attempt. Attempts may be restarted with further *decisions* (break this
loop, do not inline that call), which is how capture avoids ever having to undo what it has executed.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from ..errors import Unsupported
from ..frontends.base import ArrayRef, Called, Frontend, TraceContext, TypedTuple
from ..frontends.known import relied_array
from ..graph.ir import GraphBuilder, Loc
from ..hook._hook import has_plain_names
from ..signals import is_from_handler
from ..symbolic.integers import ShapeEnv, SymInt
from . import effects, machine, operators, wrap
from .arrays import complex_views, leaves
from .arrays.held_elements import HeldElements
from .breaks import Break
from .calls import call as calls
from .calls import numerics
from .control import exception_groups, exceptions, generators
from .control.exceptions import Raised
from .decisions import Decisions, Restart, under_way
from .entries.config import CaptureConfig
from .environment import regions
from .environment.digit_limit import check_limit
from .environment.warnings_at_capture import quietly
from .guards.guard import BY_IDENTITY, Guard, Kind
from .guards.places import SymbolPlace
from .guards.program import is_plain_key
from .guards.source import AttrSource, LocalSource, Source
from .lifetimes.finalized import Watched
from .methods.table import items_in_two
from .objects import attributes, derived, instance_checks, protocols
from .objects.class_names import qualname_of
from .objects.identity import DistinctObjects
from .random.draws import begin_draws, end_draws
from .sizes import unbacked
from .values.array import ArrayValue
from .values.base import Frame, LazyValue, OpaqueValue, Resumption, Value
from .values.context import WarningFiltersValue
from .values.derived import DerivedValue
from .values.exception import ExceptionValue
from .values.func import FunctionValue, NestedFunctionValue, SuperValue
from .values.generator import GeneratorValue
from .values.iterator import SequenceIterator
from .values.mode import SetMode, set_mode
from .values.namespace import NamespaceValue
from .values.number import ComputedValue, ConstValue, NumberValue, SymIntValue, scalar_type
from .values.obj import InstanceValue
from .values.parted import taken_apart
from .values.seq import ListValue, SliceValue, TupleValue


class Tracer:
    """See the module's docstring."""

    def __init__(self, config: CaptureConfig, decisions: Decisions, code: types.CodeType) -> None:
        self.config = config
        self.decisions = decisions
        self.code = code
        self.env = ShapeEnv()
        self.env.locate = lambda: (self.loc, under_way(self.frames))
        self.is_strict = config.options.numerics == "strict"
        make_builder = numerics.CheckedBuilder if self.is_strict else GraphBuilder
        self.builder: GraphBuilder = make_builder(config.table, self.env)
        self.builder.device = decisions.device
        self.builder.held = HeldElements(self)
        self.tx = TraceContext(self.builder, module=self._module, changes=self._changes)
        self.tx.may_pin = lambda: not self.is_captured_often()
        self.tx.attribute = self._attribute
        self.tx.recorded = decisions.recorded
        self.tx.same_bits = self.is_strict
        self.tx.fused_random = config.options.random == "fused"
        self.guards: list[Guard] = []
        self.distinct: list[DistinctObjects] = []  # of sets
        self.may_be_stored = True  # nothing of the program was run whose results are taken for constants
        self._guard_keys: set[Any] = set()
        # by id: the guard, and the instruction that asked for it
        self.guard_places: dict[int, tuple[Guard, types.CodeType, int]] = {}
        self.by_source: dict[Source, Value] = {}
        self.by_id: dict[int, tuple[Value, Any]] = {}
        # the __dict__s of objects from outside, by id: two objects may share one
        self.namespaces: dict[int, tuple[NamespaceValue, Any]] = {}
        self.by_ref: dict[ArrayRef, ArrayValue] = {}
        self.inputs: list[ArrayValue | NumberValue] = []  # graph inputs, parallel to builder.inputs
        self.input_objects: dict[str, Any] = {}  # name of an array input's variable -> the array
        # symbolic int arguments of the graph: where they are found, or the value that is computed
        self.integers: list[Source | NumberValue] = []
        self.places: dict[str, SymbolPlace] = {}
        self.named_sizes: dict[str, SymInt] = {}  # of dynamic={…}
        self.marked: dict[str, str] = {}  # symbols that the user marked as dynamic: what they are, in words
        self.mutated: list[Value] = []
        self.leaf_origins: list[tuple[types.CodeType, int]] = []  # where values became leaves
        self.part_origins: dict[str, tuple[types.CodeType, int]] = {}  # see parts
        self.may_raise: list[ArrayValue] = []  # what the graph has to compute, as doing so may raise
        self.may_raise_before: list[ComputedValue] = []  # and what compiled code has to compute before it
        self.checks = 0  # see validation
        self.presumed: list[tuple[weakref.ref[types.CodeType], int]] = []  # jumps (``finite_tests``)
        self.global_writes: dict[tuple[int, str], tuple[Any, str, Value | None]] = {}
        self.handled_outside = sys.exception() is not None  # around the call that is captured
        self.catching = 0  # how many operations under way see an exception raised now
        self.deferred: list[effects.DeferredCall] = []
        self.modes_set: dict[str, SetMode] = {}  # what captured code set for good, by name
        self.tx.set_mode = partial(set_mode, self)
        self.draws = begin_draws(self)
        self.filter_blocks: list[WarningFiltersValue] = []  # blocks of warnings.catch_warnings around
        self.states: dict[int, Any] = {}  # id of a class or function -> what was written to its attributes
        # classes of the program, and attributes asked of them; by id, as metaclasses say how they are hashed
        self.relied: dict[int, tuple[type, set[str]]] = {}
        self.relied_members: dict[int, tuple[types.ModuleType, dict[str, Any]]] = {}  # of library modules
        self.expected_calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []  # see folding
        self.frames: list[Frame] = []
        self.generators: list[GeneratorValue] = []  # made in this attempt
        self.watched: Watched | None = None
        # by functions called: what they call that reads their frame (``environment/frame_readers.py``)
        self.frame_readers: dict[types.FunctionType, str] = {}
        self.varying: frozenset[str] = config.varying_of(code)
        self.root_globals: dict[str, Any] = {}
        entered = regions.breaks_are_errors()
        self.error_regions: list[bool] = [config.options.fullgraph if entered is None else entered]
        self.loc: Loc | None = None
        self._direct: Frame | Resumption | None = None
        self._frontends: dict[str, Frontend] = {}
        self.instructions = 0
        self.outside_changes = 0  # how often objects from outside were changed
        self.has_layers = False  # whether a loop over things that are called was unrolled
        self.called: list[int] = []  # the program's objects that were called, by identity
        self.steps = 0  # how many iterators were advanced and objects changed
        self.restart = Restart()

    def close(self) -> None:
        """Let go of the program's objects: values and frames refer to one another in cycles."""
        for frame in self.frames:
            frame.stack.clear()
            frame.locals.clear()
            frame.cells.clear()
        self.frames.clear()
        self.generators.clear()
        self.watched = None
        self.inputs.clear()
        self.mutated.clear()
        self.may_raise.clear()
        self.may_raise_before.clear()
        for value in (*self.by_source.values(), *(known for known, _ in self.by_id.values())):
            if not isinstance(value, ConstValue):
                vars(value).clear()  # values of objects and of their parts refer to one another
        self.guard_places.clear()
        self.by_source.clear()
        self.by_id.clear()
        self.namespaces.clear()
        self.by_ref.clear()
        self.input_objects.clear()
        self.global_writes.clear()
        self.states.clear()
        self.frame_readers.clear()
        self.deferred.clear()
        self.modes_set.clear()
        self.tx.set_mode = None
        end_draws(self)
        self.filter_blocks.clear()
        self.env.locate = None  # it leads here, and the graph's sizes lead to it
        self.restart = Restart()

    @property
    def breaks_are_errors(self) -> bool:
        """Whether a graph break at this place raises ``GraphBreakError``."""
        return self.error_regions[-1]

    # -- guards -----------------------------------------------------------------------------
    def guard(self, source: Source | None, kind: Kind, expected: object = None, why: str = "") -> None:
        key = (source, kind, id(expected) if kind in BY_IDENTITY else _guard_key(expected))
        if key in self._guard_keys:
            return
        self._guard_keys.add(key)
        made = Guard(source, kind, expected, self.loc, why)
        self.guards.append(made)
        if self.frames:
            self.guard_places[id(made)] = (made, self.frames[-1].raw_code, self.frames[-1].current)

    def assume_state(self, frontend: Frontend) -> None:
        """Rely upon the library's global state (the guard is added when capture ends)."""
        self.tx.assume(state_assumption(frontend))

    def rely_on(self, cls: type, name: str = "") -> None:
        """Guard that the class stays as it is: its bases, special methods and the place and kind of an
        attribute (the guard is added when capture ends)."""
        known = self.relied.get(id(cls))
        if known is None:
            if not has_plain_names(cls):
                raise Break("opaque-object", f"attributes of class {qualname_of(cls)}, whose keys run code")
            known = self.relied[id(cls)] = (cls, set())
        known[1].add(name)

    def note_mutation(self, value: Value) -> None:
        """Remember an object from outside that was changed, in the order of first changes."""
        if value.source is not None:
            self.refuse_for_batch(f"a change of {value.describe()}, which it did not make,")
        self.steps += 1
        self.outside_changes += value.source is not None
        if self.watched is not None:
            self.watched.check_change(value)
        if value.source is not None and not any(v is value for v in self.mutated):
            self.mutated.append(value)

    @property
    def is_for_batch(self) -> bool:
        """Whether what is traced now stands for what is computed for a batch."""
        return any(regions.is_for_batches(frame.raw_code) for frame in self.frames)

    def refuse_for_batch(self, what: str) -> None:
        """Refuse what would happen once for each element, where what is traced stands for all of them."""
        if self.is_for_batch and not any(regions.is_temporary(frame.raw_code) for frame in self.frames):
            raise Break(
                "unsupported-call", f"{what} in a function under vmap, which runs once for all elements"
            )

    def note_may_raise(self, value: ArrayValue) -> None:
        """Have the graph compute a value, as doing so may raise (for a batch another node does)."""
        if not self.is_for_batch:
            self.may_raise.append(value)

    # -- objects to values --------------------------------------------------------------------
    def child(self, obj: object, source: Source) -> Value:
        """The value of an object found at ``source``; guards come when it is looked at."""
        return self.by_source.get(source) or LazyValue(obj, source)

    def child_or_constant(self, obj: object, source: Source | None) -> Value:
        if source is None:
            return wrap.wrap_unguarded(self, obj)
        return self.realize(self.child(obj, source))

    def realize(self, value: Value) -> Value:
        """Look at a lazy value: wrap its object and guard what that assumes."""
        if not isinstance(value, LazyValue):
            return value
        assert value.source is not None
        known = self.by_source.get(value.source)
        if known is None:
            known = wrap.wrap(self, value.obj, value.source)
            self.by_source[value.source] = known
        return known

    def realize_loaded(self, value: LazyValue) -> Value:
        """The value of an object that is only put on the stack: where wrapping refuses it, whatever uses it
        breaks the graph."""
        try:
            return self.realize(value)
        except Break as problem:
            return self.realize_as_opaque(value, problem.reason)

    def realize_as_opaque(self, value: LazyValue, reason: str) -> Value:
        """The value of an object that wrapping refused: it can be passed on."""
        assert value.source is not None
        self.guard(value.source, Kind.TYPE_IS, type(value.obj))
        opaque = OpaqueValue(value.obj, value.source, reason)
        self.by_source[value.source] = opaque
        return opaque

    def module_member(self, module: types.ModuleType, name: str, obj: object, source: Source | None) -> Value:
        """Attribute of a module: members of library modules are constants, with one guard for all."""
        if source is None or self.config.is_trusted(module.__name__):
            self.relied_members.setdefault(id(module), (module, {}))[1][name] = obj
            return wrap.wrap_unguarded(self, obj, source)
        return self.realize(self.child(obj, source))

    def wrap_result(self, result: object) -> Value:
        """The value of what a rule or a constant computation returned."""
        if isinstance(result, ArrayRef):
            return self.array_value(result)
        if isinstance(result, SymInt):
            return SymIntValue(result)
        if type(result) is tuple:
            return TupleValue([self.wrap_result(r) for r in result])
        if isinstance(result, TypedTuple):
            return TupleValue([self.wrap_result(r) for r in result.items], None, result.cls)
        if type(result) is list:
            return ListValue([self.wrap_result(r) for r in result])
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return TupleValue([self.wrap_result(r) for r in result], None, type(result))
        if isinstance(result, Value):
            return result
        return (
            self.child_or_constant(result, None) if type(result) is types.ModuleType else ConstValue(result)
        )

    def array_value(self, ref: ArrayRef) -> ArrayValue:
        """The value of a graph reference; one object per reference, so that identity is kept."""
        if ref in self.by_ref:
            return self.by_ref[ref]
        known = self.by_ref[ref] = ArrayValue(ref, self.frontend(ref).pytype(ref))
        is_view = ref.part is not None or ref.var.name in self.builder.seen_as_views
        if is_view and self.frames:
            self.part_origins[ref.var.name] = (self.frames[-1].raw_code, self.frames[-1].current)
        return known

    def refuse_outside(self, ref: ArrayRef) -> None:
        complex_views.refuse_view(self, ref)
        leaves.refuse_history(self, ref)

    def scalar_input(self, value: NumberValue) -> ArrayRef:
        """Pass a Python number to the graph by value."""
        var = self.builder.add_input(scalar_type(value.hint), "scalar", value.describe())
        self.inputs.append(value)
        return ArrayRef(var, "python", self.config.frontends[0].name)

    def new_integer(self, source: Source, hint: int) -> SymInt:
        """A symbol for a Python int found at ``source``."""
        symbol = self.env.new_symbol(hint, low=-(2**63), high=2**63 - 1)
        self.builder.bind_symbol(symbol, "int", len(self.integers))
        self.integers.append(source)
        self.places[str(symbol)] = SymbolPlace(source, "int")
        return symbol

    def symbol_of(self, value: NumberValue) -> SymInt:
        """A symbol for a Python int that compiled code computes before the graph. What is then asked of it
        cannot be a guard: it is checked there, and where it fails the original runs."""
        symbol = self.env.new_symbol(value.hint, low=-(2**63), high=2**63 - 1)
        self.builder.bind_symbol(symbol, "int", len(self.integers))
        self.integers.append(value)
        self.places[str(symbol)] = SymbolPlace(None, "number", value=value)
        return symbol

    def select(self, value: ArrayValue) -> None:
        """Turn a masked value into the array that it stands for."""
        unbacked.select(self, value)

    def computed_symbols(self) -> list[str]:
        """The symbols made by :meth:`symbol_of`."""
        return [name for name, place in self.places.items() if place.source is None]

    def is_computed(self, expr: SymInt) -> bool:
        """Whether the value is known only once compiled code runs."""
        return any(name not in self.places or self.places[name].source is None for name in expr.symbols())

    def bind_dim(
        self,
        symbol: SymInt,
        what: str,
        index: int,
        axis: int,
        source: Source,
        itemsize: int,
        tensor: bool = False,
    ) -> None:
        """A symbol for a size or stride of graph input number ``index``."""
        self.builder.bind_symbol(symbol, what, index, axis)
        self.places[str(symbol)] = SymbolPlace(source, what, axis, itemsize, tensor)

    def sequence_iterator(self, items: list[Value], origin: Value) -> Value:
        return SequenceIterator(items, origin)

    def new_tuple(self, items: list[Value]) -> Value:
        return TupleValue(items)

    # -- frontends ----------------------------------------------------------------------------
    def _attribute(self, ref: ArrayRef, name: str) -> object:
        obj = self.input_objects.get(ref.var.name)
        source = self.array_value(ref).source
        if obj is None or source is None:
            raise Unsupported(f"{name} of a tensor that is not the program's")
        found = getattr(obj, name)
        if found is not None and type(found) is not bool:
            raise Unsupported(f"{name} of a tensor is a {type(found).__name__}")
        self.guard(AttrSource(source, name), Kind.IS, found)
        return found

    def object_told_by_identity(self, value: ArrayValue) -> object:
        """The array from outside, where its hash says no more than which one it is; else ``None``."""
        if value.source is None or not getattr(self.frontend(value.ref), "hashes_identity", False):
            return None
        return self.input_objects.get(value.ref.var.name)

    def _changes(self) -> tuple[int, object]:
        written = tuple(map(id, self.global_writes.values()))
        return len(self.draws), (self.outside_changes - len(self.draws), written)

    def _module(self) -> str:
        """The name of the module of the code that capture is in."""
        return str(self.frames[-1].globals[0].get("__name__", "")) if self.frames else ""

    def frontend(self, ref: ArrayRef) -> Frontend:
        found = self._frontends.get(ref.frontend)
        if found is None:
            found = self._frontends[ref.frontend] = self.config.frontend_named(ref.frontend)
        return found

    def apply_rule(
        self,
        rule: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
        what: str,
        frontend: Frontend,
        called: Called,
    ) -> Value:
        """Emit a library call into the graph, or break with nothing emitted. ``called``: what the rule of
        ``frontend`` stands for."""
        parted = taken_apart(self, called, args)
        if parted is not None:
            rule, args = parted
        if self.is_strict:
            rule = numerics.checked(self, frontend, called, rule)
        given = (*args, *kwargs.values())
        return unbacked.with_sizes(self, given, lambda: self._apply_rule(rule, args, kwargs, what))

    def _apply_rule(
        self, rule: Callable[..., Any], args: list[Value], kwargs: dict[str, Value], what: str
    ) -> Value:
        nodes = len(self.builder.nodes)
        leaves_before = len(self.builder.leaves)
        try:
            positional = [self.realize(a).for_rule(self) for a in args]
            keywords = {k: self.realize(v).for_rule(self) for k, v in kwargs.items()}
            self.builder.loc = self.loc
            result = unbacked.call_rule(self, rule, positional, keywords)
        except (Break, Raised, Restart):
            del self.builder.nodes[nodes:]
            raise
        except Unsupported as error:
            del self.builder.nodes[nodes:]
            raise unbacked.as_break(error, what) from None
        except Exception as error:
            del self.builder.nodes[nodes:]
            raise exceptions.break_for(self, error, what) from None
        if len(self.builder.leaves) > leaves_before:
            self.leaf_origins.append((self.frames[-1].raw_code, self.frames[-1].current))
        return self.wrap_result(result)

    def float_variable(self, value: Value) -> Any:
        return operators.float_variable(self, value)

    def operator(self, name: str, values: list[Value]) -> Value:
        """An operator with at least one array operand."""
        return operators.array_operator(self, name, values)

    # -- operations -----------------------------------------------------------------------------
    def binary(self, op: str, a: Value, b: Value) -> Value:
        return operators.binary(self, op, a, b)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        return operators.binary(self, op, self.realize(a), self.realize(b))

    def same_or_equal(self, a: Value, b: Value) -> bool:
        return operators.same_or_equal(self, a, b)

    def unary(self, op: str, a: Value) -> Value:
        return operators.unary(self, op, a)

    def fold(self, function: Callable[..., Any], *args: object) -> Any:
        """Compute on constants. What ``function`` raises must be just what the program's operation raises."""
        try:
            found = quietly(function, *args)
        except Break:
            raise
        except Exception as error:
            if is_from_handler(error):
                raise
            check_limit(self, error)
            exceptions.raise_known(self, error)
        check_limit(self, found)
        return found

    def constant_of(self, value: Value, what: str) -> Any:
        """The constant, with symbolic integers pinned."""
        value = self.realize(value)
        if isinstance(value, SymIntValue):
            return int(value.sym)
        if isinstance(value, TupleValue) and value.cls is tuple:
            return tuple(self.constant_of(v, what) for v in value.contents(self))
        if not value.is_const:
            raise Break("data-dependent-value", f"{what} that is {value.describe()}")
        return value.const

    def key_constant(self, value: Value, what: str) -> Any:
        """The constant that a container's key or index is. An integer that is another one in each iteration
        of a loop, or was seen to change often, is not pinned: each value would be compiled anew."""
        value = self.realize(value)
        if isinstance(value, SymIntValue) and self._keeps_changing(value.sym):
            raise Break("data-dependent-value", f"{what} that changes from call to call")
        if isinstance(value, TupleValue) and value.cls is tuple:
            return tuple(self.key_constant(v, what) for v in value.contents(self))
        return self.constant_of(value, what)

    def _keeps_changing(self, sym: SymInt) -> bool:
        places = [self.places[name] for name in sym.symbols() if name in self.places]
        roots = [p.source.root() for p in places if p.source is not None and p.what == "int"]
        varies = any(isinstance(root, LocalSource) and root.local in self.varying for root in roots)
        return varies or (bool(roots) and self.is_captured_often())

    def works_on_tensors(self) -> bool:
        """Whether the graph is of another library than NumPy."""
        return any(isinstance(v, ArrayValue) and v.ref.frontend != "numpy" for v in self.inputs)

    def is_captured_often(self) -> bool:
        """Whether what is guarded on may keep changing."""
        if self.breaks_are_errors:
            return False
        return self.config.state_of(self.code).captures > self.config.options.recompile_limit // 2

    def index_constant(self, value: Value, what: str) -> int:
        """As :meth:`key_constant`, for an index into a sequence."""
        return self.integer_of(ConstValue(self.key_constant(value, what)), what)

    def integer_of(self, value: Value, what: str) -> int:
        value = self.realize(value)
        if isinstance(value, ArrayValue) and value.ref.kind == "array" and not value.ref.ndim:
            known = relied_array(self.builder, value.ref.var) if value.ref.dtype.is_integer else None
            if known is not None:
                return int(known)
        found = self.constant_of(value, what)
        if not hasattr(type(found), "__index__"):
            raise Break("would-raise", f"{what} of type {type(found).__name__}")
        return int.__index__(found) if isinstance(found, int) else found.__index__()

    def slice_of(self, value: Value) -> slice:
        if isinstance(value, SliceValue):
            found = slice(*(self.constant_of(p, "a slice bound") for p in value.parts))
        else:
            found = self.constant_of(value, "a slice")
        assert isinstance(found, slice)
        bounds = (found.start, found.stop, found.step)
        if not all(bound is None or hasattr(bound, "__index__") for bound in bounds):
            self.raise_like([].__getitem__, found)
        return found

    def is_library_key(self, key: object) -> bool:
        """Whether a key is a constant of an array library (a device, a dtype), or made of such."""
        if type(key) is tuple:
            return all(is_plain_key(part) or self.is_library_key(part) for part in key)
        return any(frontend.is_constant(key) for frontend in self.config.frontends)

    def check_key(self, key: object) -> None:
        """Dict keys must be constants that guards can compare."""
        if type(key) is tuple:
            for part in key:
                self.check_key(part)
        elif not is_plain_key(key):
            raise Break("unsupported-operation", f"a dict key of type {type(key).__name__}")

    # -- exceptions -----------------------------------------------------------------------------
    def raise_exception(self, cls: type[BaseException], *args: object) -> NoReturn:
        """The traced operation raises ``cls(*args)``, exactly: executed symbolically where a traced frame
        would catch it, else a break."""
        exceptions.raise_exception(self, cls, *args)

    def raise_like(self, function: Callable[..., Any], *args: object) -> NoReturn:
        """The traced operation raises what ``function(*args)`` raises."""
        exceptions.raise_like(self, function, *args)

    def lacks_attribute(self, value: Value, name: str) -> NoReturn:
        attributes.no_attribute(self, value, name)

    def raise_stop_iteration(self, iterator: Value) -> NoReturn:
        """``next(iterator)`` raises, as the iterator has just ended."""
        exceptions.raise_stop_iteration(self, iterator)

    def unless_raised(self, operation: Callable[[], Value]) -> tuple[Value | None, ExceptionValue | None]:
        """What an operation gives, or the exception that it raises."""
        return exceptions.result_or_exception(self, BaseException, operation)

    def leave_raise_to_python(self, exception: ExceptionValue) -> NoReturn:
        exceptions.leave_to_python(self, exception)

    # -- calls ----------------------------------------------------------------------------------
    def call_direct(
        self, frame: Frame | Resumption | None, function: Value, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """A call made by an instruction whose result is exactly the callee's return value, so that a break
        inside the callee can be resumed."""
        self._direct = frame
        try:
            return self.call_value(function, args, kwargs)
        finally:
            self._direct = None

    def take_direct(self) -> Frame | Resumption | None:
        """The frame whose call instruction the next Python frame answers, once; else None."""
        frame, self._direct = self._direct, None
        return frame

    def call_value(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        function = self.realize(function)
        return function.call(
            self,
            [self.realize(a) if isinstance(a, LazyValue) else a for a in args],
            {k: self.realize(v) for k, v in kwargs.items()} if kwargs else kwargs,
        )

    def call_function(
        self, function: FunctionValue | NestedFunctionValue, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        return calls.call_function(self, function, args, kwargs)

    def check_generator(self, generator: GeneratorValue) -> None:
        generators.check(self, generator)

    def run_generator_plain(self, code: types.CodeType, reason: str) -> None:
        generators.run_plain(self, code, reason)

    def call_generator_method(
        self, generator: GeneratorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        self.take_direct()
        return generators.call_method(self, generator, name, args, kwargs)

    def call_group_method(self, group: Any, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        self.take_direct()
        return exception_groups.call_method(self, group, name, args, kwargs)

    def run_generator(self, frame: Frame, thrown: Value | None = None) -> Value | None:
        return machine.run_generator(self, frame, thrown)

    def call_object(
        self, obj: object, source: Source | None, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        return calls.call_object(self, obj, source, args, kwargs)

    def container_method(self, owner: Value, name: str) -> Value:
        return calls.container_method(self, owner, name)

    def call_container_method(
        self, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        self.take_direct()
        return calls.call_container_method(self, owner, name, args, kwargs)

    def const_getattr(self, value: ConstValue, name: str) -> Value:
        return calls.const_getattr(self, value, name)

    def call_as(
        self, direct: Frame | Resumption | None, function: Value, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """A call on behalf of an instruction of frame ``direct``, if that is known: see ``call_direct``."""
        if direct is None:
            return self.call_value(function, args, kwargs)
        return self.call_direct(direct, function, args, kwargs)

    def annotations_value(self, given: Value | None) -> Value:
        return calls.annotations_value(self, given)

    def attribute(self, frame: Frame, owner: Value, name: str) -> Value:
        """An attribute that an instruction of ``frame`` pushes, so that a break inside a property can be
        resumed."""
        if name == "__class__" and isinstance(owner, _OF_KNOWN_CLASS):
            return ConstValue(owner.pytype)
        self._direct = frame
        try:
            return owner.getattr(self, name)
        finally:
            self._direct = None

    def defer(self, function: object, args: list[Value]) -> None:
        """Call a function when the captured part ends."""
        effects.defer(self, function, args, {})

    # -- objects: what values.obj leaves to the modules above it ---------------------------------------
    def instance_attribute(self, obj: InstanceValue, name: str) -> Value:
        return attributes.instance_attribute(self, obj, name)

    def set_instance_attribute(self, obj: InstanceValue, name: str, value: Value) -> None:
        attributes.set_instance_attribute(self, obj, name, value)

    def delete_instance_attribute(self, obj: InstanceValue, name: str) -> None:
        attributes.delete_instance_attribute(self, obj, name)

    def set_class_attribute(self, value: ConstValue, name: str, new: Value | None) -> None:
        attributes.set_class_attribute(self, value, name, new)

    def special_method(self, obj: Value, name: str) -> Value | None:
        return attributes.special_method(self, obj, name)

    def is_native(self, obj: DerivedValue, name: str) -> bool:
        return derived.is_native(self, obj, name)

    def instance_length(self, obj: InstanceValue) -> Value:
        return protocols.length(self, obj)

    def instance_truth(self, obj: InstanceValue) -> bool:
        return protocols.truth(self, obj)

    def instance_contains(self, obj: InstanceValue, item: Value) -> Value:
        return protocols.contains(self, obj, item)

    def instance_iterator(self, obj: InstanceValue) -> Value:
        return protocols.iterator(self, obj)

    def instance_items(self, obj: InstanceValue, hinted: bool = False) -> list[Value]:
        return protocols.expand(self, obj, hinted)

    def items_in_two(self, value: Value) -> list[Value]:
        return items_in_two(self, value)

    def instance_next(self, obj: InstanceValue) -> Value | None:
        return protocols.advance(self, obj)

    def class_attribute(self, value: Value, name: str) -> Value:
        return calls.class_attribute(self, value, name)

    def class_operation(self, value: ConstValue, name: str, args: list[Value]) -> Value:
        return instance_checks.class_operation(self, value, name, args)

    def super_attribute(self, value: SuperValue, name: str) -> Value:
        return attributes.super_attribute(self, value, name)

    def function_attribute(self, value: FunctionValue, name: str) -> Value:
        return calls.function_attribute(self, value, name)

    def set_function_attribute(self, value: FunctionValue, name: str, new: Value | None) -> None:
        calls.set_function_attribute(self, value, name, new)


_OF_KNOWN_CLASS = (ArrayValue, SymIntValue, NumberValue, ListValue, TupleValue)


def state_assumption(frontend: Frontend) -> str:
    return f"{frontend.name}-state"


def _guard_key(expected: object) -> Any:
    try:
        hash(expected)
    except TypeError:
        return id(expected)
    return (type(expected), expected) if not isinstance(expected, float) else (float, repr(expected))
