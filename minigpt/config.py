"""The settings of a model and of a training run: frozen, named, checked together before any work.

Names are nanoGPT's (`n_layer`, `n_head`, `n_embd`, `block_size`, `vocab_size`, `dropout`). The options beyond the
chapters' models (`activation`, `bias`, `tied` and the rest) default to what the chapters do.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, TypedDict, TypeGuard, cast, get_args

from minigpt.errors import ConfigError

Kind = Literal["transformer", "multi-head", "single-head"]
Activation = Literal["relu", "gelu", "gelu_tanh"]


LONGEST_WINDOW = 8192
"""Largest block_size: attention's memory grows with its square, to 256 MB for each head here."""


class Options(TypedDict, total=False):
    """The settings of `ModelConfig` beyond the chapters', as keyword arguments of the models."""

    activation: Activation
    qkv_bias: bool
    bias: bool
    head_bias: bool
    tied: bool
    layer_norm_epsilon: float


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The architecture of a model, enough to build it again.

    Attributes:
        kind: `"transformer"` (a stack of blocks), `"multi-head"` (attention alone) or `"single-head"` (one head alone).
        vocab_size: Number of different tokens.
        block_size: Most tokens the model can look at, the context window; at most `LONGEST_WINDOW`.
        n_embd: Width of an embedding; must be divisible by `n_head`.
        n_head: Heads in each layer; 1 for `"single-head"`.
        n_layer: Blocks in the stack; 1 for the two attention-only kinds.
        dropout: Share of values dropped in training, 0 to below 1.
        activation: Non-linearity of the feed-forward network; `"gelu_tanh"` is GELU's tanh approximation.
        qkv_bias: Whether key, query and value layers have a bias.
        bias: Whether the attention's projection, the feed-forward network and LayerNorm have one.
        head_bias: Whether `lm_head` has one.
        tied: Whether `lm_head` and the token embedding share one matrix.
        layer_norm_epsilon: What LayerNorm adds to the variance.
    """

    kind: Kind = "transformer"
    vocab_size: int
    block_size: int
    n_embd: int
    n_head: int = 1
    n_layer: int = 1
    dropout: float = 0.0
    activation: Activation = "relu"
    qkv_bias: bool = False
    bias: bool = True
    head_bias: bool = True
    tied: bool = False
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: If a value is out of its range or two do not fit together.
        """
        _check_model(asdict(self))

    @property
    def head_size(self) -> int:
        """Width of one head's key, query and value."""
        return self.n_embd // self.n_head

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "ModelConfig":
        """Read what `to_dict` wrote.

        Raises:
            ConfigError: If a setting is missing, unknown or out of its range.
        """
        settings = known_settings(cls, settings, required=("vocab_size", "block_size", "n_embd"))
        # Checked before a ModelConfig is made: what comes from a file may be of any type.
        defaults = {field.name: field.default for field in fields(cls) if field.default is not MISSING}
        _check_model(defaults | settings)
        return cls(**settings)


def _check_model(settings: Mapping[str, Any]) -> None:
    """Raise ConfigError unless every setting of a model is in its range and they fit together."""
    check_choice("kind", settings["kind"], get_args(Kind))
    check_choice("activation", settings["activation"], get_args(Activation))
    for name in ("vocab_size", "block_size", "n_embd", "n_head", "n_layer"):
        check_positive_integer(name, settings[name])
    if settings["block_size"] > LONGEST_WINDOW:
        allowed = f"1 … {LONGEST_WINDOW:,}"
        raise ConfigError("number_out_of_range", name="block_size", value=settings["block_size"], allowed=allowed)
    for name in ("qkv_bias", "bias", "head_bias", "tied"):
        if not isinstance(settings[name], bool):
            raise ConfigError("not_true_or_false", name=name, value=repr(settings[name]))
    dropout, epsilon = settings["dropout"], settings["layer_norm_epsilon"]
    if not is_number(dropout) or not 0 <= dropout < 1:
        raise ConfigError("dropout_out_of_range", value=repr(dropout))
    if not is_number(epsilon) or not epsilon > 0:
        raise ConfigError("epsilon_out_of_range", value=repr(epsilon))
    kind, n_embd, n_head, n_layer = (settings[name] for name in ("kind", "n_embd", "n_head", "n_layer"))
    if kind == "single-head" and n_head != 1:
        raise ConfigError("one_only", kind=kind, name="n_head", value=n_head)
    if kind != "transformer" and n_layer != 1:
        raise ConfigError("one_only", kind=kind, name="n_layer", value=n_layer)
    if n_embd % n_head:
        raise ConfigError("heads_do_not_divide", n_embd=n_embd, n_head=n_head)


def known_settings(cls: type[Any], settings: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the settings as a dict after checking their names against the fields of a dataclass.

    Raises:
        ConfigError: If a name is no field of `cls` or a required one is missing.
    """
    names = [field.name for field in fields(cls)]
    if unknown := sorted(set(settings) - set(names)):
        raise ConfigError("unknown_settings", names=", ".join(unknown), choices=", ".join(names))
    if missing := [name for name in required if name not in settings]:
        raise ConfigError("missing_settings", names=", ".join(missing))
    return dict(settings)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ConfigError unless the value is one of the choices."""
    if value not in choices:
        raise ConfigError("not_a_choice", name=name, value=repr(value), choices=", ".join(map(repr, choices)))


def check_positive_integer(name: str, value: object) -> None:
    """Raise ConfigError unless the value is an int of at least 1 (a bool is none)."""
    if not is_whole(value) or value < 1:
        raise ConfigError("not_a_positive_integer", name=name, value=repr(value))


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether the value is a whole number (a bool is none)."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_index(value: object, length: int) -> TypeGuard[int]:
    """Return whether the value is a whole number from 0 to `length - 1` (a bool is none)."""
    return is_whole(value) and 0 <= value < length


def is_number(value: object) -> TypeGuard[float]:
    """Return whether the value is a finite int or float (a bool is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Optimizer = Literal["adamw", "muon"]
Schedule = Literal["constant", "cosine", "trapezoid"]
InitialWeights = Literal["torch", "quiet"]
StoredAs = Literal["float32", "float16"]
Precision = Literal["float32", "bfloat16", "auto"]


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained, enough to repeat the run. The defaults are AdamW with warm-up and cosine decay.

    Attributes:
        steps: Optimizer steps.
        batch_size: Windows of `block_size` tokens in one step.
        optimizer: `"adamw"` for every parameter, or `"muon"` for the matrices inside the blocks and AdamW for the rest.
        learning_rate: AdamW's peak learning rate, above 0.
        betas: Shares of AdamW's running means (of gradients, of their squares) kept at a step, 0 to below 1.
        weight_decay: AdamW's decoupled weight decay; beside Muon, AdamW's parameters have none.
        matrix_learning_rate: Muon's peak learning rate, above 0.
        matrix_momentum: Share of Muon's running mean of gradients kept at a step, 0 to below 1.
        matrix_weight_decay: Muon's decoupled weight decay.
        matrix_iterations: Newton–Schulz iterations of Muon in one step.
        schedule: `"constant"`; `"cosine"` goes down to `final_rate` along half a cosine; `"trapezoid"` stays constant,
            then goes straight down to `final_rate` over the last `decay_share` of the steps.
        warmup_steps: Steps over which the learning rate first grows in a straight line.
        decay_share: Share of the steps in which `"trapezoid"` goes down, above 0 to 1.
        final_rate: Where the schedule ends, as a share of the peak, 0 to 1.
        gradient_clip: Largest norm of all gradients together; None for no limit.
        average_decay: Share of a running mean of the weights kept at a step, 0 to below 1; the mean is what is
            evaluated and saved. None: the weights themselves are.
        initial_weights: `"torch"`: PyTorch's own. `"quiet"`: embeddings of spread 0.3, and zero for every layer that
            writes an output (projection, second feed-forward layer, `lm_head`), so that the first guess is uniform.
        attention_dropout: Dropout inside attention in place of the model's own, which None leaves. 0 lets training use
            PyTorch's fused attention.
        repeat_share: Share of a batch's windows in which the text repeats itself from some character on, 0 to 1. Small
            models on short texts have little other reason to grow heads that look for repetition.
        repeat_from: First step with such windows.
        evaluate_every: Steps between two estimates of the losses; the first is made before the first step.
        evaluate_batches: Batches in one estimate, for each of the two splits.
        save_every: Steps between two saves of the checkpoint and of the state to resume from; at a snapshot they are
            saved as well.
        snapshots: Snapshots of the model that are kept on the way, for each tenfold of steps: 2 keeps those of steps 0,
            10, 30, 100, 300 … and the last, where the losses are estimated as well. 0 keeps none.
        precision: In what numbers a step multiplies matrices. `"bfloat16"` rounds them to 3 digits (the weights and
            what is added up stay float32) and takes half the time on a processor that has units for it, much longer on
            one that has not; `"auto"` is bfloat16 where the device has them, else float32.
        stored_as: How the checkpoint holds numbers; `"float16"` halves the file and rounds to about 3 digits.
        seed: Seed of everything random.
        device: `"cpu"`, `"cuda"` (or `"cuda:1"` …) or `"mps"`.
    """

    steps: int = 3000
    batch_size: int = 64
    optimizer: Optimizer = "adamw"
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.01
    matrix_learning_rate: float = 0.02
    matrix_momentum: float = 0.95
    matrix_weight_decay: float = 0.0
    matrix_iterations: int = 5
    schedule: Schedule = "cosine"
    warmup_steps: int = 100
    decay_share: float = 0.4
    final_rate: float = 0.1
    gradient_clip: float | None = 1.0
    average_decay: float | None = None
    initial_weights: InitialWeights = "torch"
    attention_dropout: float | None = None
    repeat_share: float = 0.0
    repeat_from: int = 0
    evaluate_every: int = 300
    evaluate_batches: int = 200
    save_every: int = 300
    snapshots: int = 0
    precision: Precision = "float32"
    stored_as: StoredAs = "float32"
    seed: int = 1337
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: If a setting is out of its range.
        """
        _check_training({field.name: getattr(self, field.name) for field in fields(self)})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values that JSON can hold."""
        return {**asdict(self), "betas": list(self.betas)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "TrainingConfig":
        """Read what `to_dict` wrote.

        Raises:
            ConfigError: If a setting is unknown or out of its range.
        """
        settings = known_settings(cls, settings)
        if isinstance(settings.get("betas"), list):
            settings["betas"] = tuple(settings["betas"])
        _check_training({field.name: field.default for field in fields(cls)} | settings)
        return cls(**settings)


RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "learning_rate": (lambda value: value > 0, "> 0"),
    "matrix_learning_rate": (lambda value: value > 0, "> 0"),
    "gradient_clip": (lambda value: value > 0, "> 0"),
    "weight_decay": (lambda value: value >= 0, "≥ 0"),
    "matrix_weight_decay": (lambda value: value >= 0, "≥ 0"),
    "matrix_momentum": (lambda value: 0 <= value < 1, "≥ 0 and < 1"),
    "average_decay": (lambda value: 0 <= value < 1, "≥ 0 and < 1"),
    "attention_dropout": (lambda value: 0 <= value < 1, "≥ 0 and < 1"),
    "decay_share": (lambda value: 0 < value <= 1, "> 0 and ≤ 1"),
    "final_rate": (lambda value: 0 <= value <= 1, "≥ 0 and ≤ 1"),
    "repeat_share": (lambda value: 0 <= value <= 1, "≥ 0 and ≤ 1"),
}
"""What each number of a training configuration may be: a test, and how to say it."""
MAY_BE_NONE = ("gradient_clip", "average_decay", "attention_dropout")


def _check_training(settings: Mapping[str, Any]) -> None:
    """Raise ConfigError unless every setting of a training run is in its range."""
    check_choice("optimizer", settings["optimizer"], get_args(Optimizer))
    check_choice("schedule", settings["schedule"], get_args(Schedule))
    check_choice("precision", settings["precision"], get_args(Precision))
    check_choice("stored_as", settings["stored_as"], get_args(StoredAs))
    check_choice("initial_weights", settings["initial_weights"], get_args(InitialWeights))
    for name in ("steps", "batch_size", "matrix_iterations", "evaluate_every", "evaluate_batches", "save_every"):
        check_positive_integer(name, settings[name])
    for name in ("warmup_steps", "repeat_from", "snapshots", "seed"):
        value = settings[name]
        if not is_index(value, 2**63):
            raise ConfigError("number_out_of_range", name=name, value=repr(value), allowed="0, 1, 2, …")
    for name, (fits, allowed) in RANGES.items():
        value = settings[name]
        if not (value is None and name in MAY_BE_NONE) and not (is_number(value) and fits(value)):
            raise ConfigError("number_out_of_range", name=name, value=repr(value), allowed=allowed)
    betas = cast(tuple[Any, ...], settings["betas"] if isinstance(settings["betas"], tuple) else ())
    if len(betas) != 2 or not all(is_number(beta) and 0 <= beta < 1 for beta in betas):
        allowed = "[≥ 0 and < 1, ≥ 0 and < 1]"
        raise ConfigError("number_out_of_range", name="betas", value=f"{settings['betas']}", allowed=allowed)
    if not isinstance(settings["device"], str):
        raise ConfigError("device_missing", device=repr(settings["device"]))
