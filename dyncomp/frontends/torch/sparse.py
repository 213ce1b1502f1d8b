"""Products of sparse matrices and dense ones: torch's routines, which put the sparse tensors together again
from their indices and values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...errors import Unsupported
from ..base import ArrayParts, ArrayRef, Called, Rule, StateGuard, TraceContext, TypedTuple
from . import autocast, state
from .calls import called_as
from .gradients import under_autograd
from .library import torch
from .operands import need_tensor
from .torch_rules import RuleTable

TABLE = RuleTable()
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
}
_CONSTANTS = ("shape", "ndim", "dtype", "layout", "device", "is_sparse", "is_sparse_csr", "requires_grad")


def parts_of(obj: Any) -> ArrayParts | None:
    """See ``Frontend.parts_of``: of matrices on the CPU that require no gradient."""
    methods = _PARTS.get(obj.layout) if type(obj) is torch.Tensor else None
    if methods is None or obj.requires_grad or obj.device.type != "cpu":
        return None
    if obj.ndim != 2 or obj.dense_dim() or obj.dtype not in (torch.float32, torch.float64):
        return None
    guard = StateGuard(_is_made_of, _made_of(obj), f"a matrix of layout {obj.layout} {tuple(obj.shape)}")
    facts = (obj.layout, tuple(obj.shape), obj.layout is torch.sparse_coo and obj.is_coalesced())
    return ArrayParts(methods, guard, _CONSTANTS, facts)


def _made_of(obj: Any) -> tuple[Any, ...]:
    """All that is known of a sparse tensor: its kind, sizes, and how its parts lie."""
    parts = [getattr(obj, method)() for method in _PARTS[obj.layout]]
    facts = [(str(p.dtype), tuple(p.shape), tuple(p.stride()), p.is_neg()) for p in parts]
    is_coalesced = obj.layout is torch.sparse_coo and obj.is_coalesced()
    return str(obj.layout), tuple(obj.shape), str(obj.device), obj.requires_grad, is_coalesced, *facts


def _is_made_of(obj: Any, expected: object) -> bool:
    return obj.layout in _PARTS and _made_of(obj) == expected


@dataclasses.dataclass(frozen=True)
class _PutTogether:
    """A function of a sparse matrix and a dense tensor as one of the parts and the tensor."""

    function: Any
    layout: Any
    shape: tuple[int, ...]
    is_coalesced: bool

    @property
    def __name__(self) -> str:
        return str(self.function.__name__)

    def __call__(self, *tensors: Any) -> Any:
        *parts, dense = tensors
        return self.function(self._matrix(parts), dense)

    def _matrix(self, parts: list[Any]) -> Any:
        if self.layout is torch.sparse_coo:
            known = {"is_coalesced": self.is_coalesced, "check_invariants": False}
            return torch.sparse_coo_tensor(*parts, self.shape, **known)
        made = torch.sparse_compressed_tensor
        return made(*parts, self.shape, layout=self.layout, check_invariants=False)


def _product(function: Any) -> Rule:
    def rule(tx: TraceContext, input: object, mat2: object) -> ArrayRef:
        x = need_tensor(mat2)
        if not isinstance(input, ArrayParts) or state.problem(state.read_state()) or autocast.is_on(tx):
            raise Unsupported("a product of a sparse matrix with these tensors, or here")
        layout, shape, is_coalesced = input.facts
        ranks = (1, 2) if function is torch.matmul else (2,)
        if x.ndim not in ranks or x.dtype != input.refs[-1].dtype or x.shape[0] != shape[1]:
            raise Unsupported("a product of a sparse matrix with a tensor that does not fit")
        call = _PutTogether(function, layout, shape, is_coalesced)
        (made,) = called_as(tx, call, (*input.refs, x), [(x.dtype, (shape[0], *x.shape[1:]))])
        return made

    return rule


def _size(tx: TraceContext, self: object, dim: object = None) -> Any:
    if not isinstance(self, ArrayParts) or not (dim is None or type(dim) is int):
        raise Unsupported("a size of a sparse matrix")
    shape = self.facts[1]
    return TypedTuple(torch.Size, shape) if dim is None else shape[dim]


_PRODUCTS = {f: _product(f) for f in (torch.mm, torch.matmul, torch.spmm, torch.sparse.mm)}
_METHODS = {"mm": _PRODUCTS[torch.mm], "matmul": _PRODUCTS[torch.matmul], "size": _size}
TABLE.function("sparse.mm")(_PRODUCTS[torch.sparse.mm])


def rule_of_parts(called: Called) -> Rule | None:
    """See ``Frontend.rule_of_parts``."""
    rules: Mapping[Any, Rule] = _PRODUCTS if called.kind == "function" else _METHODS
    rule = rules.get(called.function if called.kind == "function" else called.name)
    return None if rule is None else under_autograd(rule, called.name)
