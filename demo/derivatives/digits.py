"""Networks that read handwritten digits: plain NumPy, trained by ``dyncomp.value_and_grad`` over a dict of
weights, and once more with gradients written by hand."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import dyncomp

from ..data import digits
from ..programs import digits_network as network
from .pictures import BLUE, GREY, ORANGE, axes_side_by_side, save

Weights = dict[str, np.ndarray]
Gradient = Callable[[Weights, np.ndarray, np.ndarray], tuple[Any, Weights]]
TESTED = 360
BATCH = 64


@dataclass(frozen=True)
class Model:
    name: str
    weights: Callable[[np.random.Generator], Weights]
    scores: Callable[[Weights, np.ndarray], np.ndarray]
    loss: Callable[..., Any]
    by_hand: Gradient
    epochs: int


MODELS = (
    Model(
        "dense",
        network.dense_weights,
        network.dense_scores,
        network.dense_loss,
        network.dense_by_hand,
        epochs=60,
    ),
    Model(
        "convolutional",
        network.convolutional_weights,
        network.convolutional_scores,
        network.convolutional_loss,
        network.convolutional_by_hand,
        epochs=15,
    ),
)


@dataclass
class Adam:
    """Kingma and Ba's method, in place."""

    rate: float = 3e-3
    mean_decay: float = 0.9
    square_decay: float = 0.999
    steps: int = 0
    means: Weights = field(default_factory=dict)
    squares: Weights = field(default_factory=dict)

    def step(self, weights: Weights, gradient: Weights) -> None:
        self.steps += 1
        for name, g in gradient.items():
            mean = self.means.setdefault(name, np.zeros_like(g))
            square = self.squares.setdefault(name, np.zeros_like(g))
            mean += (1 - self.mean_decay) * (g - mean)
            square += (1 - self.square_decay) * (g * g - square)
            whole_mean = mean / (1 - self.mean_decay**self.steps)
            whole_square = square / (1 - self.square_decay**self.steps)
            weights[name] -= self.rate * whole_mean / (np.sqrt(whole_square) + 1e-8)


@dataclass(frozen=True)
class Result:
    """Of one model. ``difference``: of the losses of both runs, the largest."""

    model: Model
    own: Trained
    by_hand: Trained
    accuracy: float
    difference: float


@dataclass
class Trained:
    weights: Weights
    losses: list[float]
    first: float  # seconds of the first gradient
    gradients: float  # and of the others


def batches(rng: np.random.Generator, count: int) -> Iterator[np.ndarray]:
    order = rng.permutation(count)
    for start in range(0, count - BATCH + 1, BATCH):
        yield order[start : start + BATCH]


def train(
    model: Model,
    gradient: Gradient,
    images: np.ndarray,
    labels: np.ndarray,
    epochs: int,
    tick: Callable[[], Any],
) -> Trained:
    """From the same weights, and in the same order, whatever gives the gradients."""
    rng = np.random.default_rng(0)
    weights, adam = model.weights(rng), Adam()
    found = Trained(weights, [], 0.0, 0.0)
    for _ in range(epochs):
        for rows in batches(rng, len(labels)):
            x, y = images[rows], labels[rows]
            start = time.perf_counter()
            loss, slopes = gradient(weights, x, y)
            seconds = time.perf_counter() - start
            if adam.steps:
                found.gradients += seconds
            else:
                found.first = seconds
            adam.step(weights, slopes)
            found.losses.append(float(loss))
        tick()
    return found


def split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images and labels to learn from and to test with, drawn at random: the same people wrote both. (The
    last 360 of the file are by other writers; of these about one in fifteen is misread.)"""
    pixels, labels = digits()
    order = np.random.default_rng(1).permutation(len(labels))
    images, labels = pixels[order].reshape(-1, 8, 8) / 16, labels[order]
    return images[:-TESTED], labels[:-TESTED], images[-TESTED:], labels[-TESTED:]


def compare(model: Model, quick: bool, tick: Callable[[], Any]) -> Result:
    images, labels, test_images, test_labels = split()
    epochs = 2 if quick else model.epochs
    own = train(model, dyncomp.value_and_grad(model.loss), images, labels, epochs, tick)
    by_hand = train(model, model.by_hand, images, labels, epochs, tick)
    read = model.scores(own.weights, test_images).argmax(axis=1)
    difference = np.abs(np.subtract(own.losses, by_hand.losses)).max()
    return Result(model, own, by_hand, float(np.mean(read == test_labels)), float(difference))


def run(console: Console, folder: Path | None, quick: bool = False) -> list[Result]:
    results = []
    with Progress(console=console) as progress:
        for model in MODELS:
            epochs = 2 if quick else model.epochs
            task = progress.add_task(f"{model.name}: with dyncomp, by hand", total=2 * epochs)
            results.append(compare(model, quick, functools.partial(progress.advance, task)))
    console.print(table_of(results))
    console.print(
        "Both runs begin with the same weights and take the same batches; "
        f"their losses differ by {max(r.difference for r in results):.0e} at most."
    )
    if folder is not None:
        for path in picture(results, folder):
            console.print(f"written: {path}", highlight=False)
    return results


def table_of(results: list[Result]) -> Table:
    table = Table(title=f"Handwritten digits: {TESTED} images that were not learned", title_justify="left")
    table.add_column("network")
    for name in ("weights", "read right", "gradients", "dyncomp s", "by hand s", "ratio", "first call s"):
        table.add_column(name, justify="right")
    for r in results:
        table.add_row(
            r.model.name,
            str(sum(w.size for w in r.own.weights.values())),
            f"{100 * r.accuracy:.1f} %",
            str(len(r.own.losses)),
            f"{r.own.gradients:.2f}",
            f"{r.by_hand.gradients:.2f}",
            f"{r.by_hand.gradients / r.own.gradients:.1f}x",
            f"{r.own.first:.2f}",
        )
    return table


def picture(results: list[Result], folder: Path) -> list[Path]:
    """Losses, and digits that the last model misread."""
    figure, (curves, misread) = axes_side_by_side([5.0, 4.2])
    for r, colour in zip(results, (BLUE, ORANGE)):
        curves.plot(r.own.losses, color=colour, alpha=0.25, linewidth=0.8)
        window = np.ones(20) / 20
        curves.plot(np.convolve(r.own.losses, window, "valid"), color=colour, label=r.model.name)
    curves.set(yscale="log", xlabel="step", ylabel="loss of a batch", title="Loss")
    curves.legend()
    best = results[-1]
    _, _, images, labels = split()
    read = best.model.scores(best.own.weights, images).argmax(axis=1)
    wrong = np.flatnonzero(read != labels)
    misread.set_title(f"{len(wrong)} of {len(labels)} misread (digit, read as)")
    misread.set_axis_off()
    for place, k in enumerate(wrong[:12]):
        row, column = divmod(place, 4)
        inset = misread.inset_axes((column / 4 + 0.02, 1 - (row + 1) / 3, 0.21, 0.25))
        inset.imshow(images[k], cmap="Greys", interpolation="nearest")
        inset.set_title(f"{labels[k]}, {read[k]}", fontsize=8, color=GREY, loc="center", pad=2)
        inset.set(xticks=[], yticks=[])
    return save(figure, folder, "digits")
