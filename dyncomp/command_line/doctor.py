"""``dyncomp doctor``: what dyncomp needs, what is there, and how to mend what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable, Iterator

import numpy as np

from .. import __version__, api
from ..build.kernel_cache import open_cache
from ..build.toolchain import find_toolchain
from ..dataclass import dataclass
from ..errors import ToolchainError
from ..runtime import _launch
from .answers import Answer, size_text

_COMPILER = "install g++ 10 or later (Debian, Ubuntu: `apt install g++`), or name one in CXX"


@dataclass(frozen=True)
class Finding:
    """``state``: "ok", "missing" (something optional) or "broken". ``remedy``: what to do."""

    name: str
    state: str
    what: str
    remedy: str = ""


def examine() -> Answer:
    """Look at everything that matters for what dyncomp compiles here."""
    findings = [finding for look in _LOOKS for finding in look()]
    width = max(len(finding.name) for finding in findings)
    marks = {"ok": " ", "missing": "-", "broken": "!"}
    lines = []
    for finding in findings:
        lines.append(f"{marks[finding.state]} {finding.name:{width}}  {finding.what}")
        if finding.remedy:
            lines.append(f"  {'':{width}}  to mend it: {finding.remedy}")
    broken = [finding.name for finding in findings if finding.state == "broken"]
    lines.append(f"broken: {', '.join(broken)}" if broken else "All that dyncomp needs is there.")
    facts = [{"name": f.name, "state": f.state, "what": f.what, "remedy": f.remedy} for f in findings]
    return Answer({"findings": facts, "good": not broken}, lines, good=not broken)


def _versions() -> Iterator[Finding]:
    yield Finding("dyncomp", "ok", __version__)
    yield Finding("Python", "ok", f"{platform.python_implementation()} {platform.python_version()}")
    yield Finding("NumPy", "ok", np.__version__)


def _compiler() -> Iterator[Finding]:
    try:
        toolchain = find_toolchain()
        yield Finding("C++ compiler", "ok", f"{toolchain.compiler}: {toolchain.version()}")
        yield Finding("flags", "ok", " ".join(toolchain.flags))
    except ToolchainError as error:
        yield Finding("C++ compiler", "broken", f"{error}", _COMPILER)


def _program() -> Iterator[Finding]:
    """Compile something, which says more than versions."""

    def doctor(x: np.ndarray) -> np.ndarray:
        return np.exp(-x) * x + 1.0

    x = np.linspace(0.0, 1.0, 1000)
    compiled = api.compile(doctor, backend="inductor")
    try:
        good = bool(np.allclose(compiled(x), doctor(x), rtol=1e-12)) and api.stats()["graphs"] > 0
    except Exception as error:  # noqa: BLE001 - it is what is asked
        yield Finding("a compiled program", "broken", f"{type(error).__name__}: {error}", "report it")
        return
    if good:
        yield Finding("a compiled program", "ok", "gives what NumPy gives")
    else:
        yield Finding("a compiled program", "broken", "did not run, or gave something else", "see the above")


def _threads() -> Iterator[Finding]:
    yield Finding(
        "threads",
        "ok",
        f"{_launch.num_threads()} (environment, affinity and cgroup allow {_launch.default_num_threads()})",
    )


def _cache() -> Iterator[Finding]:
    cache = open_cache()
    if cache.note:
        remedy = "name a directory of your own in DYNCOMP_CACHE_DIR"
        yield Finding("cache", "missing", f"{cache.note}; every process compiles anew", remedy)
    else:
        yield Finding("cache", "ok", f"{cache.directory}, at most {size_text(cache.limit)}")


def _torch() -> Iterator[Finding]:
    version = _version_of("torch")
    if version is None:
        yield Finding("PyTorch", "missing", "not installed; NumPy programs do not need it")
        return
    yield Finding("PyTorch", "ok", version)
    from ..frontends.torch.library import torch

    if not torch.cuda.is_available():
        yield Finding("GPU", "missing", "PyTorch sees none; programs run on the CPU")
        return
    yield Finding("GPU", "ok", torch.cuda.get_device_name())
    triton = _version_of("triton")
    if triton is None:
        yield Finding(
            "Triton", "broken", "not installed: nothing is compiled for the GPU", "pip install triton"
        )
    else:
        yield Finding("Triton", "ok", triton)


def _version_of(package: str) -> str | None:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


_LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _versions,
    _compiler,
    _program,
    _threads,
    _cache,
    _torch,
)
