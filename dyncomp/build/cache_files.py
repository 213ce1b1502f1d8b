"""The files of the kernel cache: how they are signed, built beside each other and deleted.

Folders are given by descriptors of :mod:`dyncomp.trusted`.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..trusted import DRAFT, Folder
from .elf import damage as damage_of_library

log = logging.getLogger("dyncomp.codecache")

FORMAT = "v1"
# What is beside the kernels: the runtime of libraries for C, measured choices, what compilers say of
# themselves, entries.
BESIDE = ("c_runtime", "choices", "compilers", "entries")
_MAGIC = b"DYNCOMP2"
_FOOTER_BYTES = 32 + len(_MAGIC)
_BUILD = ".build-"
_STALE_SECONDS = 3600.0
_POLL_SECONDS = 0.02
_KEPT = (".so", ".cpp", ".json", ".txt", ".o")


def signed(content: bytes, key: str) -> bytes:
    """A library as it lies in the cache. The loader ignores bytes behind an ELF file's sections."""
    return content + _digest(content, key) + _MAGIC


def damage(content: bytes, key: str) -> str:
    """Why what lies in the cache under ``key`` must not be loaded; empty if it may."""
    body, footer = memoryview(content)[:-_FOOTER_BYTES], content[-_FOOTER_BYTES:]
    if footer[32:] != _MAGIC or _digest(body, key) != footer[:32]:
        return "its checksum is wrong"
    return damage_of_library(body)


def _digest(content: bytes | memoryview, key: str) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(content)
    return digest.digest()


# -- locks ------------------------------------------------------------------------------------
@contextmanager
def build_lock(folder: int, name: str, seconds: float) -> Iterator[None]:
    """Hold the file ``name`` against other processes; go on without after ``seconds`` or where files cannot
    be locked (files appear by renaming all the same: at worst a kernel is built twice)."""
    file = -1
    try:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(name, flags, 0o600, dir_fd=folder)
            _wait(file, seconds)
        except OSError as error:
            log.warning("building without the lock %s: %s", name, error)
        yield
    finally:
        if file >= 0:
            os.close(file)


def _wait(file: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not _locks(file):
        if time.monotonic() > end:
            raise TimeoutError(f"another process has held it for {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# -- folders to build in ----------------------------------------------------------------------
@contextmanager
def scratch(folder: int, path: str) -> Iterator[tuple[int, str]]:
    """A new folder in ``folder``, which lies at ``path``, to build in: its descriptor and path. It is locked
    while it is used, so that others can tell it from what a killed process left behind."""
    while True:
        name = f"{_BUILD}{secrets.token_hex(8)}"
        os.mkdir(name, 0o700, dir_fd=folder)
        os.chmod(name, 0o700, dir_fd=folder)
        here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with suppress(OSError):  # not on every file system
            _locks(here)
        if os.fstat(here).st_nlink:
            break
        os.close(here)  # deleted before it was locked
    try:
        yield here, f"{path}/{name}"
    finally:
        shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
        os.close(here)


def reclaim(folder: int) -> None:
    """Delete what killed processes were building in ``folder``."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith((_BUILD, DRAFT))]
    for name in names:
        with suppress(OSError):
            _reclaim_one(folder, name)


def _reclaim_one(folder: int, name: str) -> None:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    # the folder's own modification time is a clock that agrees with its entries', also over a network
    old = facts.st_mtime < os.fstat(folder).st_mtime - _STALE_SECONDS
    if not stat.S_ISDIR(facts.st_mode):
        if old:
            os.unlink(name, dir_fd=folder)
        return
    here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        try:
            abandoned = _locks(here)
        except OSError:  # folders cannot be locked there
            abandoned = old
        if abandoned:
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
    finally:
        os.close(here)


# -- what is there ----------------------------------------------------------------------------
def survey(root: Folder) -> list[tuple[tuple[str, ...], str, os.stat_result]]:
    """The files of the cache that are not being built: folders below ``root``, name, facts."""
    found = []
    for names in _folders(root):
        with suppress(OSError), root.below(*names) as folder:
            found += [(names, name, facts) for name, facts in _files(folder) if _is_kept(names, name)]
    return found


def _is_kept(names: tuple[str, ...], name: str) -> bool:
    return name.endswith(_KEPT) and not names[-1].startswith(_BUILD)


# -- the size ---------------------------------------------------------------------------------
def evict(root: Folder, limit: int) -> int:
    """Delete the files used longest ago until four fifths of ``limit`` are left; the bytes deleted. All files
    of the cache count."""
    total, found = 0, []
    for names in _folders(root):
        with suppress(OSError), root.below(*names) as folder:
            reclaim(folder)
            for name, facts in _files(folder):
                total += facts.st_size
                if _is_kept(names, name):
                    found.append((facts.st_mtime, facts.st_size, names, name))
    deleted = 0
    for _, size, names, name in sorted(found) if total > limit else ():
        if total - deleted <= limit * 4 // 5:
            break
        with suppress(OSError), root.below(*names) as folder:
            os.unlink(name, dir_fd=folder)
            deleted += size
    return deleted


def _folders(root: Folder) -> list[tuple[str, ...]]:
    """Those of the cache, by their names below ``root``; builds that go on among them."""
    found: list[tuple[str, ...]] = [(name,) for name in (FORMAT, *BESIDE)]
    for names in found:
        with suppress(OSError), root.below(*names) as folder, os.scandir(folder) as entries:
            found += [(*names, entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def _files(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    yield entry.name, entry.stat(follow_symlinks=False)
