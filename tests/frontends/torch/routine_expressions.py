"""Expressions whose functions are torch's own routines, called by graphs; arguments as in ``expressions``,
and n (2, 4, 8, 8), c (6, 6) symmetric and positive definite, k (5, 6) int64 below 5."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

ORDER = {
    "topk": lambda x: x.topk(3),
    "topk-fields": lambda x: (x.topk(2).values * 2, torch.topk(x, 2, dim=0, largest=False).indices),
    "sort": lambda x: torch.sort(x, dim=0),
    "sort-transposed": lambda t: t.sort(0),
    "sort-descending": lambda x: x.sort(descending=True)[0],
    "argsort": lambda x: x.argsort(),
    "median": lambda x: (x.median(), x.median(1)),
    "quantile": lambda x: x.quantile(0.3),
    "kthvalue": lambda x: x.kthvalue(2),
    "histc": lambda x: torch.histc(x, 10),
    "cummax": lambda x: x.cummax(1),
    "aminmax": lambda x: torch.aminmax(x),
    "max-dim": lambda x: x.max(1),
    "max-indices": lambda x: x.max(dim=0).indices,
    "searchsorted": lambda x, b: torch.searchsorted(b.sort()[0], x),
    "bucketize": lambda x, b: torch.bucketize(x, b.sort()[0]),
    "isin": lambda k: torch.isin(k, torch.tensor([1, 2])),
    "half": lambda x: (x.to(torch.float16).sort()[0], x.bfloat16().topk(2)),
    "nonzero": lambda m: torch.nonzero(m) + 1,
}
WRITING = {
    "scatter": lambda x, k, y: x.scatter(0, k, y),
    "scatter_add": lambda x, k, y: torch.scatter_add(x, 0, k, y),
    "scatter_": lambda x, k, y: x.clone().scatter_(0, k, y),
    "index_add": lambda x, y: x.index_add(0, torch.tensor([1, 2]), y[:2]),
    "index_fill_": lambda x: x.clone().index_fill_(0, torch.tensor([1]), 2.0),
    "cumsum_": lambda x: x.clone().cumsum_(0),
    "masked_scatter_": lambda x, m, y: x.clone().masked_scatter_(m, y),
    "tril_": lambda x: x.clone().tril_(),
    "empty": lambda: (torch.empty(3, 4).fill_(2), torch.empty(2, dtype=torch.int64).zero_()),
    "empty_like": lambda x, t: (torch.empty_like(x).fill_(1), torch.empty_like(t).fill_(1)),
}
ARRANGEMENT = {
    "roll": lambda x: (torch.roll(x, 1, 0), x.roll((1, 2), (0, 1))),
    "rot90": lambda x: torch.rot90(x),
    "kron": lambda x, y: torch.kron(x, y),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
    "diagonal": lambda x: x.diagonal(),
    "diagonal-written": lambda c: c.clone().diagonal().mul_(2),
    "diag_embed": lambda x: torch.diag_embed(x),
    "stacks": lambda x, y: (torch.hstack([x, y]), torch.vstack([x, y]), torch.column_stack([x, y])),
    "pad": lambda n: (F.pad(n, (1, 1, 2, 2)), F.pad(n, (1, -1), value=3.0)),
    "pad-reflect": lambda n: F.pad(n, (1, 1, 2, 2), mode="reflect"),
    "pad-replicate": lambda n: F.pad(n, (1, 1, 2, 2), mode="replicate"),
    "pad-circular": lambda n: F.pad(n, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda n: (F.pixel_shuffle(n, 2), F.pixel_unshuffle(n, 2)),
    "unfold": lambda n: F.unfold(n, 3),
    "fold": lambda n: F.fold(F.unfold(n, 2), (8, 8), 2),
    "one_hot": lambda k: F.one_hot(k, 5),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 4]),
    "broadcast_tensors": lambda x, b: torch.broadcast_tensors(x, b),
    "block_diag": lambda x, y: torch.block_diag(x, y),
    "constants": lambda x: (torch.eye(6) + x[:1], torch.linspace(0, 1, 5) * x[:, 0], torch.hann_window(6)),
}
PRODUCTS = {
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "baddbmm": lambda n: torch.baddbmm(n[0], n[0], n[1]),
    "outer": lambda b: torch.outer(b, b),
    "tensordot": lambda x, y: torch.tensordot(x, y.T, 1),
    "inv": lambda c: torch.linalg.inv(c),
    "cholesky": lambda c: torch.linalg.cholesky(c),
    "eigvalsh": lambda c: torch.linalg.eigvalsh(c),
    "solve": lambda c: torch.linalg.solve(c, c + 1),
    "det": lambda c: torch.det(c),
    "norm": lambda x: (x.norm(), x.norm(dim=1), torch.linalg.norm(x)),
    "cdist": lambda x, y: torch.cdist(x, y),
    "multi_dot": lambda x, y: torch.linalg.multi_dot([x, y.T, x]),
}
LAYERS = {
    "interpolate": lambda n: F.interpolate(n, scale_factor=2),
    "bilinear": lambda n: F.interpolate(n, size=(5, 5), mode="bilinear"),
    "bicubic": lambda n: F.interpolate(n, scale_factor=0.5, mode="bicubic", align_corners=True),
    "adaptive_max_pool2d": lambda n: F.adaptive_max_pool2d(n, 3),
    "max_pool2d-indices": lambda n: F.max_pool2d(n, 3, 1, 1, return_indices=True),
    "avg_pool2d": lambda n: F.avg_pool2d(n, 3, 2, 1, count_include_pad=False),
    "permuted": lambda n: F.interpolate(n.permute(0, 2, 3, 1).clone().permute(0, 3, 1, 2), size=(4, 4)),
    "cross_entropy": lambda x, k: F.cross_entropy(x, k[:, 0]),
    "l1_loss": lambda x, y: F.l1_loss(x, y),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y),
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y),
    "hardshrink": lambda x: (F.hardshrink(x), F.softshrink(x), F.tanhshrink(x), F.threshold(x, 0.1, 2.0)),
    "grid_sample": lambda n: F.grid_sample(n, n[:, :2].permute(0, 2, 3, 1).sigmoid(), align_corners=False),
    "conv_transpose2d": lambda n: F.conv_transpose2d(n, torch.ones(4, 3, 3, 3), stride=2),
    "normalize": lambda x: F.normalize(x, dim=1),
}
ANSWERS = {
    "equal": lambda x, y: (x.equal(y), torch.equal(x, x), x.equal(y[:2])),
    "allclose": lambda x, y: (x.allclose(y), torch.allclose(x, x)),
    "item": lambda k: k.sum().item(),
    "result_type": lambda x, k: (torch.result_type(x, k), torch.result_type(k, 1.5)),
    "promote_types": lambda x: torch.promote_types(x.dtype, torch.float64),
    "type": lambda x: (x.type(), x.type(torch.float64)),
    "broadcast_shapes": lambda x: torch.broadcast_shapes(x.shape, (2, 1, 1)),
}
ALL = {**ORDER, **WRITING, **ARRANGEMENT, **PRODUCTS, **LAYERS, **ANSWERS}
