"""The compiler for loops that are compiled whole (``scalar_loops``): source text to a function."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from dyncomp.build.kernel_cache import open_cache
from dyncomp.build.library import Library
from dyncomp.build.toolchain import LOOP_FLAGS, find_toolchain
from dyncomp.trusted import opened, write

log = logging.getLogger("dyncomp.inductor")


class Address(int):
    """Where a function lies; its library stays loaded as long as this."""

    library: Library


def build(source: str, symbol: str, dump: str = "") -> Address:
    """The address of a function of one translation unit, from the cache if it is there. ``dump``:
    a directory to write the source to. Raises ``ToolchainError`` where it cannot be compiled."""
    if dump:
        _write(source, symbol, Path(dump))
    library = open_cache().load(source, find_toolchain().with_flags(LOOP_FLAGS))
    address = Address(library.symbol(symbol))
    address.library = library
    return address


def _write(source: str, symbol: str, folder: Path) -> None:
    path = folder / f"loop-{symbol}-{hashlib.sha256(source.encode()).hexdigest()[:8]}.cpp"
    try:
        with opened(folder, create=True) as place:
            write(place, path.name, source.encode())
    except OSError as error:
        log.warning("cannot write %s: %s", path, error)
