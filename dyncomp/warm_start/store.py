"""Entries on disk: found by a function's code and the types of its arguments, checked by their guards.

``<cache>/entries/ab/<key>/<name>.json`` holds one entry: a line with a checksum, then two texts
(:mod:`.entries`). The key is of the function's code and place, the types of its arguments, the options and
the versions of Python, NumPy, dyncomp and the compiler; what else must be as it was is in the file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import time
import types
from contextlib import suppress
from typing import Any

import numpy as np

from ..build.kernel_cache import KernelCache, open_cache
from ..build.toolchain import find_toolchain
from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..capture.entries.stored import Captured
from ..capture.policy.recompilation import builtins_of
from ..errors import ToolchainError
from ..hook import _hook
from ..options import Options
from ..pipeline import Stages, run_pipeline
from ..trusted import UntrustedError, read, write
from .descriptions import NotStorable
from .entries import pack, unpack
from .pairs import keep_backwards
from .pieces import place_name
from .sources import own_version
from .staged import keep_stages

log = logging.getLogger("dyncomp.warm_start")

FOLDER = "entries"
_FORMAT = 1
_MOST = 16  # entries of one key
_USED_SECONDS = 600.0  # use is noted with this accuracy, for eviction
_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, IndexError, LookupError, OSError, ImportError)


def may_store(options: Options) -> bool:
    """Whether entries under these options are kept on disk."""
    whole = options.stop_after in ("", "inductor") and not options.dump and not options.debug_verify
    return options.warm_start and options.cache and options.backend == "inductor" and whole


class EntryStore:
    """The entries on disk of one configuration
    (:class:`~dyncomp.capture.entries.stored.StoredEntries`)."""

    def __init__(self, options: Options) -> None:
        self._options = repr(sorted(options.key())) + f" {options.fullgraph} {options.measure}"
        self._made: dict[str, dict[str, tuple[_hook.Entry, EntryRecord] | None]] = {}  # by key and name

    def find(
        self, function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig
    ) -> tuple[_hook.Entry, EntryRecord] | None:
        if not is_plain(config):
            return None
        try:
            return self._find(self._key(function, args, config), function, args, config)
        except (ToolchainError, *_DAMAGED) as error:
            log.info("entries of %s on disk are not used: %s", function.__qualname__, error)
            return None

    def keep(self, captured: Captured, config: CaptureConfig) -> None:
        function = captured.function
        if not is_plain(config):
            return
        try:
            texts = pack(captured, config)
            parts = self._write(self._key(function, captured.args, config), texts)
            gradients = getattr(captured.record.compiled, "gradients", None)
            if gradients is not None:
                keep_backwards(captured.record.compiled, parts)
            if isinstance(getattr(captured.record.compiled, "artifact", None), Stages):
                keep_stages(captured.record.compiled, parts)
        except (NotStorable, ToolchainError, OSError) as error:
            config.records.counters["not_stored"] += 1
            log.info("%s is not kept on disk: %s", function.__qualname__, error)
        except _DAMAGED as error:
            config.note_fault(f"{function.__qualname__} is not kept on disk", error)

    def _find(
        self, key: str, function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig
    ) -> tuple[_hook.Entry, EntryRecord] | None:
        made = self._made.setdefault(key, {})
        env = (args, function.__globals__, builtins_of(function), function.__closure__)
        cache = open_cache()
        for name in _names(cache, key):
            if name not in made:
                made[name] = _read(cache, key, name, function, args, config)
            found = made[name]
            if found is not None and found[0].guards is not None and found[0].guards.check(*env):
                made[name] = None  # it is the program's from now on
                return found
        return None

    def _key(self, function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> str:
        place = [*place_name(config, function.__code__), function.__module__]
        kinds = [f"{type(arg).__module__}.{type(arg).__qualname__}" for arg in args]
        versions = [_FORMAT, sys.version, np.__version__, own_version(), find_toolchain().fingerprint]
        versions.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
        parts = [place, kinds, versions, self._options, _policies(config), _closed_over(function)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _write(self, key: str, texts: tuple[str, str]) -> PartsOnDisk:
        content = "\n".join(texts).encode()
        digest = _digest(key, content)
        cache = open_cache()
        with cache.folder().below(FOLDER, key[:2], key, create=True) as folder:
            names = _by_use(folder)
            for name in names[_MOST - 1 :]:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
            write(folder, f"{digest[:32]}.json", f"{digest}\n".encode() + content)
        return PartsOnDisk(key, digest[:32])


class PartsOnDisk:
    """The texts beside one entry (see :class:`~dyncomp.warm_start.context.Parts`)."""

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.name = name

    def read(self, name: str) -> str | None:
        try:
            with open_cache().folder().below(FOLDER, self.key[:2], self.key) as folder:
                return _checked(self.key, read(folder, self._file(name)))
        except OSError:
            return None

    def write(self, name: str, text: str) -> None:
        content = text.encode()
        try:
            with open_cache().folder().below(FOLDER, self.key[:2], self.key, create=True) as folder:
                write(folder, self._file(name), f"{_digest(self.key, content)}\n".encode() + content)
        except OSError as error:
            log.info("a part of an entry is not kept on disk: %s", error)

    def _file(self, name: str) -> str:
        return f"{self.name}-{name}.json"


def is_plain(config: CaptureConfig) -> bool:
    """Whether captures depend on nothing but what is stored, and graphs are compiled as usual."""
    own = config.holder is not None or config.compile_graph is not run_pipeline
    return not own and not config.substitutes


def _policies(config: CaptureConfig) -> list[Any]:
    """What tells configurations with the same options apart (:func:`dyncomp.autodiff.record.new_config`)."""
    native = config.make_native is not None
    return [config.is_private, config.warns, config.pins_trip_counts, config.most_unrolled, native]


def _closed_over(function: types.FunctionType) -> list[str]:
    """The functions in a closure: a wrapper, such as that of ``dyncomp.grad``, has entries for each."""
    found = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            kept = cell.cell_contents
            found += [f"{kept.__module__}.{kept.__qualname__}"] if type(kept) is types.FunctionType else []
    return found


def _digest(key: str, content: bytes) -> str:
    return hashlib.sha256(key.encode() + content).hexdigest()


def damage_of_entry(key: str, content: bytes) -> str:
    """Why a file under ``key`` must not be used; empty if it may."""
    digest, _, body = content.partition(b"\n")
    return "" if digest.decode(errors="replace") == _digest(key, body) else "its checksum is wrong"


def _checked(key: str, content: bytes) -> str | None:
    """What a file holds behind its checksum; ``None``, which is logged, where that is wrong."""
    if damage_of_entry(key, content):
        log.warning("a damaged entry on disk is not used: %s", key)
        return None
    return content.partition(b"\n")[2].decode()


def _names(cache: KernelCache, key: str) -> list[str]:
    try:
        with cache.folder().below(FOLDER, key[:2], key) as folder:
            return _by_use(folder)
    except FileNotFoundError:
        return []


def _by_use(folder: int) -> list[str]:
    """The files of entries, those used last first."""
    with os.scandir(folder) as entries:
        names = [entry for entry in entries if entry.name.endswith(".json") and "-" not in entry.name]
        found = [(entry.stat().st_mtime_ns, entry.name) for entry in names]
    return [name for _, name in sorted(found, reverse=True)]


def _read(
    cache: KernelCache,
    key: str,
    name: str,
    function: types.FunctionType,
    args: tuple[Any, ...],
    config: CaptureConfig,
) -> tuple[_hook.Entry, EntryRecord] | None:
    """The entry of a file, ``None`` where it does not fit this process."""
    try:
        with cache.folder().below(FOLDER, key[:2], key) as folder:
            content = read(folder, name)
            if os.stat(name, dir_fd=folder).st_mtime < time.time() - _USED_SECONDS:
                with suppress(OSError):
                    os.utime(name, dir_fd=folder)
        body = _checked(key, content)
        if body is None:
            return None
        main, _, details = body.partition("\n")
        parts = PartsOnDisk(key, name.partition(".")[0])
        return unpack((main, details), function, args, config, parts)
    except UntrustedError as error:
        log.warning("an entry on disk is not used: %s", error)
    except _DAMAGED as error:
        log.info("an entry of %s on disk is not used: %s", function.__qualname__, error)
    return None
