"""``dyncomp cache``: the compiled code on disk."""

from __future__ import annotations

import datetime
from typing import Any

from ..build.cache_files import damage, evict, survey
from ..build.kernel_cache import KernelCache, open_cache
from ..trusted import Folder, read
from ..warm_start.store import FOLDER, damage_of_entry
from ..wording import counted
from .answers import Answer, size_text

_LIBRARY = ".so"


def _opened() -> tuple[KernelCache, Folder]:
    cache = open_cache()
    return cache, Folder(cache.directory)


def info() -> Answer:
    """Where the cache is, what is in it, and how large it may grow."""
    cache, root = _opened()
    files = survey(root)
    size = sum(facts.st_size for *_, facts in files)
    libraries = sum(name.endswith(_LIBRARY) for _, name, _ in files)
    entries = sum(names[0] == FOLDER and "-" not in name for names, name, _ in files)
    found: dict[str, Any] = {
        "directory": str(cache.directory),
        "note": cache.note,
        "libraries": libraries,
        "entries": entries,
        "bytes": size,
        "limit": cache.limit,
        "used_first": min((facts.st_mtime for *_, facts in files), default=None),
        "used_last": max((facts.st_mtime for *_, facts in files), default=None),
    }
    lines = [
        f"{cache.directory}: {libraries} libraries, {entries} captured functions, "
        f"{size_text(size)} of at most {size_text(cache.limit)}"
    ]
    if cache.note:
        lines.append(cache.note)
    if files:
        first, last = (_day(found[key]) for key in ("used_first", "used_last"))
        lines.append(f"last use: {last}; of what was not used for longest: {first}")
    return Answer(found, lines)


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def clear() -> Answer:
    """Delete everything in the cache. Programs that run keep what they have loaded."""
    cache, root = _opened()
    before = len(survey(root))
    deleted = evict(root, 0)
    left = len(survey(root))
    found = {"directory": str(cache.directory), "files": before - left, "bytes": deleted, "left": left}
    lines = [f"{cache.directory}: {counted(before - left, 'file')} deleted, {size_text(deleted)}"]
    if left:
        lines.append(f"in use, or not to be deleted: {counted(left, 'file')}")
    return Answer(found, lines, good=not left)


def verify() -> Answer:
    """Check every library and captured function as they are checked before they are loaded: their checksums,
    and that libraries are whole. A damaged one does no harm: it is made again when it is wanted."""
    cache, root = _opened()
    damaged: dict[str, str] = {}
    count = 0
    for names, name, _ in survey(root):
        is_library, is_entry = name.endswith(_LIBRARY), names[0] == FOLDER
        if not is_library and not is_entry:
            continue
        count += 1
        try:
            with root.below(*names) as folder:
                content = read(folder, name)
            if is_library:
                reason = damage(content, name.removesuffix(_LIBRARY))
            else:
                reason = damage_of_entry(names[-1], content)
        except OSError as error:
            reason = f"it cannot be read: {error}"
        if reason:
            damaged["/".join((*names, name))] = reason
    found = {"directory": str(cache.directory), "files": count, "damaged": damaged}
    lines = [f"{cache.directory}: {count} libraries and captured functions, {len(damaged)} damaged"]
    lines += [f"  {path}: {reason}; it is made again when it is wanted" for path, reason in damaged.items()]
    return Answer(found, lines, good=not damaged)
