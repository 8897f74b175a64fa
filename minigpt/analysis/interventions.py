"""What can be changed in a model while it reads: heads off or scaled, layers off, single cells of attention off.

An `Intervention` is plain data that says what is changed; `minigpt.analysis.forward` carries it out. The place of a
change is where the part is computed: a head is changed in its own output *before* the projection, so what the other
heads and the projection's bias contribute stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from minigpt.config import ModelConfig, check_choice
from minigpt.errors import ConfigError, PromptError

MOST_SCALE = 2.0
"""Largest factor of a head's output."""
Replacement = Literal["zero", "mean"]


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """A set of changes, all made in the same forward pass. The default changes nothing.

    Attributes:
        heads_off: Heads `(layer, head)` whose output is replaced.
        replace: By what: `"zero"` (zero ablation), or `"mean"`, the head's mean output over all tokens of a reference
            text (mean ablation; Wang et al. 2022, section 2).
        head_scales: Heads `(layer, head, factor)` whose output is multiplied by 0 to 2. A head that is off stays off.
        attention_off: Layers whose attention adds nothing, the projection's bias included.
        mlps_off: Layers whose feed-forward network adds nothing, its bias included.
        edges_off: Cells `(layer, head, query, key)`, true positions in the text: the query may not look at that key
            (attention knockout; Geva et al. 2023, section 4).
        renormalise: Whether what is left of such a row is scaled to sum to 1, as if the key had been masked before the
            softmax; if not, the other weights stay what they were. A row without any key left is 0.
    """

    heads_off: tuple[tuple[int, int], ...] = ()
    replace: Replacement = "zero"
    head_scales: tuple[tuple[int, int, float], ...] = ()
    attention_off: tuple[int, ...] = ()
    mlps_off: tuple[int, ...] = ()
    edges_off: tuple[tuple[int, int, int, int], ...] = ()
    renormalise: bool = True

    def layers(self) -> Iterator[int]:
        """Yield the layer of every change."""
        for layer, *_ in (*self.heads_off, *self.head_scales, *self.edges_off):
            yield layer
        yield from self.attention_off
        yield from self.mlps_off

    def needs_means(self) -> bool:
        """Return whether the heads' means over a reference text are needed."""
        return bool(self.heads_off) and self.replace == "mean"

    def check(self, config: ModelConfig, length: int | None = None) -> None:
        """Refuse what the model does not have.

        Args:
            config: The model's architecture.
            length: Number of tokens of the text, where edges must lie in it; None for a text that still grows.

        Raises:
            ConfigError: `no_such_head`, `no_such_layer`, `no_such_mlp`, `number_out_of_range`, `not_a_choice`.
            PromptError: `edge_out_of_range`.
        """
        check_choice("replace", self.replace, ("zero", "mean"))
        for layer, head, *_ in (*self.heads_off, *self.head_scales, *self.edges_off):
            check_head(config, layer, head)
        for layer in (*self.attention_off, *self.mlps_off):
            if not 0 <= layer < config.n_layer:
                raise ConfigError("no_such_layer", layer=layer, last=config.n_layer - 1)
        if self.mlps_off and config.kind != "transformer":
            raise ConfigError("no_such_mlp", kind=config.kind)
        for _, _, factor in self.head_scales:
            if not 0 <= factor <= MOST_SCALE:
                allowed = f"0 – {MOST_SCALE:g}"
                raise ConfigError("number_out_of_range", name="scale", value=repr(factor), allowed=allowed)
        for _, _, query, key in self.edges_off:
            if not 0 <= key <= query or (length is not None and query >= length):
                raise PromptError("edge_out_of_range", query=query, key=key)


def check_head(config: ModelConfig, layer: int, head: int) -> None:
    """Raise ConfigError unless the model has the head."""
    if not (0 <= layer < config.n_layer and 0 <= head < config.n_head):
        last = f"L{config.n_layer - 1}H{config.n_head - 1}"
        raise ConfigError("no_such_head", name=f"L{layer}H{head}", last=last)
