"""What was measured to be the fastest of several forms: kept in the process for equal steps, and on disk for
other processes on the same machine."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import platform
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...dataclass import dataclass, field
from ...options import Options
from ...trusted import opened, read, write

log = logging.getLogger("dyncomp.inductor")

_FOLDER = "choices"


@dataclass(frozen=True)
class Tuning:
    """How forms are measured: for how long all those of one graph (of one step on a GPU), whether that is
    shown (see ``Options.progress``); ``strict``: faults of dyncomp are raised."""

    seconds: float = 4.0
    progress: str = "auto"
    strict: bool = False

    @staticmethod
    def of(options: Options) -> Tuning:
        return Tuning(options.tuning_seconds, options.progress, options.strict)


@dataclass
class Choices:
    """What the fastest form is called, by key. Two threads that look at once both find it. ``folder``: where
    it is kept for other processes, if anywhere."""

    folder: Path | None = None
    by_key: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: str, names: Sequence[str]) -> int | None:
        """The number of the choice for ``key``, made in this process or another."""
        found = self.text(key)
        return names.index(found) if found in names else None

    def put(self, key: str, names: Sequence[str], number: int, milliseconds: Sequence[float]) -> int:
        with self.lock:
            found = self.by_key.get(key)
            if found not in names:
                found = self.by_key[key] = names[number]
        self._keep(key, names[number], dict(zip(names, milliseconds)))
        return names.index(found)

    def text(self, key: str) -> str | None:
        """What was chosen for ``key``; ``None``: nothing yet. It may be anything where a file was damaged."""
        found = self.by_key.get(key)
        if found is None and self.folder is not None:
            found = _read(self.folder, key)
            if found is not None:
                self.by_key[key] = found
        return found

    def put_text(self, key: str, text: str, milliseconds: Mapping[str, float]) -> None:
        """Keep what was measured to be the best."""
        self.by_key[key] = text
        self._keep(key, text, milliseconds)

    def _keep(self, key: str, text: str, milliseconds: Mapping[str, float]) -> None:
        if self.folder is not None:
            _write(self.folder, key, text, milliseconds)


def _read(folder: Path, key: str) -> str | None:
    try:
        with opened(folder) as place:
            best = json.loads(read(place, f"{key}.json"))["best"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return best if isinstance(best, str) else None


def _write(folder: Path, key: str, best: str, times: Mapping[str, float]) -> None:
    """One choice, to be read by people too. What cannot be written is found again another time."""
    shown = {name: round(t, 5) for name, t in times.items() if t != float("inf")}
    try:
        with opened(folder, create=True) as place:
            write(place, f"{key}.json", json.dumps({"best": best, "milliseconds": shown}, indent=1).encode())
    except OSError as error:
        log.warning("a choice was not written: %s", error)


@functools.lru_cache(maxsize=8)
def choices_in(cache: Path | None) -> Choices:
    """What was found by this process, kept beside the compiled kernels of ``cache``."""
    return Choices(None if cache is None else cache / _FOLDER)


def key_of(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


@functools.cache
def machine_name() -> str:
    """What a processor is called, and how many of its cores may be used."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()} x{os.cpu_count()}"
