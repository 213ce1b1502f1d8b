"""Blocks of ``torch.backends.cudnn.flags`` have no meaning for captured code where there is no GPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="blocks that say how a GPU computes")
cudnn: Any = torch.backends.cudnn


def doubled(x):
    with torch.backends.cudnn.flags(enabled=False) as given:
        y = x * 2
    return y + 1, given


def broken_inside(x, seen):
    with torch.backends.cudnn.flags(enabled=False):
        y = x * 2
        seen.append(torch.backends.cudnn.enabled)
        y = y + 1
    seen.append(torch.backends.cudnn.enabled)
    return y * 3


def test_blocks_do_not_break_the_graph():
    x = torch.ones(3)
    report = dyncomp.explain(doubled)(x)
    assert not report.breaks and not report.skipped
    torch.testing.assert_close(report.result[0], doubled(x)[0])
    assert report.result[1] is None


def test_what_is_read_inside():
    """Plain code in the block finds its flags."""
    x, seen = torch.ones(3), []
    torch.testing.assert_close(dyncomp.compile(broken_inside)(x, seen), broken_inside(x, []))
    assert seen == [False, True] and cudnn.enabled


def test_flags_that_are_set_later():
    """The program's own values come back, and what contradicts itself raises, before and after."""
    x, fast = torch.ones(3), dyncomp.compile(doubled)
    fast(x)
    cudnn.benchmark, before = True, cudnn.conv.fp32_precision
    try:
        torch.testing.assert_close(fast(x)[0], doubled(x)[0])
        assert cudnn.benchmark
        cudnn.conv.fp32_precision = "ieee"
        for f in (doubled, fast):
            with pytest.raises(RuntimeError, match="TF32"):
                f(x)
    finally:
        cudnn.conv.fp32_precision, cudnn.benchmark = before, False


def test_a_manager_for_one_block():
    def twice(x):
        block = torch.backends.cudnn.flags(enabled=False)
        with block:
            x = x * 2
        with block:
            return x + 1

    for f in (twice, dyncomp.compile(twice)):
        with pytest.raises((RuntimeError, AttributeError)):
            f(torch.ones(3))


@pytest.mark.parametrize("replaced", ["flags", "m"])
def test_members_that_the_program_replaces(monkeypatch, replaced):
    x, fast = torch.ones(3), dyncomp.compile(doubled)
    fast(x)

    class Loud:
        def __init__(self, **flags: object) -> None:
            raise KeyError("mine")

    if replaced == "flags":
        monkeypatch.setitem(vars(cudnn), "flags", Loud)
    else:
        monkeypatch.setattr(vars(cudnn)["m"], "flags", Loud)
    with pytest.raises(KeyError, match="mine"):
        fast(x)
