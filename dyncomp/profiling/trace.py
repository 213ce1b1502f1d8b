"""Profiles as trace events (JSON), which https://ui.perfetto.dev and chrome://tracing show."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..dataclass import dataclass
from .events import Event

Json = dict[str, object]
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Clock:
    """One moment by two clocks, in nanoseconds: ``monotonic`` counts since the machine started, and is the
    same for all its processes; ``unix`` is what machines agree on, as well as they keep time."""

    monotonic: int
    unix: int


def clock(monotonic: int) -> Clock:
    """A moment of the past by both clocks."""
    ago = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - monotonic
    return Clock(monotonic, time.time_ns() - ago)


def trace_of(
    events: Iterable[Event], began: Clock, rank: int | None, threads: Mapping[int, str], dropped: int
) -> Json:
    """One process's trace; times are microseconds after ``began``."""
    pid = os.getpid()
    name = f"pid {pid}" if rank is None else f"rank {rank} (pid {pid})"
    made: list[Json] = [_named("process_name", pid, 0, name)]
    seen: dict[int, None] = {}
    for event in events:
        seen[event.thread] = None
        args: Json = {"where": event.where} if event.where else {}
        args.update(event.args)
        made.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.kind,
                "ts": event.start_ns / 1e3,
                "dur": event.ns / 1e3,
                "pid": pid,
                "tid": event.thread,
                "args": args,
            }
        )
    made += [_named("thread_name", pid, tid, threads.get(tid, f"thread {tid}")) for tid in seen]
    about: Json = {
        "format": _FORMAT,
        "rank": rank,
        "pid": pid,
        "host": platform.node(),
        "boot": _boot(),
        "monotonic_ns": began.monotonic,
        "unix_ns": began.unix,
        "dropped": dropped,
    }
    return {"traceEvents": made, "displayTimeUnit": "ms", "dyncomp": about}


def _named(what: str, pid: int, tid: int, name: str) -> Json:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _boot() -> str:
    """The machine since it was started; processes of one share a monotonic clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def write(trace: Mapping[str, object], path: str | os.PathLike[str]) -> None:
    """Write a trace to a file."""
    Path(path).write_text(json.dumps(trace, default=str), encoding="utf-8")


def merge(paths: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Write the traces of several processes as one, a row of threads for each rank.

    Times are after the first profile began: by the machine's own clock where processes shared a machine,
    else by the time of day, which is as exact as the machines keep it. Processes are numbered by rank where
    all have ranks that differ, else in the order given.

    Raises ``ValueError`` for a file that :meth:`profile.save` did not write, and where no files are given.
    """
    if not paths:
        raise ValueError("no traces to merge")
    traces = [_read(path) for path in paths]
    about = [trace[0] for trace in traces]
    ranks = [facts["rank"] for facts in about]
    by_rank = None not in ranks and len(set(map(str, ranks))) == len(ranks)
    shifts = _starts(about)
    first = min(shifts)
    merged: list[Json] = []
    for number, (facts, events) in enumerate(traces):
        pid = ranks[number] if by_rank else number
        name = f"{facts['host']}, pid {facts['pid']}"
        merged.append(_named("process_name", _int(pid), 0, f"rank {pid}: {name}" if by_rank else name))
        for event in events:
            if event.get("name") == "process_name":
                continue
            moved = {**event, "pid": pid}
            if event.get("ph") != "M":
                moved["ts"] = _float(event["ts"]) + (shifts[number] - first) / 1e3
            merged.append(moved)
    write({"traceEvents": merged, "displayTimeUnit": "ms", "dyncomp": {"merged": about}}, out)


def _starts(about: Sequence[Json]) -> list[int]:
    """When the profiles began, by one clock, in nanoseconds."""
    reference = about[0]
    starts = []
    for facts in about:
        same = facts["boot"] and facts["boot"] == reference["boot"] and facts["host"] == reference["host"]
        clock_name = "monotonic_ns" if same else "unix_ns"
        starts.append(_int(facts[clock_name]) - _int(reference[clock_name]))
    return starts


def _read(path: str | os.PathLike[str]) -> tuple[Json, list[Json]]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        about, events = found["dyncomp"], found["traceEvents"]
        if about["format"] != _FORMAT:
            raise KeyError("format")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a trace that dyncomp.profile has saved ({error})") from error
    return about, events


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"a trace has {value!r} where a number is to be")
    return value


def _float(value: object) -> float:
    if not isinstance(value, (int, float)):
        raise ValueError(f"a trace has {value!r} where a number is to be")
    return float(value)
