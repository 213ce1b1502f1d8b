"""Profiles as trace events: the format, and the traces of several processes as one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dyncomp

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import numpy as np
import dyncomp

@dyncomp.compile
def f(x):
    return np.tanh(x).sum()

with dyncomp.profile() as prof:
    for _ in range(3):
        f(np.ones(1000))
prof.save(sys.argv[1])
"""


def check(trace):
    """The trace-event format: see its description by the Chromium project."""
    assert isinstance(trace["traceEvents"], list) and trace["displayTimeUnit"] == "ms"
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str) and event["ph"] in ("X", "M")
        assert type(event["pid"]) is int and type(event["tid"]) is int and isinstance(event["args"], dict)
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0 and isinstance(event["cat"], str)
        else:
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]


def test_format(tmp_path):
    fast = dyncomp.compile(lambda x: np.exp(x) @ x)
    with dyncomp.profile(rank=3) as prof:
        fast(np.ones((20, 20)))
        fast(np.ones((20, 20)))
    prof.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    check(trace)
    whole = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(whole) == len(prof.events)
    product = next(event for event in whole if event["cat"] == "product")
    assert product["args"]["bytes"] == 3 * 20 * 20 * 8 and __file__ in product["args"]["where"]
    assert product["pid"] == os.getpid() and trace["dyncomp"]["rank"] == 3
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"]
    assert names == ["MainThread"]
    # what runs within another event lies within it, in microseconds
    for event in whole:
        for other in whole:
            overlap = event["ts"] < other["ts"] < event["ts"] + event["dur"]
            assert not overlap or other["ts"] + other["dur"] <= event["ts"] + event["dur"] + 0.01


def run(path, rank):
    environment = {**os.environ, "RANK": str(rank), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", PROGRAM, path], env=environment, check=True, timeout=120)


def test_merged_ranks(tmp_path):
    paths = [tmp_path / f"{rank}.json" for rank in (0, 1)]
    for rank, path in enumerate(paths):
        run(path, rank)
    dyncomp.profile.merge([paths[1], paths[0]], tmp_path / "all.json")
    merged = json.loads((tmp_path / "all.json").read_text())
    check(merged)
    spans = {
        pid: [(e["ts"], e["ts"] + e["dur"]) for e in merged["traceEvents"] if e["pid"] == pid and "dur" in e]
        for pid in (0, 1)
    }
    # one process ran after the other, by one clock
    assert min(start for start, _ in spans[0]) < 1e6
    assert max(end for _, end in spans[0]) < min(start for start, _ in spans[1])
    names = [e["args"]["name"] for e in merged["traceEvents"] if e["name"] == "process_name"]
    assert len(names) == 2 and all(name.startswith("rank ") for name in names)


def test_machines_are_aligned_by_the_time_of_day(tmp_path):
    def trace(name, host, rank, monotonic, unix):
        about = {"format": 1, "rank": rank, "pid": 7, "host": host, "boot": host, "dropped": 0}
        about |= {"monotonic_ns": monotonic, "unix_ns": unix}
        event = {
            "ph": "X",
            "name": name,
            "cat": "kernel",
            "ts": 1.0,
            "dur": 2.0,
            "pid": 7,
            "tid": 7,
            "args": {},
        }
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"traceEvents": [event], "displayTimeUnit": "ms", "dyncomp": about}))
        return path

    paths = [
        trace("a", "one", None, 5_000_000, 1_000_000_000),
        trace("b", "one", None, 6_000_000, 99),  # its time of day was set
        trace("c", "two", None, 1, 1_000_500_000),
    ]
    dyncomp.profile.merge(paths, tmp_path / "all.json")
    merged = json.loads((tmp_path / "all.json").read_text())
    found = {e["name"]: (e["ts"], e["pid"]) for e in merged["traceEvents"] if e["ph"] == "X"}
    assert found == {"a": (1.0, 0), "b": (1001.0, 1), "c": (501.0, 2)}


def test_other_files_are_not_merged(tmp_path):
    with pytest.raises(ValueError, match="no traces"):
        dyncomp.profile.merge([], tmp_path / "all.json")
    for text in ("nothing", "[]", '{"traceEvents": []}', '{"traceEvents": [], "dyncomp": {"format": 99}}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ValueError, match=r"other\.json is not a trace"):
            dyncomp.profile.merge([tmp_path / "other.json"], tmp_path / "all.json")


def test_entries_from_disk_have_names(tmp_path):
    """A second process finds the function on disk, captures nothing, and shows the same kernels and lines."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DYNCOMP_WARM_START": "1"}
    environment["DYNCOMP_CACHE_DIR"] = str(tmp_path / "cache")
    found = []
    for number in range(2):
        path = tmp_path / f"{number}.json"
        command = [sys.executable, str(script), str(path)]
        subprocess.run(command, env=environment, check=True, timeout=120)
        events = json.loads(path.read_text())["traceEvents"]
        found.append([(e["cat"], e["name"], e["args"]) for e in events if e["ph"] == "X"])
    kernels = [[event for event in events if event[0] == "kernel"] for events in found]
    assert kernels[0] == kernels[1] and len(kernels[0]) == 3
    assert f"{script}:8" in kernels[1][0][2]["where"] and kernels[1][0][1].endswith("_f")
    assert any(event[0] == "capture" for event in found[0])
    assert not any(event[0] == "capture" for event in found[1])
    assert any(event[1] == "load f from disk" for event in found[1])
