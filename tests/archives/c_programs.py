"""Programs in C that call exported libraries: written, compiled against the header, run as processes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyncomp.archives.clib.write import CLibrary

CC = shutil.which("gcc") or shutil.which("cc")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")

# reads files of raw elements, compares with others of the same kind
HELPERS = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(2);
}

static void* read_file(const char* path, size_t bytes) {
  FILE* file = fopen(path, "rb");
  void* data = malloc(bytes ? bytes : 1);
  if (!file || !data || fread(data, 1, bytes, file) != bytes) die(path);
  fclose(file);
  return data;
}

static double half(unsigned bits) {
  const int exponent = (int)(bits >> 10 & 31);
  const double fraction = bits & 1023;
  double value = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                 : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return bits & 0x8000 ? -value : value;
}

static double brain(unsigned bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* kind: NumPy's letter for real elements, 'h' for halves, 'B' for brain floats */
static double element(char kind, int size, const char* data, size_t k) {
  const char* at = data + k * (size_t)size;
#define AS(T) do { T value; memcpy(&value, at, sizeof value); return (double)value; } while (0)
  if (kind == 'h' || kind == 'B') {
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return kind == 'h' ? half(bits) : brain(bits);
  }
  if (kind == 'f' && size == 4) AS(float);
  if (kind == 'f') AS(double);
  if (kind == 'i' && size == 1) AS(int8_t);
  if (kind == 'i' && size == 2) AS(int16_t);
  if (kind == 'i' && size == 4) AS(int32_t);
  if (kind == 'i') AS(int64_t);
  if (size == 1) AS(uint8_t);
  if (size == 2) AS(uint16_t);
  if (size == 4) AS(uint32_t);
  AS(uint64_t);
#undef AS
}

static void compare(const char* name, char kind, int size, const void* found, const void* wanted,
                    size_t count, double tolerance) {
  size_t k;
  for (k = 0; k < count; ++k) {
    const double a = element(kind, size, (const char*)found, k);
    const double b = element(kind, size, (const char*)wanted, k);
    if ((a != a && b != b) || a == b) continue;
    if (fabs(a - b) <= tolerance * (1 + fabs(b))) continue;
    fprintf(stderr, "%s[%lu]: %.17g, not %.17g\n", name, (unsigned long)k, a, b);
    exit(1);
  }
}

static void check(int holds, int line, const char* test) {
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, test);
  exit(1);
}
#define CHECK(test) check(!!(test), __LINE__, #test)
"""


def kind_of(dtype: np.dtype[Any]) -> tuple[str, int, int]:
    """Letter, bytes of a real element, real elements of one."""
    if dtype.kind == "c":
        return "f", dtype.itemsize // 2, 2
    if dtype.name == "bfloat16":
        return "B", 2, 1
    return ("h" if dtype == np.float16 else dtype.kind.replace("b", "u")), dtype.itemsize, 1


# what wanted results are read into is not freed
ENVIRONMENT = {"LD_BIND_NOW": "1", "ASAN_OPTIONS": "detect_leaks=0"}


class Program:
    """A program that calls ``NAME_run`` and compares. Inputs and outputs are by the names of the header;
    ``after``: what arrays that are written to hold then."""

    def __init__(self, library: CLibrary, tolerance: float = 1e-5) -> None:
        self.library = library
        self.folder = library.header.parent
        self.tolerance = tolerance
        self.lines: list[str] = []
        self.files = 0

    def file(self, array: np.ndarray[Any, Any]) -> str:
        path = self.folder / f"data{self.files}.bin"
        self.files += 1
        path.write_bytes(np.ascontiguousarray(array).tobytes())
        return f'read_file("{path}", {array.nbytes})'

    def fill(self, inputs: Mapping[str, Any]) -> None:
        name = self.library.name
        self.lines += [f"{name}_inputs in;", f"{name}_outputs out;", "int code;"]
        self.lines += ["memset(&in, 0, sizeof in);", "memset(&out, 0, sizeof out);"]
        for given, value in inputs.items():
            if isinstance(value, np.ndarray):
                self.lines.append(f"in.{given} = {self.file(value)};")
                self.lines += [f"in.{given}_shape[{k}] = {n};" for k, n in enumerate(value.shape)]
            else:
                self.lines.append(f"in.{given} = {float(value)!r};")

    def call(
        self,
        outputs: Mapping[str, np.ndarray[Any, Any]],
        after: Mapping[str, Any] | None = None,
        times: int = 2,
    ) -> None:
        name = self.library.name
        self.lines += [f"code = {name}_shapes(&in, &out);", f"if (code) die({name}_details());"]
        for given, array in outputs.items():
            for k, n in enumerate(array.shape):
                self.lines.append(f"CHECK(out.{given}_shape[{k}] == {n});")
            self.lines += [
                f"out.{given} = malloc({max(array.nbytes, 1)});",
                f"out.{given}_size = {array.size};",
            ]
        self.lines.append(f"for (code = 0; code < {times}; ++code) {{ int failed = {name}_run(&in, &out);")
        self.lines.append(f"if (failed) die({name}_details()); }}")
        checks = [(f"out.{given}", array) for given, array in outputs.items()]
        checks += [(f"in.{given}", array) for given, array in (after or {}).items()]
        for found, array in checks:
            kind, size, parts = kind_of(array.dtype)
            both, count = f"{found}, {self.file(array)}", array.size * parts
            self.lines.append(f"compare(\"{found}\", '{kind}', {size}, {both}, {count}, {self.tolerance});")

    def run(self, extra: Sequence[str] = (), helpers: str = "") -> None:
        body = "\n  ".join(self.lines)
        source = (
            f'#include "{self.library.name}.h"\n{HELPERS}\n{helpers}\n'
            f"int main(void) {{\n  {body}\n  return 0;\n}}\n"
        )
        build_and_run(self.library, source, extra)


def build_and_run(library: CLibrary, source: str, extra: Sequence[str] = ()) -> str:
    """Compile a program against the header, and run it in an environment without Python; its output."""
    folder = library.header.parent
    path, program = folder / "program.c", folder / "program"
    path.write_text(source)
    assert CC is not None
    # programs use not all helpers
    command = [CC, *FLAGS, "-Wno-unused-function", *extra, str(path), f"-I{folder}", f"-L{folder}"]
    command += [f"-l{library.name}", f"-Wl,-rpath,{folder}", "-o", str(program), "-lm", "-lpthread"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, env=ENVIRONMENT, timeout=120, cwd="/"
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    return done.stdout


def check_alone(library: CLibrary) -> None:
    """The library needs nothing but the C library, and shows nothing but its functions."""
    needs = subprocess.run(["ldd", str(library.library)], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].rpartition("/")[2] for line in needs.splitlines()}
    known = re.compile(r"linux-vdso\.so|lib(c|m|pthread|dl|gcc_s)\.so|ld-linux")
    assert all(known.match(name) for name in names), names
    symbols = subprocess.run(
        ["nm", "-D", str(library.library)], capture_output=True, text=True, check=True
    ).stdout
    assert not re.search(r"\b_?Py[A-Z_]|openblas|cblas", symbols), symbols
    shown = {line.split()[-1] for line in symbols.splitlines() if line.split()[-2] not in "Uwv"}
    assert shown <= {
        f"{library.name}_{what}"
        for what in ("run", "shapes", "message", "details", "set_num_threads", "release", "load")
    }, shown


def in_plus_plus(library: CLibrary) -> None:
    """The header is valid C++."""
    compiler = shutil.which("g++")
    assert compiler is not None
    made = subprocess.run(
        [
            compiler,
            "-std=c++11",
            "-Wall",
            "-Werror",
            "-pedantic",
            "-x",
            "c++",
            "-fsyntax-only",
            str(library.header),
        ],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr


__all__ = ["CC", "HELPERS", "Program", "build_and_run", "check_alone", "in_plus_plus"]
if not os.path.exists("/proc") or not sys.platform.startswith("linux"):
    CC = None
