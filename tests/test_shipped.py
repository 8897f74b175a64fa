"""The checkpoints that come with the project are what their cards say."""

import json
import math
import re
import unicodedata
from pathlib import Path

import pytest
import torch

from minigpt.analysis.development import head_development
from minigpt.analysis.head_finder import probe_heads
from minigpt.analysis.head_tables import read_table
from minigpt.card import repetition_scores, text_scores
from minigpt.checkpoint import list_checkpoints, load_checkpoint
from minigpt.config import TrainingConfig
from minigpt.corpus import CORPORA
from minigpt.presets import PRESETS
from minigpt.snapshots import list_snapshots, load_snapshots, snapshot_steps
from minigpt.splits import validation_loss
from minigpt.ui.examples import examples_for

FOLDER = Path(__file__).parents[1] / "checkpoints"
SHIPPED = {"shakespeare": "shakespeare", "chapter": "chapter", "growing": "growing"}
HELD_OUT = """PETRUCHIO:
They shall go forward, Kate, at thy command.
Obey the bride, you that attend on her;
Go to the feast, revel and domineer,
Carouse full measure to her maidenhead,
Be mad and merry, or go hang yourselves:
But for my bonny Kate, she must with me.
Nay, look not big, nor stamp, nor stare, nor fret;
I will be master of what is mine own:
She is my goods, my chattels; she is my house,
My household stuff, my field, my barn,
My horse, my ox, my ass, my any thing;
And here she stands, touch her whoever dare;
I'll bring mine action on the proudest he
That stops my way in Padua. Grumio,
Draw forth thy weapon, we are beset with thieves;
Rescue thy mistress, if thou be a man.
Fear not, sweet wench, they shall not touch
thee, Kate:
I'll buckler thee against a million.
"""  # from the tenth of tiny Shakespeare that no training has seen


ALL = {**SHIPPED, "korean-novels": "korean-novels"}
HELD_OUT_KOREAN = """명호는 다시 눈을 감았다.
혜정은 가만히 앉아 신문을 보다가,
"우리가 이대로 여기에서 늙어 죽을 때까지 아무 알 사람이 없겠지요."
명호는 아무 말 없이 있었다.
그들은 정신이나 육체에 한가지로 피로를 느끼었다.
어둠의 장막이 고적과 싸우는 두 혼을 덮었다.
"""  # from the tenth of KoCoNovel that no training has seen


@pytest.fixture(params=ALL)
def any_shipped(request):
    return load_checkpoint(FOLDER / request.param)


@pytest.fixture(params=SHIPPED)
def shipped(request):
    return load_checkpoint(FOLDER / request.param)


@pytest.fixture
def shakespeare():
    return load_checkpoint(FOLDER / "shakespeare")


def test_all_shipped_checkpoints_are_there_whole_and_small():
    assert {path.name for path in list_checkpoints(FOLDER)} >= set(ALL)
    for name in ALL:
        sizes = {path.name: path.stat().st_size for path in (FOLDER / name).iterdir()}
        assert {"config.json", "model.safetensors", "README.md", "training.jsonl"} <= set(sizes)
        assert sizes["model.safetensors"] < 9_000_000


def test_the_scores_beside_each_model_are_those_of_its_heads(any_shipped):
    kept, fresh = read_table(any_shipped), probe_heads(any_shipped)
    assert kept.counted == fresh.counted
    assert list(kept.scores) == list(fresh.scores)
    for name, values in fresh.scores.items():
        assert torch.allclose(kept.scores[name], values, atol=1e-4, equal_nan=True), name
        assert torch.allclose(kept.baseline[name], fresh.baseline[name], atol=1e-4, equal_nan=True), name


def test_each_was_trained_by_the_preset_that_its_card_names(any_shipped):
    shipped, preset = any_shipped, PRESETS[ALL[any_shipped.path.name]]
    assert f"python -m minigpt train --preset {preset.name} " in shipped.card
    assert shipped.config == preset.model_config(shipped.tokenizer.vocab_size)
    trained = TrainingConfig.from_dict(shipped.training["settings"]).to_dict()
    free = {"evaluate_every", "evaluate_batches", "save_every"}
    assert {name: value for name, value in trained.items() if name not in free} == {
        name: value for name, value in preset.training.to_dict().items() if name not in free
    }
    history = [json.loads(line) for line in (shipped.path / "training.jsonl").read_text().splitlines()]
    assert history[-1]["step"] == shipped.training["steps"] == preset.training.steps
    assert history[-1]["validation_loss"] == pytest.approx(shipped.training["validation_loss"], abs=0.05)


def test_each_card_states_corpus_licence_and_the_loss_in_its_config(any_shipped):
    shipped, corpus = any_shipped, CORPORA[any_shipped.training["corpus"]]
    assert corpus.address in shipped.card
    assert corpus.licence in shipped.card
    assert f"**{shipped.training['validation_loss']:.4f}**" in shipped.card
    assert not re.search(r"/(home|root|tmp|work)/", shipped.card)


def test_each_reads_shakespeare_that_it_has_never_seen(shipped):
    loss = validation_loss(shipped.model, torch.tensor(shipped.tokenizer.encode(HELD_OUT)))
    assert loss < shipped.training["validation_loss"] + 0.2


def test_the_shakespeare_model_is_large_enough_to_look_at_and_good_enough_to_read(shakespeare):
    config = shakespeare.config
    assert config.n_layer >= 4
    assert config.n_head >= 4
    assert config.block_size >= 128
    assert shakespeare.training["validation_loss"] <= 1.50


def test_the_shakespeare_model_has_heads_worth_looking_at(shakespeare):
    ids = torch.tensor(shakespeare.tokenizer.encode(HELD_OUT))
    scores = text_scores(shakespeare, ids)
    assert float(scores["previous"].max()) > 0.9
    assert float(scores["word_start"].max()) > 0.6
    assert float(repetition_scores(shakespeare, ids)["induction"].max()) > 0.2


def test_the_snapshots_show_a_previous_token_head_before_the_induction_head_that_needs_it():
    folder = FOLDER / "growing"
    training = PRESETS["growing"].training
    assert list(list_snapshots(folder)) == snapshot_steps(training.steps, training.snapshots)
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    assert max(sizes) < 9_000_000
    assert sum(sizes) < 25_000_000
    developed = head_development(load_snapshots(folder))
    previous, induction = (developed.scores[name] for name in ("previous", "induction"))
    assert previous[0].max() < 0.1
    assert induction[0].max() < 0.1
    assert float(previous[-1, 0, 2]) > 0.9
    assert float(induction[-1, 2, 1]) > 0.5
    assert developed.appeared("previous", 0, 2) == 200
    assert developed.appeared("induction", 2, 1) == 500


def test_the_last_snapshot_is_the_model(shakespeare):
    steps = dict(load_snapshots(FOLDER / "growing"))
    whole, last = load_checkpoint(FOLDER / "growing"), steps[PRESETS["growing"].training.steps]
    assert last.tokenizer.to_dict() == whole.tokenizer.to_dict() == shakespeare.tokenizer.to_dict()
    assert all(torch.equal(value, last.model.state_dict()[name]) for name, value in whole.model.state_dict().items())


def test_the_korean_model_reads_korean_syllables_in_any_spelling():
    korean = load_checkpoint(FOLDER / "korean-novels")
    assert "CC BY-SA 4.0" in korean.card
    assert korean.config.block_size >= 128
    assert f"| {korean.training['validation_loss'] / math.log(2):.4f} |" in korean.card
    ids = korean.tokenizer.encode(HELD_OUT_KOREAN)
    assert korean.tokenizer.encode(unicodedata.normalize("NFD", HELD_OUT_KOREAN)) == ids
    loss = validation_loss(korean.model, torch.tensor(ids))
    assert loss < korean.training["validation_loss"] + 0.5
    assert all(re.search("[가-힣]", text) for text in examples_for(korean.tokenizer))
