"""What models do between their layers: each is one graph, and gives what torch gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

import dyncomp  # noqa: E402


def same(expected, found):
    if isinstance(expected, torch.Tensor):
        assert type(found) is type(expected)
        assert (found.dtype, found.shape, found.stride()) == (
            expected.dtype,
            expected.shape,
            expected.stride(),
        )
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for a, b in zip(expected, found):
            same(a, b)
    else:
        assert found == expected


def whole(function, *args, backend="eager"):
    """One graph without breaks, equal to the function; the report."""
    with torch.no_grad():
        expected = function(*args)
        report = dyncomp.explain(function, backend=backend)(*args)
    assert report.error is None
    same(expected, report.result)
    assert [str(b) for b in report.breaks] == [] and report.skipped == []
    assert len(report.graphs) == 1
    return report


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.again = self.first


class Children(Two):
    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class Parameters(Two):
    def forward(self, x):
        total = sum(p.sum() for p in self.parameters())
        return x * total + len(list(self.modules()))


class FirstDtype(Two):
    def forward(self, x):
        return x.to(next(self.parameters()).dtype) + next(p for p in self.parameters()).sum()


class Keeps(Two):
    def forward(self, x):
        self.last = x + 1
        self.count = 3
        return self.first(x) + self.last


@pytest.mark.parametrize("module", [Children, Parameters, FirstDtype])
def test_what_a_module_consists_of(module):
    torch.manual_seed(0)
    whole(module().eval(), torch.randn(2, 4))


def test_children_that_are_one_module_at_another_call():
    torch.manual_seed(0)
    model, x = Children().eval(), torch.randn(2, 4)
    compiled = dyncomp.compile(model, backend="eager")
    with torch.no_grad():
        same(model(x), compiled(x))
        model.second = model.first
        same(model(x), compiled(x))
        model.second = nn.Linear(4, 4)
        same(model(x), compiled(x))


def test_attributes_of_modules_are_set():
    torch.manual_seed(0)
    module, x = Keeps().eval(), torch.randn(2, 4)
    whole(module, x)
    same(x + 1, module.last)
    assert module.count == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:1] + torch.arange(4, -4, -2.0, dtype=torch.int64),
        lambda x: x[:1] + torch.arange(0, 5, 1.0, dtype=torch.long),
        lambda x: x.view(torch.div(12, 2, rounding_mode="floor"), 2) + 1,
        lambda x: x.new_ones(size=(2, 3)) + x.new_zeros(size=(3,)) + x[0],
        lambda x: x[:2] + torch.as_tensor([1.0, 2.0]) + torch.as_tensor(3),
        lambda x: torch.as_tensor(x, dtype=torch.float64) * 2,
        lambda x: nn.functional.batch_norm(x.view(1, 6, 2), None, None, training=True, momentum=0.0),
        lambda x: nn.functional.batch_norm(x.view(3, 2, 2), None, None, x[:2], x[2:4], training=True),
        lambda x: nn.functional.adaptive_avg_pool2d(x.view(1, 1, 3, 4), (2, 3)) * 2,
        lambda x: (torch._assert(x.dim() == 1, f"no vector: {x.shape}"), x + 1)[1],
    ],
)
def test_calls(function):
    torch.manual_seed(0)
    whole(function, torch.randn(12))


def test_as_tensor_gives_back_its_argument():
    x = torch.randn(3)
    compiled = dyncomp.compile(lambda x: (x * 2, torch.as_tensor(x)), backend="eager")
    assert compiled(x)[1] is x


# -- autograd functions -----------------------------------------------------------------------
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k + 1

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


class WithSetup(torch.autograd.Function):
    @staticmethod
    def forward(x, k=3):
        return x * k, x - k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.k + h, None


class Passes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(y)
        y.add_(1)
        return x, y

    @staticmethod
    def backward(ctx, g, h):
        return g, h


@pytest.mark.parametrize(
    "function", [lambda x: Scaled.apply(x + 1, 3) * 2, lambda x: [t * 2 for t in WithSetup.apply(x)]]
)
def test_autograd_functions_without_gradients(function):
    torch.manual_seed(0)
    whole(function, torch.randn(5))


def test_autograd_functions_give_back_their_arguments_as_others():
    def f(x, y):
        a, b = Passes.apply(x, y)
        return a, b, a is x, b is y

    x, y = torch.ones(3), torch.zeros(3)
    with torch.no_grad():
        expected = f(x.clone(), y.clone())
        a, b, first, second = dyncomp.compile(f, backend="eager")(x, y)
    same(expected, (a, b, first, second))
    assert b is y and a.data_ptr() == x.data_ptr()


def test_autograd_functions_with_gradients_are_torchs():
    x = torch.ones(3, requires_grad=True)
    dyncomp.compile(lambda x: Scaled.apply(x, 3).sum(), backend="eager")(x).backward()
    same(torch.full((3,), 3.0), x.grad)


# -- attention --------------------------------------------------------------------------------
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_multihead_attention(need_weights, average):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()

    def f(q, k):
        return attention(q, k, k, need_weights=need_weights, average_attn_weights=average)

    whole(f, torch.randn(2, 5, 16), torch.randn(2, 7, 16))


PADDING = torch.arange(5) >= torch.tensor([[5], [3]])
HIDDEN = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
MASKS = {
    "padding": (PADDING, None),
    "queries": (None, HIDDEN),
    "both": (PADDING, HIDDEN),
    "numbers": (None, nn.Transformer.generate_square_subsequent_mask(5)),
    "nothing is seen": (PADDING | torch.tensor([[True], [False]]), HIDDEN | (torch.arange(5) == 2)[:, None]),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_with_masks(name, need_weights):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    padding, hidden = MASKS[name]

    def f(x):
        x = x + 0.0
        return attention(x, x, x, key_padding_mask=padding, attn_mask=hidden, need_weights=need_weights)

    whole(f, torch.randn(2, 5, 16))


@pytest.mark.parametrize("name", MASKS)
def test_transformer_encoder_with_masks(name):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    padding, hidden = MASKS[name]

    def f(x):
        return encoder(x * 2, mask=hidden, src_key_padding_mask=padding)

    whole(f, torch.randn(2, 5, 16), backend="inductor")


def test_hidden_scores_that_are_no_numbers_and_wrong_masks():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()

    def f(x, padding):
        return attention(x, x, x, key_padding_mask=padding, need_weights=True)

    x = torch.randn(2, 5, 16)
    x[1, 4] = float("inf")
    with torch.no_grad():
        torch.testing.assert_close(dyncomp.compile(f)(x, PADDING), f(x, PADDING), equal_nan=True)
        with pytest.raises((RuntimeError, AssertionError)):
            dyncomp.compile(f)(x, PADDING[:, :4])


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}])
def test_transformer_encoder(options):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    whole(encoder, torch.randn(2, 5, 16), backend="inductor")


def test_embedding_bag():
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(20, 4).eval()
    whole(lambda i: bag(i) * 2, torch.randint(0, 20, (3, 5)))


def test_hooks_that_are_registered_and_removed_later():
    torch.manual_seed(0)
    model, x = Children().eval(), torch.randn(2, 4)
    compiled = dyncomp.compile(model, backend="eager")
    with torch.no_grad():
        same(model(x), compiled(x))
        handle = model.second.register_forward_hook(lambda module, args, output: output * 2)
        same(model(x), compiled(x))
        handle.remove()
        same(model(x), compiled(x))


# -- windows ----------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1).unfold(2, 3, 2) * 2,
        lambda x: (x.unfold(1, 2, 1), x.unfold(2, 4, 4).sum(-1)),
        lambda x: x.unfold(2, 3, 2).unfold(1, 3, 1).reshape(2, -1) + 1,
        lambda x: x.as_strided((2, 3), (1, 2)) * 2 + torch.as_strided(x, (2,), (3,)).sum(),
        lambda x: x.transpose(0, 2).as_strided((4, 3), (5, 2)) * 2,
    ],
)
def test_windows(function, backend):
    torch.manual_seed(0)
    whole(function, torch.randn(2, 3, 8), backend=backend)


def test_windows_of_what_is_written_to_are_seen_to_change():
    def f(x):
        windows = x.unfold(0, 2, 1)
        x.mul_(2)
        return windows + 1, windows

    x = torch.randn(6)
    mine, theirs = x.clone(), x.clone()
    with torch.no_grad():
        same(f(theirs), dyncomp.compile(f, backend="eager")(mine))
    same(theirs, mine)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.as_strided((2, 3), (1, 2), 1) * 2,
        lambda x: x[2:].as_strided((2,), (1,)) * 2,
        lambda x: x[:2].as_strided((4,), (1,)) * 2,
        lambda x: x.as_strided((7,), (1,)) * 2,
        lambda x: x.unfold(0, 9, 1),
    ],
)
def test_windows_that_are_left_to_torch(function):
    x = torch.arange(6.0)

    def outcome(g):
        try:
            return g(x)
        except RuntimeError as error:
            return str(error)

    same(outcome(function), outcome(dyncomp.compile(function)))


class Stage(nn.Module):
    def __init__(self, count):
        super().__init__()
        for number in range(count):
            self.add_module(f"b{number}", nn.Linear(4, 4))

    def forward(self, x):
        for block in self.children():
            x = block(x).relu()
        return x


def test_many_layers_from_a_generator():
    torch.manual_seed(0)
    whole(Stage(15).eval(), torch.randn(2, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_sign_of_nan_is_zero(dtype):
    x = torch.tensor([float("nan"), -0.0, 0.0, -2.0, float("inf")], dtype=dtype).repeat(9)
    whole(lambda x: (x.sign(), torch.sign(x * 2)), x, backend="inductor")


DTYPES = {torch.float32: 2, torch.int64: 3}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.meshgrid(x[0, 0], x[:, 0, 0], indexing="ij"),
        lambda x: torch.meshgrid([x[0, 0], x[:, 0, 0], x[0, 0]], indexing="xy"),
        lambda x: torch.meshgrid(x[0, 0], indexing="xy"),
        lambda x: (x.reshape(shape=(4, 6)), torch.einsum("abc -> cab", x)),
        lambda x: x.mT.clone(memory_format=torch.contiguous_format),
        lambda x: torch.zeros_like(x.mT, memory_format=torch.contiguous_format),
        lambda x: (x.data + 1, x.long().data.view(-1)),
        lambda x: x * DTYPES.get(x.dtype, 5) + (torch.float64 in DTYPES) + DTYPES[torch.int64],
        lambda x: torch.div(x, 3, out=torch.empty(2, 3, 4)),
        lambda x: torch._VF.split_with_sizes(x, [1, 2], 1)[1] * 2,
        lambda x: torch.Tensor.split(x, [1, 2], dim=1)[1] * 2,
        lambda x: torch.detach(x) * 2,
    ],
)
def test_small_idioms(function):
    whole(function, torch.randn(2, 3, 4))


def test_checks_of_torch():
    def function(x):
        torch._check(x.shape[0] > 1, lambda: f"too short: {x.shape[0]}")
        torch._check_value(x.dim() == 2, lambda: "no matrix")
        return x * 2

    whole(function, torch.randn(2, 3))
    for x in (torch.randn(1, 3), torch.randn(2, 3, 4)):
        messages = []
        for f in (function, dyncomp.compile(function, backend="eager")):
            with pytest.raises((RuntimeError, ValueError)) as found:
                f(x)
            messages.append((found.type, str(found.value)))
        assert messages[0] == messages[1]


def test_batch_norm_of_batches_that_change():
    layers, expected = (nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False)) for _ in range(2))
    compiled = dyncomp.compile(layers, backend="eager")
    before = dyncomp.stats()
    for batch in (2, 3, 7, 5):
        x = torch.randn(batch, 4)
        same(expected(x), compiled(x))
        same([*expected.buffers()], [*layers.buffers()])
    assert dyncomp.stats()["graphs"] - before["graphs"] == 2
    assert dyncomp.stats()["breaks"] == before["breaks"]
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        compiled(torch.randn(1, 4))


def test_a_scalar_of_numpy_that_is_known_at_capture():
    def f(x, width):
        x = x * 1
        x *= np.sqrt(width)
        return x + np.sqrt(width) * x

    x = torch.ones(3)
    assert torch.equal(dyncomp.compile(f, fullgraph=True)(x, 16), f(x, 16))


def test_a_text_of_a_number_that_only_an_error_needs():
    """It is made when it is used, of the number as it was."""

    def f(x, least):
        count = (x > least).sum()
        text = f"only {count} of {x.sum():.3f}"
        torch._check_tensor_all(count > 1)
        return x * count, text

    x = torch.arange(5.0, requires_grad=True)
    compiled = dyncomp.compile(f, fullgraph=True)
    found, expected = compiled(x, 1), f(x, 1)
    assert found[1] == expected[1] and torch.equal(found[0], expected[0])
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        compiled(x, 3.5)


def test_texts_of_shapes_whose_sizes_change():
    """As of checks: ``torch._assert(x.dim() == 3, f"expected (batch, length, features), got {x.shape}")``."""

    def f(x):
        text = f"got {x.shape} and {x.size()!r:>40} {str(x.shape[1:])} {x.shape[:1]} {tuple(x.shape)}"
        torch._assert(x.dim() == 2, f"expected a matrix, got {x.shape}")
        return x * 2, text

    compiled = dyncomp.compile(f, fullgraph=True, backend="eager")
    dyncomp.reset()
    for n in (2, 3, 4, 5):
        x = torch.ones(n, 3)
        assert compiled(x)[1] == f(x)[1]
    assert dyncomp.stats()["graphs"] == 2


FACTORS = [{}, {"alpha": 0.5}, {"beta": 0.25, "alpha": 2}, {"beta": 0, "alpha": 2}, {"beta": 1.0}]


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
@pytest.mark.parametrize("name", ["addmm", "baddbmm"])
def test_products_that_are_added(name, dtype, factors):
    """One graph for caches that grow; NaN of an input whose factor is 0 is not looked at."""
    if dtype is torch.int64 and factors and factors.get("beta") != 0:
        factors = {"alpha": 2, "beta": 3}

    def f(c, a, b):
        return getattr(torch, name)(c, a, b, **factors) * 2

    compiled = dyncomp.compile(f, backend="eager")
    for rows in (1, 4):
        for n in (3, 4, 5, 6):
            found = []
            for call in (f, compiled):
                torch.manual_seed(n)
                shapes = ((2, rows, n), (2, 4, 8), (2, 8, n))
                given = [(torch.randn(s if name == "baddbmm" else s[1:]) * 3).to(dtype) for s in shapes]
                if dtype.is_floating_point:
                    given = [x.requires_grad_() for x in given]
                    given[0].data[..., 0, 0] = float("nan") if factors.get("beta") == 0 else 1.0
                result = call(*given)
                if dtype.is_floating_point:
                    result.sum().backward()
                found.append((result.detach(), *[x.grad for x in given]))
            same(*found)


class Queue(nn.Module):
    """A flag of a byte, as ActNorm layers have it; a position in a tensor of one element, as MoCo has it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))
        self.register_buffer("queue", torch.zeros(8, 3))
        self.loc = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        if self.initialized.item() == 0:
            self.loc.data.copy_(-x.mean(0))
            self.initialized.fill_(1)
        position = int(self.position)
        self.queue[position : position + x.shape[0]] = x.detach()
        self.position[0] = (position + x.shape[0]) % 8
        return x + self.loc, self.queue.clone(), float(x[:1, :1]), x[0, :1].item()


def test_numbers_of_one_element():
    torch.manual_seed(0)
    plain, given = Queue(), [torch.randn(2, 3) + k for k in range(6)]
    compiled = dyncomp.compile(copy.deepcopy(plain), backend="eager")
    for x in given:
        found, expected = compiled(x), plain(x)
        same(found[:2], expected[:2])
        assert found[2:] == expected[2:]
    report = dyncomp.explain(compiled, backend="eager")(given[0])
    assert not report.breaks and len(report.graphs) == 1


def test_devices_by_name():
    def f(x, name):
        device, zero = torch.device(name), torch.device("cuda", 0)
        return (
            torch.arange(3, device=device) + x.to(torch.device(type="cpu")),
            device == x.device,
            zero,
            device,
        )

    x = torch.ones(3)
    for name in ("cpu", torch.device("cpu")):
        found, expected = dyncomp.compile(f, fullgraph=True, backend="eager")(x, name), f(x, name)
        assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:]
    for name in ("nowhere", "cpu:x"):
        for call in (f, dyncomp.compile(f, backend="eager")):
            with pytest.raises(RuntimeError, match="device"):
                call(x, name)


def test_a_long_loop_within_layers():
    """Iterations of a layer are unrolled however many nodes the layers before it have made."""

    class Layer(torch.nn.Module):
        def forward(self, x):
            for _ in range(19):
                x = x / (x.sum(-1, keepdim=True) + 1)
                x = x / (x.sum(-2, keepdim=True) + 1)
            return x

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(Layer() for _ in range(12))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model, x = Model(), torch.rand(4, 4)
    with torch.no_grad():
        torch.testing.assert_close(dyncomp.compile(model, backend="eager", fullgraph=True)(x), model(x))


class Clamped(nn.Module):
    """As encoders of the DETR family do in training."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.3)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        x = self.norm(self.dropout(self.layer(x)))
        if self.training:
            if torch.isinf(x).any() or torch.isnan(x).any():
                limit = torch.finfo(x.dtype).max - 1000
                x = torch.clamp(x, min=-limit, max=limit)
        return x * 2


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_numbers_that_are_not_finite_are_asked_for(backend):
    """One graph; where there are some the original runs, with the same random numbers and buffers."""
    torch.manual_seed(0)
    plain, model = Clamped(), Clamped()
    model.load_state_dict(plain.state_dict())
    compiled = dyncomp.compile(model, backend=backend)
    good = torch.randn(5, 4)
    bad = good.clone()
    bad[0, 0] = float("inf")
    for step, x in enumerate((good, bad, good, bad)):
        results = []
        for form in (plain, compiled):
            torch.manual_seed(step)
            form.zero_grad()
            y = form(x)
            y.nansum().backward()
            results.append((y.detach(), [p.grad for p in form.parameters()], list(form.buffers())))
        same(*results)
    assert all(not entry.breaks for entry in dyncomp.explain(model, backend=backend)(good).entries)


class Numbered(nn.Module):
    """Layers that are taken by their numbers, with one that all share."""

    def __init__(self, count, width=8):
        super().__init__()
        self.count, self.norm = count, nn.LayerNorm(width)
        self.first = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.second = [nn.Linear(width, width).eval() for _ in range(count)]

    def forward(self, x):
        for number in range(self.count):
            y = self.second[-number - 1](self.first[number](self.norm(x)).softmax(-1)).sigmoid()
            for _ in range(4):
                y = y / (y.sum(-1, keepdim=True) + number) + y.std(0) * y.mean()
            x = x + y
        return x


def test_layers_by_their_numbers():
    """As many as there are are one graph, as they are where the loop is over the list itself."""
    torch.manual_seed(0)
    model, x = Numbered(24), torch.randn(2, 8)
    report = dyncomp.explain(model, backend="eager")(x)
    assert not report.breaks and len(report.graphs) == 1
    assert len(report.graphs[0].nodes) > 2 * 400  # more than steps that are alike may have
    same(report.result, model(x))


def test_steps_of_one_cell_are_no_layers():
    """A long loop over steps that call the same objects is not unrolled."""

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = Numbered(2)

        def forward(self, x):
            for _ in range(40):
                x = self.cell(x)
            return x

    torch.manual_seed(0)
    model, x = Steps(), torch.randn(2, 8)
    report = dyncomp.explain(model, backend="eager")(x)
    assert [record.id for record in report.breaks] == ["loop"]
    same(report.result, model(x))


def test_layers_backwards():
    """``reversed`` of what torch counts; the iterator goes on after a break as it was."""
    torch.manual_seed(0)
    layers = [nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)]

    def function(x, layers):
        for layer in reversed(layers):
            x = layer(x)
        rest = reversed(layers)
        return x, next(rest) is layers[2], list(rest)[0] is layers[1], list(rest), type(rest) is reversed

    for given in (nn.ModuleList(layers), nn.Sequential(*layers)):
        whole(function, torch.randn(2, 3), given)

    def broken(x, layers, seen, rest=None):
        for layer in reversed(layers):
            x = layer(x)
            seen.append(float(x.sum()))
            if len(seen) == 2 and rest:
                layers.extend(rest)
        return x

    def popping(x, layers):
        back = reversed(layers)
        x = next(back)(x)
        del layers[2], layers[1]
        seen.append(float(x.sum()))
        return x, list(back)

    with torch.no_grad():
        for rest in (None, [nn.ReLU()]):
            x, results = torch.randn(2, 3), []
            for f in (broken, dyncomp.compile(broken)):
                seen = []
                results.append((f(x, nn.ModuleList(layers), seen, rest), torch.tensor(seen)))
            same(*results)
        same(*[f(x, nn.ModuleList(layers)) for f in (popping, dyncomp.compile(popping))])


def test_layers_backwards_that_the_program_counts():
    """What a length of its own does happens once."""
    counts = []

    class Counted(nn.ModuleList):
        def __len__(self):
            counts.append(1)
            return super().__len__()

    def function(x, layers):
        for layer in reversed(layers):
            x = layer(x)
        return x

    layers, x = Counted([nn.Tanh(), nn.ReLU()]), torch.randn(2, 3)
    before = len(counts)
    expected = function(x, layers)
    made = len(counts) - before
    before = len(counts)
    same(expected, dyncomp.compile(function)(x, layers))
    assert len(counts) - before == made
