"""Diffusion and flow matching."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math
from abc import abstractmethod

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import of


def timestep_embedding(timesteps, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * freqs.to(device=timesteps.device)[None]
    embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    if dim % 2:
        embedding = torch.cat([embedding, torch.zeros_like(embedding[:, :1])], dim=-1)
    return embedding


class TimestepBlock(nn.Module):
    @abstractmethod
    def forward(self, x, emb): ...


class TimestepEmbedSequential(nn.Sequential, TimestepBlock):
    def forward(self, x, emb):
        for layer in self:
            x = layer(x, emb) if isinstance(layer, TimestepBlock) else layer(x)
        return x


class GroupNorm32(nn.GroupNorm):
    def forward(self, x):
        return super().forward(x.float()).type(x.dtype)


class ResBlock(TimestepBlock):
    def __init__(self, channels, emb_channels, out_channels, use_scale_shift_norm=True, dropout=0.1):
        super().__init__()
        self.use_scale_shift_norm = use_scale_shift_norm
        self.in_layers = nn.Sequential(
            GroupNorm32(4, channels), nn.SiLU(), nn.Conv2d(channels, out_channels, 3, padding=1)
        )
        out = 2 * out_channels if use_scale_shift_norm else out_channels
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb_channels, out))
        self.out_layers = nn.Sequential(
            GroupNorm32(4, out_channels),
            nn.SiLU(),
            nn.Dropout(p=dropout),
            nn.Conv2d(out_channels, out_channels, 3, padding=1),
        )
        self.skip_connection = (
            nn.Identity() if out_channels == channels else nn.Conv2d(channels, out_channels, 1)
        )

    def forward(self, x, emb):
        h = self.in_layers(x)
        emb_out = self.emb_layers(emb).type(h.dtype)
        while len(emb_out.shape) < len(h.shape):
            emb_out = emb_out[..., None]
        if self.use_scale_shift_norm:
            out_norm, out_rest = self.out_layers[0], self.out_layers[1:]
            scale, shift = torch.chunk(emb_out, 2, dim=1)
            h = out_norm(h) * (1 + scale) + shift
            h = out_rest(h)
        else:
            h = self.out_layers(h + emb_out)
        return self.skip_connection(x) + h


class QKVAttention(nn.Module):
    def __init__(self, ch, n_heads=2):
        super().__init__()
        self.norm, self.qkv, self.proj = GroupNorm32(4, ch), nn.Conv1d(ch, ch * 3, 1), nn.Conv1d(ch, ch, 1)
        self.n_heads = n_heads

    def forward(self, x):
        b, c, *spatial = x.shape
        x = x.reshape(b, c, -1)
        qkv = self.qkv(self.norm(x))
        ch = qkv.shape[1] // (3 * self.n_heads)
        q, k, v = qkv.reshape(b * self.n_heads, ch * 3, -1).split(ch, dim=1)
        scale = 1 / math.sqrt(math.sqrt(ch))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        h = torch.einsum("bts,bcs->bct", weight, v).reshape(b, -1, x.shape[-1])
        return (x + self.proj(h)).reshape(b, c, *spatial)


class DiffusionUNet(nn.Module):
    def __init__(self, ch=8, num_classes=None, **kw):
        super().__init__()
        self.model_channels, self.num_classes = ch, num_classes
        self.time_embed = nn.Sequential(nn.Linear(ch, ch * 4), nn.SiLU(), nn.Linear(ch * 4, ch * 4))
        if num_classes is not None:
            self.label_emb = nn.Embedding(num_classes, ch * 4)
        self.input_blocks = nn.ModuleList([TimestepEmbedSequential(nn.Conv2d(3, ch, 3, padding=1))])
        self.input_blocks.append(TimestepEmbedSequential(ResBlock(ch, ch * 4, ch, **kw)))
        self.input_blocks.append(TimestepEmbedSequential(nn.Conv2d(ch, ch, 3, 2, 1)))
        self.middle_block = TimestepEmbedSequential(ResBlock(ch, ch * 4, ch, **kw), QKVAttention(ch))
        self.output_blocks = nn.ModuleList(
            [
                TimestepEmbedSequential(
                    ResBlock(2 * ch, ch * 4, ch, **kw), nn.Upsample(scale_factor=2, mode="nearest")
                ),
                TimestepEmbedSequential(ResBlock(2 * ch, ch * 4, ch, **kw)),
                TimestepEmbedSequential(ResBlock(2 * ch, ch * 4, ch, **kw)),
            ]
        )
        self.out = nn.Sequential(GroupNorm32(4, ch), nn.SiLU(), nn.Conv2d(ch, 3, 3, padding=1))

    def forward(self, x, timesteps, y=None):
        assert (y is not None) == (self.num_classes is not None), "must specify y iff class-conditional"
        hs = []
        emb = self.time_embed(timestep_embedding(timesteps, self.model_channels))
        if self.num_classes is not None:
            assert y.shape == (x.shape[0],)
            emb = emb + self.label_emb(y)
        h = x
        for module in self.input_blocks:
            h = module(h, emb)
            hs.append(h)
        h = self.middle_block(h, emb)
        for module in self.output_blocks:
            h = torch.cat([h, hs.pop()], dim=1)
            h = module(h, emb)
        return self.out(h.type(x.dtype))


def extract(a, t, x_shape):
    batch_size = t.shape[0]
    out = a.gather(-1, t)
    return out.reshape(batch_size, *((1,) * (len(x_shape) - 1)))


class GaussianDiffusion(nn.Module):
    """The loss at random times, and sampling by all steps."""

    def __init__(self, timesteps=4, objective="pred_noise"):
        super().__init__()
        self.model = DiffusionUNet()
        betas = torch.linspace(1e-4, 0.02, timesteps, dtype=torch.float64)
        alphas_cumprod = torch.cumprod(1 - betas, dim=0)
        prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
        register_buffer = lambda name, val: self.register_buffer(name, val.to(torch.float32))  # noqa: E731
        register_buffer("betas", betas)
        register_buffer("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        register_buffer("sqrt_one_minus_alphas_cumprod", torch.sqrt(1 - alphas_cumprod))
        register_buffer("sqrt_recip_alphas", torch.sqrt(1 / (1 - betas)))
        register_buffer("posterior_variance", betas * (1 - prev) / (1 - alphas_cumprod))
        self.num_timesteps, self.objective = timesteps, objective

    def q_sample(self, x_start, t, noise=None):
        noise = torch.randn_like(x_start) if noise is None else noise
        return (
            extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start
            + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise
        )

    def forward(self, img):
        b = img.shape[0]
        t = torch.randint(0, self.num_timesteps, (b,), device=img.device).long()
        noise = torch.randn_like(img)
        model_out = self.model(self.q_sample(img * 2 - 1, t, noise), t)
        if self.objective == "pred_noise":
            target = noise
        elif self.objective == "pred_x0":
            target = img
        else:
            raise ValueError(f"unknown objective {self.objective}")
        loss = F.mse_loss(model_out, target, reduction="none")
        return loss.flatten(1).mean(-1).mean()

    @torch.no_grad()
    def sample(self, shape):
        img = torch.randn(shape)
        for i in reversed(range(self.num_timesteps)):
            t = torch.full((shape[0],), i, dtype=torch.long)
            eps = self.model(img, t)
            mean = extract(self.sqrt_recip_alphas, t, shape) * (
                img
                - extract(self.betas, t, shape) * eps / extract(self.sqrt_one_minus_alphas_cumprod, t, shape)
            )
            img = (
                mean
                if i == 0
                else mean + extract(self.posterior_variance, t, shape).sqrt() * torch.randn_like(img)
            )
        return img


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class DiTBlock(nn.Module):
    def __init__(self, hidden_size=16, num_heads=2):
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size, elementwise_affine=False, eps=1e-6)
        self.attn = nn.MultiheadAttention(hidden_size, num_heads, batch_first=True)
        self.norm2 = nn.LayerNorm(hidden_size, elementwise_affine=False, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, 32), nn.GELU(approximate="tanh"), nn.Linear(32, hidden_size)
        )
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(hidden_size, 6 * hidden_size))

    def forward(self, x, c):
        shift_msa, scale_msa, gate_msa, shift_mlp, scale_mlp, gate_mlp = self.adaLN_modulation(c).chunk(
            6, dim=1
        )
        h = modulate(self.norm1(x), shift_msa, scale_msa)
        x = x + gate_msa.unsqueeze(1) * self.attn(h, h, h, need_weights=False)[0]
        return x + gate_mlp.unsqueeze(1) * self.mlp(modulate(self.norm2(x), shift_mlp, scale_mlp))


class EDMPrecond(nn.Module):
    def __init__(self, sigma_data=0.5):
        super().__init__()
        self.model, self.sigma_data = nn.Conv2d(3, 3, 3, padding=1), sigma_data

    def forward(self, x):
        rnd_normal = torch.randn([x.shape[0], 1, 1, 1], device=x.device)
        sigma = (rnd_normal * 1.2 - 1.2).exp()
        weight = (sigma**2 + self.sigma_data**2) / (sigma * self.sigma_data) ** 2
        n = torch.randn_like(x) * sigma
        c_skip = self.sigma_data**2 / (sigma**2 + self.sigma_data**2)
        c_out = sigma * self.sigma_data / (sigma**2 + self.sigma_data**2).sqrt()
        c_in = 1 / (self.sigma_data**2 + sigma**2).sqrt()
        D_x = c_skip * (x + n) + c_out * self.model(c_in * (x + n)).to(torch.float32)
        return weight * ((D_x - x) ** 2)


class FlowMatching(nn.Module):
    def __init__(self, d=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d + 1, 16), nn.ELU(), nn.Linear(16, d))

    def forward(self, x1):
        x0 = torch.randn_like(x1)
        t = torch.rand(len(x1), 1)
        xt = (1 - t) * x0 + t * x1
        return (self.net(torch.cat((t, xt), -1)) - (x1 - x0)).square().mean()

    @torch.no_grad()
    def sample(self, x, n_steps=3):
        time_steps = torch.linspace(0, 1.0, n_steps + 1)
        for i in range(n_steps):
            t0, t1 = time_steps[i], time_steps[i + 1]
            ts = t0.view(1, 1).expand(x.shape[0], 1)
            x = x + (t1 - t0) * self.net(torch.cat((ts, x), -1))
        return x


CASES = [
    of("diffusion_unet", DiffusionUNet, lambda: (torch.randn(2, 3, 8, 8), torch.tensor([1, 5]))),
    of(
        "diffusion_unet_classes",
        lambda: DiffusionUNet(num_classes=3, use_scale_shift_norm=False),
        lambda: (torch.randn(2, 3, 8, 8), torch.tensor([1, 5]), torch.tensor([0, 2])),
    ),
    of("gaussian_diffusion", GaussianDiffusion, lambda: torch.rand(2, 3, 8, 8)),
    of("gaussian_diffusion_sample", GaussianDiffusion, lambda: ((1, 3, 8, 8),), method="sample"),
    of("dit_block", DiTBlock, lambda: (torch.randn(2, 5, 16), torch.randn(2, 16))),
    of("edm_loss", EDMPrecond, lambda: torch.randn(2, 3, 6, 6)),
    of("flow_matching", FlowMatching, lambda: torch.randn(4, 2)),
    of("flow_matching_sample", FlowMatching, lambda: torch.randn(4, 2), method="sample"),
]
