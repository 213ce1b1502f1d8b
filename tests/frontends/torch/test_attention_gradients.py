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


# -- dropout ---------------------------------------------------------------------------------------
def _dropout_arguments(case: str, dtype: torch.dtype) -> tuple[list[torch.Tensor], dict[str, object]]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, n, w, dtype=dtype) for n, w in ((5, 8), (7, 8), (7, 6)))
    mask = torch.rand(5, 7) > 0.4
    mask[2] = False
    settings: dict[str, dict[str, object]] = {
        "causal": {"is_causal": True},
        "mask": {"attn_mask": torch.randn(2, 1, 5, 7).to(dtype)},
        "truths": {"attn_mask": mask},
        "groups": {"enable_gqa": True},
    }
    if case == "groups":
        k, v = k[:, :2], v[:, :2]
    elif case == "one batch":
        k, v = k[:1], v[:1]
    return [q.transpose(1, 2).contiguous().transpose(1, 2), k, v], settings.get(case, {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "truths", "groups", "one batch"])
def test_dropout_of_weights(case, dtype):
    """torch's own numbers, in one graph."""
    arguments, settings = _dropout_arguments(case, dtype)

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.3, **settings)

    found = []
    dyncomp.reset()
    for function in (attend, dyncomp.compile(attend, fullgraph=True)):
        given = [x.clone().requires_grad_() for x in arguments]
        torch.manual_seed(3)
        out = function(*given)
        out.float().square().sum().backward()
        found.append([out.detach(), *(x.grad for x in given)])
        found[-1].append(torch.rand(2).to(dtype))  # as many numbers were drawn
    for mine, theirs in zip(*found, strict=True):
        assert mine.dtype == theirs.dtype and mine.stride() == theirs.stride()
        close = 0.02 if dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(mine, theirs, rtol=close, atol=close)
