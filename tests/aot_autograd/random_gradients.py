"""Random straight-line NumPy programs with differentiable operations, and their gradients:
``python -m tests.aot_autograd.random_gradients --from 0 --count 1000`` prints programs whose gradients differ
from central differences."""

from __future__ import annotations

import argparse
import linecache
import random

import numpy as np

import dyncomp

STEP = 1e-6
# statements that make ``{o}`` of square matrices ``{a}``, ``{b}``, ``{c}``, with values of ordinary size
STATEMENTS = [
    "{o} = {a} + {b} * {c}",
    "{o} = {a} * {b} - {c}",
    "{o} = {a} / (2.0 + np.abs({b}))",
    "{o} = np.sin({a}) * np.cos({b})",
    "{o} = np.tanh({a} @ {b})",
    "{o} = np.exp(-({a} ** 2)) + {b}",
    "{o} = np.sqrt(1.0 + {a} ** 2) - {b}",
    "{o} = np.log1p({a} ** 2)",
    "{o} = np.where({a} > {b}, {a} * {c}, {b})",
    "{o} = np.maximum({a}, {b} - 0.3)",
    "{o} = np.clip({a}, -0.7, 0.9) * {b}",
    "{o} = {a}.T + {b}",
    "{o} = np.roll({a}, {k}, axis={x}) * {b}",
    "{o} = {a}[::-1] - {b}[:, ::-1]",
    "{o} = np.cumsum({a}, axis={x}) * 0.3",
    "{o} = np.cumprod(np.tanh({a}) + 0.1, axis={x})",
    "{o} = np.sort({a}, axis={x})",
    "{o} = {a} - {a}.mean(axis={x}, keepdims=True)",
    "{o} = {a} / (1.0 + {a}.std())",
    "{o} = np.concatenate([{a}[:{k}], {b}[{k}:]])",
    "{o} = {a}[np.array([2, 0, 0, 1])[:len({a})]]",
    "{o} = np.linalg.inv({a} * 0.1 + 2.0 * np.eye({n}))",
    "{o} = np.linalg.solve({a} * 0.1 + 2.0 * np.eye({n}), {b})",
    "{o} = np.linalg.cholesky({a} @ {a}.T * 0.1 + np.eye({n})) * {b}",
    "{o} = np.fft.irfft(np.fft.rfft({a}, axis=0) * (0.5 + 0.2j), n={n}, axis=0)",
    "{o} = np.abs(np.fft.fft({a})) * 0.2",
    "{o} = np.diag(np.diag({a})) + {b}",
    "{o} = np.tril({a}, {k} - 2) + np.triu({b}, 1)",
    "{o} = np.outer({a}[0], {b}[:, 1]) * 0.5",
    "{o} = np.repeat({a}[:1], {n}, axis=0) + {b}",
    "{o} = {a} * np.linalg.slogdet({b} * 0.1 + 2.0 * np.eye({n}))[1]",
    "{o} = {a} * np.prod(np.tanh({b}[0]) + 0.5)",
    "{o} = np.interp({a}, np.linspace(-3.0, 3.0, 5), np.linspace(0.0, 1.0, 5) ** 2) + {b}",
    # in place
    "{o} = {a}.copy(); {o}[{k}:] *= {b}[{k}:]",
    "{o} = np.zeros(({n}, {n})); {o}[:, {k}] = {a}[{k}]; {o} += {b}",
    "{o} = {a} * 1.0; {o}[{k}, :] = {b}[:, 0] * {o}[0, 0]",
    "{o} = np.empty_like({a}); np.multiply({a}, {b}, out={o})",
    "{o} = {a} + 0.0; {o}.T[1:] -= {b}[1:]",
    "{o} = {a} - 0.1; np.add.at({o}, np.array([0, 1, 0]), {b}[:3])",
]
ENDS = ["{a}.sum()", "({a} ** 2).mean()", "np.linalg.norm({a})", "{a}.max() + {b}.min()", "({a} * {b}).sum()"]
ENDS += ["np.log(np.exp({a}).sum())", "{a}.var() + np.median({b})", "np.trace({a} @ {b})"]


def program(seed: int) -> tuple[str, int]:
    """The text of a function ``f(x, y)`` of two square matrices, and their size."""
    rng = random.Random(seed)
    n = rng.choice([3, 4])
    names = ["x", "y"]
    lines = []
    for number in range(rng.randint(2, 8)):
        made = f"v{number}"
        given = {"a": rng.choice(names), "b": rng.choice(names), "c": rng.choice(names)}
        facts = {"k": rng.randint(1, 2), "x": rng.randint(0, 1), "n": n}
        lines.append("    " + rng.choice(STATEMENTS).format(o=made, **given, **facts))
        names.append(made)
    end = rng.choice(ENDS).format(a=names[-1], b=rng.choice(names))
    return "\n".join(["def f(x, y):", *lines, f"    return {end}", ""]), n


def with_breaks(text: str, seed: int) -> str:
    """The program with graph breaks in some places."""
    rng = random.Random(-seed - 1)
    first, *lines = text.splitlines(True)
    made = ["    graph_break()\n" * (rng.random() < 0.5) + line for line in lines]
    return "".join([first, "    graph_break()\n", *made])


def difference(seed: int, breaks: bool = False) -> str:
    """How the gradients of a program differ from central differences; nothing where they do not, or where
    these say nothing (kinks, infinite values)."""
    text, n = program(seed)
    if breaks:
        text = with_breaks(text, seed)
    name = f"<gradients {seed} {breaks}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, object] = {"np": np, "graph_break": dyncomp.graph_break}
    exec(compile(text, name, "exec"), space)
    f = space["f"]
    rng = np.random.default_rng(seed)
    args = [rng.standard_normal((n, n)) for _ in range(2)]
    try:
        gradients = dyncomp.grad(f, argnums=(0, 1))(*args)
    except dyncomp.NotDifferentiableError as error:
        return f"{text}{error}"
    for position in range(2):
        direction = rng.standard_normal((n, n))
        slopes = []
        for step in (STEP, STEP / 2, -STEP / 2):
            moved = [a + step * direction if k == position else a for k, a in enumerate(args)]
            slopes.append((f(*moved) - f(*args)) / step)
        central = (slopes[1] + slopes[2]) / 2
        # at a kink the slopes of both sides differ
        if not np.isfinite(slopes).all() or abs(slopes[1] - slopes[2]) > 1e-2 * (1 + abs(central)):
            continue
        found = (gradients[position] * direction).sum()
        if not abs(found - central) <= 1e-5 * (1 + abs(central)) + abs(slopes[0] - slopes[1]) * 0.1:
            return f"{text}by {'xy'[position]}: {found} instead of {central}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--breaks", action="store_true", help="with graph breaks in random places")
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        found = difference(seed, options.breaks)
        if found:
            wrong += 1
            print(f"--- seed {seed}\n{found}\n", flush=True)
        if seed % 50 == 49:
            dyncomp.reset()
    print(f"{options.count} programs, {wrong} differ")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
