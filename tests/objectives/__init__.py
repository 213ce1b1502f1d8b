"""Objective functions as papers, textbooks and scientists' repositories write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

R = np.random.default_rng(3)


@dataclass(frozen=True)
class Objective:
    """``f(*args)`` is a real number; it is differentiated by the arguments ``wrt``."""

    f: Callable[..., Any]
    args: tuple[Any, ...]
    wrt: tuple[int, ...]


def collector(into: list[Objective]) -> Callable[..., Any]:
    """A decorator for objectives, with their arguments."""

    def case(*args: Any, wrt: tuple[int, ...] = (0,)) -> Callable[..., Any]:
        def keep(f: Callable[..., Any]) -> Callable[..., Any]:
            into.append(Objective(f, args, wrt))
            return f

        return keep

    return case
