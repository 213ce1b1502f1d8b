"""Arrays and numbers whose derivative the tape follows.

A :class:`Tracked` value is no ``ndarray``: C code that reads memory directly (``np.array`` of a list,
assignment to a plain array) would drop the derivative without a word. Of such a value C code asks for
``__array__`` or ``__float__``, which raise. To Python it is an array: operators, methods, NumPy's functions
and ``isinstance`` work.
"""

from __future__ import annotations

import copy
import functools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..capture.environment.regions import disable
from ..frontends.numpy.written import WRITING_METHODS, written_argument
from .callees import SETITEM, Attribute, How, MethodCall, Named, Operator
from .recording import (
    MOST_OPERATIONS,
    NUMBERS,
    Value,
    is_tracked,
    lost,
    operation_of,
    part_of,
    place,
    plain_of,
    record,
    slot_of,
    tape_of,
    tracked_in,
)
from .tape import CallNode, CustomNode, Slot, Storage, Tape, Window, WriteNode, in_memory, is_dense

# attributes by which memory leaves
_LEAVING = frozenset(
    ("flat", "base", "data", "ctypes", "getfield", "tofile", "dump", "dumps", "tobytes", "tostring")
)


@disable
class Tracked(Value):
    """``plain``: the array or number. ``slot``: its derivative, as of ``version`` of its storage.

    ``storage`` is ``None`` for numbers. ``window``: where it lies in the storage, ``None`` for all of it.
    """

    __slots__ = ("__weakref__",)

    # -- what Python and NumPy ask of any object -----------------------------------------------------
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)

    def __format__(self, spec: str) -> str:
        return format(self.plain, spec)

    def __bool__(self) -> bool:
        return bool(self.plain)

    def __int__(self) -> int:
        return int(self.plain)

    def __index__(self) -> int:
        return operator.index(self.plain)

    def __float__(self) -> float:
        self._check("float()")
        return float(self.plain)

    def __complex__(self) -> complex:
        self._check("complex()")
        return complex(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __hash__(self) -> int:
        return hash(self.plain)

    def __contains__(self, value: object) -> bool:
        return bool(np.any(np.equal(self.plain, plain_of(value))))

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self.plain)))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.plain) if digits is None else round(self.plain, digits)

    def __divmod__(self, other: Any) -> Any:
        return operator.floordiv(self, other), operator.mod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return operator.floordiv(other, self), operator.mod(other, self)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: object) -> Any:
        self._check("pickling")
        return self.plain.__reduce_ex__(protocol)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._check("a conversion to a plain array")
        array = np.asarray(self.plain)
        if self.tape.closed or copy:
            return np.array(array, dtype=dtype, copy=copy)
        self._expose()
        # what the tape would not see is not written
        array = np.asarray(array, dtype).view()
        array.flags.writeable = False
        return array

    def _expose(self) -> None:
        if self.storage is not None:
            self.storage.exposed = True

    def _check(self, what: str) -> None:
        if not self.tape.closed and slot_of(self) is not None:
            raise lost(self.tape, what)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        if method == "__call__" and ufunc.nout == 1:
            if not kwargs:
                return elementwise(_of_ufunc(ufunc), args)
            if len(kwargs) == 1 and type(kwargs.get("out", (None,))[0]) is Tracked:
                return elementwise(_of_ufunc(ufunc), args, kwargs["out"][0])
        tape = tape_of((args, kwargs))
        out = kwargs.pop("out", None)
        if method == "at":
            return _write_call(tape, Named(ufunc, ".at"), args, kwargs, args[0])
        how = Named(ufunc, "" if method == "__call__" else f".{method}")
        if out is None:
            return call(tape, how, args, kwargs)
        return into(tape, how, args, kwargs, out)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return apply(tape_of((args, kwargs)), function, args, kwargs)

    # -- attributes and methods of arrays ------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.plain, name)
        if name in _LEAVING:
            if self.tape.closed or found is None:
                return found
            if slot_of(self) is not None:
                raise lost(self.tape, f".{name}")
            self._expose()
            return found
        if callable(found):
            return Method(self, name)
        if isinstance(found, (np.ndarray, np.generic, float)):
            return call(self.tape, Attribute(name), (self,), {})
        return found

    @property
    def shape(self) -> Any:
        return self.plain.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        made = self.plain.view()
        made.shape = shape
        moved = view_of(self.tape, made, [self])
        self.plain, self.window, self.version = made, moved.window, -1

    @property
    def dtype(self) -> Any:
        return self.plain.dtype

    @property
    def ndim(self) -> Any:
        return self.plain.ndim

    @property
    def size(self) -> Any:
        return self.plain.size

    @property
    def flat(self) -> Any:
        return self.plain.flat if self.tape.closed else Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    @property
    def real(self) -> Any:
        return call(self.tape, Attribute("real"), (self,), {})

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        return call(self.tape, Attribute("imag"), (self,), {})

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def item(self, *place: Any) -> Any:
        value = self.plain.item(*place)
        if place:
            index = place[0] if len(place) == 1 else place
            found = (self.reshape(-1) if isinstance(index, int) else self)[index]
        else:
            found = self.reshape(-1)[0] if isinstance(self.plain, np.ndarray) else self
        if self.tape.closed or type(value) not in NUMBERS:
            return value
        slot = slot_of(found)
        return value if slot is None else number(self.tape, value, slot)

    def tolist(self) -> Any:
        if self.tape.closed or slot_of(self) is None:
            return self.plain.tolist()
        return self.item() if self.plain.ndim == 0 else [part.tolist() for part in self]

    def __getitem__(self, key: Any) -> Any:
        plain = plain_of(key)
        tape = self.tape
        result = self.plain[plain]
        if tape.closed:
            return result
        outs: list[Slot | None] = []
        slot = slot_of(self)
        found = _wrapped(tape, result, [self], slot is not None, outs)
        if slot is not None and outs[0] is not None:
            _gathered(tape, self, plain, slot, outs[0])
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        plain_key = plain_of(key)
        if self.tape.closed:
            self.plain[plain_key] = value
            return
        if not isinstance(self.plain, np.ndarray):
            self.plain[plain_key] = value  # raises
        if _is_basic(plain_key):
            steps = plain_key if type(plain_key) is tuple else (plain_key,)
            if not any(step is Ellipsis for step in steps):
                steps = (*steps, ...)  # an array for single elements too
            view = self.plain[steps]
            write(view_of(self.tape, view, [self]), value)
        else:
            _write_call(self.tape, SETITEM, (self, plain_key, value), {}, self)


def _gathered(tape: Tape, source: Any, key: Any, slot: Slot, out: Slot) -> None:
    """Elements of an array by index arrays were read. (By numbers too, which gives a copy.)"""
    basic = _is_basic(key)
    key = copy.deepcopy(key)  # which the program may write to

    def pull(cotangents: list[Any], record: bool) -> list[Any]:
        (found,) = cotangents
        if source.storage is None:
            return [found]
        made = np.zeros(slot.shape, slot.dtype)
        if record:
            made = fresh(tape, made, None)
        if basic:
            made[key] = found
        else:
            np.add.at(made, key, found)
        return [made]

    def push(tangents: list[Any]) -> list[Any]:
        return [tangents[0] if source.storage is None else tangents[0][key]]

    tape.append(CustomNode(pull, push, [slot], [out], "an item"))


def _is_basic(key: Any) -> bool:
    if type(key) is tuple:
        return all(map(_is_basic, key))
    return (
        key is None
        or key is Ellipsis
        or type(key) is slice
        or (isinstance(key, (int, np.integer)) and not isinstance(key, bool))
    )


_of_ufunc = functools.cache(Named)


# -- bound methods --------------------------------------------------------------------------------
@disable
class Flat:
    """What ``x.flat`` is: the elements in order. Parts that are read are copies."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return int(self.array.plain.size)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.array.flatten().__array__(dtype, copy)

    def _places(self, key: Any) -> Any:
        return np.unravel_index(np.arange(len(self))[plain_of(key)], self.array.plain.shape)

    def __getitem__(self, key: Any) -> Any:
        return self.array[self._places(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        places = self._places(key)
        shape = np.shape(places[0])
        if np.shape(plain_of(value)) not in ((), shape):
            raise lost(self.array.tape, "a write to .flat of another number of values")
        self.array[places] = value


class Method:
    """A bound method of a tracked array."""

    __slots__ = ("array", "name")

    def __init__(self, array: Any, name: str) -> None:
        self.array = array
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        array, name = self.array, self.name
        if name in WRITING_METHODS:
            return _write_call(array.tape, MethodCall(name), (array, *args), kwargs, array)
        if name == "resize":
            raise lost(array.tape, ".resize()")
        out = kwargs.pop("out", None)
        if out is not None:
            return into(array.tape, MethodCall(name), (array, *args), kwargs, (out,))
        return call(array.tape, MethodCall(name), (array, *args), kwargs)


# -- tracked values -----------------------------------------------------------------------------------
def _made(
    tape: Tape, plain: Any, storage: Storage | None, slot: Slot | None, window: Window | None, stopped: bool
) -> Tracked:
    made = Tracked()
    made.tape = tape
    made.plain = plain
    made.storage = storage
    made.slot = slot
    made.version = -1
    made.window = window
    made.stopped = stopped
    return made


def number(tape: Tape, value: Any, slot: Slot | None) -> Any:
    return _made(tape, value, None, slot, None, False)


def fresh(tape: Tape, array: Any, slot: Slot | None) -> Any:
    """An array that nobody else has."""
    if not is_dense(array):
        array = array.copy(order="K")
    return _made(tape, array, Storage(array, slot), slot, None, False)


def view_of(tape: Tape, view: Any, parents: Sequence[Any]) -> Any:
    """A tracked view of the memory of one of these."""
    if view.flags.owndata:
        return None
    address = _address(view)
    for parent in parents:
        storage = parent.storage
        if storage is not None and 0 <= address - storage.address < storage.owner.nbytes:
            window = Window(address - storage.address, view)
            if not view.flags.writeable and parent.plain.flags.writeable:
                view = np.ndarray(
                    view.shape, view.dtype, in_memory(storage.owner), window.offset, view.strides
                ) if not window.overlaps else view  # fmt: skip
            return _made(tape, view, storage, None, window, parent.stopped)
    return None


def _address(array: Any) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


# -- calls --------------------------------------------------------------------------------------------
def call(tape: Tape, how: How, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that writes nothing."""
    parents = tracked_in((args, kwargs), [])
    for parent in parents:
        if parent.tape is not tape:
            tape = tape_of(parents)
    plain_args = plain_of(args)
    result = how.run(*plain_args, **plain_of(kwargs)) if kwargs else how.run(*plain_args)
    return _recorded(tape, how, args, kwargs, result, parents)


def elementwise(how: Operator | Named, operands: tuple[Any, ...], target: Any = None) -> Any:
    """As :func:`call`, of an operator or a ufunc: what loops over time consist of. With a ``target`` (of a
    ufunc) as :func:`into`."""
    form = None if target is None else (target.plain.shape, target.plain.dtype)
    tape = None
    plain: list[Any] = []
    kinds: list[object] = []
    slots: list[Slot] = []
    wrt: list[int] = []
    for k, a in enumerate(operands):
        kind = type(a)
        if kind is Tracked:
            array = a.plain
            if (tape is not None and tape is not a.tape) or a.tape.closed:
                return _general(how, operands, target)
            tape = a.tape
            slot = slot_of(a)
            if slot is not None:
                slots.append(slot)
                wrt.append(k)
            plain.append(array)
            if type(array) in NUMBERS or (form is not None and form != (array.shape, array.dtype)):
                return _general(how, operands, target)
            kinds += (array.shape, array.dtype)
        elif kind is float:
            plain.append(a)
            kinds.append(float)
        else:
            return _general(how, operands, target)
    assert tape is not None
    if target is not None:
        if not slots or form is None or form[1].kind not in "fc":
            return _general(how, operands, target)
        out = Slot(*form)
        _append(tape, how, operands, (tuple(kinds), tuple(wrt)), slots, out)
        before_write(target)
        how.run(*plain, out=target.plain)
        wrote(target, out)
        return target
    result = how.run(*plain)
    if type(result) is not np.ndarray or result.dtype.kind not in "fc" or not slots:
        parents = [a for a in operands if type(a) is Tracked]
        return _recorded(tape, how, operands, {}, result, parents)
    out = Slot(result.shape, result.dtype)
    _append(tape, how, operands, (tuple(kinds), tuple(wrt)), slots, out)
    return fresh(tape, result, out)


def _general(how: Operator | Named, operands: tuple[Any, ...], target: Any) -> Any:
    tape = tape_of((operands, target))
    return call(tape, how, operands, {}) if target is None else into(tape, how, operands, {}, (target,))


def _append(
    tape: Tape,
    how: Operator | Named,
    operands: tuple[Any, ...],
    key: tuple[tuple[object, ...], tuple[int, ...]],
    slots: list[Slot],
    out: Slot,
) -> None:
    operation = how.known.get(key)
    if operation is None:
        if len(how.known) >= MOST_OPERATIONS:
            how.known.clear()
        operation = how.known[key] = operation_of(how, operands, key[1])
    kept: list[Any] = []
    for a in operands:
        if type(a) is Tracked:
            kept.append(a.plain if a.storage is None else a.storage.keep(a.plain))
        else:
            kept.append(a if out.dtype == np.float64 else np.asarray(a, out.dtype))
    tape.append(CallNode(operation, kept, slots, [out], place()))


def _recorded(
    tape: Tape, how: How, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, parents: list[Any]
) -> Any:
    """The tracked result of a call, whose node is appended."""
    kind = type(result)
    if tape.closed or kind is bool or kind is int or result is None or result is NotImplemented:
        return result
    if tracked_in(result, []):
        raise lost(tape, f"a call of {how.name}, whose result depends on more than its arguments,")
    slots = [slot_of(t) for t in parents]
    depends = any(s is not None for s in slots)
    outs: list[Slot | None] = []
    result = _wrapped(tape, result, parents, depends, outs)
    if any(outs):
        many = isinstance(result, (tuple, list))
        if many and len(result) != len(outs):
            raise lost(tape, f"a call of {how.name}, which gives nested results,")
        record(tape, how, args, kwargs, outs, many)
    return result


def _wrapped(tape: Tape, result: Any, parents: list[Any], depends: bool, outs: list[Slot | None]) -> Any:
    """The result, tracked; ``outs`` gets a slot for each part that is computed, and ``None`` for others."""
    if isinstance(result, np.ndarray):
        for parent in parents:
            if parent.plain is result:
                outs.append(None)
                return parent
        if type(result) is not np.ndarray:
            if depends:
                raise lost(tape, f"an array of type {type(result).__name__}")
            for parent in parents:
                parent._expose()
            return result
        view = view_of(tape, result, parents)
        if view is not None:
            outs.append(None)
            return view
        slot = Slot(result.shape, result.dtype) if depends and result.dtype.kind in "fc" else None
        outs.append(slot)
        if depends and result.dtype.kind not in "fcbiu":
            raise lost(tape, f"an array of dtype {result.dtype}")
        if slot is None and result.dtype.kind not in "fc":
            return result
        base = result.base
        made = fresh(tape, result, slot)
        # of this frame, of the result, and that of the count: any other may be the program's
        made.storage.exposed = base is not None and sys.getrefcount(base) > 3
        return made
    if isinstance(result, (np.generic, float, complex)):
        slot = None
        if depends and (isinstance(result, NUMBERS) or result.dtype.kind in "fc"):
            slot = Slot((), np.asarray(result).dtype)
        outs.append(slot)
        return result if slot is None else number(tape, result, slot)
    kind = type(result)
    if kind is tuple or kind is list:
        return kind([_wrapped(tape, r, parents, depends, outs) for r in result])
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return kind(*[_wrapped(tape, r, parents, depends, outs) for r in result])
    if not depends:
        for parent in parents:
            parent._expose()
    elif not isinstance(result, (bool, int, str, bytes, type, np.dtype, type(None))):
        raise lost(tape, f"a result of type {kind.__name__}")
    outs.append(None)
    return result


# -- writes -------------------------------------------------------------------------------------------
def write(target: Any, value: Any) -> None:
    """``target[...] = value``, of a tracked view."""
    tape = target.tape
    slot = None
    plain = value
    if is_tracked(value):
        slot, plain = slot_of(value), value.plain
        if target.ndim == 1 and _is_read_late(target.plain, plain):
            raise lost(tape, "a write of a part of an array to another part of it that overlaps it,")
    elif tracked_in(value, []):
        value = apply(tape, np.array, (value,), {})
        slot, plain = slot_of(value), value.plain
    before_write(target)
    target.plain[...] = plain
    wrote(target, slot)


def _is_read_late(target: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> bool:
    """Whether NumPy may write to elements of ``value`` before it reads them: it makes a copy first, but not
    for vectors whose steps have one sign, which it goes through from the end that is right for equal ones."""
    if value.ndim == 0 or value.strides[-1] == target.strides[0]:
        return False
    return value.strides[-1] * target.strides[0] > 0 and np.shares_memory(target, value)


def before_write(target: Any) -> None:
    storage = target.storage
    if storage is None:
        raise TypeError("return arrays must be of ArrayType")  # as NumPy says of numbers
    if storage.kept:
        window = target.window
        window = window or storage.whole
        storage.release(window.low, window.high)


def wrote(target: Any, slot: Slot | None) -> None:
    """A value was written to all of ``target``."""
    storage, window = target.storage, target.window
    if storage.owner.dtype.kind not in "fc":
        slot = None
    if slot is None and storage.slot is None:
        storage.version += 1
        return
    if window is None:
        window = storage.whole
        parent = None
    else:
        parent = storage.slot
        if window.overlaps:
            raise lost(target.tape, "a write to an array whose elements overlap")
        if part_of(window.dtype) != part_of(storage.owner.dtype):
            raise lost(target.tape, f"an array of {storage.owner.dtype} written as one of {window.dtype}")
    if slot is not None and (storage.exposed or target.tape.closed):
        raise lost(target.tape, "a write to an array that other code holds")
    made = Slot(storage.owner.shape, storage.owner.dtype)
    target.tape.append(WriteNode(storage, parent, window, slot, made))
    storage.slot = made
    storage.version += 1


def into(tape: Tape, how: How, args: tuple[Any, ...], kwargs: dict[str, Any], out: tuple[Any, ...]) -> Any:
    """A call with ``out=``."""
    if tape.closed:
        kwargs = {**plain_of(kwargs), "out": plain_of(out)}
        how.run(*plain_of(args), **kwargs)  # type: ignore[call-arg]
        return out[0] if len(out) == 1 else out
    if len(out) != 1 or out[0] is None or kwargs.get("where", True) is not True:
        if len(out) == 1 and out[0] is not None:
            return _write_call(tape, how, args, {**kwargs, "out": out[0]}, out[0])
        raise lost(tape, "out= with several arrays")
    target = out[0]
    parents = tracked_in((args, kwargs), [])
    if not is_tracked(target):
        if all(slot_of(t) is None for t in parents):
            how.run(*plain_of(args), out=target, **plain_of(kwargs))  # type: ignore[call-arg]
            return target
        raise lost(tape, "a write to an array that the tape does not know")
    depends = any(slot_of(t) is not None for t in parents) and target.plain.dtype.kind in "fc"
    slot = None
    if depends:
        slot = Slot(target.plain.shape, target.plain.dtype)
        record(tape, how, args, kwargs, [slot])
    before_write(target)
    how.run(*plain_of(args), out=target.plain, **plain_of(kwargs))  # type: ignore[call-arg]
    wrote(target, slot)
    return target


def _write_call(tape: Tape, how: How, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any) -> Any:
    """A call that writes to some elements of ``target``, one of its arguments."""
    parents = tracked_in((args, kwargs), [])
    if not is_tracked(target):
        if tape.closed or all(slot_of(t) is None for t in parents):
            return how.run(*plain_of(args), **plain_of(kwargs))
        raise lost(tape, "a write to an array that the tape does not know")
    if not tape.closed:
        slot = None
        if any(slot_of(t) is not None for t in parents) and target.plain.dtype.kind in "fc":
            slot = Slot(target.plain.shape, target.plain.dtype)
            record(tape, how, args, kwargs, [slot], target=target)
        before_write(target)
    result = how.run(*plain_of(args), **plain_of(kwargs))
    if not tape.closed:
        wrote(target, slot)
    return target if result is target.plain else result


def apply(tape: Tape, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function."""
    if type(function) is np.ufunc and not kwargs and function.nout == 1:
        return elementwise(_of_ufunc(function), args)
    number = written_argument(function)
    if number is not None:
        return _write_call(tape, Named(function), args, kwargs, args[number] if len(args) > number else None)
    out = kwargs.get("out")
    if out is not None:
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
        return into(tape, Named(function), args, kwargs, out if isinstance(out, tuple) else (out,))
    return call(tape, Named(function), args, kwargs)


# -- operators ----------------------------------------------------------------------------------------
def _binary(how: Operator) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Any, other: Any) -> Any:
        return elementwise(how, (self, other))

    def backward(self: Any, other: Any) -> Any:
        return elementwise(how, (other, self))

    return forward, backward


def _in_place(how: Operator, ufunc: np.ufunc) -> Callable[..., Any]:
    plain_how = Named(ufunc)

    def run(self: Any, other: Any) -> Any:
        if not isinstance(self.plain, np.ndarray):
            return call(self.tape, how, (self, other), {})
        return elementwise(plain_how, (self, other), self)

    return run


def _unary(how: Operator) -> Callable[..., Any]:
    return lambda self: elementwise(how, (self,))


def _comparison(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: run(self.plain, plain_of(other))


for _name, _sign, _ufunc in (
    ("add", "+", np.add),
    ("sub", "-", np.subtract),
    ("mul", "*", np.multiply),
    ("truediv", "/", np.true_divide),
    ("floordiv", "//", np.floor_divide),
    ("mod", "%", np.remainder),
    ("pow", "**", np.power),
    ("matmul", "@", np.matmul),
):
    _how = Operator(getattr(operator, _name), f"{{}} {_sign} {{}}")
    _forward, _backward = _binary(_how)
    setattr(Tracked, f"__{_name}__", disable(_forward))
    setattr(Tracked, f"__r{_name}__", disable(_backward))
    setattr(Tracked, f"__i{_name}__", disable(_in_place(_how, _ufunc)))


for _name, _sign in (("neg", "-"), ("pos", "+"), ("abs", "abs")):
    setattr(Tracked, f"__{_name}__", disable(_unary(Operator(getattr(operator, _name), f"{_sign}({{}})"))))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Tracked, f"__{_name}__", disable(_comparison(getattr(operator, _name))))
