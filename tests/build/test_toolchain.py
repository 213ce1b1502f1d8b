"""Finding the compiler, its errors, and what its flags promise."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
from pathlib import Path

import pytest

from dyncomp.build import compilers, toolchain
from dyncomp.build.compilers import identity
from dyncomp.build.library import Library
from dyncomp.build.toolchain import find_toolchain
from dyncomp.errors import ToolchainError
from dyncomp.trusted import Folder


def build(tmp_path, text):
    source = tmp_path / "unit.cpp"
    source.write_text(text)
    output = tmp_path / "unit.so"
    find_toolchain().compile(source, output)
    return output


def test_version_and_fingerprint():
    found = find_toolchain()
    assert os.access(found.compiler, os.X_OK)
    assert any(character.isdigit() for character in found.version())
    assert len(found.fingerprint) == 64
    assert find_toolchain() is found


def test_missing_compiler(tmp_path):
    with pytest.raises(ToolchainError, match="no C\\+\\+ compiler was found"):
        find_toolchain({"PATH": str(tmp_path)})
    with pytest.raises(ToolchainError, match="DYNCOMP_CXX='/nowhere/g\\+\\+'"):
        find_toolchain({"DYNCOMP_CXX": "/nowhere/g++"})
    with pytest.raises(ToolchainError, match="CXX='absent'"):
        find_toolchain({"CXX": "absent"})


def test_chosen_compiler(tmp_path):
    real = shutil.which("g++")
    if real is None:
        pytest.skip("no g++")
    own = tmp_path / "my-compiler"
    own.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    own.chmod(0o755)
    chosen = find_toolchain({"DYNCOMP_CXX": str(own), "CXX": "absent"})
    assert chosen.compiler == str(own)
    assert chosen.fingerprint != find_toolchain().fingerprint
    with_flag = find_toolchain({"CXX": f"{own} -DX=1"})
    assert with_flag.flags[0] == "-DX=1"
    assert with_flag.fingerprint != chosen.fingerprint


def wrapper(path: Path, target: str) -> Path:
    path.write_text(f'#!/bin/sh\nexec {target} "$@"\n')
    path.chmod(0o755)
    return path


def pretender(path: Path, version: str) -> Path:
    """What says that it is a compiler of some version."""
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_a_wrapper_is_what_it_runs(tmp_path):
    """Its own file stays as it is."""
    target = pretender(tmp_path / "target", "12.2.0")
    own = wrapper(tmp_path / "g++", str(target))
    before = identity(str(own), (), None)
    assert identity(str(own), (), None) == before
    pretender(target, "12.2.1")
    assert identity(str(own), (), None) != before
    pretender(target, "12.2.0")
    assert identity(str(own), (), None) == before
    wrapper(own, f"{target}  ")  # the text may add flags
    assert identity(str(own), (), None) != before
    pretender(target, "12.2.1")
    fast = tmp_path / "ccache"
    fast.write_text(f'#!/bin/sh\nshift\nexec {target} "$@"\n')
    fast.chmod(0o755)
    first = identity(str(fast), ("g++",), None)
    pretender(target, "12.2.2")
    assert identity(str(fast), ("g++",), None) != first


def test_a_compiler_is_asked_once(tmp_path, monkeypatch):
    real = shutil.which("g++")
    if real is None:
        pytest.skip("no g++")
    asked = []
    answer = compilers._answer
    monkeypatch.setattr(compilers, "_answer", lambda command: (asked.append(command), answer(command))[1])
    cache = Folder(tmp_path / "cache")
    first = identity(real, (), cache)
    assert len(asked) == 2 and "Free Software" in first
    assert identity(real, (), Folder(tmp_path / "cache")) == first
    assert len(asked) == 2
    copy = tmp_path / "g++"
    for age in (1, 2):
        shutil.copy(real, copy)
        os.utime(copy, (age, age))
        found = identity(str(copy), (), cache)
        assert len(asked) == 2 + 2 * age  # it is another file
        assert found == identity(str(copy), (), cache)
    (kept, *_) = (tmp_path / "cache" / "compilers").iterdir()
    kept.chmod(0o666)
    for name in (real, str(copy)):
        identity(name, (), cache)
    assert len(asked) >= 6


def test_no_process_is_started_for_a_known_compiler(tmp_path, monkeypatch):
    environ = {"PATH": os.environ["PATH"]}
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    toolchain._find.cache_clear()
    before = find_toolchain(environ).fingerprint
    toolchain._find.cache_clear()
    monkeypatch.setattr(compilers.subprocess, "run", None)
    assert find_toolchain(environ).fingerprint == before
    toolchain._find.cache_clear()


def test_a_compiler_that_says_nothing_is_known_by_its_file(tmp_path):
    own = pretender(tmp_path / "g++", "")
    before = identity(str(own), (), None)
    os.utime(own, (1, 1))
    assert identity(str(own), (), None) != before
    own.write_text("#!/bin/sh\nexit 3\n")
    assert "silent" in identity(str(own), (), None)


def test_compiler_failure_names_the_source(tmp_path):
    with pytest.raises(ToolchainError, match=r"unit\.cpp(.|\n)*undeclared_thing"):
        build(tmp_path, "int f() { return undeclared_thing; }\n")


def test_crashing_and_lying_compilers(tmp_path):
    for script, message in (("kill -9 $$", "status -9"), ("exit 0", "status 0")):
        own = tmp_path / "compiler"
        own.write_text(f"#!/bin/sh\n{script}\n")
        own.chmod(0o755)
        chosen = find_toolchain({"DYNCOMP_CXX": str(own)})
        with pytest.raises(ToolchainError, match=message):
            chosen.compile(tmp_path / "x.cpp", tmp_path / "absent.so")


def test_compiler_that_vanished(tmp_path):
    own = tmp_path / "gone"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    chosen = find_toolchain({"DYNCOMP_CXX": str(own)})
    own.unlink()
    with pytest.raises(ToolchainError, match="cannot be started"):
        chosen.compile(tmp_path / "x.cpp", tmp_path / "absent.so")


def test_math_and_compiler_helpers_resolve(tmp_path):
    text = """
extern "C" double pow(double, double) noexcept;
extern "C" __attribute__((simd("notinbranch"))) double exp(double) noexcept;
extern "C" double power(double x, double y) { return pow(x, y); }
extern "C" void exps(double* x, long n) {
#pragma omp simd
  for (long i = 0; i < n; ++i) x[i] = exp(x[i]);
}
extern "C" void product(double _Complex* z) { z[0] *= z[1]; }
extern "C" long wide(long a, long b) { return (long)((__int128)a * b / 1000000007); }
struct Big { double x[600]; };
extern "C" void copy(Big* a, const Big* b) { *a = *b; }
"""
    path = build(tmp_path, text)
    library = Library(path)
    double = ctypes.c_double
    assert ctypes.CFUNCTYPE(double, double, double)(library.symbol("power"))(2, 10) == 1024
    values = (double * 16)(*[i / 4 for i in range(16)])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long)(library.symbol("exps"))(values, 16)
    assert all(math.isclose(v, math.exp(i / 4), rel_tol=1e-14) for i, v in enumerate(values))
    z = (double * 4)(1, 2, 3, 4)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.symbol("product"))(z)
    assert list(z)[:2] == [-5, 10]
    wide = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long)(library.symbol("wide"))
    assert wide(2**60, 2**30) == ctypes.c_long(2**90 // 1000000007).value


def test_floats_keep_their_meaning(tmp_path):
    text = """
extern "C" double fused(double a, double b, double c) { return a * b + c; }
extern "C" int not_equal(double a) { return a != a; }
extern "C" double plus_zero(double a) { return a + 0.0; }
extern "C" double sum(const double* x, long n) {
  double s = 0;
  for (long i = 0; i < n; ++i) s += x[i];
  return s;
}
"""
    library = Library(build(tmp_path, text))
    double = ctypes.c_double
    fused = ctypes.CFUNCTYPE(double, double, double, double)(library.symbol("fused"))
    x = 1 + 2.0**-30
    assert fused(x, x, -1.0) == x * x - 1.0
    assert ctypes.CFUNCTYPE(ctypes.c_int, double)(library.symbol("not_equal"))(math.nan) == 1
    zero = ctypes.CFUNCTYPE(double, double)(library.symbol("plus_zero"))(-0.0)
    assert math.copysign(1, zero) == 1
    values = (double * 9)(1e16, 1.0, 1.0, -1e16, 1.0, 1.0, 1.0, 1.0, 1.0)
    total = ctypes.CFUNCTYPE(double, ctypes.c_void_p, ctypes.c_long)(library.symbol("sum"))
    assert total(values, 9) == 5.0


def test_unloadable_library(tmp_path):
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not an ELF file")
    with pytest.raises(OSError, match="broken"):
        Library(broken)
    path = build(
        tmp_path, 'extern "C" int absent_function(); extern "C" int f() { return absent_function(); }'
    )
    with pytest.raises(OSError, match="absent_function"):
        Library(path)
