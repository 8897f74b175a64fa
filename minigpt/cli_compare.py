"""The command `compare`: an experiment of the chapters, with several seeds, as a table and a page.

Imports what needs PyTorch only inside the command, so that `--help` is quick.
"""

import argparse
import os
import sys
from pathlib import Path

from minigpt.presets import EXPERIMENTS, smaller

DEFAULT_STEPS = 1000
DEFAULT_SEEDS = 3


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of `compare`, and its function."""
    parser.description = (
        "Repeat an experiment of the chapters: the same training with one thing changed, with several seeds. Writes "
        "records.json, table.md, report.html, and one model of each variant with what its heads do; a run that was "
        "stopped goes on. The tab Experiments of the page shows what is in experiments/ and runs/."
    )
    parser.add_argument("experiment", choices=list(EXPERIMENTS), help="what is compared")
    parser.add_argument("--corpus", default="tinyshakespeare", help="name or text file (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="of each training (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=DEFAULT_SEEDS, help="trainings of each (default: %(default)s)")
    parser.add_argument(
        "--small",
        action="store_true",
        help="with the chapters' setting for slow machines (transformer-small); single-vs-multi has one size only",
    )
    parser.add_argument("--out", type=Path, help="folder for the results (default: runs/compare-EXPERIMENT)")
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace, _given: list[str]) -> int:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from tqdm import tqdm

    from minigpt.checkpoint import list_checkpoints, load_checkpoint
    from minigpt.corpus import load_corpus
    from minigpt.experiment_pictures import save_pictures
    from minigpt.experiment_report import report
    from minigpt.experiments import folder_of, markdown, read_records, run_experiment, table

    chosen = EXPERIMENTS[options.experiment]
    experiment = smaller(chosen) if options.small else chosen
    out: Path = options.out or Path("runs") / f"compare-{experiment.name}"
    corpus = load_corpus(options.corpus)
    with tqdm(unit="training", dynamic_ncols=True) as bar:
        for count, total, record in run_experiment(
            experiment, corpus.text, out=out, steps=options.steps, seeds=options.seeds
        ):
            bar.total = total
            bar.update(count - bar.n)
            if record is not None:
                bar.write(f"{record.variant}, seed {record.seed}: {record.loss:.4f}", file=sys.stderr)
    records = read_records(out)
    made = markdown(experiment, table(experiment, records))
    kept = {path.name: path for path in list_checkpoints(out)}
    folders = {variant: kept.get(folder_of(variant)) for variant in experiment.variants}
    models = {variant: load_checkpoint(path) for variant, path in folders.items() if path is not None}
    save_pictures(out, records, models)
    (out / "table.md").write_text(made, encoding="utf-8")
    (out / "report.html").write_text(report(experiment, records, models), encoding="utf-8")
    print(made, end="")
    print(f"{out / 'report.html'}: curves, samples and attention", file=sys.stderr)
    return 0
