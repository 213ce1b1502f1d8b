"""Gradients of expressions against torch's: every expression of the sweep over layouts, or those that match.

``python -m tests.frontends.torch.gradient_sweep [--second] [--inductor] [--layout NAME] [TEXT...]``
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import torch

import dyncomp

from . import layout_inputs

NAMES = ("x", "y", "q", "r", "v", "n", "w", "b", "m", "k", "i", "j", "z")
LAYOUTS = {
    "plain": lambda t: t,
    "turned": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.ndim > 1 else t,
    "channels": lambda t: t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t,
    "sliced": lambda t: layout_inputs.window(t, t.ndim - 1, 1, 2) if t.ndim else t,
}


def leaves(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def made(layout: str, requires: set[str]) -> dict[str, torch.Tensor]:
    values = layout_inputs.make()
    for name, value in values.items():
        value = LAYOUTS[layout](value.detach())
        inexact = value.dtype.is_floating_point or value.dtype.is_complex
        values[name] = value.requires_grad_(inexact and name in requires)
    return values


def gradients(f: Any, names: list[str], layout: str, second: bool) -> tuple[Any, ...]:
    """Results, which of them require grad, gradients by the arguments, and second ones."""
    values = made(layout, set(names))
    torch.manual_seed(3)
    # results of calls that give an argument back have histories of their own
    results = leaves(f(*[values[n] for n in names]))
    live = [r for r in results if r.requires_grad and not r.is_leaf]
    by = [values[n] for n in names if values[n].requires_grad]
    if not live or not by:
        return results, [r.requires_grad for r in results], [], []
    torch.manual_seed(5)
    cotangents = [torch.randn_like(r).requires_grad_(second) for r in live]
    found = torch.autograd.grad(live, by, cotangents, allow_unused=True, create_graph=second)
    again: Any = ()
    if second:
        total = [g for g in found if g is not None and g.requires_grad]
        if total:
            other = [torch.randn_like(g) for g in total]
            again = torch.autograd.grad(total, [*by, *cotangents], other, allow_unused=True)
    return results, [r.requires_grad for r in results], found, again


def differs(found: Any, expected: Any) -> str:
    if (found is None) != (expected is None):
        # zeros in place of nothing are of no consequence
        there = expected if found is None else found
        return "" if there.count_nonzero() == 0 else f"{found} is not {expected}"
    if found is None:
        return ""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{tuple(found.shape)} is not {expected.dtype}{tuple(expected.shape)}"
    if not (found.dtype.is_floating_point or found.dtype.is_complex):
        return "" if torch.equal(found, expected) else "other integers"
    a, b = found.detach(), expected.detach()
    scale = b.abs().nan_to_num(0, 0, 0).max().item() if b.numel() else 0.0
    limit = {torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.float32: 3e-5}.get(a.dtype, 1e-7)
    if torch.allclose(a, b, rtol=limit * 10, atol=limit * max(scale, 1.0), equal_nan=True):
        return ""
    return f"off by {(a - b).abs().max()} of {scale}"


def compared(expression: str, layout: str, backend: str, second: bool) -> str:
    """What is wrong with an expression; empty where nothing is."""
    names = [n for n in NAMES if n in compile_names(expression)]
    f = eval(f"lambda {', '.join(names)}: {expression}", {"torch": torch, "F": torch.nn.functional})  # noqa: S307
    try:
        expected = gradients(f, names, layout, second)
    except Exception as error:  # noqa: BLE001 - torch has no gradient of it
        expected = error
    dyncomp.reset()
    fast = dyncomp.compile(f, backend=backend, options={"measure": False, "patience_us": 0})
    try:
        found = gradients(fast, names, layout, second)
    except Exception as error:  # noqa: BLE001
        found = error
    if isinstance(found, Exception) or isinstance(expected, Exception):
        if isinstance(found, Exception) and isinstance(expected, Exception):
            return ""
        kind = type(found).__name__ if isinstance(found, Exception) else "value"
        return f"{kind}: {str(found)[:300]}; torch {str(expected)[:200]}"
    if len(found[0]) != len(expected[0]):
        return "another number of results"
    if found[1] != expected[1]:
        return f"requires grad {found[1]}, torch {expected[1]}"
    for what, ours, theirs in zip(("result", "", "gradient", "second"), found, expected):
        if what:
            for k, (a, b) in enumerate(zip(ours, theirs)):
                problem = differs(a, b)
                if problem:
                    return f"{what} {k} {problem}"
    return ""


def compile_names(expression: str) -> tuple[str, ...]:
    return compile(expression, "<expression>", "eval").co_names


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--second", action="store_true")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--layout", default="plain", choices=LAYOUTS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="name the expressions left plain")
    parser.add_argument("texts", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [e for e in layout_inputs.EXPRESSIONS if not args.texts or any(t in e for t in args.texts)]
    bad = plain = 0
    for expression in chosen[:: args.every]:
        problem = compared(expression, args.layout, "inductor" if args.inductor else "eager", args.second)
        stats = dyncomp.stats()
        if problem:
            bad += 1
            print(f"{expression}: {problem}", flush=True)
        elif not stats["graphs"]:
            plain += 1
            if args.plain:
                reasons = dict(stats["breaks"])
                print(f"plain: {expression} {reasons} {stats['frames_skipped']}", flush=True)
    print(f"{len(chosen[:: args.every])} expressions, {bad} wrong, {plain} without a graph")
    return bad


if __name__ == "__main__":
    sys.exit(main() > 0)
