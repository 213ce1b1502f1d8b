"""A model of a collection, and where the collections are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# modules of this package with a function ``cases()``; a package that is not installed has none
COLLECTIONS = ("transformers", "generation", "timm", "torchvision", "diffusers", "libraries", "written")


@dataclass(frozen=True)
class Case:
    """``build()`` gives a module with random weights and the arguments of a call. ``method``: what is called;
    where it isn't "forward" only results are compared, without gradients. ``trains``: has gradients.
    ``whole``: that method is compiled as a whole, not just the calls of the module in it. ``grad``: eval mode
    needs autograd, too."""

    name: str
    build: Callable[[], tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]]
    method: str = "forward"
    whole: bool = False
    trains: bool = True
    grad: bool = False


def cases(collection: str) -> dict[str, Case]:
    """By name. Raises ``ImportError`` if the collection's package is not installed."""
    module = importlib.import_module(f"{__package__}.{collection}_cases")
    found: list[Case] = module.cases()
    by_name = {case.name: case for case in found}
    assert len(by_name) == len(found), "two cases of one name"
    return by_name
