"""What each head looks at, as a handful of numbers per head.

The first six scores are a *share of attention*, 0 to 1: how much of a query's weight lies on the keys that the score
names, averaged over the queries that are counted. So that no head is credited twice for the same cell, a key that
several definitions name is counted by the first of them alone or by none, and a query without a key of its own is left
out. A score for which no query is left is NaN.

- `self`: the query itself. Queries from the second on (the first can look nowhere else).
- `previous`: the token just before. Queries from the third on (for the second, the token before is also the first).
- `first`: the first token of the window, where heads put weight that they do not need (an *attention sink*, Xiao et al.
  2023, section 3.1). Queries from the third on.
- `duplicate`: earlier occurrences of the query's own token (duplicate token heads, Wang et al. 2022, section 3.1).
- `induction`: the tokens that followed earlier occurrences of the query's token (Olsson et al. 2022, "Definition of
  Induction Heads").
- `word_start`: the first token of the query's own word, a word being a run of tokens without white space.
- `line_start`: the first token of the query's own line, only where it is asked for.

The last two describe the shape of a row, over queries from the second on:

- `entropy`: −Σ α · log₂ α over the keys of a row, α the weight (Shannon 1948, section 6; of attention Clark et al.
  2019, section 3.3), in bits; 0 if all weight lies on one key, log₂(n) if it is spread evenly over n.
- `distance`: Σ α · (query − key), the mean distance weighted by attention (Vig & Belinkov 2019, "Attention Distance",
  there over a corpus), in tokens, from 0.
"""

import math
from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SHARES = ("previous", "self", "first", "duplicate", "induction", "word_start")
SCORES = (*SHARES, "entropy", "distance")
LINE_SHARES = (*SHARES, "line_start")
"""The shares with `line_start`; `word_start` then counts no words that begin a line."""


def head_scores(
    pattern: Float[Tensor, "layer head query key"], tokens: Sequence[str], shares: Sequence[str] = SHARES
) -> dict[str, Float[Tensor, "layer head"]]:
    """Return each head's scores, by the names in `shares` and `entropy` and `distance`, on one text.

    Args:
        pattern: Attention weights, rows summing to 1.
        tokens: The text of each token in the window.
        shares: Which shares of attention; a key is left out where it is named by two of these.

    Raises:
        ValueError: If there is not one token for each query.
    """
    n_token = pattern.shape[-1]
    if len(tokens) != n_token:
        raise ValueError(f"expected {n_token} tokens, one for each query, got {len(tokens)}")
    masks = share_masks(tokens, shares)
    position = torch.arange(n_token)
    distances = (position[:, None] - position[None, :]).clamp(min=0)
    # Each is a sum over all cells, divided by the number of queries that are counted: one product for all of them.
    cells = torch.stack([*(masks[name] for name in shares), distances]).flatten(1).to(pattern.dtype)
    counted = torch.tensor([*(int(masks[name].any(1).sum()) for name in shares), n_token - 1])
    sums = cells @ pattern.flatten(2).flatten(0, 1).T
    means = (sums / counted[:, None]).view(-1, *pattern.shape[:2])
    scores: dict[str, Tensor] = {name: means[index] for index, name in enumerate((*shares, "distance"))}
    # Layer by layer, or their logarithms would take as much memory as all weights.
    scores["entropy"] = torch.stack([row_entropy(layer[None])[0, :, 1:].mean(-1) for layer in pattern])
    return {name: scores[name] for name in (*shares, "entropy", "distance")}


def growing_head_scores(
    pattern: Float[Tensor, "layer head query key"], tokens: Sequence[str]
) -> dict[str, Float[Tensor, "length layer head"]]:
    """Return each head's scores on the first token alone, on the first two, and so on, as `head_scores` gives them.

    Attention is causal, and so is every score: a query counts the same whatever follows it.

    Args:
        pattern: Attention weights, rows summing to 1.
        tokens: The text of each token in the window.
    """
    masks = share_masks(tokens)
    position = torch.arange(len(tokens))
    distances = (position[:, None] - position[None, :]).clamp(min=0)
    cells = torch.stack([*(masks[name] for name in SHARES), distances]).to(pattern.dtype)
    # A layer at a time, so that all weights of a large model are never there twice.
    by_query = torch.stack([torch.einsum("sqk,hqk->shq", cells, layer) for layer in pattern], 1)
    entropy = torch.cat([row_entropy(layer[None]) for layer in pattern])
    sums = torch.cat((by_query, entropy[None])).double().cumsum(-1)
    later = position >= 1
    counted = torch.stack([*(masks[name].any(1) for name in SHARES), later, later]).cumsum(-1)
    means = (sums / counted[:, None, None]).to(pattern.dtype).permute(0, 3, 1, 2)
    scores = dict(zip((*SHARES, "distance", "entropy"), means, strict=True))
    return {name: scores[name] for name in SCORES}


def row_entropy(pattern: Float[Tensor, "layer head query key"]) -> Float[Tensor, "layer head query"]:
    """Return the entropy of each row in bits, −Σ α · log₂ α with 0 · log₂ 0 = 0 (Shannon 1948, section 6).

    From 0, all weight on one key, to log₂ of the number of keys, weight spread evenly.
    """
    nats = cast(Tensor, torch.special.entr(pattern))
    return nats.sum(-1) / math.log(2)


def share_masks(tokens: Sequence[str], shares: Sequence[str] = SHARES) -> dict[str, Bool[Tensor, "query key"]]:
    """Return, for each score that is a share of attention, the cells that it counts; see the module's docstring.

    Args:
        tokens: The text of each token in the window.
        shares: Which shares; a key is left out where two of these name it.
    """
    n_token = len(tokens)
    names = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    kind = torch.tensor([names[token] for token in tokens])
    position = torch.arange(n_token)
    query, key = position[:, None], position[None, :]

    own = (query == key) & (query >= 1)
    previous = (key == query - 1) & (query >= 2)
    first = (key == 0) & (query >= 2)
    distant = key < query - 1
    before_key = torch.cat((torch.tensor([-1]), kind[:-1]))
    # What may name the same key twice.
    distant_masks = {
        "duplicate": distant & (kind[:, None] == kind[None, :]),
        "induction": distant & (kind[:, None] == before_key[None, :]),
        "word_start": distant & (key == word_starts(tokens)[:, None]),
        "line_start": distant & (key == line_starts(tokens)[:, None]),
    }
    asked = {name: mask for name, mask in distant_masks.items() if name in shares}
    named = torch.stack([key.expand(n_token, n_token) == 0, *asked.values()]).sum(0)
    masks = {"previous": previous, "self": own, "first": first}
    masks |= {name: mask & (named == 1) for name, mask in asked.items()}
    return {name: masks[name] for name in shares}


def word_starts(tokens: Sequence[str]) -> Tensor:
    """Return the index of the first token of each token's word; -1 for tokens that are white space.

    A token that begins with white space and goes on with something else, as byte-level vocabularies have them, begins a
    word.
    """
    starts: list[int] = []
    start = -1
    for index, token in enumerate(tokens):
        if not token.strip():
            start = -1
        elif start < 0 or token[0].isspace():
            start = index
        starts.append(start)
    return torch.tensor(starts)


def line_starts(tokens: Sequence[str]) -> Tensor:
    """Return the index of the first token of each token's line; a token that ends in a newline closes its line."""
    starts: list[int] = []
    start = 0
    for index, token in enumerate(tokens):
        starts.append(start)
        if token.endswith("\n"):
            start = index + 1
    return torch.tensor(starts)
