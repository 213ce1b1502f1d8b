"""The global state of torch that captured code relies upon: one tuple, read once for all tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .library import torch

_autocast = torch.is_autocast_enabled
_default_dtype = torch.get_default_dtype
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_grad = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled

_deterministic = torch._C._get_deterministic_algorithms

Autocast = tuple[Any, ...] | None
State = tuple[bool, bool, Autocast, int, int, Any, bool]

_autocast_dtype = torch.get_autocast_dtype


_USUAL = (torch.bfloat16, torch.float16)


def _on_cpu() -> Autocast:
    """Whether autocast is on and its type; ``None`` where it is off and has its usual one."""
    is_on, dtype = _autocast("cpu"), _autocast_dtype("cpu")
    return (is_on, dtype) if is_on or dtype is not torch.bfloat16 else None


def _on_any_device() -> Autocast:
    """The same for each kind of device."""
    is_on = (_autocast("cpu"), _autocast("cuda"))
    types = (_autocast_dtype("cpu"), _autocast_dtype("cuda"))
    return (is_on, types) if any(is_on) or types != _USUAL else None


# Tensors of other devices exist only where torch was built for them. (Asked at every call.)
_autocasts: Callable[[], Autocast] = _on_cpu if torch.version.cuda is None else _on_any_device


def read_state() -> State:
    """(grad mode, inference mode, autocast, function modes, dispatch modes, default dtype, whether algorithms
    have to be deterministic)."""
    return (
        _grad(),
        _inference(),
        _autocasts(),
        _function_modes(),
        _dispatch_modes(),
        _default_dtype(),
        _deterministic(),
    )


def holds(_: object, expected: State) -> bool:
    """Whether torch's state is ``expected`` (the check of a guard: it runs at every call)."""
    grad, inference, autocast, function_modes, dispatch_modes, default, deterministic = expected
    return (
        _grad() is grad
        and _inference() is inference
        and _function_modes() == function_modes
        and _dispatch_modes() == dispatch_modes
        and _default_dtype() is default
        and _autocasts() == autocast
        and _deterministic() is deterministic
    )


def describe_state(state: State) -> str:
    """In words."""
    grad, inference, autocast, function_modes, dispatch_modes, default, deterministic = state
    words = [f"grad mode {'on' if grad else 'off'}", f"default dtype {default}"]
    if inference:
        words.append("inference mode")
    if deterministic:
        words.append("deterministic algorithms")
    if autocast:
        words.append(f"autocast to {' and '.join(str(dtype) for dtype in autocast)}")
    if function_modes or dispatch_modes:
        words.append(f"{function_modes + dispatch_modes} modes")
    return "torch: " + ", ".join(words)


def capturing_is(_: object, expected: bool) -> bool:
    """Whether it is so that somebody records what the current stream is given (a CUDA graph), or not."""
    return torch._C._cuda_isCurrentStreamCapturing() is expected


def current_device() -> int:
    """The number of the GPU that ``device="cuda"`` names in this thread."""
    index: int = torch.cuda.current_device()
    return index


def current_device_is(_: object, expected: int) -> bool:
    return current_device() == expected


def problem(state: State) -> str:
    """Why nothing is captured in this state; empty where it is."""
    _, _, _, function_modes, dispatch_modes, _, _ = state
    if function_modes or dispatch_modes:
        return "a torch function mode or dispatch mode is active"
    return ""
