"""Channels last between convolutions on a GPU, see ``gpu_formats``."""

from __future__ import annotations

import pytest

from tests.inductor.interpreted import run_interpreted

pytest.importorskip("triton")
pytest.importorskip("torch")


@pytest.mark.slow
def test_values_on_a_pretended_gpu() -> None:
    run_interpreted("gpu_formats.py")
