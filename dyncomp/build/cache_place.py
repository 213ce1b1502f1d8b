"""Where compiled code is kept: in a directory that others cannot write to, else in a private one."""

from __future__ import annotations

import functools
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path

from ..dataclass import dataclass
from ..errors import ToolchainError
from ..trusted import Folder, UntrustedError
from .cache_files import FORMAT, reclaim

log = logging.getLogger("dyncomp.codecache")


@dataclass(frozen=True, eq=False)
class Place:
    """``note``: why ``folder`` is a private one, if it is. ``older``: what is there is used, but nothing is
    written."""

    folder: Folder
    note: str = ""
    older: Path | None = None


def asked_for(environ: Mapping[str, str]) -> tuple[str, bool]:
    """The directory that the user names, if any, and whether nothing is to be kept."""
    disabled = environ.get("DYNCOMP_FORCE_DISABLE_CACHES", "") not in ("", "0")
    return environ.get("DYNCOMP_CACHE_DIR", ""), disabled


@functools.lru_cache(maxsize=8)
def place_of(directory: str, disabled: bool) -> Place:
    """The place for what :func:`asked_for` found."""
    if disabled:
        return Place(private_folder(), "caches are disabled")
    wanted = Path(os.path.abspath(directory)) if directory else _user_directory()
    folder = Folder(wanted)
    try:
        _check_usable(folder)
    except UntrustedError as error:
        older, reason = None, str(error)
    except (OSError, ValueError) as error:
        older, reason = wanted, str(error)
    else:
        return Place(folder)
    note = f"cache directory {wanted} is not used: {reason}"
    log.warning("%s; compiled code goes to a temporary directory", note)
    return Place(private_folder(), note, older)


def _user_directory() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("dyncomp", appauthor=False)) / "kernels"


def _check_usable(folder: Folder) -> None:
    """Raises ``UntrustedError`` where code that lies in ``folder`` must not be run, another ``OSError`` where
    none can be kept there. Creates it, and deletes what killed processes were building there."""
    descriptor = folder.descriptor(create=True)
    if os.statvfs(descriptor).f_flag & os.ST_NOEXEC:
        raise UntrustedError("no code can be run from there")
    if os.fstat(descriptor).st_uid != os.geteuid():
        raise PermissionError("it belongs to another user")
    with folder.below(FORMAT, create=True) as top, tempfile.TemporaryFile(dir=f"{folder.real}/{FORMAT}"):
        reclaim(top)


def private_folder() -> Folder:
    """A folder of this process alone, deleted when it ends (not when a fork of it does)."""
    try:
        path = Path(tempfile.mkdtemp(prefix="dyncomp-"))
    except OSError as error:
        raise ToolchainError(f"no directory to compile in: {error}") from error
    owner = os.getpid()

    def delete() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    weakref.finalize(place_of, delete)
    return Folder(path, alone=True)
