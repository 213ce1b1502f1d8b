"""Modules written as people write them: ``written/``, a file for each subject."""

from __future__ import annotations

import importlib
import pkgutil

from . import written
from .case import Case


def cases() -> list[Case]:
    found: list[Case] = []
    for module in pkgutil.iter_modules(written.__path__):
        found += importlib.import_module(f"{written.__name__}.{module.name}").CASES
    return found
