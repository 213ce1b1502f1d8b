"""``Exported.to_c``: the files of a library for C."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ...dataclass import dataclass
from ...errors import ExportError
from ...inductor.render.cpp.unit import render_module
from ...options import Options
from ..captured import WholeFunction
from ..processors import LEVELS, toolchain_of
from .build import (
    LAUNCHER_FLAGS,
    LIBRARIES,
    LINK_FLAGS,
    RUNTIME_FLAGS,
    Sources,
    build_library,
    kernel_flags,
)
from .header import header_text, macro_name
from .interface import RESERVED, interface_of
from .launcher import Launcher, entry_name
from .sources import runtime_source
from .weights import weights_of

# headers and libraries that programs would find in place of C's
_STANDARD = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
wchar wctype c m dl rt pthread util crypt resolv gcc gcc_s"""
STANDARD = frozenset(_STANDARD.split())
EMBED_BELOW = 16 << 20  # bytes of weights that are part of the library where nothing else is asked for
WeightsPlace = Literal["auto", "embed", "file"]


@dataclass(frozen=True)
class CLibrary:
    """The files that :meth:`Exported.to_c` wrote. ``sources``: the launcher, the kernels, the runtime;
    ``weights``: the file that ``NAME_load`` reads, or ``None`` where there are none or they are in the
    library."""

    name: str
    header: Path
    sources: tuple[Path, ...]
    library: Path
    weights: Path | None


def write_c(
    whole: WholeFunction, directory: Path, name: str | None, level: str, weights: WeightsPlace
) -> CLibrary:
    """Raises ``ValueError`` for a name that is no identifier, an unknown level or place of weights."""
    if level not in LEVELS:
        raise ValueError(f"level: {level!r}; known are {', '.join(LEVELS)}")
    if weights not in ("auto", "embed", "file"):
        raise ValueError(f"weights: {weights!r}; known are 'auto', 'embed' and 'file'")
    name = _checked(name) if name is not None else _name_for(whole.name)
    made = interface_of(name, whole)
    artifact = whole.record.compiled.artifact
    module = replace(
        made.module,
        segments=tuple(replace(s, symbol=entry_name(name, s.symbol)) for s in made.module.segments),
        sizes=(),  # the launcher works them out, and looks at them
    )
    kernels = render_module(module, Options.serial_threshold_us * 1e3, False, artifact.form.knobs)
    runtime = runtime_source(kernels, level)
    packed = weights_of(made)
    embeds = packed is not None and (
        weights == "embed" or (weights == "auto" and len(packed.content) <= EMBED_BELOW)
    )
    launcher = Launcher(made, level, packed, embeds).text()
    toolchain = toolchain_of(level)
    flags = {
        f"{name}.c": LAUNCHER_FLAGS,
        f"{name}_kernels.cpp": kernel_flags(toolchain),
        f"{name}_runtime.cpp": RUNTIME_FLAGS,
    }
    commands = [f"g++ {' '.join(each)} -c {file}" for file, each in flags.items()]
    objects = " ".join(f"{Path(file).stem}.o" for file in flags)
    commands.append(f"g++ {' '.join(LINK_FLAGS)} {objects} -o lib{name}.so {' '.join(LIBRARIES)}")
    header = header_text(made, level, packed is not None and not embeds, commands)

    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / file for file in flags]
    weights_file = directory / f"{name}.weights.bin"
    if packed is not None:
        weights_file.write_bytes(packed.content)
    for path, text in zip((directory / f"{name}.h", *paths), (header, launcher, kernels, runtime)):
        path.write_text(text)
    library = directory / f"lib{name}.so"
    embedded, macro = (weights_file if embeds else None), macro_name(name)
    sources = Sources(launcher=paths[0], kernels=paths[1], runtime=paths[2], embedded=embedded, macro=macro)
    build_library(sources, library, toolchain)
    return CLibrary(
        name,
        directory / f"{name}.h",
        tuple(paths),
        library,
        weights_file if packed is not None and not embeds else None,
    )


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in RESERVED:
        raise ValueError(f"name: {name!r} is no identifier of C that begins with a letter")
    if name in STANDARD:
        raise ValueError(f"name: {name!r} is a header or a library of C's own")
    return name


def _name_for(called: str) -> str:
    """An identifier for a function: ``Model.forward`` is ``Model``'s."""
    parts = [part for part in called.split(".") if part not in ("<locals>", "forward", "__call__")]
    word = re.sub(r"\W+", "_", parts[-1] if parts else "", flags=re.ASCII).strip("_")
    taken = RESERVED | STANDARD
    if not word or not word[0].isalpha() or word in taken or keyword.iskeyword(word):
        word = f"f_{word}".rstrip("_")
    return word


__all__ = ["CLibrary", "ExportError", "WeightsPlace", "write_c"]
