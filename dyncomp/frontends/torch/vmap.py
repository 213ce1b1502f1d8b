"""``torch.vmap`` in captured code: the function runs on one element that stands for all, and what it gives is
made for the whole batch, as for ``dyncomp.vmap`` (``frontends/batching.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported
from ...graph.ir import Var
from ...prims.batching.operands import Operands
from ...prims.layout import is_c_contiguous
from ...prims.opdef import Marker
from ...symbolic.integers import Dim
from ..base import ArrayRef, TraceContext
from ..numpy.operands import emit
from .library import torch
from .operands import need_tensor, tensor
from .regions import Region, Window
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("torch.vmap with these arguments, of this function")
_WHAT = "a function under torch.vmap"


def _begin() -> int:
    """The function is called from here on: gives a number."""
    return 0


def _element(whole: Any) -> Any:
    """``whole[i]`` for some element of the batch."""


def _batch(number: int, values: Sequence[Any], elements: Sequence[Any], size: int) -> tuple[Any, ...]:
    """For each of ``values``, what it is for all elements of the batch, in front; the function has ended."""
    return ()


def _vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """In place of the library's function, which calls ``func`` for the whole batch."""
    axes = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
    if chunk_size is not None or len(axes) != len(args) or not args:
        _refuse()
    size, elements = -1, []
    number = _begin()

    def opened(tree: Any, axis: Any) -> Any:
        nonlocal size
        if isinstance(tree, (tuple, list)) and type(tree) in (tuple, list):
            parts = axis if isinstance(axis, (tuple, list)) else (axis,) * len(tree)
            if len(parts) != len(tree):
                _refuse()
            return type(tree)([opened(part, of) for part, of in zip(tree, parts)])
        if type(tree) is dict:
            return {
                key: opened(part, axis[key] if type(axis) is dict else axis) for key, part in tree.items()
            }
        if axis is None:
            return tree
        if type(axis) is not int or not isinstance(tree, torch.Tensor):
            _refuse()
        if not -tree.dim() <= axis < tree.dim() or size not in (-1, tree.shape[axis]):
            _refuse()
        size = tree.shape[axis] if size == -1 else size
        made = _element(tree.movedim(axis, 0))
        elements.append(made)
        return made

    given = [opened(arg, axis) for arg, axis in zip(args, axes)]
    if size == -1:
        _refuse()
    found = func(*given, **kwargs)
    leaves = list(found) if type(found) is tuple else [found]
    places = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(leaves)
    if len(places) != len(leaves):
        _refuse()
    for leaf, place in zip(leaves, places):
        if not isinstance(leaf, torch.Tensor) or type(place) is not int:
            _refuse()
        if not -leaf.dim() - 1 <= place <= leaf.dim():
            _refuse()
    wholes = [w.movedim(0, p) for w, p in zip(_batch(number, leaves, elements, size), places)]
    return tuple(wholes) if type(found) is tuple else wholes[0]


def begin(tx: TraceContext) -> int:
    number = len(tx.builder.nodes)
    tx.memo[_WHAT, number] = Region.begin(tx)
    return number


def element(tx: TraceContext, whole: object) -> ArrayRef:
    var = need_tensor(whole).var
    if not is_c_contiguous(var.shape, var.type.strides):  # results of torch lie in memory as the batch does
        raise Unsupported("torch.vmap over a batch that is not in C order")
    return tensor(emit(tx, "element", var))


def batch(
    tx: TraceContext, number: int, values: Sequence[object], elements: Sequence[object], size: Dim
) -> tuple[ArrayRef, ...]:
    region: Region = tx.memo[_WHAT, number]
    region.check(tx, _WHAT)
    region.check_draws(tx, _WHAT)
    nodes = tx.builder.nodes[region.start :]
    inside = [need_tensor(value).var for value in elements]
    reached = {var.name for var in inside}
    for node in nodes:
        row: Any = tx.builder.table[node.op]
        if row.batch is None and row.decomp is None and not isinstance(row.lower, Marker):
            raise Unsupported(f"{_WHAT} that uses {node.op}")
        if any(var.name in reached for var in node.inputs):
            reached.update(var.name for var in node.outputs)
    found = [need_tensor(value).var for value in values]
    windows = [Window.of(tx, var) for var in found]
    made = region.made(tx) - {var.name for var in inside}
    if any(window.base.name not in made for window in windows):
        raise Unsupported(f"{_WHAT} that gives a view of what it did not make")
    if not all(is_c_contiguous(window.base.shape, window.base.type.strides) for window in windows):
        raise Unsupported(f"{_WHAT} that gives what is not in C order")
    bases = [window.base for window in windows if window.base.name in reached]
    wholes = emit(tx, "batch", *bases, *inside, outputs=len(bases), size=size) if bases else ()
    known = {base.name: whole for base, whole in zip(bases, wholes)}
    return tuple(
        tensor(_viewed(tx, window, known.get(window.base.name), var, size))
        for window, var in zip(windows, found)
    )


def _viewed(tx: TraceContext, window: Window, whole: Var | None, var: Var, size: Dim) -> Var:
    """A view of each element of ``whole``; where there is none, ``var`` for each, without copies."""
    if whole is None:
        dims = tuple(range(1, var.ndim + 1))
        return emit(tx, "broadcast_in_dim", var, shape=(size, *var.shape), dims=dims)
    for node in window.views:
        row: Any = tx.builder.table[node.op]
        whole = row.batch(Operands(tx.ops, size, (whole,), (node.inputs[0].type,)), **node.kwargs)
    return whole


def has_tensors_as_indices(cls: type) -> bool:
    """Whether blocks of this class let functions under vmap index by tensors, as captured code always may."""
    return cls.__name__ == "TransformGetItemToIndex" and issubclass(cls, torch.overrides.TorchFunctionMode)


def stand_in_for(fn: Any) -> Callable[..., Any] | None:
    """Of the function behind those that ``torch.vmap`` returns."""
    return _vmap_impl if fn is torch.vmap.__globals__.get("vmap_impl") else None


TABLE.functions.update({_begin: begin, _element: element, _batch: batch})
