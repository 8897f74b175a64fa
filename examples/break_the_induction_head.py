"""Break the induction head: switch it off and see what the model can no longer do.

    python -m examples.break_the_induction_head

The text says a made-up name twice. When it comes the second time, a model that looks back knows how it goes on. That a
head looks there is no evidence that it matters; that the probability falls without it is.
"""

import minigpt
from minigpt import Intervention

TEXT = "Zarquenbo speaks. The lords hear Zarquen"


def main() -> None:
    """Print what the probability of the right next letter is, before and after."""
    ckpt = minigpt.load_checkpoint("checkpoints/shakespeare")
    table = minigpt.probe_heads(ckpt, samples=10, seed=1)
    heads = tuple((layer, head) for layer, head, _ in table.best("induction", 3))
    print("Looked for repetition:", ", ".join(f"L{layer}H{head}" for layer, head in heads))

    right = ckpt.tokenizer.encode("b")[0]
    for off in (heads[:1], heads):
        found = minigpt.what_if(ckpt, TEXT, Intervention(heads_off=off))
        before, after = float(found.before[-1, right]), float(found.after[-1, right])
        print(f"Without {len(off)} of them: 'b' {before:.3f} → {after:.3f}, {float(found.kl[-1]):.2f} bits apart;")
        print(f"  loss of the whole text {found.loss_before:.3f} → {found.loss_after:.3f} nats per token")
        minigpt.kl_bars(found).show()

    everyone = minigpt.sweep(ckpt, TEXT, token="b")
    minigpt.sweep_map(everyone, "probability").show()
    strongest = int(everyone.heads.probability.argmin())
    print(f"Of all heads, 'b' needs L{strongest // everyone.n_head}H{strongest % everyone.n_head} most.")

    twice = minigpt.compare_continuations(ckpt, TEXT, Intervention(heads_off=heads), max_new_tokens=30, seed=2)
    print("As it is:  ", repr("".join(twice.before)))
    print("Without:   ", repr("".join(twice.after)), f"(they part at token {twice.first_difference})")
    minigpt.continuation_map(twice).show()


if __name__ == "__main__":
    main()
