"""A function of torch as one node, though it has ops: ``numerics="strict"``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ...errors import Unsupported
from ...graph.ir import COPY, Node
from ..base import STRICT, ArrayRef, Called, TraceContext
from .calls import routine, writing
from .library import torch


def call_whole(
    tx: TraceContext,
    called: Called,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    made: Sequence[Node],
) -> Any:
    """See ``Frontend.call_whole``."""
    written = {node.inputs[0].name for node in made if node.op == COPY}
    function, in_place = _function(called)
    if in_place and args and isinstance(args[0], ArrayRef):
        written.discard(args[0].var.name)
    if written or (in_place and not _is_like_new(result, args)):
        raise _refusal(f"{called.name}, which writes into its arguments")
    rule = writing(function, whole=True) if in_place else routine(function, in_modes=True, whole=True)
    return rule(tx, *args, **kwargs)


def _is_like_new(result: Any, args: tuple[Any, ...]) -> bool:
    return isinstance(result, ArrayRef) and isinstance(args[0], ArrayRef) and result.var == args[0].var


def _function(called: Called) -> tuple[Any, bool]:
    """The function of torch, or the operator, that gives the new value; whether that is then written."""
    name = called.name
    if called.kind == "function" and not getattr(called.function, "__module__", "").startswith(__package__):
        return called.function, False
    if called.kind == "method":
        in_place = name.endswith("_") and not name.endswith("__")
        found = getattr(torch.Tensor, name[:-1] if in_place else name, None)
        if found is not None:
            return found, in_place
    if called.kind == "operator":
        in_place = name.startswith("i") and hasattr(operator, f"__{name}__") and name != "invert"
        found = getattr(operator, name[1:] if in_place else name, None)
        if found is not None:
            return found, in_place
    raise _refusal(f"{called.kind} {name}")


def _refusal(reason: str) -> Unsupported:
    return Unsupported(f"{reason} ({STRICT})")
