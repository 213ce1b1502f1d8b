"""Many random programs outside pytest: ``python -m tests.capture.random_run --count 20000 --jobs 2``.

Each seed's program runs plainly and compiled, in child processes so that a crash is seen and survived. Prints
each program that differs, and a closing line; exit status 1 if there was any.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import logging
import multiprocessing
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import dyncomp

from .random_programs import seeded
from .test_random_programs import compare

BATCH = 25


def check(task: tuple[int, dict[str, Any]]) -> str | None:
    """The difference that a seed's program shows, in words; ``None`` for none."""
    seed, settings = task
    dynamic = True if seed % 5 == 0 else None
    gc.disable()  # so that what is let go of late is seen, each time
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            compare(*seeded(seed), dynamic=dynamic, **settings)
    except BaseException as error:
        return f"--- seed {seed}: {type(error).__name__}\n{error}"
    finally:
        dyncomp.reset()
        gc.collect()
    return None


def batch(tasks: list[tuple[int, dict[str, Any]]], results: Any) -> None:
    """What one child process does; it tells each seed before it starts, so that a crash names it."""
    for task in tasks:
        results.put((task[0], "begun"))
        results.put((task[0], check(task)))


def run_batch(context: Any, tasks: list[tuple[int, dict[str, Any]]], limit: float) -> Iterator[str]:
    """Differences of a batch; where the child dies or hangs, the batch goes on behind that seed."""
    while tasks:
        results = context.Queue()
        child = context.Process(target=batch, args=(tasks, results))
        child.start()
        done, current = 0, tasks[0][0]
        deadline = time.monotonic() + limit
        while done < len(tasks) and (child.is_alive() or not results.empty()):
            try:
                seed, found = results.get(timeout=1.0)
            except Exception:
                if time.monotonic() > deadline:
                    child.kill()
                continue
            if found == "begun":
                current, deadline = seed, time.monotonic() + limit
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
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program")
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
    begin, done, differing = time.monotonic(), 0, 0
    while done < options.count:
        found = report.get()
        if isinstance(found, int):
            done += found
        else:
            differing += 1
            print(found, flush=True)
    print(f"{done} programs, {differing} differing, {time.monotonic() - begin:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
