"""What is edited between two processes is seen: no entry on disk serves where another would be captured."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .zygote import Zygote

PROGRAM = """
import random
import numpy as np
import dyncomp
import helper
from helper import Base, scaled

FACTOR = 2.0
TABLE = {"a": 1.5, "b": (2, 3)}

class Model(Base):
    rate = 0.5
    def __init__(self):
        super().__init__()
        self.weights = np.linspace(0, 1, 6)
    def step(self, x):
        return self.activate(x * self.weights) * self.rate

def around(offset):
    def shift(x):
        return x + offset
    return shift

shift = around(0.25)

def pieces(x, flag=True):
    y = np.sin(x) * FACTOR
    if y.sum() > 0:                    # a break
        y = scaled(y, 3)
    total = np.zeros_like(x)
    for k in range(20):                # a loop with a body of its own
        total = total + np.tanh(y * k) * TABLE["a"]
    return total if flag else -total

@dyncomp.compile
def f(x):
    return shift(scaled(x)) * FACTOR + TABLE["a"] - helper.LIMIT

@dyncomp.compile
def g(model, x):
    return model.step(x)

@dyncomp.compile
def drawn(x):
    return x * random.random() + np.random.rand()

h = dyncomp.compile(pieces)

def main():
    x = np.arange(6.0)
    random.seed(0), np.random.seed(0)
    return f(x), g(Model(), x), h(x), h(x, flag=False), drawn(x)
"""

HELPER = """
import numpy as np
__version__ = "1.0"
LIMIT = 0.125

def scaled(x, by=2):
    return np.minimum(x * by, 100.0)

class Base:
    def __init__(self):
        self.bias = 1.0
    def activate(self, x):
        return np.exp(-x) + self.bias
"""

OTHER = """class Other(Base):
    rate = 9.0
    def activate(self, x):
        return -x

class Model(Other):"""
OVERRIDING = """    def activate(self, x):
        return x
    def step"""
PROPERTY = """    @property
    def rate(self):
        return 7.0"""
DECORATED = """def twice(f):
    return lambda *a, **k: 2 * f(*a, **k)

@twice
def pieces(x"""

# (file, what is replaced, by what)
EDITS = {
    "a constant of a function": ("program", "np.sin(x) * FACTOR", "np.sin(x) * 0.5 * FACTOR"),
    "a global": ("program", "FACTOR = 2.0", "FACTOR = 3.0"),
    "an item of a global": ("program", '"a": 1.5', '"a": 2.5'),
    "a class attribute": ("program", "rate = 0.5", "rate = 0.75"),
    "a contents of a closure": ("program", "around(0.25)", "around(0.5)"),
    "the default of a closure's argument": ("program", "def shift(x):", "def shift(x, offset=offset + 1):"),
    "a method": ("program", "* self.rate", "/ self.rate"),
    "a default": ("helper", "by=2", "by=4"),
    "an inlined callee": ("helper", "x * by", "x + by"),
    "a method of a base class": ("helper", "np.exp(-x)", "np.exp(x)"),
    "an attribute that a base class makes": ("helper", "self.bias = 1.0", "self.bias = 2.0"),
    "a global of another module": ("helper", "LIMIT = 0.125", "LIMIT = 0.5"),
    "a version": ("helper", '"1.0"', '"2.0"'),
    "other bases": (
        "program",
        "class Model(Base):",
        OTHER,
    ),
    "a method that overrides": (
        "program",
        "    def step",
        OVERRIDING,
    ),
    "a property in place of an attribute": (
        "program",
        "    rate = 0.5",
        PROPERTY,
    ),
    "a decorator": (
        "program",
        "def pieces(x",
        DECORATED,
    ),
    "the loop's body": ("program", "np.tanh(y * k)", "np.cos(y * k)"),
    "the number of iterations": ("program", "range(20)", "range(21)"),
    "what a break decides": ("program", "y.sum() > 0", "y.sum() < 0"),
    "lines above": ("program", "FACTOR = 2.0", "# a comment\n\nFACTOR = 2.0"),
}


@pytest.fixture(scope="module")
def zygote() -> Any:
    process = Zygote()
    yield process
    process.close()


def write(folder: Path, program: str = PROGRAM, helper: str = HELPER) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(program)
    (folder / "helper.py").write_text(helper)
    return folder


@pytest.fixture(scope="module")
def filled(zygote: Zygote, tmp_path_factory: Any) -> tuple[Path, Path]:
    """The program, and a cache that it has filled."""
    base = tmp_path_factory.mktemp("edits")
    folder, cache = write(base / "code"), base / "cache"
    plain, cold = zygote.run(folder, None), zygote.run(folder, cache)
    assert cold["outcome"] == plain["outcome"]
    assert cold["stats"]["from_disk"] == 0 and cold["stats"]["not_stored"] == 0
    return folder, cache


def test_the_same_program_is_warm(zygote: Zygote, filled: tuple[Path, Path]) -> None:
    folder, cache = filled
    warm = zygote.run(folder, cache)
    assert warm["outcome"] == zygote.run(folder, None)["outcome"]
    assert warm["stats"]["from_disk"] == warm["stats"]["frames_captured"] > 6


@pytest.mark.parametrize("name", EDITS)
def test_edits_are_seen(zygote: Zygote, filled: tuple[Path, Path], name: str) -> None:
    folder, cache = filled
    file, old, new = EDITS[name]
    sources = {"program": PROGRAM, "helper": HELPER}
    assert old in sources[file]
    sources[file] = sources[file].replace(old, new)
    try:
        write(folder, **sources)
        assert zygote.run(folder, cache)["outcome"] == zygote.run(folder, None)["outcome"]
    finally:
        write(folder)


SPECIAL = """def read(self, name):
    return 3.0 if name == "rate" else object.__getattribute__(self, name)
program.Model.__getattribute__ = read"""
LIBRARY = """import types
program.np = types.SimpleNamespace(**{**vars(program.np), "sin": program.np.cos})"""

# What changes in the process, with the files as they were.
CHANGES = {
    "a global": "program.FACTOR = 5.0",
    "a function that is replaced": "program.scaled = lambda x, by=1: x - by",
    "its defaults": "helper.scaled.__defaults__ = (7,)",
    "its code": "helper.scaled.__code__ = (lambda x, by: x - by).__code__",
    "a method": "helper.Base.activate = lambda self, x: x",
    "a class attribute": "program.Model.rate = 11.0",
    "a special method": SPECIAL,
    "the contents of a closure": "program.shift.__closure__[0].cell_contents = 13.0",
    "a function of the library": LIBRARY,
    "another closure of the same code": "program.shift = program.around(17.0)",
    "a dict": "program.TABLE['a'] = 19.0",
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_seen(zygote: Zygote, filled: tuple[Path, Path], name: str) -> None:
    folder, cache = filled
    (folder / "changed.py").write_text(
        f"import helper, program\n{CHANGES[name]}\ndef main():\n    return program.main()\n"
    )
    expected = zygote.run(folder, None, "changed")["outcome"]
    for _ in range(2):
        assert zygote.run(folder, cache, "changed")["outcome"] == expected
    assert zygote.run(folder, cache)["outcome"] == zygote.run(folder, None)["outcome"]


# What lies on disk.
def files(cache: Path) -> list[Path]:
    return sorted((cache / "entries").rglob("*.json"))


DAMAGES = {
    "cut off": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "another bit": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "not text": lambda content: b"\xff" * len(content),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_files_are_misses(
    zygote: Zygote, filled: tuple[Path, Path], tmp_path: Path, how: str
) -> None:
    folder, cache = filled
    copy = tmp_path / "cache"
    shutil.copytree(cache, copy)
    for file in files(copy):
        file.write_bytes(DAMAGES[how](file.read_bytes()))
    found = zygote.run(folder, copy)
    assert found["outcome"] == zygote.run(folder, None)["outcome"]
    assert found["stats"]["from_disk"] == 0 and found["stats"]["internal_errors"] == 0
    assert zygote.run(folder, copy)["stats"]["from_disk"] > 6  # kept anew


def test_others_files_are_not_used(zygote: Zygote, filled: tuple[Path, Path], tmp_path: Path) -> None:
    folder, cache = filled
    copy = tmp_path / "cache"
    shutil.copytree(cache, copy)
    for file in files(copy):
        file.chmod(0o666)
    assert zygote.run(folder, copy)["stats"]["from_disk"] == 0


def test_without_kernels(zygote: Zygote, filled: tuple[Path, Path], tmp_path: Path) -> None:
    """An entry whose kernels were deleted is a miss."""
    folder, cache = filled
    copy = tmp_path / "cache"
    shutil.copytree(cache, copy)
    for file in copy.rglob("*.so"):
        file.unlink()
    assert zygote.run(folder, copy)["outcome"] == zygote.run(folder, None)["outcome"]


SIZES = """
import numpy as np
import dyncomp

@dyncomp.compile
def f(x):
    return np.sin(x) * 2.0 + x.shape[0]

def main():
    sizes = {sizes}
    return [f(np.ones(n)) for n in sizes]
"""


def test_sizes_that_were_seen_before(zygote: Zygote, tmp_path: Path) -> None:
    """Another size is compiled once more, for all sizes, in whichever process it comes."""
    cache = tmp_path / "cache"
    folder = write(tmp_path / "code")
    found = []
    for sizes in ((3,), (5, 7, 9), (11, 3, 13)):
        main = folder / "program.py"
        main.write_text(SIZES.format(sizes="__import__('json').load(open(__file__ + '.json'))"))
        (folder / "program.py.json").write_text(str(list(sizes)))
        answer = zygote.run(folder, cache)
        assert answer["outcome"] == zygote.run(folder, None)["outcome"]
        found.append((answer["stats"]["frames_captured"], answer["stats"]["from_disk"]))
    assert found == [(1, 0), (1, 0), (1, 1)]
