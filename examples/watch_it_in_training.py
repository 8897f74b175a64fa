"""Watch the induction head appear: a head that looks one token back comes first, and it is built on that.

    python -m examples.watch_it_in_training

An induction head asks for the token that stands after an earlier copy of its own; so some head in a layer below must
have told every token which one stands before it (Elhage et al. 2021, "Induction Heads"). The model `growing` kept
twelve snapshots of its training; all are scored on the same random tokens, repeated.
"""

import minigpt


def main() -> None:
    """Print when each of the two appeared, and its score at every snapshot."""
    snapshots = minigpt.load_snapshots("checkpoints/growing")
    found = minigpt.head_development(snapshots)
    for name in ("previous", "induction"):
        scores = found.scores[name]
        layer, head = divmod(int(scores[-1].argmax()), scores.shape[-1])
        step = found.appeared(name, layer, head)
        values = scores[:, layer, head].tolist()
        print(f"{name}: L{layer}H{head} appeared at step {step}, {values[0]:.3f} → {values[-1]:.3f}")
        print("  " + ", ".join(f"{at} {value:.2f}" for at, value in zip(found.steps, values, strict=True)))
        minigpt.development_curves(found, name).show()


if __name__ == "__main__":
    main()
