"""Models of transformers (small configurations, some of real sizes), timm and torchvision, random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Made = tuple[Any, tuple[Any, ...], dict[str, Any]]

_SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 200,
}
_HALVES = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "vocab_size": 200,
}
_PICTURE = {k: v for k, v in _SMALL.items() if k != "vocab_size"} | {"image_size": 32, "patch_size": 8}
_GROUPED = {**_SMALL, "num_key_value_heads": 2}
_T5 = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 200}
_WHISPER = {"max_source_positions": 50, "num_mel_bins": 16, "pad_token_id": 0}
_STARTS = {"decoder_start_token_id": 1, "bos_token_id": 1, "eos_token_id": 2}

# name -> class, its configuration's class and arguments, names of what the forward pass takes
TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...]]] = {
    "bert": ("BertModel", "BertConfig", _SMALL, ("input_ids",)),
    "roberta": ("RobertaModel", "RobertaConfig", _SMALL, ("input_ids",)),
    "albert": ("AlbertModel", "AlbertConfig", {"embedding_size": 32, **_SMALL}, ("input_ids",)),
    "electra": ("ElectraModel", "ElectraConfig", {"embedding_size": 32, **_SMALL}, ("input_ids",)),
    "deberta": ("DebertaV2Model", "DebertaV2Config", _SMALL, ("input_ids",)),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 200},
        ("input_ids",),
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _SMALL, ("input_ids",)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _SMALL, ("input_ids",)),
    "mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED, ("input_ids",)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED, ("input_ids",)),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_GROUPED, "num_local_experts": 4}, ("input_ids",)),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {**_T5, "decoder_start_token_id": 0},
        ("input_ids", "decoder_input_ids"),
    ),
    "bart": ("BartModel", "BartConfig", _HALVES, ("input_ids",)),
    "whisper": (
        "WhisperModel",
        "WhisperConfig",
        {**_HALVES, **_WHISPER, **_STARTS},
        ("input_features", "decoder_input_ids"),
    ),
    "vit": ("ViTModel", "ViTConfig", _PICTURE, ("pixel_values",)),
    "clip": ("CLIPVisionModel", "CLIPVisionConfig", _PICTURE, ("pixel_values",)),
}
_LLAMA = {
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1376,
    "vocab_size": 8000,
}
# real sizes: name -> class, its configuration's class and arguments, shape of the tokens
REAL: dict[str, tuple[str, str, dict[str, Any], tuple[int, int]]] = {
    "bert-base 1x128": ("BertModel", "BertConfig", {}, (1, 128)),
    "bert-base 8x128": ("BertModel", "BertConfig", {}, (8, 128)),
    "gpt2-small 1x128": ("GPT2LMHeadModel", "GPT2Config", {}, (1, 128)),
    "llama 8x512 1x128": ("LlamaForCausalLM", "LlamaConfig", _LLAMA, (1, 128)),
}
TIMM = (
    "resnet18",
    "mobilenetv3_small_100",
    "efficientnet_b0",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "mixer_s32_224",
    "densenet121",
)
TORCHVISION = ("resnet18", "squeezenet1_0", "vgg11", "googlenet")


def _inputs(names: tuple[str, ...]) -> dict[str, Any]:
    import torch

    made = {
        "input_ids": lambda: torch.randint(5, 190, (2, 10)),
        "decoder_input_ids": lambda: torch.randint(5, 190, (2, 10)),
        "pixel_values": lambda: torch.randn(2, 3, 32, 32),
        "input_features": lambda: torch.randn(2, 16, 100),
    }
    return {name: made[name]() for name in names}


def _of_transformers(name: str) -> Made:
    import transformers

    transformers.logging.set_verbosity_error()
    model, config, arguments, names = TRANSFORMERS[name]
    made = getattr(transformers, model)(getattr(transformers, config)(**arguments))
    return made, (), _inputs(names)


def _of_real_size(name: str) -> Made:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model, config, arguments, shape = REAL[name]
    made = getattr(transformers, model)(getattr(transformers, config)(**arguments))
    return made, (), {"input_ids": torch.randint(5, 8000, shape)}


def _of_timm(name: str) -> Made:
    import timm
    import torch

    model = timm.create_model(name, pretrained=False)
    size = model.default_cfg["input_size"][-1]
    return model, (torch.randn(1, 3, size, size),), {}


def _of_torchvision(name: str) -> Made:
    import torch
    import torchvision

    return getattr(torchvision.models, name)(weights=None), (torch.randn(1, 3, 224, 224),), {}


def cases() -> dict[str, Callable[[], Made]]:
    """What makes each model and the arguments of its forward pass, by name."""
    families = (
        ("", TRANSFORMERS, _of_transformers),
        ("", REAL, _of_real_size),
        ("timm:", TIMM, _of_timm),
        ("tv:", TORCHVISION, _of_torchvision),
    )
    return {
        f"{prefix}{name}": lambda n=name, make=make: make(n)
        for prefix, names, make in families
        for name in names
    }
