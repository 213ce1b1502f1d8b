"""``dyncomp.profile``: what is recorded, for whom, and how it is shown."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

import dyncomp
from dyncomp import spans
from dyncomp.hook import _hook
from dyncomp.profiling import recorder
from dyncomp.profiling.events import KINDS, Raw, events_of
from dyncomp.runtime import _launch

HERE = os.path.basename(__file__)


def two_kernels(x, y):
    total = np.exp(x + y).sum()
    product = x @ y
    return np.sort(product), (product - total).mean(axis=0)


def smooth(x):
    return np.tanh(x) + 1.0


def raises(x):
    np.add(x, 1.0)
    raise KeyError("as the program does")


@pytest.fixture(autouse=True)
def nothing_is_left_open():
    yield
    gc.collect()
    assert not recorder._open
    assert not spans._listeners
    assert _hook.spans_take() == ([], 0)
    assert _launch.spans_take() == ([], 0)


@pytest.fixture
def square():
    return np.random.default_rng(1).random((60, 60))


def by_kind(prof, kind):
    return [event for event in prof.events if event.kind == kind]


def test_warm_calls(square):
    fast = dyncomp.compile(two_kernels)
    fast(square, square)
    with dyncomp.profile() as prof:
        for _ in range(3):
            fast(square, square)
    assert [len(by_kind(prof, kind)) for kind in ("call", "guards", "graph")] == [3, 3, 3]
    assert len(by_kind(prof, "library")) == 3 and by_kind(prof, "library")[0].name == "sort"
    assert len(by_kind(prof, "product")) == 3 and "60x60x60" in by_kind(prof, "product")[0].name
    kernels = by_kind(prof, "kernel")
    assert len(kernels) >= 6 and len({event.name for event in kernels}) == len(kernels) / 3
    assert all("two_kernels" in event.name and event.args["graph"] == "two_kernels" for event in kernels)
    assert not [event for event in prof.events if event.kind in ("compile", "capture", "build")]
    assert by_kind(prof, "call")[0].name == "two_kernels"


def test_lines_are_the_users(square):
    fast = dyncomp.compile(two_kernels)
    fast(square, square)
    with dyncomp.profile() as prof:
        fast(square, square)
    first = two_kernels.__code__.co_firstlineno
    lines = {event.kind: event.where for event in prof.events}
    assert lines["library"] == f"two_kernels at {__file__}:{first + 3}"
    assert lines["product"] == f"two_kernels at {__file__}:{first + 2}"
    assert lines["call"] == f"{__file__}:{first}"
    assert f"{HERE}:{first + 1}" in by_kind(prof, "kernel")[0].where
    assert by_kind(prof, "library")[0].args["bytes"] == 2 * 60 * 60 * 8


def test_times_add_up(square):
    fast = dyncomp.compile(two_kernels)
    with dyncomp.profile() as prof:
        fast(square, square)
        fast(square, square)
    events = prof.events
    assert sum(event.self_ns for event in events) <= prof.wall_ns
    for event in events:
        assert 0 <= event.self_ns <= event.ns and event.start_ns >= 0
        assert event.start_ns + event.ns <= prof.wall_ns and event.kind in KINDS
    graph = by_kind(prof, "graph")[-1]
    parts = [
        e
        for e in events
        if e.kind in ("kernel", "product", "library") and e.start_ns >= graph.start_ns and e.args["graph"]
    ]
    assert graph.self_ns == graph.ns - sum(part.ns for part in parts)
    call = by_kind(prof, "call")[-1]
    inside = by_kind(prof, "guards")[-1].ns + graph.ns
    assert inside <= call.ns and call.self_ns == call.ns - inside
    rows = prof.to_dict()["rows"]
    assert sum(row["self_ns"] for row in rows) == sum(event.self_ns for event in events)
    assert len(prof.to_dict()["events"]) == len(events)


def test_compiling_appears_on_a_cold_call(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path))
    fast = dyncomp.compile(lambda x: np.cos(x) * 1.25 + x)
    with dyncomp.profile() as prof:
        fast(np.ones(100))
    kinds = {event.kind for event in prof.events}
    assert {"compile", "capture", "pass", "inductor", "build", "disk", "kernel", "graph"} <= kinds
    names = {event.name for event in prof.events}
    assert {"functionalize", "cse", "lower", "render", "launch"} <= names
    assert by_kind(prof, "compile")[0].where.startswith(__file__)
    compiling = by_kind(prof, "compile")[0]
    assert by_kind(prof, "build")[0].ns < compiling.ns < by_kind(prof, "call")[0].ns


def test_nothing_is_recorded_after_the_block(square):
    fast = dyncomp.compile(smooth)
    with dyncomp.profile() as prof:
        fast(square)
    count = len(prof.events)
    fast(square)
    dyncomp.compile(lambda x: x + 3)(square)
    assert len(prof.events) == count > 0


def test_exceptions_leave_the_block_and_are_the_programs(square):
    fast = dyncomp.compile(raises)
    prof = dyncomp.profile()
    with pytest.raises(KeyError, match="as the program does"), prof:
        fast(square)
    assert by_kind(prof, "call")[0].args == {"raised": True}
    with dyncomp.profile() as later:
        dyncomp.compile(smooth)(square)
    assert by_kind(later, "graph")


def test_kernels_that_raise(square):
    def pick(x, k):
        return np.tanh(x)[k] + 1.0

    fast = dyncomp.compile(pick)
    index = np.array([0, 1])
    fast(square, index)
    with dyncomp.profile() as prof, pytest.raises(IndexError):
        fast(square, np.array([0, 1000]))
    assert by_kind(prof, "graph")


def test_nested_profiles(square):
    fast = dyncomp.compile(smooth)
    fast(square)
    with dyncomp.profile() as outer:
        fast(square)
        with dyncomp.profile() as inner:
            fast(square)
            fast(square)
        fast(square)
    assert [len(by_kind(p, "graph")) for p in (outer, inner)] == [4, 2]
    assert inner.events[0].start_ns >= 0


def test_profiles_that_overlap(square):
    fast = dyncomp.compile(smooth)
    fast(square)
    first, second = dyncomp.profile(), dyncomp.profile()
    first.__enter__()
    fast(square)
    second.__enter__()
    fast(square)
    first.__exit__(None, None, None)
    fast(square)
    assert len(by_kind(second, "graph")) == 2  # while it is open
    second.__exit__(None, None, None)
    assert [len(by_kind(p, "graph")) for p in (first, second)] == [2, 2]


def test_recursion_counts_time_once():
    @dyncomp.compile
    def down(x, n):
        y = np.sin(x)
        if n == 0:
            return y
        dyncomp.graph_break("each level is a call of its own")
        return down(y, n - 1) + y

    x = np.ones(50)
    down(x, 3)
    with dyncomp.profile() as prof:
        down(x, 3)
    calls = [event for event in by_kind(prof, "call") if event.name.endswith("down (continued)")]
    assert len(calls) >= 3 and any(event.is_nested for event in calls)
    (row,) = [r for r in prof.to_dict()["rows"] if r["kind"] == "call" and r["name"] == calls[0].name]
    assert row["calls"] == len(calls)
    assert row["total_ns"] == sum(event.ns for event in calls if not event.is_nested) <= prof.wall_ns


def test_threads(square):
    fast = dyncomp.compile(two_kernels)
    fast(square, square)
    native = []

    def work():
        native.append(threading.get_native_id())
        for _ in range(5):
            fast(square, square)

    threads = [threading.Thread(target=work, name=f"worker {k}") for k in range(2)]
    with dyncomp.profile() as prof:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {event.thread for event in prof.events} == set(native) and len(set(native)) == 2
    for thread in native:
        own = [event for event in prof.events if event.thread == thread]
        assert sum(event.kind == "graph" for event in own) == 5
        assert sum(event.kind == "library" for event in own) == 5


def test_a_profile_left_open_in_a_thread_ends_with_it(square):
    fast = dyncomp.compile(smooth)
    fast(square)

    def work():
        dyncomp.profile().__enter__()
        fast(square)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert not recorder._open
    fast(square)
    assert _launch.spans_take() == ([], 0) and _hook.spans_take() == ([], 0)


def test_loops_compiled_whole():
    @dyncomp.compile(options={"native_loop_us": 0})
    def count(n):
        total = 0.0
        for k in range(n):
            total += (k % 7) * 0.5
        return total

    count(1000)
    with dyncomp.profile() as prof:
        for _ in range(3):
            count(100_000)
    loops = by_kind(prof, "loop")
    assert len(loops) >= 3 and loops[0].name.endswith("count") and HERE in loops[0].where


def test_staged_graphs():
    @dyncomp.compile
    def positive(x):
        y = np.tanh(x)
        kept = y[y > 0]
        return np.exp(kept) + kept.sum()

    x = np.linspace(-1, 1, 200)
    positive(x)
    with dyncomp.profile() as prof:
        positive(x)
    assert len(by_kind(prof, "graph")) >= 1 and by_kind(prof, "kernel")


def test_graphs_inside_graphs(square):
    inner = dyncomp.compile(smooth)
    inner(square)

    @dyncomp.allow_in_graph
    def through(x):
        return inner(x)

    @dyncomp.compile
    def outer(x):
        return through(x * 2.0) + 1.0

    outer(square)
    with dyncomp.profile() as prof:
        outer(square)
    graphs = by_kind(prof, "graph")
    assert {event.name for event in graphs} >= {"outer"}
    names = [event.name for event in graphs]
    if "smooth" in names:
        around = graphs[names.index("outer")]
        within = graphs[names.index("smooth")]
        assert around.start_ns <= within.start_ns and within.ns < around.ns


def test_room_is_bounded(square):
    fast = dyncomp.compile(smooth)
    fast(square)
    with dyncomp.profile(max_events=5) as prof:
        for _ in range(20):
            fast(square)
    assert len(prof.events) == 5 and prof.dropped > 0
    assert "more events were dropped" in str(prof)


def test_a_forked_child_has_no_part_in_it(square):
    fast = dyncomp.compile(smooth)
    fast(square)
    with dyncomp.profile() as prof:
        fast(square)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                fast(square)
                own = dyncomp.profile()
                with own:
                    fast(square)
                good = not prof.events and len(by_kind(own, "graph")) == 1
                status = 0 if good else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        fast(square)
    assert len(by_kind(prof, "graph")) == 2


def test_tables(square):
    fast = dyncomp.compile(two_kernels)
    with dyncomp.profile() as prof:
        fast(square, square)
        fast(square, square)
    lines = prof.table(sort="self", top=3).splitlines()
    assert len(lines) == 6 and lines[0].split()[:3] == ["kind", "name", "calls"] and lines[-1].startswith("…")
    own = [row["self_ns"] for row in prof.to_dict()["rows"]]
    assert own == sorted(own, reverse=True)
    names = [line.split()[1] for line in prof.table(sort="name").splitlines()[2:]]
    assert names == sorted(names)
    text = str(prof)
    assert "two_kernels" in text and "compiling: capture" in text and HERE in text
    with pytest.raises(ValueError, match="one of self, total, calls, name"):
        prof.table(sort="time")
    with pytest.raises(ValueError, match="top=-1"):
        prof.table(top=-1)


def test_rich_tables(square):
    console = pytest.importorskip("rich.console")
    with dyncomp.profile() as prof:
        dyncomp.compile(smooth)(square)
    made = console.Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    made.print(prof)
    made.file.close()
    assert "smooth" in made.export_text()


def test_wrong_use():
    prof = dyncomp.profile()
    with pytest.raises(RuntimeError, match="with dyncomp.profile"):
        _ = prof.events
    assert "not entered" in repr(prof) and "nothing" in str(prof)
    with prof:
        assert "open" in repr(prof)
    with pytest.raises(RuntimeError, match="entered before"):
        prof.__enter__()
    with pytest.raises(ValueError, match="max_events"):
        dyncomp.profile(max_events=-1)
    with pytest.raises(ValueError, match="rank"):
        dyncomp.profile(rank=-1)


def test_own_times_of_spans():
    found = [
        Raw("call", "f", "", 1, 0, 100, {}),
        Raw("graph", "f", "", 1, 10, 60, {}),
        Raw("kernel", "k", "", 1, 10, 30, {}),
        Raw("kernel", "k", "", 1, 30, 60, {}),
        Raw("call", "f", "", 1, 70, 90, {}),
        Raw("call", "f", "", 2, 20, 50, {}),
    ]
    made = events_of(reversed(found), 0)
    assert [(e.thread, e.self_ns) for e in made] == [(1, 30), (1, 0), (1, 20), (2, 30), (1, 30), (1, 20)]
    assert [e.is_nested for e in made] == [False, False, False, False, False, True]
