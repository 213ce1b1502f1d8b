"""Many random programs outside pytest: ``python -m tests.capture.random_run --count 20000 --jobs 2``.

Each seed's program runs plainly and compiled, in child processes so that a crash is seen and survived.
Programs that do not end as plain Python are left out. Prints each program that differs, and a closing line;
exit status 1 if there was any. ``python -m tools.reduce_program SEED`` shrinks one.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import logging
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import dyncomp

from .comparing import call
from .random_helpers import Maker
from .random_programs import seeded
from .test_random_programs import compare, load

BATCH = 25
SECONDS_PLAIN = 0.5  # of processor time, for all calls of a program
WAIT = 20  # times the limit, on a busy machine, until a program counts as one that hangs
ENDLESS = "endless"


def check(task: tuple[int, dict[str, Any]]) -> str | None:
    """The difference that a seed's program shows, in words; ``None`` for none."""
    seed, settings = task
    source, makers = seeded(seed)
    if not _ends(source, makers):
        return ENDLESS
    found = check_source(source, makers, {"dynamic": True if seed % 5 == 0 else None, **settings})
    return found and f"--- seed {seed}: {found}"


def check_source(source: str, makers: list[Maker], settings: dict[str, Any]) -> str | None:
    """The same of a program."""
    gc.disable()  # so that what is let go of late is seen, each time
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            compare(source, makers, **settings)
    except BaseException as error:
        return f"{type(error).__name__}\n{error}"
    finally:
        dyncomp.reset()
        gc.collect()
    return None


class _Endless(BaseException):
    """The program did not end in time."""


def _interrupt(*_: object) -> None:
    raise _Endless


def _ends(source: str, makers: list[Maker]) -> bool:
    """Whether a program comes to its end as plain Python: some loop for ever, or nearly so."""
    function, _ = load(source, "/random/endless.py")
    signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PLAIN)
    try:
        for maker in makers:
            call(function, maker())
    except _Endless:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return True


def batch(tasks: list[tuple[int, dict[str, Any]]], results: Any, limit: float) -> None:
    """What one child process does; it tells each seed before it starts, so that a crash names it."""
    for task in tasks:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + limit) + 1, hard))
        results.put((task[0], "begun"))
        results.put((task[0], check(task)))


def run_batch(context: Any, tasks: list[tuple[int, dict[str, Any]]], limit: float) -> Iterator[str]:
    """Differences of a batch; where the child dies or hangs, the batch goes on behind that seed."""
    while tasks:
        results = context.Queue()
        child = context.Process(target=batch, args=(tasks, results, limit))
        child.start()
        done, current = 0, tasks[0][0]
        deadline = time.monotonic() + WAIT * limit
        while done < len(tasks) and (child.is_alive() or not results.empty()):
            try:
                seed, found = results.get(timeout=1.0)
            except Exception:
                if time.monotonic() > deadline:
                    child.kill()
                continue
            if found == "begun":
                current, deadline = seed, time.monotonic() + WAIT * limit
                continue
            done += 1
            if found is not None:
                yield found
        child.join(5)
        if done < len(tasks):
            yield f"--- seed {current}: the process died (exit code {child.exitcode})"
            done += 1
        tasks = tasks[done:]


def worker(jobs: Any, report: Any, limit: float) -> None:
    """Batches until none is left."""
    context = multiprocessing.get_context("fork")
    while (tasks := jobs.get()) is not None:
        for found in run_batch(context, tasks, limit):
            report.put(found)
        report.put(len(tasks))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of processor time for one program")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args(arguments)
    logging.getLogger("dyncomp").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    context = multiprocessing.get_context("fork")
    jobs, report = context.Queue(), context.Queue()
    seeds = range(options.first, options.first + options.count)
    for start in range(0, len(seeds), BATCH):
        jobs.put([(seed, {"backend": options.backend}) for seed in seeds[start : start + BATCH]])
    workers = [
        context.Process(target=worker, args=(jobs, report, options.limit)) for _ in range(options.jobs)
    ]
    for process in workers:
        jobs.put(None)
        process.start()
    begin, done, differing, endless = time.monotonic(), 0, 0, 0
    while done < options.count:
        found = report.get()
        if isinstance(found, int):
            done += found
            if options.progress and done % 100 < BATCH:
                print(f"{done} done, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        elif found == ENDLESS:
            endless += 1
        else:
            differing += 1
            print(found, flush=True)
    seconds = time.monotonic() - begin
    print(f"{done - endless} programs, {differing} differing, {endless} endless, {seconds:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
