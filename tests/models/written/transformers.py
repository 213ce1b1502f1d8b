"""Transformers of all sorts, attention written by hand."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import of


@dataclass
class GPTConfig:
    block_size: int = 32
    vocab_size: int = 50
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.1
    bias: bool = True
    flash: bool = True


class LayerNorm(nn.Module):
    """LayerNorm but with an optional bias"""

    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head, self.n_embd, self.dropout = config.n_head, config.n_embd, config.dropout
        self.flash = config.flash and hasattr(torch.nn.functional, "scaled_dot_product_attention")
        if not self.flash:
            tril = torch.tril(torch.ones(config.block_size, config.block_size))
            self.register_buffer("bias", tril.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        if self.flash:
            y = F.scaled_dot_product_attention(
                q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True
            )
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = F.softmax(att, dim=-1)
            att = self.attn_dropout(att)
            y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


class GPTBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = LayerNorm(config.n_embd, config.bias), CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(config.n_embd, 4 * config.n_embd),
                "c_proj": nn.Linear(4 * config.n_embd, config.n_embd),
                "dropout": nn.Dropout(config.dropout),
            }
        )

    def mlpf(self, x):
        m = self.mlp
        return m.dropout(m.c_proj(F.gelu(m.c_fc(x))))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList([GPTBlock(config) for _ in range(config.n_layer)]),
                "ln_f": LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        assert t <= self.config.block_size, f"Cannot forward sequence of length {t}"
        pos = torch.arange(0, t, dtype=torch.long, device=device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits, loss = self.lm_head(x[:, [-1], :]), None
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens=4, temperature=0.8, top_k=5):
        for _ in range(max_new_tokens):
            idx_cond = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
        return idx


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(xq, xk, freqs_cis):
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    shape = [d if i == 1 or i == xq_.ndim - 1 else 1 for i, d in enumerate(xq_.shape)]
    freqs_cis = freqs_cis.view(*shape)
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


def repeat_kv(x: torch.Tensor, n_rep: int) -> torch.Tensor:
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return (
        x[:, :, :, None, :]
        .expand(bs, slen, n_kv_heads, n_rep, head_dim)
        .reshape(bs, slen, n_kv_heads * n_rep, head_dim)
    )


class LlamaBlock(nn.Module):
    """Complex rotary embeddings, grouped queries, a cache of keys and values, SwiGLU."""

    def __init__(self, dim=32, n_heads=4, n_kv_heads=2, max_len=16, use_cache=False):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.n_rep = n_heads // n_kv_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        hidden = int(2 * 4 * dim / 3)
        hidden = 8 * ((hidden + 8 - 1) // 8)
        self.w1, self.w2, self.w3 = nn.Linear(dim, hidden), nn.Linear(hidden, dim), nn.Linear(dim, hidden)
        self.attention_norm, self.ffn_norm = RMSNorm(dim), RMSNorm(dim)
        self.freqs_cis = precompute_freqs_cis(self.head_dim, max_len * 2)
        self.use_cache = use_cache
        if use_cache:
            self.cache_k = torch.zeros((4, max_len, n_kv_heads, self.head_dim))
            self.cache_v = torch.zeros((4, max_len, n_kv_heads, self.head_dim))

    def forward(self, x, start_pos: int = 0):
        bsz, seqlen, _ = x.shape
        mask = None
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf"), device=x.device)
            mask = torch.triu(mask, diagonal=1)
            mask = torch.hstack([torch.zeros((seqlen, start_pos), device=x.device), mask]).type_as(x)
        h = self.attention_norm(x)
        xq, xk, xv = self.wq(h), self.wk(h), self.wv(h)
        xq = xq.view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = xk.view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xv = xv.view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xq, xk = apply_rotary_emb(xq, xk, self.freqs_cis[start_pos : start_pos + seqlen])
        if self.use_cache:
            self.cache_k[:bsz, start_pos : start_pos + seqlen] = xk.detach()
            self.cache_v[:bsz, start_pos : start_pos + seqlen] = xv.detach()
            xk, xv = self.cache_k[:bsz, : start_pos + seqlen], self.cache_v[:bsz, : start_pos + seqlen]
        keys, values = repeat_kv(xk, self.n_rep).transpose(1, 2), repeat_kv(xv, self.n_rep).transpose(1, 2)
        scores = torch.matmul(xq.transpose(1, 2), keys.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        out = torch.matmul(scores, values).transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        x = x + self.wo(out)
        h = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class RotaryEmbedding(nn.Module):
    """Sines and cosines, cached for the longest sequence seen."""

    def __init__(self, dim, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)
        self.seq_len_cached, self.cos_cached, self.sin_cached = None, None, None

    def forward(self, x, seq_dim=1):
        seq_len = x.shape[seq_dim]
        if seq_len != self.seq_len_cached:
            self.seq_len_cached = seq_len
            t = torch.arange(x.shape[seq_dim], device=x.device).type_as(self.inv_freq)
            freqs = torch.einsum("i,j->ij", t, self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1).to(x.device)
            self.cos_cached, self.sin_cached = emb.cos()[None, :, None, :], emb.sin()[None, :, None, :]
        return self.cos_cached, self.sin_cached


class RotaryAttention(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.out = nn.Linear(dim, dim * 3, bias=False), nn.Linear(dim, dim)
        self.rotary = RotaryEmbedding(dim // heads)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1) for t in self.to_qkv(x).chunk(3, dim=-1))
        cos, sin = self.rotary(q)
        q, k = (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)
        attn = torch.einsum("bihd,bjhd->bhij", q, k) * (d // self.heads) ** -0.5
        return self.out(torch.einsum("bhij,bjhd->bihd", attn.softmax(dim=-1), v).reshape(b, n, d))


class ALiBiAttention(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.register_buffer("m", self.get_slopes(heads).view(1, heads, 1, 1))
        self._bias_cache = {}

    @staticmethod
    def get_slopes(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return torch.tensor([start * start**i for i in range(n)])

    def alibi(self, n, device):
        if n not in self._bias_cache:
            pos = torch.arange(n, device=device)
            self._bias_cache[n] = (pos[None, :] - pos[:, None]).float()
        return self._bias_cache[n] * self.m

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        att = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + self.alibi(n, x.device)
        causal = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        att.masked_fill_(causal, -torch.finfo(att.dtype).max)
        return self.proj((att.softmax(-1) @ v).transpose(1, 2).flatten(2))


class T5RelativeBias(nn.Module):
    def __init__(self, heads=2, num_buckets=8, max_distance=16, dim=16):
        super().__init__()
        self.num_buckets, self.max_distance, self.heads = num_buckets, max_distance, heads
        self.relative_attention_bias = nn.Embedding(num_buckets, heads)
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def bucket(self, relative_position, bidirectional=True):
        ret, n = 0, -relative_position
        num_buckets = self.num_buckets
        if bidirectional:
            num_buckets //= 2
            ret += (n < 0).long() * num_buckets
            n = torch.abs(n)
        else:
            n = torch.max(n, torch.zeros_like(n))
        max_exact = num_buckets // 2
        is_small = n < max_exact
        val_if_large = max_exact + (
            torch.log(n.float() / max_exact)
            / math.log(self.max_distance / max_exact)
            * (num_buckets - max_exact)
        ).to(torch.long)
        val_if_large = torch.min(val_if_large, torch.full_like(val_if_large, num_buckets - 1))
        ret += torch.where(is_small, n, val_if_large)
        return ret

    def forward(self, x, mask=None):
        b, n, d = x.shape
        pos = torch.arange(n, dtype=torch.long, device=x.device)
        bias = (
            self.relative_attention_bias(self.bucket(pos[None, :] - pos[:, None]))
            .permute(2, 0, 1)
            .unsqueeze(0)
        )
        shape = lambda t: t.view(b, -1, self.heads, d // self.heads).transpose(1, 2)  # noqa: E731
        q, (k, v) = shape(self.q(x)), map(shape, self.kv(x).chunk(2, -1))
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += bias
        if mask is not None:
            scores += (1.0 - mask[:, None, None, :].to(scores.dtype)) * torch.finfo(scores.dtype).min
        w = F.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o(torch.matmul(w, v).transpose(1, 2).contiguous().view(b, -1, d))


class TransformerXLAttention(nn.Module):
    """Relative positions by the shift trick, with memory."""

    def __init__(self, d_model=16, n_head=2):
        super().__init__()
        self.n_head, self.d_head = n_head, d_model // n_head
        self.qkv_net, self.r_net = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.o_net, self.norm = nn.Linear(d_model, d_model), nn.LayerNorm(d_model)
        self.r_w_bias = nn.Parameter(torch.zeros(n_head, self.d_head))
        self.r_r_bias = nn.Parameter(torch.zeros(n_head, self.d_head))

    def _rel_shift(self, x):
        zero_pad = torch.zeros((x.size(0), 1, *x.size()[2:]), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([zero_pad, x], dim=1)
        x_padded = x_padded.view(x.size(1) + 1, x.size(0), *x.size()[2:])
        return x_padded[1:].view_as(x)

    def forward(self, w, mems=None):
        qlen, bsz = w.size(0), w.size(1)
        cat = torch.cat([mems, w], 0) if mems is not None else w
        pos_seq = torch.arange(cat.size(0) - 1, -1, -1.0)
        inv = 1 / (10000 ** (torch.arange(0.0, w.size(2), 2.0) / w.size(2)))
        r = torch.cat([torch.outer(pos_seq, inv).sin(), torch.outer(pos_seq, inv).cos()], -1)
        w_head_q, w_head_k, w_head_v = torch.chunk(self.qkv_net(cat), 3, dim=-1)
        w_head_q = w_head_q[-qlen:]
        klen = w_head_k.size(0)
        q, k, v = (t.view(-1, bsz, self.n_head, self.d_head) for t in (w_head_q, w_head_k, w_head_v))
        r_head_k = self.r_net(r).view(klen, self.n_head, self.d_head)
        AC = torch.einsum("ibnd,jbnd->ijbn", (q + self.r_w_bias, k))
        BD = self._rel_shift(torch.einsum("ibnd,jnd->ijbn", (q + self.r_r_bias, r_head_k)))
        attn_score = AC + BD
        attn_score.mul_(1 / (self.d_head**0.5))
        mask = torch.triu(w.new_ones(qlen, klen), diagonal=1 + klen - qlen).bool()[:, :, None, None]
        attn_score = attn_score.float().masked_fill(mask, -float("inf")).type_as(attn_score)
        vec = torch.einsum("ijbn,jbnd->ibnd", (F.softmax(attn_score, dim=1), v))
        return self.norm(w + self.o_net(vec.contiguous().view(qlen, bsz, -1)))


class MultiQueryAttention(nn.Module):
    def __init__(self, d=16, h=4, window=3):
        super().__init__()
        self.h, self.dk, self.window = h, d // h, window
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * (d // h)), nn.Linear(d, d)

    def forward(self, x, past=None, use_cache=False):
        b, t, d = x.shape
        q = self.q(x).view(b, t, self.h, self.dk)
        k, v = self.kv(x).split(self.dk, dim=-1)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        present = (k, v) if use_cache else None
        s = torch.einsum("bthd,bsd->bhts", q, k).div_(self.dk**0.5)
        offset = k.size(1) - t
        i, j = torch.arange(t).unsqueeze(1) + offset, torch.arange(k.size(1)).unsqueeze(0)
        keep = (j <= i) & (j > i - self.window)
        s = torch.where(keep, s, torch.tensor(float("-inf"), dtype=s.dtype))
        return self.o(torch.einsum("bhts,bsd->bthd", s.softmax(-1), v).reshape(b, t, d)), present


class LocalBlockAttention(nn.Module):
    """Sliding chunks by unfold."""

    def __init__(self, dim=8, window=4):
        super().__init__()
        self.window, self.qkv = window, nn.Linear(dim, 3 * dim)

    def forward(self, x):
        b, n, d = x.shape
        pad = (-n) % self.window
        q, k, v = self.qkv(F.pad(x, (0, 0, 0, pad))).chunk(3, dim=-1)
        q = q.view(b, -1, self.window, d)
        kk = F.pad(k, (0, 0, self.window, 0)).unfold(1, 2 * self.window, self.window).transpose(2, 3)
        vv = F.pad(v, (0, 0, self.window, 0)).unfold(1, 2 * self.window, self.window).transpose(2, 3)
        a = (q @ kk.transpose(-1, -2) / d**0.5).softmax(-1)
        return (a @ vv).reshape(b, -1, d)[:, :n]


class MoEOutput(NamedTuple):
    hidden: torch.Tensor
    router_logits: torch.Tensor
    aux_loss: torch.Tensor


class SparseMoE(nn.Module):
    """Top-k routing, experts on their tokens by index_add_."""

    def __init__(self, dim=16, num_experts=4, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
                for _ in range(num_experts)
            ]
        )

    def forward(self, hidden_states):
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, hidden_dim)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        probs = routing_weights
        routing_weights, selected_experts = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights = routing_weights / routing_weights.sum(dim=-1, keepdim=True)
        final = torch.zeros((batch_size * sequence_length, hidden_dim), dtype=hidden_states.dtype)
        expert_mask = F.one_hot(selected_experts, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            current_state = hidden_states[None, top_x].reshape(-1, hidden_dim)
            current = self.experts[expert_idx](current_state) * routing_weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(hidden_states.dtype))
        f = expert_mask.float().sum(dim=1).mean(dim=1)
        aux = self.num_experts * torch.sum(f * probs.mean(0))
        return MoEOutput(final.reshape(batch_size, sequence_length, hidden_dim), router_logits, aux)


class MaskedMoE(nn.Module):
    """Experts on masked tokens, by boolean indexing."""

    def __init__(self, dim=8, n=3):
        super().__init__()
        self.router = nn.Linear(dim, n)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        flat = x.reshape(-1, x.size(-1))
        w, idx = self.router(flat).softmax(-1).max(dim=-1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            mask = idx == i
            if mask.any():
                out[mask] = expert(flat[mask]) * w[mask].unsqueeze(-1)
        return out.view_as(x)


class SoftMoE(nn.Module):
    def __init__(self, dim=8, experts=3, slots=2):
        super().__init__()
        self.phi = nn.Parameter(torch.randn(dim, experts, slots))
        self.w1 = nn.Parameter(torch.randn(experts, dim, 2 * dim) * 0.1)
        self.w2 = nn.Parameter(torch.randn(experts, 2 * dim, dim) * 0.1)

    def forward(self, x):
        logits = torch.einsum("bmd,dnp->bmnp", F.normalize(x, dim=-1), F.normalize(self.phi, dim=0))
        d = torch.softmax(logits, dim=1)
        c = torch.softmax(logits.flatten(2), dim=-1).view_as(logits)
        xs = torch.einsum("bmd,bmnp->bnpd", x, d)
        ys = torch.einsum("bnpe,ned->bnpd", F.gelu(torch.einsum("bnpd,nde->bnpe", xs, self.w1)), self.w2)
        return torch.einsum("bnpd,bmnp->bmd", ys, c)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0), :])


class TransformerLM(nn.Module):
    """Of PyTorch's tutorial: the mask is kept as an attribute."""

    def __init__(self, ntoken=40, ninp=16, nhead=2, nhid=32, nlayers=2, dropout=0.2):
        super().__init__()
        self.src_mask = None
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        self.transformer_encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(ninp, nhead, nhid, dropout), nlayers, enable_nested_tensor=False
        )
        self.encoder, self.ninp = nn.Embedding(ntoken, ninp), ninp
        self.decoder = nn.Linear(ninp, ntoken)

    def _generate_square_subsequent_mask(self, sz):
        mask = (torch.triu(torch.ones(sz, sz)) == 1).transpose(0, 1)
        return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, 0.0)

    def forward(self, src, has_mask=True):
        if has_mask:
            device = src.device
            if self.src_mask is None or self.src_mask.size(0) != len(src):
                self.src_mask = self._generate_square_subsequent_mask(len(src)).to(device)
        else:
            self.src_mask = None
        src = self.encoder(src) * math.sqrt(self.ninp)
        src = self.pos_encoder(src)
        output = self.transformer_encoder(src, self.src_mask)
        return F.log_softmax(self.decoder(output), dim=-1)


class Seq2SeqTransformer(nn.Module):
    def __init__(self, vocab=30, d=16):
        super().__init__()
        self.transformer = nn.Transformer(d, 2, 1, 1, 32, dropout=0.1)
        self.generator, self.tok_emb = nn.Linear(d, vocab), nn.Embedding(vocab, d, padding_idx=1)
        self.pos = PositionalEncoding(d)

    def create_mask(self, src, tgt):
        src_len, tgt_len = src.shape[0], tgt.shape[0]
        tgt_mask = nn.Transformer.generate_square_subsequent_mask(tgt_len).isinf()
        src_mask = torch.zeros((src_len, src_len)).type(torch.bool)
        return src_mask, tgt_mask, (src == 1).transpose(0, 1), (tgt == 1).transpose(0, 1)

    def forward(self, src, trg):
        src_mask, tgt_mask, src_pad, tgt_pad = self.create_mask(src, trg)
        src_emb, tgt_emb = self.pos(self.tok_emb(src)), self.pos(self.tok_emb(trg))
        outs = self.transformer(src_emb, tgt_emb, src_mask, tgt_mask, None, src_pad, tgt_pad, src_pad)
        return self.generator(outs)


class AnnotatedAttention(nn.Module):
    """Of the Annotated Transformer: clones, a list comprehension over zip, attn kept."""

    def __init__(self, h=2, d_model=16, dropout=0.1):
        super().__init__()
        assert d_model % h == 0
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        p_attn = self.dropout(scores.softmax(dim=-1))
        self.attn = p_attn.detach()
        x = torch.matmul(p_attn, value).transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.linears[-1](x)


class BertEmbeddings(nn.Module):
    def __init__(self, vocab=40, d=16, n=32):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, d, padding_idx=0)
        self.position_embeddings, self.token_type_embeddings = nn.Embedding(n, d), nn.Embedding(2, d)
        self.LayerNorm, self.dropout = nn.LayerNorm(d, eps=1e-12), nn.Dropout(0.1)
        self.register_buffer("position_ids", torch.arange(n).expand((1, -1)), persistent=False)

    def forward(self, input_ids, token_type_ids=None):
        seq_length = input_ids.size(1)
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        emb = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        emb += self.position_embeddings(self.position_ids[:, :seq_length])
        return self.dropout(self.LayerNorm(emb))


class Perceiver(nn.Module):
    def __init__(self, dim=16, n_latents=4, depth=2):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(n_latents, dim))
        self.cross = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(dim, 2, 32, batch_first=True)] * depth)

    def forward(self, x, key_padding_mask=None):
        z = self.latents.unsqueeze(0).repeat(x.size(0), 1, 1)
        z, weights = self.cross(z, x, x, key_padding_mask=key_padding_mask)
        for layer in self.layers:
            z = layer(z)
        return {"latents": z, "pooled": z.mean(1), "weights": weights}


def tokens(*shape, n=30):
    return torch.randint(2, n, shape)


def seq(b=2, n=8, d=16):
    return torch.randn(b, n, d)


CASES = [
    of("nanogpt", lambda: GPT(GPTConfig()), lambda: tokens(2, 8)),
    of("nanogpt_loss", lambda: GPT(GPTConfig()), lambda: (tokens(2, 8), tokens(2, 8))),
    of("nanogpt_slow_attention", lambda: GPT(GPTConfig(flash=False)), lambda: (tokens(2, 8), tokens(2, 8))),
    of("nanogpt_generate", lambda: GPT(GPTConfig()), lambda: tokens(2, 5), method="generate"),
    of("llama_block", LlamaBlock, lambda: seq(d=32)),
    of("llama_block_cached", lambda: LlamaBlock(use_cache=True), lambda: seq(d=32)),
    of("llama_block_later", lambda: LlamaBlock(use_cache=True), lambda: (seq(n=1, d=32), 3)),
    of("rotary_cached", RotaryAttention, seq),
    of("alibi", ALiBiAttention, seq),
    of("t5_bias", T5RelativeBias, lambda: (seq(), torch.ones(2, 8).bool())),
    of("transformer_xl", TransformerXLAttention, lambda: (torch.randn(6, 2, 16), torch.randn(4, 2, 16))),
    of("mqa_window", MultiQueryAttention, seq),
    of(
        "mqa_past",
        MultiQueryAttention,
        lambda: {"x": seq(n=2), "past": (torch.randn(2, 5, 4), torch.randn(2, 5, 4)), "use_cache": True},
    ),
    of("local_block_attention", LocalBlockAttention, lambda: seq(n=10, d=8)),
    of("sparse_moe", SparseMoE, seq),
    of("masked_moe", MaskedMoE, lambda: seq(d=8)),
    of("soft_moe", SoftMoE, lambda: seq(d=8)),
    of("transformer_lm", TransformerLM, lambda: tokens(7, 2)),
    of("seq2seq_transformer", Seq2SeqTransformer, lambda: (tokens(7, 2), tokens(5, 2))),
    of("annotated_attention", AnnotatedAttention, lambda: (seq(), seq(), seq(), torch.ones(2, 1, 8))),
    of("bert_embeddings", BertEmbeddings, lambda: tokens(2, 9)),
    of("perceiver", Perceiver, lambda: (seq(), torch.zeros(2, 8).bool())),
]
