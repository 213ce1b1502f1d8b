"""Configurations of transformers made small by rules over their attributes: widths are all divided by one
number, so that what must fit together still does; depths, vocabularies, images and windows become a few."""

from __future__ import annotations

import re
from typing import Any

import transformers

VOCABULARY = 128
WIDTHS = (
    r"hidden|dim|channel|width|d_model|d_inner|embd|embed|ffn|ff\b|d_kv|d_ff|inner|intermediate|rank|units|"
)
WIDTHS += r"filters|proj|value_size|query_size|key_size|mlp|head_size|state_size|^scale$|pos_feats|scalar|"
WIDTHS += r"feature_size|d_state|out_size|mrope_section|upsample_groups"
NOT_WIDTHS = (
    r"token|vocab|position|kernel|num_c|num_h|n_head|layers|act$|activ|ratio|stride|factor|rate|group_size|"
)
NOT_WIDTHS += (
    r"multipl|theta|temperature|image_size|patch|codebook_size|frequency_embedding|expand|eps|scale_emb"
)
DEPTHS = r"^(num_)?(hidden_|encoder_|decoder_|text_|vision_|audio_|block_|transformer_|num_|n_|[a-z]+_)?"
DEPTHS += r"(hidden_layers|layers?|depth|n_layer|num_blocks)$"
NOT_DEPTHS = r"feature|kv_shared|mtp|nextn|dense|no_rope|conv_|feat_|adapter|norm|fpn|layer$(?<!n_layer)"
INDICES = r"ind(ic|ex)es$|blocks?_ind|_idx$|out_indices|global_attention_blocks|select_layer"
CAPS = {
    r"sliding_window$|attention_chunk_size|local_attention|_window_size$|sliding_window_size": 4,
    r"chunk_size$|attention_window$": 4,
    r"max_source_positions": 16,
    r"^(max|n|num)_(2d_)?(position|ctx|positions|position_embeddings)|context_length": 512,
    r"(num|n)_(local_|routed_)?experts$|moe_num_experts": 8,
    r"experts_per_tok|top_?k_experts|moe_top_?k|^moe_k$": 2,
    r"^(n_group|topk_group|n_expert_groups?)$|topk_groups": 1,
    r"num_queries|num_query_tokens|num_proposals|two_stage_num|index_topk|resampler_n_latents": 8,
    r"num_negatives|train_num_points|num_denoising": 4,
    r"num_frames|num_image_tokens": 4,
    r"codebook_size|num_embeddings|codevectors": 64,
    r"q?kv?_?max_len|max_seq_len|max_pos_emb|pos_emb_(height|width)|max_grid": 64,
}


# what a rule cannot know
GIVEN: dict[str, dict[str, Any]] = {
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "reformer": {"is_decoder": True, "axial_pos_shape": [4, 16], "axial_pos_embds_dim": [4, 12]},
    "xmod": {"default_language": "en_XX"},
    "wav2vec2-bert": {"vocab_size": 32},
    "wav2vec2-conformer": {"vocab_size": 32},
    "esm": {"vocab_size": 33, "mask_token_id": 32, "pad_token_id": 1},
    "deepseek_v2": {"num_experts_per_tok": 2, "topk_group": 1, "n_group": 1},
    "timm_backbone": {"backbone": "resnet18"},
}


class Small:
    """The dict of a configuration with all sizes divided by ``factor``."""

    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.tokens: dict[int, int] = {}

    def dict(self, old: dict[str, Any]) -> dict[str, Any]:
        """Of an outer or an inner configuration."""
        layers = Layers(old)
        new = {k: self.value(k, v, layers, _grid(old)) for k, v in old.items()}
        stages = new.pop("stage_names", None)
        if stages is not None:  # derived from one another
            new.pop("out_features", None)
            if len(stages) - 1 == layers.old and new.get("out_indices"):
                wanted = len(new["out_indices"])
                new["out_indices"] = list(range(layers.new - wanted + 1, layers.new + 1))
        heads = new.get("num_attention_heads")
        if new.get("head_dim", 0) is None and new.get("hidden_size") and heads:
            new["head_dim"] = new["hidden_size"] // heads
        if new.get("num_key_value_heads", 0) is None and heads:
            new["num_key_value_heads"] = heads
        return new | GIVEN.get(str(old.get("model_type")), {})

    def value(self, key: str, value: Any, layers: Layers, grid: tuple[int, int] | None) -> Any:
        if isinstance(value, dict):
            if key == "per_layer_config":
                kept = layers.kept
                return {kept.index(int(k)): self.dict(v) for k, v in value.items() if int(k) in kept}
            return value if key in ("id2label", "label2id") else self.dict(value)
        if isinstance(value, (list, tuple)):
            return self._list(key, list(value), layers, grid)
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        if "token" in key and re.search(r"id$|index$|ids$", key):
            return self.token(value)
        if "vocab_size" in key or key in ("codebook_vocab", "vocab_offset"):
            return min(value, VOCABULARY)
        if re.search(r"image_size|img_size|resolution$", key) and value >= 32 and grid:
            return 4 * grid[1] if grid[1] >= 8 else 64
        if grid and value in (grid[0], grid[0] ** 2) and value > 4 and "dim" not in key:
            side = 4 if grid[1] >= 8 else 64 // grid[1]
            return side if value == grid[0] else side * side
        for names, most in CAPS.items():
            if re.search(names, key):
                return min(value, most)
        if re.search(DEPTHS, key) and not re.search(NOT_DEPTHS, key):
            return layers.new if value == layers.old else min(value, 2)
        return self.width(key, value)

    def width(self, key: str, value: Any) -> Any:
        wide = re.search(WIDTHS, key) and not re.search(NOT_WIDTHS, key)
        if wide and isinstance(value, int) and value % self.factor == 0 and value >= 16:
            return value // self.factor
        return value

    def token(self, value: Any) -> Any:
        """Equal ids stay equal."""
        if value < VOCABULARY:
            return value
        return self.tokens.setdefault(value, VOCABULARY - 1 - len(self.tokens))

    def _list(self, key: str, value: list[Any], layers: Layers, grid: tuple[int, int] | None) -> Any:
        if len(value) == layers.old and (len(value) > 8 or "layer" in key) and "index" not in key:
            value = [value[k] for k in layers.kept]
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in value):
            return [self.dict(v) if isinstance(v, dict) else v for v in value]
        if re.search(INDICES, key) and value and max(value) >= layers.new and max(value) > len(value):
            return list(range(layers.new))[-len(value) :]
        if key in ("depths", "layer_depths", "num_block_repeats"):
            return [min(v, 2) for v in value]
        if key.endswith("mrope_section"):
            return [max(1, v // self.factor) for v in value]
        if key in ("moe_layers", "mlp_only_layers"):
            return [v for v in value if v < layers.new]
        if re.search(r"image_size|img_size", key):
            return [self.value(key, v, layers, grid) for v in value]
        return [self.token(v) if "token" in key else self.width(key, v) for v in value]


class Layers:
    """Which layers are kept: two, or as many as there are kinds, or as results are taken from."""

    def __init__(self, config: dict[str, Any]) -> None:
        depths = [config.get(k) for k in ("num_hidden_layers", "num_layers", "n_layer", "depth", "layers")]
        self.old = next((d for d in depths if isinstance(d, int)), 0)
        kinds: dict[str, int] = {}
        places = 2
        for key, value in config.items():
            if not isinstance(value, list):
                continue
            if len(value) == self.old and re.search(r"types$|layers_block_type", key):
                for place, kind in enumerate(value):
                    kinds.setdefault(f"{key} {kind}", place)
            elif re.search(INDICES, key) and value and max(value) > len(value):
                places = max(places, len(value))
        for place in config.get("per_layer_config") or ():
            kinds.setdefault("per layer", int(place))
        kept = set(kinds.values())
        for place in range(self.old):
            if len(kept) < min(places, self.old):
                kept.add(place)
        self.kept = sorted(kept) or [0, 1]
        self.new = len(self.kept)


def _grid(old: dict[str, Any]) -> tuple[int, int] | None:
    """Patches along a side, and a patch's pixels."""
    image, patch = (old.get(k) for k in ("image_size", "patch_size"))
    image = image[0] if isinstance(image, list) else image
    patch = patch[0] if isinstance(patch, list) else patch
    if isinstance(image, dict):
        image = image.get("height")
    if not isinstance(image, int):
        return None
    patch = patch if isinstance(patch, int) and patch else 16
    return image // patch, patch


def configuration(kind: str, factor: int) -> transformers.PreTrainedConfig:
    """The small configuration of an architecture by its ``model_type``."""
    config = transformers.AutoConfig.for_model(kind)
    small = Small(factor).dict(config.to_dict())
    for key in ("transformers_version", "architectures", "_name_or_path", "model_type", "dtype"):
        small.pop(key, None)
    made = type(config)(**small)
    for each in (made, made.get_text_config()):
        if getattr(each, "pad_token_id", None) is None:
            each.pad_token_id = 0
    return made
