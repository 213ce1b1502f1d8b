"""Gradients of attention in which some queries see no key, as in sequences padded on the left."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

F = torch.nn.functional

import dyncomp  # noqa: E402

HIDDEN = torch.tensor([[False, False, False], [True, False, False], [True, True, False]])
ADDED = torch.zeros(3, 3).masked_fill(~HIDDEN, float("-inf"))

MASKS = {
    "boolean": HIDDEN,
    "by head": HIDDEN.expand(2, 1, 3, 3),
    "added": ADDED,
    "all hidden": torch.zeros(3, 3, dtype=torch.bool),
    "nothing hidden": torch.ones(3, 3, dtype=torch.bool),
}


def gradients(function, tensors):
    for each in tensors:
        each.grad = None
    found = function(*tensors)
    found.sin().sum().backward()
    return [found.detach(), *(each.grad for each in tensors)]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", MASKS)
def test_rows_that_see_nothing(name, backend):
    torch.manual_seed(0)
    dyncomp.reset()
    tensors = [torch.randn(2, 2, 3, 4, requires_grad=True) for _ in range(3)]

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=MASKS[name])

    expected = gradients(attend, tensors)
    assert not any(t.isnan().any() for t in expected)
    fast = dyncomp.compile(attend, backend=backend, fullgraph=True)
    for _ in range(2):
        for found, wanted in zip(gradients(fast, tensors), expected):
            torch.testing.assert_close(found, wanted)
    assert dyncomp.stats()["fallbacks"] == 0


def test_of_a_mask_that_is_trained():
    torch.manual_seed(0)
    dyncomp.reset()
    tensors = [torch.randn(2, 2, 3, 4, requires_grad=True) for _ in range(3)]
    bias = torch.randn(2, 3, 3, requires_grad=True)

    def attend(q, k, v, b):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=b.masked_fill(~HIDDEN, float("-inf")))

    expected = gradients(attend, [*tensors, bias])
    fast = dyncomp.compile(attend, fullgraph=True)
    for found, wanted in zip(gradients(fast, [*tensors, bias]), expected):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("kind", ["nothing", "causal", "bool", "float"])
@pytest.mark.parametrize("turned", [False, True])
def test_dropout(kind, turned):
    """The weights are dropped by torch's numbers, and the result lies as that of its several calls."""

    def f(q, k, v, mask):
        causal = kind == "causal"
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.3, is_causal=causal)

    mask = {"bool": torch.rand(2, 1, 5, 5) > 0.3, "float": torch.randn(2, 1, 5, 5)}.get(kind)
    if kind == "bool":
        mask[0, 0, 1] = False  # a row that sees nothing
    qkv = [torch.randn(2, 5, 3, 8).transpose(1, 2) if turned else torch.randn(2, 3, 5, 8) for _ in range(3)]
    qkv = [x.requires_grad_() for x in qkv]
    results = []
    for each in (f, dyncomp.compile(f, fullgraph=True)):
        torch.manual_seed(0)
        result = each(*qkv, mask)
        results.append((result, torch.autograd.grad((result * result).sum(), qkv), torch.rand(2)))
    (expected, gradients, next_number), (found, found_gradients, found_next) = results
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride() and torch.equal(found_next, next_number)
    torch.testing.assert_close(found_gradients, gradients)
