"""Compiling and linking a library for C."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...build.cache_place import asked_for, place_of
from ...build.toolchain import FLAGS, Runner, Toolchain, parts_for
from ...dataclass import dataclass
from ...errors import ToolchainError
from ...spans import span
from ...trusted import read, write

_FOLDER = "c_runtime"
# the launcher and the services run on any processor; the products switch to their own instructions
_PLAIN = ("-O2", "-march=x86-64", "-fPIC", "-fvisibility=hidden", "-pthread", "-w")
LAUNCHER_FLAGS = ("-x", "c", "-std=gnu11", *_PLAIN)
RUNTIME_FLAGS = ("-std=gnu++17", *_PLAIN, "-fno-exceptions", "-fno-rtti")
# threads of the pool and a handler of forks may outlive dlclose; only the functions of the header show
LINK_FLAGS = (
    *("-shared", "-pthread", "-static-libstdc++", "-static-libgcc"),
    *("-Wl,-z,nodelete", "-Wl,-z,noexecstack", "-Wl,--exclude-libs,ALL", "-Wl,--no-undefined"),
)
LIBRARIES = ("-lm",)
_ONLY_LINKING = ("-shared", "-nostdlib")
_MESSAGE_LINES = 30


def _words(toolchain: Toolchain) -> tuple[str, ...]:
    """What ``CXX`` has behind the compiler's name (``ccache g++``), which stands before the flags."""
    return toolchain.flags[: toolchain.flags.index(FLAGS[0])]


def kernel_flags(toolchain: Toolchain) -> tuple[str, ...]:
    """The flags of generated code, for an object."""
    flags = toolchain.flags[len(_words(toolchain)) :]
    plain = [flag for flag in flags if flag not in _ONLY_LINKING and not flag.startswith("-Wl,")]
    return (*plain, "-fvisibility=hidden")


@dataclass(frozen=True, eq=False)
class Sources:
    """Files to compile, and the weights that the launcher embeds."""

    launcher: Path
    kernels: Path
    runtime: Path
    embedded: Path | None
    macro: str


def build_library(sources: Sources, library: Path, toolchain: Toolchain) -> None:
    """Raises :class:`ToolchainError` with the compiler's message."""
    with tempfile.TemporaryDirectory(prefix="dyncomp-c-") as folder, span("build", library.name):
        _Build(sources, Path(folder), toolchain).run(library)


class _Build:
    def __init__(self, sources: Sources, folder: Path, toolchain: Toolchain) -> None:
        self.sources = sources
        self.folder = folder
        self.toolchain = toolchain
        self.runner = Runner()

    def run(self, library: Path) -> None:
        sources = self.sources
        compiler = (self.toolchain.compiler, *_words(self.toolchain))
        objects: list[Path] = []
        commands: list[list[str]] = []

        def compile_to(name: str, source: Path, flags: Sequence[str]) -> Path:
            made = self.folder / name
            commands.append([*compiler, *flags, "-c", str(source), "-o", str(made)])
            return made

        weights = []
        if sources.embedded is not None:
            # the assembler reads it by its name, in which it knows escapes
            copy = self.folder / "weights.bin"
            shutil.copyfile(sources.embedded, copy)
            weights = [f"-D{sources.macro}={_c_string(str(copy))}"]
        objects.append(compile_to("launcher.o", sources.launcher, [*weights, *LAUNCHER_FLAGS]))
        flags = kernel_flags(self.toolchain)
        masks = parts_for(sources.kernels.read_text(), len(os.sched_getaffinity(0)))
        for k, mask in enumerate(masks or [None]):
            part = () if mask is None else (f"-DDC_PARTS={mask}ull",)
            objects.append(compile_to(f"kernels.{k}.o", sources.kernels, (*flags, *part)))
        kept = self.kept_runtime()
        runtime = self.folder / "runtime.o"
        if kept is None:
            compile_to("runtime.o", sources.runtime, RUNTIME_FLAGS)
        else:
            runtime.write_bytes(kept)
        self.start(commands)
        if kept is None:
            self.keep_runtime(runtime.read_bytes())
        made = self.folder / "library.so"
        inputs = [str(part) for part in (*objects, runtime)]
        link = [*compiler, *LINK_FLAGS, f"-Wl,-soname,{library.name}", *inputs, "-o", str(made), *LIBRARIES]
        self.start([link])
        # a program may have mapped the file that lies there
        draft = library.with_name(f".{library.name}.new")
        draft.write_bytes(made.read_bytes())
        draft.chmod(0o755)
        draft.replace(library)

    def start(self, commands: list[list[str]]) -> None:
        for command, (status, text) in zip(commands, self.runner.run(commands)):
            if status:
                shown = "\n".join(text.splitlines()[:_MESSAGE_LINES]) or "no message"
                raise ToolchainError(f"{' '.join(command)} failed ({status}):\n{shown}")

    # The products take g++ some seconds, and are the same for all functions.
    def runtime_name(self) -> str:
        parts = (self.sources.runtime.read_text(), self.toolchain.fingerprint, *RUNTIME_FLAGS)
        return f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.o"

    def kept_runtime(self) -> bytes | None:
        place = place_of(*asked_for(os.environ))
        if place.note:
            return None
        with suppress(OSError), place.folder.below(_FOLDER) as folder:
            return read(folder, self.runtime_name())
        return None

    def keep_runtime(self, content: bytes) -> None:
        place = place_of(*asked_for(os.environ))
        if place.note:
            return
        with suppress(OSError), place.folder.below(_FOLDER, create=True) as folder:
            write(folder, self.runtime_name(), content)


def _c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
