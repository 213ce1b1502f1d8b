"""On a GPU: tensors on the CPU beside its own (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor import gpu_host as programs  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]
OUTSIDE = [programs.written, programs.aliased, programs.shared, programs.indexed, programs.shifted]


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("function", programs.WHOLE, ids=[f.__name__ for f in programs.WHOLE])
def test_whole(function: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.test_whole(function, mode, monkeypatch, device="cuda:0")


@pytest.mark.parametrize("function", OUTSIDE, ids=[f.__name__ for f in OUTSIDE])
def test_left_to_plain_python(function: Any) -> None:
    programs.test_left_to_plain_python(function, device="cuda:0")


def test_large_tensors_stay_outside() -> None:
    programs.test_large_tensors_stay_outside(device="cuda:0")
