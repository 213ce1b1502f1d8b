"""What a forward graph saves goes while the backward graph runs, unless somebody may still look at it."""

from __future__ import annotations

import copy
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.aot_autograd import again, pair  # noqa: E402
from dyncomp.inductor import compile as inductor  # noqa: E402
from dyncomp.runtime import _launch  # noqa: E402

nn, F = torch.nn, torch.nn.functional
ROWS = 512  # an activation of 512 x 256 is released on its own


def net():
    torch.manual_seed(0)
    layers = [nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(256, 4))


def rows(seed=1):
    return torch.randn(ROWS, 64, generator=torch.Generator().manual_seed(seed))


def loss(module, x):
    return module(x).square().mean()


def gradients(module):
    found = [p.grad for p in module.parameters()]
    module.zero_grad()
    return found


def expected(x, times=1):
    module = net()
    for _ in range(times):
        loss(module, x).backward()
    return gradients(module)


def same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-7)


def test_only_the_backward_graph_holds_what_was_saved(monkeypatch):
    """It is handed over: nothing else keeps its memory, and the plan says where each may go."""
    plans, holders = [], []
    build, consuming = inductor.build, pair.consuming

    def spying(call):
        def consume(values):
            large = [t for t in values if isinstance(t, torch.Tensor) and t.numel() == ROWS * 256]
            for tensor in large:
                storage = tensor.untyped_storage()
                # this list and the loop, and the call; the tensor and `storage`
                holders.append((sys.getrefcount(tensor), torch._C._storage_Use_Count(storage._cdata)))
            del large, tensor, storage
            return consuming(call)(values)

        return consume

    monkeypatch.setattr(inductor, "build", lambda plan, library: plans.append(plan) or build(plan, library))
    monkeypatch.setattr(pair, "consuming", spying)
    module = net()
    dyncomp.reset()
    dyncomp.compile(loss)(module, rows()).backward()
    same(gradients(module), expected(rows()))
    assert holders == [(4, 2)] * 3
    (steps,) = [plan.steps for plan in plans if plan.name.endswith("backward")]
    last_read = [set(step.last_read) for step in steps]
    assert sum(bool(inputs) for inputs in last_read) >= 3
    assert len(set.union(*last_read)) == sum(map(len, last_read)) >= 3


def test_a_second_pass_raises_as_in_eager_and_changes_nothing():
    module = net()
    result = dyncomp.compile(loss)(module, rows())
    result.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()
    same(gradients(module), expected(rows()))


def test_a_graph_that_is_kept_runs_again():
    module = net()
    result = dyncomp.compile(loss)(module, rows())
    result.backward(retain_graph=True)
    result.backward(retain_graph=True)
    result.backward()
    same(gradients(module), expected(rows(), 3))
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_a_gradient_may_be_differentiated_before_the_graph_is_freed():
    def both(compiled):
        module, x = net(), rows().requires_grad_()
        (gradient,) = torch.autograd.grad(compiled(module, x), x, create_graph=True)
        gradient.square().sum().backward()
        return gradients(module)[:-1]  # the last bias has none

    same(both(dyncomp.compile(loss)), both(loss))


def test_tensors_that_the_program_holds_stay_as_they_are():
    """Results, inputs, views of them, and what ``saved_tensors`` of the function gives."""

    def several(module, x):
        hidden = module[0](x)
        y = torch.tanh(hidden)
        return y, y[1:], module[2](y).square().mean()

    module, x = net(), rows()
    y, view, result = dyncomp.compile(several)(module, x)
    held = [x, y.detach(), view.detach(), *result.grad_fn.saved_tensors]
    before = [tensor.clone() for tensor in held]
    result.backward()
    blocks = [torch.full((ROWS, 256), 7.0) for _ in range(8)]  # which would take the place of what is freed
    assert all(map(torch.equal, held, before)), len(blocks)
    plain = net()
    several(plain, x)[2].backward()
    used = [k for k, p in enumerate(plain.parameters()) if p.grad is not None]
    found, wanted = gradients(module), gradients(plain)
    same([found[k] for k in used], [wanted[k] for k in used])


def test_hooks_that_keep_what_is_saved():
    kept = []

    def pack(tensor):
        kept.append(tensor)
        return tensor

    module = net()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = dyncomp.compile(loss)(module, rows())
    before = [tensor.clone() for tensor in kept]
    result.backward()
    blocks = [torch.full((ROWS, 256), 7.0) for _ in range(8)]
    assert all(map(torch.equal, kept, before)), len(blocks)
    same(gradients(module), expected(rows()))


def test_several_forward_passes_before_their_backward_passes():
    module = net()
    compiled = dyncomp.compile(loss)
    batches = [rows(seed) for seed in range(4)]
    results = [compiled(module, x) for x in batches]
    for k in (2, 0, 3, 1):
        results[k].backward()
        same(gradients(module), expected(batches[k]))


def test_a_saved_input_that_is_written_still_raises():
    module, x = net(), rows()
    result = dyncomp.compile(loss)(module, x)
    x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_an_error_after_the_release_leaves_a_freed_graph():
    module, x = net(), rows().requires_grad_()
    y = x * 2.0

    def fail(gradient):
        raise KeyError("hook")

    y.register_hook(fail)
    result = dyncomp.compile(loss)(module, y)
    with pytest.raises(KeyError):
        result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_threads_have_their_own():
    compiled = dyncomp.compile(loss)
    compiled(net(), rows()).backward()
    wanted = {seed: expected(rows(seed)) for seed in range(4)}
    modules = {seed: net() for seed in wanted}  # the threads share one generator
    failures = []

    def train(seed):
        module = modules[seed]
        for _ in range(10):
            compiled(module, rows(seed)).backward()
            try:
                same(gradients(module), wanted[seed])
            except AssertionError as error:
                failures.append(error)

    threads = [threading.Thread(target=train, args=(seed,)) for seed in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -- captured backward passes -----------------------------------------------------------------
class Mixed(nn.Module):
    """Statistics that are written, masks that are drawn, products of what is computed again."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(64, 256), nn.BatchNorm1d(256), nn.Linear(256, 256)
        self.rows = nn.LayerNorm(256)

    def forward(self, x):
        x = F.gelu(self.norm(self.first(x)))
        x = F.dropout(x, 0.25)
        return torch.tanh(self.rows(x + F.gelu(self.last(x)))) * torch.sigmoid(x)


def steps_of(module, compiled, count=4):
    optimizer = torch.optim.SGD(module.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        result = module(x).square().mean()
        result.backward()
        optimizer.step()
        return result.detach()

    run = dyncomp.compile(step) if compiled else step
    torch.manual_seed(3)
    return [run(rows(k)) for k in range(count)], list(module.state_dict().values())


def test_what_is_computed_again_gives_the_same_steps(monkeypatch):
    monkeypatch.setattr(again, "ENOUGH", 0)
    chosen = []
    choose = again.choose
    monkeypatch.setattr(again, "choose", lambda *args: chosen.append(choose(*args)) or chosen[-1])
    torch.manual_seed(0)
    module = Mixed()
    other = copy.deepcopy(module)
    losses, state = steps_of(module, False)
    found, found_state = steps_of(other, True)
    assert chosen
    same(found, losses)
    for a, b in zip(found_state, state, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_less_stays_in_memory_where_it_is_computed_again(monkeypatch):
    def bytes_of_a_step(limit):
        monkeypatch.setattr(again, "ENOUGH", limit)
        dyncomp.reset()
        module = net()

        def step(x):
            loss(module, x).backward()

        # threads have blocks of their own, which come and go with how the work falls to them
        compiled = dyncomp.compile(step, options={"num_threads": 1})
        for _ in range(2):
            module.zero_grad()
            _launch.release_memory()
            compiled(rows())
        same(gradients(module), expected(rows()))
        return _launch.release_memory()

    assert bytes_of_a_step(0) < 0.8 * bytes_of_a_step(1 << 40)


def test_a_backward_graph_takes_the_memory_of_its_forward_graph():
    module = net()
    compiled = dyncomp.compile(loss)
    compiled(module, rows()).backward()
    _launch.release_memory()
    result = compiled(module, rows())
    forward = _launch.release_memory()
    result.backward()
    backward = _launch.release_memory()
    compiled(module, rows()).backward()
    assert forward > 1 << 20
    assert _launch.release_memory() < forward + backward - (1 << 19)
