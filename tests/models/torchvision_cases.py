"""Each family of torchvision, at small sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import vision_operators  # noqa: F401  (before torchvision)
from .case import Case

import torchvision.models as models  # noqa: E402  isort: skip

CLASSIFIERS = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "regnet_x_400mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "wide_resnet50_2",
    "shufflenet_v2_x0_5",
    "squeezenet1_0",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11",
    "vgg11_bn",
    "vit_b_32",
]
SEGMENTERS = [
    "deeplabv3_resnet50",
    "deeplabv3_mobilenet_v3_large",
    "fcn_resnet50",
    "lraspp_mobilenet_v3_large",
]
CLIPS = ["r3d_18", "mc3_18", "r2plus1d_18", "s3d", "mvit_v2_s", "swin3d_t"]
SIZES = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 64, "mvit_v2_s": 224, "alexnet": 96}


def classifier(name: str, size: int) -> Callable[[], tuple[Any, ...]]:
    def build() -> tuple[Any, ...]:
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        if name in ("maxvit_t", "vit_b_32"):
            options = {"input_size": (size, size)} if name == "maxvit_t" else {"image_size": size}
        model = models.get_model(name, weights=None, num_classes=10, **options)
        return model, (torch.randn(2, 3, size, size),), {}

    return build


def segmenter(name: str) -> Callable[[], tuple[Any, ...]]:
    def build() -> tuple[Any, ...]:
        made = getattr(models.segmentation, name)
        return made(weights=None, weights_backbone=None, num_classes=4), (torch.randn(2, 3, 64, 64),), {}

    return build


def clip(name: str) -> Callable[[], tuple[Any, ...]]:
    def build() -> tuple[Any, ...]:
        shape = (1, 3, 16, 224, 224) if name == "mvit_v2_s" else (2, 3, 16, 64, 64)
        return getattr(models.video, name)(weights=None, num_classes=5), (torch.randn(shape),), {}

    return build


def flow() -> tuple[Any, ...]:
    images = torch.rand(2, 1, 3, 128, 128)
    return models.optical_flow.raft_small(weights=None), (images[0], images[1]), {"num_flow_updates": 2}


def cases() -> list[Case]:
    found = [Case(name, classifier(name, SIZES.get(name, 64))) for name in CLASSIFIERS]
    found += [Case(name, segmenter(name)) for name in SEGMENTERS]
    found += [Case(name, clip(name)) for name in CLIPS]
    return [*found, Case("raft_small", flow)]
