"""Compiled kernels on disk, addressed by content.

One file per translation unit: ``<directory>/v1/ab/abcd….so``, with the source beside it. The name is the
SHA-256 of source, toolchain and ABI version; the file ends in a footer with the SHA-256 of its name and
of what precedes it, which is checked before loading (a damaged file is rebuilt and logged), as is that
the library is whole (:mod:`elf`). Folders and files are reached by descriptors and must be this user's
or the superuser's alone (:mod:`dyncomp.trusted`); the descriptor that was checked is the one that is
loaded. Files appear by atomic rename; nothing is ever unpickled. A file lock makes two processes that
want one kernel build it once. Past the size limit the files used longest ago go first.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dyncomp.build import cache_files
from dyncomp.build.cache_place import asked_for, place_of, private_folder
from dyncomp.build.elf import check_whole
from dyncomp.build.library import ABI_VERSION, Library, is_exhausted
from dyncomp.build.toolchain import Runner, Toolchain, find_toolchain
from dyncomp.dataclass import dataclass, field
from dyncomp.errors import ToolchainError
from dyncomp.trusted import Folder, UntrustedError, content_of, open_file, read, write

log = logging.getLogger("dyncomp.codecache")

_FORMAT = cache_files.FORMAT
# A comment that says which line of the program a function computes (``ctext.origins``).
_ORIGIN = re.compile(r"\n//   [^*\\\n]*:\d+(?=\n)")
_LOCK_SECONDS = 120.0
# Use is noted with this accuracy, for eviction.
_USED_SECONDS = 600.0
DEFAULT_LIMIT = 1 << 30


@dataclass
class CacheStats:
    """What a cache did since it was opened."""

    memory_hits: int = 0
    disk_hits: int = 0
    builds: int = 0
    damaged: int = 0


@dataclass
class KernelCache:
    """Libraries by content. ``directory`` is where they live; ``note`` says why it is a private temporary
    directory, if it is. ``limit`` is in bytes. ``older``: what lies there is used, but nothing is written.
    Safe to use from several threads, and after a fork in one of them: there is no lock that another thread
    could have held. Where ``directory`` can no longer be written (the disk is full) it becomes ``older``, and
    a private one takes its place."""

    directory: Path
    note: str = ""
    limit: int = DEFAULT_LIMIT
    older: Path | None = None
    stats: CacheStats = field(default_factory=CacheStats)
    _loaded: weakref.WeakValueDictionary[str, Library] = field(
        default_factory=weakref.WeakValueDictionary, repr=False
    )
    _folders: dict[Path, Folder] = field(default_factory=dict, repr=False)

    def load(self, source: str, toolchain: Toolchain | None = None, runner: Runner | None = None) -> Library:
        """The library of one translation unit, built if need be (by ``runner``). Raises
        :class:`ToolchainError` if it cannot be."""
        found = self.find(source, find_toolchain() if toolchain is None else toolchain)
        return self.load_many([source], toolchain, runner)[0] if found is None else found

    def find(self, source: str, toolchain: Toolchain) -> Library | None:
        """The library of one translation unit, where it is there."""
        return self._on_hand(kernel_key(source, toolchain))

    def at(self, key: str) -> Library | None:
        """The library of that key, where it is there."""
        return self._on_hand(key)

    def load_many(
        self, sources: Sequence[str], toolchain: Toolchain | None = None, runner: Runner | None = None
    ) -> list[Library]:
        """The libraries of several translation units; those missing are compiled at the same time."""
        toolchain = find_toolchain() if toolchain is None else toolchain
        keys = [kernel_key(source, toolchain) for source in sources]
        unique = dict(zip(keys, sources))
        found = {key: self._on_hand(key) for key in unique}
        missing = {key: source for key, source in unique.items() if found[key] is None}
        found.update(self._build_many(missing, toolchain, runner))
        return [library for key in keys if (library := found[key]) is not None]

    def path_of(self, key: str) -> Path:
        return _path_in(self.directory, key)

    def folder(self) -> Folder:
        """Where everything is written."""
        return self._folder(self.directory)

    def evict(self) -> int:
        """Delete the files used longest ago until four fifths of ``limit`` are left; the bytes deleted."""
        return cache_files.evict(self._folder(self.directory), self.limit)

    def _folder(self, directory: Path) -> Folder:
        found = self._folders.get(directory)
        if found is None:
            found = self._folders.setdefault(directory, Folder(directory))
        return found

    def _on_hand(self, key: str) -> Library | None:
        """Loaded already, or on disk and sound (then loaded now)."""
        library = self._loaded.get(key)
        if library is not None:
            self.stats.memory_hits += 1
            return library
        places = [self.directory] if self.older is None else [self.directory, self.older]
        return next(filter(None, (self._found_in(directory, key) for directory in places)), None)

    def _found_in(self, directory: Path, key: str) -> Library | None:
        try:
            shard = self._folder(directory).open(_FORMAT, key[:2])
        except UntrustedError as error:
            log.warning("compiled code in %s is not loaded: %s", directory, error)
            return None
        except OSError as error:
            _check_room(error)
            return None
        try:
            return self._found_at(shard, directory, key)
        finally:
            os.close(shard)

    def _found_at(self, shard: int, directory: Path, key: str) -> Library | None:
        file = self._sound(shard, directory, key)
        if file is None:
            return None
        path = _path_in(directory, key)
        try:
            library = self._open(key, path, file)
        except OSError as error:  # this system cannot load it
            _check_room(error)
            log.warning("kernel %s cannot be loaded: rebuilding it (%s)", path, error)
            with suppress(OSError):
                os.unlink(path.name, dir_fd=shard)
            return None
        finally:
            os.close(file)
        self.stats.disk_hits += 1
        return library

    def _sound(self, shard: int, directory: Path, key: str) -> int | None:
        """A descriptor of the file of ``key``, where it is there and may be loaded."""
        try:
            file, facts = open_file(shard, f"{key}.so")
        except UntrustedError as error:
            log.warning("kernel %s is not loaded: %s", _path_in(directory, key), error)
            return None
        except OSError as error:
            _check_room(error)
            return None
        reason = ""
        try:
            reason = cache_files.damage(content_of(file, facts.st_size), key)
        except OSError as error:
            os.close(file)
            _check_room(error)
            return None
        if not reason:
            if facts.st_mtime < time.time() - _USED_SECONDS:
                with suppress(OSError):  # a read-only cache: eviction is not ours then
                    os.utime(file)
            return file
        os.close(file)
        self.stats.damaged += 1
        log.warning("damaged kernel %s: rebuilding it (%s)", _path_in(directory, key), reason)
        with suppress(OSError):
            os.unlink(f"{key}.so", dir_fd=shard)
        return None

    def _open(self, key: str, path: Path, file: int) -> Library:
        return self._loaded.setdefault(key, Library(path, file))

    def _build_many(
        self, missing: Mapping[str, str], toolchain: Toolchain, runner: Runner | None
    ) -> dict[str, Library]:
        items = list(missing.items())
        if len(items) < 2:
            return {key: self._build(key, text, toolchain, runner) for key, text in items}
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(len(items), len(os.sched_getaffinity(0)))) as pool:
            jobs = {key: pool.submit(self._build, key, text, toolchain, runner) for key, text in items}
            return {key: job.result() for key, job in jobs.items()}

    def _build(self, key: str, source: str, toolchain: Toolchain, runner: Runner | None) -> Library:
        began = self.directory
        try:
            library = self._build_in(began, key, source, toolchain, runner)
        except (OSError, ToolchainError) as error:
            if isinstance(error, ToolchainError) and not _is_full(error):
                raise
            if not self._move(began, error):
                raise ToolchainError(f"cannot write compiled code to {began}: {error}") from error
            try:
                library = self._build_in(self.directory, key, source, toolchain, runner)
            except OSError as second:
                raise ToolchainError(f"cannot write compiled code to {self.directory}: {second}") from second
        if key[0] == "0":
            # a directory scan costs milliseconds: once in sixteen builds is enough
            self.evict()
        return library

    def _build_in(
        self, directory: Path, key: str, source: str, toolchain: Toolchain, runner: Runner | None
    ) -> Library:
        """Build the library of ``key``, unless another process just has, and load it."""
        path, root = _path_in(directory, key), self._folder(directory)
        with root.below(_FORMAT, create=True) as top, root.below(_FORMAT, key[:2], create=True) as shard:
            with cache_files.build_lock(top, f"{key[:2]}.lock", _LOCK_SECONDS):
                file = self._sound(shard, directory, key)
                if file is None:
                    made = _compiled(top, shard, Path(root.real), key, source, toolchain, runner)
                    write(shard, path.name, cache_files.signed(made, key))
                    self.stats.builds += 1
                    file, _ = open_file(shard, path.name)
                else:
                    self.stats.disk_hits += 1
            try:
                return self._open(key, path, file)
            except OSError as error:
                _check_room(error)
                raise ToolchainError(f"cannot load compiled code: {error}") from error
            finally:
                os.close(file)

    def _move(self, began: Path, error: Exception) -> bool:
        """Write to a private directory from now on; whether another than ``began`` is written to."""
        if self.directory != began:
            return True  # another thread has
        if self.note:
            return False
        reason = "the disk is full" if isinstance(error, ToolchainError) else str(error)
        note = f"cache directory {began} is not written any more: {reason}"
        private = private_folder()
        log.warning("%s; compiled code goes to a temporary directory", note)
        self._folders[private.path] = private
        self.older, self.note, self.directory = began, note, private.path
        return True


def _path_in(directory: Path, key: str) -> Path:
    return directory / _FORMAT / key[:2] / f"{key}.so"


def _check_room(error: OSError) -> None:
    """Raise where nothing is wrong with a file but that this process has no room for it."""
    if is_exhausted(error):
        raise _no_room(error) from error


def _no_room(error: OSError) -> ToolchainError:
    """What is raised, and told once, where a library cannot be mapped: functions run as plain Python then."""
    _tell_no_room()
    return ToolchainError(f"no room to load compiled code: {error}")


@functools.cache
def _tell_no_room() -> None:
    log.warning(
        "this process has no memory, mappings or descriptors left to load compiled code: what is compiled "
        "from now on runs as plain Python; dyncomp.reset() gives back what compiled functions hold"
    )


def _is_full(error: ToolchainError) -> bool:
    """Whether the compiler found no room for what it makes."""
    return any(text in str(error) for text in ("No space left on device", "Disk quota exceeded"))


def kernel_key(source: str, toolchain: Toolchain) -> str:
    """The content address of a translation unit: 64 hexadecimal digits. Files and lines of the program,
    which move when it is edited, are no part of it."""
    parts = (_FORMAT, str(ABI_VERSION), toolchain.fingerprint, _ORIGIN.sub("", source))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def open_cache(environ: Mapping[str, str] | None = None) -> KernelCache:
    """The process's cache: in ``DYNCOMP_CACHE_DIR``, else the user's cache directory; in a private temporary
    directory, with a logged reason, if that cannot be written or is open to others, or if
    ``DYNCOMP_FORCE_DISABLE_CACHES`` is set. ``DYNCOMP_CACHE_SIZE_MB`` bounds it (default 1024)."""
    environ = os.environ if environ is None else environ
    return _open_cache(*asked_for(environ), environ.get("DYNCOMP_CACHE_SIZE_MB", ""))


@functools.lru_cache(maxsize=8)
def _open_cache(directory: str, disabled: bool, megabytes: str) -> KernelCache:
    limit = int(megabytes) << 20 if megabytes.isdigit() else DEFAULT_LIMIT
    place = place_of(directory, disabled)
    return KernelCache(
        place.folder.path, place.note, limit, place.older, _folders={place.folder.path: place.folder}
    )


def _compiled(
    top: int, shard: int, root: Path, key: str, source: str, toolchain: Toolchain, runner: Runner | None
) -> bytes:
    """The library that the compiler makes of ``source``. That lies in ``shard``, also on failure."""
    write(shard, f"{key}.cpp", source.encode())
    with cache_files.scratch(top, str(root / _FORMAT)) as (folder, path):
        toolchain.compile(_path_in(root, key).with_suffix(".cpp"), Path(path) / f"{key}.so", runner)
        try:
            made = read(folder, f"{key}.so")
        except FileNotFoundError as error:
            raise ToolchainError(
                f"{toolchain.compiler} failed: its output is not where it was to be"
            ) from error
    check_whole(made, toolchain.compiler)
    return made
