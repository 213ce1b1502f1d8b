"""``torch.distributions``: checks of arguments that branch on data, as one tensor of truths."""

from __future__ import annotations

from typing import Any

from ..base import ArrayRef, TraceContext
from .library import torch
from .torch_rules import RuleTable

TABLE = RuleTable()
_refuse = TABLE.refusal("a check of matrices that are not square")
_library = torch.distributions.constraints


def _symmetric(self: Any, value: Any) -> Any:
    if value.shape[-2] != value.shape[-1]:
        _refuse()
    return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


def _positive_semidefinite(self: Any, value: Any) -> Any:
    symmetric = _symmetric(self, value)
    return torch.where(symmetric.all(), torch.linalg.eigvalsh(value).ge(0).all(-1), symmetric)


def _positive_definite(self: Any, value: Any) -> Any:
    symmetric = _symmetric(self, value)
    return torch.where(symmetric.all(), torch.linalg.cholesky_ex(value).info.eq(0), symmetric)


STAND_INS = {
    _library._Symmetric.check: _symmetric,
    _library._PositiveSemidefinite.check: _positive_semidefinite,
    _library._PositiveDefinite.check: _positive_definite,
}


@TABLE.function("overrides.is_tensor_like")
def is_tensor_like(tx: TraceContext, inp: object) -> bool:
    """Exact tensors and numbers only come here."""
    return isinstance(inp, ArrayRef) and inp.kind != "python"
