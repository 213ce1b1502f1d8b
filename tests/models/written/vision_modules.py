"""Modules within vision networks: attention, pyramids, sampling, heads."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import of


class ASPP(nn.Module):
    def __init__(self, in_channels, atrous_rates=(2, 4), out_channels=8):
        super().__init__()
        modules = [nn.Sequential(nn.Conv2d(in_channels, out_channels, 1, bias=False), nn.ReLU())]
        for rate in tuple(atrous_rates):
            modules.append(
                nn.Sequential(nn.Conv2d(in_channels, out_channels, 3, padding=rate, dilation=rate), nn.ReLU())
            )
        self.pool = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(in_channels, out_channels, 1, bias=False)
        )
        self.convs = nn.ModuleList(modules)
        self.project = nn.Conv2d((len(modules) + 1) * out_channels, out_channels, 1)

    def forward(self, x):
        _res = []
        for conv in self.convs:
            _res.append(conv(x))
        size = x.shape[-2:]
        _res.append(F.interpolate(self.pool(x), size=size, mode="bilinear", align_corners=False))
        return self.project(torch.cat(_res, dim=1))


class FPN(nn.Module):
    def __init__(self, channels=(4, 8, 16), out=8):
        super().__init__()
        self.stages = nn.ModuleList(
            [nn.Conv2d(i, o, 3, 2, 1) for i, o in zip((3,) + channels[:-1], channels)]
        )
        self.lateral = nn.ModuleDict({str(i): nn.Conv2d(c, out, 1) for i, c in enumerate(channels)})
        self.smooth = nn.Conv2d(out, out, 3, padding=1)

    def _upsample_add(self, x, y):
        _, _, H, W = y.size()
        return F.interpolate(x, size=(H, W), mode="nearest") + y

    def forward(self, x):
        feats = []
        for stage in self.stages:
            x = F.leaky_relu(stage(x), 0.1)
            feats.append(x)
        p, outs = None, OrderedDict()
        for i, f in reversed(list(enumerate(feats))):
            lat = self.lateral[str(i)](f)
            p = lat if p is None else self._upsample_add(p, lat)
            outs[f"p{i}"] = self.smooth(p)
        return outs


class SpatialTransformer(nn.Module):
    """STN on small digits."""

    def __init__(self):
        super().__init__()
        self.localization = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=7),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
            nn.Conv2d(8, 10, 5),
            nn.ReLU(True),
        )
        self.fc_loc = nn.Sequential(nn.Linear(10 * 7 * 7, 16), nn.ReLU(True), nn.Linear(16, 3 * 2))
        self.fc_loc[2].weight.data.normal_(0, 0.01)
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def forward(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 10 * 7 * 7)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


class DeformableSampling(nn.Module):
    """Deformable convolution by offsets and grid_sample."""

    def __init__(self, c, k=3):
        super().__init__()
        self.k = k
        self.offset = nn.Conv2d(c, 2 * k * k, 3, padding=1)
        self.weight = nn.Conv2d(c * k * k, c, 1)
        nn.init.constant_(self.offset.weight, 0.01)

    def forward(self, x):
        N, C, H, W = x.shape
        off = self.offset(x).view(N, self.k * self.k, 2, H, W)
        ys, xs = torch.meshgrid(
            torch.arange(H, dtype=x.dtype, device=x.device),
            torch.arange(W, dtype=x.dtype, device=x.device),
            indexing="ij",
        )
        out = []
        for i in range(self.k * self.k):
            dy, dx = i // self.k - 1, i % self.k - 1
            gy = 2.0 * (ys + dy + off[:, i, 0]) / max(H - 1, 1) - 1.0
            gx = 2.0 * (xs + dx + off[:, i, 1]) / max(W - 1, 1) - 1.0
            grid = torch.stack((gx, gy), dim=-1)
            out.append(F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True))
        return self.weight(torch.cat(out, 1))


class CapsuleLayer(nn.Module):
    def __init__(self, num_capsules=3, num_route_nodes=12, in_channels=4, out_channels=6, num_iterations=3):
        super().__init__()
        self.num_iterations = num_iterations
        self.route_weights = nn.Parameter(
            0.1 * torch.randn(num_capsules, num_route_nodes, in_channels, out_channels)
        )

    def squash(self, tensor, dim=-1):
        squared_norm = (tensor**2).sum(dim=dim, keepdim=True)
        scale = squared_norm / (1 + squared_norm)
        return scale * tensor / torch.sqrt(squared_norm)

    def forward(self, x):
        priors = x[None, :, :, None, :] @ self.route_weights[:, None, :, :, :]
        logits = torch.zeros(*priors.size()).to(x.device)
        for i in range(self.num_iterations):
            probs = F.softmax(logits, dim=2)
            outputs = self.squash((probs * priors).sum(dim=2, keepdim=True))
            if i != self.num_iterations - 1:
                delta_logits = (priors * outputs).sum(dim=-1, keepdim=True)
                logits = logits + delta_logits
        classes = outputs.squeeze().transpose(0, 1)
        return (classes**2).sum(dim=-1) ** 0.5


class PixelShuffleSR(nn.Module):
    """ESPCN: super resolution by sub-pixel convolution."""

    def __init__(self, upscale_factor=2):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)

    def forward(self, x):
        return self.pixel_shuffle(self.conv2(self.relu(self.conv1(x))))


class NonLocal(nn.Module):
    def __init__(self, in_channels, mode="embedded", sub_sample=True):
        super().__init__()
        self.mode, self.inter = mode, in_channels // 2
        self.g, self.theta, self.phi = (nn.Conv2d(in_channels, self.inter, 1) for _ in range(3))
        self.W = nn.Conv2d(self.inter, in_channels, 1)
        if sub_sample:
            self.g = nn.Sequential(self.g, nn.MaxPool2d(2))
            self.phi = nn.Sequential(self.phi, nn.MaxPool2d(2))

    def forward(self, x):
        batch_size = x.size(0)
        g_x = self.g(x).view(batch_size, self.inter, -1).permute(0, 2, 1)
        theta_x = self.theta(x).view(batch_size, self.inter, -1).permute(0, 2, 1)
        phi_x = self.phi(x).view(batch_size, self.inter, -1)
        f = torch.matmul(theta_x, phi_x)
        if self.mode == "embedded":
            f_div_C = F.softmax(f, dim=-1)
        elif self.mode == "dot":
            f_div_C = f / f.size(-1)
        y = torch.matmul(f_div_C, g_x).permute(0, 2, 1).contiguous()
        return self.W(y.view(batch_size, self.inter, *x.size()[2:])) + x


class YoloHead(nn.Module):
    """Decoding boxes on a cached grid."""

    def __init__(self, nc=3, anchors=((10, 13, 16, 30), (30, 61, 62, 45)), ch=(4, 8)):
        super().__init__()
        self.nc, self.no = nc, nc + 5
        self.nl, self.na = len(anchors), len(anchors[0]) // 2
        self.grid = [torch.empty(0) for _ in range(self.nl)]
        self.register_buffer("anchors", torch.tensor(anchors).float().view(self.nl, -1, 2))
        self.m = nn.ModuleList(nn.Conv2d(x, self.no * self.na, 1) for x in ch)
        self.stride = [8, 16]

    def _make_grid(self, nx, ny):
        yv, xv = torch.meshgrid(torch.arange(ny), torch.arange(nx), indexing="ij")
        return torch.stack((xv, yv), 2).expand(1, self.na, ny, nx, 2).float() - 0.5

    def forward(self, x0, x1):
        x, z = [x0, x1], []
        for i in range(self.nl):
            x[i] = self.m[i](x[i])
            bs, _, ny, nx = x[i].shape
            x[i] = x[i].view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
            if not self.training:
                if self.grid[i].shape[2:4] != x[i].shape[2:4]:
                    self.grid[i] = self._make_grid(nx, ny)
                xy, wh, conf = x[i].sigmoid().split((2, 2, self.nc + 1), 4)
                xy = (xy * 2 + self.grid[i]) * self.stride[i]
                wh = (wh * 2) ** 2 * self.anchors[i].view(1, self.na, 1, 1, 2)
                z.append(torch.cat((xy, wh, conf), 4).view(bs, self.na * nx * ny, self.no))
        return x if self.training else (torch.cat(z, 1), x)


class MixerBlock(nn.Module):
    def __init__(self, dim, num_patch, token_dim=8, channel_dim=16):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(
            nn.Linear(num_patch, token_dim), nn.GELU(), nn.Linear(token_dim, num_patch)
        )
        self.channel = nn.Sequential(nn.Linear(dim, channel_dim), nn.GELU(), nn.Linear(channel_dim, dim))

    def forward(self, x):
        x = x + self.token(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.n2(x))


class GhostModule(nn.Module):
    def __init__(self, inp, oup, ratio=2):
        super().__init__()
        self.oup = oup
        init_channels = math.ceil(oup / ratio)
        self.primary = nn.Sequential(
            nn.Conv2d(inp, init_channels, 1, bias=False), nn.BatchNorm2d(init_channels), nn.ReLU()
        )
        self.cheap = nn.Conv2d(
            init_channels, init_channels * (ratio - 1), 3, 1, 1, groups=init_channels, bias=False
        )

    def forward(self, x):
        x1 = self.primary(x)
        x2 = self.cheap(x1)
        out = torch.cat([x1, x2], dim=1)
        return out[:, : self.oup, :, :]


class BlurPool(nn.Module):
    def __init__(self, channels, filt_size=3, stride=2):
        super().__init__()
        a = torch.tensor([1.0, 2.0, 1.0])
        filt = a[:, None] * a[None, :]
        self.register_buffer(
            "filt", (filt / torch.sum(filt))[None, None].repeat(channels, 1, 1, 1), persistent=False
        )
        self.pad = nn.ReflectionPad2d([1, 1, 1, 1])
        self.stride = stride

    def forward(self, inp):
        return F.conv2d(self.pad(inp), self.filt, stride=self.stride, groups=inp.shape[1])


class SPP(nn.Module):
    """Spatial pyramid pooling."""

    def __init__(self, levels=(1, 2, 4), pool_type="max_pool"):
        super().__init__()
        self.levels, self.pool_type = levels, pool_type

    def forward(self, x):
        num, c, h, w = x.size()
        for i, level in enumerate(self.levels):
            kernel_size = (math.ceil(h / level), math.ceil(w / level))
            stride = (math.ceil(h / level), math.ceil(w / level))
            padding = (
                math.floor((kernel_size[0] * level - h + 1) / 2),
                math.floor((kernel_size[1] * level - w + 1) / 2),
            )
            if self.pool_type == "max_pool":
                tensor = F.max_pool2d(x, kernel_size=kernel_size, stride=stride, padding=padding).view(
                    num, -1
                )
            else:
                tensor = F.avg_pool2d(x, kernel_size=kernel_size, stride=stride, padding=padding).view(
                    num, -1
                )
            if i == 0:
                x_flatten = tensor.view(num, -1)
            else:
                x_flatten = torch.cat((x_flatten, tensor.view(num, -1)), 1)
        return x_flatten


def img(b=2, c=3, s=16):
    return torch.randn(b, c, s, s)


CASES = [
    of("aspp", lambda: ASPP(4), lambda: img(c=4)),
    of("fpn", FPN, lambda: img(s=24)),
    of("spatial_transformer", SpatialTransformer, lambda: img(c=1, s=28)),
    of("deformable_sampling", lambda: DeformableSampling(4), lambda: img(c=4, s=8)),
    of("capsules", CapsuleLayer, lambda: torch.randn(2, 12, 4)),
    of("pixel_shuffle_sr", PixelShuffleSR, lambda: img(c=1)),
    of("non_local", lambda: NonLocal(8), lambda: img(c=8, s=8)),
    of("non_local_dot", lambda: NonLocal(8, "dot", False), lambda: img(c=8, s=8)),
    of("yolo_head", YoloHead, lambda: (img(c=4, s=8), img(c=8, s=4))),
    of("mixer_block", lambda: MixerBlock(8, 16), lambda: torch.randn(2, 16, 8)),
    of("ghost_module", lambda: GhostModule(8, 11), lambda: img(c=8)),
    of("blur_pool", lambda: BlurPool(3), img),
    of("spatial_pyramid", SPP, lambda: img(s=13)),
    of("spatial_pyramid_avg", lambda: SPP(pool_type="avg_pool"), lambda: img(s=13)),
]
