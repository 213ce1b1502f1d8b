"""The files and versions that an entry depends on.

Guards and descriptions cover all that capture looks at. Beyond that, an entry serves only while the files of
the modules that it was captured from are as they were, and libraries are of the same version: what nobody
thought of guarding is then the same as well, and so are the lines that tracebacks show.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Iterable
from typing import Any

from .descriptions import _OWN, NotStorable, Stale, is_library, top_package


def sources_of(modules: Iterable[str]) -> dict[str, str]:
    """By module, the digest of its file; by library, its version."""
    found: dict[str, str] = {}
    for module in sorted(modules):
        if not is_library(module):
            found[module] = _digest(module)
        elif top_package(module) != _OWN and top_package(module) not in sys.stdlib_module_names:
            found[top_package(module)] = _version(top_package(module))
    return found


def check_sources(expected: dict[str, str]) -> None:
    """Raise :class:`Stale` where a file or a version is another one."""
    for module, text in expected.items():
        found = _version(module) if is_library(module) else _digest(module)
        if found != text:
            raise Stale(f"{module} was changed")


def _version(package: str) -> str:
    return str(getattr(sys.modules.get(package), "__version__", ""))


def _digest(name: str) -> str:
    """Of the file that a module was read from; nothing for a module without one (a notebook's)."""
    module = sys.modules.get(name)
    file = vars(module).get("__file__") if isinstance(module, types.ModuleType) else None
    if type(file) is not str:
        return ""
    try:
        facts = os.stat(file)
        return _digest_of(file, facts.st_size, facts.st_mtime_ns, facts.st_ino)
    except OSError as error:
        raise NotStorable(f"the file of {name} cannot be read: {error}") from error


@functools.lru_cache(maxsize=4096)
def _digest_of(file: str, size: int, changed: int, number: int) -> str:
    with open(file, "rb") as opened:
        return hashlib.sha256(opened.read()).hexdigest()[:32]


@functools.cache
def own_version() -> str:
    """Of dyncomp's own files, by their sizes and times."""
    package = os.path.dirname(sys.modules[_OWN].__file__ or "")
    digest = hashlib.sha256()
    for folder, facts in _files_below(package):
        digest.update(f"{folder}{facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _files_below(folder: str) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, Any]] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.endswith((".py", ".so")):
                found.append((entry.path, entry.stat()))
            elif entry.is_dir() and entry.name != "__pycache__":
                found += _files_below(entry.path)
    return found
