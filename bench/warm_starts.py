"""``python -m bench.warm_starts``: first calls in fresh processes (``WARM_STARTS.md``).

Each measurement is a process of its own; imports and the making of the model are not in it. "Cold": nothing
is on disk; "kernels": kernels are, captured functions are not (``warm_start=False``); "warm": both are. With
gradients, the time of the first backward pass is added. ``--peers`` measures torch.compile as well: cold, and
with the caches that it fills. Loading is that of an archive of ``dyncomp.export``, without its first call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import machine
from .process import answer_of

REPORT = Path(__file__).with_name("WARM_STARTS.md")
LIMIT = 600.0


# -- cases ------------------------------------------------------------------------------------
def chain(length: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A NumPy function of so many operations."""
    import numpy as np

    lines = ["def f(a, b):", "    c = a"]
    names = ("sin", "cos", "tanh", "abs")
    for k in range(length // 3):
        lines.append(f"    c = np.{names[k % 4]}(c * {1 + k % 7} + b)")
    text = "\n".join([*lines, "    return c"])
    path = Path(tempfile.gettempdir()) / f"dyncomp_chain_{length}.py"
    path.write_text(f"import numpy as np\n\n{text}\n")
    sys.path.insert(0, str(path.parent))
    module = __import__(path.stem)
    return module.f, (np.linspace(0, 1, 20_000), np.linspace(1, 2, 20_000))


def _torchvision() -> None:
    """Have torchvision imported where its wheel was made for another build of torch."""
    from tests.models import vision_operators

    assert vision_operators.LIBRARY


def bert() -> tuple[Any, tuple[Any, ...]]:
    _torchvision()
    import torch
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
    model = BertModel(BertConfig(num_hidden_layers=16, **sizes)).eval()
    return model, (torch.ones(2, 32, dtype=torch.int64),)


def vision(library: str, name: str) -> tuple[Any, tuple[Any, ...]]:
    _torchvision()
    import torch

    if library == "timm":
        import timm

        return timm.create_model(name).eval(), (torch.randn(1, 3, 224, 224),)
    import torchvision

    return getattr(torchvision.models, name)().eval(), (torch.randn(1, 3, 64, 64),)


CASES: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "20 operations": lambda: chain(20),
    "300 operations": lambda: chain(300),
    "BERT, 16 layers": bert,
    "ResNet-50": lambda: vision("torchvision", "resnet50"),
    "ViT-tiny": lambda: vision("timm", "vit_tiny_patch16_224"),
    "DenseNet-121": lambda: vision("torchvision", "densenet121"),
}
TRAINED = ("BERT, 16 layers", "ResNet-50", "ViT-tiny")


# -- one measurement --------------------------------------------------------------------------
def measure(case: str, what: str) -> dict[str, float]:
    """Seconds of what is measured in this process."""
    f, args = CASES[case]()
    if what == "export":
        import dyncomp

        dyncomp.export(f, args, processors=[_level()]).save(os.environ["ARCHIVE"])
        return {"seconds": 0.0}
    if what == "load":
        import dyncomp

        start = time.perf_counter()
        dyncomp.load(os.environ["ARCHIVE"])
        return {"seconds": time.perf_counter() - start}
    return {"seconds": _first_call(_compiled(f, what), args, "trained" in what)}


def _level() -> str:
    from dyncomp.archives.processors import levels_here

    return levels_here()[-1]


def _compiled(f: Any, what: str) -> Any:
    if what.startswith("torch"):
        import torch

        return torch.compile(f)
    import dyncomp

    return dyncomp.compile(f)


def _first_call(compiled: Any, args: tuple[Any, ...], trained: bool) -> float:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    start = time.perf_counter()
    if trained:
        result = compiled(*args)
        getattr(result, "last_hidden_state", result).square().mean().backward()
    elif torch is not None:
        with torch.no_grad():
            compiled(*args)
    else:
        compiled(*args)
    return time.perf_counter() - start


# -- all of them ------------------------------------------------------------------------------
def seconds(case: str, what: str, environ: dict[str, str]) -> float | None:
    command = [sys.executable, "-m", "bench.warm_starts", "--case", case, "--what", what]
    answer = answer_of(command, LIMIT, {**os.environ, "OMP_NUM_THREADS": "1", **environ})
    if "failed" in answer:
        print(f"{case}, {what}: {answer['failed']}", file=sys.stderr)
        return None
    return float(answer["seconds"])


def row(case: str, trained: bool, repeats: int, peers: bool) -> dict[str, float | None]:
    """The measurements of one case: the first cold call, medians of the others."""
    found: dict[str, float | None] = {}
    suffix = " trained" if trained else ""
    with tempfile.TemporaryDirectory() as folder:
        environ = {"DYNCOMP_CACHE_DIR": f"{folder}/cache", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch"}
        environ["ARCHIVE"] = f"{folder}/archive.dcp"
        found["cold"] = seconds(case, f"call{suffix}", environ)
        found["kernels"] = _median(case, f"call{suffix}", {**environ, "DYNCOMP_WARM_START": "0"}, repeats)
        found["warm"] = _median(case, f"call{suffix}", environ, repeats)
        if not trained and seconds(case, "export", environ) is not None:
            found["load"] = _median(case, "load", environ, repeats)
        if peers and "operations" not in case:
            found["torch cold"] = seconds(case, f"torch{suffix}", environ)
            found["torch warm"] = _median(case, f"torch{suffix}", environ, 2)
    return found


def _median(case: str, what: str, environ: dict[str, str], repeats: int) -> float | None:
    times = [seconds(case, what, environ) for _ in range(repeats)]
    return None if None in times else statistics.median(t for t in times if t is not None)


COLUMNS = ("cold", "kernels", "warm", "load", "torch cold", "torch warm")


def table(rows: dict[str, dict[str, float | None]]) -> list[str]:
    columns = [c for c in COLUMNS if any(c in row for row in rows.values())]
    lines = [f"| first call, s | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for name, found in rows.items():
        cells = [f"{v:.3f}" if (v := found.get(column)) is not None else "–" for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--what", default="call")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"append to {REPORT.name}")
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(given.case, given.what)))
        return
    rows = {case: row(case, False, given.repeats, given.peers) for case in CASES}
    rows |= {f"{case}, trained": row(case, True, given.repeats, given.peers) for case in TRAINED}
    command = " ".join(["python -m bench.warm_starts", *sys.argv[1:]])
    text = "\n".join([machine.headline(command, 1), "", *table(rows)])
    print(text)
    if given.write:
        before = REPORT.read_text() if REPORT.exists() else "# First calls\n"
        REPORT.write_text(f"{before}\n{text}\n")


if __name__ == "__main__":
    main()
