"""What a compiler is, for keys of the cache: what it says of its version and target, not its file's size.

A compiler proper is asked once; the answer is kept beside the kernels for as long as its file is the same.
A wrapper (a script, ``ccache``) may run another compiler tomorrow, so each process asks it again.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from ..trusted import Folder, read, write

FOLDER = "compilers"
_SECONDS = 20.0
_MOST_SCRIPT = 1 << 16
_PROPER = re.compile(r"(^|-)(g\+\+|gcc|clang\+\+|clang|c\+\+)(-[\d.]+)?$")


def identity(compiler: str, words: Sequence[str], cache: Folder | None) -> str:
    """Text that differs for compilers that may make different code. ``words``: arguments that come first;
    ``cache``: where answers are kept."""
    real = os.path.realpath(compiler)
    facts = os.stat(real)
    script = _script(real)
    age = f"{facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns}"
    place = "\0".join((compiler, real, *words))
    if script or _PROPER.search(os.path.basename(real)) is None:
        cache = None
    name = f"{hashlib.sha256(f'{place} {age}'.encode()).hexdigest()}.txt"
    says = ""
    if cache is not None:
        with suppress(OSError, UnicodeDecodeError), cache.below(FOLDER) as folder:
            says = read(folder, name).decode()
    if not says:
        version = _answer([compiler, *words, "--version"])
        target = version and _answer([compiler, *words, "-dumpmachine"])  # what hangs is asked once
        # one that does not answer is known by its file alone
        says = f"{version}\n{target}" if target else f"silent {age}"
        if cache is not None and target:
            with suppress(OSError), cache.below(FOLDER, create=True) as folder:
                write(folder, name, says.encode())
    return f"{place}\0{script}\0{says}"


def _script(path: str) -> str:
    """The text of a script as a digest; empty for other programs."""
    try:
        with open(path, "rb") as file:
            head = file.read(2)
            return hashlib.sha256(file.read(_MOST_SCRIPT)).hexdigest() if head == b"#!" else ""
    except OSError:
        return ""


def _answer(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.decode(errors="replace").strip()
