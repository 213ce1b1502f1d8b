"""Gradients of what a call returned, where PyTorch recorded how it came about."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

_MOST_TENSORS = 10_000


def gradients_of(roots: Iterable[tuple[str, object]]) -> list[tuple[str, object]]:
    """The gradients, by the leaves behind ``roots``, of the tensors in the first of them (the result), for
    made-up gradients of the latter. What was recorded stays usable."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    leaves: dict[int, tuple[str, Any]] = {}
    outputs: dict[int, tuple[str, Any]] = {}
    for number, (path, obj) in enumerate(roots):
        for place, tensor in _tensors(path, obj, torch):
            if tensor.grad_fn is not None and not number:
                outputs.setdefault(id(tensor), (place, tensor))
            elif tensor.requires_grad and tensor.is_leaf:
                leaves.setdefault(id(tensor), (place, tensor))
    outs = [t for _, t in outputs.values() if t.is_floating_point() and t.layout == torch.strided]
    if not outs or not leaves:
        return []
    cotangents = [
        torch.cos(torch.arange(t.numel(), device=t.device)).to(t.dtype).reshape(t.shape) for t in outs
    ]
    inputs = [t for _, t in leaves.values()]
    try:
        found = torch.autograd.grad(outs, inputs, cotangents, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        return [("gradients", ["RuntimeError", str(error).partition("\n")[0]])]
    return [(f"gradient of {place}", grad) for (place, _), grad in zip(leaves.values(), found)]


def _tensors(path: str, obj: object, torch: Any) -> list[tuple[str, Any]]:
    """The tensors behind an object, with their paths."""
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()
    pending: list[tuple[str, object, int]] = [(path, obj, 0)]
    while pending and len(found) < _MOST_TENSORS:
        place, value, depth = pending.pop()
        if id(value) in seen or depth > 40:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found.append((place, value))
        elif isinstance(value, dict):
            pending += [(f"{place}[{k!r}]", v, depth + 1) for k, v in dict.items(value)]
        elif isinstance(value, (list, tuple)):
            pending += [(f"{place}[{n}]", v, depth + 1) for n, v in enumerate(value)]
        if not isinstance(value, (torch.Tensor, type)) and not callable(getattr(value, "__get__", None)):
            space = getattr(value, "__dict__", None)
            if isinstance(space, dict):
                pending += [(f"{place}.{k}", v, depth + 1) for k, v in space.items()]
    return found
