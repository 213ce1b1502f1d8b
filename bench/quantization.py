"""``python -m bench.quantization``: accuracy and time of quantized graphs (``QUANTIZATION.md``).

Two models of scikit-learn's digits (1,797 images of 8 x 8; the last 450 are the test set), trained here: a
perceptron of two hidden layers and a small CNN. Each is run in float32, with 8-bit weights, statically
quantized (calibrated on 256 images of the training set), and trained for quantization. Then layers alone, of
sizes at which time matters. All are ``GraphFunction``s compiled by the default backend; times are medians,
of layers alone the best of many calls in turn.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dyncomp
from dyncomp.transforms import calibrate, convert, prepare, quantize_static, quantize_weights

from . import machine

REPORT = Path(__file__).with_name("QUANTIZATION.md")
TEST = 450
CALIBRATION = 256
EPOCHS = 30
FORMS = ("float32", "int8 weights", "static int8", "trained int8")
LAYERS = ((1, 1024), (4, 1024), (64, 1024), (512, 512), (1, 4096))


def digits() -> tuple[Any, Any, Any, Any]:
    """Images and labels to train on, and to test with."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = torch.from_numpy((images / 16).astype(np.float32)).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(labels)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    train, test = order[:-TEST], order[-TEST:]
    return x[train], y[train], x[test], y[test]


def perceptron() -> Any:
    nn = torch.nn
    hidden = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(128, 10))


def cnn() -> Any:
    nn = torch.nn
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))


MODELS: dict[str, Callable[[], Any]] = {"perceptron": perceptron, "CNN": cnn}


def train(model: Any, x: Any, y: Any, epochs: int, rate: float) -> None:
    """Train a model, compiled."""
    compiled = dyncomp.compile(model.train())
    optimizer = torch.optim.Adam(model.parameters(), rate)
    generator = torch.Generator().manual_seed(1)
    for _ in range(epochs):
        order = torch.randperm(len(y), generator=generator)
        for batch in order[: len(y) // 64 * 64].split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(compiled(x[batch]), y[batch]).backward()
            optimizer.step()
    model.eval()


def forms(model: Any, example: Any, dynamic: Any, ranges: Any) -> dict[str, Any]:
    """The functions by form, for arguments like ``example``."""
    g = dyncomp.symbolic_trace(model, (example,), dynamic=dynamic)
    static = quantize_static(g, ranges=ranges)
    return {"float32": g, "int8 weights": quantize_weights(g), "static int8": static}


def times_us(
    calls: Sequence[Callable[[], Any]],
    seconds: float = 2.0,
    choose: Callable[[Sequence[float]], float] = statistics.median,
) -> list[float]:
    """The median time (or another one) of each call, measured in turns."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while len(times[0]) < 9 or time.perf_counter() < end:
        for call, found in zip(calls, times):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return [choose(found) * 1e6 for found in times]


def weight_bytes(g: Any) -> int:
    return sum(np.asarray(array).nbytes for array in g.constants.values())


def model_rows(name: str) -> list[str]:
    x, y, test, labels = digits()
    torch.manual_seed(0)
    model = MODELS[name]()
    train(model, x, y, EPOCHS, 2e-3)
    ranges = calibrate(dyncomp.symbolic_trace(model, (x[:64],)), x[:CALIBRATION].split(64))
    by_form = forms(model, test, {"input": 0}, ranges)
    single = forms(model, test[:1], None, ranges)
    batch = forms(model, test[:256], None, ranges)
    prepared = prepare(model)
    train(prepared, x, y, EPOCHS // 3, 5e-4)
    by_form["trained int8"] = convert(prepared, (test,), dynamic={"input": 0})
    single["trained int8"] = convert(prepared, (test[:1],))
    batch["trained int8"] = convert(prepared, (test[:256],))
    one = times_us([functools.partial(single[form], test[:1]) for form in FORMS])
    many = times_us([functools.partial(batch[form], test[:256]) for form in FORMS])
    rows = []
    for k, form in enumerate(FORMS):
        right = float((by_form[form](test).argmax(1) == labels).float().mean())
        size = weight_bytes(by_form[form]) / 1024
        rows.append(f"| {name} | {form} | {right:.1%} | {size:.1f} | {one[k]:.0f} | {many[k]:.0f} |")
    return rows


def product_by(w: Any) -> Callable[[Any], Any]:
    def product(x: Any) -> Any:
        return x @ w

    return product


def layer_rows() -> list[str]:
    rows = []
    rng = np.random.default_rng(0)
    for count, size in LAYERS:
        w = rng.standard_normal((size, size)).astype(np.float32)
        x = rng.standard_normal((count, size)).astype(np.float32)
        g = dyncomp.symbolic_trace(product_by(w), (x,))
        made = (g, quantize_weights(g), quantize_static(g, [x]))
        times = times_us([functools.partial(f, x) for f in made], choose=min)
        rows.append(f"| {count} x {size} x {size} | {' | '.join(f'{t:.0f}' for t in times)} |")
    return rows


def page(threads: int, command: str) -> str:
    lines = [
        "# Quantization",
        "",
        machine.headline(command, threads),
        "",
        f"Digits of scikit-learn, {TEST} images to test with. Times of a call in µs.",
        "",
        "| model | form | accuracy | constants, KiB | 1 image | 256 images |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name in MODELS:
        lines += model_rows(name)
    lines += [
        "",
        "One product `x @ w` of float32 arrays, best of many calls in turn, µs:",
        "",
        "| product | float32 | int8 weights | static int8 |",
        "| --- | ---: | ---: | ---: |",
        *layer_rows(),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quantization", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}, up to its remarks")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    command = "python -m bench.quantization" + (" --write" if given.write else "")
    text = page(given.threads, command)
    if given.write:
        remarks = ""
        if REPORT.exists():
            remarks = REPORT.read_text(encoding="utf-8").partition("\n## Remarks")[2]
        REPORT.write_text(text + (f"\n## Remarks{remarks}" if remarks else ""), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
