"""Random NumPy programs of a wide grammar, and their derivatives: in-place writes and views, ``out=``, loops,
branches on data, containers, reductions, linear algebra, ``scipy.special``, graph breaks, single precision
and complex numbers. ``python -m tests.aot_autograd.wide_gradients --from 0 --count 1000`` prints programs
whose derivatives differ from central differences, and those that are refused."""

from __future__ import annotations

import argparse
import linecache
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dyncomp

from .wide_statements import CHANGES, ENDS, STATEMENTS

STEP = 1e-5
# which kinds of values the letters of a template stand for
LETTERS = {"a": "M", "b": "M", "c": "M", "u": "V", "v": "V", "s": "S", "t": "S", "z": "C", "w": "C"}
ARGUMENTS = {"real": {"x": "M", "y": "M", "p": "V"}, "complex": {"x": "C", "y": "M", "p": "V"}}


@dataclass(frozen=True)
class Program:
    text: str
    size: int
    kind: str
    is_plain: bool  # neither breaks nor branches on data
    is_single: bool


def program(seed: int) -> Program:
    rng = random.Random(f"wide {seed}")
    n = rng.choice([3, 4])
    kind = rng.choices(["real", "complex"], [4, 1])[0]
    is_plain = rng.random() < 0.6
    names: dict[str, list[str]] = {"M": [], "V": [], "S": [], "C": []}
    for name, letter in ARGUMENTS[kind].items():
        names[letter].append(name)
    usable = [s for s in STATEMENTS if not (is_plain and "?" in s[0])]
    lines: list[str] = []
    for number in range(rng.randint(3, 9)):
        if not is_plain and rng.random() < 0.2:
            lines.append("graph_break()")
        made = f"v{number}"
        while True:
            marks, template = rng.choice(usable)
            if _can_be_filled(template, names):
                break
        lines += _filled(rng, template, made, n, names)
        names[marks[0]].append(made)
        if rng.random() < 0.25:
            # writes into what was made: arguments may not be written to
            own = {k: [name for name in found if name.startswith("v")] for k, found in names.items()}
            kinds, template = rng.choice(CHANGES)
            if own[kinds[0]] and _can_be_filled(template, names):
                changed = rng.choice(own[kinds[0]])
                lines += _filled(rng, template, changed, n, names)
    reals = {**names, "V": [*names["V"], "p"], "S": [*names["S"], "p[0]"]}
    if not reals["M"]:
        reals["M"] = ["y"]
    end = _filled(rng, rng.choice(ENDS), "", n, reals)
    last = _filled(rng, "np.abs({z}).sum()", "", n, names) if names["C"] and kind == "complex" else ["0.0"]
    lines.append(f"return {end[0]} + 0.1 * {last[0]}")
    text = "\n    ".join([f"def f({', '.join(ARGUMENTS[kind])}):", *lines]) + "\n"
    return Program(text, n, kind, is_plain, rng.random() < 0.15)


def _can_be_filled(template: str, names: dict[str, list[str]]) -> bool:
    letters = set(re.findall(r"\{(\w)\}", template))
    return all(names[LETTERS[x]] for x in letters if x in LETTERS)


def _filled(rng: random.Random, template: str, made: str, n: int, names: dict[str, list[str]]) -> list[str]:
    def chosen(letter: str) -> str:
        found = names[LETTERS[letter]]
        # rather recent values
        return found[-1] if found and rng.random() < 0.4 else rng.choice(found or ["missing"])

    given = {letter: chosen(letter) for letter in LETTERS}
    facts = {"k": rng.randint(1, 2), "x": rng.randint(0, 1), "n": n, "r": round(rng.uniform(-0.9, 0.9), 2)}
    return template.format(o=made, q=f"q{made}", **given, **facts).split("\n    ")


def differs(seed: int, every: bool = False) -> str:
    try:
        return difference(seed, every)
    except dyncomp.NotDifferentiableError as error:
        COUNTS["refused"] += 1
        return f"refused: {program(seed).text}{error}"
    except Exception as error:
        return f"{program(seed).text}{type(error).__name__}: {error}"


def function(text: str, name: str) -> Callable[..., Any]:
    import scipy.linalg
    import scipy.special

    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {
        "np": np,
        "graph_break": dyncomp.graph_break,
        "special": scipy.special,
        "sl": scipy.linalg,
    }
    exec(compile(text, name, "exec"), space)
    found: Callable[..., Any] = space["f"]
    return found


def arguments(made: Program, seed: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    n = made.size
    found = []
    for letter in ARGUMENTS[made.kind].values():
        shape = (n,) if letter == "V" else (n, n)
        array = rng.standard_normal(shape)
        found.append(array + 1j * rng.standard_normal(shape) if letter == "C" else array)
    return found


def slope(f: Callable[..., Any], args: list[Any], position: int, direction: Any) -> tuple[Any, float] | None:
    """The central difference and how sure it is; ``None`` at a kink, or where values are not finite."""

    def at(step: float) -> Any:
        return f(*(a + step * direction if k == position else a for k, a in enumerate(args)))

    with np.errstate(all="ignore"):
        middle, near, far = at(0.0), (at(STEP), at(-STEP)), (at(2 * STEP), at(-2 * STEP))
    fine, coarse = (near[0] - near[1]) / (2 * STEP), (far[0] - far[1]) / (4 * STEP)
    bend = (near[0] + near[1] - 2 * middle) / STEP
    if not np.isfinite([fine, coarse]).all() or abs(bend) > 3e-3 * (1 + abs(fine)):
        return None
    best = fine + (fine - coarse) / 3
    return best, 20 * abs(fine - coarse) + 1e-8 * (abs(middle) + 1) / STEP * 1e-3


def inner(a: Any, b: Any) -> float:
    return float(np.vdot(a, b).real)


COUNTS: Counter[str] = Counter()


def difference(seed: int, every: bool = False) -> str:
    """How the derivatives of a program differ; nothing where they do not."""
    made = program(seed)
    f = function(made.text, f"<wide gradients {seed}>")
    args = arguments(made, seed)
    try:
        with np.errstate(all="ignore"):
            value = f(*args)
    except np.linalg.LinAlgError:
        COUNTS["the program raises"] += 1
        return ""
    if not np.isfinite(value) or abs(value) > 1e6:
        COUNTS["no finite value"] += 1
        return ""
    kept = [a.copy() for a in args]
    wrt = tuple(range(len(args)))
    with np.errstate(all="ignore"):
        found, gradients = dyncomp.value_and_grad(f, argnums=wrt)(*args)
    if not np.allclose(found, value, rtol=1e-10, atol=1e-10):
        return f"{made.text}value {found} instead of {value}"
    if not all(np.array_equal(a, b) for a, b in zip(args, kept)):
        return f"{made.text}an argument was changed"
    COUNTS["programs"] += 1
    rng = np.random.default_rng([seed, 1])
    checked: list[tuple[int, Any, float, float]] = []
    for position, array in enumerate(args):
        direction = rng.standard_normal(array.shape)
        if array.dtype.kind == "c":
            direction = direction + 1j * rng.standard_normal(array.shape)
        pair = slope(f, args, position, direction)
        if pair is None:
            COUNTS["kinks"] += 1
            continue
        wanted, doubt = pair
        checked.append((position, direction, wanted, doubt))
        by = inner(gradients[position], direction)
        COUNTS["gradients"] += 1
        if not abs(by - wanted) <= 1e-5 * (1 + abs(wanted)) + doubt:
            return f"{made.text}by {'xyp'[position]}: {by} instead of {wanted} ({doubt:.1e})"
    for check, often in ((forward, 3), (twice, 4), (single, 1)):
        if checked and (every or seed % often == 0) and (check is not single or made.is_single):
            wrong = check(made, f, args, gradients, checked)
            if wrong:
                return f"{made.text}{wrong}"
    return ""


Checked = list[tuple[int, Any, float, float]]


def forward(made: Program, f: Callable[..., Any], args: list[Any], gradients: Any, checked: Checked) -> str:
    for position, direction, wanted, doubt in checked:
        tangents = [direction if k == position else np.zeros_like(a) for k, a in enumerate(args)]
        try:
            with np.errstate(all="ignore"):
                _, found = dyncomp.jvp(f, tuple(args), tuple(tangents))
        except dyncomp.NotDifferentiableError as error:
            COUNTS["no forward mode"] += 1
            return "" if not made.is_plain else f"refused: jvp by {'xyp'[position]}: {error}"
        COUNTS["forward"] += 1
        if not abs(found - wanted) <= 1e-5 * (1 + abs(wanted)) + doubt:
            return f"jvp by {'xyp'[position]}: {found} instead of {wanted}"
    return ""


def twice(made: Program, f: Callable[..., Any], args: list[Any], gradients: Any, checked: Checked) -> str:
    """The product of the Hessian with a direction, against differences of the gradient."""
    position, direction, _, _ = checked[-1]
    gradient = dyncomp.grad(f, argnums=position)

    def along(x: Any) -> Any:
        return gradient(*args[:position], x, *args[position + 1 :])

    x, step = args[position], 1e-5
    with np.errstate(all="ignore"):
        near = (along(x + step * direction) - along(x - step * direction)) / (2 * step)
        far = (along(x + 2 * step * direction) - along(x - 2 * step * direction)) / (4 * step)
        jump = (along(x + step * direction) + along(x - step * direction) - 2 * along(x)) / step
    size = 1 + np.abs(near).max()
    if not np.isfinite(near).all() or np.abs(jump).max() > 1e-2 * size:
        COUNTS["kinks of second derivatives"] += 1
        return ""
    doubt = 20 * np.abs(near - far).max()

    def second(x: Any) -> Any:
        return inner_of(along(x), direction)

    try:
        with np.errstate(all="ignore"):
            found = inner(dyncomp.grad(second)(x), direction)
    except dyncomp.NotDifferentiableError as error:
        COUNTS["no second derivative"] += 1
        return "" if not made.is_plain else f"refused: second derivative: {error}"
    wanted = inner(near, direction)
    COUNTS["second"] += 1
    if not abs(found - wanted) <= 1e-4 * size * np.abs(direction).sum() + doubt * direction.size:
        return f"second derivative by {'xyp'[position]}: {found} instead of {wanted}"
    return ""


def inner_of(gradient: Any, direction: Any) -> Any:
    return (
        (gradient * np.conj(direction)).real.sum()
        if np.iscomplexobj(direction)
        else (gradient * direction).sum()
    )


def single(made: Program, f: Callable[..., Any], args: list[Any], gradients: Any, checked: Checked) -> str:
    """In single precision: nearly the same."""
    small = [a.astype(np.complex64 if a.dtype.kind == "c" else np.float32) for a in args]
    with np.errstate(all="ignore"):
        try:
            f(*small)
        except ValueError:  # out= of another type
            return ""
        found = dyncomp.grad(f, argnums=tuple(range(len(args))))(*small)
    COUNTS["single"] += 1
    for position, *_ in checked:
        ours, wanted = found[position], gradients[position]
        if ours.dtype != small[position].dtype:
            return f"the gradient of a {small[position].dtype} array is {ours.dtype}"
        scale = 1 + np.abs(wanted).max()
        if np.isfinite(wanted).all() and not np.abs(ours - wanted).max() <= 2e-2 * scale:
            return f"single precision, by {'xyp'[position]}: {ours} instead of {wanted}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--every", action="store_true", help="all checks of every program")
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        found = differs(seed, options.every)
        if found:
            wrong += "refused: " not in found
            print(f"--- seed {seed}\n{found}\n", flush=True)
        if seed % 50 == 49:
            dyncomp.reset()
        if seed % 500 == 499:
            print(f"up to {seed}: {dict(COUNTS)}", flush=True)
    print(f"{options.count} programs, {wrong} differ; {dict(COUNTS)}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
