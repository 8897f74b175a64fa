"""The chapters' experiments: the same training with one thing changed, several times over.

Each variant is trained with several seeds; a seed means the same batches for all variants, so they are compared seed by
seed. Every run leaves a record; tables and sentences are made of the records alone, so they can be made again. Knows no
picture and no page.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from minigpt.checkpoint import Checkpoint, save_checkpoint
from minigpt.config import TrainingConfig, is_number, is_whole
from minigpt.errors import ConfigError
from minigpt.generation import generate
from minigpt.presets import PRESETS, Experiment
from minigpt.recipe import new_model
from minigpt.splits import estimate_loss, train_validation_split
from minigpt.tokenizer import CharTokenizer
from minigpt.training import replace_file, train

RECORDS_FILE = "records.json"
BATCHES = 100
"""Batches of the validation split that a variant's loss is measured on, the same for all."""
SAMPLE_TOKENS = 300
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t for 95 % (two-sided) by the number of differences."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one training run of an experiment came to.

    Attributes:
        variant: Which model.
        seed: Which seed.
        parameters: The number of the model's parameters.
        loss: On `BATCHES` batches of the validation split, dropout off, in nats per token.
        history: Estimated losses on the way: step, training loss, validation loss.
        seconds: Time in training steps.
        prompt: The first `block_size` tokens of the text.
        sample: `SAMPLE_TOKENS` tokens that it writes after them, drawn with the run's seed.
    """

    variant: str
    seed: int
    parameters: int
    loss: float
    history: list[tuple[int, float, float]]
    seconds: float
    prompt: str
    sample: str


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What the folder of an experiment holds in numbers.

    Attributes:
        experiment: Its name.
        preset: The settings that all variants share.
        steps: Optimizer steps of each run.
        characters: Length of the training text.
        records: What its runs came to, in the order in which they ended.
    """

    experiment: str
    preset: str
    steps: int
    characters: int
    records: list[Record]

    @property
    def variants(self) -> list[str]:
        """The variants that have records, the one trained first at the beginning."""
        return list(dict.fromkeys(record.variant for record in self.records))


COLUMNS = ("variant", "parameters", "loss", "spread", "difference", "seeds", "seconds")
"""What the table tells of each variant."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A variant in the table.

    Attributes:
        variant: Its name.
        against: The variant that it is compared with.
        parameters: The number of parameters.
        seeds: Those that are counted, in order.
        losses: One for each seed, in the order of the seeds.
        mean: Of the losses.
        spread: Their standard deviation (n - 1); NaN for a single seed.
        difference: Mean difference to the variant it is compared with, seed by seed; 0 for that one itself.
        margin: Half the width of the 95 % interval of that mean (Student's t); NaN for a single seed.
        seconds: Mean time in training steps.
    """

    variant: str
    against: str
    parameters: int
    seeds: list[int]
    losses: list[float]
    mean: float
    spread: float
    difference: float
    margin: float
    seconds: float

    @property
    def told_apart(self) -> bool:
        """Whether the interval around the difference leaves out 0."""
        return abs(self.difference) > self.margin

    def cells(self) -> list[str]:
        """Return what stands in the columns `COLUMNS`."""
        return [
            self.variant,
            f"{self.parameters:,}",
            f"{self.mean:.4f}",
            f"{self.spread:.4f}",
            f"{self.difference:+.4f} ± {self.margin:.4f}",
            str(len(self.losses)),
            f"{self.seconds:.1f}",
        ]


def run_experiment(
    experiment: Experiment, text: str, *, out: str | os.PathLike[str], steps: int, seeds: int
) -> Iterator[tuple[int, int, Record | None]]:
    """Train every variant with every seed, writing each record when it is there; what is there is not done again.

    The model of the first seed of each variant is kept as a checkpoint, in a folder with the variant's name.

    Args:
        experiment: One of `minigpt.presets.EXPERIMENTS`.
        text: The training text.
        out: The folder for records and models.
        steps: Optimizer steps of each run.
        seeds: How many seeds, from that of the preset on.

    Yields:
        Runs that are done, runs in all, and the newest record (None for those that were there before).

    Raises:
        ConfigError: `compare_differs` if the records in the folder are of another experiment, size, text or length;
            `number_out_of_range` if seeds or steps make no sense.
        CorpusError: If the text is too short.
    """
    if not 1 <= seeds <= max(STUDENT):
        raise ConfigError("number_out_of_range", name="seeds", value=seeds, allowed=f"1 … {max(STUDENT)}")
    folder, told = Path(out), _told(experiment.name, experiment.preset, steps, len(text))
    records = read_records(folder, told)
    base = PRESETS[experiment.preset].training
    wanted = [(name, base.seed + index) for index in range(seeds) for name in experiment.variants]
    done = {(record.variant, record.seed) for record in records}
    count = sum(run in done for run in wanted)
    yield count, len(wanted), None
    for variant, seed in wanted:
        if (variant, seed) in done:
            continue
        settings = replace(base, steps=steps, seed=seed, evaluate_every=max(1, steps // 10), evaluate_batches=20)
        record, ckpt = _run(experiment, variant, text, settings)
        if seed == base.seed:
            save_checkpoint(
                folder / folder_of(variant), ckpt.model, ckpt.tokenizer, training={"steps": steps, "seed": seed}
            )
        records.append(record)
        _write(folder, told, records)
        count += 1
        yield count, len(wanted), record


def folder_of(variant: str) -> str:
    """Return the name of the folder that a variant's model is kept in."""
    return variant.replace(" ", "-")


def _run(experiment: Experiment, variant: str, text: str, settings: TrainingConfig) -> tuple[Record, Checkpoint]:
    """Train one variant with one seed."""
    tokenizer = CharTokenizer(text)
    shared = PRESETS[experiment.preset]
    model_config = replace(shared.model_config(tokenizer.vocab_size), **experiment.variants[variant])
    model = new_model(model_config, settings)
    history: list[tuple[int, float, float]] = []
    seconds = 0.0
    for progress in train(model, tokenizer, text, settings):
        if progress.train_loss is not None and progress.validation_loss is not None:
            history.append((progress.step, progress.train_loss, progress.validation_loss))
            seconds = progress.seconds
    ids = torch.tensor(tokenizer.encode(text))
    splits = {"validation": train_validation_split(ids)[1]}
    generator = torch.Generator().manual_seed(PRESETS[experiment.preset].training.seed)
    loss = estimate_loss(model, splits, settings.batch_size, BATCHES, generator)["validation"]
    ckpt = Checkpoint(model=model, tokenizer=tokenizer)
    prompt = text[: model.block_size]
    record = Record(
        variant=variant,
        seed=settings.seed,
        parameters=ckpt.parameters,
        loss=loss,
        history=history,
        seconds=round(seconds, 1),
        prompt=prompt,
        sample="".join(step.token for step in generate(ckpt, prompt, max_new_tokens=SAMPLE_TOKENS, seed=settings.seed)),
    )
    return record, ckpt


def read_records(folder: str | os.PathLike[str], told: Mapping[str, Any] | None = None) -> list[Record]:
    """Return the records that an experiment left in a folder, none if it left none.

    Args:
        folder: Where it wrote.
        told: What experiment they have to be of; None for any.

    Raises:
        ConfigError: `compare_differs` if they are of another one, `experiment_damaged` if they cannot be read.
    """
    path = Path(folder) / RECORDS_FILE
    if not path.is_file():
        return []
    saved = read_saved(folder)
    found = _told(saved.experiment, saved.preset, saved.steps, saved.characters)
    if told is not None and found != dict(told):
        raise ConfigError("compare_differs", path=path)
    return saved.records


def read_saved(folder: str | os.PathLike[str]) -> Saved:
    """Return what an experiment left in a folder.

    Raises:
        ConfigError: `experiment_damaged` if there is nothing, or nothing that can be read.
    """
    path = Path(folder) / RECORDS_FILE
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        told: dict[str, Any] = content["of"]
        records = [_checked(entry) for entry in content["records"]]
        name, preset, steps, characters = (told[each] for each in ("experiment", "preset", "steps", "characters"))
        if not (isinstance(name, str) and isinstance(preset, str) and is_whole(steps) and is_whole(characters)):
            raise TypeError("what the records are of is not said")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError("experiment_damaged", path=path) from error
    return Saved(experiment=name, preset=preset, steps=steps, characters=characters, records=records)


def _told(experiment: str, preset: str, steps: int, characters: int) -> dict[str, Any]:
    """Return what records have to be of to go on with them."""
    return {"experiment": experiment, "preset": preset, "steps": steps, "characters": characters}


def _checked(entry: Mapping[str, Any]) -> Record:
    """Return a record that came from a file, each value of the type that it has to have.

    Raises:
        TypeError: If one is not, is missing or is left over.
        ValueError: If a point of the history is no triple.
        LookupError: If one is missing.
    """
    history = [(step, train, validation) for step, train, validation in entry["history"]]
    wholes: list[object] = [entry["seed"], entry["parameters"], *(step for step, _, _ in history)]
    numbers: list[object] = [entry["loss"], entry["seconds"], *(value for point in history for value in point[1:])]
    texts = [isinstance(entry[name], str) for name in ("variant", "prompt", "sample")]
    if not (all(texts) and all(map(is_whole, wholes)) and all(map(is_number, numbers))):
        raise TypeError("a value of a record has another type")
    checked: dict[str, Any] = {**entry, "history": history}
    return Record(**checked)


def _write(folder: Path, told: Mapping[str, Any], records: Sequence[Record]) -> None:
    content = json.dumps({"of": dict(told), "records": [asdict(record) for record in records]}, indent=1)
    replace_file(folder / RECORDS_FILE, content.encode())


def table(experiment: Experiment, records: Sequence[Record], against: str | None = None) -> list[Row]:
    """Return a row for each variant that has records, made of the records alone.

    Args:
        experiment: Which it was.
        records: What its runs came to. Only seeds that all variants have are counted.
        against: The variant that the others are compared with; the first where there is none of this name.
    """
    by_run = {(record.variant, record.seed): record for record in records}
    names = [name for name in experiment.variants if any(record.variant == name for record in records)]
    seeds = sorted({seed for _, seed in by_run if all((name, seed) in by_run for name in names)})
    return [_row(name, against if against in names else names[0], seeds, by_run) for name in names if seeds]


def _row(name: str, against: str, seeds: list[int], by_run: Mapping[tuple[str, int], Record]) -> Row:
    runs = [by_run[name, seed] for seed in seeds]
    losses = [run.loss for run in runs]
    differences = [run.loss - by_run[against, run.seed].loss for run in runs]
    margin = 0.0 if name == against else STUDENT.get(len(seeds), math.nan) * deviation(differences)
    return Row(
        variant=name,
        against=against,
        parameters=runs[0].parameters,
        seeds=seeds,
        losses=losses,
        mean=sum(losses) / len(losses),
        spread=deviation(losses),
        difference=sum(differences) / len(differences),
        margin=margin / math.sqrt(len(seeds)),
        seconds=sum(run.seconds for run in runs) / len(runs),
    )


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation (n - 1) of some numbers; NaN for a single one."""
    if len(values) < 2:
        return math.nan
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Say for each row but the one that the others are compared with what the numbers support."""
    said: list[str] = []
    for row in rows:
        first = row.against
        if row.variant == first:
            continue
        if math.isnan(row.margin):
            said.append(f"{row.variant} against {first}: {row.difference:+.4f} nats with one seed, which says nothing.")
            continue
        measured = (
            f"{row.variant} against {first}: {row.difference:+.4f} ± {row.margin:.4f} nats "
            f"(95 %, {len(row.losses)} seeds)"
        )
        better = "better" if row.difference < 0 else "worse"
        said.append(f"{measured}: {better}." if row.told_apart else f"{measured}: the numbers do not tell them apart.")
    return said


def markdown(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Return the table and what the numbers support as Markdown."""
    lines = [
        f"# {experiment.name}: {experiment.question}",
        "",
        f"Loss in nats per token over {BATCHES} batches of the validation split: mean and standard deviation over "
        "seeds; difference to the first variant, seed by seed, with its 95 % interval; seconds in training steps.",
        "",
        _line(COLUMNS),
        "|" + "---|" * len(COLUMNS),
        *(_line(row.cells()) for row in rows),
        "",
        *(f"- {sentence}" for sentence in verdicts(rows)),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
