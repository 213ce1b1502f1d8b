"""Random straight-line NumPy programs, and their gradients, for a batch at once:
``python -m tests.aot_autograd.random_batches --from 0 --count 1000`` prints programs that give something else
than for each element of the batch."""

from __future__ import annotations

import argparse
import linecache
import random

import numpy as np

import dyncomp

from .random_gradients import program

SIZE = 3
AXES = [(0, 0), (0, None), (None, 0), (-1, 0), (1, -2), (2, None)]


def difference(seed: int) -> str:
    """How a program for a batch differs from the loop over it; nothing where it does not."""
    text, n = program(seed)
    name = f"<batches {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, object] = {"np": np}
    exec(compile(text, name, "exec"), space)
    f = space["f"]
    axes = random.Random(seed).choice(AXES)
    rng = np.random.default_rng(seed)
    single = [rng.standard_normal((n, n)) for _ in axes]
    stacks = [rng.standard_normal((SIZE, n, n)) for _ in axes]
    given = [x if a is None else np.moveaxis(s, 0, a) for a, x, s in zip(axes, single, stacks)]
    elements = [[x if a is None else s[i] for a, x, s in zip(axes, single, stacks)] for i in range(SIZE)]
    gradient = dyncomp.grad(f, argnums=(0, 1))
    try:
        values, (by_x, by_y) = dyncomp.vmap(lambda x, y: (f(x, y), gradient(x, y)), axes)(*given)
        total = dyncomp.grad(lambda x, y: dyncomp.vmap(f, axes)(x, y).sum(), argnums=(0, 1))(*given)
    except dyncomp.DyncompError as error:
        return f"{text}{axes}: {error}"
    expected = [(f(*args), *gradient(*args)) for args in elements]
    wanted = list(map(np.stack, zip(*expected)))
    summed = [w.sum(0) if a is None else np.moveaxis(w, 0, a) for a, w in zip(axes, wanted[1:])]
    for what, found, right in zip(
        ("values", "by x", "by y", "sum by x", "sum by y"), (values, by_x, by_y, *total), (*wanted, *summed)
    ):
        if not np.allclose(found, right, rtol=1e-7, atol=1e-9 * (1 + np.abs(right).max()), equal_nan=True):
            return f"{text}{axes}, {what}: {found}\ninstead of {right}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        found = difference(seed)
        if found:
            wrong += 1
            print(f"--- seed {seed}\n{found}\n", flush=True)
        if seed % 50 == 49:
            dyncomp.reset()
    print(f"{options.count} programs, {wrong} differ")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
