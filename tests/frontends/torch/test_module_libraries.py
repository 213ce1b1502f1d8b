"""Compiled modules in the training loops of libraries, as their documentation writes them (skipped where a
library is not installed)."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402

from .harness import same  # noqa: E402
from .models import F, nn  # noqa: E402

BOTH = pytest.mark.parametrize("compiled", [dyncomp.compile, dyncomp.compile_])


@pytest.fixture(autouse=True)
def _fresh():
    dyncomp.reset()
    torch.manual_seed(0)
    yield
    dyncomp.reset()


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(6, 4), torch.randint(0, 3, (6,))) for _ in range(4)]


def check_same_weights(found: nn.Module, expected: nn.Module) -> None:
    assert list(found.state_dict()) == list(expected.state_dict())
    for a, b in zip(found.parameters(), expected.parameters()):
        assert torch.allclose(a, b, atol=1e-4), (a, b)
    stats = dyncomp.stats()
    assert stats["graphs"] > 0 and stats["cache_hits"] > 0 and stats["fallbacks"] == 0


@BOTH
def test_accelerate(compiled, tmp_path):
    accelerate = pytest.importorskip("accelerate")

    def train(model):
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        loader = torch.utils.data.DataLoader([(x[0], y[0]) for x, y in batches() * 4], batch_size=4)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for x, y in loader:
            with accelerator.accumulate(model):
                optimizer.zero_grad()
                accelerator.backward(F.cross_entropy(model(x), y))
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
        accelerator.save_state(tmp_path)
        accelerator.load_state(tmp_path)
        accelerator.save_model(model, tmp_path)
        return accelerator.unwrap_model(model)

    expected = train(net())
    found = train(compiled(net()))
    assert isinstance(found, nn.Sequential)
    check_same_weights(found, expected)


@BOTH
def test_lightning(compiled, tmp_path):
    lightning = pytest.importorskip("lightning")

    class Lit(lightning.LightningModule):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def training_step(self, batch, index):
            loss = F.cross_entropy(self.model(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def train(model, whole):
        task = compiled(Lit(model)) if whole else Lit(model)
        trainer = lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(task, torch.utils.data.DataLoader([(x[0], y[0]) for x, y in batches() * 2], batch_size=4))
        return task.model

    expected = train(net(), False)
    found = train(compiled(net()), False)
    check_same_weights(found, expected)
    train(net(), True)


def tiny_gpt2():
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    config = transformers.GPT2Config(
        **sizes, bos_token_id=1, eos_token_id=2, pad_token_id=0, embd_pdrop=0, attn_pdrop=0, resid_pdrop=0
    )
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(config)


@BOTH
def test_transformers_trainer(compiled, tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    def train(model):
        torch.manual_seed(1)
        rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(3, 60, (8, 6))]
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=4,
            per_device_train_batch_size=2,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            seed=3,
        )
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
        trainer.train()
        trainer.save_model(str(tmp_path / "saved"))
        return trainer.model

    expected = train(tiny_gpt2())
    found = train(compiled(tiny_gpt2()))
    check_same_weights(found, expected)
    loaded = type(tiny_gpt2()).from_pretrained(tmp_path / "saved")
    same(loaded.lm_head.weight.data, found.lm_head.weight.data, "saved")


@pytest.mark.parametrize("how", ["shell", "in place", "method"])
def test_generate(how):
    model = tiny_gpt2().eval()
    ids = torch.randint(3, 60, (2, 5))
    given = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 6, "do_sample": False}
    expected = model.generate(ids, **given)
    model = copy.deepcopy(model)
    makers = {
        "shell": lambda: dyncomp.compile(model).generate,
        "in place": lambda: dyncomp.compile_(model).generate,
        "method": lambda: dyncomp.compile(model.generate),
    }
    generate = makers[how]()
    for _ in range(2):
        assert torch.equal(generate(ids, **given), expected)
    stats = dyncomp.stats()
    assert stats["graphs"] > 0 and stats["cache_hits"] >= 8 and stats["fallbacks"] == 0
