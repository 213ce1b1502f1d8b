"""``dyncomp.export``: a function's graph, captured once, in a file of its own."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..aot_autograd.pair import is_single
from ..build.kernel_cache import open_cache
from ..capture.guards.guard import Guard
from ..capture.guards.source import Source
from ..dataclass import dataclass
from ..errors import ExportError
from ..graph.text import print_graph
from ..inductor.launch import LaunchPlan
from ..inductor.render.cpp.unit import render_module
from ..options import Options
from ..warm_start import guards as stored_guards
from ..warm_start.descriptions import NotStorable
from ..warm_start.launches import BY_TYPE, pack_plan
from ..warm_start.owners import owner_name
from ..warm_start.plain import Packer
from .captured import WholeFunction, capture_whole
from .clib.write import CLibrary, WeightsPlace, write_c
from .layout import ALIGNMENT, FORMAT, GRAPH, MANIFEST, WEIGHTS, kernels_of
from .onnx_model import write_onnx
from .processors import LEVELS, builder_of
from .weights import pack_weights

SERIAL_NS = Options.serial_threshold_us * 1e3  # graphs below it run on one thread
_ZIP_HEADER = 30  # bytes before a file's name
_ZIP_EXTRA = 4  # bytes before what an extra field holds
_ZIP_PADDING = b"dc"  # the kind of extra field that is only there to be long


@dataclass(frozen=True, eq=False)
class Exported:
    """A function that was captured to be saved.

    ``manifest`` describes inputs, results and the launch; ``weights`` are the arrays that the function found
    elsewhere than in its arguments, by name; ``kernels`` are shared objects by processor level; ``graph`` is
    the captured graph as text.
    """

    name: str
    manifest: dict[str, Any]
    weights: Mapping[str, Any]
    kernels: Mapping[str, bytes]
    graph: str
    whole: WholeFunction

    def to_onnx(self, path: str | Path) -> None:
        """Write the graph as an ONNX model (opset 18): inputs by the names of the arguments, outputs
        ``output_0``, ``output_1``… in the order of the function's results.

        Values may differ from the function's by rounding, as each runtime computes in its own way. Raises
        :class:`~dyncomp.errors.ExportError` where ONNX has no operator of the same meaning, naming the
        operations, for functions that write to their arguments, and without the package ``onnx``.
        """
        write_onnx(self.whole, Path(path))

    def to_c(
        self,
        directory: str | Path,
        name: str | None = None,
        *,
        level: str = "x86-64-v3",
        weights: WeightsPlace = "auto",
    ) -> CLibrary:
        """Write a library for callers in C: ``NAME.h``, readable sources (``NAME.c``, ``NAME_kernels.cpp``,
        ``NAME_runtime.cpp``) and ``libNAME.so``, which needs the C library alone.

        ``name``: an identifier of C, else made of the function's name. ``level``: the processors that the
        library is compiled for (``x86-64-v2``, ``-v3`` or ``-v4``); on others its functions return an error.
        ``weights``: ``"embed"`` puts them into the library, ``"file"`` into ``NAME.weights.bin``, which
        ``NAME_load`` maps; ``"auto"`` embeds up to 16 MiB. The header says how arrays are given. Returns
        the paths of the files.

        Raises :class:`~dyncomp.errors.ExportError`, before anything is written, where the function calls
        routines of Python's libraries, naming them and the program's lines, ``ValueError`` for unknown
        levels and names, and :class:`~dyncomp.errors.ToolchainError` where the compiler fails.
        """
        return write_c(self.whole, Path(directory), name, level, weights)

    def save(self, path: str | Path) -> None:
        """Write the archive: a zip file that :func:`dyncomp.load` reads."""
        Path(path).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The archive. Nothing is compressed, and weights are aligned: they are used where they lie."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            if self.weights:
                _write_aligned(archive, WEIGHTS, pack_weights(self.weights))
            for level, content in self.kernels.items():
                archive.writestr(kernels_of(level), content)
            archive.writestr(GRAPH, self.graph)
            archive.writestr(MANIFEST, json.dumps(self.manifest, separators=(",", ":")))
        return out.getvalue()

    def __repr__(self) -> str:
        inputs = ", ".join(self.manifest["inputs"])
        return f"<exported {self.name}({inputs}), {len(self.weights)} weights, for {', '.join(self.kernels)}>"


def _write_aligned(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file whose content begins at a multiple of 64 bytes."""
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    start = archive.fp.tell() + _ZIP_HEADER + len(name) + _ZIP_EXTRA
    padding = -start % ALIGNMENT
    info.extra = _ZIP_PADDING + padding.to_bytes(2, "little") + bytes(padding)
    archive.writestr(info, content)


def export(
    f: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: bool | Mapping[str, Any] | None = None,
    processors: Sequence[str] = LEVELS,
) -> Exported:
    """Capture ``f(*args, **kwargs)`` as one graph that runs without a compiler and without ``f``.

        dyncomp.export(model, (x,), dynamic={"x": 0}).save("model.dcp")
        model = dyncomp.load("model.dcp")

    Arrays and numbers among the arguments stay arguments; those that ``f`` finds elsewhere (a model's
    parameters, globals) are saved with their values, everything else is fixed as it is now. Sizes are fixed
    as well unless ``dynamic`` frees them, which is said as for :func:`dyncomp.compile`. ``f`` is called once.
    PyTorch functions are exported without gradients. ``processors``: the levels of x86-64 that code is
    generated for; a file runs on the best one that the processor has. An exported graph does not warn of
    floating-point errors.

    Raises :class:`~dyncomp.errors.ExportError` for functions that one graph alone cannot replace, with the
    reason, :class:`~dyncomp.errors.GraphBreakError` where the graph would break, and ``ValueError`` for
    unknown processors.
    """
    unknown = [level for level in processors if level not in LEVELS]
    if unknown or not processors:
        raise ValueError(f"processors: {', '.join(unknown) or 'none'}; known are {', '.join(LEVELS)}")
    return _Archive(capture_whole(f, args, dict(kwargs or {}), dynamic)).exported(processors)


class _Archive:
    """Puts the parts of an archive together."""

    def __init__(self, whole: WholeFunction) -> None:
        self.whole = whole
        self.name = whole.name
        self.record = whole.record
        self.signature = whole.signature
        self.packer = Packer({**stored_guards.BY_TYPE, **BY_TYPE})
        self.weights: dict[str, Any] = {}

    def exported(self, processors: Sequence[str]) -> Exported:
        compiled = self.record.compiled
        plan = getattr(getattr(compiled, "artifact", None), "plan", None)
        graph = self.record.graph
        if not isinstance(plan, LaunchPlan) or graph is None:
            raise ExportError(f"{self.name}: sizes that depend on the data, or arrays on a GPU")
        try:
            self._refuse_writes(plan)
            launch = pack_plan(
                self.packer,
                replace(plan, on_status=None),
                compiled.owner,
                compiled.heard,
                compiled.num_threads,
            )
            manifest = self._manifest(launch)
        except NotStorable as error:
            raise ExportError(f"{self.name} holds {error}") from error
        kernels = self._kernels(processors)
        manifest["kernels"] = {level: hashlib.sha256(code).hexdigest() for level, code in kernels.items()}
        return Exported(self.name, manifest, self.weights, kernels, print_graph(graph), self.whole)

    def _refuse_writes(self, plan: LaunchPlan) -> None:
        for source, slot in zip(self.signature.inputs, plan.inputs):
            if slot.writable and not self.whole.is_given(source):
                raise ExportError(f"{self.name} writes to {source.expr()}, which is not an argument")

    def _manifest(self, launch: list[Any]) -> dict[str, Any]:
        given = [source for source in self.signature.inputs if self.whole.is_given(source)]
        guards = self._guards()
        program = stored_guards.pack_program(self.packer, guards, given)
        takes = [
            None if self.whole.is_given(source) else self._weight(source) for source in self.signature.inputs
        ]
        return {
            "format": FORMAT,
            "name": self.name,
            "inputs": [source.expr() for source in given],
            "parameters": self._parameters(),
            "first": self.whole.first,
            "of": "numpy" if self.record.compiled.owner is None else owner_name(self.record.compiled.owner),
            "launch": self.packer.row(launch),
            "guards": program,
            "expected": [str(guard) for guard in guards],
            "takes": takes,
            "result": self._result(self.signature.result),
            "single": is_single(self.record.compiled.graph_after),
            "rows": self.packer.rows,
        }

    def _weight(self, source: Source) -> str:
        name = source.expr().removeprefix("self.") or "value"
        value = self.whole.read(source)
        if not hasattr(value, "shape"):
            raise ExportError(f"{source.expr()} is a number that the graph reads: make it an argument")
        self.weights[name] = value
        return name

    def _guards(self) -> list[Guard]:
        """Those of what is given, so far as another process can check them."""
        found = []
        for guard in self.whole.guards_of_arguments():
            packer = Packer({**stored_guards.BY_TYPE, **BY_TYPE})
            try:
                stored_guards.pack_program(packer, [guard])
            except NotStorable:
                continue
            if all(map(_is_array_library, packer.modules)):
                found.append(guard)
        return found

    def _parameters(self) -> list[list[Any]]:
        found = []
        for parameter in self.whole.parameters():
            row: list[Any] = [parameter.name, int(parameter.kind)]
            if parameter.default is not inspect.Parameter.empty:
                with contextlib.suppress(NotStorable):  # which has to be given
                    row.append(self.packer.value(parameter.default))
            found.append(row)
        return found

    def _result(self, tree: list[Any]) -> list[Any]:
        kind, *parts = tree
        if kind in ("output", "input"):
            return tree
        if kind == "constant":
            return [kind, self.packer.value(parts[0])]
        if kind == "mapping":
            cls, *pairs = parts
            name = "" if cls is dict else f"{cls.__module__}:{cls.__qualname__}"
            return [kind, name, *[[self.packer.value(key), self._result(item)] for key, item in pairs]]
        return [kind, *map(self._result, parts)]

    def _kernels(self, processors: Sequence[str]) -> dict[str, bytes]:
        artifact = self.record.compiled.artifact
        if not artifact.source:
            return {}
        cache, made = open_cache(), {}
        for level in processors:
            toolchain, vector_calls = builder_of(level)
            source = render_module(artifact.module, SERIAL_NS, vector_calls, artifact.form.knobs)
            made[level] = cache.load(source, toolchain).path.read_bytes()
        return made


def _is_array_library(module: str) -> bool:
    return module.partition(".")[0] in ("numpy", "torch", "builtins", "collections")
