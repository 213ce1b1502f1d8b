"""Building small kernels for the runtime's tests."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from dyncomp.build.library import Library
from dyncomp.build.toolchain import find_toolchain
from dyncomp.inductor.launch import abi_declarations

RUN = 'extern "C" i64 {name}(void** b, const i64* s, const Runtime* rt, i64* error)'
_DIRECTORY = Path(tempfile.gettempdir()) / f"dyncomp-test-kernels-{os.getuid()}"


def library(*functions: str) -> Library:
    """Compile ``functions`` (C++ text after the ABI declarations); kept between test runs by content."""
    source = abi_declarations() + "\n".join(functions)
    toolchain = find_toolchain()
    key = hashlib.sha256((source + toolchain.fingerprint).encode()).hexdigest()[:24]
    _DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    built = _DIRECTORY / f"{key}.so"
    if not built.exists():
        draft = _DIRECTORY / f"{key}.{os.getpid()}.cpp"
        draft.write_text(source)
        partial = draft.with_suffix(".so")
        toolchain.compile(draft, partial)
        os.replace(partial, built)
        draft.unlink()
    return Library(built)


def run(body: str, name: str = "run") -> str:
    """Text of the kernel ``name`` with statements ``body``; ``b`` are the buffers, ``s`` the symbols."""
    return f"{RUN.format(name=name)} {{ {body} return 0; }}\n"
