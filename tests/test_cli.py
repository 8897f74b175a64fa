"""The command line trains, writes and shows; what a person does wrong is one sentence and an exit status."""

import json
import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from minigpt.analysis.head_finder import probe_heads
from minigpt.analysis.head_tables import read_table
from minigpt.analysis.patterns import trace
from minigpt.card import ON_REPETITION, ON_TEXT, repetition_scores
from minigpt.checkpoint import load_checkpoint, save_checkpoint
from minigpt.cli import build_parser, main
from minigpt.config import ModelConfig, TrainingConfig
from minigpt.generation import continuations, generate
from minigpt.model import build_model
from minigpt.splits import train_validation_split, validation_loss
from minigpt.tokenizer import CharTokenizer

TEXT = "To be, or not to be: that is the question.\n" * 40
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
SMALL = [
    *["--block-size", "10", "--n-embd", "12", "--n-head", "3", "--n-layer", "2", "--dropout", "0.1"],
    *["--batch-size", "6", "--steps", "8", "--evaluate-every", "4", "--evaluate-batches", "2", "--save-every", "3"],
]


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "hamlet.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


@pytest.fixture
def checkpoint(tmp_path):
    torch.manual_seed(1)
    tokenizer = CharTokenizer(TEXT)
    model = build_model(ModelConfig(vocab_size=tokenizer.vocab_size, block_size=9, n_embd=12, n_head=3, n_layer=2))
    save_checkpoint(tmp_path / "model", model, tokenizer)
    return str(tmp_path / "model")


def program(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "minigpt", *arguments], capture_output=True, text=True, check=False, env=ONE_THREAD
    )


def test_train_leaves_a_checkpoint_whose_card_states_its_measured_loss(text_file, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["train", "--corpus", text_file, "--out", str(out), *SMALL]) == 0
    ckpt = load_checkpoint(out)
    assert (ckpt.config.block_size, ckpt.config.n_embd, ckpt.config.n_head, ckpt.config.n_layer) == (10, 12, 3, 2)
    _, validation_ids = train_validation_split(torch.tensor(ckpt.tokenizer.encode(TEXT)))
    loss = validation_loss(ckpt.model, validation_ids)
    assert ckpt.training["validation_loss"] == pytest.approx(loss, abs=1e-6)
    assert f"**{loss:.4f}**" in ckpt.card
    assert f"--corpus {text_file} --out {out} --block-size 10" in ckpt.card
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{loss:.4f} nats per token" in said.err
    steps = [json.loads(line)["step"] for line in (out / "training.jsonl").read_text().splitlines()]
    assert steps == [0, 4, 8]


def test_the_cards_heads_are_ranked_by_their_scores(text_file, tmp_path):
    out = tmp_path / "run"
    main(["train", "--corpus", text_file, "--out", str(out), *SMALL])
    rows = re.findall(r"^\| ([\w ]+) \|[^|]*\| (L\d.*) \|$", load_checkpoint(out).card, re.MULTILINE)
    assert [name for name, _ in rows] == [*ON_TEXT, *ON_REPETITION]
    for _, heads in rows:
        scores = [float(head.split()[1]) for head in heads.split(", ")]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_a_head_that_looks_at_what_followed_last_time_scores_as_induction(checkpoint, monkeypatch):
    ckpt = load_checkpoint(checkpoint)
    time = 2 * (ckpt.config.block_size // 2)
    pattern = torch.zeros(2, 3, time, time)
    for query in range(time // 2, time):
        pattern[1, 2, query, query - time // 2 + 1] = 0.75
        pattern[0, 1, query, query - time // 2] = 0.5
    monkeypatch.setattr("minigpt.card.trace_ids", lambda _ckpt, _ids: SimpleNamespace(pattern=pattern))
    scores = repetition_scores(ckpt, torch.arange(30) % 7)
    expected = torch.zeros(2, 3)
    expected[1, 2] = 0.75
    torch.testing.assert_close(scores["induction"], expected)
    expected = torch.zeros(2, 3)
    expected[0, 1] = 0.5
    torch.testing.assert_close(scores["same place"], expected)


def test_resume_brings_its_own_settings_and_ends_like_an_uninterrupted_run(text_file, tmp_path, capsys):
    whole, longer = str(tmp_path / "whole"), str(tmp_path / "longer")
    settings = ["--corpus", text_file, "--preset", "shakespeare", *SMALL]
    assert main(["train", *settings, "--out", whole]) == 0
    assert main(["train", *settings, "--out", longer, "--steps", "4"]) == 0
    assert main(["train", "--resume", "--out", longer]) == 1
    assert "has taken its 4 steps already" in capsys.readouterr().err
    assert main(["train", "--resume", "--out", longer, "--steps", "8"]) == 1
    assert "these differ: steps" in capsys.readouterr().err
    assert main(["train", *settings, "--out", whole]) == 1
    assert "holds a training run already" in capsys.readouterr().err
    constant = [*settings, "--schedule", "constant", "--out"]
    assert main(["train", *constant, str(tmp_path / "a")]) == 0
    assert main(["train", *constant, str(tmp_path / "b"), "--steps", "5"]) == 0
    assert main(["train", "--resume", "--out", str(tmp_path / "b"), "--steps", "8"]) == 0
    one, other = (load_checkpoint(tmp_path / name) for name in "ab")
    for name, tensor in one.model.state_dict().items():
        assert torch.equal(tensor, other.model.state_dict()[name])
    assert other.training["corpus"] == text_file


def test_an_interrupted_run_stops_saved_and_says_how_to_go_on(text_file, tmp_path):
    out = tmp_path / "run"
    endless = ["--steps", "999999", "--save-every", "999999"]
    process = subprocess.Popen(
        [sys.executable, "-m", "minigpt", "train", "--corpus", text_file, "--out", str(out), *SMALL, *endless],
        stderr=subprocess.PIPE,
        env=ONE_THREAD,
    )
    assert process.stderr is not None
    with process.stderr:
        seen = b""
        while b"step     8:" not in seen:
            seen += os.read(process.stderr.fileno(), 1000)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().decode()
    assert process.wait() == 130
    assert f"python -m minigpt train --resume --out {out}" in rest
    assert torch.load(out / "training.pt", weights_only=True)["step"] >= 8


def test_records_tell_every_step_and_the_run_stops_saved_when_nobody_reads_them(text_file, tmp_path, capsys):
    assert main(["train", "--corpus", text_file, "--out", str(tmp_path / "whole"), *SMALL, "--records"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["step"] for record in told] == list(range(9))
    assert told[0]["loss"] is None  # JSON has no NaN
    assert [record["step"] for record in told if record["validation_loss"] is not None] == [0, 4, 8]

    out = tmp_path / "cut"
    endless = ["--steps", "999999", "--save-every", "999999", "--records"]
    process = subprocess.Popen(
        [sys.executable, "-m", "minigpt", "train", "--corpus", text_file, "--out", str(out), *SMALL, *endless],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ONE_THREAD,
    )
    assert process.stdout is not None
    with process.stdout:
        heard = [json.loads(process.stdout.readline())["step"] for _ in range(5)]
    assert process.wait() == 0
    assert torch.load(out / "training.pt", weights_only=True)["step"] >= heard[-1] == 4


def test_processes_share_the_batch_and_train_the_same_model(text_file, tmp_path):
    settings = ["train", "--corpus", text_file, *SMALL, "--dropout", "0"]
    assert main([*settings, "--out", str(tmp_path / "alone")]) == 0
    together = program(*settings, "--out", str(tmp_path / "together"), "--processes", "2")
    assert together.returncode == 0, together.stderr
    assert together.stderr.count("parameters;") == 1
    alone, shared = (load_checkpoint(tmp_path / name) for name in ("alone", "together"))
    for name, tensor in alone.model.state_dict().items():
        torch.testing.assert_close(shared.model.state_dict()[name], tensor, atol=1e-4, rtol=1e-3)
    again = program(*settings, "--out", str(tmp_path / "together"), "--processes", "2")
    assert again.returncode == 1
    assert again.stderr.splitlines()[-1].endswith("Go on with it by --resume, or choose another folder.")


def test_generate_writes_prompt_and_continuation(checkpoint, capsys):
    settings = ["--length", "23", "--temperature", "0.8", "--top-k", "5", "--seed", "3"]
    assert main(["generate", "To be", "--checkpoint", checkpoint, *settings]) == 0
    written = capsys.readouterr().out
    steps = generate(load_checkpoint(checkpoint), "To be", max_new_tokens=23, temperature=0.8, top_k=5, seed=3)
    assert written == "To be" + "".join(step.token for step in steps) + "\n"


def test_generate_writes_several_continuations_with_what_finds_each_again(checkpoint, capsys):
    settings = ["--length", "7", "--min-p", "0.05", "--repetition-penalty", "1.2"]
    assert (
        main(["generate", "To be", "--checkpoint", checkpoint, *settings, "--seed", "3", "--continuations", "2"]) == 0
    )
    written = capsys.readouterr().out
    ckpt = load_checkpoint(checkpoint)
    expected = continuations(ckpt, "To be", 2, max_new_tokens=7, min_p=0.05, repetition_penalty=1.2, seed=3)
    heads = [f"log-probability {each.log_probability:.2f} nats, alone with --seed {each.seed}" for each in expected]
    assert written == f"--- 1: {heads[0]}\nTo be{expected[0].text}\n--- 2: {heads[1]}\nTo be{expected[1].text}\n"
    assert main(["generate", "To be", "--checkpoint", checkpoint, *settings, "--seed", str(expected[1].seed)]) == 0
    assert capsys.readouterr().out == f"To be{expected[1].text}\n"


def test_trace_prints_scores_a_heads_numbers_or_writes_everything(checkpoint, tmp_path, capsys):
    result = trace(load_checkpoint(checkpoint), "not to be, or")
    assert main(["trace", "not to be, or", "--checkpoint", checkpoint]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:3] == ["head", "previous", "self"]
    assert [line[0] for line in lines[1:]] == ["L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"]
    assert main(["trace", "not to be, or", "--checkpoint", checkpoint, "--head", "l1h2"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["L1H2", "4 t", "5 o", "6 ␣", "7 b", "8 e", "9 ,", "10 ␣", "11 o", "12 r"]
    assert [len(line) for line in lines[1:]] == list(range(2, 11))
    printed = torch.tensor([float(weight) for weight in lines[9][1:]])
    torch.testing.assert_close(printed, result.pattern[1, 2, 8], atol=5.1e-4, rtol=0)
    assert main(["trace", "not to be, or", "--checkpoint", checkpoint, "--out", str(tmp_path / "all.npz")]) == 0
    with np.load(tmp_path / "all.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"pattern", "logits", "ids", "tokens", "start"}
        assert np.array_equal(arrays["pattern"], result.pattern.numpy())
        assert "".join(arrays["tokens"]) == "to be, or"
        assert int(arrays["start"]) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["generate", "--checkpoint", "nowhere"], "There is no checkpoint in nowhere"),
        (["train", "--corpus", "nothing.txt", "--out", "run"], "nothing.txt is neither a text file that is there nor"),
        (["train", "--corpus", "{text}", "--n-head", "5", "--out", "run"], "n_embd must be divisible by n_head"),
        (
            ["train", "--corpus", "{text}", "--learning-rate", "0", "--out", "run"],
            "learning_rate is 0.0; it must be > 0",
        ),
        (["train", "--corpus", "{text}", "--device", "cuda:7", "--out", "run"], "no device called cuda:7"),
        (["train", "--corpus", "{text}", "--block-size", "500", "--out", "run"], "at least 501 are needed"),
        (["train", "--corpus", "{text}", "--processes", "3", "--out", "run"], "shared out evenly over 3 processes"),
        (["train", "--resume", "--out", "run"], "There is no run to resume"),
        (["trace", "", "--checkpoint", "{checkpoint}"], "The prompt is empty"),
        (["trace", "x%§", "--checkpoint", "{checkpoint}"], "The model's vocabulary has no"),
        (["trace", "be", "--checkpoint", "{checkpoint}", "--head", "L2H0"], "Heads run from L0H0 to L1H2"),
        (["trace", "be", "--checkpoint", "{checkpoint}", "--head", "second"], "There is no head second"),
        (["trace", "be", "--checkpoint", "{checkpoint}", "--out", "no/such.npz"], "no/such.npz could not be written"),
        (["generate", "be", "--checkpoint", "{checkpoint}", "--top-p", "2"], "top-p is 2.0"),
        (["generate", "be", "--checkpoint", "{checkpoint}", "--continuations", "9"], "between 1 and 8"),
    ],
)
def test_a_persons_mistake_is_one_sentence_and_status_1(
    arguments, sentence, text_file, checkpoint, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    given = [argument.format(text=text_file, checkpoint=checkpoint) for argument in arguments]
    assert main(given) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("minigpt: ")
    assert sentence in said.err.splitlines()[-1]


def test_heads_prints_every_heads_scores_beside_untrained_ones_or_keeps_them(checkpoint, capsys):
    table = probe_heads(load_checkpoint(checkpoint))
    assert main(["heads", str(checkpoint)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["head", *table.scores]
    pair = (float(table.scores["self"][0, 1]), float(table.baseline["self"][0, 1]))
    assert lines[2][0] == "L0H1"
    assert lines[2][lines[0].index("self")] == f"{pair[0]:.3f} ({pair[1]:.3f})"
    assert main(["heads", str(checkpoint), "--save"]) == 0
    assert capsys.readouterr().out.strip().endswith("heads.json")
    assert torch.allclose(read_table(load_checkpoint(checkpoint)).scores["self"], table.scores["self"], atol=1e-5)


@pytest.mark.parametrize(
    "arguments", [[], ["paint"], ["train", "--steps", "many"], ["train", "--preset", "huge"], ["trace"]]
)
def test_wrong_usage_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: minigpt" in capsys.readouterr().err


def test_every_setting_has_an_option_with_help(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["train", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for config in (ModelConfig, TrainingConfig):
        for name in set(config.__dataclass_fields__) - {"vocab_size"}:
            assert re.search(rf"--{name.replace('_', '-')}\b[^\n]*\n? +\S", text), name
    parsed = vars(build_parser().parse_args(["train", "--n_layer", "3", "--gradient-clip", "none", "--tied"]))
    assert (parsed["n_layer"], parsed["gradient_clip"], parsed["tied"]) == (3, None, True)


def test_help_is_quick_and_the_program_runs_as_a_module(checkpoint):
    without = "import sys; sys.modules.update(torch=None, plotly=None); from minigpt.cli import main; main()"
    helped = subprocess.run([sys.executable, "-c", without, "--help"], capture_output=True, text=True, check=True)
    assert "train" in helped.stdout
    assert "generate" in helped.stdout
    done = program("generate", "be", "--checkpoint", checkpoint, "--length", "3", "--seed", "1")
    assert (done.returncode, len(done.stdout)) == (0, 6)
    assert program("generate", "--checkpoint", "nowhere").returncode == 1
