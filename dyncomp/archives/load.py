"""``dyncomp.load``: run an exported graph."""

from __future__ import annotations

import hashlib
import inspect
import json
import mmap
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..aot_autograd.pair import giving_several
from ..build.library import Library
from ..collector import few_collections
from ..errors import ExportError
from ..warm_start import guards as stored_guards
from ..warm_start.descriptions import Stale, find
from ..warm_start.launches import MAKERS, launched
from ..warm_start.plain import Unpacker
from .captured import in_code_order
from .layout import FORMAT, MANIFEST, WEIGHTS, kernels_of
from .processors import best_of
from .weights import import_torch, unpack_weights


class Loaded:
    """An exported function: call it as the original. Raises ``TypeError`` for arguments that it was not
    captured for, naming what was expected."""

    def __init__(self, data: dict[str, Any], weights: dict[str, Any], library: Library | None) -> None:
        unpacker = Unpacker(data["rows"], {**stored_guards.MAKERS, **MAKERS})
        self.__name__ = data["name"].rpartition(".")[2]
        self.__signature__ = _signature(unpacker, data["parameters"])
        self._first = (None,) * data["first"]
        self._expected = data["expected"]
        self._program = stored_guards.unpack_program(unpacker, data["guards"], self._expected)
        row = unpacker.rows[data["launch"][0]]
        self._call = giving_several(launched(unpacker, row, library), data["single"])
        self._takes = [None if name is None else weights[name] for name in data["takes"]]
        self._given = [k for k, name in enumerate(data["takes"]) if name is None]
        self._result = _maker(unpacker, data["result"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._run((*self._first, *in_code_order(self.__signature__, bound.arguments)))

    def _run(self, values: tuple[Any, ...]) -> Any:
        given = self._program.read(values, {}, {}, None)
        if given is None:
            failed = self._program.first_failure(values, {}, {}, None)
            what = self._expected[failed] if failed is not None and failed >= 0 else "other arguments"
            raise TypeError(f"{self.__name__} was exported for other arguments: expected {what}")
        taken = list(self._takes)
        for place, value in zip(self._given, given, strict=True):
            taken[place] = value
        return self._result(self._call(*taken), taken)

    def __repr__(self) -> str:
        return f"<loaded {self.__name__}{self.__signature__}>"


def load(path: str | Path) -> Loaded:
    """Read what :meth:`Exported.save` wrote. The file holds machine code: load only files that you trust.

    Raises :class:`~dyncomp.errors.ExportError` for files that are damaged, of another format, or without code
    for this processor.
    """
    with few_collections():
        return _loaded(path)


def _loaded(path: str | Path) -> Loaded:
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read(MANIFEST))
            if data.get("format") != FORMAT:
                raise ExportError(f"{path}: of format {data.get('format')}, not {FORMAT}")
            library = _library(archive, data, str(path))
            weights = _weights(archive, data["of"] == "torch", path)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ExportError(
            f"{path} is no archive that dyncomp.export wrote, or is damaged: {error}"
        ) from error
    try:
        return Loaded(data, weights, library)
    except (Stale, KeyError, IndexError, TypeError, ValueError) as error:
        raise ExportError(f"{path} cannot be loaded here: {error}") from error


def _weights(archive: zipfile.ZipFile, of_torch: bool, path: str | Path) -> dict[str, Any]:
    """The weights, over a private mapping of the file: what is not read is not loaded."""
    if of_torch:
        import_torch()
    if WEIGHTS not in archive.namelist():
        return {}
    info = archive.getinfo(WEIGHTS)
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    header = mapped[info.header_offset : info.header_offset + 30]
    start = info.header_offset + 30 + sum(int.from_bytes(header[k : k + 2], "little") for k in (26, 28))
    return unpack_weights(memoryview(mapped)[start : start + info.file_size], of_torch)


def _library(archive: zipfile.ZipFile, data: dict[str, Any], path: str) -> Library | None:
    digests = data["kernels"]
    if not digests:
        return None
    level = best_of(digests)
    if level is None:
        raise ExportError(f"{path} has code for {', '.join(digests)}, none of which this processor is")
    code = archive.read(kernels_of(level))
    if hashlib.sha256(code).hexdigest() != digests[level]:
        raise ExportError(f"{path}: the code for {level} is damaged")
    file = os.memfd_create("dyncomp")
    try:
        os.write(file, code)
        return Library(f"{path}/{level}.so", file)
    finally:
        os.close(file)


def _signature(unpacker: Unpacker, rows: list[list[Any]]) -> inspect.Signature:
    found = []
    for name, kind, *default in rows:
        value = unpacker.value(default[0]) if default else inspect.Parameter.empty
        found.append(inspect.Parameter(name, inspect._ParameterKind(kind), default=value))
    return inspect.Signature(found)


Maker = Callable[[Any, list[Any]], Any]


def _maker(unpacker: Unpacker, tree: list[Any]) -> Maker:
    """What makes the function's result of the graph's results and inputs."""
    kind, *parts = tree
    if kind == "output":
        number = parts[0]
        return lambda outputs, inputs: outputs[number]
    if kind == "input":
        number = parts[0]
        return lambda outputs, inputs: inputs[number]
    if kind == "constant":
        constant = unpacker.value(parts[0])
        return lambda outputs, inputs: constant
    if kind == "mapping":
        name, *pairs = parts
        cls = _class_named(name)
        made = [(unpacker.value(key), _maker(unpacker, item)) for key, item in pairs]
        return lambda outputs, inputs: cls({key: item(outputs, inputs) for key, item in made})
    if kind not in ("tuple", "list"):
        raise Stale(f"a result of the unknown kind {kind!r}")
    items = [_maker(unpacker, item) for item in parts]
    sequence: Any = tuple if kind == "tuple" else list
    return lambda outputs, inputs: sequence([item(outputs, inputs) for item in items])


def _class_named(name: str) -> Any:
    """The class of a mapping where its module is imported already; else a dict will do."""
    module, _, path = name.partition(":")
    try:
        return find(module, path) if name else dict
    except Stale:
        return dict
