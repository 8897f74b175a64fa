"""What a training configuration means: the first weights, the learning rate of a step, the optimizers, the batches.

Each is a function of the configuration and what it is given, so it can be looked at and tested without a run.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor, nn

from minigpt.config import ModelConfig, TrainingConfig
from minigpt.model import FusedHeads, LanguageModel, build_model
from minigpt.optim import Muon


def new_model(model_config: ModelConfig, config: TrainingConfig) -> LanguageModel:
    """Return an untrained model; the seed and the initial weights are those of the training configuration."""
    torch.manual_seed(config.seed)
    model = build_model(model_config)
    if config.initial_weights == "quiet":
        for name, parameter in model.named_parameters():
            module = model.get_submodule(name.rpartition(".")[0])
            if isinstance(module, nn.Embedding):
                nn.init.normal_(parameter, std=0.3)
            elif isinstance(module, nn.Linear) and name.endswith(
                ("bias", "proj.weight", "net.2.weight", "lm_head.weight")
            ):
                nn.init.zeros_(parameter)
    return model


def learning_rate_scale(config: TrainingConfig, step: int) -> float:
    """Return the learning rate of a step as a share of its peak, 0 to 1.

    Args:
        config: Schedule, warm-up and number of steps.
        step: Steps taken before this one, 0 to `steps - 1`.
    """
    if config.schedule == "constant":
        shape = 1.0
    elif config.schedule == "cosine":
        span = max(1, config.steps - config.warmup_steps)
        along = min(1.0, max(0, step - config.warmup_steps) / span)
        shape = config.final_rate + (1 - config.final_rate) * (0.5 + 0.5 * math.cos(math.pi * along))
    else:
        along = min(1.0, (config.steps - step) / max(1.0, config.decay_share * config.steps))
        shape = config.final_rate + (1 - config.final_rate) * along
    return shape * min(1.0, (step + 1) / max(1, config.warmup_steps))


def repeat_some(
    idx: Int[Tensor, "batch time"], targets: Int[Tensor, "batch time"], windows: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch time"], Int[Tensor, "batch time"]]:
    """Let the text of some windows repeat itself, each after another number of tokens.

    Args:
        idx: A batch of windows.
        targets: The same windows one token later.
        windows: How many of them, evenly spread over the batch, are to repeat their beginning.
        generator: Where the lengths of the beginnings come from: an eighth to half of a window.
    """
    whole = torch.cat((idx, targets[:, -1:]), dim=1)
    time = idx.shape[1]
    lengths = torch.randint(max(1, time // 8), max(2, time // 2 + 1), (windows, 1), generator=generator)
    places = torch.arange(time + 1) % lengths
    rows = torch.arange(windows) * len(idx) // max(1, windows)
    whole[rows] = whole[rows].gather(1, places.to(whole.device))
    return whole[:, :-1], whole[:, 1:]


def product_type(config: TrainingConfig) -> torch.dtype | None:
    """Return in what type of numbers a step multiplies matrices: `torch.bfloat16`, or None for that of the weights."""
    if config.precision == "auto":
        return torch.bfloat16 if has_bfloat16_units(torch.device(config.device).type) else None
    return torch.bfloat16 if config.precision == "bfloat16" else None


def has_bfloat16_units(device: str) -> bool:
    """Tell whether a kind of device multiplies matrices of bfloat16 faster than those of float32."""
    if device == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def make_optimizers(model: LanguageModel, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a model; together they hold every parameter once.

    With `"muon"`, the matrices inside the model's middle (not embeddings, not `lm_head`) go to Muon, each head's key,
    query and value as a matrix of its own, and the rest to AdamW with weight decay off.
    """
    fused = config.device == "cpu" or config.device.startswith("cuda")
    if config.optimizer == "adamw":
        return [
            torch.optim.AdamW(
                model.parameters(),
                lr=config.learning_rate,
                betas=config.betas,
                weight_decay=config.weight_decay,
                fused=fused,
            )
        ]
    groups: dict[tuple[int, ...], list[nn.Parameter]] = {}
    rest: list[nn.Parameter] = []
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            inside = isinstance(module, nn.Linear) and module is not model.lm_head
            if parameter.ndim == 2 and (inside or isinstance(module, FusedHeads)):
                rows = module.head_size if isinstance(module, FusedHeads) else parameter.shape[0]
                groups.setdefault((rows, *parameter.shape), []).append(parameter)
            elif not any(parameter is other for other in rest):
                rest.append(parameter)
    muon = Muon(
        [{"params": parameters, "rows": rows} for (rows, *_), parameters in groups.items()],
        lr=config.matrix_learning_rate,
        momentum=config.matrix_momentum,
        weight_decay=config.matrix_weight_decay,
        steps=config.matrix_iterations,
        dtype=product_type(config),
    )
    return [muon, torch.optim.AdamW(rest, lr=config.learning_rate, betas=config.betas, weight_decay=0.0, fused=fused)]
