"""Small tensors and arrays that modules and objects hold, where their elements are needed as numbers."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

torch = pytest.importorskip("torch")
F = torch.nn.functional


class Frames(torch.nn.Module):
    """As audio codecs have it: the sizes of a convolution are buffers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("stride", torch.tensor(3))
        self.register_buffer("kernel", torch.tensor(5))
        self.register_buffer("sizes", torch.tensor([2, 3]))
        self.register_buffer("doubled", torch.tensor(True))

    def forward(self, x):
        length = x.shape[-1]
        frames = torch.ceil((length - self.kernel + self.stride) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.kernel - length
        y = F.pad(x, (self.kernel, extra))
        if self.doubled:
            y = 2 * y
        if max(self.stride, self.kernel) > 4:
            y = y[..., : y.shape[-1] - self.stride]
        parts = sum(self.sizes.tolist())
        return (
            y,
            parts,
            int(self.kernel),
            self.stride.item(),
            x.repeat(1, self.stride),
            list(range(self.stride)),
        )


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b) and a.stride() == b.stride()
    return type(a) is type(b) and a == b


def check(compiled, model, x):
    assert all(map(same, compiled(x), model(x)))


@pytest.fixture
def model():
    return Frames().eval()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_in_one_graph(model, backend):
    compiled = dyncomp.compile(model, backend=backend, fullgraph=True)
    check(compiled, model, torch.randn(2, 16))
    check(compiled, model, torch.randn(2, 16))


def test_changed_elements(model):
    compiled = dyncomp.compile(model, backend="eager")
    x = torch.randn(2, 16)
    check(compiled, model, x)
    for name, value in (("stride", 4), ("kernel", 2), ("doubled", False), ("kernel", 7), ("kernel", 1)):
        getattr(model, name).fill_(value)
        check(compiled, model, x)
    model.sizes = torch.tensor([7])
    check(compiled, model, x)
    model.stride = torch.tensor([3])[0]
    check(compiled, model, x)


def test_a_counter_is_not_compiled_for_each_number():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x):
            y = x + 1
            if self.calls > 3:
                y = y * 2
            self.calls += 1
            return y.sin()

    model, other = Counting(), Counting()
    compiled = dyncomp.compile(model, backend="eager")
    x = torch.randn(5)
    entries = []
    for _ in range(10):
        torch.testing.assert_close(compiled(x), other(x))
        assert model.calls == other.calls
        entries.append(dyncomp.stats()["entries"])
    assert entries[-1] == entries[5]


def test_written_before_it_is_asked(model):
    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("flag", torch.tensor(0))

        def forward(self, x):
            y = x + 1
            self.flag.add_(1)
            view = self.flag.view(1)
            return y * 2 if self.flag > 1 else y - view

    model, other = Written(), Written()
    compiled = dyncomp.compile(model, backend="eager")
    x = torch.randn(5)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), other(x))


def test_arguments_and_parameters_are_not_guarded():
    def program(x, n):
        return x * 2 if n > 0 else x - 1

    compiled = dyncomp.compile(program, backend="eager")
    x = torch.randn(3)
    for n in (1, -1, 2, -2):
        torch.testing.assert_close(compiled(x, torch.tensor(n)), program(x, torch.tensor(n)))
    with pytest.raises(dyncomp.GraphBreakError, match="branch"):
        dyncomp.compile(program, fullgraph=True)(x, torch.tensor(1))

    class Learned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self, x):
            return x + self.bias if self.bias > 0 else x

    with pytest.raises(dyncomp.GraphBreakError, match="branch"):
        dyncomp.compile(Learned(), fullgraph=True)(x)


SCALE = np.array(3)


def test_numpy_globals():
    def program(x):
        y = x + 1
        return y[SCALE:] * 2 if SCALE > 2 else y

    x = np.arange(8.0)
    np.testing.assert_array_equal(dyncomp.compile(program, fullgraph=True)(x), program(x))
    compiled = dyncomp.compile(program)
    try:
        for value in (3, 1, 4):
            SCALE[...] = value
            np.testing.assert_array_equal(compiled(x), program(x))
    finally:
        SCALE[...] = 3


def test_edges_of_tensors_in_any_order():
    def program(x):
        y = x.transpose(1, 2)
        modes = ("reflect", "replicate", "circular")
        return [F.pad(y, (1, 2), mode=m) for m in modes] + [
            F.pad(y, (0, 3)),
            F.pad(y, (0, 0)),
            F.pad(x, (0, 0)),
        ]

    compiled = dyncomp.compile(program, fullgraph=True)
    for batch in (2, 3, 5):
        x = torch.randn(batch, 6, 4)
        assert all(map(same, compiled(x), program(x)))


def test_masks_that_sizes_alone_make():
    def program(x):
        mask = torch.arange(x.shape[0]) > 0
        y = torch.zeros_like(x)
        y[mask] = x[mask] * 2
        return y, torch.nonzero(mask, as_tuple=True)[0]

    compiled = dyncomp.compile(program, fullgraph=True)
    for rows in (3, 4):
        x = torch.randn(rows, 4)
        assert all(map(same, compiled(x), program(x)))


@pytest.mark.parametrize("count", [3, 40, 200])
def test_questions_about_all_modules(count):
    class Many(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.ReLU() for _ in range(count)])
            for layer in self.layers:
                layer.checkpointing = False

        @property
        def checkpointing(self):
            return any(hasattr(m, "checkpointing") and m.checkpointing for m in self.layers.modules())

        def forward(self, x):
            return x * 3 if self.checkpointing else x + 1

    model = Many()
    compiled = dyncomp.compile(model, backend="eager", fullgraph=True)
    x = torch.randn(3)
    torch.testing.assert_close(compiled(x), x + 1)
    model.layers[-1].checkpointing = True
    torch.testing.assert_close(compiled(x), x * 3)
