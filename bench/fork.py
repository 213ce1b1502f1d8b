"""``python -m bench.fork``: an ensemble of bidirectional LSTMs, one after the other and with ``fork``
(``FORK.md``).

The program is that of PyTorch's tutorial on ``fork``: several models, each of two LSTMs over the sequence and
over the reversed one, and the mean of their results, without gradients. Ways are measured in turn, so that
what else the machine does meets all of them; a figure is the median of the rounds, and the least in brackets.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dyncomp

from . import machine

REPORT = Path(__file__).with_name("FORK.md")


def ensemble(models: int, width: int, cells: bool) -> tuple[Any, Any]:
    """The plain ensemble and the one that forks, of the same weights. ``cells``: LSTMs as loops over time in
    Python."""
    import torch

    class Loop(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = torch.nn.LSTMCell(width, width)

        def forward(self, x: Any) -> tuple[Any, None]:
            h = c = torch.zeros(x.shape[1], width)
            found = []
            for k in range(x.shape[0]):
                h, c = self.cell(x[k], (h, c))
                found.append(h)
            return torch.stack(found), None

    def layer() -> Any:
        return Loop() if cells else torch.nn.LSTM(width, width)

    class Bidirectional(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.forwards, self.backwards = layer(), layer()

        def forward(self, x: Any) -> Any:
            back = self.backwards(torch.flip(x, [0]))[0]
            return torch.cat([self.forwards(x)[0], torch.flip(back, [0])], 2)

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.models = torch.nn.ModuleList([Bidirectional() for _ in range(models)])

        def forward(self, x: Any) -> Any:
            return torch.stack([model(x) for model in self.models]).mean(0)

    class Forking(Plain):
        def forward(self, x: Any) -> Any:
            futures = [dyncomp.fork(model, x) for model in self.models]
            return torch.stack([dyncomp.wait(future) for future in futures]).mean(0)

    torch.manual_seed(0)
    plain, forking = Plain().eval(), Forking().eval()
    forking.load_state_dict(plain.state_dict())
    return plain, forking


def measured(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each way in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for call in ways.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in ways.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def rows(steps: int, batch: int, width: int, models: int, cells: bool, rounds: int) -> list[str]:
    import torch

    plain, forking = ensemble(models, width, cells)
    x = torch.randn(steps, batch, width)
    whole = {"unroll_limit": steps, "unroll_ops": 100_000}
    together = dyncomp.compile(plain, options={**whole, "parallel_branches": True})
    apart = dyncomp.compile(plain, options=whole)
    each = [dyncomp.compile(m, options={"unroll_limit": steps, "unroll_ops": 100_000}) for m in plain.models]

    def outside() -> Any:
        futures = [dyncomp.fork(model, x) for model in each]
        return torch.stack([dyncomp.wait(future) for future in futures]).mean(0)

    with torch.no_grad():
        want = plain(x)
        ways = {
            "plain": lambda: plain(x),
            "plain, forked": lambda: forking(x),
            "compiled, branches off": lambda: apart(x),
            "compiled": lambda: together(x),
            "models compiled, forked": outside,
        }
        for name, call in ways.items():
            torch.testing.assert_close(call(), want, rtol=1e-4, atol=1e-5, msg=name)
        seconds = measured(ways, rounds)
    usual = statistics.median(seconds["plain"])
    kind = "LSTMCell in a loop" if cells else "nn.LSTM"
    made = []
    for name, values in seconds.items():
        middle = statistics.median(values)
        times = f"{1e3 * middle:.1f} ({1e3 * min(values):.1f})"
        program = f"{kind} {steps} x {batch} x {width}, {models}"
        made.append(f"| {program} | {name} | {times} | **{usual / middle:.2f}x** |")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--size", action="append", default=[], help="STEPS,BATCH,WIDTH,MODELS[,cells]; repeated"
    )
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}")
    given = parser.parse_args()
    sizes = given.size or ["50,50,1024,4"]
    lines = [
        "| program: steps x batch x width, models | way | ms: median (least) | plain / this |",
        "| --- | --- | ---: | ---: |",
    ]
    for size in sizes:
        parts = size.split(",")
        lines += rows(*map(int, parts[:4]), cells=parts[4:] == ["cells"], rounds=given.rounds)
        print("\n".join(lines), flush=True)
    if given.write:
        command = (
            f"python -m bench.fork {' '.join(f'--size {s}' for s in sizes)} --rounds {given.rounds} --write"
        )
        head = [
            "# Tasks: an ensemble of LSTMs",
            "",
            machine.headline(command, machine.cores()),
            "",
            *(__doc__ or "").strip().splitlines()[2:],
            "",
        ]
        REPORT.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
