"""Watch a small GPT pay attention.

The names below are the package's public face. Each is imported when it is first used, so `import minigpt` is quick and
loads neither PyTorch nor Plotly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minigpt.analysis.ablation import TwoContinuations, WhatIf, compare_continuations, what_if
    from minigpt.analysis.circuits import Circuit, PositionalQK, ov_circuit, positional_qk, qk_circuit
    from minigpt.analysis.compare import (
        Comparison,
        compare_checkpoints,
        compare_heads,
        compare_intervention,
        compare_prompts,
    )
    from minigpt.analysis.contributions import (
        Contributions,
        LogitShares,
        contributions,
        direct_logits,
        logit_weighted,
        rollout,
        value_weighted,
    )
    from minigpt.analysis.development import Development, head_development
    from minigpt.analysis.flow import Flow, Stage, debug_shapes, dropped_weights, flow, parameter_parts
    from minigpt.analysis.forward import Run, forward, head_means
    from minigpt.analysis.head_finder import HeadTable, find_heads, probe_heads
    from minigpt.analysis.interventions import Intervention
    from minigpt.analysis.lens import Lens, logit_lens
    from minigpt.analysis.patterns import Trace, trace
    from minigpt.analysis.sweeps import EdgeSweep, Sweep, edge_sweep, sweep
    from minigpt.checkpoint import Checkpoint, list_checkpoints, load_checkpoint, save_checkpoint
    from minigpt.config import ModelConfig, TrainingConfig
    from minigpt.errors import CheckpointError, ConfigError, CorpusError, MiniGPTError, PromptError
    from minigpt.figures import attention_grid, attention_heatmap
    from minigpt.figures_causal import continuation_map, edge_bars, kl_bars, logit_bars, sweep_map
    from minigpt.figures_heads import development_curves, head_scatter, score_map
    from minigpt.figures_views import circuit_map, contribution_map, difference_map, lens_map, positional_map
    from minigpt.generation import Continuation, Distribution, Step, continuations, generate, generate_several
    from minigpt.model import (
        Block,
        FeedForward,
        Head,
        MultiHeadAttention,
        MultiHeadAttentionLanguageModel,
        SingleHeadAttentionLanguageModel,
        TransformerLanguageModel,
    )
    from minigpt.snapshots import list_snapshots, load_snapshots
    from minigpt.tokenizer import CharTokenizer
    from minigpt.training import train

__all__ = [
    "Block",
    "CharTokenizer",
    "Checkpoint",
    "CheckpointError",
    "Circuit",
    "Comparison",
    "ConfigError",
    "Continuation",
    "Contributions",
    "CorpusError",
    "Development",
    "Distribution",
    "EdgeSweep",
    "FeedForward",
    "Flow",
    "Head",
    "HeadTable",
    "Intervention",
    "Lens",
    "LogitShares",
    "MiniGPTError",
    "ModelConfig",
    "MultiHeadAttention",
    "MultiHeadAttentionLanguageModel",
    "PositionalQK",
    "PromptError",
    "Run",
    "SingleHeadAttentionLanguageModel",
    "Stage",
    "Step",
    "Sweep",
    "Trace",
    "TrainingConfig",
    "TransformerLanguageModel",
    "TwoContinuations",
    "WhatIf",
    "attention_grid",
    "attention_heatmap",
    "circuit_map",
    "compare_checkpoints",
    "compare_continuations",
    "compare_heads",
    "compare_intervention",
    "compare_prompts",
    "continuation_map",
    "continuations",
    "contribution_map",
    "contributions",
    "debug_shapes",
    "development_curves",
    "difference_map",
    "direct_logits",
    "dropped_weights",
    "edge_bars",
    "edge_sweep",
    "find_heads",
    "flow",
    "forward",
    "generate",
    "generate_several",
    "head_development",
    "head_means",
    "head_scatter",
    "kl_bars",
    "lens_map",
    "list_checkpoints",
    "list_snapshots",
    "load_checkpoint",
    "load_snapshots",
    "logit_bars",
    "logit_lens",
    "logit_weighted",
    "ov_circuit",
    "parameter_parts",
    "positional_map",
    "positional_qk",
    "probe_heads",
    "qk_circuit",
    "rollout",
    "save_checkpoint",
    "score_map",
    "sweep",
    "sweep_map",
    "trace",
    "train",
    "value_weighted",
    "what_if",
]

_MODULES = {
    "analysis.ablation": ("TwoContinuations", "WhatIf", "compare_continuations", "what_if"),
    "analysis.circuits": ("Circuit", "PositionalQK", "ov_circuit", "positional_qk", "qk_circuit"),
    "analysis.compare": (
        "Comparison",
        "compare_checkpoints",
        "compare_heads",
        "compare_intervention",
        "compare_prompts",
    ),
    "analysis.contributions": (
        "Contributions",
        "LogitShares",
        "contributions",
        "direct_logits",
        "logit_weighted",
        "rollout",
        "value_weighted",
    ),
    "analysis.development": ("Development", "head_development"),
    "analysis.flow": ("Flow", "Stage", "debug_shapes", "dropped_weights", "flow", "parameter_parts"),
    "analysis.forward": ("Run", "forward", "head_means"),
    "analysis.head_finder": ("HeadTable", "find_heads", "probe_heads"),
    "analysis.interventions": ("Intervention",),
    "analysis.lens": ("Lens", "logit_lens"),
    "analysis.sweeps": ("EdgeSweep", "Sweep", "edge_sweep", "sweep"),
    "figures_causal": ("continuation_map", "edge_bars", "kl_bars", "logit_bars", "sweep_map"),
    "figures_heads": ("development_curves", "head_scatter", "score_map"),
    "figures_views": ("circuit_map", "contribution_map", "difference_map", "lens_map", "positional_map"),
    "analysis.patterns": ("Trace", "trace"),
    "checkpoint": ("Checkpoint", "list_checkpoints", "load_checkpoint", "save_checkpoint"),
    "config": ("ModelConfig", "TrainingConfig"),
    "errors": ("CheckpointError", "ConfigError", "CorpusError", "MiniGPTError", "PromptError"),
    "figures": ("attention_grid", "attention_heatmap"),
    "generation": ("Continuation", "Distribution", "Step", "continuations", "generate", "generate_several"),
    "model": (
        "Block",
        "FeedForward",
        "Head",
        "MultiHeadAttention",
        "MultiHeadAttentionLanguageModel",
        "SingleHeadAttentionLanguageModel",
        "TransformerLanguageModel",
    ),
    "snapshots": ("list_snapshots", "load_snapshots"),
    "tokenizer": ("CharTokenizer",),
    "training": ("train",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (classes and functions alike)
    """Import a public name from its module and keep it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
