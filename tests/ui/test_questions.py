"""The questions of the tabs, without a browser: what is answered, and what is refused."""

import json
import math

import numpy as np
import pytest
import torch

from minigpt import wire
from minigpt.analysis.ablation import compare_continuations, what_if
from minigpt.analysis.circuits import ov_circuit, positional_qk, qk_circuit
from minigpt.analysis.compare import compare_checkpoints, compare_heads, compare_intervention, compare_prompts
from minigpt.analysis.contributions import direct_logits, logit_weighted, rollout, value_weighted
from minigpt.analysis.flow import debug_shapes, dropped_weights, flow, parameter_parts
from minigpt.analysis.forward import forward
from minigpt.analysis.head_finder import find_heads, probe_heads
from minigpt.analysis.head_tables import read_table, write_table
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.lens import logit_lens
from minigpt.analysis.sweeps import edge_sweep, sweep
from minigpt.checkpoint import load_checkpoint, save_checkpoint
from minigpt.ui import asking, comparing, heads, inside, shapes
from minigpt.ui.answers import Answers
from minigpt.ui.messages import Sampling
from minigpt.ui.models import Models
from minigpt.ui.words import LANGUAGES
from minigpt.wire import unpack
from tests.ui.viewing import save_random_model

CHARACTERS = "abcdefghijklmnopqrstuvwxyz ."
TEXT = "the cat and the dog"
NOTHING = {"replace": "zero", "renormalise": True}
SAMPLING = {
    "temperature": 0.8,
    "top_k": 9,
    "top_p": None,
    "min_p": None,
    "repetition_penalty": 1.0,
    "seed": 4,
    "length": 12,
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_random_model(folder / "one", CHARACTERS, n_layer=3, n_head=2, block_size=24)
    save_random_model(folder / "other", CHARACTERS, n_layer=3, n_head=2, block_size=24, seed=9)
    save_random_model(folder / "small", CHARACTERS, n_layer=2, n_head=1, block_size=24)
    return Answers(Models(folder))


@pytest.fixture(scope="module")
def ckpt(answers):
    return answers.models.load("one")


@pytest.fixture(scope="module")
def ids(ckpt):
    return ckpt.tokenizer.encode(TEXT)


@pytest.fixture(scope="module")
def ask(answers, ids):
    """Ask a question about the text; return what is answered, as JSON brings it to the browser."""

    def asked(question, options, about=ids, model="one"):
        message = answers.question(model, about, question, options)
        assert message["kind"] == "answer", message["sentences"]["en"]
        assert message["question"] == question
        return json.loads(json.dumps(message, allow_nan=False))["value"]

    return asked


@pytest.fixture(scope="module")
def refused(answers, ids):
    """Ask a question; return the code and sentence of the notice that comes instead of an answer."""

    def asked(question, options, about=ids, model="one"):
        message = answers.question(model, about, question, options)
        assert message["kind"] == "notice"
        assert set(message["sentences"]) == set(LANGUAGES)
        return message["code"], message["sentences"]["en"]

    return asked


# --- what if ----------------------------------------------------------------------------------------------------------


def test_what_a_change_does_is_what_the_analysis_says(ask, ckpt):
    change = {**NOTHING, "heads_off": [[1, 0], [2, 1]], "head_scales": [[0, 1, 1.5]], "edges_off": [[0, 0, 9, 4]]}
    found = ask("what_if", {"change": change})
    expected = what_if(
        ckpt,
        TEXT,
        Intervention(heads_off=((1, 0), (2, 1)), head_scales=((0, 1, 1.5),), edges_off=((0, 0, 9, 4),)),
    )
    assert found["kl"] == pytest.approx(expected.kl.tolist(), rel=1e-3, abs=1e-9)
    assert max(found["kl"]) > 0.01
    assert found["loss"] == pytest.approx([expected.loss_before, expected.loss_after], rel=1e-4)
    for place in (0, 7, 18):
        for token, before, after in zip(
            found["ids"][place], found["before"][place], found["after"][place], strict=True
        ):
            assert before == pytest.approx(float(expected.before[place, token]), rel=1e-3)
            assert after == pytest.approx(float(expected.after[place, token]), rel=1e-3)
        listed = torch.tensor(found["ids"][place])
        moved = (expected.after - expected.before)[place].abs()
        assert float(moved[listed].min()) >= float(moved.sort(descending=True).values[len(listed)]) - 1e-6
    follows = ckpt.tokenizer.encode(TEXT)[8]
    assert found["following"][7] == pytest.approx(
        [float(expected.before[7, follows]), float(expected.after[7, follows])], rel=1e-3
    )
    assert {found["pieces"][str(token)] for token in found["ids"][7]} <= set(CHARACTERS)


def test_the_largest_change_is_listed_though_ten_tokens_are_likelier_before_and_after(tmp_path):
    save_random_model(tmp_path / "even", CHARACTERS, n_layer=3, n_head=2, block_size=24)
    even = load_checkpoint(tmp_path / "even")
    even.model.lm_head.weight.data[:12] = 0  # twelve tokens share nearly everything, whatever the model thinks
    even.model.lm_head.bias.data[:12] = 6
    save_checkpoint(tmp_path / "even", even.model, even.tokenizer)
    ids = even.tokenizer.encode(TEXT)
    change = {**NOTHING, "attention_off": [[0], [1], [2]]}
    found = Answers(Models(tmp_path)).question("even", ids, "what_if", {"change": change})["value"]
    expected = what_if(even, TEXT, Intervention(attention_off=(0, 1, 2)))
    for place in (1, 7, 18):
        most = int((expected.after - expected.before)[place].abs().argmax())
        assert most >= 12
        assert found["ids"][place][0] == most


def test_where_nothing_changed_the_likeliest_tokens_are_listed(ask, ckpt):
    found = ask("what_if", {"change": {**NOTHING, "edges_off": [[0, 0, 9, 4]]}})
    before = what_if(ckpt, TEXT, Intervention()).before
    assert found["ids"][6] == before[6].topk(10).indices.tolist()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"heads_off": [[0, 1]], "replace": "mean"}, Intervention(heads_off=((0, 1),), replace="mean")),
        ({"attention_off": [[1]], "mlps_off": [[2]]}, Intervention(attention_off=(1,), mlps_off=(2,))),
        (
            {"edges_off": [[1, 1, 12, 3]], "renormalise": False},
            Intervention(edges_off=((1, 1, 12, 3),), renormalise=False),
        ),
    ],
)
def test_every_kind_of_change_arrives(ask, ckpt, given, expected):
    found = ask("what_if", {"change": {**NOTHING, **given}})
    assert found["kl"] == pytest.approx(what_if(ckpt, TEXT, expected).kl.tolist(), rel=1e-3, abs=1e-9)


def test_no_change_changes_nothing(ask):
    found = ask("what_if", {"change": NOTHING})
    assert found["kl"] == [0] * len(TEXT)
    assert found["loss"][0] == found["loss"][1]
    assert found["before"] == found["after"]


def test_a_single_token_has_no_loss(ask, ids):
    assert ask("what_if", {"change": NOTHING}, ids[:1])["loss"] == [None, None]


def test_both_continuations_are_drawn_with_the_same_numbers(ask, ckpt):
    change = {**NOTHING, "heads_off": [[0, 0], [0, 1], [1, 1]]}
    found = ask("continuations", {"change": change, "length": 12, "sampling": SAMPLING})
    sampling = Sampling(temperature=0.8, top_k=9, top_p=None, seed=4)
    off = Intervention(heads_off=((0, 0), (0, 1), (1, 1)))
    expected = compare_continuations(ckpt, TEXT, off, max_new_tokens=12, **sampling.options())
    assert (found["before"], found["after"]) == (expected.before, expected.after)
    assert found["difference"] == expected.first_difference is not None
    assert found["sampling"] == SAMPLING
    same = ask("continuations", {"change": NOTHING, "length": 12, "sampling": SAMPLING})
    assert same["before"] == same["after"] == found["before"]
    assert same["difference"] is None


@pytest.mark.parametrize("replace", ["zero", "mean"])
def test_the_sweep_is_the_one_of_the_analysis(ask, ckpt, replace):
    found = ask("sweep", {"position": 6, "replace": replace})
    expected = sweep(ckpt, TEXT, position=6, replace=replace)
    assert (found["position"], found["token"]) == (6, TEXT[7])
    assert found["probability"] == pytest.approx(expected.probability, rel=1e-4)
    for name in ("probability", "loss", "kl"):
        for row, values in zip(found["heads"][name], expected.head_map(name).tolist(), strict=True):
            assert row == pytest.approx(values, rel=1e-3, abs=1e-7)
        assert found["mlps"][name] == pytest.approx(expected.mlps.named(name).tolist(), rel=1e-3, abs=1e-7)


def test_the_edge_sweep_is_the_one_of_the_analysis(ask, ckpt):
    found = ask("edge_sweep", {"layer": 1, "head": 1, "query": 9, "position": 12, "token": 7, "rest": "keep"})
    expected = edge_sweep(ckpt, TEXT, 1, 1, query=9, position=12, token=7, renormalise=False)
    assert (found["token"], found["probability"]) == (expected.token, pytest.approx(expected.probability, rel=1e-3))
    assert found["keys"]["probability"] == pytest.approx(expected.keys.probability.tolist(), rel=1e-3, abs=1e-7)
    assert found["weight"] == pytest.approx(expected.weight.tolist(), rel=1e-3)
    assert len(found["weight"]) == 10
    assert found["keys"]["kl"] == pytest.approx(expected.keys.kl.tolist(), rel=1e-3, abs=1e-7)


# --- views ------------------------------------------------------------------------------------------------------------


def seen(answers, ids, view, change=None):
    """Return the numbers that the browser gets for all heads, and the half of a thousandth that they may be off."""
    message = answers.question("one", ids, "view", {"view": view, "change": change})
    assert message["kind"] == "view", message["sentences"]["en"]
    json.dumps(message, allow_nan=False)
    span = message["top"] - message["low"]
    past = np.tril(np.ones((len(ids), len(ids)), bool))
    return np.where(past, message["low"] + unpack(message)["pattern"] * span, 0), span / 1990, message


def test_every_view_is_the_analysis_to_half_a_thousandth_of_its_scale(answers, ids, ckpt):
    inside = forward(ckpt.model, torch.tensor(ids)).inside
    change = {**NOTHING, "heads_off": [[0, 1]]}
    found = what_if(ckpt, TEXT, Intervention(heads_off=((0, 1),)))
    before, after = found.inside_before.pattern[0], found.inside_after.pattern[0]
    expected = {
        "value": value_weighted(ckpt.model, inside),
        "logit": logit_weighted(ckpt, TEXT),
        "rollout": rollout(inside.pattern[0])[:, None].expand(-1, 2, -1, -1),
        "after": after,
        "difference": after - before,
    }
    for view, cells in expected.items():
        numbers, half, message = seen(answers, ids, view, change)
        assert np.abs(numbers - cells.numpy()).max() <= half, view
        assert (message["low"], message["top"]) == (
            pytest.approx(-float(cells.abs().max()) if view in ("logit", "difference") else 0),
            pytest.approx(1 if view in ("rollout", "after") else float(cells.abs().max())),
        )
    assert float(expected["difference"].min()) < -0.01 < 0.01 < float(expected["difference"].max())


def test_where_nothing_differs_the_scale_still_has_two_ends(answers, ids):
    numbers, half, message = seen(answers, ids, "difference", NOTHING)
    assert (message["low"], message["top"]) == (-1, 1)
    assert np.abs(numbers).max() <= half


def test_more_cells_than_can_travel_are_refused(refused, monkeypatch):
    monkeypatch.setattr(wire, "LARGEST_MESSAGE", 100)
    assert refused("view", {"view": "value"})[0] == "too_much_work"


@pytest.mark.parametrize("options", [{"view": "upside down"}, {"view": "after"}, {"view": ["value"]}])
def test_a_view_that_there_is_not_is_refused(refused, options):
    assert refused("view", options)[0] == "wrong_type"


# --- heads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["text", "probe"])
def test_the_heads_are_scored_beside_untrained_ones(ask, ckpt, source):
    found = ask("heads", {"source": source})
    expected = find_heads(ckpt, TEXT) if source == "text" else probe_heads(ckpt)
    assert found["source"] == source
    assert found["names"] == list(expected.scores)
    for name in found["names"]:
        for mine, theirs in ((found["scores"], expected.scores), (found["untrained"], expected.baseline)):
            for row, values in zip(mine[name], theirs[name].tolist(), strict=True):
                assert [math.nan if each is None else each for each in row] == pytest.approx(
                    values, rel=1e-3, nan_ok=True
                )
    assert found["scores"] != found["untrained"]


def test_scores_that_lie_beside_the_model_are_taken_from_there(ask, ckpt, monkeypatch):
    path = write_table(ckpt)
    expected = probe_heads(ckpt)
    monkeypatch.setattr(heads, "probe_heads", lambda *_, **__: pytest.fail("they were computed anew"))
    found = ask("heads", {"source": "probe"})
    path.unlink()
    assert found["scores"]["induction"][2] == pytest.approx(expected.scores["induction"][2].tolist(), rel=1e-3)
    assert found["counted"] == expected.counted


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: {**kept, "weights": "0" * 64},
        lambda kept: {**kept, "version": 2},
        lambda kept: {**kept, "scores": {**kept["scores"], "self": [[0.5]]}},
        lambda kept: {**kept, "scores": {**kept["scores"], "self": "high"}},
        lambda kept: {name: value for name, value in kept.items() if name != "untrained"},
        lambda kept: [kept],
    ],
)
def test_scores_of_other_weights_or_of_another_form_say_nothing(ckpt, damage):
    path = write_table(ckpt)
    assert read_table(ckpt) is not None
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    found = read_table(ckpt)
    path.unlink()
    assert found is None


# --- inside -----------------------------------------------------------------------------------------------------------


def test_the_terms_of_a_logit_sum_to_it(ask, ckpt):
    token = ckpt.tokenizer.encode("q")[0]
    found = ask("logit_terms", {"position": 11, "token": token})
    expected = direct_logits(ckpt, TEXT, position=11, token=token)
    assert (found["token"], found["id"], found["position"]) == ("q", token, 11)
    own = ckpt.model(torch.tensor([ckpt.tokenizer.encode(TEXT)]))[0].detach()
    assert found["logit"] == pytest.approx(float(own[0, 11, token]), rel=1e-4)
    assert abs(found["remainder"]) < 1e-4
    terms = [found[name] for name in ("embedding", "position_embedding", "norm_bias", "head_bias")]
    terms += [share for row in found["heads"] for share in row] + found["attention_bias"] + found["mlps"]
    assert sum(terms) == pytest.approx(found["logit"], rel=1e-3)
    assert found["heads"][2] == pytest.approx(expected.heads[2].tolist(), rel=1e-3)
    assert found["sources"][1][1] == pytest.approx(expected.sources[1, 1, :12].tolist(), rel=1e-3, abs=1e-9)


def test_the_lens_ends_with_what_the_model_says(ask, ckpt):
    found = ask("lens", {})
    expected = logit_lens(ckpt, TEXT)
    assert found["top"] == expected.top_ids.tolist()
    assert found["final"] == found["top"][-1]
    assert found["kl"][-1] == [0] * len(TEXT)
    assert found["final_probability"][2] == pytest.approx(expected.final_probability[2].tolist(), rel=1e-3)
    assert {int(token) for token in found["pieces"]} == {*expected.top_ids.flatten().tolist()}


@pytest.mark.parametrize(("kind", "analysis"), [("qk", qk_circuit), ("ov", ov_circuit)])
def test_a_small_vocabularys_circuit_comes_whole(ask, ckpt, kind, analysis):
    found = ask("circuit", {"layer": 2, "head": 1, "kind": kind}, [0])
    expected = analysis(ckpt, 2, 1)
    matrix = expected.matrix - expected.matrix.mean(1, keepdim=True) if kind == "qk" else expected.matrix
    assert found["rows"] == list(range(28))
    for row, values in zip(found["matrix"], matrix.tolist(), strict=True):
        assert row == pytest.approx(values, rel=1e-3, abs=1e-5)
    assert found["top"][5] == expected.top_ids[5, :8].tolist()
    assert found["pieces"] == {str(token): ckpt.tokenizer.piece(token) for token in range(28)}


def test_of_a_large_vocabulary_only_the_texts_tokens_and_their_strongest_come(ask, ckpt, ids, monkeypatch):
    monkeypatch.setattr(inside, "MOST_SIDE", 20)
    found = ask("circuit", {"layer": 0, "head": 1, "kind": "ov"})
    assert found["matrix"] is None
    assert found["rows"] == list(dict.fromkeys(ids))
    expected = ov_circuit(ckpt, 0, 1, rows=found["rows"])
    assert found["bottom"] == expected.bottom_ids[:, :8].tolist()
    listed = {token for name in ("top", "bottom") for row in found[name] for token in row}
    assert {int(token) for token in found["pieces"]} == {*found["rows"], *listed}


def test_the_preferred_positions_have_no_future(ask, ckpt):
    found = ask("circuit", {"layer": 1, "head": 0, "kind": "position"}, [0])
    expected = positional_qk(ckpt, 1, 0).pattern
    assert [len(row) for row in found["pattern"]] == list(range(1, 25))
    assert found["pattern"][9] == pytest.approx(expected[9, :10].tolist(), rel=1e-3)


# --- model ------------------------------------------------------------------------------------------------------------


def pictured(packed):
    """Return the pictures of an answer as numbers, as the browser reads them."""
    # Named otherwise, as a `pattern` travels in another way in other messages.
    arrays = {f"the {name}": place for name, place in packed["arrays"].items()}
    tables = unpack({"version": wire.VERSION, "payload": packed["payload"], "arrays": arrays})
    return {name: (tables[f"the {name}"].astype(float) - 32768) / 32767 * most for name, most in packed["most"].items()}


def test_the_way_of_the_text_is_the_flow_with_a_picture_of_every_step(ask, ckpt, ids):
    found = ask("flow", {"layer": 1, "head": 1})
    idx = torch.tensor([ids])
    expected = flow(ckpt.model, idx, 1, 1)
    assert (found["layer"], found["head"], found["residual"], found["head_size"]) == (1, 1, True, 8)
    said = [f"({', '.join(map(str, stage['shape']))})" for stage in found["stages"]]
    assert said == [line.rsplit("  ", 1)[1] for line in debug_shapes(ckpt.model, idx).splitlines()]
    pictures = pictured(found["pictures"])
    for stage, its in zip(found["stages"], expected.stages, strict=True):
        assert (stage["name"], stage["code"], tuple(stage["axes"])) == (its.name, its.code, its.axes)
        if its.name == "ids":
            continue
        numbers = its.values.flatten(0, -2).numpy()
        most = np.abs(numbers).max()
        assert np.abs(pictures[its.name] - numbers).max() <= most / 15_000, its.name
        in_short = [stage[each] for each in ("low", "high", "mean", "deviation")]
        assert in_short == pytest.approx([numbers.min(), numbers.max(), numbers.mean(), numbers.std()], rel=1e-3)
    assert (pictures["pattern"][np.triu_indices(len(ids), 1)] == 0).all()
    for point, values in enumerate(expected.stream):
        assert np.abs(pictures[f"stream_{point}"] - values[0].numpy()).max() <= float(values.abs().max()) / 15_000
    assert [each["shape"] for each in found["stream"]] == [[1, len(ids), 16]] * 4


def test_large_pictures_are_put_on_few_cells(ask, ckpt, ids, monkeypatch):
    monkeypatch.setattr(shapes, "SIDE", 6)
    pictures = pictured(ask("flow", {"layer": 0, "head": 0})["pictures"])
    assert pictures["logits"].shape == (5, 6)  # 19 tokens by fours, 28 token ids by fives
    logits = flow(ckpt.model, torch.tensor([ids]))["logits"].values[0].numpy()
    block = logits[4:8, 5:10]
    assert pictures["logits"][1, 1] == pytest.approx(block.flat[np.abs(block).argmax()], rel=1e-3)


def test_the_parameters_are_counted_for_other_numbers_of_layers(ask, ckpt):
    found = ask("parameters", {}, [0])
    assert found["own"] == parameter_parts(ckpt.config)
    assert sum(found["own"].values()) == ckpt.parameters
    assert list(found["layers"]) == ["1", "2", "4", "6"]
    assert (
        found["layers"]["4"]["feed_forward"] == 4 * found["layers"]["1"]["feed_forward"] == 4 * (8 * 16 * 16 + 5 * 16)
    )


def test_one_draw_of_dropout_stands_beside_the_weights(ask, ckpt, ids, monkeypatch):
    pattern = flow(ckpt.model, torch.tensor([ids]), 2, 1)["pattern"].values[0]
    found = ask("dropout", {"layer": 2, "head": 1, "dropout": 0.25, "seed": 7})
    drawn = dropped_weights(pattern, 0.25, 7)
    sums = drawn.sum(1)
    pictures = pictured(found["pictures"])
    assert np.abs(pictures["before"] - pattern.numpy()).max() < 1e-4
    assert np.abs(pictures["after"] - drawn.numpy()).max() < 1e-4
    assert (found["own"], found["dropout"], found["seed"], found["first"]) == (0, 0.25, 7, 0)
    assert (found["dropped"], found["cells"]) == (int((drawn == 0).sum() - (pattern == 0).sum()), 19 * 20 // 2)
    assert [found["sum_low"], found["sum_high"]] == pytest.approx([float(sums.min()), float(sums.max())], rel=1e-3)
    assert ask("dropout", {"layer": 2, "head": 1})["dropped"] == 0
    monkeypatch.setattr(shapes, "SIDE", 5)
    found = ask("dropout", {"layer": 2, "head": 1, "dropout": 0.25, "seed": 7})
    assert (found["first"], found["cells"]) == (14, 15)
    assert [found["sum_low"], found["sum_high"]] == pytest.approx(
        [float(sums[14:].min()), float(sums[14:].max())], rel=1e-3
    )
    assert np.abs(pictured(found["pictures"])["after"] - drawn[14:, 14:].numpy()).max() < 1e-4


# --- compare ----------------------------------------------------------------------------------------------------------


def triangle(square):
    """Return the rows of a comparison as they travel: without their future, null where there is no such cell."""
    rows = square.tolist()
    return [[None if math.isnan(cell) else cell for cell in row[: query + 1]] for query, row in enumerate(rows)]


def same_cells(found, expected):
    for row, values in zip(found, triangle(expected), strict=True):
        assert [cell is None for cell in row] == [cell is None for cell in values]
        assert [cell for cell in row if cell is not None] == pytest.approx(
            [cell for cell in values if cell is not None], abs=1e-4
        )


def test_an_edited_text_is_compared_on_common_axes(ask, ckpt):
    other = "the cat sat and a dog"
    found = ask("compare", {"layer": 1, "head": 1, "text": other})
    expected = compare_prompts(ckpt, TEXT, other)
    assert found["slots"] == [[slot.mark, slot.first, slot.second, slot.token] for slot in expected.slots]
    assert {slot[0] for slot in found["slots"]} >= {"same", "inserted"}
    same_cells(found["first"], expected.first[1, 1])
    same_cells(found["second"], expected.second[1, 1])
    both = [index for index, slot in enumerate(expected.slots) if None not in (slot.first, slot.second)]
    moved = expected.difference[2, 0][both].abs().nan_to_num(0).sum(-1).mean() / 2
    assert found["distances"][2][0] == pytest.approx(float(moved), rel=1e-3)


def test_a_head_is_compared_with_another_in_another_model_or_changed(ask, ckpt, answers):
    found = ask("compare", {"layer": 1, "head": 1, "other_layer": 2, "other_head": 0})
    expected = compare_heads(ckpt, TEXT, (1, 1), (2, 0))
    assert (found["other"], found["distances"]) == ([2, 0], None)
    same_cells(found["second"], expected.second[0, 0])
    found = ask("compare", {"layer": 1, "head": 1, "model": "other"})
    expected = compare_checkpoints(ckpt, answers.models.load("other"), TEXT)
    same_cells(found["second"], expected.second[1, 1])
    found = ask("compare", {"layer": 2, "head": 1, "model": "small"})
    assert found == {"shape": [2, 1], "slots": None}
    found = ask("compare", {"layer": 2, "head": 1, "model": "small", "other_layer": 1, "other_head": 0})
    expected = compare_heads(ckpt, TEXT, (2, 1), (1, 0), other=answers.models.load("small"))
    assert (found["other"], found["shape"], found["distances"]) == ([1, 0], [2, 1], None)
    same_cells(found["second"], expected.second[0, 0])
    found = ask("compare", {"layer": 2, "head": 1, "change": {**NOTHING, "heads_off": [[0, 0]]}})
    expected = compare_intervention(ckpt, TEXT, Intervention(heads_off=((0, 0),)))
    same_cells(found["first"], expected.first[2, 1])
    same_cells(found["second"], expected.second[2, 1])
    assert found["distances"][0] == [0, 0]
    assert min(found["distances"][1]) > 0.001


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"text": ""}, "empty_prompt"),
        ({"text": "TEXT"}, "unknown_characters"),
        ({"text": 5}, "wrong_type"),
        ({"text": "a" * 20_001}, "wrong_type"),
        ({"model": "nobody's"}, "unknown_model"),
        ({"other_layer": 3}, "head_out_of_range"),
        ({"other_head": "first"}, "head_out_of_range"),
        ({"change": {"replace": "noise"}}, "wrong_type"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(refused, options, code):
    assert refused("compare", {"layer": 0, "head": 0, **options})[0] == code


def test_texts_with_too_many_places_together_are_refused(refused, monkeypatch):
    monkeypatch.setattr(comparing, "MOST_SLOTS", 18)
    assert refused("compare", {"layer": 0, "head": 0, "text": "zzzzzzzzzzzz"})[0] == "too_much_work"


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (None, "wrong_type"),
        ({}, "wrong_type"),
        ({"replace": "noise", "renormalise": True}, "wrong_type"),
        ({**NOTHING, "heads_off": "all"}, "wrong_type"),
        ({**NOTHING, "heads_off": [[0]]}, "wrong_type"),
        ({**NOTHING, "heads_off": [[0, True]]}, "wrong_type"),
        ({**NOTHING, "heads_off": [[0, 0.5]]}, "wrong_type"),
        ({**NOTHING, "heads_off": [[0, -1]]}, "wrong_type"),
        ({**NOTHING, "heads_off": [[0, 0]] * 2000}, "wrong_type"),
        ({**NOTHING, "heads_off": [[0, 2]]}, "no_such_head"),
        ({**NOTHING, "head_scales": [[0, 0, 2.5]]}, "number_out_of_range"),
        ({**NOTHING, "head_scales": [[0, 0, float("nan")]]}, "wrong_type"),
        ({**NOTHING, "mlps_off": [[3]]}, "no_such_layer"),
        ({**NOTHING, "edges_off": [[0, 0, 3, 4]]}, "edge_out_of_range"),
        ({**NOTHING, "edges_off": [[0, 0, 19, 4]]}, "edge_out_of_range"),
    ],
)
def test_a_change_that_the_model_cannot_have_is_a_sentence(refused, change, code):
    found, sentence = refused("what_if", {"change": change})
    assert found == code, sentence


@pytest.mark.parametrize(
    ("question", "options", "about", "code"),
    [
        ("everything", {}, None, "wrong_type"),
        (["what_if"], {}, None, "wrong_type"),
        ("sweep", None, [], "empty_prompt"),
        ("sweep", {}, "the cat", "tokens_out_of_range"),
        ("sweep", {}, [0, 28], "tokens_out_of_range"),
        ("sweep", {}, [0] * 25, "tokens_out_of_range"),
        ("logit_terms", {"token": "q"}, None, "wrong_type"),
        ("circuit", {"layer": 0, "head": 2, "kind": "qk"}, None, "wrong_type"),
        ("circuit", {"layer": 0, "head": 0, "kind": "kq"}, None, "wrong_type"),
        ("heads", {"source": "memory"}, None, "wrong_type"),
        ("flow", {"layer": 3, "head": 0}, None, "wrong_type"),
        ("flow", {"layer": 0}, None, "wrong_type"),
        ("flow", {"layer": 0, "head": 0}, [28], "tokens_out_of_range"),
        ("dropout", {"layer": 0, "head": 0, "dropout": 1}, None, "wrong_type"),
        ("dropout", {"layer": 0, "head": 0, "seed": -1}, None, "wrong_type"),
        ("sweep", {"position": 19}, None, "wrong_type"),
        ("sweep", {"position": "last"}, None, "wrong_type"),
        ("sweep", {"token": 28}, None, "wrong_type"),
        ("sweep", {"replace": "noise"}, None, "wrong_type"),
        ("edge_sweep", {"layer": 3, "head": 0, "query": 2}, None, "wrong_type"),
        ("edge_sweep", {"layer": 0, "head": 0}, None, "wrong_type"),
        ("edge_sweep", {"layer": 0, "head": 0, "query": 2, "token": 28}, None, "wrong_type"),
        ("edge_sweep", {"layer": 0, "head": 0, "query": 2, "rest": []}, None, "wrong_type"),
        ("continuations", {"change": NOTHING, "length": 10**6}, None, "wrong_type"),
        (
            "continuations",
            {"change": NOTHING, "sampling": {"temperature": -1, "seed": 1}},
            None,
            "temperature_out_of_range",
        ),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(refused, ids, question, options, about, code):
    found, sentence = refused(question, options, ids if about is None else about)
    assert found == code, sentence


def test_an_unknown_model_is_a_sentence(refused):
    assert refused("sweep", {}, model="nobody's")[0] == "unknown_model"


def test_what_would_take_too_long_is_refused_before_it_begins(refused, monkeypatch):
    monkeypatch.setattr(asking, "MOST_WORK", 10**6)
    code, sentence = refused("sweep", {})
    assert code == "too_much_work"
    assert "19 tokens" in sentence
