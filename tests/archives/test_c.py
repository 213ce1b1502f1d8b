"""Libraries for C: real programs, exported, called by programs in C that know nothing of Python."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import ExportError

from .c_programs import CC, HELPERS, Program, build_and_run, check_alone, in_plus_plus

pytestmark = [
    pytest.mark.skipif(CC is None, reason="no C compiler"),
    pytest.mark.filterwarnings("ignore"),
]
RANDOM = np.random.default_rng(7)


def smooth(x, y):
    z = np.exp(-x * x) + np.sin(y) * np.sqrt(np.abs(x))
    return z, z > 0.5, np.floor(z * 9).astype(np.int32), z.astype(np.float16)


def stencil(u, alpha):
    v = u.copy()
    v[1:-1, 1:-1] += alpha * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return v, np.abs(v - u).max()


def attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (scores / scores.sum(axis=-1, keepdims=True)) @ v


def statistics(x):
    return x.mean(axis=0), x.std(), x.argmax(axis=1), (x > 0).all(axis=0), x.cumsum(axis=1), x.T[::-1]


def step(state, velocity, dt):
    velocity *= 1 - 0.1 * dt
    state += velocity * dt
    return state, (velocity**2).sum()


def look_up(table, index):
    return table[index] * 2, table.reshape(-1)[:3]


def spectrum(x):
    z = x * np.exp(2j * x)
    return z, np.abs(z), z @ z.T.conj(), x.astype(np.complex64)


def bits(a, b):
    return (a ^ b) << np.uint16(1), a.astype(np.int8) // np.int8(3), np.where(a > b, a, b), a.reshape(3, -1)


def nested(batch):
    return {"sum": batch["p"] + batch["q"][0], "none": None, "pair": (3, batch["q"][0].T)}


def array(*shape: int, dtype: str = "float64") -> Any:
    return RANDOM.standard_normal(shape).astype(dtype)


def library_of(f: Callable[..., Any], args: tuple[Any, ...], folder: Path, **how: Any) -> Any:
    options = {k: how.pop(k) for k in ("level", "weights", "name") if k in how}
    return dyncomp.export(f, args, **how).to_c(folder, **options)


def leaves(value: Any, name: str = "result") -> dict[str, Any]:
    """Results by the names of the header."""
    if isinstance(value, dict):
        return {k: a for key, item in value.items() for k, a in leaves(item, f"{name}_{key}").items()}
    if isinstance(value, (tuple, list)):
        return {k: a for n, item in enumerate(value) for k, a in leaves(item, f"{name}_{n}").items()}
    return {name: np.asarray(value)} if hasattr(value, "shape") else {}


@pytest.mark.parametrize(
    ("f", "example", "actual", "dynamic", "tolerance"),
    [
        (smooth, (array(8), array(8)), (array(1000), array(1000)), {"x": 0, "y": 0}, 1e-12),
        (stencil, (array(8, 8), 0.2), (array(33, 47), 0.2), {"u": {0: "rows", 1: "columns"}}, 1e-12),
        (
            attention,
            (array(6, 8, dtype="f4"), array(5, 8, dtype="f4"), array(5, 4, dtype="f4")),
            (array(130, 8, dtype="f4"), array(70, 8, dtype="f4"), array(70, 4, dtype="f4")),
            {"q": 0, "k": {0: "n"}, "v": {0: "n"}},
            1e-5,
        ),
        (statistics, (array(5, 6),), (array(40, 30),), True, 1e-12),
        (spectrum, (array(4, 4),), (array(9, 4),), {"x": 0}, 1e-5),
        (
            bits,
            (np.arange(6, dtype=np.uint16), np.arange(6, dtype=np.uint16)),
            (np.arange(6, dtype=np.uint16) * 9000, np.arange(6, dtype=np.uint16) * 77),
            None,
            0,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions(f: Any, example: Any, actual: Any, dynamic: Any, tolerance: float, tmp_path: Path) -> None:
    made = library_of(f, example, tmp_path, dynamic=dynamic)
    check_alone(made)
    in_plus_plus(made)
    names = f.__code__.co_varnames
    program = Program(made, tolerance)
    program.fill({name: a for name, a in zip(names, actual) if isinstance(a, np.ndarray)})
    program.call(leaves(f(*actual)))
    program.run()


def small_integers(a, x, w):
    """Of bytes alone, and of float32 by bytes."""
    wide = w.astype(np.int32)
    return a.astype(np.int32) @ wide, x @ w.astype(np.float32)


@pytest.mark.parametrize("rows", [1, 40])
def test_products_of_bytes(rows: int, tmp_path: Path) -> None:
    w = np.arange(400 * 300, dtype=np.int64).astype(np.int8).reshape(400, 300)
    a = np.arange(rows * 400).astype(np.uint8).reshape(rows, 400)
    x = np.rint(array(rows, 400, dtype="f4") * 4)  # sums are exact
    program = Program(library_of(small_integers, (a, x, w), tmp_path), 1e-4)
    program.fill({"a": a, "x": x, "w": w})
    program.call(leaves(small_integers(a, x, w)), times=5)
    program.run()


def test_what_is_written_to(tmp_path: Path) -> None:
    """Arguments that a function changes change in the caller's memory; a result that is one is a copy."""
    made = library_of(
        step, (array(4), array(4), 0.5), tmp_path, dynamic={"state": {0: "n"}, "velocity": {0: "n"}}
    )
    state, velocity = array(50), array(50)
    program = Program(made, 1e-12)
    program.fill({"state": state, "velocity": velocity})
    _, energy = step(state, velocity, 0.5)
    program.call(
        {"result_0": state, "result_1": np.asarray(energy)}, {"state": state, "velocity": velocity}, 1
    )
    program.run()
    text = made.header.read_text()
    assert "const double* state" not in text and "double* state;" in text
    assert "dt is fixed: 0.5" in text and "state: float64 [n], is written to" in text


def test_numbers(tmp_path: Path) -> None:
    def scaled(x, k):
        return x * k, np.zeros(k) + k

    made = library_of(scaled, (array(3), 4), tmp_path, dynamic={"k": True}, name="by_number")
    x = array(3)
    program = Program(made, 1e-15)
    program.fill({"x": x, "k": 7})
    program.call(leaves(scaled(x, 7)))
    program.run()


def test_arguments_that_are_not_given(tmp_path: Path) -> None:
    """Those that are fixed, not read, or given twice are not in the header's structures, but noted."""

    def string(x, y, unused, mode, a):
        return x * a + y if mode == "sum" else x

    x = array(5)
    made = library_of(string, (x, x, array(2), "sum", 2.5), tmp_path, dynamic={"a": True})
    assert made.name == "f_string"  # string.h is C's
    text = made.header.read_text()
    assert "mode is fixed: 'sum'" in text and "is the same array as" in text and "unused is not used" in text
    program = Program(made, 1e-15)
    program.fill({"x": x, "a": 7.5})
    program.call({"result": x * 7.5 + x})
    program.run()


def test_nested_arguments(tmp_path: Path) -> None:
    batch = {"p": array(3, 3), "q": [array(3, 3)]}
    made = library_of(nested, (batch,), tmp_path)
    program = Program(made, 1e-15)
    program.fill({"batch_p": batch["p"], "batch_q_0": batch["q"][0]})
    program.call(leaves(nested(batch)))
    program.run()
    assert "result_pair_0 is always 3" in made.header.read_text()


TABLE = array(64, 32, dtype="f4")


def weighted(x):
    return np.tanh(x @ TABLE), TABLE[1:3, ::2]


@pytest.mark.parametrize("weights", ["embed", "file"])
def test_weights(weights: str, tmp_path: Path) -> None:
    """Arrays that the function finds elsewhere are in the library, or in a file that it maps."""
    made = library_of(weighted, (array(3, 64, dtype="f4"),), tmp_path, dynamic={"x": 0}, weights=weights)
    x = array(40, 64, dtype="f4")
    program = Program(made, 1e-5)
    program.fill({"x": x})
    if weights == "embed":
        assert made.weights is None
        (tmp_path / "weighted.weights.bin").unlink()
    else:
        damaged = tmp_path / "damaged.bin"
        content = bytearray(made.weights.read_bytes())
        content[30] ^= 1  # of the digest
        damaged.write_bytes(content)
        program.lines += [
            "out.result_0 = malloc(4 * 40 * 32); out.result_0_size = 40 * 32;",
            "out.result_1 = malloc(4 * 32); out.result_1_size = 32;",
            "CHECK(weighted_run(&in, &out) == WEIGHTED_NO_WEIGHTS);",
            'CHECK(weighted_load("/no/such/file") == WEIGHTED_NO_WEIGHTS);',
            f'CHECK(weighted_load("{damaged}") == WEIGHTED_NO_WEIGHTS);',
            'CHECK(strstr(weighted_details(), "other weights"));',
            f'CHECK(weighted_load("{made.weights}") == WEIGHTED_OK);',
            f'CHECK(weighted_load("{made.weights}") == WEIGHTED_OK);',
        ]
    program.call(leaves(weighted(x)), times=5)
    program.run()
    check_alone(made)


def test_bad_calls(tmp_path: Path) -> None:
    """Codes, and no undefined behaviour: the program runs under the compiler's sanitizers."""

    def f(table, index, y):
        y += table[index]
        return y * 2, table

    example = (array(4, 3), np.array([0, 1, 2]), array(3, 3))
    made = library_of(f, example, tmp_path, dynamic={"table": 0, "index": {0: "n"}, "y": {0: "n"}})
    source = f"""
#include "f.h"
{HELPERS}
static double table[12], y[9], result[9], other[12];
static const int64_t good[3] = {{0, -1, 3}}, bad[3] = {{0, 1, 4}};
static f_inputs in;
static f_outputs out;

static void reset(void) {{
  in.table = table;
  in.table_shape[0] = 4;
  in.table_shape[1] = 3;
  in.index = good;
  in.index_shape[0] = 3;
  in.y = y;
  in.y_shape[0] = 3;
  in.y_shape[1] = 3;
  out.result_0 = result;
  out.result_0_size = 9;
  out.result_1 = other;
  out.result_1_size = 12;
}}

#define GIVES(code, change, words) do {{ \\
    reset(); \\
    change; \\
    CHECK(f_run(&in, &out) == (code)); \\
    if (!strstr(f_details(), words)) die(f_details()); \\
    CHECK(y[0] == 1); \\
  }} while (0)

int main(void) {{
  y[0] = 1;
  GIVES(F_BAD_SHAPE, in.table_shape[1] = 4, "table: dimension 1 is 4, not 3");
  GIVES(F_BAD_SHAPE, in.index_shape[0] = 2, "sizes do not satisfy");
  GIVES(F_BAD_SHAPE, in.table_shape[0] = -4, "dimension 0 is -4");
  GIVES(F_BAD_SHAPE, in.table_shape[0] = INT64_MAX, "dimension 0 is 9223372036854775807");
  GIVES(F_NO_ROOM, in.table_shape[0] = (int64_t)1 << 29, "result_1 has room for 12 elements");
  GIVES(F_NO_ROOM, in.y_shape[0] = in.index_shape[0] = (int64_t)1 << 20, "result_0 has room");
  GIVES(F_BAD_SHAPE, in.y_shape[0] = in.index_shape[0] = ((int64_t)1 << 40) + 1, "dimension 0");
  GIVES(F_BAD_POINTER, in.table = NULL, "table is NULL");
  GIVES(F_BAD_POINTER, in.table = (const double*)(const void*)((const char*)table + 4), "not aligned");
  GIVES(F_BAD_POINTER, out.result_0 = NULL, "result_0 is NULL");
  GIVES(F_NO_ROOM, out.result_0_size = 8, "has room for 8 elements, not 9");
  GIVES(F_OVERLAP, out.result_0 = y, "overlaps");
  GIVES(F_OVERLAP, out.result_0 = table + 3, "overlaps");
  GIVES(F_OVERLAP, in.y = table, "overlaps");
  GIVES(F_BAD_INDEX, in.index = bad, "index 4 is out of bounds for axis with size 4");
  CHECK(f_run(NULL, &out) == F_BAD_POINTER);
  CHECK(f_run(&in, NULL) == F_BAD_POINTER);
  CHECK(f_shapes(&in, NULL) == F_BAD_POINTER);
  CHECK(strcmp(f_message(F_NO_ROOM), "an output has no room for the result") == 0);
  CHECK(f_message(-1) && f_message(1000));
  reset();
  out.result_1 = NULL; /* a copy of an input, which is not wanted */
  CHECK(f_run(&in, &out) == F_OK);
  CHECK(result[0] == 2 && out.result_0_shape[0] == 3);
  f_release();
  f_set_num_threads(3);
  CHECK(f_run(&in, &out) == F_OK);
  return 0;
}}
"""
    build_and_run(made, source)
    build_and_run(made, source, ["-fsanitize=undefined", "-fno-sanitize-recover"])


def wide(x, w):
    y = np.tanh(x @ w)
    return (y @ w.T).sum(axis=1), np.exp(y - y.max())


def test_threads(tmp_path: Path) -> None:
    """Calls at the same time, each with threads of its own or alone, give the same bits."""
    x, w = array(400, 128, dtype="f4"), array(128, 96, dtype="f4")
    made = library_of(wide, (x, w), tmp_path, dynamic={"x": 0})
    helpers = """
#include <pthread.h>
static wide_inputs in;
static float sums[4][400], waves[4][400 * 96];
static void* work(void* raw) {
  const int me = (int)(long)raw;
  wide_outputs out;
  int k;
  for (k = 0; k < 25; ++k) {
    out.result_0 = sums[me];
    out.result_0_size = 400;
    out.result_1 = waves[me];
    out.result_1_size = 400 * 96;
    memset(waves[me], 0, sizeof waves[me]);
    CHECK(wide_run(&in, &out) == WIDE_OK);
    CHECK(memcmp(sums[me], sums[3], sizeof sums[3]) == 0);
    CHECK(memcmp(waves[me], waves[3], sizeof waves[3]) == 0);
  }
  return NULL;
}
"""
    program = Program(made)
    program.lines += [
        "pthread_t threads[3];",
        "int k, count;",
        "wide_outputs out;",
        f"in.x = {program.file(x)}; in.x_shape[0] = 400; in.x_shape[1] = 128;",
        f"in.w = {program.file(w)}; in.w_shape[0] = 128; in.w_shape[1] = 96;",
        "out.result_0 = sums[3]; out.result_0_size = 400;",
        "out.result_1 = waves[3]; out.result_1_size = 400 * 96;",
        "CHECK(wide_run(&in, &out) == WIDE_OK);",
    ]
    for found, wanted in leaves(wide(x, w)).items():
        at = "sums[3]" if found == "result_0" else "waves[3]"
        program.lines.append(
            f"compare(\"{found}\", 'f', 4, {at}, {program.file(wanted)}, {wanted.size}, 1e-4);"
        )
    program.lines += [
        "for (count = 1; count <= 3; ++count) {",
        "  wide_set_num_threads(count);",
        "  for (k = 0; k < 3; ++k) CHECK(pthread_create(&threads[k], NULL, work, (void*)(long)k) == 0);",
        "  for (k = 0; k < 3; ++k) pthread_join(threads[k], NULL);",
        "}",
    ]
    program.run(["-D_POSIX_C_SOURCE=200809L"], helpers)


def test_loading_and_unloading(tmp_path: Path) -> None:
    """A library that is opened, run by its threads, closed and opened again."""
    x, y = array(100000), array(100000)
    made = library_of(smooth, (x, y), tmp_path)
    program = Program(made)
    program.fill({"x": x, "y": y})
    program.lines += [
        "int k; void* library; int (*run)(const smooth_inputs*, smooth_outputs*); void (*set)(int);",
        "out.result_0 = malloc(800000); out.result_1 = malloc(100000);",
        "out.result_2 = malloc(400000); out.result_3 = malloc(200000);",
        "out.result_0_size = out.result_1_size = out.result_2_size = out.result_3_size = 100000;",
        "for (k = 0; k < 20; ++k) {",
        f'  library = dlopen("{made.library}", RTLD_NOW | RTLD_LOCAL);',
        "  CHECK(library);",
        '  *(void**)&run = dlsym(library, "smooth_run");',
        '  *(void**)&set = dlsym(library, "smooth_set_num_threads");',
        "  set(k % 3 + 1);",
        "  CHECK(run(&in, &out) == SMOOTH_OK);",
        "  CHECK(dlclose(library) == 0);",
        "}",
        "code = 0; (void)code;",
        f"compare(\"x\", 'f', 8, out.result_0, {program.file(smooth(x, y)[0])}, 100000, 1e-12);",
    ]
    program.run(["-D_POSIX_C_SOURCE=200809L", "-Wl,--as-needed", "-ldl"], "#include <dlfcn.h>\n")


def solved(a, b):
    c = a + 1
    return np.linalg.solve(c, b)


@pytest.mark.parametrize("f, args, names", [(solved, (array(4, 4), array(4)), "solve"), (np.sort, (), "")])
def test_what_needs_python(f: Any, args: Any, names: str, tmp_path: Path) -> None:
    """Routines of libraries are named, with the program's line, before anything is written."""
    folder = tmp_path / "out"
    if not args:

        def f(x):
            return np.sort(x * 2)

        args, names = (array(9),), "sort"
    with pytest.raises(ExportError, match=rf"{names} .*test_c\.py:\d+"):
        dyncomp.export(f, args).to_c(folder)
    assert not folder.exists()


def test_bad_wishes(tmp_path: Path) -> None:
    exported = dyncomp.export(bits, (np.arange(6, dtype=np.uint16),) * 2)
    wishes = [{"name": name} for name in ("int", "math", "c", "a b", "", "_x")]
    for wish in ({"level": "i386"}, *wishes, {"weights": "here"}):
        with pytest.raises(ValueError, match=next(iter(wish))):
            exported.to_c(tmp_path / "out", **wish)
    x = np.asfortranarray(array(3, 4))
    with pytest.raises(ExportError, match="ascontiguousarray"):
        dyncomp.export(lambda x: x * 2, (x,), dynamic={"x": 0}).to_c(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_layouts(tmp_path: Path) -> None:
    """An argument of fixed sizes may lie in Fortran's order, as the header says."""

    def turned(x):
        return x * 2 + 1

    x = np.asfortranarray(array(3, 4))
    made = library_of(turned, (x,), tmp_path)
    assert "not C-contiguous: strides (1, 3) elements" in made.header.read_text()
    program = Program(made, 0)
    program.fill({"x": x.T})
    program.lines.append("in.x_shape[0] = 3; in.x_shape[1] = 4;")
    program.call({"result": turned(x)})
    program.run()


def test_sources_build_the_library_again(tmp_path: Path) -> None:
    """The commands in the header are those that make it, from the files that lie there."""

    def scaled(x):
        return x * TABLE[0] + x.sum()

    odd = library_of(scaled, (array(3, 32),), tmp_path / 'a "folder\'s" name', weights="embed")
    assert ctypes.CDLL(str(odd.library)).scaled_run(None, None) == 2  # a null pointer
    made = library_of(scaled, (array(3, 32),), tmp_path, weights="embed")
    before = made.library.stat().st_size
    made.library.unlink()
    for line in made.header.read_text().splitlines():
        if line.startswith(" *   g++"):
            subprocess.run(line[5:], shell=True, check=True, cwd=tmp_path)
    assert abs(made.library.stat().st_size - before) < before / 10
    x = array(3, 32)
    program = Program(made, 1e-10)
    program.fill({"x": x})
    program.call(leaves(scaled(x)))
    program.run()


# -- models ----------------------------------------------------------------------------------


def run_model(
    model: Any, example: Any, actual: Any, folder: Path, tolerance: float = 1e-4, **how: Any
) -> Any:
    torch = sys.modules["torch"]
    made = library_of(model.eval(), (example,), folder, **how)
    check_alone(made)
    with torch.no_grad():
        wanted = model(actual)
    (name,) = model.forward.__code__.co_varnames[1:2]
    program = Program(made, 1e-4)
    program.fill({name: actual.numpy()})
    program.call({"result": wanted.numpy()}, times=4)
    program.lines.append(f"{made.name}_set_num_threads(3);")
    program.call({"result": wanted.numpy()}, times=4)
    program.run()
    return made


def test_mlp(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(40, 64)
            self.second = nn.Linear(64, 10)

        def forward(self, x):
            return torch.log_softmax(self.second(torch.relu(self.first(x))), dim=-1)

    torch.manual_seed(0)
    made = run_model(
        Net(), torch.randn(4, 40), torch.randn(33, 40), tmp_path, dynamic={"x": {0: ("batch", 1, 512)}}
    )
    assert made.name == "Net"
    assert "x: float32 [batch, 40]" in made.header.read_text()


def test_convnet(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class ConvNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            )
            self.head = nn.Linear(32, 10)

        def forward(self, images):
            return self.head(self.body(images))

    torch.manual_seed(0)
    images = torch.randn(2, 3, 16, 16)
    run_model(ConvNet(), images, torch.randn(2, 3, 16, 16), tmp_path)


def test_transformer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, tokens):
            return self.layers(tokens)

    torch.manual_seed(0)
    run_model(Encoder(), torch.randn(2, 10, 32), torch.randn(3, 17, 32), tmp_path, dynamic={"tokens": (0, 1)})


@pytest.mark.slow
def test_under_sanitizers(tmp_path: Path) -> None:
    """Launcher, kernels, pool and products, all compiled with sanitizers of addresses and of behaviour."""
    made = library_of(weighted, (array(3, 64, dtype="f4"),), tmp_path, dynamic={"x": 0}, weights="embed")
    sanitizers = "-fsanitize=address,undefined -fno-sanitize-recover"
    for line in made.header.read_text().splitlines():
        if line.startswith(" *   g++"):
            command = line[5:].replace("-Wl,--no-undefined", "").replace("-static-libgcc", "")
            command = command.replace("g++ ", f"g++ {sanitizers} ").replace("-static-libstdc++", "")
            subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    for rows in (2, 3, 40, 301):
        x = array(rows, 64, dtype="f4")
        program = Program(made, 1e-5)
        program.fill({"x": x})
        program.lines.append("weighted_set_num_threads(2);")
        program.call(leaves(weighted(x)), times=5)
        program.lines += ["free(out.result_0); free(out.result_1); free((void*)in.x); weighted_release();"]
        program.run(["-fsanitize=address,undefined", "-fno-sanitize-recover"])


@pytest.mark.slow
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels(level: str, tmp_path: Path) -> None:
    """In float64: the products of the default tests are of float32."""
    from dyncomp.archives.processors import levels_here

    x = array(40, 64)
    made = library_of(weighted, (array(3, 64),), tmp_path, dynamic={"x": 0}, level=level)
    program = Program(made, 1e-10)
    program.fill({"x": x})
    if level in levels_here():
        program.call(leaves(weighted(x)))
    else:
        program.lines.append("(void)code; CHECK(weighted_run(&in, &out) == WEIGHTED_BAD_PROCESSOR);")
    program.run()


def test_the_example_of_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "production.md").read_text().partition("\n## C\n")[2]
    python, c = (re.search(rf"```{kind}\n(.*?)```", page, re.S)[1] for kind in ("python", "c"))
    monkeypatch.chdir(tmp_path)
    # a function has to have a source
    (tmp_path / "example.py").write_text(python)
    subprocess.run([sys.executable, "example.py"], check=True)
    (tmp_path / "main.c").write_text(c)
    shown = re.search(r"```\n(cc .*?) && \./main\n(.*?)\n```", page)
    flags = "-std=c99 -Wall -Wextra -Werror -pedantic"
    subprocess.run(shown[1].replace("cc ", f"{CC} {flags} "), shell=True, check=True)
    done = subprocess.run(["./main"], capture_output=True, text=True, check=True, env={})
    assert done.stdout.strip() == shown[2]
