"""One model, compiled and plain side by side: results, gradients, buffers; graphs, breaks, time."""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import dyncomp
from tests.frontends.torch.harness import meaningful

from .case import Case

CLOSE = 1e-4  # of results, relative to the largest value of a tensor
CLOSE_GRADIENT = 1e-3
KINK = 0.2  # by how much a unit of "relu" that rounding turns on or off may change a gradient
TINY = 1e-6  # of the largest gradient of a module: what is zero but for rounding
UNIT = 1e-7  # of running means: rounding errors of what a batch norm made of order one
ROUNDED, JUMPS = 2e-7, 8  # changes of weights that single precision does not tell, and how many are tried
NOISE = 20.0  # times eager's own rounding errors, as double precision shows them
_SIZES = (3, 5, 7)  # further batch sizes: the first two that are not the batch's own


@dataclasses.dataclass
class Verdict:
    """``wrong``: what differs from eager, "" if nothing does. ``skipped``: why nothing was compared (eager
    itself fails). Counts of breaks and of frames left plain are those of the first calls; ``again`` counts
    graphs compiled at a second call with the same sizes and at a third batch size. ``where``: what capture
    said of breaks, of frames left plain and of what it compiled again."""

    name: str
    wrong: str = ""
    skipped: str = ""
    graphs: int = 0
    breaks: dict[str, int] = dataclasses.field(default_factory=dict)
    where: list[str] = dataclasses.field(default_factory=list)
    training_graphs: int = 0
    training_breaks: dict[str, int] = dataclasses.field(default_factory=dict)
    plain: int = 0
    again: int = 0
    fallbacks: int = 0
    seconds: float = 0.0
    training_seconds: float = 0.0

    @property
    def one_graph(self) -> bool:
        return not self.breaks and not self.plain and not self.fallbacks

    @property
    def trains_in_one_graph(self) -> bool:
        return self.one_graph and not self.training_breaks


def leaves(
    value: Any, where: str = "result", seen: frozenset[int] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """All a result consists of, with paths."""
    if id(value) in seen:
        return
    seen = seen | {id(value)}
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{where}[{key!r}]", seen)
    elif isinstance(value, (tuple, list)):
        yield f"len({where})", len(value)
        for k, item in enumerate(value):
            yield from leaves(item, f"{where}[{k}]", seen)
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, torch.nn.Module, type)):
        for key, item in vars(value).items():
            yield from leaves(item, f"{where}.{key}", seen)
    else:
        yield where, value


def difference(found: Any, expected: Any, close: float = CLOSE) -> str:
    """The first difference that a program would see, or ""."""
    if type(found) is not type(expected):
        return f"{type(found)} instead of {type(expected)}"
    for (path, mine), (_, theirs) in zip(leaves(found), leaves(expected), strict=True):
        said = different(mine, theirs, close)
        if said:
            return f"{path}: {said}"
    return ""


def different(mine: Any, theirs: Any, close: float) -> str:
    if type(mine) is not type(theirs):
        return f"{type(mine)} instead of {type(theirs)}"
    if not isinstance(theirs, torch.Tensor):
        if isinstance(theirs, float):
            return "" if math.isclose(mine, theirs, rel_tol=close, abs_tol=close) else f"{mine}, not {theirs}"
        plain = isinstance(theirs, (int, str, bool, type(None)))
        return f"{mine!r} instead of {theirs!r}" if plain and mine != theirs else ""
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return f"{mine.dtype} {tuple(mine.shape)} instead of {theirs.dtype} {tuple(theirs.shape)}"
    if mine.layout != torch.strided or theirs.is_meta:
        return ""
    if meaningful(mine) != meaningful(theirs):
        return f"strides {mine.stride()} instead of {theirs.stride()}"
    if mine.requires_grad != theirs.requires_grad:
        return f"requires_grad is {mine.requires_grad}"
    off = error(mine, theirs)
    limit = 0.0 if not theirs.is_floating_point() and not theirs.is_complex() else close
    limit = max(limit, 4 * torch.finfo(theirs.dtype).eps) if limit else 0.0
    return f"off by {off:.1e} of the largest value" if not off <= limit else ""


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest, relative to the largest finite value; infinite where other elements are not finite."""
    if not expected.numel():
        return 0.0
    kind = torch.complex128 if expected.is_complex() else torch.float64
    mine, theirs = found.detach().to(kind), expected.detach().to(kind)
    finite = torch.isfinite(theirs)
    if not torch.equal(finite, torch.isfinite(mine)) or not torch.equal(
        torch.nan_to_num(mine[~finite]), torch.nan_to_num(theirs[~finite])
    ):
        return math.inf
    if not bool(finite.any()):
        return 0.0
    mine, theirs = mine[finite], theirs[finite]
    return float((mine - theirs).abs().max()) / max(float(theirs.abs().max()), 1e-30)


def duplicate(module: Any) -> Any:
    """A copy, also of modules that keep results of their last call (those of "weight_norm", losses)."""
    memo: dict[int, Any] = {}
    for each in module.modules():
        kept = list(vars(each).values())
        while kept:
            x = kept.pop()
            if isinstance(x, (list, tuple)):
                kept.extend(x)
            elif isinstance(x, torch.Tensor) and not x.is_leaf:
                memo[id(x)] = x.detach().clone()
    return copy.deepcopy(module, memo)


def loss_of(result: Any) -> torch.Tensor | None:
    """A number that all of a result that has gradients takes part in."""
    total = None
    for k, (_, x) in enumerate(leaves(result)):
        if isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point():
            weights = torch.linspace(0.5 + k % 3, 1.5, max(x.numel(), 1), dtype=torch.float32)[: x.numel()]
            part = (x.float().reshape(-1) * weights).sum()
            total = part if total is None else total + part
    return total


def counted(call: Callable[[], Any]) -> tuple[Any, dict[str, Any], float]:
    """What a call gives, what was compiled for it, and seconds."""
    before = dyncomp.stats()
    log = logging.getLogger("dyncomp.capture")
    said = _Said()
    log.addHandler(said)
    level, log.propagate = log.level, False
    log.setLevel(logging.INFO)
    begin = time.perf_counter()
    try:
        result = call()
    finally:
        log.removeHandler(said)
        log.setLevel(level)
    seconds = time.perf_counter() - begin
    after = dyncomp.stats()
    made: dict[str, Any] = {
        k: after[k] - before[k] for k in ("graphs", "frames_skipped", "fallbacks", "frames_captured")
    }
    made["breaks"] = {k: n - before["breaks"].get(k, 0) for k, n in after["breaks"].items()}
    made["breaks"] = {k: n for k, n in made["breaks"].items() if n}
    made["where"] = said.lines
    return result, made, seconds


def seeded(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


class _Said(logging.Handler):
    """Keeps what capture says of graph breaks and of what is compiled again."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def resized(value: Any, old: int, new: int) -> Any:
    """Another batch: tensors whose first axis is the batch's."""
    if isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == old and not value.is_sparse:
        return value.repeat(math.ceil(new / old), *(1,) * (value.ndim - 1))[:new].clone()
    if isinstance(value, dict):
        return {k: resized(v, old, new) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(resized(v, old, new) for v in value)
    return value


def check(case: Case, backend: str = "inductor", training: bool = True) -> Verdict:
    """Compare a case's model with eager's. What the compiled model raises is a difference."""
    verdict = Verdict(case.name)
    try:
        torch.manual_seed(0)
        module, args, kwargs = case.build()
        reference = module.eval()
        with torch.set_grad_enabled(case.grad):  # what is said once, or cached at a first call, is by now
            caller(duplicate(reference), case.method)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        original = duplicate(reference)
    except Exception as failure:  # noqa: BLE001  (eager torch's own, or the package's)
        verdict.skipped = f"{type(failure).__name__}: {failure}"[:200]
        return verdict
    dyncomp.reset()
    try:
        model = dyncomp.compile(original, backend=backend)
        inference(verdict, case, model, reference, args, kwargs, backend)
        if not verdict.wrong and training and case.trains and case.method == "forward":
            train(verdict, model, reference, args, kwargs, backend)
    except Exception as failure:  # noqa: BLE001  (a difference: eager's calls have been made before)
        verdict.wrong = f"raises {type(failure).__name__}: {failure}"[:300]
    return verdict


def caller(module: Any, method: str) -> Callable[..., Any]:
    """A module is called itself: its hooks run."""
    found: Callable[..., Any] = module if method == "forward" else getattr(module, method)
    return found


def inference(
    verdict: Verdict, case: Case, model: Any, reference: Any, args: Any, kwargs: Any, backend: str
) -> None:
    call = caller(model, case.method)
    if case.whole:
        call = dyncomp.compile(caller(model.__wrapped__, case.method), backend=backend)

    def both(args: Any, kwargs: Any) -> dict[str, Any]:
        before = duplicate(reference)
        seeded(1)
        with torch.set_grad_enabled(case.grad):
            expected = caller(reference, case.method)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        seeded(1)
        given = copy.deepcopy((args, kwargs))
        with torch.set_grad_enabled(case.grad):
            found, made, seconds = counted(lambda: call(*given[0], **given[1]))
        verdict.seconds = verdict.seconds or seconds
        verdict.where += made["where"]
        said = difference(found, expected)
        if "off by" in said and rounding(found, expected, case.method, before, args, kwargs, 1):
            said = ""
        verdict.wrong = verdict.wrong or said
        return made

    made = both(args, kwargs)
    verdict.graphs, verdict.breaks, verdict.plain = made["graphs"], made["breaks"], made["frames_skipped"]
    verdict.fallbacks = made["fallbacks"]
    verdict.again = both(args, kwargs)["graphs"]
    tensors = [x for _, x in leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.ndim]
    if verdict.wrong or not tensors or case.method != "forward":
        return
    sizes = [size for size in _SIZES if size != tensors[0].shape[0]]
    for k, size in enumerate(sizes[:2]):
        others = resized((args, kwargs), tensors[0].shape[0], size)
        try:
            with torch.set_grad_enabled(case.grad):
                duplicate(reference)(*copy.deepcopy(others[0]), **copy.deepcopy(others[1]))
        except Exception:  # noqa: BLE001  (a model for one batch size)
            return
        made = both(*others)
        verdict.again += made["graphs"] if k else 0


def train(verdict: Verdict, model: Any, reference: Any, args: Any, kwargs: Any, backend: str) -> None:
    """Two steps in training mode, with eager's random numbers."""
    model.train()
    reference.train()
    probe = duplicate(reference)
    try:
        torch.manual_seed(2)
        loss = loss_of(probe(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
        if loss is None:
            return
        loss.backward()
    except Exception:  # noqa: BLE001  (a model that eager does not train)
        return
    start = duplicate(reference)
    for step in range(2):
        exact = duplicate(reference)
        seeded(2)
        expected = reference(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        loss_of(expected).backward()
        seeded(2)
        given = copy.deepcopy((args, kwargs))
        found, made, seconds = counted(lambda given=given: model(*given[0], **given[1]))
        if not step:
            verdict.training_graphs, verdict.training_breaks = made["graphs"], made["breaks"]
            verdict.plain += made["frames_skipped"]
        else:
            verdict.again += made["graphs"]
        verdict.fallbacks += made["fallbacks"]
        verdict.where += made["where"]
        verdict.wrong = difference(found, expected, CLOSE_GRADIENT)
        if "off by" in verdict.wrong and rounding(found, expected, "forward", exact, args, kwargs, 2):
            verdict.wrong = ""
        begin = time.perf_counter()
        loss_of(found).backward()
        verdict.training_seconds = verdict.training_seconds or seconds + time.perf_counter() - begin
        verdict.wrong = verdict.wrong or trained(model, reference, exact, args, kwargs, backend)
        if verdict.wrong:
            return
    found, expected = dict(model.named_buffers()), dict(reference.named_buffers())
    said = difference(found, expected, CLOSE_GRADIENT)
    if "off by" in said and moved_alike(found, expected, start, args, kwargs):
        said = ""
    verdict.wrong = said and "buffers " + said


def moved_alike(found: Any, expected: Any, start: Any, args: Any, kwargs: Any) -> bool:
    """Whether buffers after two steps are as near to double precision's as eager's are: the mean of what has
    been normalized is nothing but rounding errors."""
    try:
        for _ in range(2):
            start, _ = exactly("forward", start, args, kwargs, 2)
    except Exception:  # noqa: BLE001  (not in double precision)
        return False
    return as_near(found, expected, dict(start.named_buffers()), UNIT)


def exactly(method: str, module: Any, args: Any, kwargs: Any, seed: int) -> tuple[Any, Any]:
    """The module in double precision, and what it gives."""
    exact = duplicate(module).double()
    exact.zero_grad()
    seeded(seed)
    return exact, caller(exact, method)(*doubles(args), **doubles(kwargs))


def rounding(found: Any, expected: Any, method: str, module: Any, args: Any, kwargs: Any, seed: int) -> bool:
    """Whether results differ from double precision's by no more than eager's do, about."""
    try:
        _, true = exactly(method, module, args, kwargs, seed)
    except Exception:  # noqa: BLE001  (not in double precision)
        return False
    return as_near(found, expected, true)


def as_near(found: Any, expected: Any, true: Any, least: float = 0.0) -> bool:
    """``least``: what is not told from zero."""
    triples = zip(leaves(found), leaves(expected), leaves(true), strict=True)
    for (_, mine), (_, theirs), (_, exact) in triples:
        if isinstance(theirs, torch.Tensor) and theirs.is_floating_point():
            if least and float((mine - exact).abs().max()) <= least:
                continue
            if not error(mine, exact) <= NOISE * error(theirs, exact) + CLOSE and not small_loss(mine, exact):
                return False
        elif different(mine, theirs, CLOSE):
            return False
    return True


def small_loss(found: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether one number is right to what the logarithm of a number near 1 is known to."""
    return not found.ndim and abs(float(found) - float(exact)) <= torch.finfo(found.dtype).eps


def trained(model: Any, reference: Any, before: Any, args: Any, kwargs: Any, backend: str) -> str:
    """A gradient that differs by more than rounding, or ""."""
    suspects = []
    largest = max(
        (
            float(p.grad.abs().max())
            for p in reference.parameters()
            if p.grad is not None and not p.grad.is_sparse and p.grad.numel()
        ),
        default=0.0,
    )
    for (name, mine), theirs in zip(model.named_parameters(), reference.parameters(), strict=True):
        if (mine.grad is None) != (theirs.grad is None):
            return f"{name}.grad is {'None' if mine.grad is None else 'not None'}"
        if theirs.grad is None:
            continue
        said = different(mine.grad, theirs.grad, CLOSE_GRADIENT)
        if said and "off by" not in said:
            return f"{name}.grad: {said}"
        if said and float((mine.grad - theirs.grad).abs().max()) > TINY * largest:
            suspects.append(name)
    if not suspects:
        return ""
    # a gradient that is a small difference of large numbers
    try:
        exact, result = exactly("forward", before, args, kwargs, 2)
        loss_of(result).backward()
    except Exception:  # noqa: BLE001  (not in double precision)
        return f"{suspects[0]}.grad is off"
    named, others, mine = (dict(m.named_parameters()) for m in (exact, reference, model))
    same: bool | None = None  # found once: it takes long
    # where gradients of eager's own are nothing but rounding errors, double precision alone tells
    noisy = any(
        true.grad is not None and error(others[name].grad, true.grad) > KINK
        for name, true in named.items()
        if name in suspects
    )
    for name in suspects:
        true = named[name].grad
        if true is None or error(mine[name].grad, true) > NOISE * error(others[name].grad, true) + 1e-5:
            off = error(mine[name].grad, others[name].grad)
            undecided = noisy or off <= KINK or jumps(before, args, kwargs, name, true, off)
            if undecided and same is None:
                same = same_in_double(before, args, kwargs, backend)
            if not (undecided and same):
                return f"{name}.grad is off by {off:.1e}, beyond rounding"
    return ""


def jumps(module: Any, args: Any, kwargs: Any, name: str, true: torch.Tensor, off: float) -> bool:
    """Whether eager's own gradient, in double precision, changes as much where weights change by rounding
    errors of single precision: an element is at the kink of "relu", or few are normalized together."""
    for seed in range(JUMPS):
        near = duplicate(module).double()
        near.zero_grad()
        seeded(seed)
        with torch.no_grad():
            for p in near.parameters():
                p *= 1 + ROUNDED * torch.randn_like(p)
        seeded(2)
        loss = loss_of(near(*doubles(args), **doubles(kwargs)))
        assert loss is not None
        loss.backward()
        gradient = dict(near.named_parameters())[name].grad
        if gradient is not None and error(gradient, true) > off / 2:
            return True
    return False


def same_in_double(module: Any, args: Any, kwargs: Any, backend: str) -> bool:
    """Whether gradients are eager's where rounding errors are too small to move an element across a kink."""
    exact = duplicate(module).double()
    exact.zero_grad()
    pair = [dyncomp.compile(duplicate(exact), backend=backend), exact]
    for each in pair:
        seeded(2)
        loss_of(each(*doubles(args), **doubles(kwargs))).backward()
    mine, theirs = ([p.grad for p in each.parameters() if p.grad is not None] for each in pair)
    if len(mine) != len(theirs):
        return False
    # what is zero but for rounding is compared with the largest
    least = TINY * max((float(g.abs().max()) for g in theirs if g.numel()), default=0.0)
    return all(
        not different(a, b, CLOSE * 1e-2) or (a.shape == b.shape and float((a - b).abs().max()) <= least)
        for a, b in zip(mine, theirs)
    )


def doubles(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    if isinstance(value, dict):
        return {k: doubles(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(doubles(x) for x in value)
    return copy.deepcopy(value)
