"""``options={"dump": directory}``: readable forms of every graph, and code edited by hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor.loops.loop_text import parse_kernel
from dyncomp.pipeline import PASSES


def scaled(x, y):
    return (x * y + 1.0).sum(axis=0)


def cut(x):
    kept = x[x > 0.5]
    return kept * 2.0


def only_folder(directory: Path) -> Path:
    (folder,) = directory.iterdir()
    return folder


def test_every_stage_is_written(tmp_path):
    x = np.linspace(0.0, 1.0, 12).reshape(3, 4)
    dyncomp.compile(scaled, options={"dump": str(tmp_path)})(x, x)
    folder = only_folder(tmp_path)
    assert folder.name.startswith("scaled-")
    stages = [
        "captured.py",
        *(f"{step.name}.py" for step in PASSES),
        "kernels.cpp",
        "loops.py",
        "schedule.txt",
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"{k:02}-{name}" for k, name in enumerate(stages)),
        "inputs.npz",
        "run.py",
    ]
    assert "def scaled" in (folder / "00-captured.py").read_text()
    (loops,) = folder.glob("*-loops.py")
    assert parse_kernel(loops.read_text()).body
    assert "test_dump.py" in next(folder.glob("*-kernels.cpp")).read_text()


def test_the_folder_is_the_same_in_every_run(tmp_path):
    x = np.ones((3, 4))
    for directory in (str(tmp_path), tmp_path):
        dyncomp.compile(scaled, options={"dump": directory})(x, x)
    only_folder(tmp_path)


def test_edited_code_runs(tmp_path):
    x = np.ones((3, 4))
    dyncomp.compile(scaled, options={"dump": str(tmp_path)})(x, x)
    folder = only_folder(tmp_path)
    text = next(folder.glob("*-kernels.cpp")).read_text()
    assert text.count("1.0") > 0
    (folder / "edited.cpp").write_text(text.replace("1.0", "2.0"))
    out = dyncomp.compile(scaled, options={"dump": str(tmp_path)})(x, x)
    np.testing.assert_array_equal(out, np.full(4, 9.0))


def test_edited_code_that_does_not_compile(tmp_path):
    x = np.ones((3, 4))
    dyncomp.compile(scaled, options={"dump": str(tmp_path)})(x, x)
    (only_folder(tmp_path) / "edited.cpp").write_text("not C++")
    out = dyncomp.compile(scaled, options={"dump": str(tmp_path)})(x, x)
    np.testing.assert_array_equal(out, np.full(4, 6.0))


def test_stages_of_a_graph_with_sizes_from_data(tmp_path):
    x = np.linspace(0.0, 1.0, 100)
    out = dyncomp.compile(cut, options={"dump": str(tmp_path)})(x)
    np.testing.assert_array_equal(out, cut(x))
    assert list(tmp_path.glob("*/00-captured.py"))


@pytest.mark.parametrize("backend", ("eager", "inductor"))
def test_a_directory_that_cannot_be_written(backend, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    x = np.ones((3, 4))
    compiled = dyncomp.compile(scaled, backend=backend, options={"dump": str(tmp_path / "file")})
    np.testing.assert_array_equal(compiled(x, x), np.full(4, 6.0))
    assert "cannot write" in caplog.text


def test_loops_that_cannot_be_written(tmp_path, caplog):
    def halve(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    (tmp_path / "file").write_text("")
    options = {"dump": str(tmp_path / "file"), "native_loop_us": 0}
    assert dyncomp.compile(halve, options=options)(97) == halve(97)
    assert "cannot write" in caplog.text


def test_the_eager_backend(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNCOMP_DUMP", str(tmp_path))
    x = np.ones((3, 4))
    dyncomp.compile(scaled, backend="eager")(x, x)
    assert [p.name for p in sorted(only_folder(tmp_path).iterdir())] == [
        "00-captured.py",
        "01-functionalize.py",
    ]


# -- files of others --------------------------------------------------------------------------
def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser gives files away")
    os.chown(path, 4321, 4321)


def link(path: Path) -> None:
    moved = path.parent.parent.parent / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


NOT_OURS = {
    "foreign": give_away,
    "foreign folder": lambda path: give_away(path.parent),
    "open": lambda path: path.chmod(0o666),
    "open folder": lambda path: path.parent.chmod(0o777),
    "link": link,
    "hard link": lambda path: os.link(path, path.parent.parent.parent / "other-name"),
    "pipe": pipe,
}


@pytest.mark.parametrize("fault", NOT_OURS)
def test_code_that_others_edited_is_not_run(fault, tmp_path, caplog):
    x, out = np.ones((3, 4)), tmp_path / "out"
    dyncomp.compile(scaled, options={"dump": str(out)})(x, x)
    folder = only_folder(out)
    edited = folder / "edited.cpp"
    edited.write_text(next(folder.glob("*-kernels.cpp")).read_text().replace("1.0", "2.0"))
    NOT_OURS[fault](edited)
    np.testing.assert_array_equal(dyncomp.compile(scaled, options={"dump": str(out)})(x, x), np.full(4, 6.0))
    assert "edited.cpp is not used" in caplog.text


def test_links_are_not_written_through(tmp_path):
    x, victim, out = np.ones((3, 4)), tmp_path / "victim", tmp_path / "out"
    dyncomp.compile(scaled, options={"dump": str(out)})(x, x)
    victim.write_text("precious")
    files = list(only_folder(out).iterdir())
    for path in files:
        path.unlink()
        path.symlink_to(victim)
    dyncomp.compile(scaled, options={"dump": str(out)})(x, x)
    assert victim.read_text() == "precious"
    assert not [p for p in files if p.is_symlink()]


def test_a_folder_of_others_is_not_written(tmp_path, caplog):
    x, out = np.ones((3, 4)), tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    np.testing.assert_array_equal(dyncomp.compile(scaled, options={"dump": str(out)})(x, x), np.full(4, 6.0))
    assert list(out.iterdir()) == []
    assert "other users may write to it" in caplog.text
