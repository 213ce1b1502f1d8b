"""From an object of the running program to a traced value, with the guards that this assumes."""

from __future__ import annotations

import enum
import functools
import re
import sys
import threading
import types
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..device import CPU
from ..dtypes import from_numpy, uint64
from ..errors import Unsupported
from ..frontends.base import ArrayFacts as Facts
from ..frontends.base import ArrayRef, Frontend
from ..graph.ir import ArrayType
from ..hook import _hook
from ..symbolic.integers import SymInt
from .breaks import Break, Skip
from .environment.regions import error_on_graph_break
from .guards.fact_kinds import ArrayFacts, CodeFacts, CustomCheck, TensorFacts
from .guards.guard import Kind
from .guards.program import is_plain_key
from .guards.source import (
    AttrSource,
    CellContentsSource,
    ConstSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Source,
)
from .immutable.types import KNOWN
from .immutable.values import FrozenValue
from .objects.class_kinds import SPECIAL_FORM, is_plain_class, is_plain_namedtuple, is_struct_sequence
from .objects.class_names import class_dict, qualname_of
from .random.draws import drawing_method, is_drawing, random_from_outside
from .sizes.dims import array_dims, dlpack_device, has_exchange_table
from .values.array import ArrayValue
from .values.base import LazyValue, OpaqueValue, Tracer, Value
from .values.deque import DequeValue
from .values.derived import builtin_part, derived_from_outside
from .values.func import BoundMethodValue, CellValue, FunctionValue
from .values.getters import GETTERS, GetterValue
from .values.iterator import OpaqueIterator
from .values.mapping import DefaultDictValue, DictValue, SizedValue
from .values.mapping_proxy import MappingProxyValue
from .values.namespace import LoadedModulesValue, ThreadLocalValue
from .values.number import ConstValue, NumberValue, SymIntValue
from .values.obj import InstanceValue, ModuleValue
from .values.parted import PartedValue
from .values.partial import PartialValue
from .values.region import RegionContextValue
from .values.seq import ListValue, RangeValue, SliceValue, TupleValue, refuse_large
from .values.sets import LARGEST_OUTSIDE, SetValue
from .values.weak import WeakReferenceValue

_BY_IDENTITY = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MethodWrapperType,
    functools._lru_cache_wrapper,
    type(np.sin),
    type(np.sum),
    type,
    types.GenericAlias,
    ContextVar,
)
_ITERATORS: tuple[type, ...] = (
    types.GeneratorType,
    type(iter([])),
    type(iter(())),
    type(iter("")),
    type(iter(range(0))),
    type(iter({})),
    type(iter({}.values())),
    type(iter({}.items())),
    type(iter(set())),
    reversed,
    enumerate,
    zip,
    map,
    filter,
)
_KNOWN_AGAIN = (ArrayValue, ListValue, DictValue, SetValue, DequeValue, InstanceValue, MappingProxyValue)
_MOST_TEXTS = 4
_TEXTS = (str, bytes)


def wrap(tracer: Tracer, obj: object, source: Source) -> Value:
    """The value of ``obj`` found at ``source``; guards are added to the tracer."""
    known = tracer.by_id.get(id(obj))
    if known is not None:
        value, _ = known
        if value.source is not None and value.source != source:
            tracer.guard(source, Kind.SAME_OBJECT, value.source)
        return value
    value = _wrap(tracer, obj, source)
    if isinstance(value, _KNOWN_AGAIN):
        tracer.by_id[id(obj)] = (value, obj)
    return value


def _wrap(tracer: Tracer, obj: object, source: Source) -> Value:
    exact = _EXACT.get(type(obj))
    if exact is not None:
        return exact(tracer, obj, source)
    if tracer.config.holder is not None and type(obj) is tracer.config.holder[0]:
        return _wrap_held(tracer, obj, source)
    for frontend in tracer.config.frontends:
        if type(obj) in frontend.array_types or frontend.accepts(type(obj)):
            return wrap_array(tracer, frontend, obj, source)
        if frontend.is_constant(obj):
            parts = frontend.parts_of_constant(obj)
            if parts:
                _guard_parts(tracer, source, type(obj), parts)
            else:
                tracer.guard(source, Kind.IS, obj)
            return ConstValue(obj, source, by_value=bool(parts))
    return _wrap_by_class(tracer, obj, source)


def _wrap_by_class(tracer: Tracer, obj: Any, source: Source) -> Value:
    # never isinstance(): it asks the object for its __class__, which may run the program's code, and lie
    cls = type(obj)
    made = obj if issubclass(cls, type) else cls
    if "<locals>" in qualname_of(made):
        _refuse_made_anew(tracer, made, source)
    if issubclass(cls, (type, enum.Enum, SPECIAL_FORM)) or (cls in _BY_IDENTITY and not _bound_in_c(obj)):
        tracer.guard(source, Kind.IS, obj)
        return ConstValue(obj, source)
    if type(obj) is types.BuiltinMethodType:
        return _wrap_bound_builtin(tracer, obj, source)
    if cls is types.ModuleType:
        tracer.guard(source, Kind.IS, obj)
        return ModuleValue(obj, source)
    if issubclass(cls, _hook.Dispatcher):
        tracer.guard(source, Kind.IS, obj)
        inner = obj._function
        return FunctionValue(inner, pinned(inner))
    if type(obj) is error_on_graph_break:
        tracer.guard(source, Kind.TYPE_IS, error_on_graph_break)
        tracer.guard(AttrSource(source, "enabled"), Kind.BOOL, obj.enabled)
        return RegionContextValue(obj.enabled, source)
    tracer.rely_on(cls)
    if is_struct_sequence(cls) or (is_plain_namedtuple(cls) and not getattr(obj, "__dict__", None)):
        return _wrap_tuple(tracer, obj, source)
    if issubclass(cls, tuple) and any(f.is_constant(cls) for f in tracer.config.frontends):
        return _wrap_tuple(tracer, obj, source)
    base = builtin_part(type(obj))
    if base is not None:
        return derived_from_outside(tracer, obj, base, source)
    if is_plain_class(type(obj)):
        tracer.guard(source, Kind.TYPE_IS, type(obj))
        return _share_namespace(tracer, InstanceValue(type(obj), obj, source))
    tracer.guard(source, Kind.TYPE_IS, type(obj))
    return random_from_outside(tracer, obj, source) or OpaqueValue(obj, source)


def _share_namespace(tracer: Tracer, value: InstanceValue) -> InstanceValue:
    """``value``, whose ``__dict__`` may be another object's, too (compiled modules share their module's)."""
    member = next((d["__dict__"] for d in map(class_dict, value.cls.__mro__) if "__dict__" in d), None)
    if type(member) is not types.GetSetDescriptorType:
        return value
    outside = member.__get__(value.obj)
    known, _ = tracer.namespaces.setdefault(id(outside), (value.namespace, outside))
    if known is not value.namespace:
        assert value.source is not None
        tracer.guard(AttrSource(value.source, "__dict__"), Kind.SAME_OBJECT, known.dict_source())
        value.namespace = known
    return value


_MANY_CLASSES = 4


def _refuse_made_anew(tracer: Tracer, cls: type, source: Source) -> None:
    """A class that its function makes at each call is another one each time: no entry would be used again."""
    seen = tracer.config.state_of(tracer.code).seen
    key = f"{source.expr()}: the class {qualname_of(cls)}"
    last, count = seen.get(key, (None, 0))
    if last is None or last() is not cls:
        count += 1
        seen[key] = (weakref.ref(cls), count)
    if count >= _MANY_CLASSES:
        raise Skip(f"the class {qualname_of(cls)} is made anew again and again")


def _bound_in_c(obj: object) -> bool:
    """A C method bound to an object: a new one at each look-up, so that its identity says nothing."""
    return isinstance(getattr(obj, "__self__", None), object) and not isinstance(
        getattr(obj, "__self__", None), (types.ModuleType, type, type(None))
    )


def _wrap_union(tracer: Tracer, obj: types.UnionType, source: Source) -> Value:
    """``int | str``, an object made anew wherever a program says so: known by its parts."""
    tracer.guard(source, Kind.TYPE_IS, types.UnionType)
    check = CustomCheck(_is_union_of, obj.__args__, f"the union {obj}")
    tracer.guard(source, Kind.CUSTOM_ARRAY, check)
    return ConstValue(obj, source)


def _is_union_of(union: types.UnionType, parts: tuple[Any, ...]) -> bool:
    found = union.__args__
    return len(found) == len(parts) and all(a is b for a, b in zip(found, parts))


def _wrap_bound_builtin(tracer: Tracer, obj: Any, source: Source) -> Value:
    """A C method of a container or an array, as breaks leave them on the stack (``r.append``)."""
    tracer.guard(source, Kind.TYPE_IS, types.BuiltinMethodType)
    owner = obj.__self__
    if is_drawing(obj):
        return drawing_method(tracer, obj, source)
    if type(owner) not in (list, dict) and not any(
        type(owner) in f.array_types for f in tracer.config.frontends
    ):
        return OpaqueValue(obj, source)
    tracer.guard(AttrSource(source, "__name__"), Kind.EQUALS, obj.__name__)
    traced = tracer.realize(tracer.child(owner, AttrSource(source, "__self__")))
    try:
        found: Value = traced.getattr(tracer, obj.__name__)
    except Break as problem:
        return OpaqueValue(obj, source, problem.reason)
    return found


def wrap_unguarded(tracer: Tracer, obj: object, source: Source | None = None) -> Value:
    """The value of an object that is taken as it is: members of library modules, class attributes of
    classes made here. Mutable objects without a source stay opaque."""
    if isinstance(obj, types.FunctionType):
        from_where = source if source is not None else pinned(obj)
        return FunctionValue(obj, from_where)
    if any(f.is_constant(obj) for f in tracer.config.frontends):  # before modules: some are such constants
        return ConstValue(obj)
    if isinstance(obj, types.ModuleType):
        return ModuleValue(obj, source)
    if type(obj) in (int, float, complex, bool, str, bytes, type(None), type(Ellipsis)):
        return ConstValue(obj)
    by_identity = type(obj) in _BY_IDENTITY and not (_bound_in_c(obj) and is_drawing(obj))
    if isinstance(obj, type) or by_identity or isinstance(obj, enum.Enum):
        return ConstValue(obj)
    return tracer.realize(tracer.child(obj, source if source is not None else pinned(obj)))


def pinned(obj: object) -> Source:
    return ConstSource(obj, getattr(obj, "__name__", type(obj).__name__))


# -- numbers and other constants ----------------------------------------------------------------
def _wrap_none(tracer: Tracer, obj: object, source: Source) -> Value:
    tracer.guard(source, Kind.NONE)
    return ConstValue(None, source)


def _wrap_bool(tracer: Tracer, obj: object, source: Source) -> Value:
    tracer.guard(source, Kind.BOOL, obj)
    return ConstValue(obj, source)


def _wrap_equal(tracer: Tracer, obj: object, source: Source) -> Value:
    tracer.guard(source, Kind.EQUALS, obj)
    return ConstValue(obj, source)


def _wrap_text(tracer: Tracer, obj: object, source: Source) -> Value:
    """A string is a constant; but a loop over many would have its body compiled for each, and a function that
    is called with ever new ones would run into the limit of recompilations."""
    if _changes_often(tracer, obj, source):
        tracer.guard(source, Kind.TYPE_IS, type(obj))
        return OpaqueValue(obj, source, "a string that changes from call to call")
    return _wrap_equal(tracer, obj, source)


def _changes_often(tracer: Tracer, obj: Any, source: Source) -> bool:
    """Whether too many other objects were seen at this place for each to be a constant."""
    seen = tracer.config.state_of(tracer.code).texts.setdefault(source.expr(), set())
    seen.add(obj if type(obj) in _TEXTS else repr(obj))
    root = source.root()
    varies = isinstance(root, LocalSource) and root.local in tracer.varying
    most = _MOST_TEXTS if varies else max(_MOST_TEXTS, tracer.config.options.recompile_limit - 2)
    return len(seen) > most


def _wrap_frozen(tracer: Tracer, obj: object, source: Source) -> Value:
    """As a string: a constant, unless it changes again and again."""
    if not isinstance(obj, re.Pattern) and _changes_often(tracer, obj, source):
        tracer.guard(source, Kind.TYPE_IS, type(obj))
        return OpaqueValue(obj, source)
    return FrozenValue.outside(tracer, obj, source)


def _wrap_same(tracer: Tracer, obj: object, source: Source) -> Value:
    tracer.guard(source, Kind.IS, obj)
    return ConstValue(obj, source)


def is_dynamic(tracer: Tracer, obj: object, source: Source) -> bool:
    """Whether a Python number is to be symbolic: a loop's changing variable, ``dynamic=True``, or one that
    an earlier capture saw with another value."""
    root = source.root()
    varies = isinstance(root, LocalSource) and root.local in tracer.varying
    if varies and not _is_attribute(source):
        return True
    dynamic = tracer.config.options.dynamic
    if dynamic is False:
        return False
    if dynamic is True and isinstance(source, LocalSource):
        return True
    if isinstance(source, LocalSource) and tracer.config.described_argument(tracer.code, source.local):
        return True
    names = _names_of(source) if type(obj) in (int, float) else []
    if names and any(frontend.varies(names) for frontend in tracer.config.frontends):
        return True
    state = tracer.config.state_of(tracer.code)
    key = (source.expr(), type(obj))
    if state.seen.setdefault(key, obj) != obj:
        state.dynamic.add(key)
    return key in state.dynamic


def _names_of(source: Source) -> list[str]:
    """The attributes and keys that lead to what is found at ``source``, the last one first."""
    found: list[str] = []
    each: Source | None = source
    while each is not None:
        name = getattr(each, "key", None) if isinstance(each, ItemSource) else getattr(each, "attr", None)
        found += [name] if isinstance(name, str) else []
        each = each.parent
    return found


def _is_attribute(source: Source) -> bool:
    """Whether a number belongs to some object: such are often the same for all objects of a loop."""
    found: Source | None = source
    while found is not None:
        if isinstance(found, (AttrSource, InstanceDictSource)):
            return True
        found = found.parent
    return False


def _wrap_int(tracer: Tracer, obj: int, source: Source) -> Value:
    if not is_dynamic(tracer, obj, source):
        return _wrap_equal(tracer, obj, source)
    if not -(2**63) <= obj < 2**63:
        tracer.guard(source, Kind.TYPE_IS, int)
        return NumberValue(obj, (), source)
    tracer.guard(source, Kind.PYINT_FITS_INT64)
    return SymIntValue(tracer.new_integer(source, obj), source)


def _wrap_float(tracer: Tracer, obj: object, source: Source) -> Value:
    if is_dynamic(tracer, obj, source):
        tracer.guard(source, Kind.TYPE_IS, type(obj))
        return NumberValue(obj, (), source)
    return _wrap_equal(tracer, obj, source)


# -- containers -----------------------------------------------------------------------------------
def _wrap_tuple(tracer: Tracer, obj: tuple[Any, ...], source: Source) -> Value:
    refuse_large(tracer, len(obj), "tuple")
    tracer.guard(source, Kind.LEN, (type(obj), len(obj)))
    items = [tracer.child(v, ItemSource(source, i)) for i, v in enumerate(tuple.__iter__(obj))]
    return TupleValue(items, source, type(obj))


def _wrap_list(tracer: Tracer, obj: list[Any], source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, list)
    return ListValue(None, source, obj)


def _wrap_ordered_dict(tracer: Tracer, obj: OrderedDict[Any, Any], source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, OrderedDict)
    return DictValue(None, source, obj, OrderedDict)


def _wrap_counter(tracer: Tracer, obj: Counter[Any], source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, Counter)
    return DictValue(None, source, obj, Counter)


def _wrap_default_dict(tracer: Tracer, obj: defaultdict[Any, Any], source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, defaultdict)
    return DefaultDictValue.outside(tracer, obj, source)


def _wrap_set(tracer: Tracer, obj: Any, source: Source) -> Value:
    if len(obj) > LARGEST_OUTSIDE or not all(is_plain_key(e) for e in obj):
        tracer.guard(source, Kind.LEN, (type(obj), len(obj)))
        return SizedValue(obj, source)
    tracer.guard(source, Kind.TYPE_IS, type(obj))
    frozen = isinstance(obj, frozenset)
    return SetValue(tracer, None, frozen=frozen, certain=False, source=source, obj=obj)


def _wrap_dict(tracer: Tracer, obj: dict[Any, Any], source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, dict)
    if obj is sys.modules:
        return LoadedModulesValue(None, source, obj)
    return DictValue(None, source, obj)


def _wrap_thread_local(tracer: Tracer, obj: object, source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, threading.local)
    return ThreadLocalValue(obj, source)


def _wrap_range(tracer: Tracer, obj: range, source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, range)
    parts = [
        tracer.realize(tracer.child(getattr(obj, n), AttrSource(source, n)))
        for n in ("start", "stop", "step")
    ]
    if not all(isinstance(p, (ConstValue, SymIntValue)) for p in parts):
        return OpaqueValue(obj, source, "a range of numbers beyond 64 bits")
    found = RangeValue(*(p.for_rule(tracer) for p in parts))
    found.source = source
    return found


def _wrap_slice(tracer: Tracer, obj: slice, source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, slice)
    parts = [
        tracer.realize(tracer.child(getattr(obj, n), AttrSource(source, n)))
        for n in ("start", "stop", "step")
    ]
    found = SliceValue(*parts)
    found.source = source
    return found


# -- functions ------------------------------------------------------------------------------------
def _wrap_function(tracer: Tracer, obj: types.FunctionType, source: Source) -> Value:
    tracer.guard(source, Kind.CODE_IS, CodeFacts.of(obj, tracer.config.code_hashes))
    return FunctionValue(obj, source)


def _wrap_method(tracer: Tracer, obj: types.MethodType, source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, types.MethodType)
    if is_drawing(obj):
        return drawing_method(tracer, obj, source)
    owner = tracer.realize(tracer.child(obj.__self__, AttrSource(source, "__self__")))
    function = tracer.realize(tracer.child(obj.__func__, AttrSource(source, "__func__")))
    return BoundMethodValue(owner, function, source)


def _wrap_partial(tracer: Tracer, obj: functools.partial[Any], source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, functools.partial)
    tracer.guard(AttrSource(source, "args"), Kind.LEN, (tuple, len(obj.args)))
    tracer.guard(AttrSource(source, "keywords"), Kind.DICT_KEYS, tuple(obj.keywords))
    function = tracer.child_or_constant(obj.func, AttrSource(source, "func"))
    args = [tracer.child(v, ItemSource(AttrSource(source, "args"), i)) for i, v in enumerate(obj.args)]
    keywords = AttrSource(source, "keywords")
    kwargs = {k: tracer.child(v, ItemSource(keywords, k)) for k, v in obj.keywords.items()}
    return PartialValue(function, args, kwargs, source, obj)


def _wrap_iterator(tracer: Tracer, obj: object, source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, type(obj))
    return OpaqueIterator(obj, source)


def _wrap_cell(tracer: Tracer, obj: types.CellType, source: Source) -> Value:
    tracer.guard(source, Kind.TYPE_IS, types.CellType)
    try:
        contents: Value | None = LazyValue(obj.cell_contents, CellContentsSource(source))
    except ValueError:
        contents = None
    return CellValue("cell", contents, source)


_EXACT: dict[type, Callable[[Tracer, Any, Source], Value]] = {
    type(None): _wrap_none,
    bool: _wrap_bool,
    int: _wrap_int,
    float: _wrap_float,
    complex: _wrap_float,
    str: _wrap_text,
    bytes: _wrap_text,
    type(Ellipsis): _wrap_same,
    type(NotImplemented): _wrap_same,
    tuple: _wrap_tuple,
    list: _wrap_list,
    dict: _wrap_dict,
    threading.local: _wrap_thread_local,
    OrderedDict: _wrap_ordered_dict,
    Counter: _wrap_counter,
    defaultdict: _wrap_default_dict,
    deque: DequeValue.outside,
    set: _wrap_set,
    **dict.fromkeys(GETTERS, GetterValue.outside),
    frozenset: _wrap_set,
    range: _wrap_range,
    slice: _wrap_slice,
    types.FunctionType: _wrap_function,
    types.MethodType: _wrap_method,
    functools.partial: _wrap_partial,
    types.CellType: _wrap_cell,
    weakref.ref: WeakReferenceValue.outside,
    types.CodeType: _wrap_same,
    **dict.fromkeys(KNOWN, _wrap_frozen),
    types.UnionType: _wrap_union,
    types.MappingProxyType: MappingProxyValue.outside,
    **dict.fromkeys(_ITERATORS, _wrap_iterator),
}


# -- arrays -----------------------------------------------------------------------------------------
def _wrap_held(tracer: Tracer, obj: object, source: Source) -> Value:
    """What an object holds (see ``CaptureConfig.holder``); the object is the graph's input."""
    assert tracer.config.holder is not None
    pytype, name = tracer.config.holder
    tracer.guard(source, Kind.TYPE_IS, pytype)
    held, place = getattr(obj, name), AttrSource(source, name)
    frontend = tracer.config.frontends[0]
    if isinstance(held, (float, complex)) and not isinstance(held, np.generic):
        tracer.guard(place, Kind.TYPE_IS, type(held))
        return _scalar_input(tracer, frontend, "python", np.dtype(type(held)), type(held), source, True)
    value = wrap_array(tracer, frontend, held, place, True)
    if not isinstance(value, ArrayValue):
        return OpaqueValue(obj, source, value.describe())
    value.source, value.held_at = source, place
    return value


def wrap_array(
    tracer: Tracer, frontend: Frontend, obj: object, source: Source, differentiated: bool = False
) -> Value:
    """Make an array or an array scalar an input of the graph."""
    tracer.assume_state(frontend)
    try:
        facts: Facts = frontend.describe(obj)
    except Unsupported as error:
        parts = None if tracer.decisions.whole else frontend.parts_of(obj)
        if parts is None:
            return _refused_array(tracer, obj, source, error.reason)
        tracer.guard(source, Kind.TYPE_IS, type(obj))
        return PartedValue(obj, source, error.reason, frontend, parts)
    if tracer.decisions.recorded:
        facts = frontend.with_history(obj, facts)
    if facts.refused:
        _guard_extra(tracer, facts, source)
        return _refused_array(tracer, obj, source, facts.refused)
    if facts.kind == "scalar":
        tracer.guard(source, Kind.NUMPY_SCALAR, facts.pytype)
        if _is_number_among_tensors(tracer, obj):
            return _wrap_equal(tracer, obj, source)
        dtype = facts.dtype.numpy
        return _scalar_input(tracer, frontend, "scalar", dtype, facts.pytype, source, differentiated)
    if not facts.aligned:
        return _refused_array(tracer, obj, source, "an array whose memory is not aligned")
    here = tracer.builder.device
    if here not in (None, facts.device):
        if _is_number_beside(frontend, facts):
            return _wrap_number_beside(tracer, frontend, obj, facts, source)
        if here == CPU and all(_may_stay(v) for v in tracer.inputs):
            tracer.decisions.device = facts.device
            raise tracer.restart
        return _refused_array(tracer, obj, source, f"an array on {facts.device} beside others elsewhere")
    index = len(tracer.builder.inputs)
    shape, strides = array_dims(tracer, obj, facts, source, index)
    type_ = ArrayType(facts.dtype, shape, strides, facts.device)
    differentiated |= ("requires_grad", True) in facts.extra
    differentiated &= facts.dtype.is_inexact
    var = tracer.builder.add_input(type_, "array", source.expr(), differentiated)
    ref = ArrayRef(var, "array", frontend.name, not facts.writeable)
    value = ArrayValue(ref, facts.pytype, source)
    tracer.inputs.append(value)
    tracer.input_objects[var.name] = obj
    tracer.by_ref[ref] = value
    _guard_array(tracer, obj, facts, type_, source)
    return value


def _is_number_among_tensors(tracer: Tracer, obj: object) -> bool:
    """Whether a ``np.float64``, which is a ``float``, is one to another library (``tensor * np.sqrt(2)``)."""
    usual = type(obj) is np.float64 and obj == obj and obj != 0 and not tracer.is_captured_often()
    return usual and (tracer.decisions.among_tensors or tracer.works_on_tensors())


def _is_number_beside(frontend: Frontend, facts: Facts) -> bool:
    """Whether the library takes an array on the CPU for a number beside those on a device."""
    known = facts.device == CPU and not facts.shape and facts.dtype != uint64
    return known and bool(getattr(frontend, "takes_numbers_on_cpu", False))


def _may_stay(value: Value) -> bool:
    """Whether an input of a graph on the CPU may be one of a graph on a device."""
    if not isinstance(value, ArrayValue) or value.ref.kind != "array":
        return True
    return value.ref.frontend == "torch" and value.ref.ndim == 0


def _wrap_number_beside(
    tracer: Tracer, frontend: Frontend, obj: object, facts: Facts, source: Source
) -> Value:
    """An array without dimensions on the CPU, passed by value to a graph on a device."""
    var = tracer.builder.add_input(ArrayType(facts.dtype, (), ()), "scalar", source.expr())
    ref = ArrayRef(var, "array", frontend.name, host=True)
    value = ArrayValue(ref, facts.pytype, source)
    tracer.inputs.append(value)
    tracer.input_objects[var.name] = obj
    tracer.by_ref[ref] = value
    _guard_array(tracer, obj, facts, var.type, source)
    return value


def _refused_array(tracer: Tracer, obj: object, source: Source, reason: str) -> Value:
    """An array that is not captured; guarded so that only arrays like it are left to plain Python."""
    if type(obj) is np.ndarray:
        free = (None,) * obj.ndim
        tracer.guard(source, Kind.ARRAY, ArrayFacts(obj.dtype, free, None, None, obj.flags.aligned, None))
    else:
        tracer.guard(source, Kind.TYPE_IS, type(obj))
    return OpaqueValue(obj, source, reason)


def _scalar_input(
    tracer: Tracer,
    frontend: Frontend,
    kind: str,
    dtype: np.dtype[Any],
    pytype: type,
    source: Source,
    differentiated: bool,
) -> Value:
    known = from_numpy(dtype)
    assert known is not None
    differentiated &= known.is_inexact
    var = tracer.builder.add_input(ArrayType(known, (), ()), "scalar", source.expr(), differentiated)
    ref = ArrayRef(var, kind, frontend.name)
    value = ArrayValue(ref, pytype, source)
    tracer.inputs.append(value)
    tracer.by_ref[ref] = value
    return value


def _guard_array(tracer: Tracer, obj: Any, facts: Facts, type_: ArrayType, source: Source) -> None:
    shape = tuple(None if isinstance(d, SymInt) else d for d in type_.shape)
    symbolic = any(d is None for d in shape)
    strides: list[int | None] = []
    for size, stride, actual in zip(shape, type_.strides, facts.strides):
        free = size == 1 or isinstance(stride, SymInt) or (size == 0)
        strides.append(None if free else actual)
    if any(n == 0 for n in facts.shape) and not symbolic:
        strides = [None] * len(strides)
    if has_exchange_table(facts.pytype):
        place = dlpack_device(facts.device)
        expected = TensorFacts(facts.pytype, _dlpack_dtype(facts), shape, tuple(strides), place)
        tracer.guard(source, Kind.TORCH_TENSOR, expected)
    else:
        itemsize = facts.dtype.itemsize
        in_bytes = tuple(None if s is None else s * itemsize for s in strides)
        tracer.guard(
            source,
            Kind.ARRAY,
            ArrayFacts(obj.dtype, shape, in_bytes, None, True, facts.writeable, facts.pytype),
        )
    _guard_extra(tracer, facts, source)


def _guard_extra(tracer: Tracer, facts: Facts, source: Source) -> None:
    if facts.extra:
        _guard_parts(tracer, source, facts.pytype, facts.extra)
    for item in facts.checks:
        check = CustomCheck(item.check, item.expected, item.text)
        tracer.guard(source, Kind.CUSTOM_ARRAY, check)


def _guard_parts(tracer: Tracer, source: Source, cls: type, parts: Iterable[tuple[str, Any]]) -> None:
    """Guard the class and the values of attributes."""
    tracer.guard(source, Kind.TYPE_IS, cls)
    for name, expected in parts:
        tracer.guard(AttrSource(source, name), Kind.EQUALS, expected)


def _dlpack_dtype(facts: Facts) -> tuple[int, int, int]:
    codes = {"bool": 6, "int": 0, "uint": 1, "float": 2, "complex": 5}
    code = 4 if facts.dtype.name == "bfloat16" else codes[facts.dtype.kind]
    return (code, facts.dtype.bits, 1)
