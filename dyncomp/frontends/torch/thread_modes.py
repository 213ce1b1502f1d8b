"""PyTorch's modes of a thread, to be put up in another one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


def modes_here() -> contextlib.AbstractContextManager[None]:
    """A context manager, to be entered once, that has another thread compute as this one does now: gradient
    and inference mode, autocast, default device."""
    import torch

    is_inference = torch.is_inference_mode_enabled()
    has_gradients = torch.is_grad_enabled()
    kinds = ["cpu", *(["cuda"] if torch.cuda.is_initialized() else [])]
    casts = [(kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)) for kind in kinds]
    caches = torch.is_autocast_cache_enabled()
    device = torch.get_default_device()

    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if is_inference != torch.is_inference_mode_enabled():
                stack.enter_context(torch.inference_mode(is_inference))
            # puts back what the task sets for good, too: its thread runs others, or waits for it
            stack.enter_context(torch.set_grad_enabled(has_gradients))
            for kind, dtype, enabled in casts:
                if enabled or torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, dtype, enabled, caches))
            if device != torch.get_default_device():
                stack.enter_context(device)
            yield

    return entered()
