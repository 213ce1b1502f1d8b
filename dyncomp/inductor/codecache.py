"""Compiled kernels on disk, addressed by content.

One file per translation unit: ``<directory>/v1/ab/abcd….so``, with the source beside it. The name is the
SHA-256 of source, toolchain and ABI version; the file ends in a footer with the SHA-256 of what precedes it,
which is checked before loading (a damaged file is rebuilt and logged). Files appear by atomic rename, in
directories that only the user may enter; nothing is ever unpickled. A file lock makes two processes that want
one kernel build it once. Past the size limit the files used longest ago go first.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dyncomp.dataclass import dataclass, field
from dyncomp.errors import ToolchainError
from dyncomp.inductor.launch import ABI_VERSION, Library, is_exhausted
from dyncomp.inductor.toolchain import Runner, Toolchain, find_toolchain

log = logging.getLogger("dyncomp.codecache")

_FORMAT = "v1"
_MAGIC = b"DYNCOMP1"
# A comment that says which line of the program a function computes (``ctext.origins``).
_ORIGIN = re.compile(r"^//   [^*\\\n]*:\d+\n", re.M)
_FOOTER_BYTES = 32 + len(_MAGIC)
_LOCK_SECONDS = 120.0
_STALE_SECONDS = 3600.0
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

    def load(self, source: str, toolchain: Toolchain | None = None, runner: Runner | None = None) -> Library:
        """The library of one translation unit, built if need be (by ``runner``). Raises
        :class:`ToolchainError` if it cannot be."""
        found = self.find(source, find_toolchain() if toolchain is None else toolchain)
        return self.load_many([source], toolchain, runner)[0] if found is None else found

    def find(self, source: str, toolchain: Toolchain) -> Library | None:
        """The library of one translation unit, where it is there."""
        return self._on_hand(kernel_key(source, toolchain))

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

    def evict(self) -> int:
        """Delete the files used longest ago until four fifths of ``limit`` are left; the bytes deleted."""
        files = sorted(_files_below(self.directory / _FORMAT), key=lambda entry: entry[1])
        total = sum(size for _, _, size in files)
        if total <= self.limit:
            return 0
        deleted = 0
        for path, _, size in files:
            if total - deleted <= self.limit * 4 // 5:
                break
            path.unlink(missing_ok=True)
            deleted += size
        return deleted

    def _on_hand(self, key: str) -> Library | None:
        """Loaded already, or on disk and sound (then loaded now)."""
        library = self._loaded.get(key)
        if library is not None:
            self.stats.memory_hits += 1
            return library
        places = [self.path_of(key)]
        if self.older is not None:
            places.append(_path_in(self.older, key))
        return next(filter(None, (self._found_at(path, key) for path in places)), None)

    def _found_at(self, path: Path, key: str) -> Library | None:
        if not self._sound(path):
            return None
        try:
            library = self._open(key, path)
        except OSError as error:  # another process has just evicted it, or this system cannot load it
            if is_exhausted(error):  # nothing is wrong with the file
                raise _no_room(error) from error
            log.warning("kernel %s cannot be loaded: rebuilding it (%s)", path, error)
            with suppress(OSError):
                path.unlink()
            return None
        self.stats.disk_hits += 1
        _touch(path)
        return library

    def _sound(self, path: Path) -> bool:
        try:
            content = path.read_bytes()
        except OSError:
            return False
        if _checksum_holds(content):
            return True
        self.stats.damaged += 1
        log.warning("damaged kernel %s: rebuilding it", path)
        with suppress(OSError):
            path.unlink()
        return False

    def _open(self, key: str, path: Path) -> Library:
        return self._loaded.setdefault(key, Library(path))

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
            path = self._build_in(began, key, source, toolchain, runner)
        except (OSError, ToolchainError) as error:
            if isinstance(error, ToolchainError) and not _is_full(error):
                raise
            if not self._move(began, error):
                raise ToolchainError(f"cannot write compiled code to {began}: {error}") from error
            try:
                path = self._build_in(self.directory, key, source, toolchain, runner)
            except OSError as second:
                raise ToolchainError(f"cannot write compiled code to {self.directory}: {second}") from second
        try:
            library = self._open(key, path)
        except OSError as error:
            if is_exhausted(error):
                raise _no_room(error) from error
            raise ToolchainError(f"cannot load compiled code: {error}") from error
        if key[0] == "0":
            # a directory scan costs milliseconds: once in sixteen builds is enough
            self.evict()
        return library

    def _build_in(
        self, directory: Path, key: str, source: str, toolchain: Toolchain, runner: Runner | None
    ) -> Path:
        path = _path_in(directory, key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _build_lock(directory / _FORMAT / f"{key[:2]}.lock"):
            # another process may have built it while this one waited
            if not self._sound(path):
                _compile_into(path, source, toolchain, runner)
                self.stats.builds += 1
        return path

    def _move(self, began: Path, error: Exception) -> bool:
        """Write to a private directory from now on; whether another than ``began`` is written to."""
        if self.directory != began:
            return True  # another thread has
        if self.note:
            return False
        reason = "the disk is full" if isinstance(error, ToolchainError) else str(error)
        note = f"cache directory {began} is not written any more: {reason}"
        private = _private_directory()
        log.warning("%s; compiled code goes to a temporary directory", note)
        self.older, self.note, self.directory = began, note, private
        return True


def _path_in(directory: Path, key: str) -> Path:
    return directory / _FORMAT / key[:2] / f"{key}.so"


def _no_room(error: OSError) -> ToolchainError:
    """What is raised, and told once, where a library cannot be mapped: functions run as plain Python then."""
    _tell_no_room()
    return ToolchainError(f"no room to load compiled code: {error}")


@functools.cache
def _tell_no_room() -> None:
    log.warning(
        "this process has no memory, mappings or descriptors left to load compiled code: what is compiled from now "
        "on runs as plain Python; dyncomp.reset() gives back what compiled functions hold"
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
    return _open_cache(
        environ.get("DYNCOMP_CACHE_DIR", ""),
        environ.get("DYNCOMP_FORCE_DISABLE_CACHES", "") not in ("", "0"),
        environ.get("DYNCOMP_CACHE_SIZE_MB", ""),
    )


@functools.lru_cache(maxsize=8)
def _open_cache(directory: str, disabled: bool, megabytes: str) -> KernelCache:
    limit = int(megabytes) << 20 if megabytes.isdigit() else DEFAULT_LIMIT
    if disabled:
        return KernelCache(_private_directory(), "caches are disabled", limit)
    wanted = Path(directory) if directory else _user_directory()
    reason = _unusable(wanted)
    if not reason:
        return KernelCache(wanted, "", limit)
    note = f"cache directory {wanted} is not used: {reason}"
    log.warning("%s; compiled code goes to a temporary directory", note)
    older = None if _untrusted(wanted) else wanted
    return KernelCache(_private_directory(), note, limit, older)


def _user_directory() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("dyncomp", appauthor=False)) / "kernels"


def _unusable(directory: Path) -> str:
    """Why compiled code must not be kept in ``directory``; empty if it may. Creates it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        untrusted = _untrusted(directory)
        if untrusted:
            return untrusted
        if directory.stat().st_uid != os.geteuid():
            return "it belongs to another user"
        (directory / _FORMAT).mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory / _FORMAT):
            return ""
    except (OSError, ValueError) as error:
        return str(error)


def _untrusted(directory: Path) -> str:
    """Why compiled code that lies in ``directory`` must not be run; empty if it may."""
    try:
        facts = directory.stat()
        if facts.st_uid not in (os.geteuid(), 0):
            return "it belongs to another user"
        if stat.S_IMODE(facts.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
            return "other users may write to it"
        if os.statvfs(directory).f_flag & os.ST_NOEXEC:
            return "no code can be run from there"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _private_directory() -> Path:
    """A directory of this process alone, deleted when it ends (not when a fork of it does)."""
    try:
        path = Path(tempfile.mkdtemp(prefix="dyncomp-"))
    except OSError as error:
        raise ToolchainError(f"no directory to compile in: {error}") from error
    owner = os.getpid()

    def delete() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    weakref.finalize(_open_cache, delete)
    return path


@contextmanager
def _build_lock(path: Path) -> Iterator[None]:
    """Hold ``path`` against other processes; go on without after two minutes or where files cannot be locked
    (the rename is atomic all the same: at worst a kernel is built twice)."""
    import filelock

    lock = filelock.FileLock(path, timeout=_LOCK_SECONDS, mode=0o600, thread_local=False)
    held = False
    try:
        lock.acquire()
        held = True
    except (filelock.Timeout, NotImplementedError, OSError) as error:
        log.warning("building without the lock %s: %s", path, error)
    try:
        yield
    finally:
        if held:
            lock.release()


def _compile_into(path: Path, source: str, toolchain: Toolchain, runner: Runner | None) -> None:
    """Compile beside ``path``, append the footer, rename. The source stays beside it, also on failure."""
    text = path.with_suffix(".cpp")
    with tempfile.TemporaryDirectory(prefix=".build-", dir=path.parent) as scratch:
        draft = Path(scratch) / text.name
        draft.write_text(source)
        os.replace(draft, text)
        built = Path(scratch) / path.name
        toolchain.compile(text, built, runner)
        content = built.read_bytes()
        with open(built, "ab") as file:
            file.write(hashlib.sha256(content).digest() + _MAGIC)
        os.chmod(built, 0o700)
        os.replace(built, path)


def _checksum_holds(content: bytes) -> bool:
    """Whether the footer matches. The loader ignores bytes behind an ELF file's sections."""
    body, footer = content[:-_FOOTER_BYTES], content[-_FOOTER_BYTES:]
    return footer[32:] == _MAGIC and hashlib.sha256(body).digest() == footer[:32]


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        return  # a read-only cache: eviction is not ours then


def _files_below(directory: Path) -> list[tuple[Path, float, int]]:
    """(path, time of last use, bytes) of kernels and sources; abandoned build directories are deleted."""
    found = []
    for shard in directory.iterdir() if directory.is_dir() else ():
        if not shard.is_dir():
            continue
        for path in shard.iterdir():
            try:
                facts = path.stat()
            except OSError:
                continue
            if path.name.startswith(".build-"):
                if facts.st_mtime < _newest(shard) - _STALE_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            elif path.suffix in (".so", ".cpp"):
                found.append((path, facts.st_mtime, facts.st_size))
    return found


def _newest(shard: Path) -> float:
    """The shard's own modification time: a clock that agrees with its files', also over a network."""
    return shard.stat().st_mtime
