"""Backbones, blocks and segmentation networks."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint as cp
from torch import Tensor

from . import of


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        # input is CHW
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False, width=8):
        super().__init__()
        self.n_channels, self.n_classes, self.bilinear = n_channels, n_classes, bilinear
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, width)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, width * 2))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width * 2, width * 4 // factor))
        self.up1 = Up(width * 4, width * 2 // factor, bilinear)
        self.up2 = Up(width * 2, width, bilinear)
        self.outc = nn.Conv2d(width, n_classes, kernel_size=1)
        self._use_checkpointing = False

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = cp.checkpoint(self.down2, x2, use_reentrant=False) if self._use_checkpointing else self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def checkpointed_unet():
    net = UNet(3, 2)
    net._use_checkpointing = True
    return net


class SELayer(nn.Module):
    def __init__(self, channel, reduction=4):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channel, channel // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channel // reduction, channel, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, se=False):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.se = SELayer(planes) if se else None
        self.downsample = downsample

    def forward(self, x):
        residual = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.se is not None:
            out = self.se(out)
        if self.downsample is not None:
            residual = self.downsample(x)
        out += residual
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, layers, num_classes=10, se=False):
        self.inplanes = 8
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        for i, n in enumerate(layers):
            setattr(self, f"layer{i + 1}", self._make_layer(block, 8 * 2**i, n, stride=1 + (i > 0), se=se))
        self.num_layers = len(layers)
        self.fc = nn.Linear(self.inplanes, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                m.weight.data.normal_(0, math.sqrt(2.0 / n))
            elif isinstance(m, nn.BatchNorm2d):
                m.weight.data.fill_(1)
                m.bias.data.zero_()

    def _make_layer(self, block, planes, blocks, stride, se):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, 1, stride, bias=False),
                nn.BatchNorm2d(planes * block.expansion),
            )
        layers = [block(self.inplanes, planes, stride, downsample, se)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes, se=se) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for i in range(self.num_layers):
            x = getattr(self, f"layer{i + 1}")(x)
        x = F.avg_pool2d(x, x.size()[3])
        x = x.view(x.size(0), -1)
        return self.fc(x)


class PreActBottleneck(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(in_planes), nn.Conv2d(in_planes, planes, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(planes), nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn3, self.conv3 = nn.BatchNorm2d(planes), nn.Conv2d(planes, 4 * planes, 1, bias=False)
        if stride != 1 or in_planes != 4 * planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, 4 * planes, 1, stride, bias=False))

    def forward(self, x):
        out = F.relu(self.bn1(x))
        shortcut = self.shortcut(out) if hasattr(self, "shortcut") else x
        out = self.conv1(out)
        out = self.conv2(F.relu(self.bn2(out)))
        out = self.conv3(F.relu(self.bn3(out)))
        out += shortcut
        return out


class _DenseLayer(nn.Sequential):
    def __init__(self, num_input_features, growth_rate, bn_size, drop_rate):
        super().__init__()
        self.add_module("norm1", nn.BatchNorm2d(num_input_features))
        self.add_module("relu1", nn.ReLU(inplace=True))
        self.add_module("conv1", nn.Conv2d(num_input_features, bn_size * growth_rate, 1, bias=False))
        self.add_module("norm2", nn.BatchNorm2d(bn_size * growth_rate))
        self.add_module("relu2", nn.ReLU(inplace=True))
        self.add_module("conv2", nn.Conv2d(bn_size * growth_rate, growth_rate, 3, padding=1, bias=False))
        self.drop_rate = drop_rate

    def forward(self, x):
        new_features = super().forward(x)
        if self.drop_rate > 0:
            new_features = F.dropout(new_features, p=self.drop_rate, training=self.training)
        return torch.cat([x, new_features], 1)


class DenseNet(nn.Module):
    def __init__(self, growth_rate=4, block_config=(2, 3), drop_rate=0.1, num_classes=10, efficient=False):
        super().__init__()
        num_features = 8
        self.features = nn.Sequential(OrderedDict([("conv0", nn.Conv2d(3, num_features, 3, 2, 1))]))
        for i, num_layers in enumerate(block_config):
            block = nn.Sequential(
                *[
                    _DenseLayer(num_features + j * growth_rate, growth_rate, 2, drop_rate)
                    for j in range(num_layers)
                ]
            )
            self.features.add_module("denseblock%d" % (i + 1), block)
            num_features += num_layers * growth_rate
            if i != len(block_config) - 1:
                trans = nn.Sequential(
                    nn.BatchNorm2d(num_features),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(num_features, num_features // 2, 1, bias=False),
                    nn.AvgPool2d(2, stride=2),
                )
                self.features.add_module("transition%d" % (i + 1), trans)
                num_features //= 2
        self.features.add_module("norm_final", nn.BatchNorm2d(num_features))
        self.classifier = nn.Linear(num_features, num_classes)

    def forward(self, x):
        features = self.features(x)
        out = F.relu(features, inplace=True)
        out = F.adaptive_avg_pool2d(out, (1, 1))
        return self.classifier(torch.flatten(out, 1))


class ChannelGate(nn.Module):
    def __init__(self, gate_channels, reduction_ratio=4, pool_types=("avg", "max")):
        super().__init__()
        self.gate_channels = gate_channels
        self.mlp = nn.Sequential(
            nn.Flatten(),
            nn.Linear(gate_channels, gate_channels // reduction_ratio),
            nn.ReLU(),
            nn.Linear(gate_channels // reduction_ratio, gate_channels),
        )
        self.pool_types = pool_types

    def forward(self, x):
        channel_att_sum = None
        for pool_type in self.pool_types:
            size = (x.size(2), x.size(3))
            if pool_type == "avg":
                raw = self.mlp(F.avg_pool2d(x, size, stride=size))
            elif pool_type == "max":
                raw = self.mlp(F.max_pool2d(x, size, stride=size))
            elif pool_type == "lse":
                raw = self.mlp(logsumexp_2d(x))
            channel_att_sum = raw if channel_att_sum is None else channel_att_sum + raw
        return x * torch.sigmoid(channel_att_sum).unsqueeze(2).unsqueeze(3).expand_as(x)


def logsumexp_2d(tensor):
    tensor_flatten = tensor.view(tensor.size(0), tensor.size(1), -1)
    s, _ = torch.max(tensor_flatten, dim=2, keepdim=True)
    return s + (tensor_flatten - s).exp().sum(dim=2, keepdim=True).log()


class CBAM(nn.Module):
    def __init__(self, channels, pool_types=("avg", "max"), kernel_size=7):
        super().__init__()
        self.channel = ChannelGate(channels, pool_types=pool_types)
        self.spatial = nn.Conv2d(2, 1, kernel_size, padding=(kernel_size - 1) // 2)

    def forward(self, x):
        x = self.channel(x)
        compressed = torch.cat((torch.max(x, 1)[0].unsqueeze(1), torch.mean(x, 1).unsqueeze(1)), dim=1)
        return x * torch.sigmoid(self.spatial(compressed))


class Inception(nn.Module):
    def __init__(self, in_planes, n1x1, n3x3red, n3x3, pool_planes):
        super().__init__()
        self.branch1 = nn.Sequential(nn.Conv2d(in_planes, n1x1, 1), nn.BatchNorm2d(n1x1), nn.ReLU(True))
        self.branch2 = nn.Sequential(
            nn.Conv2d(in_planes, n3x3red, 1),
            nn.ReLU(True),
            nn.Conv2d(n3x3red, n3x3, 3, padding=1),
            nn.ReLU(True),
        )
        self.branch3 = nn.Sequential(
            nn.MaxPool2d(3, stride=1, padding=1), nn.Conv2d(in_planes, pool_planes, 1), nn.ReLU(True)
        )

    def forward(self, x):
        branches = [self.branch1, self.branch2, self.branch3]
        return torch.cat([branch(x) for branch in branches], 1)


class ECALayer(nn.Module):
    """Efficient channel attention."""

    def __init__(self, channels, gamma=2, b=1):
        super().__init__()
        t = int(abs((math.log(channels, 2) + b) / gamma))
        k = t if t % 2 else t + 1
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.conv = nn.Conv1d(1, 1, kernel_size=k, padding=int(k / 2), bias=False)

    def forward(self, x):
        y = self.avg_pool(x)
        y = self.conv(y.squeeze(-1).transpose(-1, -2)).transpose(-1, -2).unsqueeze(-1)
        return x * torch.sigmoid(y).expand_as(x)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    batchsize, num_channels, height, width = x.size()
    channels_per_group = num_channels // groups
    x = x.view(batchsize, groups, channels_per_group, height, width)
    x = torch.transpose(x, 1, 2).contiguous()
    return x.view(batchsize, num_channels, height, width)


class ShuffleUnit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(c // 2, c // 2, 1, bias=False),
            nn.BatchNorm2d(c // 2),
            nn.ReLU6(inplace=True),
            nn.Conv2d(c // 2, c // 2, 3, padding=1, groups=c // 2, bias=False),
            nn.BatchNorm2d(c // 2),
        )

    def forward(self, x):
        x1, x2 = x.chunk(2, dim=1)
        out = torch.cat((x1, self.branch(x2)), dim=1)
        return channel_shuffle(out, 2)


class MBConv(nn.Module):
    def __init__(self, inp, oup, expand_ratio=4, drop_connect=0.2):
        super().__init__()
        hidden = int(inp * expand_ratio)
        self.expand = nn.Sequential(
            nn.Conv2d(inp, hidden, 1, bias=False), nn.BatchNorm2d(hidden, momentum=0.01)
        )
        self.depthwise = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False)
        self.bn = nn.BatchNorm2d(hidden, eps=1e-3)
        self.se_reduce, self.se_expand = nn.Conv2d(hidden, 4, 1), nn.Conv2d(4, hidden, 1)
        self.project, self.bn2 = nn.Conv2d(hidden, oup, 1, bias=False), nn.BatchNorm2d(oup)
        self.drop_connect_rate = drop_connect
        self.id_skip = inp == oup
        self._swish = nn.SiLU()

    def forward(self, inputs):
        x = self._swish(self.expand(inputs))
        x = self._swish(self.bn(self.depthwise(x)))
        se = self.se_expand(self._swish(self.se_reduce(F.adaptive_avg_pool2d(x, 1))))
        x = torch.sigmoid(se) * x
        x = self.bn2(self.project(x))
        if self.id_skip:
            if self.drop_connect_rate and self.training:
                keep_prob = 1 - self.drop_connect_rate
                random_tensor = keep_prob
                random_tensor += torch.rand([x.shape[0], 1, 1, 1], dtype=x.dtype, device=x.device)
                x = x / keep_prob * torch.floor(random_tensor)
            x = x + inputs
        return x


def drop_path(x, drop_prob: float = 0.0, training: bool = False):
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
    random_tensor.floor_()
    return x.div(keep_prob) * random_tensor


class LayerNorm2d(nn.Module):
    """channels_first or channels_last"""

    def __init__(self, normalized_shape, eps=1e-6, data_format="channels_last"):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(normalized_shape))
        self.bias = nn.Parameter(torch.zeros(normalized_shape))
        self.eps, self.data_format = eps, data_format
        if self.data_format not in ["channels_last", "channels_first"]:
            raise NotImplementedError
        self.normalized_shape = (normalized_shape,)

    def forward(self, x):
        if self.data_format == "channels_last":
            return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim, drop=0.1, layer_scale_init_value=1e-6):
        super().__init__()
        self.stem_norm = LayerNorm2d(dim, data_format="channels_first")
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = LayerNorm2d(dim)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        self.gamma = (
            nn.Parameter(layer_scale_init_value * torch.ones(dim)) if layer_scale_init_value > 0 else None
        )
        self.drop = drop

    def forward(self, x):
        input = x = self.stem_norm(x)
        x = self.dwconv(x)
        x = x.permute(0, 2, 3, 1)  # (N, C, H, W) -> (N, H, W, C)
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        if self.gamma is not None:
            x = self.gamma * x
        x = x.permute(0, 3, 1, 2)
        return input + drop_path(x, self.drop, self.training)


class PatchEmbed(nn.Module):
    def __init__(self, img_size=16, patch_size=4, in_chans=3, embed_dim=16):
        super().__init__()
        self.img_size = (img_size, img_size)
        self.num_patches = (img_size // patch_size) ** 2
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x):
        B, C, H, W = x.shape
        assert self.img_size[0] == H and self.img_size[1] == W, (
            f"Input image size ({H}*{W}) doesn't match model ({self.img_size[0]}*{self.img_size[1]})."
        )
        return self.proj(x).flatten(2).transpose(1, 2)


class ViT(nn.Module):
    def __init__(self, dim=16, depth=2, heads=4, num_classes=5, dropout=0.1):
        super().__init__()
        self.patch_embed = PatchEmbed(embed_dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, self.patch_embed.num_patches + 1, dim) * 0.02)
        self.pos_drop = nn.Dropout(p=dropout)
        layer = nn.TransformerEncoderLayer(
            dim, heads, 4 * dim, dropout, F.gelu, batch_first=True, norm_first=True
        )
        self.blocks = nn.ModuleList([layer] + [nn.TransformerEncoderLayer(dim, heads, batch_first=True)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def forward(self, x):
        B = x.shape[0]
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(B, -1, -1), x), dim=1)
        x = self.pos_drop(x + self.pos_embed)
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x)[:, 0])


def window_partition(x, window_size):
    B, H, W, C = x.shape
    x = x.view(B, H // window_size, window_size, W // window_size, window_size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window_size, window_size, C)


def window_reverse(windows, window_size, H, W):
    B = int(windows.shape[0] / (H * W / window_size / window_size))
    x = windows.view(B, H // window_size, W // window_size, window_size, window_size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class SwinBlock(nn.Module):
    """Shifted windows with a relative position bias table."""

    def __init__(self, dim=16, num_heads=2, window_size=4, shift_size=2, resolution=8):
        super().__init__()
        self.dim, self.num_heads, self.window_size, self.shift_size = dim, num_heads, window_size, shift_size
        self.scale = (dim // num_heads) ** -0.5
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window_size - 1) ** 2, num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        coords = torch.stack(torch.meshgrid([torch.arange(window_size)] * 2, indexing="ij"))
        coords_flatten = torch.flatten(coords, 1)
        relative_coords = coords_flatten[:, :, None] - coords_flatten[:, None, :]
        relative_coords = relative_coords.permute(1, 2, 0).contiguous()
        relative_coords += window_size - 1
        relative_coords[:, :, 0] *= 2 * window_size - 1
        self.register_buffer("relative_position_index", relative_coords.sum(-1))
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        img_mask = torch.zeros((1, resolution, resolution, 1))
        slices = (slice(0, -window_size), slice(-window_size, -shift_size), slice(-shift_size, None))
        cnt = 0
        for h in slices:
            for w in slices:
                img_mask[:, h, w, :] = cnt
                cnt += 1
        mask_windows = window_partition(img_mask, window_size).view(-1, window_size * window_size)
        attn_mask = mask_windows.unsqueeze(1) - mask_windows.unsqueeze(2)
        attn_mask = attn_mask.masked_fill(attn_mask != 0, -100.0).masked_fill(attn_mask == 0, 0.0)
        self.register_buffer("attn_mask", attn_mask)

    def attention(self, x, mask=None):
        B_, N, C = x.shape
        qkv = self.qkv(x).reshape(B_, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        attn = attn + bias.view(N, N, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        if mask is not None:
            nW = mask.shape[0]
            attn = attn.view(B_ // nW, nW, self.num_heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.num_heads, N, N)
        return self.proj((attn.softmax(-1) @ v).transpose(1, 2).reshape(B_, N, C))

    def forward(self, x):
        B, L, C = x.shape
        H = W = int(L**0.5)
        assert L == H * W, "input feature has wrong size"
        shortcut = x
        x = self.norm(x).view(B, H, W, C)
        shifted_x = torch.roll(x, (-self.shift_size, -self.shift_size), (1, 2)) if self.shift_size > 0 else x
        x_windows = window_partition(shifted_x, self.window_size).view(-1, self.window_size**2, C)
        attn_windows = self.attention(x_windows, mask=self.attn_mask if self.shift_size > 0 else None)
        shifted_x = window_reverse(
            attn_windows.view(-1, self.window_size, self.window_size, C), self.window_size, H, W
        )
        if self.shift_size > 0:
            x = torch.roll(shifted_x, shifts=(self.shift_size, self.shift_size), dims=(1, 2))
        else:
            x = shifted_x
        return shortcut + x.view(B, H * W, C)


class RepVGG(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.rbr_identity = nn.BatchNorm2d(num_features=c)
        self.rbr_dense = self.conv_bn(c, 3, 1)
        self.rbr_1x1 = self.conv_bn(c, 1, 0)
        self.nonlinearity = nn.ReLU()

    @staticmethod
    def conv_bn(c, k, p):
        result = nn.Sequential()
        result.add_module("conv", nn.Conv2d(c, c, kernel_size=k, padding=p, bias=False))
        result.add_module("bn", nn.BatchNorm2d(num_features=c))
        return result

    def forward(self, inputs):
        if hasattr(self, "rbr_reparam"):
            return self.nonlinearity(self.rbr_reparam(inputs))
        id_out = 0 if self.rbr_identity is None else self.rbr_identity(inputs)
        return self.nonlinearity(self.rbr_dense(inputs) + self.rbr_1x1(inputs) + id_out)


def img(b=2, c=3, s=16):
    return torch.randn(b, c, s, s)


CASES = [
    of("unet", lambda: UNet(3, 2), lambda: img(s=20)),
    of("unet_bilinear", lambda: UNet(3, 2, bilinear=True), lambda: img(s=18)),
    of("unet_checkpointed", checkpointed_unet, img),
    of("resnet_small", lambda: ResNet(BasicBlock, [1, 2]), img),
    of("se_resnet", lambda: ResNet(BasicBlock, [1, 1], se=True), img),
    of("preact_bottleneck", lambda: PreActBottleneck(8, 4, 2), lambda: img(c=8)),
    of("preact_bottleneck_same", lambda: PreActBottleneck(16, 4), lambda: img(c=16)),
    of("densenet", DenseNet, img),
    of("cbam", lambda: CBAM(8), lambda: img(c=8)),
    of("cbam_lse", lambda: CBAM(8, ("avg", "max", "lse")), lambda: img(c=8)),
    of("inception_block", lambda: Inception(8, 4, 4, 6, 2), lambda: img(c=8)),
    of("eca", lambda: ECALayer(16), lambda: img(c=16)),
    of("shuffle_unit", lambda: ShuffleUnit(8), lambda: img(c=8)),
    of("mbconv", lambda: MBConv(8, 8), lambda: img(c=8)),
    of("convnext_block", lambda: ConvNeXtBlock(8), lambda: img(c=8)),
    of("vit", ViT, img),
    of("swin_block", SwinBlock, lambda: torch.randn(2, 64, 16)),
    of("repvgg", lambda: RepVGG(8), lambda: img(c=8)),
]
