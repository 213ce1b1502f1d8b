"""``torch.backends.cudnn.flags``: blocks that say how a GPU computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Unsupported
from ..base import StateGuard
from .library import torch

_C = torch._C
_FLAGS = ("enabled", "benchmark", "deterministic", "allow_tf32")  # those that are bools


def _state() -> tuple[object, ...]:
    precision = _C._get_fp32_precision_getter
    return (
        _C._get_cudnn_enabled(),
        _C._get_cudnn_benchmark(),
        _C._get_cudnn_deterministic(),
        _C._get_cudnn_allow_tf32(),
        _C._get_cudnn_depthwise_kernel(),
        *(precision("cuda", part) for part in ("all", "conv", "rnn")),
    )


def _is_as_it_was(_: object, expected: tuple[object, ...]) -> bool:
    try:
        return _state() == expected
    except RuntimeError:  # flags that contradict each other: the block raises, too
        return False


def mode_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, str, Any] | None:
    """A block without a meaning where there is no GPU, and if it puts back all that it sets."""
    if function is not torch.backends.cudnn.flags or torch.cuda.is_available():
        return None
    if args or not all(name in _FLAGS and type(flag) is bool for name, flag in kwargs.items()):
        raise Unsupported("torch.backends.cudnn.flags with these arguments")
    try:
        before = _state()
        with function(**kwargs):
            pass
        after = _state()
    except RuntimeError as error:
        raise Unsupported(f"torch.backends.cudnn.flags: {error}") from None
    if before != after:
        raise Unsupported("torch.backends.cudnn.flags that are others after the block")
    return "cudnn", "", StateGuard(_is_as_it_was, before, "flags of torch.backends.cudnn are as they were")
