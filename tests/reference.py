"""The three language models as lists of separate heads: slow, obvious, and what the fast ones must equal.

Written for reading. Nothing here is shared with the package, so that a mistake there cannot hide here.
"""

import math

import torch
from torch import nn


class LoopHead(nn.Module):
    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.size(1)
        key, query = self.key(x), self.query(x)
        scores = torch.matmul(query, key.mT) / math.sqrt(key.size(-1))
        future = self.tril[:length, :length] == 0
        weights = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)
        return torch.matmul(self.dropout(weights), self.value(x)), weights


class LoopHeads(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout):
        super().__init__()
        head_size = n_embd // n_head
        self.heads = nn.ModuleList(LoopHead(n_embd, head_size, block_size, dropout) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        results = [head(x) for head in self.heads]
        joined = torch.cat([out for out, _ in results], dim=-1)
        return self.dropout(self.proj(joined)), torch.stack([weights for _, weights in results], dim=1)


class LoopFeedForward(nn.Module):
    def __init__(self, n_embd, dropout):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.net(x)


class LoopBlock(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout):
        super().__init__()
        self.sa = LoopHeads(n_embd, n_head, block_size, dropout)
        self.ffwd = LoopFeedForward(n_embd, dropout)
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        gathered, weights = self.sa(self.ln1(x))
        x = x + gathered
        return x + self.ffwd(self.ln2(x)), weights


class LoopLanguageModel(nn.Module):
    """What the three share: `(logits, weights)` with logits (B, T, V) and weights (n_layer, B, n_head, T, T)."""

    def __init__(self, vocab_size, block_size, n_embd):
        super().__init__()
        self.block_size = block_size
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)

    def embed(self, idx):
        return self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(idx.size(1)))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.block_size :])
            probabilities = torch.softmax(logits[:, -1], dim=-1)
            idx = torch.cat([idx, torch.multinomial(probabilities, 1)], dim=1)
        return idx


class LoopSingleHead(LoopLanguageModel):
    def __init__(self, vocab_size, block_size, n_embd):
        super().__init__(vocab_size, block_size, n_embd)
        self.sa_head = LoopHead(n_embd, n_embd, block_size, dropout=0.0)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        x, weights = self.sa_head(self.embed(idx))
        return self.lm_head(x), weights[None, :, None]


class LoopMultiHead(LoopLanguageModel):
    def __init__(self, vocab_size, block_size, n_embd, n_head, dropout):
        super().__init__(vocab_size, block_size, n_embd)
        self.sa_heads = LoopHeads(n_embd, n_head, block_size, dropout)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        x, weights = self.sa_heads(self.embed(idx))
        return self.lm_head(x), weights[None]


class LoopTransformer(LoopLanguageModel):
    def __init__(self, vocab_size, block_size, n_embd, n_head, n_layer, dropout):
        super().__init__(vocab_size, block_size, n_embd)
        self.blocks = nn.Sequential(*[LoopBlock(n_embd, n_head, block_size, dropout) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        x, layers = self.embed(idx), []
        for block in self.blocks:
            x, weights = block(x)
            layers.append(weights)
        return self.lm_head(self.ln_f(x)), torch.stack(layers)


def scattered(model, spread=0.3):
    """Give every parameter random numbers: LayerNorm's too, which a fresh model has at 1 and 0, where nothing shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=spread)
    return model
