"""The architectures of transformers with random weights, as small as rules make them, called as users do:
padded text, labels, images, sound; causal ones a second time after a cached beginning."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import vision_operators  # noqa: F401  (before transformers imports torchvision)
from .case import Case
from .tiny_configs import configuration

import transformers  # noqa: E402  isort: skip
from transformers.models.auto import configuration_auto, modeling_auto  # noqa: E402  isort: skip

TASKS = """
    CAUSAL_LM SEQ_TO_SEQ_CAUSAL_LM MASKED_LM IMAGE_TEXT_TO_TEXT SPEECH_SEQ_2_SEQ CTC IMAGE_CLASSIFICATION
    OBJECT_DETECTION UNIVERSAL_SEGMENTATION SEMANTIC_SEGMENTATION DEPTH_ESTIMATION VIDEO_CLASSIFICATION
    AUDIO_CLASSIFICATION"""
FACTORS = (16, 8, 4, 32, 1)
LARGE = 60_000_000  # parameters of a model that is no longer small
BATCH, LENGTH = 2, 8
Arguments = dict[str, Any]
Built = tuple[torch.nn.Module, tuple[Any, ...], Arguments]

transformers.logging.set_verbosity_error()


def architectures() -> dict[str, str]:
    """Classes with their ``model_type``: that of the first task that the type has; the plain model where no
    other class of its module has a task."""
    found: dict[str, str] = {}
    for task in TASKS.split():
        for kind, name in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES").items():
            if kind not in found.values():
                found.setdefault(name if isinstance(name, str) else name[0], kind)
    modules = {configuration_auto.model_type_to_module_name(kind) for kind in found.values()}
    for kind, name in modeling_auto.MODEL_MAPPING_NAMES.items():
        if configuration_auto.model_type_to_module_name(kind) not in modules:
            found.setdefault(name if isinstance(name, str) else name[0], kind)
    return found


def model_of(name: str, kind: str, factor: int) -> torch.nn.Module:
    config, architecture = configuration(kind, factor), getattr(transformers, name)
    if not isinstance(config, architecture.config_class):
        config = config.get_text_config(decoder=True)
    with torch.device("meta"):
        size = sum(p.numel() for p in architecture(config).parameters())
    if size > LARGE:
        raise ValueError(f"{size} parameters")
    model = architecture(config).eval()
    if getattr(config, "default_language", None):
        model.set_default_language(config.default_language)
    return model


def first_that_fits(make: Callable[[int], Built]) -> Built:
    """Of the factors that widths are divided by."""
    said: Exception | None = None
    for factor in FACTORS:
        try:
            return make(factor)
        except Exception as failure:  # noqa: BLE001  (widths that do not fit are told in many ways)
            said = said or failure
    raise said or ValueError


def setting(config: Any, *names: str, default: Any = None) -> Any:
    """An attribute of a configuration or one inside."""
    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    for inner in vars(config).values():
        if isinstance(inner, transformers.PreTrainedConfig):
            value = setting(inner, *names)
            if value is not None:
                return value
    return default


def text_of(config: Any, length: int = LENGTH) -> Arguments:
    vocabulary = min(setting(config.get_text_config(), "vocab_size", default=60), 90)
    mask = torch.ones(BATCH, length, dtype=torch.long)
    mask[0, :2] = 0
    return {"input_ids": torch.randint(3, vocabulary, (BATCH, length)), "attention_mask": mask}


def side_of(config: Any) -> tuple[int, int]:
    size = setting(config, "image_size", "img_size", default=64)
    size = size.get("height", 64) if isinstance(size, dict) else size
    return tuple(size) if isinstance(size, (list, tuple)) else (size, size)


def pictures_of(config: Any, names: set[str]) -> Arguments:
    channels = setting(config, "num_channels", "in_channels", default=3)
    channels = channels if channels in (1, 3) else 3
    if "image_grid_thw" in names or "image_grid_hws" in names:
        vision = getattr(config, "vision_config", config)
        patch = setting(vision, "patch_size", default=14)
        times = setting(vision, "temporal_patch_size", default=1)
        grid = torch.tensor([[1, 4, 4]] * BATCH)
        return {"pixel_values": torch.randn(BATCH * 16, channels * times * patch**2), "image_grid_thw": grid}
    return {"pixel_values": torch.randn(BATCH, channels, *side_of(config))}


def sound_of(config: Any, names: set[str]) -> Arguments:
    given: Arguments = {}
    bins = setting(config, "num_mel_bins", "input_feat_per_channel", "feature_size", "input_size", default=80)
    if "input_features" in names:
        frames = 2 * setting(config, "max_source_positions", default=16)
        wide = setting(config, "max_source_positions") and not setting(config, "conv_kernel_sizes")
        shape = (bins, frames) if wide else (64, bins)
        given["input_features"] = torch.randn(BATCH, *shape)
    if "input_values" in names:
        strides = setting(config, "max_length") if setting(config, "frequency_stride") else None
        shape = (strides, bins) if strides else (1600,)
        given["input_values"] = torch.randn(BATCH, *shape)
    return given


def labels_of(name: str, config: Any, given: Arguments) -> Arguments:
    if re.search(r"ForCTC", name):
        return {"labels": torch.randint(1, 20, (BATCH, 3))}
    if re.search(r"Classification", name):
        return {"labels": torch.tensor([0, 1])}
    if config.is_encoder_decoder:
        return {"labels": torch.randint(3, 60, (BATCH, 5))}
    if re.search(r"SemanticSegmentation", name):
        return {"labels": torch.randint(0, 2, (BATCH, *given["pixel_values"].shape[-2:]))}
    if "input_ids" in given:
        return {"labels": given["input_ids"].clone()}
    return {}


def attempts(name: str, model: Any) -> Iterator[Arguments]:
    """Arguments that the model may take, those that ask most of it first."""
    config, names = model.config, set(inspect.signature(model.forward).parameters)
    text = text_of(config) if "input_ids" in names else {}
    if "bbox" in names:
        text["bbox"] = torch.randint(0, 50, (BATCH, LENGTH, 4)).sort(-1).values
    seen = pictures_of(config, names) if "pixel_values" in names else {}
    heard = sound_of(config, names)
    video = seen and seen["pixel_values"].ndim == 4 and seen["pixel_values"][:, None].repeat(1, 4, 1, 1, 1)
    turned = {k: v.transpose(1, 2) if v.ndim == 3 else v[:, None] for k, v in heard.items()}
    for extra in ({**text, **seen, **heard}, {**text, **heard}, heard, turned, seen, text):
        wanted = {k: v for k, v in extra.items() if k in names}
        if not wanted:
            continue
        said = labels_of(name, config, wanted) if "labels" in names else {}
        for given in ({**wanted, **said}, wanted):
            yield given
            if "decoder_input_ids" in names:
                yield {**given, "decoder_input_ids": torch.randint(3, 60, (BATCH, 5))}
            if video is not False and "pixel_values" in given and given["pixel_values"].ndim == 4:
                yield {**given, "pixel_values": video}
        if "inputs_embeds" in names and "input_ids" in wanted and wanted is text:
            yield {"inputs_embeds": torch.randn(BATCH, LENGTH, config.hidden_size)}


def with_places(config: Any, given: Arguments, said: str) -> Arguments | None:
    """Text that has as many places for images as the model says it needs."""
    token = setting(config, "image_token_id", "image_token_index", "audio_token_id", "audio_token_index")
    count = re.search(r"features:? (\d+)", said)
    if count is None or token is None or "input_ids" not in given:
        return None
    each = int(count[1]) // BATCH
    ids = text_of(config, each + LENGTH)
    ids["input_ids"][:, 4 : 4 + each] = token
    labels = {"labels": ids["input_ids"].clone()} if "labels" in given else {}
    return {**given, **ids, **labels}


def arguments_of(name: str, model: Any) -> Arguments:
    said: Exception | None = None
    for given in attempts(name, model):
        for _ in range(2):
            try:
                with torch.no_grad():
                    model(**given)
                return given
            except Exception as failure:  # noqa: BLE001  (arguments that do not fit are told in many ways)
                placed = with_places(model.config, given, str(failure))
                said = failure if placed is None else said
                if placed is None:
                    break
                given = placed
    raise said or ValueError("no arguments known")


def built(name: str, kind: str) -> Built:
    def make(factor: int) -> Built:
        model = model_of(name, kind, factor)
        return model, (), arguments_of(name, model)

    return first_that_fits(make)


def continued(name: str, kind: str) -> Built:
    """One token more after a cached beginning, as ``generate`` calls."""

    def make(factor: int) -> Built:
        model = model_of(name, kind, factor)
        text = text_of(model.config)
        with torch.no_grad():
            cache = model(**text, use_cache=True).past_key_values
        if cache is None:
            raise ValueError("no cache of keys and values")
        mask = torch.cat([text["attention_mask"], torch.ones(BATCH, 1, dtype=torch.long)], 1)
        token = text["input_ids"][:, :1]
        given = {"input_ids": token, "attention_mask": mask, "past_key_values": cache, "use_cache": True}
        return model, (), given

    return first_that_fits(make)


def cases() -> list[Case]:
    found = []
    for name, kind in architectures().items():
        found.append(Case(name, lambda name=name, kind=kind: built(name, kind)))
        if kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
            one = Case(f"{name}, cached", lambda name=name, kind=kind: continued(name, kind), trains=False)
            found.append(one)
    return found
