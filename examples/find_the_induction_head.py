"""Find the induction head: the one that continues what was there before.

    python -m examples.find_the_induction_head

Random tokens, repeated: nothing in them can be predicted but the repetition. A head that looks at what followed the
same token last time is an induction head (Olsson et al. 2022). Its circuit says what it does with what it finds.
"""

import minigpt


def main() -> None:
    """Print the head, how far it is from an untrained one, and what it pushes."""
    ckpt = minigpt.load_checkpoint("checkpoints/shakespeare")
    table = minigpt.probe_heads(ckpt, samples=10, seed=1)
    for name in ("previous", "induction", "duplicate"):
        (layer, head, score), *_ = table.best(name)
        untrained = float(table.baseline[name][layer, head])
        print(f"{name}: L{layer}H{head} has {score:.3f}; untrained, it would have {untrained:.3f}")

    (layer, head, _), *_ = table.best("induction")
    pushes = minigpt.ov_circuit(ckpt, layer, head, rows=list("aeiou"), most=3)
    for row, ids in zip(pushes.rows, pushes.top_ids.tolist(), strict=True):
        print(f"if it attends to {row!r}, it pushes {[pushes.columns[token] for token in ids]}")

    minigpt.head_scatter(table, "previous", "induction").show()
    minigpt.circuit_map(minigpt.qk_circuit(ckpt, layer, head)).show()


if __name__ == "__main__":
    main()
