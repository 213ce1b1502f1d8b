"""Modules as people write them, by subject. Each file has a list ``CASES``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..case import Case


def of(name: str, make: Callable[[], torch.nn.Module], inputs: Callable[[], Any], **options: Any) -> Case:
    """``inputs`` gives a tensor, a tuple of arguments, or a dict of keyword arguments."""

    def build() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
        module, given = make(), inputs()
        if isinstance(given, dict):
            return module, (), given
        return module, given if type(given) is tuple else (given,), {}

    return Case(name, build, whole="method" in options, **options)
