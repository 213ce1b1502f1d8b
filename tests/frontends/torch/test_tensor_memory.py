"""Tensors are read without the look-ups of DLPack's exchange table."""

import pytest

torch = pytest.importorskip("torch")

from dyncomp.frontends.torch.tensor_memory import use_direct_views  # noqa: E402


def test_this_torch_has_what_reads_them():
    assert use_direct_views()
