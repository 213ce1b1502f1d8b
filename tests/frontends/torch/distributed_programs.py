"""Training by several processes, each run once as plain PyTorch and once compiled.

``python distributed_programs.py RANK WORLD PORT PROGRAM`` prints what was compiled and "done".
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

import dyncomp

Made = Callable[[nn.Module], nn.Module]
RANK, WORLD = int(sys.argv[1]), int(sys.argv[2])
STEPS = 20
SMALL_BUCKETS = {"bucket_cap_mb": 2e-3}


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, checkpointed: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(2))
        self.last = nn.Linear(16, 4)
        self.checkpointed = checkpointed

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.last(x)


class SometimesUnused(Net):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(8, 4)

    def forward(self, x):
        found = super().forward(x)
        return found + self.other(x) if x[0, 0] > 0 else found


def with_statistics() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


def seeded(kind: Callable[[], nn.Module] = Net) -> nn.Module:
    torch.manual_seed(0)
    return kind()


def batches(sharded: bool = True) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The same for all processes; ``sharded``: this one's part of them."""
    numbers = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x, y = torch.randn(8, 8, generator=numbers), torch.randint(0, 4, (8,), generator=numbers)
        part = slice(RANK * 8 // WORLD, (RANK + 1) * 8 // WORLD) if sharded else slice(None)
        yield x[part], y[part]


def trained(model: nn.Module, sharded: bool = True, optimizer=None, clip: bool = False) -> list[torch.Tensor]:
    """The weights and buffers after training."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for x, y in batches(sharded):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    return weights(model)


def weights(model: nn.Module) -> list[torch.Tensor]:
    found = [value.detach() for value in model.state_dict().values()]
    return [value.full_tensor() if hasattr(value, "full_tensor") else value for value in found]


def plain(model: nn.Module) -> nn.Module:
    return model


def same(found: list[torch.Tensor], expected: list[torch.Tensor], tolerance: float = 2e-5) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def as_plain(program: Callable[[Made], list[torch.Tensor]], tolerance: float = 2e-5) -> None:
    same(program(dyncomp.compile), program(plain), tolerance)


def as_one_process(program: Callable[[Made], list[torch.Tensor]]) -> None:
    same(program(dyncomp.compile), trained(seeded(), sharded=False))


def sharded(model: nn.Module, made: Made = plain, **policy) -> nn.Module:
    """By FSDP2, block by block, each as ``made`` makes it."""
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (WORLD,))
    for number, block in enumerate(model.blocks):
        model.blocks[number] = fully_shard(made(block), mesh=mesh, **policy)
    return fully_shard(model, mesh=mesh, **policy)


# -- the programs ---------------------------------------------------------------------------------
def ddp() -> None:
    as_one_process(lambda made: trained(DDP(made(seeded()))))
    as_one_process(lambda made: trained(made(DDP(seeded()))))
    as_plain(lambda made: trained(made(DDP(seeded(with_statistics)))))
    as_plain(lambda made: trained(DDP(made(seeded(lambda: Net(checkpointed=True))))))
    assert dyncomp.stats()["graphs"] >= 4  # in each of them


def ddp_buckets() -> None:
    for options in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        as_one_process(lambda made: trained(DDP(made(seeded()), **SMALL_BUCKETS, **options)))  # noqa: B023
    model = DDP(dyncomp.compile(seeded()), **SMALL_BUCKETS)
    log: list[str] = []

    def sends(state, bucket):
        log.append("send")
        return allreduce_hook(None, bucket)

    model.register_comm_hook(None, sends)
    for _ in range(2):  # DDP learns in the first pass in which order gradients come
        log.clear()
        result = model(torch.randn(4, 8))
        parts = chain(result.grad_fn)
        for part in parts:
            part.register_prehook(lambda *_: log.append("compute"))
        result.sum().backward()
    assert len(parts) > 3
    assert log == ["compute", "send"] * len(parts)


def ddp_any_gradients() -> None:
    """Of a chain of parts: other gradients than all, twice, of other sizes, and second derivatives."""
    fast, model = DDP(dyncomp.compile(seeded()), **SMALL_BUCKETS), seeded()
    for rows in (4, 4, 6, 3):
        x = torch.randn(rows, 8, requires_grad=True)
        results = fast(x), model(x)
        assert len(chain(results[0].grad_fn)) > 3
        leaves = [[x, *m.parameters()] for m in (fast, model)]
        for chosen in ([0], [1, 4], [-1], [-1, 0], range(len(leaves[0]))):
            pairs = [[wrt[k] for k in chosen] for wrt in leaves]
            grads = [
                torch.autograd.grad(y.square().sum(), wrt, retain_graph=True)
                for y, wrt in zip(results, pairs)
            ]
            same(*grads)
        seconds = []
        for y, wrt in zip(results, leaves):
            first = torch.autograd.grad(y.square().sum(), wrt[:6], create_graph=True)
            seconds.append(torch.autograd.grad(sum(g.square().sum() for g in first), wrt[:6]))
        same(*seconds)


def chain(node) -> list:
    """The functions of compiled graphs behind a result, in the order in which they run."""
    found = []
    while node is not None and "CompiledGraph" in node.name():
        found.append(node)
        following = [n for n, _ in node.next_functions if n is not None and "CompiledGraph" in n.name()]
        node = following[0] if following else None
    return found


def ddp_options() -> None:
    as_plain(lambda made: trained(DDP(made(seeded(SometimesUnused)), find_unused_parameters=True)))
    as_plain(lambda made: trained(DDP(made(seeded(with_statistics)))))
    for order in (lambda made, m: DDP(made(m), **SMALL_BUCKETS), lambda made, m: made(DDP(m))):
        as_plain(lambda made: accumulated(order(made, seeded())))  # noqa: B023

    def redundant(made: Made) -> list[torch.Tensor]:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = DDP(made(seeded()))
        parameters = model.parameters()
        return trained(model, optimizer=ZeroRedundancyOptimizer(parameters, torch.optim.AdamW, lr=1e-3))

    as_plain(redundant)


def accumulated(model: nn.Module) -> list[torch.Tensor]:
    """Two backward passes a step, of which only the second sends gradients."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in batches():
        optimizer.zero_grad()
        for rows, context in ((x[:2], model.no_sync), (x[2:], nullcontext)):
            with context():
                F.cross_entropy(model(rows), y[: len(rows)]).backward()
        optimizer.step()
    return weights(model)


def ddp_step() -> None:
    """The whole step in one function."""

    def program(made: Callable) -> list[torch.Tensor]:
        model = DDP(seeded())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = made(step)
        losses = [step(x, y) for x, y in batches()]
        return [*weights(model), *losses]

    as_plain(program)


def fsdp() -> None:
    as_one_process(lambda made: trained(sharded(seeded(), made)))
    as_one_process(lambda made: trained(made(sharded(seeded()))))
    assert dyncomp.stats()["graphs"] >= 4


def fsdp_options() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard

    as_one_process(lambda made: trained(fully_shard(made(seeded()), mesh=init_device_mesh("cpu", (WORLD,)))))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    as_plain(lambda made: trained(sharded(seeded(), made, mp_policy=policy)), 2e-2)
    as_plain(lambda made: trained(made(sharded(seeded(), reshard_after_forward=False)), clip=True))
    as_plain(lambda made: trained(made(sharded(seeded(lambda: Net(checkpointed=True))))))

    def first_version(made: Made) -> list[torch.Tensor]:
        model = FullyShardedDataParallel(made(seeded()), device_id=torch.device("cpu"), use_orig_params=True)
        trained(model)
        with FullyShardedDataParallel.summon_full_params(model):
            return [p.detach().clone() for p in model.parameters()]

    as_one_process(first_version)


def tensor_parallel() -> None:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}

    def parallel(model: nn.Module) -> nn.Module:
        for block in model.blocks:
            parallelize_module(block, init_device_mesh("cpu", (WORLD,)), plan)
        return model

    as_one_process(lambda made: trained(made(parallel(seeded())), sharded=False))
    as_one_process(lambda made: trained(parallel(made(seeded())), sharded=False))


def distributed_tensors() -> None:
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (WORLD,))

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = (x * 2 + 1).sin()
        return y, y.sum(), y.to_local() * 2, y.redistribute(mesh, [Replicate()]), y @ y.t()

    x = distribute_tensor(torch.arange(16.0).view(8, 2), mesh, [Shard(0)])
    fast = dyncomp.compile(program)
    for _ in range(2):
        for found, expected in zip(fast(x), program(x), strict=True):
            assert type(found) is type(expected)
            if isinstance(expected, DTensor):
                assert found.placements == expected.placements
                found, expected = found.full_tensor(), expected.full_tensor()
            same([found], [expected])


def pipeline() -> None:
    """By hand, and by torch's schedule with micro-batches."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    expected = trained(seeded(), sharded=False)

    def stage_of(model: nn.Module) -> tuple[nn.Module, list[torch.Tensor]]:
        halves = nn.Sequential(model.first, model.blocks[0]), nn.Sequential(model.blocks[1], model.last)
        count = len(halves[0].state_dict())
        stage = dyncomp.compile(halves[RANK])
        return stage, expected[:count] if RANK == 0 else expected[count:]

    for by_hand in (True, False):
        stage, wanted = stage_of(seeded())
        optimizer = torch.optim.SGD(stage.parameters(), lr=0.05, momentum=0.5)
        if not by_hand:
            place = PipelineStage(stage, RANK, WORLD, torch.device("cpu"))
            schedule = Schedule1F1B(place, 4, loss_fn=F.cross_entropy)
        for x, y in batches(sharded=False):
            optimizer.zero_grad()
            if by_hand:
                send_and_receive(stage, x, y)
            elif RANK == 0:
                schedule.step(x)
            else:
                schedule.step(target=y)
            optimizer.step()
        same(weights(stage), wanted)


def send_and_receive(stage: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    if RANK == 0:
        between = stage(x)
        dist.send(between.detach(), 1)
        gradient = torch.empty_like(between)
        dist.recv(gradient, 1)
        between.backward(gradient)
        return
    received = torch.empty(len(x), 16)
    dist.recv(received, 0)
    received.requires_grad_()
    F.cross_entropy(stage(received), y).backward()
    dist.send(received.grad, 0)


def collectives() -> None:
    """Calls of collectives in compiled functions: waited for, later, and with derivatives."""
    import torch.distributed._functional_collectives as functional
    import torch.distributed.nn.functional as differentiable

    ranks = list(range(WORLD))

    def waiting(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        dist.all_reduce(y)
        z = y * dist.get_rank() + dist.get_world_size()
        work = dist.all_reduce(z, async_op=True)
        q = x.cos() * 2
        work.wait()
        gathered = [torch.empty_like(q) for _ in ranks]
        dist.all_gather(gathered, q)
        t = torch.stack(gathered).sum(0) + z
        dist.broadcast(t, 0)
        dist.barrier()
        return t + y

    def by_value(x: torch.Tensor) -> torch.Tensor:
        gathered = functional.all_gather_tensor(x, 0, ranks)
        return (functional.all_reduce(x * 2, "sum", ranks) + 1).sum() + gathered.square().sum()

    for program in (waiting, by_value):
        fast = dyncomp.compile(program)
        for _ in range(3):
            x = torch.randn(5) + RANK
            same([fast(x)], [program(x)])

    def derived(x: torch.Tensor) -> torch.Tensor:
        return (differentiable.all_reduce(x * x) * x).sum()

    gradients = []
    for program in (derived, dyncomp.compile(derived)):
        x = torch.arange(5.0, requires_grad=True)
        program(x).backward()
        gradients.append([x.grad])
    same(*gradients)


def one_cache() -> None:
    """Processes that want the same kernel at once build it once, and the others take it."""
    from pathlib import Path

    from dyncomp.build.kernel_cache import open_cache

    trained(DDP(dyncomp.compile(seeded())))
    cache = open_cache()
    counts = torch.tensor([cache.stats.builds, cache.stats.disk_hits])
    dist.all_reduce(counts)
    built, taken = counts.tolist()
    files = len(list(Path(os.environ["DYNCOMP_CACHE_DIR"]).rglob("*.so")))
    assert built == files > 1, (built, files)
    assert taken == (WORLD - 1) * files


def main() -> None:
    faulthandler.dump_traceback_later(150, exit=True)
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[3])
    dist.init_process_group("gloo", rank=RANK, world_size=WORLD, timeout=timedelta(seconds=120))
    for program in sys.argv[4:]:
        globals()[program]()
        assert dyncomp.stats()["internal_errors"] == 0, program
    dist.destroy_process_group()
    print("done", flush=True)
    os._exit(0)  # torch's threads behind communication hooks may outlive the interpreter, and abort


if __name__ == "__main__":
    main()
