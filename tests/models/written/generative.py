"""Autoencoders, adversarial networks, flows, diffusion."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math
from dataclasses import dataclass

import torch
import torch.distributions as D
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn.utils import spectral_norm

from . import of


class VAE(nn.Module):
    def __init__(self, n=20, h=16, z=4):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(n, h), nn.Linear(h, z), nn.Linear(h, z)
        self.fc3, self.fc4, self.n = nn.Linear(z, h), nn.Linear(h, n), n

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, self.n))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


class VAELoss(VAE):
    def forward(self, x):
        recon, mu, logvar = super().forward(x)
        BCE = F.binary_cross_entropy(recon, x.view(-1, self.n), reduction="sum")
        KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return {"loss": BCE + KLD, "Reconstruction_Loss": BCE.detach(), "KLD": -KLD.detach()}


@dataclass
class VAEOutput:
    z_dist: torch.Tensor
    x_recon: torch.Tensor
    loss: torch.Tensor


class VAEDistributions(nn.Module):
    """With torch.distributions, a dataclass out."""

    def __init__(self, n=12, z=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n, 16), nn.SiLU(), nn.Linear(16, 2 * z))
        self.decoder = nn.Sequential(nn.Linear(z, 16), nn.SiLU(), nn.Linear(16, n), nn.Sigmoid())
        self.softplus = nn.Softplus()

    def encode(self, x, eps: float = 1e-8):
        mu, logvar = torch.chunk(self.encoder(x), 2, dim=-1)
        scale = self.softplus(logvar) + eps
        scale_tril = torch.diag_embed(scale)
        return torch.distributions.MultivariateNormal(mu, scale_tril=scale_tril)

    def forward(self, x):
        dist = self.encode(x)
        z = dist.rsample()
        recon_x = self.decoder(z)
        loss_recon = F.binary_cross_entropy(recon_x, x + 0.5, reduction="none").sum(-1).mean()
        std_normal = torch.distributions.MultivariateNormal(
            torch.zeros_like(z), scale_tril=torch.eye(z.shape[-1]).unsqueeze(0).expand(z.shape[0], -1, -1)
        )
        loss_kl = torch.distributions.kl.kl_divergence(dist, std_normal).mean()
        return VAEOutput(z_dist=dist.mean, x_recon=recon_x, loss=loss_recon + loss_kl)


class NormalVAE(nn.Module):
    def __init__(self, n=8, z=3):
        super().__init__()
        self.enc, self.dec = nn.Linear(n, 2 * z), nn.Linear(z, n)

    def forward(self, x, beta=0.5):
        mu, log_sigma = self.enc(x).chunk(2, -1)
        q = Independent(Normal(mu, log_sigma.exp()), 1)
        p = Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
        z = q.rsample()
        px = Normal(self.dec(z), 1.0)
        return -(px.log_prob(x).sum(-1) - beta * kl_divergence(q, p)).mean()


class IWAE(nn.Module):
    def __init__(self, n=6, z=2, k=4):
        super().__init__()
        self.enc, self.dec, self.k = nn.Linear(n, 2 * z), nn.Linear(z, n), k

    def forward(self, x):
        mu, lv = self.enc(x).chunk(2, 1)
        q = D.Normal(mu, torch.exp(lv / 2))
        z = q.rsample(torch.Size([self.k]))
        log_w = D.Bernoulli(logits=self.dec(z)).log_prob((x > 0).float()).sum(-1)
        log_w = log_w + D.Normal(0.0, 1.0).log_prob(z).sum(-1) - q.log_prob(z).sum(-1)
        return -(torch.logsumexp(log_w, 0) - math.log(self.k)).mean()


class VectorQuantizer(nn.Module):
    """Straight through; perplexity of the codes."""

    def __init__(self, num_embeddings=8, embedding_dim=4, commitment_cost=0.25):
        super().__init__()
        self._embedding_dim, self._num_embeddings = embedding_dim, num_embeddings
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self._embedding.weight.data.uniform_(-1 / num_embeddings, 1 / num_embeddings)
        self._commitment_cost = commitment_cost

    def forward(self, inputs):
        # convert inputs from BCHW -> BHWC
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        input_shape = inputs.shape
        flat_input = inputs.view(-1, self._embedding_dim)
        distances = (
            torch.sum(flat_input**2, dim=1, keepdim=True)
            + torch.sum(self._embedding.weight**2, dim=1)
            - 2 * torch.matmul(flat_input, self._embedding.weight.t())
        )
        encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(encoding_indices.shape[0], self._num_embeddings, device=inputs.device)
        encodings.scatter_(1, encoding_indices, 1)
        quantized = torch.matmul(encodings, self._embedding.weight).view(input_shape)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        q_latent_loss = F.mse_loss(quantized, inputs.detach())
        loss = q_latent_loss + self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity, encodings


class VectorQuantizerEMA(nn.Module):
    """Codes moved by exponential averages in forward."""

    def __init__(self, num_embeddings=8, embedding_dim=4, decay=0.99, epsilon=1e-5):
        super().__init__()
        self.K, self.D, self._decay, self._epsilon = num_embeddings, embedding_dim, decay, epsilon
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self.register_buffer("_ema_cluster_size", torch.zeros(num_embeddings))
        self._ema_w = nn.Parameter(torch.Tensor(num_embeddings, embedding_dim))
        self._ema_w.data.normal_()

    def forward(self, inputs):
        flat = inputs.reshape(-1, self.D)
        idx = torch.cdist(flat, self._embedding.weight).argmin(1)
        encodings = F.one_hot(idx, self.K).type(flat.dtype)
        quantized = (encodings @ self._embedding.weight).view(inputs.shape)
        if self.training:
            self._ema_cluster_size = self._ema_cluster_size * self._decay + (1 - self._decay) * torch.sum(
                encodings, 0
            )
            n = torch.sum(self._ema_cluster_size.data)
            self._ema_cluster_size = (
                (self._ema_cluster_size + self._epsilon) / (n + self.K * self._epsilon) * n
            )
            dw = torch.matmul(encodings.t(), flat)
            self._ema_w = nn.Parameter(self._ema_w * self._decay + (1 - self._decay) * dw)
            self._embedding.weight = nn.Parameter(self._ema_w / self._ema_cluster_size.unsqueeze(1))
        loss = 0.25 * F.mse_loss(quantized.detach(), inputs)
        return loss, inputs + (quantized - inputs).detach()


class EMACodebook(nn.Module):
    """The same, with buffers updated in place and dead codes drawn again."""

    def __init__(self, dim=4, n_embed=8, decay=0.99, eps=1e-5):
        super().__init__()
        self.dim, self.n_embed, self.decay, self.eps = dim, n_embed, decay, eps
        embed = torch.randn(dim, n_embed)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.zeros(n_embed))
        self.register_buffer("embed_avg", embed.clone())
        self.pre = nn.Linear(dim, dim)

    def forward(self, input):
        input = self.pre(input)
        flatten = input.reshape(-1, self.dim)
        dist = (
            flatten.pow(2).sum(1, keepdim=True)
            - 2 * flatten @ self.embed
            + self.embed.pow(2).sum(0, keepdim=True)
        )
        _, embed_ind = (-dist).max(1)
        embed_onehot = F.one_hot(embed_ind, self.n_embed).type(flatten.dtype)
        embed_ind = embed_ind.view(*input.shape[:-1])
        quantize = F.embedding(embed_ind, self.embed.transpose(0, 1))
        if self.training:
            embed_onehot_sum = embed_onehot.sum(0)
            embed_sum = flatten.transpose(0, 1) @ embed_onehot
            self.cluster_size.data.mul_(self.decay).add_(embed_onehot_sum, alpha=1 - self.decay)
            self.embed_avg.data.mul_(self.decay).add_(embed_sum, alpha=1 - self.decay)
            n = self.cluster_size.sum()
            cluster_size = (self.cluster_size + self.eps) / (n + self.n_embed * self.eps) * n
            embed_normalized = self.embed_avg / cluster_size.unsqueeze(0)
            self.embed.data.copy_(embed_normalized)
        diff = (quantize.detach() - input).pow(2).mean()
        return input + (quantize - input).detach(), diff, embed_ind


class FSQ(nn.Module):
    """Finite scalar quantization."""

    def __init__(self, levels=(8, 5, 5)):
        super().__init__()
        _levels = torch.tensor(levels, dtype=torch.int32)
        self.register_buffer("_levels", _levels, persistent=False)
        basis = torch.cumprod(torch.tensor([1] + list(levels[:-1])), dim=0, dtype=torch.int32)
        self.register_buffer("_basis", basis, persistent=False)
        self.proj = nn.Linear(6, len(levels))

    def bound(self, z, eps: float = 1e-3):
        half_l = (self._levels - 1) * (1 + eps) / 2
        offset = torch.where(self._levels % 2 == 0, 0.5, 0.0)
        shift = (offset / half_l).atanh()
        return (z + shift).tanh() * half_l - offset

    def forward(self, x):
        z = self.bound(self.proj(x))
        zhat = z.round()
        codes = z + (zhat - z).detach()
        half_width = self._levels // 2
        codes = codes / half_width
        indices = ((codes * half_width + half_width) * self._basis).sum(dim=-1).to(torch.int32)
        return codes, indices


class GumbelQuantizer(nn.Module):
    def __init__(self, c=4, n=6):
        super().__init__()
        self.proj, self.embed, self.n = nn.Conv2d(c, n, 1), nn.Embedding(n, c), n
        self.temperature, self.kld_scale = 1.0, 5e-4

    def forward(self, z):
        hard = self.training
        logits = self.proj(z)
        soft_one_hot = F.gumbel_softmax(logits, tau=self.temperature, dim=1, hard=hard)
        z_q = torch.einsum("b n h w, n d -> b d h w", soft_one_hot, self.embed.weight)
        qy = F.softmax(logits, dim=1)
        diff = self.kld_scale * torch.sum(qy * torch.log(qy * self.n + 1e-10), dim=1).mean()
        return z_q, diff, soft_one_hot.argmax(dim=1)


class DCGANGenerator(nn.Module):
    def __init__(self, nz=8, ngf=4, nc=3):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )
        self.ngpu = 1

    def forward(self, input):
        if input.is_cuda and self.ngpu > 1:
            output = nn.parallel.data_parallel(self.main, input, range(self.ngpu))
        else:
            output = self.main(input)
        return output


class SNDiscriminator(nn.Module):
    """Spectral norm, old and new."""

    def __init__(self, parametrized=False):
        super().__init__()
        sn = nn.utils.parametrizations.spectral_norm if parametrized else spectral_norm
        self.conv1 = sn(nn.Conv2d(3, 4, 4, stride=2, padding=1))
        self.conv2 = sn(nn.Conv2d(4, 8, 4, stride=2, padding=1))
        self.fc = sn(nn.Linear(8 * 4 * 4, 1))

    def forward(self, x):
        m = nn.LeakyReLU(0.1)(self.conv1(x))
        m = nn.LeakyReLU(0.1)(self.conv2(m))
        return self.fc(m.view(-1, 8 * 4 * 4))


class PatchGAN(nn.Module):
    def __init__(self, ndf=4, n_layers=2):
        super().__init__()
        sequence = [nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True)]
        nf_mult = 1
        for n in range(1, n_layers):
            nf_mult_prev, nf_mult = nf_mult, min(2**n, 8)
            sequence += [
                nn.Conv2d(ndf * nf_mult_prev, ndf * nf_mult, 4, 2, 1, bias=True),
                nn.InstanceNorm2d(ndf * nf_mult),
                nn.LeakyReLU(0.2, True),
            ]
        sequence += [nn.Conv2d(ndf * nf_mult, 1, 4, 1, 1)]
        self.model = nn.Sequential(*sequence)

    def forward(self, input):
        return self.model(input)


class ResnetGenerator(nn.Module):
    """CycleGAN's, with reflection padding and instance norm."""

    def __init__(self, ngf=4):
        super().__init__()
        self.head = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(3, ngf, 7), nn.InstanceNorm2d(ngf), nn.ReLU(True)
        )
        self.block = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(ngf, ngf, 3), nn.InstanceNorm2d(ngf, affine=True), nn.ReLU(True)
        )
        self.up = nn.Sequential(
            nn.ConvTranspose2d(ngf, 3, 3, stride=2, padding=1, output_padding=1), nn.Tanh()
        )

    def forward(self, x):
        x = self.head(x)
        return self.up(x + self.block(x))


class AdaIN(nn.Module):
    def __init__(self, style_dim=4, num_features=6):
        super().__init__()
        self.norm = nn.InstanceNorm2d(num_features, affine=False)
        self.fc = nn.Linear(style_dim, num_features * 2)

    def forward(self, x, s):
        h = self.fc(s)
        h = h.view(h.size(0), h.size(1), 1, 1)
        gamma, beta = torch.chunk(h, chunks=2, dim=1)
        return (1 + gamma) * self.norm(x) + beta


class EqualLinear(nn.Module):
    def __init__(self, in_dim, out_dim, lr_mul=1.0, bias_init=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_dim, in_dim).div_(lr_mul))
        self.bias = nn.Parameter(torch.zeros(out_dim).fill_(bias_init))
        self.scale, self.lr_mul = (1 / math.sqrt(in_dim)) * lr_mul, lr_mul

    def forward(self, input):
        return F.linear(input, self.weight * self.scale, bias=self.bias * self.lr_mul)


class ModulatedConv2d(nn.Module):
    """StyleGAN2: a weight for each sample, as a grouped convolution."""

    def __init__(self, in_channel=4, out_channel=6, kernel_size=3, style_dim=5, demodulate=True):
        super().__init__()
        self.eps, self.kernel_size, self.in_channel, self.out_channel = (
            1e-8,
            kernel_size,
            in_channel,
            out_channel,
        )
        self.scale, self.padding = 1 / math.sqrt(in_channel * kernel_size**2), kernel_size // 2
        self.weight = nn.Parameter(torch.randn(1, out_channel, in_channel, kernel_size, kernel_size))
        self.modulation, self.demodulate = EqualLinear(style_dim, in_channel, bias_init=1), demodulate
        self.noise_weight = nn.Parameter(torch.zeros(1))

    def forward(self, input, style, noise=None):
        batch, in_channel, height, width = input.shape
        style = self.modulation(style).view(batch, 1, in_channel, 1, 1)
        weight = self.scale * self.weight * style
        if self.demodulate:
            demod = torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8)
            weight = weight * demod.view(batch, self.out_channel, 1, 1, 1)
        weight = weight.view(batch * self.out_channel, in_channel, self.kernel_size, self.kernel_size)
        input = input.view(1, batch * in_channel, height, width)
        out = F.conv2d(input, weight, padding=self.padding, groups=batch)
        _, _, height, width = out.shape
        out = out.view(batch, self.out_channel, height, width)
        if noise is None:
            noise = out.new_empty(batch, 1, height, width).normal_()
        return F.leaky_relu(out + self.noise_weight * noise, 0.2) * math.sqrt(2)


class MinibatchStddev(nn.Module):
    def forward(self, x):
        batch, channel, height, width = x.shape
        group = min(batch, 4)
        stddev = x.view(group, -1, 1, channel, height, width)
        stddev = torch.sqrt(stddev.var(0, unbiased=False) + 1e-8)
        stddev = stddev.mean([2, 3, 4], keepdims=True).squeeze(2)
        stddev = stddev.repeat(group, 1, height, width)
        return torch.cat([x, stddev], 1)


class SelfAttentionGAN(nn.Module):
    def __init__(self, in_dim=8):
        super().__init__()
        self.query_conv, self.key_conv = nn.Conv2d(in_dim, in_dim // 8, 1), nn.Conv2d(in_dim, in_dim // 8, 1)
        self.value_conv, self.gamma = nn.Conv2d(in_dim, in_dim, 1), nn.Parameter(torch.zeros(1))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        m_batchsize, C, width, height = x.size()
        proj_query = self.query_conv(x).view(m_batchsize, -1, width * height).permute(0, 2, 1)
        proj_key = self.key_conv(x).view(m_batchsize, -1, width * height)
        attention = self.softmax(torch.bmm(proj_query, proj_key))
        proj_value = self.value_conv(x).view(m_batchsize, -1, width * height)
        out = torch.bmm(proj_value, attention.permute(0, 2, 1)).view(m_batchsize, C, width, height)
        return self.gamma * out + x, attention


class ConditionalBatchNorm2d(nn.Module):
    def __init__(self, num_features=4, num_classes=3):
        super().__init__()
        self.num_features, self.bn = num_features, nn.BatchNorm2d(num_features, affine=False)
        self.embed = nn.Embedding(num_classes, num_features * 2)
        self.embed.weight.data[:, :num_features].normal_(1, 0.02)
        self.embed.weight.data[:, num_features:].zero_()

    def forward(self, x, y):
        out = self.bn(x)
        gamma, beta = self.embed(y).chunk(2, 1)
        return gamma.view(-1, self.num_features, 1, 1) * out + beta.view(-1, self.num_features, 1, 1)


class RealNVP(nn.Module):
    """Affine couplings with a checkerboard of masks; the density by a prior kept outside of the module."""

    def __init__(self, dim=4, layers=4):
        super().__init__()
        masks = torch.tensor([[i % 2 == k % 2 for i in range(dim)] for k in range(layers)]).float()
        self.mask = nn.Parameter(masks, requires_grad=False)
        net = lambda last: nn.Sequential(nn.Linear(dim, 8), nn.LeakyReLU(), nn.Linear(8, dim), *last)  # noqa: E731
        self.t = nn.ModuleList([net([]) for _ in range(layers)])
        self.s = nn.ModuleList([net([nn.Tanh()]) for _ in range(layers)])

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def forward(self, x):
        z, logp = self.f(x)
        prior = D.MultivariateNormal(torch.zeros(x.shape[1]), torch.eye(x.shape[1]))
        return prior.log_prob(z) + logp


class Glow(nn.Module):
    """ActNorm initialised by the first batch, an invertible 1x1 convolution by LU, squeeze."""

    def __init__(self, c=4):
        super().__init__()
        self.loc, self.scale = nn.Parameter(torch.zeros(1, c, 1, 1)), nn.Parameter(torch.ones(1, c, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
        q, _ = torch.linalg.qr(torch.randn(c, c))
        w_p, w_l, w_u = torch.linalg.lu(q)
        w_s = torch.diag(w_u)
        self.register_buffer("w_p", w_p)
        self.register_buffer("u_mask", torch.triu(torch.ones_like(w_u), 1))
        self.register_buffer("l_mask", torch.triu(torch.ones_like(w_u), 1).T.contiguous())
        self.register_buffer("s_sign", torch.sign(w_s))
        self.register_buffer("l_eye", torch.eye(c))
        self.w_l, self.w_s = nn.Parameter(w_l), nn.Parameter(torch.log(torch.abs(w_s)))
        self.w_u = nn.Parameter(torch.triu(w_u, 1))

    def initialize(self, input):
        with torch.no_grad():
            flatten = input.permute(1, 0, 2, 3).contiguous().view(input.shape[1], -1)
            mean = flatten.mean(1).unsqueeze(1).unsqueeze(2).unsqueeze(3).permute(1, 0, 2, 3)
            std = flatten.std(1).unsqueeze(1).unsqueeze(2).unsqueeze(3).permute(1, 0, 2, 3)
            self.loc.data.copy_(-mean)
            self.scale.data.copy_(1 / (std + 1e-6))

    def forward(self, input):
        b_size, n_channel, height, width = input.shape
        squeezed = input.view(b_size, n_channel, height // 2, 2, width // 2, 2).permute(0, 1, 3, 5, 2, 4)
        out = squeezed.contiguous().view(b_size, n_channel * 4, height // 2, width // 2)
        if self.initialized.item() == 0:
            self.initialize(out)
            self.initialized.fill_(1)
        logdet = height // 2 * (width // 2) * torch.sum(torch.log(torch.abs(self.scale)))
        out = self.scale * (out + self.loc)
        weight = (
            self.w_p
            @ (self.w_l * self.l_mask + self.l_eye)
            @ ((self.w_u * self.u_mask) + torch.diag(self.s_sign * torch.exp(self.w_s)))
        )
        out = F.conv2d(out, weight.unsqueeze(2).unsqueeze(3))
        return out, logdet + height // 2 * (width // 2) * torch.sum(self.w_s)


class MaskedLinear(nn.Linear):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__(in_features, out_features, bias)
        self.register_buffer("mask", torch.ones(out_features, in_features))

    def set_mask(self, mask):
        self.mask.data.copy_(mask.to(torch.float32))

    def forward(self, input):
        return F.linear(input, self.mask * self.weight, self.bias)


class MADE(nn.Module):
    """Masked autoencoder; with ``invert`` one dimension after the other."""

    def __init__(self, d=4, h=8):
        super().__init__()
        self.l1, self.l2, self.d = MaskedLinear(d, h), MaskedLinear(h, 2 * d), d
        m = torch.arange(h) % (d - 1)
        self.l1.set_mask(m[:, None] >= torch.arange(d)[None])
        self.l2.set_mask((torch.arange(d)[:, None] > m[None]).repeat(2, 1))

    def forward(self, x):
        mu, logs = self.l2(F.relu(self.l1(x))).chunk(2, -1)
        u = (x - mu) * torch.exp(-logs)
        return -0.5 * (u.pow(2) + math.log(2 * math.pi)).sum(-1) - logs.sum(-1)

    @torch.no_grad()
    def invert(self, u):
        x = torch.zeros_like(u)
        for i in range(self.d):
            mu, logs = self.l2(F.relu(self.l1(x))).chunk(2, -1)
            x[:, i] = u[:, i] * torch.exp(logs[:, i]) + mu[:, i]
        return x


class PlanarFlow(nn.Module):
    def __init__(self, d=3):
        super().__init__()
        self.u, self.w, self.b = (nn.Parameter(torch.randn(1, k) * 0.1) for k in (d, d, 1))

    def forward(self, z):
        wtu = (self.w @ self.u.T).squeeze()
        m_wtu = -1 + torch.log1p(torch.exp(wtu))
        u = self.u + (m_wtu - wtu) * self.w / torch.norm(self.w, p=2, dim=1) ** 2
        act = torch.tanh(F.linear(z, self.w, self.b.squeeze(0)))
        psi = (1 - act**2) * self.w
        log_det = torch.log((1 + torch.mm(u, psi.t())).abs() + 1e-4)
        return z + u * act, log_det


DEFAULT_MIN = 1e-3


class RQSpline(nn.Module):
    """Rational quadratic splines, elements inside of the interval by a boolean mask."""

    def __init__(self, d=3, bins=4, tail=3.0):
        super().__init__()
        self.w, self.h = nn.Parameter(torch.randn(d, bins)), nn.Parameter(torch.randn(d, bins))
        self.dv, self.tail = nn.Parameter(torch.randn(d, bins - 1)), tail

    def knots(self, p, n):
        p = DEFAULT_MIN + (1 - DEFAULT_MIN * n) * F.softmax(p, dim=-1)
        cum = F.pad(torch.cumsum(p, dim=-1), pad=(1, 0), mode="constant", value=0.0)
        cum = 2 * self.tail * cum - self.tail
        cum[..., 0], cum[..., -1] = -self.tail, self.tail
        return cum, cum[..., 1:] - cum[..., :-1]

    def forward(self, inputs):
        inside = (inputs >= -self.tail) & (inputs <= self.tail)
        outputs, logabsdet = torch.zeros_like(inputs), torch.zeros_like(inputs)
        outputs[~inside] = inputs[~inside]
        expand = lambda p: p.unsqueeze(0).expand(*inputs.shape, -1)[inside]  # noqa: E731
        uw, uh, ud = expand(self.w), expand(self.h), F.pad(expand(self.dv), pad=(1, 1))
        n = uw.shape[-1]
        x = inputs[inside]
        cumw, widths = self.knots(uw, n)
        cumh, heights = self.knots(uh, n)
        derivs = DEFAULT_MIN + F.softplus(ud)
        loc = cumw.clone()
        loc[..., -1] += 1e-6
        bin_idx = (torch.sum(x[..., None] >= loc, dim=-1) - 1)[..., None]
        pick = lambda t: t.gather(-1, bin_idx)[..., 0]  # noqa: E731
        cw, bw, ch, bh, d0, d1 = map(pick, (cumw, widths, cumh, heights, derivs, derivs[..., 1:]))
        delta = bh / bw
        theta = (x - cw) / bw
        num = bh * (delta * theta.pow(2) + d0 * theta * (1 - theta))
        den = delta + (d0 + d1 - 2 * delta) * theta * (1 - theta)
        outputs[inside] = ch + num / den
        dnum = delta.pow(2) * (d1 * theta.pow(2) + 2 * delta * theta * (1 - theta) + d0 * (1 - theta).pow(2))
        logabsdet[inside] = torch.log(dnum) - 2 * torch.log(den)
        return outputs, logabsdet.sum(-1)


class GradientPenalty(nn.Module):
    def __init__(self):
        super().__init__()
        self.D = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, real, fake):
        alpha = torch.rand(real.size(0), 1).expand(real.size())
        interpolates = (alpha * real + ((1 - alpha) * fake)).requires_grad_(True)
        d_interpolates = self.D(interpolates)
        gradients = torch.autograd.grad(
            outputs=d_interpolates,
            inputs=interpolates,
            grad_outputs=torch.ones_like(d_interpolates),
            create_graph=True,
            retain_graph=True,
            only_inputs=True,
        )[0]
        gradients = gradients.view(gradients.size(0), -1)
        return self.D(fake).mean() - self.D(real).mean() + 10 * ((gradients.norm(2, dim=1) - 1) ** 2).mean()


class RBM(nn.Module):
    def __init__(self, n_vis=8, n_hin=5, k=2):
        super().__init__()
        self.W = nn.Parameter(torch.randn(n_hin, n_vis) * 1e-2)
        self.v_bias, self.h_bias, self.k = (
            nn.Parameter(torch.zeros(n_vis)),
            nn.Parameter(torch.zeros(n_hin)),
            k,
        )

    def sample_from_p(self, p):
        return F.relu(torch.sign(p - torch.rand(p.size())))

    def free_energy(self, v):
        vbias_term = v.mv(self.v_bias)
        wx_b = F.linear(v, self.W, self.h_bias)
        hidden_term = wx_b.exp().add(1).log().sum(1)
        return (-hidden_term - vbias_term).mean()

    def forward(self, v):
        v_ = v
        for _ in range(self.k):
            h_ = self.sample_from_p(torch.sigmoid(F.linear(v_, self.W, self.h_bias)))
            v_ = self.sample_from_p(torch.sigmoid(F.linear(h_, self.W.t(), self.v_bias)))
        return self.free_energy(v) - self.free_energy(v_.detach())


class PixelCNN(nn.Module):
    """Masked convolutions: the mask is applied to weight.data at each call."""

    class MaskedConv2d(nn.Conv2d):
        def __init__(self, mask_type, *args, **kwargs):
            super().__init__(*args, **kwargs)
            assert mask_type in {"A", "B"}
            self.register_buffer("mask", self.weight.data.clone())
            _, _, kH, kW = self.weight.size()
            self.mask.fill_(1)
            self.mask[:, :, kH // 2, kW // 2 + (mask_type == "B") :] = 0
            self.mask[:, :, kH // 2 + 1 :] = 0

        def forward(self, x):
            self.weight.data *= self.mask
            return super().forward(x)

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            self.MaskedConv2d("A", 1, 4, 7, 1, 3, bias=False),
            nn.ReLU(True),
            self.MaskedConv2d("B", 4, 4, 3, 1, 1),
        )

    def forward(self, x):
        return self.net(x)


def two(*shape):
    return torch.randn(*shape), torch.randn(*shape)


CASES = [
    of("vae", VAE, lambda: torch.rand(2, 20)),
    of("vae_loss", VAELoss, lambda: torch.rand(2, 20)),
    of("vae_multivariate_normal", VAEDistributions, lambda: torch.rand(2, 12) - 0.5),
    of("vae_normal", NormalVAE, lambda: torch.randn(2, 8)),
    of("iwae", IWAE, lambda: torch.randn(2, 6)),
    of("vq", VectorQuantizer, lambda: torch.randn(2, 4, 3, 3)),
    of("vq_ema", VectorQuantizerEMA, lambda: torch.randn(2, 5, 4)),
    of("vq_ema_buffers", EMACodebook, lambda: torch.randn(2, 5, 4)),
    of("fsq", FSQ, lambda: torch.randn(2, 5, 6)),
    of("gumbel_quantizer", GumbelQuantizer, lambda: torch.randn(2, 4, 3, 3)),
    of("dcgan_generator", DCGANGenerator, lambda: torch.randn(2, 8, 1, 1)),
    of("sn_discriminator", SNDiscriminator, lambda: torch.randn(2, 3, 16, 16)),
    of("sn_discriminator_parametrized", lambda: SNDiscriminator(True), lambda: torch.randn(2, 3, 16, 16)),
    of("patch_gan", PatchGAN, lambda: torch.randn(2, 3, 24, 24)),
    of("resnet_generator", ResnetGenerator, lambda: torch.randn(2, 3, 12, 12)),
    of("adain", AdaIN, lambda: (torch.randn(2, 6, 5, 5), torch.randn(2, 4))),
    of("modulated_conv", ModulatedConv2d, lambda: (torch.randn(2, 4, 6, 6), torch.randn(2, 5))),
    of("minibatch_stddev", MinibatchStddev, lambda: torch.randn(2, 3, 4, 4)),
    of("sagan_attention", SelfAttentionGAN, lambda: torch.randn(2, 8, 4, 4)),
    of(
        "conditional_batch_norm",
        ConditionalBatchNorm2d,
        lambda: (torch.randn(2, 4, 3, 3), torch.tensor([0, 2])),
    ),
    of("real_nvp", RealNVP, lambda: torch.randn(2, 4)),
    of("glow", Glow, lambda: torch.randn(2, 1, 4, 4)),
    of("made", MADE, lambda: torch.randn(2, 4)),
    of("made_invert", MADE, lambda: torch.randn(2, 4), method="invert"),
    of("planar_flow", PlanarFlow, lambda: torch.randn(2, 3)),
    of("rq_spline", RQSpline, lambda: 2 * torch.randn(4, 3)),
    of("gradient_penalty", GradientPenalty, lambda: two(3, 4), grad=True),
    of("rbm", RBM, lambda: (torch.rand(3, 8) > 0.5).float()),
    of("pixel_cnn", PixelCNN, lambda: torch.rand(2, 1, 8, 8)),
]
