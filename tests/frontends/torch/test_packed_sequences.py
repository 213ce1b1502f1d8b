"""Packed sequences: one graph forward and backward for all lengths; eager's results, gradients and errors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

from .harness import meaningful  # noqa: E402

nn = torch.nn
rnn = nn.utils.rnn
BACKENDS = ("eager", "inductor")
LAYERS = {
    "lstm": lambda: nn.LSTM(4, 3, batch_first=True),
    "lstm-two-ways": lambda: nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True, bias=False),
    "lstm-projected": lambda: nn.LSTM(4, 3, proj_size=2, batch_first=True),
    "gru": lambda: nn.GRU(4, 3, 2, batch_first=True),
    "gru-two-ways": lambda: nn.GRU(4, 3, bidirectional=True, batch_first=True),
    "rnn": lambda: nn.RNN(4, 3, nonlinearity="relu", batch_first=True),
}
FALLING = ([6, 4, 1], [6, 6, 6], [2, 1, 1], [5, 5, 2], [1, 1, 1])
LENGTHS = {True: FALLING, False: ([4, 6, 1], [1, 2, 1], [2, 5, 5], [1, 2, 3], [3, 3, 3])}


class Encoder(nn.Module):
    def __init__(self, layer, enforce_sorted=True, **options):
        super().__init__()
        self.layer, self.enforce_sorted, self.options = layer, enforce_sorted, options

    def forward(self, x, lengths, hx=None):
        packed = rnn.pack_padded_sequence(
            torch.tanh(x), lengths, batch_first=True, enforce_sorted=self.enforce_sorted
        )
        out, state = self.layer(packed, hx)
        padded, found = rnn.pad_packed_sequence(out, batch_first=True, **self.options)
        return padded * 2, found, out.data + 1, out.batch_sizes, state


def flat(result):
    if not isinstance(result, tuple):
        return [result] if isinstance(result, torch.Tensor) else []
    return [t for part in result for t in flat(part)]


def results(call, module, x, *rest):
    """What a call gives, and the gradients of what is made of it."""
    x = x.clone().requires_grad_(torch.is_grad_enabled())
    module.zero_grad()
    found = flat(call(x, *rest))
    if not torch.is_grad_enabled():
        return found
    sum((t * t.detach().cos()).sum() for t in found if t.requires_grad).backward()
    return [*found, x.grad, *(p.grad for p in module.parameters())]


def assert_equal(found, expected):
    layouts = [[(t.shape, meaningful(t), t.dtype, t.requires_grad) for t in ts] for ts in (found, expected)]
    assert layouts[0] == layouts[1]
    for mine, their in zip(found, expected):
        torch.testing.assert_close(mine, their)


def check(module, calls, backend, graphs=1):
    """One graph (and one backward), whatever the lengths are."""
    fast = dyncomp.compile(module, backend=backend)
    report = dyncomp.explain(module)(*calls[0])
    assert not report.breaks and not report.skipped and len(report.graphs) == 1
    before = dyncomp.stats()
    for call in calls:
        assert_equal(results(fast, module, *call), results(module, module, *call))
    after = dyncomp.stats()
    assert after["fallbacks"] == before["fallbacks"], "the graph raised, the original ran"
    assert after["graphs"] - before["graphs"] == graphs


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("enforce_sorted", (True, False))
@pytest.mark.parametrize("name", LAYERS)
def test_lengths_change(name, enforce_sorted, backend):
    torch.manual_seed(0)
    module = Encoder(LAYERS[name](), enforce_sorted)
    calls = [(torch.randn(3, 6, 4), torch.tensor(lengths)) for lengths in LENGTHS[enforce_sorted]]
    check(module, calls, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ("lstm-two-ways", "gru"))
def test_without_gradients(name, backend):
    torch.manual_seed(0)
    module = Encoder(LAYERS[name](), False).eval()
    with torch.no_grad():
        calls = [(torch.randn(3, 6, 4), torch.tensor(lengths)) for lengths in LENGTHS[False]]
        check(module, calls, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_change(backend):
    torch.manual_seed(0)
    module = Encoder(LAYERS["gru-two-ways"](), False)
    lengths = [torch.randint(1, 5 + n, (2 + n,)) for n in range(5)]
    fast = dyncomp.compile(module, backend=backend, fullgraph=True)
    for many in lengths:
        x = torch.randn(len(many), 5 + len(many), 4)
        assert_equal(results(fast, module, x, many), results(module, module, x, many))


@pytest.mark.parametrize("backend", BACKENDS)
def test_options_and_states(backend):
    torch.manual_seed(0)
    module = Encoder(LAYERS["lstm"](), False, total_length=8, padding_value=-1.5)
    state = (torch.randn(1, 3, 3), torch.randn(1, 3, 3))
    calls = [(torch.randn(3, 6, 4), torch.tensor(lengths).int(), state) for lengths in LENGTHS[False]]
    check(module, calls, backend)


def captions(x, lengths):
    """Words and what is thought of them, packed for a loss."""
    words = (x[..., 0] > 0).long()
    targets = rnn.pack_padded_sequence(words, lengths, batch_first=True).data
    scores = rnn.pack_padded_sequence(x, lengths, batch_first=True)[0]
    return nn.functional.cross_entropy(scores, targets), targets


def steps_first(x, lengths):
    packed = rnn.pack_padded_sequence(x.transpose(0, 1).cos(), lengths)
    assert type(packed) is rnn.PackedSequence and packed.sorted_indices is None
    padded, again = rnn.pad_packed_sequence(packed, total_length=x.shape[1])
    return padded, again, packed.batch_sizes * 2, packed._replace(data=packed.data.exp()).data


def many_dimensions(x, lengths):
    y = torch.stack([x, x * 2], 2)
    packed = rnn.pack_padded_sequence(y, lengths, batch_first=True, enforce_sorted=False)
    numbers = rnn.pack_padded_sequence((y > 0).int().transpose(0, 1), lengths, enforce_sorted=False)
    padded = rnn.pad_packed_sequence(rnn.PackedSequence(packed.data.sin(), *packed[1:]), batch_first=True)
    return padded[0].sum(-1), *(rnn.pad_packed_sequence(numbers, padding_value=n) for n in (0.0, 7))


def known_width(x, lengths):
    packed = rnn.pack_padded_sequence(x.double(), lengths, batch_first=True).to("cpu")
    return (
        rnn.pad_packed_sequence(packed, batch_first=True)[0].sum(1),
        len(packed),
        int(packed.batch_sizes[0]),
    )


def sequences(x, lengths):
    packed = rnn.pack_sequence([x[0, :3] * 2, x[1, :5], x[2, :2].sin()], enforce_sorted=False)
    return packed.data, packed.batch_sizes, rnn.pad_packed_sequence(packed)


def zeros_by_count(x, lengths):
    packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
    width = packed.batch_sizes[-1]
    return torch.zeros(2, width) - 1, torch.ones((lengths[1], 2)).cumsum(0) * x.sum(), x.new_zeros(width, 1)


PROGRAMS = (captions, steps_first, many_dimensions, known_width, sequences, zeros_by_count)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program, backend):
    fast = dyncomp.compile(program, backend=backend, fullgraph=True)
    before = dyncomp.stats()["fallbacks"]
    for lengths in ([6, 6, 5], [5, 5, 4], [3, 3, 3]):
        mine = torch.randn(3, 6, 4, requires_grad=True)
        theirs = mine.detach().clone().requires_grad_()
        found, expected = fast(mine, torch.tensor(lengths)), program(theirs, torch.tensor(lengths))
        found, expected = flat(found), flat(expected)
        assert_equal(found, expected)
        for tensors in (found, expected):
            sum((t * t).sum() for t in tensors if t.requires_grad).backward()
        torch.testing.assert_close(mine.grad, theirs.grad)
    assert dyncomp.stats()["fallbacks"] == before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lengths", ([1, 1, 1], [3, 3, 3]))
def test_lengths_that_are_alike(lengths, backend):
    module = Encoder(LAYERS["gru"](), False)
    fast = dyncomp.compile(module, backend=backend, fullgraph=True)
    for _ in range(2):
        x = torch.randn(3, 6, 4)
        assert_equal(
            results(fast, module, x, torch.tensor(lengths)), results(module, module, x, torch.tensor(lengths))
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_of_lengths(backend):
    """The sizes are known, and become symbols where they change."""
    module = Encoder(LAYERS["lstm"](), False)
    fast = dyncomp.compile(module, backend=backend, fullgraph=True)
    assert not dyncomp.explain(module)(torch.randn(3, 6, 4), [3, 6, 2]).breaks
    for lengths in ([3, 6, 2], [3, 6, 2], [4, 5, 3], [2, 2, 6], [5, 4, 2]):
        before = dyncomp.stats()["graphs"]
        x = torch.randn(3, 6, 4)
        assert_equal(results(fast, module, x, lengths), results(module, module, x, lengths))
    assert dyncomp.stats()["graphs"] == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_constant_lengths(backend):
    layer = nn.LSTM(4, 3)

    def program(x):
        packed = rnn.pack_padded_sequence(x, [5, 3, 2])
        return rnn.pad_packed_sequence(layer(packed)[0]), packed.data.shape[0]

    fast = dyncomp.compile(program, backend=backend, fullgraph=True)
    for x in (torch.randn(6, 3, 4), torch.randn(5, 3, 4)):
        assert_equal(flat(fast(x)), flat(program(x)))
        assert fast(x)[1] == 10


REFUSED = (
    (True, [2, 3, 1]),
    (True, [3, 2, 0]),
    (True, [2, 1, -1]),
    (False, [2, 0, 1]),
    (True, [3, 2]),
    (False, [3, 2, 1, 1]),
    (False, []),
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_list", (False, True))
@pytest.mark.parametrize("enforce_sorted, lengths", REFUSED)
def test_refused_lengths(enforce_sorted, lengths, is_list, backend):
    module = Encoder(LAYERS["gru"](), enforce_sorted)
    fast = dyncomp.compile(module, backend=backend)
    x, good = torch.randn(3, 6, 4), [3, 2, 1]
    bad = lengths
    if not is_list:
        good, bad = torch.tensor(good), torch.tensor(lengths, dtype=torch.int64)
    for _ in range(2):
        assert_equal(results(fast, module, x, good), results(module, module, x, good))
        errors = []
        for call in (fast, module):
            with pytest.raises(Exception) as caught:
                call(x, bad)
            errors.append((caught.type, str(caught.value)))
        assert errors[0] == errors[1]


def test_the_packed_data_alone_raises():
    def program(x, lengths):
        return rnn.pack_padded_sequence(x, lengths, batch_first=True).data.sum()

    def counts(x, lengths):
        return rnn.pack_padded_sequence(x, lengths, batch_first=True).batch_sizes

    for f in (program, counts):
        fast = dyncomp.compile(f, fullgraph=True)
        x = torch.randn(3, 6, 4)
        torch.testing.assert_close(fast(x, torch.tensor([3, 2, 1])), f(x, torch.tensor([3, 2, 1])))
        for lengths in ([2, 3, 1], [3, 2, 0]):
            with pytest.raises(RuntimeError, match="engths|ength of all"):
                fast(x, torch.tensor(lengths))


@pytest.mark.parametrize("backend", BACKENDS)
def test_total_length_that_is_too_small(backend):
    module = Encoder(LAYERS["lstm"](), total_length=4)
    fast = dyncomp.compile(module, backend=backend)
    x = torch.randn(3, 6, 4)
    for lengths in ([4, 3, 1], [5, 3, 1], [2, 2, 2]):
        lengths = torch.tensor(lengths)
        if lengths[0] > 4:
            with pytest.raises(ValueError, match="total_length"):
                fast(x, lengths)
        else:
            assert_equal(results(fast, module, x, lengths), results(module, module, x, lengths))


@pytest.mark.parametrize("backend", BACKENDS)
def test_packed_arguments(backend):
    """Batch sizes that are given are data: a graph for all of as many steps."""
    layer = nn.GRU(4, 3, bidirectional=True)

    def program(packed):
        out, state = layer(packed)
        return rnn.pad_packed_sequence(out)[0] * 2, state, out

    fast = dyncomp.compile(program, backend=backend, fullgraph=True)
    for lengths in ([5, 3, 1], [5, 5, 2], [5, 1, 1], [4, 4], [4, 2, 2, 1]):
        given = rnn.pack_padded_sequence(torch.randn(5, len(lengths), 4), torch.tensor(lengths))
        found, expected = fast(given), program(given)
        assert type(found[2]) is rnn.PackedSequence
        assert_equal(flat(found), flat(expected))


def test_dropout_between_packed_layers():
    torch.manual_seed(0)
    module = Encoder(nn.LSTM(4, 3, 3, dropout=0.5, batch_first=True))
    fast = dyncomp.compile(module)
    x, lengths = torch.randn(3, 6, 4), torch.tensor([5, 4, 2])
    for training in (True, False):
        module.train(training)
        torch.manual_seed(1)
        found = results(fast, module, x, lengths)
        torch.manual_seed(1)
        assert_equal(found, results(module, module, x, lengths))


def test_second_derivatives():
    module = Encoder(LAYERS["rnn"]().double())
    x, lengths = torch.randn(3, 6, 4, dtype=torch.float64), torch.tensor([5, 4, 2])
    fast = dyncomp.compile(module)
    found = []
    for call in (fast, module):
        given = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(call(given, lengths)[0].pow(3).sum(), given, create_graph=True)
        found.append(torch.autograd.grad(slope.pow(2).sum(), given)[0])
    torch.testing.assert_close(*found)
