"""``options={"dump": directory}``: every form of a graph on its way to code, as files to read and to edit.

Each graph gets a folder named after the user's function, with a digest that is the same from run to run:
``00-captured.py``, then the graph after each pass, ``…-kernels.cpp``, ``…-loops.py`` (loop IR) and
``…-schedule.txt`` (launches, buffers, products). A file ``edited.cpp`` in that folder is built instead of the
generated code: copy, edit and run the program again. On a GPU both are ``.py``. ``run.py`` does without the
program: ``python run.py`` builds the kernels as they are in the folder, calls them with inputs as seen at
capture (``inputs.npz``), compares with the graph's reference and times them
(:mod:`dyncomp.report.rerun`). What lies there is read, and run, where nobody else can have written it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..device import CPU
from ..frontends.base import ArrayOwner
from ..graph.ir import Graph
from ..graph.text import print_graph
from ..options import Options
from ..trusted import opened, read, write

log = logging.getLogger("dyncomp.pipeline")

_MOST_NAME = 60
# Options that change the generated code or its plan.
_CHOSEN = ("serial_threshold_us", "keep_packed", "parallel_branches", "num_threads")


class Dump:
    """Writes the forms of one graph; does nothing where no directory is given."""

    def __init__(self, directory: str, graph: Graph) -> None:
        self.folder: Path | None = None
        self.suffix = "cpp" if graph.device == CPU else "py"
        self._count = 0
        self._last_graph = self._kernels = ""
        if directory:
            self.folder = Path(directory) / _folder_name(graph)
            self.graph("captured", graph)

    def graph(self, stage: str, graph: Graph) -> None:
        """A graph as Python."""
        if self.folder is not None:
            self._last_graph = self._write(f"{stage}.py", print_graph(graph))

    def artifact(
        self, artifact: Any, options: Options, owner: ArrayOwner | None, examples: Sequence[Any]
    ) -> None:
        """What the inductor made (a ``CompiledArtifact``) with ``options``, and how to run it by hand on
        ``examples``."""
        if self.folder is None:
            return
        from ..inductor.loops.loop_text import kernel_text

        self._write("loops.py", "\n\n".join(kernel_text(kernel) for kernel in artifact.kernels))
        self._write("schedule.txt", artifact.describe())
        if self._kernels:
            self._script(artifact.graph, options, owner, examples)

    def _script(
        self, graph: Graph, options: Options, owner: ArrayOwner | None, examples: Sequence[Any]
    ) -> None:
        from .rerun import SCRIPT, kept_inputs

        assert self.folder is not None
        library = "" if owner is None else owner.type.__module__.partition(".")[0]
        chosen = {name: getattr(options, name) for name in _CHOSEN}
        text = SCRIPT.format(
            graph=self._last_graph,
            kernels=self._kernels,
            suffix=f".{self.suffix}",
            library=library,
            options=json.dumps(chosen),
        )
        self._write_file("run.py", text.encode())
        inputs = kept_inputs(graph, examples, owner)
        if inputs:
            self._write_file("inputs.npz", inputs)

    def source(self, text: str) -> str:
        """Write generated code down; what to build: the user's edited form where there is one."""
        if self.folder is None:
            return text
        self._kernels = self._write(f"kernels.{self.suffix}", text)
        edited = self.folder / f"edited.{self.suffix}"
        try:
            with opened(self.folder) as folder:
                found = read(folder, edited.name).decode()
        except FileNotFoundError:
            return text
        except (OSError, UnicodeDecodeError) as error:
            log.warning("%s is not used: %s", edited, error)
            return text
        log.warning("%s is built instead of the generated code", edited)
        return found

    def _write(self, name: str, text: str) -> str:
        """Write a file, numbered; its name."""
        assert self.folder is not None
        name = f"{self._count:02}-{name}"
        self._count += 1
        self._write_file(name, (text.rstrip("\n") + "\n").encode(errors="replace"))
        return name

    def _write_file(self, name: str, content: bytes) -> None:
        assert self.folder is not None
        try:
            with opened(self.folder, create=True) as folder:
                write(folder, name, content)
        except (OSError, ValueError) as error:
            log.warning("cannot write %s: %s", self.folder / name, error)


def _folder_name(graph: Graph) -> str:
    name = re.sub(r"\W+", "_", graph.name).strip("_") or "graph"
    digest = hashlib.sha256(print_graph(graph, locations=False).encode()).hexdigest()
    return f"{name[:_MOST_NAME]}-{digest[:8]}"
