"""What a caller can observe of a call, as plain data that can go from one process to another.

:func:`observe` walks named objects and writes down, for each place that a path leads to, what is there:
values, types, dtypes, shapes, strides, which arrays share memory, which places hold the same object.
:func:`differences` compares two such lists in the words of the program.
"""

from __future__ import annotations

import itertools
import re
import sys
import types
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass, field

Array = np.ndarray[Any, Any]

_ATOMS = (int, str, bytes, bool, type(None), range, slice, type(Ellipsis), np.dtype)
_OPAQUE = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
)
_MOST_ITEMS = 50_000
_MOST_DEPTH = 60
_LARGE_BYTES = 1 << 16  # arrays from here on are sent as a checksum where they are as they were

# How far results may be from the original's: of the array's largest value, in units of its precision, for
# what is added up in another order; and of the largest value anywhere, for what is left where large values
# cancel.
_RELATIVE, _CANCELLED = 1000.0, 16.0
_RELATIVE_HALF = 8.0  # of two-byte types, in which every rounding shows


@dataclass
class Item:
    """What is at one place. ``kind``: ``"value"``, ``"number"``, ``"array"``, ``"container"``, ``"same"`` (as
    at the place ``value``) or ``"opaque"`` (``facts`` alone are compared). ``facts``: type, dtype, shape…"""

    kind: str
    facts: tuple[Any, ...]
    value: Any = None


@dataclass
class Observation:
    """``items`` by path. ``shared``: groups of paths whose arrays overlap in memory. ``scale``: the largest
    floating-point value. ``is_whole``: whether nothing was left out for its number."""

    items: dict[str, Item] = field(default_factory=dict)
    shared: list[tuple[str, ...]] = field(default_factory=list)
    scale: float = 0.0
    is_whole: bool = True


# What the facts of an item are of, in order.
_OF_ARRAYS = ("type", "dtype", "shape", "strides", "writeable")
_OF_TENSORS = ("type", "dtype", "device", "shape", "requires_grad", "strides", "is_leaf")

# Checksums of large arrays by their ``id``, and the arrays, which keep these ids theirs.
Known = dict[int, tuple[object, int]]


def observe(roots: Iterable[tuple[str, object]], known: Known | None = None) -> Observation:
    """Write down what is at ``roots`` (paths and objects) and behind them. Of large arrays that are ``known``
    and unchanged there is a checksum only."""
    walk = _Walk({} if known is None else known)
    for path, obj in roots:
        walk.visit(path, obj, 0)
    found = walk.found
    found.shared = _groups(walk.memory)
    return found


def checksums(roots: Iterable[tuple[str, object]]) -> Known:
    """The large arrays behind ``roots`` as they are now."""
    walk = _Walk({})
    walk.is_census = True
    for path, obj in roots:
        walk.visit(path, obj, 0)
    return walk.known


class _Walk:
    def __init__(self, known: Known) -> None:
        self.known = known
        self.found = Observation()
        self.seen: dict[int, str] = {}
        self.kept: list[object] = []
        self.memory: list[tuple[str, int, int]] = []  # path, first and last byte
        self.is_census = False

    def visit(self, path: str, obj: object, depth: int) -> None:
        items = self.found.items
        if len(items) >= _MOST_ITEMS or depth > _MOST_DEPTH:
            self.found.is_whole = False
            return
        kind = _type_name(obj)
        if isinstance(obj, _OPAQUE):
            items[path] = Item("opaque", (kind, getattr(obj, "__qualname__", "")))
        elif isinstance(obj, _ATOMS):
            items[path] = Item("value", (kind,), obj if not isinstance(obj, np.dtype) else str(obj))
        elif isinstance(obj, (float, complex)):
            items[path] = Item("number", (kind,), obj)
        elif isinstance(obj, np.generic) and obj.dtype.kind != "O":
            items[path] = Item("array", (kind, str(obj.dtype), (), (), True), np.asarray(obj))
        elif id(obj) in self.seen:
            items[path] = Item("same", (kind,), self.seen[id(obj)])
        else:
            if not isinstance(obj, tuple):
                self.seen[id(obj)] = path
            self.kept.append(obj)
            self._inside(path, obj, kind, depth + 1)

    def _inside(self, path: str, obj: object, kind: str, depth: int) -> None:
        items = self.found.items
        if isinstance(obj, np.ndarray):
            self._array(path, obj, kind)
        elif _is_tensor(obj):
            self._tensor(path, obj, kind, depth)
        elif isinstance(obj, Mapping) and isinstance(obj, (dict, types.MappingProxyType)):
            keys = list(dict.keys(obj)) if isinstance(obj, dict) else list(obj)
            items[path] = Item("container", (kind, len(keys)), tuple(map(_key_text, keys)))
            for key in keys:
                value = dict.__getitem__(obj, key) if isinstance(obj, dict) else obj[key]
                self.visit(f"{path}[{_key_text(key)}]", value, depth)
        elif isinstance(obj, (list, tuple)):
            base: Any = list if isinstance(obj, list) else tuple
            values = list(base.__iter__(obj))
            items[path] = Item("container", (kind, len(values)))
            for number, value in enumerate(values):
                self.visit(f"{path}[{number}]", value, depth)
        elif isinstance(obj, (set, frozenset)):
            items[path] = Item("container", (kind, len(obj)), tuple(sorted(map(_key_text, obj))))
        elif isinstance(obj, types.CellType):
            items[path] = Item("container", (kind, 1))
            with_contents = _cell_contents(obj)
            if with_contents:
                self.visit(path + ".cell_contents", with_contents[0], depth)
            return
        else:
            items[path] = Item("opaque", (kind,))
        self._attributes(path, obj, depth)

    def _attributes(self, path: str, obj: object, depth: int) -> None:
        if _is_tensor(obj):
            return
        space = getattr(obj, "__dict__", None)
        if isinstance(space, dict):
            for name in list(space):
                if isinstance(name, str) and not (name.startswith("__") and name.endswith("__")):
                    self.visit(f"{path}.{name}", space[name], depth)

    def _array(self, path: str, array: Array, kind: str) -> None:
        strides = tuple([s for n, s in zip(array.shape, array.strides) if n > 1]) if array.size else ()
        facts = (kind, str(array.dtype), array.shape, strides, bool(array.flags.writeable))
        plain = np.asarray(array)
        if array.size and plain.dtype.kind != "O":
            low, high = np.lib.array_utils.byte_bounds(plain)
            self.memory.append((path, low, high))
        if plain.dtype.kind == "O":
            self.found.items[path] = Item("container", facts)
            for number, value in enumerate(plain.ravel().tolist()):
                self.visit(f"{path}.flat[{number}]", value, _MOST_DEPTH - 5)
            return
        self._contents(path, array, facts, plain)

    def _contents(self, path: str, owner: object, facts: tuple[Any, ...], plain: Array) -> None:
        """The item of an array with the contents ``plain``."""
        if plain.nbytes >= _LARGE_BYTES:
            total = zlib.crc32(np.ascontiguousarray(plain).data.cast("B"))
            if self.is_census:
                self.known[id(owner)] = (owner, total)
                return
            before = self.known.get(id(owner))
            if before is not None and before[1] == total:
                self.found.items[path] = Item("array", facts, total)
                return
        if self.is_census:
            return
        if plain.dtype.kind in "fc" and plain.size:
            finite = np.abs(plain[np.isfinite(plain)])
            if finite.size:
                self.found.scale = max(self.found.scale, float(finite.max()))
        self.found.items[path] = Item("array", facts, np.array(plain, order="C", copy=True))

    def _tensor(self, path: str, tensor: Any, kind: str, depth: int) -> None:
        facts: tuple[Any, ...] = (kind, str(tensor.dtype), str(tensor.device), tuple(tensor.shape))
        facts += (bool(tensor.requires_grad),)
        if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
            self.found.items[path] = Item("opaque", facts)
            return
        strides = [s for n, s in zip(tensor.shape, tensor.stride()) if n > 1] if tensor.numel() else []
        facts += (tuple(strides), bool(tensor.is_leaf))
        torch = sys.modules["torch"]
        with torch.no_grad():
            plain = tensor.detach().cpu().resolve_conj().resolve_neg()
            if tensor.numel() and tensor.device.type == "cpu":
                item = tensor.element_size()
                low = tensor.data_ptr()
                reach = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) * item
                self.memory.append((path, low, low + reach + item))
            if plain.dtype == torch.bfloat16:
                plain = plain.float()
            values = plain.numpy()
        if type(values) is np.ndarray:
            self._contents(path, tensor, facts, values)
        if tensor.is_leaf and tensor.grad is not None:
            self.visit(f"{path}.grad", tensor.grad, depth)


def _type_name(obj: object) -> str:
    return f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")


def _is_tensor(obj: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.Tensor)


def _key_text(key: object) -> str:
    if isinstance(key, (str, int, float, bytes, bool, type(None), complex)):
        return repr(key)
    if isinstance(key, tuple):
        return f"({', '.join(map(_key_text, key))})"
    return _type_name(key)


def _cell_contents(cell: types.CellType) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _groups(memory: Sequence[tuple[str, int, int]]) -> list[tuple[str, ...]]:
    """Paths of arrays that overlap, directly or by others between them; groups of one are left out."""
    groups: list[tuple[str, ...]] = []
    current: list[str] = []
    reach = -1
    for path, low, high in sorted(memory, key=lambda item: item[1]):
        if low >= reach and current:
            groups.append(tuple(sorted(current)))
            current = []
        current.append(path)
        reach = max(reach, high) if len(current) > 1 else high
    groups.append(tuple(sorted(current)))
    return sorted(group for group in groups if len(group) > 1)


# -- comparing ------------------------------------------------------------------------------------
def differences(plain: Observation, compiled: Observation, *, exact: bool = False) -> list[str]:
    """What a caller could tell apart, a line for each place, the first places first. ``exact``: to the last
    bit; else floating-point values may differ by rounding."""
    scale = max(plain.scale, compiled.scale)
    found = []
    spent = any("gradients" in seen.items for seen in (plain, compiled))  # what was recorded was used up
    for path in dict.fromkeys(itertools.chain(plain.items, compiled.items)):
        if spent and path.startswith("gradient"):
            continue
        mine, other = plain.items.get(path), compiled.items.get(path)
        if mine is None or other is None:
            if plain.is_whole and compiled.is_whole:
                found.append(f"{path}: only in {'plain Python' if other is None else 'compiled code'}")
            continue
        text = _difference(mine, other, scale, exact)
        if text:
            found.append(f"{path}: {text}")
    if plain.is_whole and compiled.is_whole:
        found += _sharing(plain.shared, compiled.shared)
    return list(map(readable, found))


# where modules of PyTorch keep their parts
_OF_MODULES = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")


def readable(path: str) -> str:
    """A path as the program would write it."""
    return _OF_MODULES.sub(r".\1", path)


def _sharing(plain: Sequence[tuple[str, ...]], compiled: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for group in plain:
        if group not in compiled:
            yield f"{', '.join(group[:4])}: share memory in plain Python, not so in compiled code"
    for group in compiled:
        if group not in plain:
            yield f"{', '.join(group[:4])}: share memory in compiled code, not so in plain Python"


def _difference(mine: Item, other: Item, scale: float, exact: bool) -> str:
    if mine.kind != other.kind or len(mine.facts) != len(other.facts):
        return f"plain {_facts_text(mine)}, compiled {_facts_text(other)}"
    if mine.facts != other.facts:
        labels = _OF_TENSORS if len(mine.facts) == len(_OF_TENSORS) else _OF_ARRAYS
        told = [
            f"{label} {a} in plain Python, {b} compiled"
            for label, a, b in itertools.zip_longest(labels, mine.facts, other.facts, fillvalue="fact")
            if a != b
        ]
        return "; ".join(told)
    if mine.kind == "number":
        return apart(np.asarray(mine.value), np.asarray(other.value), scale, exact, "float64")
    if mine.kind == "array":
        if isinstance(mine.value, int) or isinstance(other.value, int):
            if isinstance(mine.value, int) and isinstance(other.value, int):
                return "" if mine.value == other.value else "contents differ"
            return (
                "written by plain Python only"
                if isinstance(other.value, int)
                else "written by compiled code only"
            )
        return apart(mine.value, other.value, scale, exact, str(mine.facts[1]))
    if mine.value != other.value:
        return f"plain {mine.value!r:.100}, compiled {other.value!r:.100}"
    return ""


def _facts_text(item: Item) -> str:
    if item.kind == "same":
        return f"the object at {item.value}"
    parts = [part if isinstance(part, str) else repr(part) for part in item.facts]
    return " ".join(parts)


def apart(mine: Array, other: Array, scale: float, exact: bool, dtype: str) -> str:
    """How two arrays of one shape and ``dtype`` (its name) differ; empty where they do not. ``scale``: the
    largest value anywhere; ``exact``: to the last bit."""
    if mine.dtype.kind not in "fc":
        unequal = np.asarray(mine != other)
    else:
        nan = np.isnan(mine) != np.isnan(other)
        with np.errstate(all="ignore"):
            gap = np.abs(mine - other)
            gap = np.where(mine == other, 0, gap)
            if exact:
                signs = (np.signbit(mine.real) != np.signbit(other.real)) & ~np.isnan(mine)
                unequal = nan | ((mine != other) & ~np.isnan(mine)) | signs
            else:
                unequal = nan | (gap > _tolerance(mine, scale, dtype)) | (np.isinf(mine) != np.isinf(other))
    if not unequal.any():
        return ""
    count, at = int(unequal.sum()), tuple(int(i) for i in np.argwhere(unequal)[0]) if mine.ndim else ()
    place = f"at {list(at)} " if at else ""
    many = f", {count} of {mine.size} values differ" if mine.size > 1 else ""
    return f"{place}plain {mine[at]!r}, compiled {other[at]!r}{many}"


def _tolerance(mine: Array, scale: float, dtype: str) -> float:
    finite = np.abs(mine[np.isfinite(mine)])
    largest = float(finite.max()) if finite.size else 0.0
    if dtype.endswith(("float16", "bfloat16")):
        eps, relative = 2.0**-7 if dtype.endswith("bfloat16") else 2.0**-10, _RELATIVE_HALF
    else:
        eps, relative = float(np.finfo(mine.dtype).eps), _RELATIVE
    return eps * (relative * largest + _CANCELLED * scale)
