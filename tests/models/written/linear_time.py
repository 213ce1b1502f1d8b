"""Sequences without attention's square: retention, RWKV, selective scans."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import of


class LinearAttention(nn.Module):
    def __init__(self, dim=16, heads=2, causal=False, eps=1e-6):
        super().__init__()
        self.heads, self.causal, self.eps = heads, causal, eps
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)

    def forward(self, x):
        b, n, _, h = *x.shape, self.heads
        q, k, v = (t.view(b, n, h, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        if not self.causal:
            D_inv = 1.0 / (torch.einsum("...nd,...d->...n", q, k.sum(dim=-2)) + self.eps)
            context = torch.einsum("...nd,...ne->...de", k, v)
            out = torch.einsum("...de,...nd,...n->...ne", context, q, D_inv)
        else:
            kv = torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(dim=2)
            z = 1 / (torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2)) + self.eps)
            out = torch.einsum("bhnd,bhnde,bhn->bhne", q, kv, z)
        return out.transpose(1, 2).reshape(b, n, -1)


class Performer(nn.Module):
    """Random features, projected again from time to time."""

    def __init__(self, dim=8, nb_features=12):
        super().__init__()
        self.register_buffer("projection_matrix", self.create_projection(nb_features, dim))
        self.qkv = nn.Linear(dim, 3 * dim)

    @staticmethod
    def create_projection(m, d):
        blocks = []
        for _ in range(int(m / d)):
            q, _ = torch.linalg.qr(torch.randn((d, d)), mode="reduced")
            blocks.append(q.t())
        blocks.append(blocks[0][: m - int(m / d) * d])
        return torch.diag(torch.randn(m, d).norm(dim=1)) @ torch.cat(blocks)

    def softmax_kernel(self, data, is_query, eps=1e-4):
        data_normalizer = data.shape[-1] ** -0.25
        ratio = self.projection_matrix.shape[0] ** -0.5
        data_dash = torch.einsum("bid,jd->bij", (data_normalizer * data), self.projection_matrix)
        diag_data = ((data**2).sum(dim=-1) / 2.0) * (data_normalizer**2)
        m = torch.amax(data_dash, dim=-1 if is_query else (-1, -2), keepdim=True).detach()
        return ratio * (torch.exp(data_dash - diag_data.unsqueeze(dim=-1) - m) + eps)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k = self.softmax_kernel(q, True), self.softmax_kernel(k, False)
        D = 1 / torch.einsum("bnf,bf->bn", q, k.sum(1))
        return torch.einsum("bnf,bfe,bn->bne", q, torch.einsum("bnf,bne->bfe", k, v), D)


class RetNet(nn.Module):
    """Retention in its parallel form with decay, and a group norm."""

    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.h = heads
        self.wq, self.wk, self.wv, self.wg, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(5))
        self.gn = nn.GroupNorm(heads, dim)
        self.gammas = (1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), heads))).tolist()

    def forward(self, x):
        b, n, d = x.shape
        i, j = torch.arange(n)[:, None], torch.arange(n)[None]
        out = []
        for q, k, v, g in zip(
            self.wq(x).chunk(self.h, -1),
            self.wk(x).chunk(self.h, -1),
            self.wv(x).chunk(self.h, -1),
            self.gammas,
        ):
            D = (g ** (i - j).float()) * (i >= j).float()
            D[D != D] = 0
            out.append((q @ k.mT * D) @ v)
        y = torch.cat(out, -1)
        y = self.gn(y.reshape(-1, d)).reshape(y.shape)
        return self.wo(x * torch.sigmoid(x) * self.wg(x) * y)


class RWKVTimeMix(nn.Module):
    def __init__(self, n_embd=8):
        super().__init__()
        self.time_decay = nn.Parameter(torch.linspace(-5, 3, n_embd))
        self.time_first = nn.Parameter(torch.ones(n_embd) * math.log(0.3))
        self.time_mix = nn.Parameter(torch.rand(3, n_embd))
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.key, self.value, self.receptance, self.output = (
            nn.Linear(n_embd, n_embd, bias=False) for _ in range(4)
        )

    def forward(self, x):
        B, T, C = x.size()
        xx = self.time_shift(x)
        k, v, r = (x * m + xx * (1 - m) for m in self.time_mix)
        k, v, r = self.key(k), self.value(v), torch.sigmoid(self.receptance(r))
        aa, bb = torch.zeros(B, C), torch.zeros(B, C)
        pp = torch.full((B, C), -1e38)
        w = -torch.exp(self.time_decay)
        ys = []
        for t in range(T):
            ww = self.time_first + k[:, t]
            p = torch.maximum(pp, ww)
            e1, e2 = torch.exp(pp - p), torch.exp(ww - p)
            ys.append((e1 * aa + e2 * v[:, t]) / (e1 * bb + e2))
            ww = pp + w
            p = torch.maximum(ww, k[:, t])
            e1, e2 = torch.exp(ww - p), torch.exp(k[:, t] - p)
            aa, bb, pp = e1 * aa + e2 * v[:, t], e1 * bb + e2, p
        return self.output(r * torch.stack(ys, dim=1))


class MambaScan(nn.Module):
    """Selective scan, in Python."""

    def __init__(self, d_model=8, d_state=4, d_conv=3, dt_rank=2):
        super().__init__()
        self.d_inner, self.d_state, self.dt_rank, self.d_conv = 2 * d_model, d_state, dt_rank, d_conv
        self.in_proj = nn.Linear(d_model, 4 * d_model, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1)
        self.x_proj = nn.Linear(self.d_inner, dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(dt_rank, self.d_inner)
        A = torch.arange(1, d_state + 1).float().repeat(self.d_inner, 1)
        self.A_log, self.D = nn.Parameter(torch.log(A)), nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        (b, l, d) = x.shape
        (x, res) = self.in_proj(x).split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = self.conv1d(x.transpose(1, 2))[:, :, :l].transpose(1, 2)
        x = F.silu(x)
        A = -torch.exp(self.A_log.float())
        (delta, B, C) = self.x_proj(x).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, x)
        h = torch.zeros((b, self.d_inner, self.d_state), device=deltaA.device)
        ys = []
        for i in range(l):
            h = deltaA[:, i] * h + deltaB_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", h, C[:, i, :]))
        y = torch.stack(ys, dim=1) + x * self.D
        return self.out_proj(y * F.silu(res))


def seq(b=2, n=8, d=16):
    return torch.randn(b, n, d)


CASES = [
    of("linear_attention", LinearAttention, seq),
    of("linear_attention_causal", lambda: LinearAttention(causal=True), seq),
    of("performer", Performer, lambda: seq(d=8)),
    of("retnet", RetNet, seq),
    of("rwkv_time_mix", RWKVTimeMix, lambda: seq(d=8, n=5)),
    of("mamba_scan", MambaScan, lambda: seq(d=8, n=5)),
]
