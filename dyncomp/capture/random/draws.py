"""Calls that draw random numbers, made before the graph in the order of the program.

Compiled code may find that it has to give way to the original, which starts again (``replacement``): what was
drawn by then is put back, by the state that the generator had before the first of its draws.
"""

from __future__ import annotations

import functools
import inspect
import math
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...device import CPU
from ...dtypes import from_numpy
from ...errors import Unsupported
from ...frontends.base import ArrayRef, DrawingCall, is_usual_size, memory_of
from ...graph.ir import COPY, ArrayType, array_type
from ...signals import is_from_handler
from ...symbolic.integers import Dim, SymInt, hint
from ..breaks import Break
from ..environment.warnings_at_capture import quietly
from ..guards.guard import Kind
from ..guards.source import AttrSource, ConstSource, Source
from ..loops import raising_branches
from ..values.array import ArrayValue
from ..values.base import Codegen, NamedMethodValue, OpaqueValue, Tracer, Value
from ..values.drawn import Draw, DrawnArrayValue, DrawnNumber
from ..values.number import ConstValue, NumberValue, SymIntValue, hint_of, is_late
from ..values.seq import ListValue, TupleValue
from .states import keep_state

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_SIZES_AS_ARGUMENTS = frozenset({"rand", "randn"})
_REFUSED = frozenset({"random_integers", "tomaxint"})
_LARGEST_POPULATION = 1 << 16
# What takes any size, given numbers that it took at capture. Nothing else is sure not to raise.
_OF_ANY_SIZE = frozenset(
    ("random", "random_sample", "rand", "randn", "standard_normal", "normal", "uniform", "gauss")
)
_FRACTIONS = frozenset(("random", "random_sample", "rand"))
# What Python's own generator gives of the same type for all numbers of the same types.
_OF_PYTHON = frozenset(
    (
        "random",
        "uniform",
        "gauss",
        "normalvariate",
        "lognormvariate",
        "expovariate",
        "betavariate",
        "gammavariate",
        "vonmisesvariate",
        "paretovariate",
        "weibullvariate",
        "randint",
        "randrange",
    )
)
# The type of what these give depends on more than the types of their arguments, or they check what they drew.
_OF_SEQUENCES = frozenset(
    (
        "choice",
        "permutation",
        "multinomial",
        "dirichlet",
        "multivariate_normal",
        "multivariate_hypergeometric",
    )
)


# -- NumPy's and Python's generators ------------------------------------------------------------------------
@functools.cache
def _signatures(cls: type) -> dict[str, inspect.Signature]:
    """The methods that draw a number, or numbers of a given size."""
    if cls is random.Random:
        return {name: inspect.signature(getattr(cls, name)) for name in _OF_PYTHON}
    found = {}
    for name, method in vars(cls).items():
        if name.startswith("_") or name in _REFUSED or not callable(method):
            continue
        signature = inspect.signature(method)
        if "size" in signature.parameters or name in _SIZES_AS_ARGUMENTS or name == "permutation":
            found[name] = signature
    return found


@functools.cache
def _reference(cls: type) -> Any:
    """A generator of ours, to see what methods give."""
    return random.Random(0) if cls is random.Random else cls(np.random.MT19937(0))


_NOTHING, _FIRST = ConstValue(None), ConstValue(0)


def is_generator(obj: object) -> bool:
    return type(obj) in GENERATORS


def is_drawing(method: Any) -> bool:
    """Whether a bound method, of Python's or of C's, is one that draws, of a generator."""
    owner = method.__self__
    if not is_generator(owner):
        return False
    cls: type = type(owner)
    name = getattr(method, "__name__", "")
    return name in _signatures(cls) and method == getattr(cls, name).__get__(owner)


def drawing_method(tracer: Tracer, method: Any, source: Source) -> DrawingMethodValue:
    """``np.random.normal`` is a method of a generator that all of its functions belong to."""
    if isinstance(method, types.BuiltinMethodType):
        tracer.guard(AttrSource(source, "__name__"), Kind.EQUALS, method.__name__)
    else:
        tracer.guard(AttrSource(source, "__func__"), Kind.IS, method.__func__)
    place = AttrSource(source, "__self__")
    if is_shared(method.__self__):
        tracer.guard(place, Kind.IS, method.__self__)
        name = "_inst" if type(method.__self__) is random.Random else "_rand"
        owner: Value = RandomSourceValue(method.__self__, ConstSource(method.__self__, name))
    else:
        owner = tracer.realize(tracer.child(method.__self__, place))
    return DrawingMethodValue(owner, method.__name__, source)


class RandomSourceValue(OpaqueValue):
    """One of NumPy's or Python's generators of random numbers."""

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in _signatures(self.pytype):
            return DrawingMethodValue(self, name)
        found: Value = super().getattr(tracer, name)
        return found


class MadeGeneratorValue(Value):
    """A generator that captured code makes: where the original has to run, it makes its own."""

    def __init__(self, cls: type, making: Draw) -> None:
        self.cls = cls
        self.draw = making
        self.like = _reference(cls)

    @property
    def pytype(self) -> type:
        return self.cls

    def describe(self) -> str:
        return "a generator of random numbers made here"

    def reconstruct(self, cg: Codegen) -> str:
        return cg.drawn(self.draw)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in _signatures(self.cls):
            return DrawingMethodValue(self, name)
        raise Break("unsupported-attribute", f"attribute {name!r} of {self.describe()}")


class DrawingMethodValue(NamedMethodValue):
    """A method of a generator that draws, bound and not yet called."""

    def __init__(self, owner: Value, name: str, source: Source | None = None) -> None:
        super().__init__(owner, name)
        self.source = source

    @property
    def pytype(self) -> type:
        return types.MethodType

    def reconstruct(self, cg: Codegen) -> str:
        return super().reconstruct(cg) if self.source is None else cg.load(self.source)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tracer.take_direct()
        return draw_from(tracer, self.owner, self.name, args, kwargs)


def random_from_outside(tracer: Tracer, obj: object, source: Source) -> Value | None:
    """The value of a generator, or of the function that makes one."""
    if obj is np.random.default_rng:
        tracer.guard(source, Kind.IS, obj)
        return ConstValue(obj, source)
    return RandomSourceValue(obj, source) if is_generator(obj) else None


def is_shared(generator: object) -> bool:
    """Whether it is one that the functions of ``np.random``, or of ``random``, belong to."""
    shared = (getattr(np.random.mtrand, "_rand", random), getattr(random, "_inst", random))
    return any(generator is one for one in shared)


def make_generator(
    tracer: Tracer, function: object, cls: type, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """What ``function(*args, **kwargs)`` makes of a seed: a new generator of this class."""
    given = [tracer.realize(value) for value in args]
    named = {key: tracer.realize(value) for key, value in kwargs.items()}
    for value in (*given, *named.values()):
        _refuse_unknown(tracer, value, "a seed")
        _check_seed(value)
    fixed = {key: _as_now(tracer, value) for key, value in named.items()}
    draw = _new_draw(tracer, function, None, None, tuple(_as_now(tracer, v) for v in given), fixed)
    return MadeGeneratorValue(cls, draw)


def _check_seed(value: Value) -> None:
    """Seeds that are objects may be shared with other generators."""
    kinds = (int, type(None), tuple, list)
    if value.pytype not in kinds or (value.is_const and type(value.const) not in (int, type(None))):
        raise Break("unsupported-call", f"a generator of random numbers from {value.describe()}")


def draw_from(tracer: Tracer, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What ``owner.name(*args, **kwargs)`` gives: a Python number, an array scalar or an array in C order."""
    cls = owner.pytype
    keep = keep_state if isinstance(owner, RandomSourceValue) else None
    given = tuple(tracer.realize(value) for value in args)
    named = {key: tracer.realize(value) for key, value in kwargs.items()}
    for value in (*given, *named.values()):
        if cls is random.Random or not _is_untouched(tracer, value):
            _refuse_unknown(tracer, value, name)
    try:
        bound = _signatures(cls)[name].bind(None, *given, **named).arguments
    except TypeError as error:
        raise Break("would-raise", f"{name}: {error}") from None
    del bound["self"]
    _refuse_places(name, bound)
    size = TupleValue(list(bound.pop("args", ()))) if name in _SIZES_AS_ARGUMENTS else bound.pop("size", None)
    if name == "permutation":
        size, bound = _size_of_permutation(bound)
    leading = None if size is None or _is_none(size) else _dims(tracer, size)
    if name in _SIZES_AS_ARGUMENTS and not leading:
        leading = None
    found = _tried(cls, name, {key: _example(tracer, value) for key, value in bound.items()}, leading)
    is_number = type(found) in (bool, int, float)
    type_ = None if is_number else _type_of(found, leading)
    if type_ is not None:
        _check_device(tracer)
    fixed = tuple(_as_now(tracer, value) for value in given)
    draw = _new_draw(
        tracer, name, owner, keep, fixed, {key: _as_now(tracer, value) for key, value in named.items()}
    )
    draw.may_raise = not _takes_any_size(name, bound, leading)
    draw.may_fail_late = name in _OF_SEQUENCES
    draw.is_fraction = name in _FRACTIONS
    if type_ is None:
        return NumberValue(found, (DrawnNumber(draw, type(found)),))
    return _input(tracer, draw, type_, type(found), "numpy", lambda: np.zeros(_hints(type_), found.dtype)[()])


def _refuse_places(name: str, bound: dict[str, Any]) -> None:
    """Nothing is drawn into an array of the program's, nor along an axis other than the first."""
    if not _is_none(bound.get("out", _NOTHING)):
        raise Break("unsupported-call", f"{name} with out=")
    axis = bound.get("axis", _FIRST)
    if name == "choice" and not (axis.is_const and type(axis.const) is int and axis.const == 0):
        raise Break("unsupported-call", "a choice along another axis than the first")


def _takes_any_size(name: str, bound: dict[str, Any], leading: tuple[Dim, ...] | None) -> bool:
    plain = all(v.is_const and type(v.const) not in (tuple, list) for v in bound.values())
    return name in _OF_ANY_SIZE and plain and is_usual_size(leading or ())


def _hints(type_: ArrayType) -> tuple[int, ...]:
    return tuple(map(hint, type_.shape))


def _refuse_unknown(tracer: Tracer, value: Value, name: str) -> None:
    """Arguments have to be known before the graph."""
    if isinstance(value, (TupleValue, ListValue)) and value.pytype in (tuple, list):
        for item in value.items(tracer):
            _refuse_unknown(tracer, tracer.realize(item), name)
        return
    known = value.is_const or isinstance(value, (NumberValue, SymIntValue))
    if not known or is_late(tracer, value):
        raise Break("unsupported-call", f"random numbers by {value.describe()}")


def _is_untouched(tracer: Tracer, value: Value) -> bool:
    """Whether it is an array from outside that captured code has not written to."""
    if not isinstance(value, ArrayValue) or value.source is None or value.ref.kind != "array":
        return False
    name = value.ref.var.name
    if value.ref.frontend != "numpy" or name not in tracer.input_objects:
        return False
    written = [memory_of(tracer.builder, n.inputs[0]) for n in tracer.builder.nodes if n.op == COPY]
    return name not in written and all(type(size) is int for size in value.ref.shape)


def _example(tracer: Tracer, value: Value) -> Any:
    if isinstance(value, ArrayValue):
        return tracer.input_objects[value.ref.var.name].copy(order="K")  # not the program's own
    return hint_of(value)


def _as_now(tracer: Tracer, value: Value) -> Any:
    """An argument as it is at the call: lists may change behind it."""
    if not isinstance(value, (TupleValue, ListValue)):
        return value
    return value.pytype([_as_now(tracer, tracer.realize(item)) for item in value.items(tracer)])


def _is_none(value: Value) -> bool:
    return value.is_const and value.const is None


def _size_of_permutation(bound: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """``permutation(n)`` gives so many numbers; of a list, as many as it has."""
    x = bound["x"]
    if isinstance(x, (SymIntValue, NumberValue)) or (x.is_const and type(x.const) is int):
        return TupleValue([x]), {}
    return None, bound


def _dims(tracer: Tracer, size: Value) -> tuple[Dim, ...]:
    items = size.items(tracer) if isinstance(size, (TupleValue, ListValue)) else None
    if items is None and size.is_const and type(size.const) in (tuple, list):
        return tuple(_dim(tracer, number) for number in size.const)
    if items is None:
        return (_dim(tracer, size),)
    return tuple(_dim(tracer, tracer.realize(item)) for item in items)


def _dim(tracer: Tracer, value: object) -> Dim:
    number = value.for_rule(tracer) if isinstance(value, Value) else value
    if not isinstance(number, SymInt) and type(number) is not int:
        raise Break("unsupported-call", "random numbers of a size that is no int")
    if hint(number) < 0:
        raise Break("would-raise", "random numbers of a negative size")
    return number


def _tried(cls: type, name: str, arguments: dict[str, Any], leading: tuple[Dim, ...] | None) -> Any:
    """What the method gives for the arguments' values at capture; without arrays of sizes at most one."""
    population = arguments.get("a")
    if name == "choice" and type(population) is int and population > _LARGEST_POPULATION:
        raise Break("unsupported-call", "a choice from many")
    most = _LARGEST_POPULATION if any(isinstance(a, np.ndarray) for a in arguments.values()) else 1
    small = None if leading is None else tuple(min(hint(size), most) for size in leading)
    if small is not None and math.prod(small) > _LARGEST_POPULATION:
        raise Break("unsupported-call", "many random numbers by arrays")
    method = getattr(_reference(cls), name)
    try:
        if cls is random.Random:
            return quietly(functools.partial(method, **arguments))
        if name in _SIZES_AS_ARGUMENTS:
            return quietly(method, *(small or ()))
        if name == "permutation":
            return quietly(method, *(arguments.values() if small is None else small))
        return quietly(functools.partial(_called, method, arguments, small))
    except Break:
        raise
    except Exception as error:
        if is_from_handler(error):
            raise
        raise Break("would-raise", f"{name}: {error}") from None


def _called(method: Callable[..., Any], arguments: dict[str, Any], size: Any) -> Any:
    return method(**arguments, size=size)


def _type_of(found: Any, leading: tuple[Dim, ...] | None) -> ArrayType:
    """The type of an array or array scalar like ``found``, whose first sizes are ``leading``."""
    known = isinstance(found, (np.ndarray, np.generic)) and found.ndim >= len(leading or ())
    dtype = from_numpy(found.dtype) if known else None
    if dtype is None or not found.flags.c_contiguous:
        raise Break("unsupported-call", f"random numbers of type {type(found).__name__}")
    return array_type(dtype, (*(leading or ()), *found.shape[len(leading or ()) :]))


# -- all libraries ------------------------------------------------------------------------------------------
def begin_draws(tracer: Tracer) -> list[Draw]:
    """Let rules draw; the calls of an attempt, in their order."""
    tracer.tx.draw = functools.partial(drawn_array, tracer)
    tracer.tx.require = functools.partial(_require, tracer)
    return []


def end_draws(tracer: Tracer) -> None:
    tracer.draws.clear()
    tracer.tx.draw = tracer.tx.require = None


def _require(tracer: Tracer, ref: ArrayRef) -> None:
    raising_branches.check(tracer, tracer.array_value(ref), True)


def _new_draw(
    tracer: Tracer,
    function: object,
    owner: object,
    keep: Callable[[list[Any], Any], None] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Draw:
    tracer.refuse_for_batch("random numbers")
    tracer.steps += 1
    tracer.outside_changes += 1
    draw = Draw(len(tracer.draws), function, owner, keep, args, kwargs)
    tracer.draws.append(draw)
    return draw


def _check_device(tracer: Tracer) -> None:
    if tracer.builder.device not in (None, CPU):
        raise Break("unsupported-call", "random numbers on the CPU beside arrays elsewhere")


def _input(
    tracer: Tracer, draw: Draw, type_: ArrayType, pytype: type, frontend: str, example: Callable[[], Any]
) -> DrawnArrayValue:
    """What is drawn as an input of the graph. It does not break: the draw was noted."""
    tracer.assume_state(tracer.config.frontend_named(frontend))
    kind = "scalar" if issubclass(pytype, np.generic) else "array"
    var = tracer.builder.add_input(type_, kind, f"draw {draw.number}")
    ref = ArrayRef(var, kind, frontend)
    value = DrawnArrayValue(ref, pytype, draw, example)
    tracer.inputs.append(value)
    tracer.by_ref[ref] = value
    return value


def drawn_array(tracer: Tracer, call: DrawingCall) -> ArrayRef:
    """What a function of a library draws, for one of its rules."""
    args, kwargs = (_argument(tracer, call.args), _argument(tracer, call.kwargs))
    _check_device(tracer)
    draw = _new_draw(tracer, call.function, call.owner, call.keep, args, kwargs)
    draw.may_raise, draw.is_fraction = call.may_raise, call.is_fraction
    return _input(tracer, draw, call.result, call.pytype, call.frontend, call.example).ref


def _argument(tracer: Tracer, given: Any) -> Any:
    """An argument of a rule as a draw takes it: Python numbers that the graph is given as traced values."""
    if isinstance(given, dict):
        return {name: _argument(tracer, value) for name, value in given.items()}
    if type(given) in (tuple, list):
        return type(given)(_argument(tracer, value) for value in given)
    if not isinstance(given, ArrayRef):
        return given
    for value, graph_input in zip(tracer.inputs, tracer.builder.inputs):
        if graph_input.var == given.var and isinstance(value, NumberValue):
            return value
    raise Unsupported("random numbers by what the graph computes")
