"""Results of experiments made by hand: records with chosen losses, and pictures of random models."""

import json
from dataclasses import asdict
from pathlib import Path

from minigpt import load_checkpoint
from minigpt.experiment_pictures import save_pictures
from minigpt.experiments import Record
from tests.ui.viewing import save_random_model

PROMPT = "the <b> sat"
LOSSES = {"n_layer 1": [2.5, 2.7, 2.6], "n_layer 2": [2.1, 2.31, 2.2], "n_layer 4": [2.45, 2.9, 2.4]}
"""Two beats one beyond doubt; four and one are not told apart."""


def made_records(losses=None):
    """Return a record for every variant and seed, with losses that fall to the given ones."""
    return [
        Record(
            variant=variant,
            seed=11 + index,
            parameters=100 * len(variant) + place,
            loss=loss,
            history=[(0, 4.0, 4.1), (20, loss + 0.3, loss + 0.2), (40, loss - 0.1, loss)],
            seconds=1.5 + index,
            prompt=PROMPT,
            sample=f" on {variant} with <i>{11 + index}</i>",
        )
        for place, (variant, values) in enumerate((losses or LOSSES).items())
        for index, loss in enumerate(values)
    ]


def write_records(folder: Path, records, experiment="n-layer") -> None:
    told = {"experiment": experiment, "preset": "transformer-small", "steps": 40, "characters": 1234}
    folder.mkdir(parents=True, exist_ok=True)
    content = {"of": told, "records": [asdict(each) for each in records]}
    (folder / "records.json").write_text(json.dumps(content), encoding="utf-8")


def save_results(folder: Path, models: Path, *, losses=None, experiment="n-layer") -> None:
    """Write what `python -m minigpt compare` leaves: records, and a picture of each variant but the last.

    Args:
        folder: For the results.
        models: For the random models that the pictures are of: layers as the names say, three heads each.
        losses: One for each seed, by variant.
        experiment: Which one it was.
    """
    records = made_records(losses)
    write_records(folder, records, experiment)
    kept = list(dict.fromkeys(each.variant for each in records))[:-1]
    for count, _ in enumerate(kept, start=1):
        save_random_model(models / str(count), "abcdefhst <>", n_layer=count, n_head=3, block_size=12)
    pictured = {name: load_checkpoint(models / str(count)) for count, name in enumerate(kept, start=1)}
    save_pictures(folder, records, pictured)
