"""Named settings: the chapters' own, which repeat what the book prints, a fast recipe and its reasons, and experiments.

Knows no torch: a preset is data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from minigpt.config import ModelConfig, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A model's architecture (all but the vocabulary, which the text decides) and how it is trained.

    Attributes:
        name: What a person types.
        purpose: What it is for, and why it is as it is.
        model: Settings of `ModelConfig` without `vocab_size`.
        training: How it is trained.
    """

    name: str
    purpose: str
    model: Mapping[str, Any] = field(default_factory=dict[str, Any])
    training: TrainingConfig

    def model_config(self, vocab_size: int) -> ModelConfig:
        """Return the architecture for a vocabulary of this size."""
        return ModelConfig(vocab_size=vocab_size, **self.model)


CHAPTERS_TRAINING: dict[str, Any] = {
    "steps": 3000,
    "optimizer": "adamw",
    "learning_rate": 1e-3,
    "betas": (0.9, 0.999),
    "weight_decay": 0.01,
    "schedule": "constant",
    "warmup_steps": 0,
    "gradient_clip": None,
    "evaluate_every": 300,
    "evaluate_batches": 200,
    "save_every": 300,
    "seed": 1337,
}
"""What all chapters share: PyTorch's plain AdamW at 1e-3 from first to last."""

MUON_TRAINING: dict[str, Any] = {
    "optimizer": "muon",
    "betas": (0.8, 0.95),
    "matrix_iterations": 4,
    "schedule": "trapezoid",
    "final_rate": 0.0,
    "gradient_clip": 1.0,
    "initial_weights": "quiet",
    "seed": 1337,
}
"""What all recipes with Muon share; the presets `shakespeare` and `quick` give the reasons."""

SETTLING_TRAINING: dict[str, Any] = {
    **MUON_TRAINING,
    "learning_rate": 0.01,
    "matrix_learning_rate": 0.02,
    "matrix_momentum": 0.95,
    "matrix_weight_decay": 0.1,
    "warmup_steps": 20,
    "decay_share": 0.4,
    "stored_as": "float16",
}
"""What the shipped models share that were trained with Muon: a constant rate and a long way down."""

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="chapter",
            purpose="the chapters' Mini GPT: 4 blocks of 4 heads, 64 wide, 16 characters",
            model={"block_size": 16, "n_embd": 64, "n_head": 4, "n_layer": 4, "dropout": 0.2},
            training=TrainingConfig(batch_size=64, **CHAPTERS_TRAINING),
        ),
        Preset(
            name="transformer-small",
            purpose="the chapters' Mini GPT for slow machines: 2 blocks of 4 heads, 32 wide",
            model={"block_size": 16, "n_embd": 32, "n_head": 4, "n_layer": 2, "dropout": 0.1},
            training=TrainingConfig(batch_size=32, **CHAPTERS_TRAINING),
        ),
        Preset(
            name="multi-head",
            purpose="the chapters' multi-head model: attention alone, 4 heads, 64 wide",
            model={"kind": "multi-head", "block_size": 16, "n_embd": 64, "n_head": 4, "dropout": 0.2},
            training=TrainingConfig(batch_size=64, **CHAPTERS_TRAINING),
        ),
        Preset(
            name="single-head",
            purpose="the chapters' single-head model: one head as wide as the embedding, 64",
            model={"kind": "single-head", "block_size": 16, "n_embd": 64},
            training=TrainingConfig(batch_size=64, **CHAPTERS_TRAINING),
        ),
        Preset(
            name="shakespeare",
            purpose=(
                "the fast recipe of the shipped Shakespeare model: Muon moves every direction of a matrix at one speed "
                "and needs about half of AdamW's steps; outputs that start at zero allow its large steps from the "
                "first; the constant rate lets a run be made longer while it lasts, and the long way down to zero then "
                "settles it; dropout only where it costs little; float16 halves the file"
            ),
            model={"block_size": 256, "n_embd": 192, "n_head": 6, "n_layer": 5, "dropout": 0.1},
            training=TrainingConfig(
                steps=3200,
                batch_size=12,
                average_decay=0.995,
                attention_dropout=0.0,
                repeat_share=1 / 6,
                repeat_from=1700,
                evaluate_every=200,
                evaluate_batches=20,
                save_every=50,
                **SETTLING_TRAINING,
            ),
        ),
        Preset(
            name="quick",
            purpose=(
                "a usable model in little time, of the size that nanoGPT trains on a CPU: Muon with little momentum, "
                "large rates that go straight down to zero from the first step, outputs that start at zero, no "
                "regularisation, as nothing is seen twice in so short a run, and products in bfloat16 where that pays"
            ),
            model={"block_size": 64, "n_embd": 128, "n_head": 4, "n_layer": 4, "dropout": 0.0},
            training=TrainingConfig(
                steps=400,
                batch_size=16,
                precision="auto",
                learning_rate=0.03,
                matrix_learning_rate=0.027,
                matrix_momentum=0.6,
                warmup_steps=10,
                decay_share=1.0,
                evaluate_every=50,
                evaluate_batches=20,
                save_every=50,
                **MUON_TRAINING,
            ),
        ),
        Preset(
            name="korean-novels",
            purpose=(
                "the shipped Korean model, for the corpus koconovel: the same recipe in a size that fits 700,000 "
                "characters of 1,500 kinds; a third of its parameters are the two tables of the syllables"
            ),
            model={"block_size": 128, "n_embd": 128, "n_head": 4, "n_layer": 4, "dropout": 0.1},
            training=TrainingConfig(
                steps=880,
                batch_size=24,
                average_decay=0.99,
                attention_dropout=0.0,
                repeat_share=1 / 6,
                repeat_from=300,
                evaluate_every=100,
                evaluate_batches=10,
                save_every=25,
                **SETTLING_TRAINING,
            ),
        ),
        Preset(
            name="growing",
            purpose=(
                "a small model to watch while it learns: it keeps 12 snapshots of itself; a quarter of its windows "
                "repeat themselves, so that heads for repetition form within some hundred steps"
            ),
            model={"block_size": 128, "n_embd": 96, "n_head": 4, "n_layer": 3, "dropout": 0.0},
            training=TrainingConfig(
                steps=1000,
                batch_size=24,
                repeat_share=1 / 4,
                evaluate_every=100,
                evaluate_batches=10,
                save_every=50,
                snapshots=6,
                **SETTLING_TRAINING,
            ),
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One question, and the models that answer it.

    Attributes:
        name: What a person types.
        question: What is compared.
        preset: The settings that all variants share.
        variants: What each changes in the model, by its name; the first is what the others are compared with.
    """

    name: str
    question: str
    preset: str = "chapter"
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="single-vs-multi",
            question="one head as wide as the embedding, or four narrow ones that are mixed",
            preset="multi-head",
            variants={
                "single-head": {"kind": "single-head", "n_head": 1, "dropout": 0.0},
                "multi-head": {},
            },
        ),
        Experiment(
            name="n-layer",
            question="how many blocks",
            variants={f"n_layer {count}": {"n_layer": count} for count in (1, 2, 4, 6)},
        ),
        Experiment(
            name="activation",
            question="ReLU or GELU in the feed-forward networks",
            variants={name: {"activation": name} for name in ("relu", "gelu")},
        ),
        Experiment(
            name="dropout",
            question="how much dropout",
            variants={f"dropout {share}": {"dropout": share} for share in (0.0, 0.1, 0.2)},
        ),
        Experiment(
            name="n-head",
            question="into how many heads the same width is split",
            variants={f"n_head {count}": {"n_head": count} for count in (1, 2, 4, 8)},
        ),
    )
}


def smaller(experiment: Experiment) -> Experiment:
    """Return an experiment with the chapters' setting for slow machines; one that has only one size as it is."""
    return replace(experiment, preset="transformer-small") if experiment.preset == "chapter" else experiment
