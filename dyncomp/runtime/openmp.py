"""The OpenMP runtime that torch runs on, whose threads compiled code shares."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from dyncomp.runtime._launch import share_threads

_ENVIRONMENT = "DYNCOMP_OWN_THREADS"  # set: the pool's own workers only
_FUNCTIONS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_max_threads")


@functools.cache
def share_threads_of(package: str) -> bool:
    """Run compiled code on the threads of the OpenMP runtime that comes with an installed package, and on as
    many as that is told to use; False where it has loaded none that is known, or this process
    was forked from one that may have used it: its threads are not here, which it does not know."""
    path = None if os.environ.get(_ENVIRONMENT) else _loaded_runtime(package)
    if path is None:
        return False
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        functions = [getattr(library, name) for name in _FUNCTIONS]
    except (OSError, AttributeError):
        return False
    return share_threads(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions))


def _loaded_runtime(package: str) -> str | None:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        path = line.partition("/")[2]
        folders = {package, f"{package}.libs"}
        if folders & {*path.split("/")} and Path(path).name.startswith(("libgomp", "libiomp5", "libomp")):
            return f"/{path}"
    return None
