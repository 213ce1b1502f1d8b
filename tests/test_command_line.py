"""The command ``dyncomp``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dyncomp.command_line.answers import size_text

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(tmp_path):
    """Run a command with a cache of its own: exit status, output."""

    def run_it(*arguments, **variables):
        environment = {**os.environ, "DYNCOMP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-m", "dyncomp", *arguments],
            capture_output=True,
            text=True,
            env={**environment, **variables},
            cwd=tmp_path,
            timeout=120,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    return run_it


def test_doctor(run):
    status, text = run("doctor")
    assert status == 0 and "gives what NumPy gives" in text and "All that dyncomp needs is there." in text
    status, text = run("doctor", "--json")
    found = json.loads(text)
    assert status == 0 and found["good"]
    assert {"dyncomp", "Python", "NumPy", "C++ compiler", "cache"} <= {f["name"] for f in found["findings"]}


def test_doctor_without_a_compiler(run):
    status, text = run("doctor", CXX="/nowhere/g++")
    assert status == 1 and "apt install g++" in text and "broken: C++ compiler" in text


def test_doctor_of_a_cache_that_cannot_be_used(run):
    status, text = run("doctor", DYNCOMP_CACHE_DIR="/proc/nowhere")
    assert status == 0 and "name a directory of your own in DYNCOMP_CACHE_DIR" in text


def test_breaks(run):
    status, text = run("breaks", "clock")
    assert status == 0 and "The clock is read" in text and "What to do: Measure around" in text
    status, text = run("breaks", "--json")
    assert status == 0 and "data-dependent-branch" in {kind["id"] for kind in json.loads(text)["breaks"]}
    status, text = run("breaks", "data-branch")
    assert status == 1 and "did you mean data-dependent-branch?" in text


def test_cache(run, tmp_path):
    assert "0 libraries" in run("cache", "info")[1]
    run("doctor")
    found = json.loads(run("cache", "info", "--json")[1])
    assert found["directory"] == str(tmp_path / "cache") and found["libraries"] >= 1 and found["bytes"] > 0
    assert run("cache", "verify")[0] == 0
    library = next((tmp_path / "cache").rglob("*.so"))
    content = library.read_bytes()
    library.write_bytes(content[:-100] + bytes(100))
    status, text = run("cache", "verify")
    assert status == 1 and library.name in text and "its checksum is wrong" in text
    status, text = run("cache", "clear")
    assert status == 0 and not list((tmp_path / "cache").rglob("*.so"))
    assert json.loads(run("cache", "info", "--json")[1])["bytes"] == 0


def test_wrong_arguments(run):
    for arguments in ((), ("nothing",), ("cache",), ("cache", "eat")):
        assert run(*arguments)[0] == 2


def test_sizes():
    assert [size_text(n) for n in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 bytes", "1023 bytes", "1.5 KiB", "5.0 MiB", "3072.0 GiB",
    ]  # fmt: skip
