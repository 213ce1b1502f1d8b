"""Exported functions run as the originals do, in a process that has neither them nor a compiler."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.archives.processors import LEVELS, levels_here

pytest.importorskip("safetensors")
WEIGHTS = np.linspace(0.0, 1.0, 6)
HERE = levels_here()[-1:]


def several(x: Any, y: Any = None, *, scale: float = 2.0, flag: bool = True) -> Any:
    z = np.sin(x) * scale + WEIGHTS
    return {"z": z, "rest": (z.sum(axis=0), x, 3, None, [z.max()])} if flag else z


def nested(batch: Any, *more: Any, **named: Any) -> Any:
    total = batch["x"] + batch["parts"][1]
    for array in more:
        total = total * array
    return total - named["bias"]


def written(x: Any) -> Any:
    x += 1.0
    return x * 2.0


def in_pieces(x: Any) -> Any:
    return np.linalg.solve(x, x[0]) + np.sort(x, axis=0)[0]


def exported(f: Any, *args: Any, path: Path, **settings: Any) -> Any:
    dyncomp.export(f, args, processors=HERE, **settings).save(path)
    return dyncomp.load(path)


def x(n: int = 4) -> Any:
    return np.random.default_rng(n).standard_normal((n, 6))


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
    elif isinstance(a, (np.ndarray, np.generic)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-13)
    else:
        assert a == b


@pytest.mark.skipif(not HERE, reason="no level of x86-64")
class TestNumpy:
    def test_results_and_sizes(self, tmp_path: Path) -> None:
        g = exported(several, x(), path=tmp_path / "f.dcp", dynamic={"x": 0})
        for n in (4, 2, 9):
            same(g(x(n)), several(x(n)))
        given = x()
        assert g(given)["rest"][1] is given
        assert str(g.__signature__) == "(x, y=None, *, scale=2.0, flag=True)"

    def test_containers_and_names(self, tmp_path: Path) -> None:
        batch = {"x": x(), "parts": [1, x()]}
        e = dyncomp.export(nested, (batch, x()), {"bias": x()}, processors=HERE)
        e.save(tmp_path / "f.dcp")
        g = dyncomp.load(tmp_path / "f.dcp")
        same(g(batch, x(), bias=x()), nested(batch, x(), bias=x()))
        with pytest.raises(TypeError, match="was exported for other arguments"):
            g(batch, bias=x())

    def test_arguments_are_written(self, tmp_path: Path) -> None:
        g = exported(written, x(), path=tmp_path / "f.dcp")
        a, b = x(), x()
        same(g(a), written(b))
        same(a, b)

    def test_routines_of_libraries(self, tmp_path: Path) -> None:
        given = x(6) + 6 * np.eye(6)
        same(exported(in_pieces, given, path=tmp_path / "f.dcp")(given), in_pieces(given))

    @pytest.mark.parametrize(
        ("args", "kwargs", "message"),
        [
            ((x().astype("f4"),), {}, "expected x: ndarray float64"),
            ((x()[:, :3],), {}, "expected x: ndarray float64"),
            ((x(),), {"flag": False}, "expected flag is True"),
            ((x(),), {"scale": 3.0}, "expected scale == 2.0"),
            ((), {}, "missing a required argument: 'x'"),
            ((x(),), {"other": 1}, "unexpected keyword argument 'other'"),
        ],
    )
    def test_other_arguments(self, tmp_path: Path, args: Any, kwargs: Any, message: str) -> None:
        g = exported(several, x(), path=tmp_path / "f.dcp")
        with pytest.raises(TypeError, match=message):
            g(*args, **kwargs)

    def test_without_the_program(self, tmp_path: Path) -> None:
        """Another process, in which there is neither this module nor a compiler."""
        exported(several, x(), path=tmp_path / "f.dcp")
        np.save(tmp_path / "x.npy", x())
        np.save(tmp_path / "z.npy", several(x())["z"])
        program = """
import numpy as np, dyncomp, sys
g = dyncomp.load("f.dcp")
assert "tests" not in sys.modules
np.testing.assert_allclose(g(np.load("x.npy"))["z"], np.load("z.npy"), rtol=1e-13)
"""
        root = str(Path(dyncomp.__file__).parents[1])
        environ = {"PYTHONPATH": root, "PATH": "", "HOME": str(tmp_path), "CXX": ""}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("level", [level for level in LEVELS if level in levels_here()])
    def test_levels(self, tmp_path: Path, level: str) -> None:
        e = dyncomp.export(several, (x(),), processors=[level])
        assert list(e.kernels) == [level]
        e.save(tmp_path / "f.dcp")
        same(dyncomp.load(tmp_path / "f.dcp")(x()), several(x()))
        # code with MMX leaves the x87 stack full, and long doubles are NaN from then on
        doubled = np.array([1, 2j, 3], dtype=np.clongdouble) * 2
        assert doubled.tolist() == [2, 4j, 6]


def writes_weights(x: Any) -> Any:
    WEIGHTS[0] = x[0, 0]
    return x


def counts(x: Any) -> Any:
    STATE.append(1)
    return x + 1


def assigns(x: Any) -> Any:
    global LAST
    LAST = 1
    return x + 1


class Result:
    def __init__(self, x: Any) -> None:
        self.x = x


STATE: list[int] = []
LAST = 0


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (writes_weights, "writes to WEIGHTS"),
        (counts, "changes an object from outside"),
        (assigns, "assigns the global LAST"),
        (lambda x: Result(x + 1), "return arrays, numbers, tuples, lists or dicts"),
        (lambda x: x[x > 0] * 2.0, "what a boolean mask selects"),
        (lambda x: 3, "works on no array"),
    ],
)
def test_what_is_refused(f: Any, message: str) -> None:
    with pytest.raises(dyncomp.ExportError, match=message):
        dyncomp.export(f, (x(),))


def test_breaks_are_errors() -> None:
    with pytest.raises(dyncomp.GraphBreakError, match="a branch on an array"):
        dyncomp.export(lambda x: x if x.sum() > 0 else -x, (x(),))


def test_unknown_processors() -> None:
    with pytest.raises(ValueError, match="processors: z80; known are x86-64-v2"):
        dyncomp.export(several, (x(),), processors=["z80"])


@pytest.mark.skipif(not HERE, reason="no level of x86-64")
class TestFiles:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        exported(several, x(), path=tmp_path / "f.dcp")
        return tmp_path / "f.dcp"

    def test_damage(self, path: Path) -> None:
        content = path.read_bytes()
        for damaged in (content[: len(content) // 2], b"", b"nothing"):
            path.write_bytes(damaged)
            with pytest.raises(dyncomp.ExportError, match="is no archive"):
                dyncomp.load(path)

    def change(self, path: Path, edit: Any) -> None:
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        files = edit(files)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)

    def test_other_code(self, path: Path) -> None:
        self.change(path, lambda files: {**files, f"kernels/{HERE[0]}.so": b"other"})
        with pytest.raises(dyncomp.ExportError, match="is damaged"):
            dyncomp.load(path)

    def test_other_formats(self, path: Path) -> None:
        def later(files: dict[str, bytes]) -> dict[str, bytes]:
            manifest = json.loads(files["manifest.json"])
            return {**files, "manifest.json": json.dumps({**manifest, "format": 99}).encode()}

        self.change(path, later)
        with pytest.raises(dyncomp.ExportError, match="of format 99"):
            dyncomp.load(path)

    def test_other_processors(self, path: Path, monkeypatch: Any) -> None:
        from dyncomp.archives import processors

        monkeypatch.setattr(processors, "levels_here", list)
        with pytest.raises(dyncomp.ExportError, match="none of which this processor is"):
            dyncomp.load(path)

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            dyncomp.load(tmp_path / "none.dcp")

    def test_the_graph_is_readable(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            assert "sin(" in archive.read("graph.txt").decode()


# -- PyTorch ----------------------------------------------------------------------------------------------
@pytest.mark.skipif(not HERE, reason="no level of x86-64")
class TestTorch:
    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    def test_modules(self, torch: Any, tmp_path: Path) -> None:
        torch.manual_seed(0)
        layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(8 * 64, 5)).eval()
        path = tmp_path / "model.dcp"
        e = dyncomp.export(model, (torch.randn(2, 3, 8, 8),), dynamic={"input": 0}, processors=HERE)
        e.save(path)
        assert len(e.weights) == 8
        g = dyncomp.load(path)
        for n in (2, 5):
            given = torch.randn(n, 3, 8, 8)
            torch.testing.assert_close(g(given), model(given).detach())
            assert not g(given).requires_grad

    def test_weights_keep_their_types(self, torch: Any, tmp_path: Path) -> None:
        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.small = torch.nn.Parameter(torch.randn(4).bfloat16())
                self.index = torch.tensor([2, 0, 1])
                self.none = torch.zeros(0)

            def forward(self, x: Any) -> Any:
                found = x[self.index] * self.small.float()
                return collections.OrderedDict(found=found, size=self.none.sum())

        net, given = Net(), torch.randn(3, 4)
        g = exported(net, given, path=tmp_path / "net.dcp")
        found, expected = g(given), net(given)
        assert type(found) is collections.OrderedDict and list(found) == ["found", "size"]
        torch.testing.assert_close(found["found"], expected["found"].detach())

    def test_training_mode_is_refused(self, torch: Any) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        with pytest.raises(dyncomp.ExportError, match="writes to"):
            dyncomp.export(model, (torch.randn(3, 4),))

    def test_transformers(self, torch: Any, tmp_path: Path) -> None:
        transformers = pytest.importorskip("transformers")
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        model = transformers.BertModel(transformers.BertConfig(**sizes, vocab_size=50)).eval()
        ids = torch.randint(0, 50, (2, 7))
        mask = torch.ones_like(ids)
        e = dyncomp.export(model, (ids,), {"attention_mask": mask}, processors=HERE)
        e.save(tmp_path / "bert.dcp")
        found = dyncomp.load(tmp_path / "bert.dcp")(ids, attention_mask=mask)
        with torch.no_grad():
            expected = model(ids, attention_mask=mask)
        torch.testing.assert_close(found["last_hidden_state"], expected.last_hidden_state)
