"""Small models of diffusers' architectures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import vision_operators  # noqa: F401  (before diffusers imports torchvision)
from .case import Case

import diffusers  # noqa: E402  isort: skip

Build = Callable[[], tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]]
BLOCKS = {"block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1}


def image(channels: int = 4, size: int = 16) -> torch.Tensor:
    return torch.randn(2, channels, size, size)


def of(name: str, config: dict[str, Any], inputs: Callable[[], tuple[Any, ...]], **kwargs: Any) -> Case:
    def build() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
        given = {k: v() if callable(v) else v for k, v in kwargs.items()}
        return getattr(diffusers, name.partition("/")[0])(**config), inputs(), {"return_dict": False, **given}

    return Case(name, build)


def text(d: int = 16, n: int = 5) -> torch.Tensor:
    return torch.randn(2, n, d)


TIMES = torch.tensor([3, 7])
DOWN2, UP2 = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
CROSS = {
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "cross_attention_dim": 16,
    "attention_head_dim": 4,
    "sample_size": 16,
}
TRANSFORMER = {
    "num_attention_heads": 2,
    "attention_head_dim": 8,
    "in_channels": 4,
    "num_layers": 2,
    "sample_size": 8,
    "patch_size": 2,
    "norm_num_groups": 4,
}


VIDEO = {
    "block_out_channels": (8, 16),
    "norm_num_groups": 4,
    "layers_per_block": 1,
    "cross_attention_dim": 16,
    "sample_size": 8,
}


def frames() -> tuple[torch.Tensor, ...]:
    return torch.randn(1, 4, 3, 8, 8), torch.tensor([3]), torch.randn(1, 5, 16)


def cases() -> list[Case]:
    vae = {
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
        "latent_channels": 4,
        **BLOCKS,
    }
    unet2d = {
        "sample_size": 16,
        "in_channels": 3,
        "out_channels": 3,
        "down_block_types": DOWN2,
        "up_block_types": UP2,
    }
    return [
        of("UNet2DModel", {**unet2d, **BLOCKS, "attention_head_dim": 4}, lambda: (image(3), TIMES)),
        of("UNet2DConditionModel", {**CROSS, **BLOCKS}, lambda: (image(), TIMES, text())),
        of(
            "UNet2DConditionModel/resnet_time_scale_shift",
            {**CROSS, **BLOCKS, "resnet_time_scale_shift": "scale_shift", "use_linear_projection": True},
            lambda: (image(), 3, text()),
        ),
        of("AutoencoderKL", vae, lambda: (image(3),)),
        of(
            "AutoencoderTiny",
            {
                "encoder_block_out_channels": (8, 8),
                "decoder_block_out_channels": (8, 8),
                "num_encoder_blocks": (1, 1),
                "num_decoder_blocks": (1, 1),
            },
            lambda: (image(3),),
        ),
        of("VQModel", {**vae, "num_vq_embeddings": 12, "vq_embed_dim": 4}, lambda: (image(3),)),
        of(
            "AsymmetricAutoencoderKL",
            {
                "down_block_types": ("DownEncoderBlock2D",),
                "down_block_out_channels": (8,),
                "up_block_types": ("UpDecoderBlock2D",),
                "up_block_out_channels": (8,),
                "norm_num_groups": 4,
            },
            lambda: (image(3),),
        ),
        of(
            "ControlNetModel",
            {**CROSS, **BLOCKS, "conditioning_embedding_out_channels": (4, 8)} | {"up_block_types": None},
            lambda: (image(), TIMES, text(), torch.randn(2, 3, 32, 32)),
        ),
        of(
            "DiTTransformer2DModel",
            {**TRANSFORMER, "num_embeds_ada_norm": 10, "norm_type": "ada_norm_zero", "out_channels": 4},
            lambda: (image(size=8), TIMES, torch.tensor([0, 1])),
        ),
        of(
            "PixArtTransformer2DModel",
            {
                **TRANSFORMER,
                "cross_attention_dim": 16,
                "caption_channels": 12,
                "out_channels": 4,
                "use_additional_conditions": False,
            },
            lambda: (image(size=8), text(12), TIMES),
        ),
        of(
            "SD3Transformer2DModel",
            {
                "sample_size": 8,
                "patch_size": 2,
                "in_channels": 4,
                "num_layers": 2,
                "attention_head_dim": 8,
                "num_attention_heads": 2,
                "joint_attention_dim": 16,
                "caption_projection_dim": 16,
                "pooled_projection_dim": 12,
                "out_channels": 4,
                "pos_embed_max_size": 8,
            },
            lambda: (image(size=8), text(), torch.randn(2, 12), TIMES),
        ),
        of(
            "FluxTransformer2DModel",
            {
                "patch_size": 1,
                "in_channels": 4,
                "num_layers": 1,
                "num_single_layers": 1,
                "attention_head_dim": 16,
                "num_attention_heads": 2,
                "joint_attention_dim": 16,
                "pooled_projection_dim": 12,
                "axes_dims_rope": (4, 4, 8),
            },
            lambda: (
                torch.randn(2, 9, 4),
                text(),
                torch.randn(2, 12),
                torch.rand(2),
                torch.zeros(9, 3),
                torch.zeros(5, 3),
            ),
        ),
        of(
            "AuraFlowTransformer2DModel",
            {
                "sample_size": 8,
                "patch_size": 2,
                "in_channels": 4,
                "num_mmdit_layers": 1,
                "num_single_dit_layers": 1,
                "attention_head_dim": 8,
                "num_attention_heads": 2,
                "joint_attention_dim": 16,
                "caption_projection_dim": 16,
                "out_channels": 4,
                "pos_embed_max_size": 64,
            },
            lambda: (image(size=8), text(), TIMES.float()),
        ),
        of(
            "PriorTransformer",
            {
                "num_attention_heads": 2,
                "attention_head_dim": 8,
                "num_layers": 2,
                "embedding_dim": 12,
                "num_embeddings": 5,
                "additional_embeddings": 4,
            },
            lambda: (torch.randn(2, 12), TIMES, torch.randn(2, 12), text(12)),
        ),
        of(
            "UNet1DModel",
            {
                "sample_size": 32,
                "block_out_channels": (8, 8, 16),
                "in_channels": 2,
                "out_channels": 2,
                "extra_in_channels": 16,
            },
            lambda: (torch.randn(2, 2, 32), TIMES),
        ),
        of(
            "UNetMotionModel",
            VIDEO
            | {
                "down_block_types": ("DownBlockMotion", "CrossAttnDownBlockMotion"),
                "up_block_types": ("CrossAttnUpBlockMotion", "UpBlockMotion"),
                "num_attention_heads": 2,
                "motion_num_attention_heads": 2,
            },
            frames,
        ),
        of(
            "UNet3DConditionModel",
            VIDEO
            | {
                "down_block_types": ("DownBlock3D", "CrossAttnDownBlock3D"),
                "up_block_types": ("CrossAttnUpBlock3D", "UpBlock3D"),
                "attention_head_dim": 4,
            },
            frames,
        ),
    ]
