"""ONNX models: every op's samples and whole functions, run by onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

import dyncomp  # noqa: E402
from dyncomp.archives.onnx_model import model_of  # noqa: E402
from dyncomp.errors import ExportError  # noqa: E402
from dyncomp.graph.ir import GraphBuilder, GraphOutput  # noqa: E402
from dyncomp.prims.kit import type_of  # noqa: E402
from dyncomp.prims.onnx import TRANSLATIONS  # noqa: E402
from dyncomp.prims.table import TABLE  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def run(model: Any, inputs: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, inputs)
    return results


# what onnxruntime has kernels for, mostly
DTYPES = ("bool", "int32", "int64", "float32", "float64")
LACKS = ("NOT_IMPLEMENTED", "Type Error", "INVALID_GRAPH")


@pytest.mark.parametrize("op", sorted(TRANSLATIONS))
def test_every_op(op: str) -> None:
    """The samples of an op's row, as models of one node, where the runtime has the dtype."""
    row = TABLE[op]
    tried = 0
    for sample in row.samples() if row.samples is not None else ():
        arrays = [np.asarray(a) for a in sample.args]
        with np.errstate(all="ignore"):
            wanted = np.asarray(row.ref(*arrays, **sample.params))
        if any(a.dtype.name not in DTYPES or not a.size for a in (*arrays, wanted)):
            continue
        if wanted.dtype.kind == "i" and ("special" in sample.label or op == "reduce_prod"):
            continue  # integers that wrap around
        builder = GraphBuilder(TABLE, name="one")
        out = builder.emit(op, *[builder.add_input(type_of(a)) for a in arrays], **sample.params)
        graph = builder.finish((GraphOutput(out),))
        names = [f"in{k}" for k in range(len(arrays))]
        try:
            model, _ = model_of(graph, [(name, None) for name in names], op)
            (found,) = run(model.SerializeToString(), dict(zip(names, arrays)))
        except ExportError:
            continue
        except Exception as error:
            if any(
                word in str(error) for word in ("NOT_IMPLEMENTED", "not implemented", "Type Error", "kernel")
            ):
                continue  # of the runtime, for this dtype
            if "bool" in str(error) or "shape_inference" in str(error):
                continue
            raise
        tried += 1
        if op == "empty":
            assert found.shape == wanted.shape
            continue
        assert found.dtype == wanted.dtype, sample.label
        loose = 2e-4 if wanted.dtype.name == "float32" else 2e-6
        np.testing.assert_allclose(found, wanted, rtol=loose, atol=loose, err_msg=sample.label)
    assert tried or row.samples is None, "no sample was tried"


WEIGHTS = np.arange(12.0).reshape(4, 3) / 10.0


def program(x: Any, y: Any) -> Any:
    z = np.tanh(x @ WEIGHTS) + y
    top = np.concatenate([z[::-1], np.maximum(z, 0.5)])
    return top, {"sum": z.sum(axis=0), "norm": np.sqrt((z * z).sum())}


def check(f: Any, args: tuple[Any, ...], path: Path, others: tuple[Any, ...] = (), **how: Any) -> None:
    exported = dyncomp.export(f, args, processors=["x86-64-v2"], **how)
    exported.to_onnx(path)
    for given in (args, others) if others else (args,):
        names = [i.name for i in onnx.load(str(path)).graph.input]
        found = run(str(path), {name: np.asarray(a) for name, a in zip(names, given)})
        wanted = _leaves(f(*given))
        assert len(found) == len(wanted)
        for mine, other in zip(found, wanted):
            np.testing.assert_allclose(mine, np.asarray(other), rtol=1e-4, atol=1e-5)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def x(rows: int) -> Any:
    return np.random.default_rng(rows).normal(size=(rows, 4))


def test_a_numpy_function(tmp_path: Path) -> None:
    check(program, (x(5), np.ones(3)), tmp_path / "f.onnx")


def test_sizes_of_inputs(tmp_path: Path) -> None:
    def f(a: Any) -> Any:
        b = a - a.mean(axis=0)
        return (b / (1.0 + np.abs(b))).reshape(-1), a[1:, ::2] + np.arange(a.shape[0] - 1)[:, None]

    check(f, (x(5),), tmp_path / "f.onnx", (x(9),), dynamic={"a": 0})


def test_what_onnx_does_not_have(tmp_path: Path) -> None:
    exported = dyncomp.export(lambda a: np.sort(a) + 1.0, (x(4),))
    with pytest.raises(ExportError, match=r"ONNX has no operators for .*test_onnx\.py"):
        exported.to_onnx(tmp_path / "f.onnx")

    def writes(a: Any) -> Any:
        a += 1.0
        return a * 2.0

    with pytest.raises(ExportError, match="writes to its arguments"):
        dyncomp.export(writes, (x(4),)).to_onnx(tmp_path / "f.onnx")
    assert not list(tmp_path.iterdir())


def test_models_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    torch.manual_seed(0)
    convolutions = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, stride=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=4, padding=2, dilation=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
        nn.Softmax(-1),
    ).eval()
    with torch.no_grad():
        check(convolutions, (torch.randn(2, 3, 16, 16),), tmp_path / "c.onnx")
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
        check(layer, (torch.randn(2, 5, 16),), tmp_path / "t.onnx")
        small = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.SiLU()).eval()
        check(small, (torch.randn(6, 4),), tmp_path / "s.onnx", (torch.randn(3, 4),), dynamic={"input": 0})
        words = nn.Sequential(nn.Embedding(20, 6), nn.Linear(6, 3), nn.LogSoftmax(-1)).eval()
        check(words, (torch.randint(20, (2, 7)),), tmp_path / "w.onnx")
