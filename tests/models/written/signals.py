"""Speech, attacks, samplers, quantization, detection heads, point clouds."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function

from . import of


class FGSM(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, images, labels, eps=0.1):
        images = images.clone().detach()
        images.requires_grad = True
        cost = F.cross_entropy(self.net(images), labels)
        grad = torch.autograd.grad(cost, images, retain_graph=False, create_graph=False)[0]
        return torch.clamp(images + eps * grad.sign(), min=0, max=1).detach()


class PGD(FGSM):
    def forward(self, images, labels, eps=0.3, alpha=0.1, steps=3):
        adv = (images.clone().detach() + torch.empty_like(images).uniform_(-eps, eps)).clamp(0, 1).detach()
        for _ in range(steps):
            adv.requires_grad = True
            cost = F.cross_entropy(self.net(adv), labels)
            grad = torch.autograd.grad(cost, adv)[0]
            adv = adv.detach() + alpha * grad.sign()
            delta = torch.clamp(adv - images, min=-eps, max=eps)
            adv = torch.clamp(images + delta, min=0, max=1).detach()
        return self.net(adv)


class VAT(nn.Module):
    """Virtual adversarial training: power iterations."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        with torch.no_grad():
            pred = F.softmax(self.net(x), dim=1)
        d = F.normalize(torch.rand(x.shape).sub(0.5), dim=1)
        for _ in range(2):
            d.requires_grad_()
            logp_hat = F.log_softmax(self.net(x + 10.0 * d), dim=1)
            adv_distance = F.kl_div(logp_hat, pred, reduction="batchmean")
            d = F.normalize(torch.autograd.grad(adv_distance, d)[0].detach(), dim=1)
        return F.kl_div(F.log_softmax(self.net(x + d), dim=1), pred, reduction="batchmean")


class R1Penalty(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Softplus(), nn.Flatten(), nn.Linear(8, 1))

    def forward(self, real):
        real = real.detach().requires_grad_()
        pred = self.d(real)
        (grad_real,) = torch.autograd.grad(outputs=pred.sum(), inputs=real, create_graph=True)
        return F.softplus(-pred).mean() + grad_real.pow(2).reshape(grad_real.shape[0], -1).sum(1).mean()


class LangevinEBM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))

    def sample(self, x, steps=3, step=0.1):
        x = x.clone().detach().requires_grad_(True)
        for _ in range(steps):
            noise = torch.randn_like(x) * 0.01
            out = self.e(x).sum()
            g = torch.autograd.grad(out, x)[0]
            x = (x - step * g + noise).detach().requires_grad_(True)
        return x.detach()

    def forward(self, x):
        neg = self.sample(torch.rand_like(x))
        pos_e, neg_e = self.e(x), self.e(neg)
        return pos_e.mean() - neg_e.mean() + 0.1 * (pos_e**2 + neg_e**2).mean()


class SlicedScore(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 3))

    def forward(self, x):
        x = x.clone().requires_grad_()
        v = torch.randn_like(x)
        grad1 = self.s(x)
        gradv = torch.sum(grad1 * v)
        grad2 = torch.autograd.grad(gradv, x, create_graph=True)[0]
        return (torch.sum(v * grad2, dim=-1) + torch.sum(grad1 * grad1, dim=-1) / 2.0).mean()


class MAML(nn.Module):
    """An inner step on functional weights."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(3, 4) * 0.3), nn.Parameter(torch.zeros(3))

    def forward(self, xs, ys, xq, yq, lr=0.1):
        fast = [self.w, self.b]
        for _ in range(2):
            loss = F.cross_entropy(F.linear(xs, *fast), ys)
            grad = torch.autograd.grad(loss, fast, create_graph=True)
            fast = list(map(lambda p: p[1] - lr * p[0], zip(grad, fast)))
        return F.cross_entropy(F.linear(xq, *fast), yq)


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class LSQLinear(nn.Module):
    """Learned step size."""

    def __init__(self, bits=4):
        super().__init__()
        self.lin, self.qn, self.qp = nn.Linear(5, 3), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        self.s = nn.Parameter(torch.tensor(0.1))

    def forward(self, x):
        g = 1.0 / math.sqrt(self.lin.weight.numel() * self.qp)
        s = (self.s - self.s * g).detach() + self.s * g
        w = RoundSTE.apply((self.lin.weight / s).clamp(self.qn, self.qp)) * s
        return F.linear(x, w, self.lin.bias)


class BitLinear(nn.Linear):
    """BitNet's ternary weights."""

    def forward(self, x):
        scale = 127.0 / x.abs().max(dim=-1, keepdim=True).values.clamp_(min=1e-5)
        xq = x + ((x * scale).round().clamp_(-128, 127) / scale - x).detach()
        w = self.weight
        ws = 1.0 / w.abs().mean().clamp_(min=1e-5)
        wq = w + ((w * ws).round().clamp_(-1, 1) / ws - w).detach()
        return F.linear(xq, wq, self.bias)


class FakeQuantObserver(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.first = nn.Linear(5, 3), True
        self.register_buffer("lo", torch.tensor(0.0))
        self.register_buffer("hi", torch.tensor(0.0))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.lo.copy_(torch.min(self.lo, x.detach().min()))
                self.hi.copy_(torch.max(self.hi, x.detach().max()))
        scale = (self.hi - self.lo).clamp(min=1e-3) / 255
        zero = torch.clamp(-torch.round(self.lo / scale), 0, 255)
        q = torch.clamp(torch.round(x / scale) + zero, 0, 255)
        return self.lin(x + ((q - zero) * scale - x).detach())


class MelFilter(nn.Module):
    def __init__(self, n_fft=16, hop=4, mels=5):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("fb", torch.rand(mels, n_fft // 2 + 1))

    def forward(self, y):
        p = (self.n_fft - self.hop) // 2
        y = F.pad(y.unsqueeze(1), (p, p), mode="reflect").squeeze(1)
        spec = torch.stft(
            y,
            self.n_fft,
            hop_length=self.hop,
            win_length=self.n_fft,
            window=self.window,
            center=False,
            normalized=False,
            onesided=True,
            return_complex=True,
        )
        spec = torch.sqrt(torch.view_as_real(spec).pow(2).sum(-1) + 1e-9)
        return torch.log(torch.clamp(torch.matmul(self.fb, spec), min=1e-5))


class SpecAugment(nn.Module):
    def __init__(self, time=3, freq=2):
        super().__init__()
        self.time, self.freq, self.lin = time, freq, nn.Linear(6, 4)

    def forward(self, x):
        if self.training:
            b, f, t = x.shape
            start = torch.randint(0, f - self.freq, (b, 1))
            idx = torch.arange(f).unsqueeze(0)
            mask = (idx >= start) & (idx < start + self.freq)
            x = x.masked_fill(mask.unsqueeze(2), 0.0)
        return self.lin(x)


class ConformerConv(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.ln, self.pw1, self.pw2 = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 1), nn.Conv1d(d, d, 1)
        self.dw, self.bn = nn.Conv1d(d, d, 3, padding=1, groups=d), nn.BatchNorm1d(d)

    def forward(self, x, mask):
        y = self.ln(x).transpose(1, 2).masked_fill(mask.unsqueeze(1), 0.0)
        y = F.silu(self.bn(self.dw(F.glu(self.pw1(y), dim=1))))
        return x + self.pw2(y).transpose(1, 2)


class RelPositionAttention(nn.Module):
    """Transformer-XL's shift by a column of zeros."""

    def __init__(self, d=8, h=2):
        super().__init__()
        self.h, self.d_k = h, d // h
        self.q, self.k, self.v, self.pos = (nn.Linear(d, d) for _ in range(4))
        self.u, self.vb = nn.Parameter(torch.randn(h, d // h)), nn.Parameter(torch.randn(h, d // h))

    def rel_shift(self, x):
        zero_pad = torch.zeros((x.size()[0], x.size()[1], x.size()[2], 1), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([zero_pad, x], dim=-1).view(x.size()[0], x.size()[1], x.size(3) + 1, x.size(2))
        return x_padded[:, :, 1:].view_as(x)[:, :, :, : x.size(-1) // 2 + 1]

    def forward(self, x, pos):
        b, t = x.shape[:2]
        q = self.q(x).view(b, -1, self.h, self.d_k)
        k, v = (f(x).view(b, -1, self.h, self.d_k).transpose(1, 2) for f in (self.k, self.v))
        p = self.pos(pos).view(1, -1, self.h, self.d_k).transpose(1, 2)
        ac = torch.matmul((q + self.u).transpose(1, 2), k.transpose(-2, -1))
        bd = self.rel_shift(torch.matmul((q + self.vb).transpose(1, 2), p.transpose(-2, -1)))
        attn = torch.softmax((ac + bd) / math.sqrt(self.d_k), -1)
        return (attn @ v).transpose(1, 2).contiguous().view(b, t, -1)


class LengthRegulator(nn.Module):
    """FastSpeech: frames repeated by durations, by a matrix for a known number of frames."""

    def __init__(self, frames=9):
        super().__init__()
        self.frames, self.lin = frames, nn.Linear(4, 4)

    def forward(self, x, durations):
        ends = torch.cumsum(durations, 1)
        starts = ends - durations
        t = torch.arange(self.frames)[None, :, None]
        path = ((t >= starts[:, None]) & (t < ends[:, None])).float()
        return self.lin(torch.bmm(path, x)), ends[:, -1].clamp(max=self.frames)


class RepeatRegulator(nn.Module):
    """The same with ``repeat_interleave`` and padding: sizes depend on data."""

    def forward(self, x, durations):
        out = [torch.repeat_interleave(e, d, dim=0) for e, d in zip(x, durations)]
        return nn.utils.rnn.pad_sequence(out, batch_first=True)


class SnakeResBlock(nn.Module):
    """HiFi-GAN with weight norm and snake."""

    def __init__(self, c=4):
        super().__init__()
        self.convs = nn.ModuleList(
            [nn.utils.weight_norm(nn.Conv1d(c, c, 3, 1, dilation=d, padding=d)) for d in (1, 3)]
        )
        self.alpha = nn.Parameter(torch.ones(1, c, 1))

    def forward(self, x):
        for c in self.convs:
            xt = x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)
            x = c(xt) + x
        return torch.tanh(x)


class PeriodDiscriminator(nn.Module):
    def __init__(self, period=3):
        super().__init__()
        self.period, self.conv = period, nn.Conv2d(1, 3, (5, 1), (3, 1), padding=(2, 0))

    def forward(self, x):
        b, c, t = x.shape
        if t % self.period != 0:
            n_pad = self.period - (t % self.period)
            x = F.pad(x, (0, n_pad), "reflect")
            t = t + n_pad
        x = F.leaky_relu(self.conv(x.view(b, c, t // self.period, self.period)), 0.1)
        return torch.flatten(x, 1, -1)


class DDIM(nn.Module):
    def __init__(self, steps=10):
        super().__init__()
        self.net = nn.Linear(5, 4)
        betas = torch.linspace(1e-4, 0.02, steps)
        self.register_buffer("alphas_bar", torch.cumprod(1 - betas, 0))
        self.steps = steps

    @torch.no_grad()
    def sample(self, x, n=3, eta=0.5):
        times = list(reversed(torch.linspace(-1, self.steps - 1, steps=n + 1).int().tolist()))
        for time, time_next in zip(times[:-1], times[1:]):
            t = torch.full((x.shape[0], 1), time / self.steps)
            eps = self.net(torch.cat([x, t], 1))
            alpha = self.alphas_bar[time]
            x0 = (x - (1 - alpha).sqrt() * eps) / alpha.sqrt()
            if time_next < 0:
                x = x0
                continue
            alpha_next = self.alphas_bar[time_next]
            sigma = eta * ((1 - alpha / alpha_next) * (1 - alpha_next) / (1 - alpha)).sqrt()
            c = (1 - alpha_next - sigma**2).sqrt()
            x = x0 * alpha_next.sqrt() + c * eps + sigma * torch.randn_like(x)
        return x

    def forward(self, x):
        t = torch.randint(0, self.steps, (x.shape[0],))
        a = self.alphas_bar.gather(0, t)[:, None]
        noise = torch.randn_like(x)
        pred = self.net(torch.cat([a.sqrt() * x + (1 - a).sqrt() * noise, t[:, None] / self.steps], 1))
        return F.mse_loss(pred, noise)


class KarrasHeun(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(5, 4)

    def denoise(self, x, sigma):
        c_skip, c_out = 1 / (sigma**2 + 1), sigma / (sigma**2 + 1) ** 0.5
        s = sigma.log().view(1, 1).expand(x.shape[0], 1)
        return c_skip * x + c_out * self.net(torch.cat([x, s], 1))

    @torch.no_grad()
    def forward(self, x, n=4, rho=7.0):
        ramp = torch.linspace(0, 1, n)
        sigmas = (80 ** (1 / rho) + ramp * (0.002 ** (1 / rho) - 80 ** (1 / rho))) ** rho
        sigmas = torch.cat([sigmas, sigmas.new_zeros([1])])
        x = x * sigmas[0]
        for i in range(len(sigmas) - 1):
            d = (x - self.denoise(x, sigmas[i])) / sigmas[i]
            dt = sigmas[i + 1] - sigmas[i]
            if i == n - 1:
                x = x + d * dt
            else:
                x2 = x + d * dt
                d2 = (x2 - self.denoise(x2, sigmas[i + 1])) / sigmas[i + 1]
                x = x + (d + d2) / 2 * dt
        return x


class FCOSHead(nn.Module):
    def __init__(self, strides=(4, 8)):
        super().__init__()
        self.cls, self.reg, self.ctr = (
            nn.Conv2d(3, 2, 3, 1, 1),
            nn.Conv2d(3, 4, 3, 1, 1),
            nn.Conv2d(3, 1, 3, 1, 1),
        )
        self.scales = nn.Parameter(torch.ones(len(strides)))
        self.strides = strides

    def locations(self, h, w, stride):
        sx = torch.arange(0, w * stride, step=stride, dtype=torch.float32)
        sy = torch.arange(0, h * stride, step=stride, dtype=torch.float32)
        shift_y, shift_x = torch.meshgrid(sy, sx, indexing="ij")
        return torch.stack((shift_x.reshape(-1), shift_y.reshape(-1)), dim=1) + stride // 2

    def forward(self, *features):
        boxes, scores = [], []
        for level, (x, stride) in enumerate(zip(features, self.strides)):
            b, _, h, w = x.shape
            reg = F.relu(self.scales[level] * self.reg(x)) * stride
            reg = reg.permute(0, 2, 3, 1).reshape(b, -1, 4)
            loc = self.locations(h, w, stride)
            boxes.append(torch.cat([loc[None] - reg[..., :2], loc[None] + reg[..., 2:]], -1))
            s = self.cls(x).sigmoid().permute(0, 2, 3, 1).reshape(b, -1, 2)
            scores.append(s * self.ctr(x).sigmoid().permute(0, 2, 3, 1).reshape(b, -1, 1))
        return torch.cat(boxes, 1), torch.cat(scores, 1).sqrt()


class CenterNetDecode(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.k, self.hm, self.wh = k, nn.Conv2d(3, 2, 1), nn.Conv2d(3, 2, 1)

    def gather(self, feat, ind):
        dim = feat.size(2)
        ind = ind.unsqueeze(2).expand(ind.size(0), ind.size(1), dim)
        return feat.gather(1, ind)

    def forward(self, x):
        heat = torch.clamp(self.hm(x).sigmoid_(), min=1e-4, max=1 - 1e-4)
        hmax = F.max_pool2d(heat, (3, 3), stride=1, padding=1)
        heat = heat * (hmax == heat).float()
        batch, cat, height, width = heat.size()
        scores, inds = torch.topk(heat.view(batch, cat, -1), self.k)
        inds = inds % (height * width)
        ys, xs = torch.div(inds, width, rounding_mode="floor").float(), (inds % width).int().float()  # noqa: F841
        score, ind = torch.topk(scores.view(batch, -1), self.k)
        clses = torch.div(ind, self.k, rounding_mode="trunc").int()
        inds = self.gather(inds.view(batch, -1, 1), ind).view(batch, self.k)
        xs = self.gather(xs.view(batch, -1, 1), ind).view(batch, self.k)
        wh = self.gather(self.wh(x).permute(0, 2, 3, 1).contiguous().view(batch, -1, 2), inds)
        return torch.stack([xs - wh[..., 0] / 2, xs + wh[..., 0] / 2, score], 2), clses


class HungarianCost(nn.Module):
    """DETR's matching cost, without the matching."""

    def forward(self, logits, boxes, labels, targets):
        bs, q = logits.shape[:2]
        prob = logits.flatten(0, 1).softmax(-1)
        cost_class = -prob[:, labels]
        cost_bbox = torch.cdist(boxes.flatten(0, 1), targets, p=1)
        return (5 * cost_bbox + cost_class).view(bs, q, -1).argmin(1), cost_bbox.split([2, 1], -1)


class FarthestPoints(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.n = n

    def forward(self, xyz):
        B, N, C = xyz.shape
        centroids = torch.zeros(B, self.n, dtype=torch.long)
        distance = torch.ones(B, N) * 1e10
        farthest = torch.randint(0, N, (B,), dtype=torch.long)
        batch_indices = torch.arange(B, dtype=torch.long)
        for i in range(self.n):
            centroids[:, i] = farthest
            centroid = xyz[batch_indices, farthest, :].view(B, 1, C)
            dist = torch.sum((xyz - centroid) ** 2, -1)
            mask = dist < distance
            distance[mask] = dist[mask]
            farthest = torch.max(distance, -1)[1]
        return centroids


class PointInterpolation(nn.Module):
    def forward(self, xyz1, xyz2, points2):
        B, N, _ = xyz1.shape
        dists = torch.cdist(xyz1, xyz2).pow(2)
        dists, idx = dists.sort(dim=-1)
        dists, idx = dists[:, :, :3], idx[:, :, :3]
        recip = 1.0 / (dists + 1e-8)
        weight = recip / torch.sum(recip, dim=2, keepdim=True)
        bi = torch.arange(B).view(B, 1, 1).expand(-1, N, 3)
        return torch.sum(points2[bi, idx] * weight.view(B, N, 3, 1), dim=2)


class ChamferLoss(nn.Module):
    def forward(self, x, y):
        zz = torch.bmm(x, y.transpose(2, 1))
        rx = torch.diagonal(torch.bmm(x, x.transpose(2, 1)), dim1=1, dim2=2)
        ry = torch.diagonal(torch.bmm(y, y.transpose(2, 1)), dim1=1, dim2=2)
        P = rx.unsqueeze(2).expand_as(zz) + ry.unsqueeze(1).expand_as(zz) - 2 * zz
        return torch.mean(torch.min(P, 1)[0]) + torch.mean(torch.min(P, 2)[0])


class TNet(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.k, self.conv, self.fc = k, nn.Conv1d(k, 8, 1), nn.Linear(8, k * k)

    def forward(self, x):
        b = x.size(0)
        h = torch.max(F.relu(self.conv(x)), 2, keepdim=True)[0].view(-1, 8)
        iden = torch.eye(self.k).flatten().view(1, self.k * self.k).repeat(b, 1)
        T = (self.fc(h) + iden).view(-1, self.k, self.k)
        loss = torch.mean(torch.norm(torch.bmm(T, T.transpose(2, 1)) - torch.eye(self.k)[None], dim=(1, 2)))
        return torch.bmm(x.transpose(2, 1), T).transpose(2, 1), loss


def labelled(b=4):
    return torch.rand(b, 6), torch.randint(0, 3, (b,))


def few():
    return torch.randn(4, 4), torch.tensor([0, 1, 2, 1]), torch.randn(4, 4), torch.tensor([2, 1, 0, 0])


CASES = [
    of("fgsm", FGSM, labelled, grad=True, trains=False),
    of("pgd", PGD, labelled, grad=True),
    of("vat", VAT, lambda: torch.randn(4, 6), grad=True),
    of("r1_penalty", R1Penalty, lambda: torch.randn(4, 1, 4, 4), grad=True),
    of("langevin_ebm", LangevinEBM, lambda: torch.randn(4, 3), grad=True),
    of("sliced_score", SlicedScore, lambda: torch.randn(4, 3), grad=True),
    of("maml", MAML, few, grad=True),
    of("lsq_linear", LSQLinear, lambda: torch.randn(4, 5)),
    of("bit_linear", lambda: BitLinear(5, 3), lambda: torch.randn(4, 5)),
    of("fake_quant_observer", FakeQuantObserver, lambda: torch.randn(4, 5)),
    of("mel_filter", MelFilter, lambda: torch.randn(4, 40)),
    of("spec_augment", SpecAugment, lambda: torch.randn(4, 5, 6)),
    of("conformer_conv", ConformerConv, lambda: (torch.randn(4, 7, 6), torch.rand(4, 7) > 0.7)),
    of("rel_position_attention", RelPositionAttention, lambda: (torch.randn(4, 5, 8), torch.randn(1, 9, 8))),
    of("length_regulator", LengthRegulator, lambda: (torch.randn(4, 3, 4), torch.randint(0, 4, (4, 3)))),
    of("repeat_regulator", RepeatRegulator, lambda: (torch.randn(4, 3, 4), torch.randint(1, 4, (4, 3)))),
    of("snake_res_block", SnakeResBlock, lambda: torch.randn(4, 4, 9)),
    of("period_discriminator", PeriodDiscriminator, lambda: torch.randn(4, 1, 20)),
    of("ddim", DDIM, lambda: torch.randn(4, 4)),
    of("ddim_sample", DDIM, lambda: torch.randn(4, 4), method="sample"),
    of("karras_heun", KarrasHeun, lambda: torch.randn(4, 4), trains=False),
    of("fcos_head", FCOSHead, lambda: (torch.randn(2, 3, 6, 5), torch.randn(2, 3, 3, 3))),
    of("center_net", CenterNetDecode, lambda: torch.randn(4, 3, 6, 6)),
    of(
        "detr_cost",
        HungarianCost,
        lambda: (torch.randn(4, 5, 3), torch.rand(4, 5, 4), torch.tensor([0, 2, 1]), torch.rand(3, 4)),
    ),
    of("farthest_points", FarthestPoints, lambda: torch.randn(4, 7, 3)),
    of("point_interpolation", PointInterpolation, lambda: tuple(torch.randn(4, n, 3) for n in (6, 5, 5))),
    of("chamfer", ChamferLoss, lambda: (torch.randn(4, 5, 3), torch.randn(4, 6, 3))),
    of("tnet", TNet, lambda: torch.randn(4, 3, 6)),
]
