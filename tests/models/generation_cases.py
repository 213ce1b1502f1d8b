"""``generate`` of transformers: greedy, by random numbers and by beams, for architectures of many kinds."""

from __future__ import annotations

from typing import Any

import torch

from .case import Case
from .transformers_cases import Built, architectures, first_that_fits, model_of, text_of

NAMES = """
    LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM GemmaForCausalLM Gemma2ForCausalLM
    Gemma3ForCausalLM GPT2LMHeadModel GPTNeoXForCausalLM GPTJForCausalLM OPTForCausalLM BloomForCausalLM
    FalconForCausalLM PhiForCausalLM Phi3ForCausalLM StableLmForCausalLM CohereForCausalLM OlmoForCausalLM
    MixtralForCausalLM Qwen3MoeForCausalLM MambaForCausalLM Mamba2ForCausalLM BartForConditionalGeneration
    T5ForConditionalGeneration MarianMTModel PegasusForConditionalGeneration MBartForConditionalGeneration"""
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 20, "temperature": 0.8},
    "beams": {"num_beams": 3, "do_sample": False},
}


def built(name: str, kind: str, way: dict[str, Any]) -> Built:
    def make(factor: int) -> Built:
        model = model_of(name, kind, factor)
        given = {**text_of(model.config), "max_new_tokens": 6, "min_new_tokens": 6, **way}
        with torch.no_grad():
            model.generate(**given)
        return model, (), given

    return first_that_fits(make)


def cases() -> list[Case]:
    kinds = architectures()
    return [
        Case(f"{name}, {how}", lambda n=name, w=way: built(n, kinds[n], w), method="generate", trains=False)
        for name in NAMES.split()
        if name in kinds
        for how, way in WAYS.items()
    ]
