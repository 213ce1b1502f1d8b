"""One architecture of each family of timm: the smallest by its name's order, at the least size it takes."""

from __future__ import annotations

from typing import Any

import torch

from . import vision_operators  # noqa: F401  (before timm imports torchvision)
from .case import Case

import timm  # noqa: E402  isort: skip

SIZE = 64


def built(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    try:
        model = timm.create_model(name, img_size=SIZE)
        size = SIZE
    except Exception:  # noqa: BLE001  (families have their own errors: convolutional ones take any size)
        model = timm.create_model(name)
        size = SIZE if not model.default_cfg.get("fixed_input_size") else model.default_cfg["input_size"][-1]
    return model, (torch.randn(2, 3, size, size),), {}


def cases() -> list[Case]:
    found = []
    for family in timm.list_modules():
        names = timm.list_models(module=family)
        if names:
            name = min(names, key=lambda each: (len(each), each))
            found.append(Case(name, lambda name=name: built(name)))
    return found
