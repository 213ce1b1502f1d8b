"""Architectures of transformers (where that is installed), as its documentation calls them: attention masks,
labels, gradients. Each is one graph, and answers as eager."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import dyncomp  # noqa: E402

SIZES = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 32, "max_position_embeddings": 32}
SEQ2SEQ = {"vocab_size": 60, "d_model": 16, "decoder_start_token_id": 0}
SEQ2SEQ |= {f"{p}_layers": 2 for p in ("encoder", "decoder")}
SEQ2SEQ |= {f"{p}_attention_heads": 2 for p in ("encoder", "decoder")}
SEQ2SEQ |= {f"{p}_ffn_dim": 32 for p in ("encoder", "decoder")}
GPT2 = {"vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
T5 = {"vocab_size": 60, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
VISION = {k: v for k, v in SIZES.items() if "vocab" not in k and "position" not in k}
VISION |= {"image_size": 16, "patch_size": 4}


def tokens(length: int = 7) -> torch.Tensor:
    return torch.randint(3, 60, (2, length))


def text() -> dict[str, torch.Tensor]:
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[0, :2] = 0
    return {"input_ids": tokens(), "attention_mask": mask, "labels": tokens()}


def pairs() -> dict[str, torch.Tensor]:
    return {**text(), "labels": tokens(5)}


def pictures() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([0, 1])}


MODELS = {
    "BertForMaskedLM": ("BertConfig", SIZES, text),
    "GPT2LMHeadModel": ("GPT2Config", GPT2 | {"bos_token_id": 1, "eos_token_id": 2}, text),
    "LlamaForCausalLM": ("LlamaConfig", SIZES | {"num_key_value_heads": 1}, text),
    "MistralForCausalLM": ("MistralConfig", SIZES | {"num_key_value_heads": 1, "sliding_window": 4}, text),
    "T5ForConditionalGeneration": ("T5Config", T5 | {"decoder_start_token_id": 0}, pairs),
    "BartForConditionalGeneration": ("BartConfig", SEQ2SEQ | {"max_position_embeddings": 32}, pairs),
    "PegasusForConditionalGeneration": ("PegasusConfig", SEQ2SEQ, pairs),
    "ViTForImageClassification": (
        "ViTConfig",
        VISION | {"problem_type": "single_label_classification"},
        pictures,
    ),
}


def tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    return [t for v in value for t in tensors(v)] if isinstance(value, (tuple, list)) else []


@pytest.mark.parametrize("name", MODELS)
def test_one_graph(name):
    config, sizes, inputs = MODELS[name]
    dyncomp.reset()
    torch.manual_seed(0)
    reference = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
    given = inputs()
    with torch.no_grad():  # what is said once is said now
        reference(**given)
    model = dyncomp.compile(copy.deepcopy(reference), fullgraph=True)
    with torch.no_grad():
        found, expected = model(**given), reference(**given)
    assert type(found) is type(expected) and list(found) == list(expected)
    for a, b in zip(tensors(found), tensors(expected), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    for _ in range(2):
        for each in (model, reference):
            each.zero_grad()
            each(**given).loss.backward()
    for (key, a), b in zip(model.named_parameters(), reference.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None), key
        if b.grad is not None:
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-5, msg=key)
    assert dyncomp.stats()["graphs"] == 2 and dyncomp.stats()["fallbacks"] == 0
    dyncomp.reset()
