"""Programs over CuPy's arrays, from capture to kernels, without a GPU: see ``cupy_path``."""

from __future__ import annotations

import pytest

from tests.inductor.interpreted import run_interpreted

pytest.importorskip("triton")
pytest.importorskip("cupy")


def test_programs_on_a_pretended_gpu() -> None:
    run_interpreted("cupy_path.py")
