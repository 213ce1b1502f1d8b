"""On a GPU: whose memory results and arguments of replayed launches are (``pytest -m gpu tests/gpu``)."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from dyncomp.inductor.gpu import graphs

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.inductor import gpu_replay as programs  # noqa: E402
from tests.inductor.gpu_replay import Counted, equal, replayed, several  # noqa: E402
from tests.inductor.gpu_simulator import r  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]
ALONE = [
    programs.test_unaligned_arrays_are_copied,
    programs.test_results_are_the_next_arguments,
    programs.test_a_result_may_get_other_memory,
    programs.test_temporaries_lie_apart_from_results,
]
COUNTED = [
    programs.test_a_loop_copies_nothing,
    programs.test_what_is_held_is_not_written,
    programs.test_results_are_new_tensors,
    programs.test_what_is_written_stays_in_place,
]


@pytest.fixture(autouse=True)
def everything_is_replayed(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 1)
    with torch.no_grad():
        yield


@pytest.mark.parametrize("test", ALONE, ids=[t.__name__ for t in ALONE])
def test_alone(test: Any) -> None:
    test(device="cuda:0")


@pytest.mark.parametrize("test", COUNTED, ids=[t.__name__ for t in COUNTED])
def test_counted(test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    test(Counted(monkeypatch), device="cuda:0")


@pytest.mark.parametrize("part", range(3))
def test_a_part_holds_all(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.test_a_part_holds_all(part, Counted(monkeypatch), device="cuda:0")


def test_other_streams() -> None:
    """What is called on another stream is launched there."""
    compiled = replayed(several)
    x, w = r(20, 30, device="cuda:0"), r(20, 30, seed=1, device="cuda:0")
    stream = torch.cuda.Stream()
    for k in range(9):
        x.fill_(k / 7)
        torch.cuda.synchronize()
        if k % 3 == 2:
            with torch.cuda.stream(stream):
                got = compiled(x, w)
            stream.synchronize()
        else:
            got = compiled(x, w)
        equal(got, several(x, w))


def test_what_is_recorded_survives_an_emptied_cache() -> None:
    compiled = replayed(several)
    x, w = r(20, 30, device="cuda:0"), r(20, 30, seed=1, device="cuda:0")
    for k in range(8):
        x.fill_(k / 7)
        equal(compiled(x, w), several(x, w))
        torch.cuda.empty_cache()


def test_nothing_of_the_program_is_kept() -> None:
    compiled = replayed(several)
    x, w = r(20, 30, device="cuda:0"), r(20, 30, seed=1, device="cuda:0")
    for _ in range(4):
        compiled(x, w)
    died = [weakref.ref(x), weakref.ref(w)]
    del x, w
    gc.collect()
    assert [ref() for ref in died] == [None, None]
