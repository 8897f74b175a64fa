"""Take a logit apart: why this letter and not another?

    python -m examples.take_a_logit_apart

The logit is a sum: embeddings, every head, every feed-forward network, biases. The terms say who wrote what in the
direction of the chosen letter, and a head's term says which tokens it came from.
"""

import minigpt

TEXT = "ROMEO:\nBut soft, what light through yonder window break"


def main() -> None:
    """Print the largest terms, where the strongest head got its own from, and how the prediction grew."""
    ckpt = minigpt.load_checkpoint("checkpoints/shakespeare")
    shares = minigpt.direct_logits(ckpt, TEXT, token="s", against=" ")
    print(f"Logit of 's' minus that of a blank: {shares.logit:+.3f}, remainder {shares.remainder:.0e}")
    terms = sorted(shares.shares().items(), key=lambda term: -abs(term[1]))
    for name, share in terms[:6]:
        print(f"  {share:+.3f} {name}")

    strongest = int(shares.heads.abs().argmax())
    layer, head = divmod(strongest, ckpt.config.n_head)
    sources = shares.sources[layer, head]
    key = int(sources.abs().argmax())
    print(f"L{layer}H{head} got most from {shares.window.tokens[key]!r} at position {key}: {float(sources[key]):+.3f}")

    lens = minigpt.logit_lens(ckpt, TEXT)
    for point, tokens in enumerate(lens.top_tokens):
        where = "embeddings" if point == 0 else f"after L{point - 1}"
        print(f"{where}: {tokens[-1]!r}, {float(lens.kl[point, -1]):.2f} bits from the end")

    minigpt.logit_bars(shares).show()
    minigpt.lens_map(lens).show()


if __name__ == "__main__":
    main()
