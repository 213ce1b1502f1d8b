"""Files whose content is run, or decides what is run: found and read by descriptor, one folder at a time.

A folder is reached from ``/``. Those on the way must belong to this user or to the superuser, and no one
else may replace what lies in them (a sticky ``/tmp`` will do). A symbolic link on the way counts where
this user or the superuser made it. The folder itself, those below it and their files belong to one of
the two as well, and no one else may write to them; a file has one name, and is no link, pipe or device.
What others do to paths afterwards changes nothing: the folder is held open.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
# How names of files begin that are not whole yet.
DRAFT = ".new-"


class UntrustedError(PermissionError):
    """Others could have put there what lies there."""


def _refuse(reason: str, path: str) -> UntrustedError:
    return UntrustedError(errno.EPERM, reason, path)


def _check(facts: os.stat_result, path: str) -> None:
    """What is run, and the folders that hold it."""
    if facts.st_uid and facts.st_uid != os.geteuid():
        raise _refuse("it belongs to another user", path)
    if facts.st_mode & _OTHERS_WRITE and not _only_own_group(facts):
        raise _refuse("other users may write to it", path)


def _only_own_group(facts: os.stat_result) -> bool:
    """Whether only the user may write and a group of the user's own, as many systems give one to each."""
    own = facts.st_gid == os.getegid() == os.geteuid() != 0
    return own and facts.st_mode & _OTHERS_WRITE == stat.S_IWGRP


def _check_on_the_way(facts: os.stat_result, path: str, owners: Sequence[int]) -> None:
    if facts.st_uid not in owners:
        raise _refuse("it belongs to another user", path)
    if facts.st_mode & _OTHERS_WRITE and not facts.st_mode & stat.S_ISVTX and not _only_own_group(facts):
        raise _refuse("other users may write to it", path)


def _enter(folder: int, name: str, create: bool) -> int:
    """Open a folder in a folder; with ``create``, made for this user alone where there is none."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
        os.chmod(name, 0o700, dir_fd=folder)  # whatever the umask takes away
    return os.open(name, _DIRECTORY, dir_fd=folder)


def open_folder(path: str | Path, create: bool = False, alone: bool = False) -> tuple[int, str]:
    """A descriptor of a trusted folder, and its path without links. ``OSError`` where it cannot be had.
    ``alone``: whatever the way there, as it has just been made."""
    if alone:
        here = os.open(path, _DIRECTORY)
        try:
            _check(os.fstat(here), str(path))
        except BaseException:
            os.close(here)
            raise
        return here, str(path)
    waiting = _parts(os.path.join(os.getcwd(), path))
    here, real, links = os.open("/", _DIRECTORY), [""], 0
    try:
        root = os.fstat(here)
        owners = (os.geteuid(), 0, root.st_uid)  # in a container the superuser may go by another number
        while waiting:
            _check_on_the_way(os.fstat(here), "/".join(real) or "/", owners)
            name = waiting.pop()
            text = "/".join([*real, name])
            target = _link(here, name, text, owners)
            if target is None:
                found = _enter(here, name, create)
                real = real[:-1] or [""] if name == ".." else [*real, name]
            else:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), text)
                waiting += _parts(target)
                if not target.startswith("/"):
                    continue
                found, real = os.open("/", _DIRECTORY), [""]
            os.close(here)
            here = found
        _check(os.fstat(here), "/".join(real) or "/")
    except BaseException:
        os.close(here)
        raise
    return here, "/".join(real) or "/"


@contextmanager
def opened(path: str | Path, create: bool = False) -> Iterator[int]:
    """:func:`open_folder` for a short while."""
    here, _ = open_folder(path, create)
    try:
        yield here
    finally:
        os.close(here)


def _parts(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _link(folder: int, name: str, path: str, owners: Sequence[int]) -> str | None:
    """Where a symbolic link leads; ``None`` for anything else."""
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(facts.st_mode):
        return None
    if facts.st_uid not in owners:
        raise _refuse("another user made this link", path)
    return os.readlink(name, dir_fd=folder)


class Folder:
    """A trusted folder, held open. It is opened again where the program closed the descriptor (as daemons do)
    or someone deleted the folder."""

    def __init__(self, path: str | Path, alone: bool = False) -> None:
        self.path = Path(path)
        self.alone = alone
        self.real = str(path)
        self._descriptor = -1
        self._identity = (-1, -1)

    def descriptor(self, create: bool = False) -> int:
        if self._descriptor >= 0:
            with suppress(OSError):
                facts = os.fstat(self._descriptor)
                if (facts.st_dev, facts.st_ino) == self._identity and facts.st_nlink:
                    _check(facts, self.real)
                    return self._descriptor
        found, self.real = open_folder(self.path, create, self.alone)
        facts = os.fstat(found)
        self._identity = (facts.st_dev, facts.st_ino)
        self._descriptor = found
        return found

    def open(self, *names: str, create: bool = False) -> int:
        """A descriptor, to be closed, of the trusted folder ``names[0]/…`` in this one."""
        here, own = self.descriptor(create), False
        for name in names:
            try:
                found = _enter(here, name, create)
            finally:
                if own:
                    os.close(here)
            here, own = found, True
            try:
                _check(os.fstat(here), name)
            except BaseException as error:
                os.close(here)
                if isinstance(error, UntrustedError):
                    error.filename = "/".join((self.real, *names))
                raise
        return here

    @contextmanager
    def below(self, *names: str, create: bool = False) -> Iterator[int]:
        """:meth:`open`, and close."""
        here = self.open(*names, create=create)
        try:
            yield here
        finally:
            os.close(here)


def open_file(folder: int, name: str) -> tuple[int, os.stat_result]:
    """A descriptor of a trusted file, to be closed, and its facts. ``OSError`` where it cannot be had."""
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise _refuse("it is not a regular file", name)
        if facts.st_nlink != 1:
            raise _refuse("it has other names", name)
        _check(facts, name)
    except BaseException:
        os.close(file)
        raise
    return file, facts


def content_of(file: int, size: int) -> bytes:
    """The first ``size`` bytes of an open file."""
    content = os.pread(file, size, 0)
    while len(content) < size and (more := os.pread(file, size - len(content), len(content))):
        content += more
    return content


def read(folder: int, name: str) -> bytes:
    """The bytes of a trusted file."""
    file, facts = open_file(folder, name)
    try:
        return content_of(file, facts.st_size)
    finally:
        os.close(file)


def write(folder: int, name: str, content: bytes) -> None:
    """Write a file that only this user may read; it appears whole or not at all."""
    draft = f"{DRAFT}{secrets.token_hex(8)}"
    file = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        try:
            os.fchmod(file, 0o600)
            left = memoryview(content)
            while left:
                left = left[os.write(file, left) :]
        finally:
            os.close(file)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
