"""Loaded libraries of kernels: how they are opened, and how long they stay."""

from __future__ import annotations

import errno
import functools
import gc
import itertools
import os
from pathlib import Path
from typing import Any

from ..runtime import _launch
from ..spans import span

ABI_VERSION = 14
if ABI_VERSION != _launch.ABI_VERSION:
    raise ImportError(
        f"{_launch.__file__} was built from other sources than {__file__} (interface {_launch.ABI_VERSION}, "
        f"not {ABI_VERSION}): build dyncomp again, for example by `pip install -e .`"
    )


class Library:
    """A loaded library of kernels; it is unloaded with its last reference, so whoever keeps an address keeps
    it as well. ``file``: a descriptor of what is loaded, whatever lies at ``path`` by now. ``OSError`` if it
    cannot be loaded (:func:`is_exhausted`: this system has no room for it)."""

    def __init__(self, path: str | Path, file: int | None = None) -> None:
        self.path = Path(path)
        load_math_libraries()
        load_vector_math()
        name = str(path) if file is None or not _has_proc() else _name_of(file)
        try:
            with span("disk", "load kernels"):
                self._handle = _load(name)
        except OSError as error:
            raise OSError(error.errno, str(error).replace(name, str(path))) from None

    def symbol(self, name: str) -> int:
        """Address of an exported function; ``LookupError`` if there is none of that name."""
        return _launch.symbol(self._handle, name)


_COLLECTIONS = 3
_EXHAUSTED = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def is_exhausted(error: OSError) -> bool:
    """Whether the system had no memory, mappings or descriptors left to load a library."""
    return error.errno in _EXHAUSTED


def _load(path: str) -> Any:
    try:
        return _launch.load_library(path)
    except OSError as error:
        if not is_exhausted(error):
            raise
    unload_unused()
    _launch.release_memory()
    return _launch.load_library(path)


def unload_unused() -> None:
    """Have the collector find compiled functions that nobody refers to. It does not look into code, so what
    one collection frees may be all that held what the next one does."""
    for _ in range(_COLLECTIONS):
        if not _launch.loaded_libraries() or not gc.collect():
            return


_loads = itertools.count()


@functools.cache
def _has_proc() -> bool:
    """Without ``/proc`` (bare chroots) libraries are loaded by their paths."""
    return os.path.isdir("/proc/self/fd")


def _name_of(file: int) -> str:
    """A name of the open file ``file``, another one in every call: the loader takes a name that it knows for
    the library that it knows, and descriptors come again. Slashes and dots spell the number of the call."""
    bits = f"{next(_loads):b}".replace("0", "/").replace("1", "/.")
    return f"/proc/self/fd{bits}/{file}"


@functools.cache
def load_math_libraries() -> None:
    """Make libm and libmvec visible to libraries that were linked with ``-nostdlib``."""
    _launch.load_global("libm.so.6")
    try:
        _launch.load_global("libmvec.so.1")
    except OSError:
        # glibc has it on x86-64 and AArch64 only; code that needs it then fails to load, with its name
        return


@functools.cache
def load_vector_math() -> bool:
    """Make the runtime's elementary functions visible to libraries loaded later; whether this processor and
    build have them."""
    try:
        from ..runtime import _vector_math
    except ImportError:
        return False
    return _vector_math.available
