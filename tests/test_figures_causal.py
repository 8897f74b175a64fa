"""Figures of causal evidence: data, tick text, hover text, and scales with their middle at 0."""

import numpy as np
import pytest
import torch

from minigpt.analysis.ablation import compare_continuations, what_if
from minigpt.analysis.circuits import ov_circuit, positional_qk, qk_circuit
from minigpt.analysis.compare import compare_heads, compare_prompts
from minigpt.analysis.contributions import contributions, direct_logits
from minigpt.analysis.development import Development
from minigpt.analysis.head_finder import find_heads
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.lens import logit_lens
from minigpt.analysis.sweeps import edge_sweep, sweep
from minigpt.figures import label
from minigpt.figures_causal import continuation_map, edge_bars, kl_bars, logit_bars, sweep_map
from minigpt.figures_heads import development_curves, head_scatter, score_map
from minigpt.figures_views import circuit_map, contribution_map, difference_map, lens_map, positional_map
from tests.causal import TEXT, checkpoint


@pytest.fixture(scope="module")
def ckpt():
    return checkpoint("no bias")  # 4 layers × 3 heads


def drawn(figure):
    return figure.data[0]


def symmetric(heatmap):
    return heatmap.zmin == -heatmap.zmax and heatmap.zmax == np.nanmax(np.abs(heatmap.z))


def test_a_scatter_shows_every_head_by_name_beside_the_untrained(ckpt):
    table = find_heads(ckpt, TEXT)
    untrained, own = head_scatter(table, "previous", "entropy").data
    assert own.text[5] == "L1H2"
    assert own.x[5] == pytest.approx(float(table.scores["previous"][1, 2]))
    assert own.y[5] == pytest.approx(float(table.scores["entropy"][1, 2]))
    assert untrained.y[5] == pytest.approx(float(table.baseline["entropy"][1, 2]))
    assert own.customdata[5].startswith("L1H2, this model: previous 0.")
    with pytest.raises(ValueError, match="got colour"):
        head_scatter(table, "previous", "colour")


def test_a_score_map_is_layers_by_heads_with_the_untrained_score_in_hover(ckpt):
    table = find_heads(ckpt, TEXT)
    figure = score_map(table, "first")
    assert drawn(figure).z.shape == (4, 3)
    assert (drawn(figure).zmin, drawn(figure).zmax) == (0, 1)
    assert list(figure.layout.yaxis.ticktext) == ["L0", "L1", "L2", "L3"]
    value, untrained = (float(scores["first"][2, 1]) for scores in (table.scores, table.baseline))
    assert drawn(figure).customdata[2][1] == f"L2H1: {value:.3f} (untrained {untrained:.3f})"
    assert score_map(table, "distance").layout.title.text == "distance, tokens of every head"


def test_development_curves_show_every_head_and_when_the_strongest_appeared():
    scores = torch.full((4, 2, 3), 0.05)
    scores[:, 1, 2] = torch.tensor([0.1, 0.2, 0.7, 0.9])
    scores[:, 0, 1] = torch.tensor([0.1, 0.1, 0.8, 0.3])
    scores[:, 0, 0] = torch.nan
    found = Development(steps=[0, 10, 100, 1000], scores={"induction": scores, "entropy": scores + 2})
    figure = development_curves(found)
    assert [curve.name for curve in figure.data][-2:] == ["L0H1", "L1H2"]
    assert len(figure.data) == 6
    assert list(figure.data[-1].y) == pytest.approx([0.1, 0.2, 0.7, 0.9])
    assert list(figure.data[-1].x) == pytest.approx(np.log10([10, 20, 110, 1010]))
    assert list(figure.layout.xaxis.ticktext) == ["0", "10", "100", "1,000"]
    assert figure.data[-1].customdata[3] == "L1H2, step 1,000: induction 0.900"
    assert figure.layout.annotations[0].text == "L1H2 from step 100 on"
    assert figure.layout.shapes[0].x0 == pytest.approx(np.log10(110))
    assert figure.layout.yaxis.range == (0, 1)
    assert development_curves(found, "entropy").layout.yaxis.range is None
    falling = Development(steps=[0, 10], scores={"self": torch.tensor([0.9, 0.2]).view(2, 1, 1)})
    assert not development_curves(falling, "self").layout.shapes
    with pytest.raises(ValueError, match="got colour"):
        development_curves(found, "colour")
    with pytest.raises(ValueError, match="at least one snapshot"):
        development_curves(Development(steps=[], scores={}))


def test_a_sweep_map_has_the_networks_in_its_last_column_and_0_in_the_middle(ckpt):
    found = sweep(ckpt, TEXT)
    figure = sweep_map(found, "loss")
    assert list(figure.layout.xaxis.ticktext) == ["H0", "H1", "H2", "MLP"]
    assert drawn(figure).z[2, 3] == pytest.approx(float(found.mlps.loss[2]))
    assert drawn(figure).z[3, 1] == pytest.approx(float(found.heads.loss[3 * 3 + 1]))
    assert symmetric(drawn(figure))
    assert drawn(figure).customdata[2][3] == f"without L2 MLP: {float(found.mlps.loss[2]):+.4f}"
    assert drawn(figure).customdata[3][1].startswith("without L3H1: ")
    attention_only = sweep_map(sweep(checkpoint("multi-head"), TEXT))
    assert list(attention_only.layout.xaxis.ticktext) == ["H0", "H1", "H2", "H3", "H4"]


def test_edge_bars_stand_at_true_positions():
    found = edge_sweep(checkpoint(block_size=8), TEXT, 1, 3, query=9)
    figure = edge_bars(found)
    assert list(drawn(figure).x) == [5, 6, 7, 8, 9]
    assert list(drawn(figure).y) == pytest.approx(found.keys.probability.tolist())
    assert drawn(figure).customdata[4].startswith("without key '⏎' (9), weight 0.")
    assert figure.layout.title.text == "L1H3: each key hidden from query '⏎' (9)"


def test_kl_bars_say_how_the_loss_changed(ckpt):
    found = what_if(ckpt, TEXT, Intervention(mlps_off=(1,)))
    figure = kl_bars(found)
    assert list(drawn(figure).y) == pytest.approx(found.kl.tolist())
    assert figure.layout.title.text == f"Loss {found.loss_before:.4f} → {found.loss_after:.4f} nats per token"
    assert drawn(figure).customdata[1].startswith("after '␣' (1): ")


def test_logit_bars_show_every_term(ckpt):
    shares = direct_logits(ckpt, TEXT, token="a")
    figure = logit_bars(shares)
    assert list(figure.layout.xaxis.ticktext) == list(shares.shares())
    assert sum(drawn(figure).y) == pytest.approx(shares.logit, abs=1e-5)
    assert f"{shares.logit:.4f}" in figure.layout.title.text


def test_the_lens_writes_its_likeliest_token_into_each_cell(ckpt):
    lens = logit_lens(ckpt, TEXT)
    figure = lens_map(lens)
    assert drawn(figure).z.shape == (5, 13)
    assert list(figure.layout.yaxis.ticktext)[:2] == ["embeddings", "after L0"]
    assert drawn(figure).z[3, 7] == pytest.approx(float(lens.final_probability[3, 7]))
    assert drawn(lens_map(lens, "kl")).z[1, 2] == pytest.approx(float(lens.kl[1, 2]))
    assert drawn(figure).customdata[3][7].startswith("after L2, after 'a' (7): says '")
    with pytest.raises(ValueError, match="got other"):
        lens_map(lens, "other")


def test_circuits_have_a_row_and_a_column_for_every_token(ckpt, monkeypatch):
    wants, pushes = qk_circuit(ckpt, 2, 1), ov_circuit(ckpt, 2, 1, rows=list("abcde"))
    figure = circuit_map(wants)
    assert drawn(figure).z.shape == (12, 12)
    assert np.abs(drawn(figure).z.mean(1)).max() < 1e-5
    assert symmetric(drawn(figure))
    assert list(figure.layout.xaxis.ticktext)[:3] == ["⏎", "␣", "a"]
    assert drawn(circuit_map(pushes)).z.shape == (5, 12)
    assert drawn(circuit_map(pushes)).customdata[1][0].startswith("'b' pushes '⏎': ")
    monkeypatch.setattr("minigpt.analysis.circuits.MOST_CELLS", 5)
    with pytest.raises(ValueError, match="ask for fewer rows"):
        circuit_map(qk_circuit(ckpt, 2, 1))


def test_contributions_leave_the_future_empty_and_stand_at_true_positions():
    found = contributions(checkpoint("no bias", block_size=9), TEXT)
    past = np.tri(9, dtype=bool)
    for show, expected in (("raw", found.raw[2, 1]), ("value", found.value[2, 1]), ("rollout", found.rollout[2])):
        figure = contribution_map(found, 2, 1, show=show)
        assert (drawn(figure).z[past] == expected.numpy()[past]).all()
        assert np.isnan(drawn(figure).z[~past]).all()
        assert drawn(figure).zmax == (float(expected.max()) if show == "value" else 1)
        assert list(drawn(figure).x) == list(range(4, 13))
        value = float(expected[5, 2])
        assert drawn(figure).customdata[5][2] == f"query '⏎' (9), key 'c' (6): {value:.4g}"
    signed = drawn(contribution_map(found, 2, 1, show="logit"))
    assert (signed.z[past] == found.logit[2, 1].numpy()[past]).all()
    most = float(found.logit[2, 1].abs().max())
    assert (signed.zmin, signed.zmax, list(signed.y)) == (-most, most, list(range(4, 13)))
    assert contribution_map(found, 2, 1).layout.title.text == "L2H1: length of what each key hands over"
    assert figure.layout.title.text == "Attention followed through layers 0 to 2"
    with pytest.raises(ValueError, match="got after"):
        contribution_map(found, show="after")
    with pytest.raises(ValueError, match="got 0 and 3"):
        contribution_map(found, 0, 3)


def test_positions_have_no_future(ckpt):
    found = positional_qk(ckpt, 3, 0)
    figure = positional_map(found)
    assert drawn(figure).z.shape == (16, 16)
    assert drawn(figure).z[7, 4] == pytest.approx(float(found.pattern[7, 4]))
    assert np.isnan(drawn(figure).z[2, 3])
    assert figure.layout.title.text == "L3H0, from the position embeddings alone"


def test_two_continuations_stand_below_each_other_and_a_line_where_they_part(ckpt):
    found = compare_continuations(ckpt, "a bad", Intervention(attention_off=(0, 1)), max_new_tokens=9, seed=2)
    figure = continuation_map(found)
    assert drawn(figure).z.tolist() == [found.before_probability, found.after_probability]
    assert list(figure.layout.yaxis.ticktext) == ["as it is", "changed"]
    assert drawn(figure).text[1][4] == label(found.after[4])
    said = f"changed, new token 4 '{label(found.after[4])}': {found.after_probability[4]:.3f}"
    assert drawn(figure).customdata[1][4] == said
    assert figure.layout.shapes[0].x0 == found.first_difference - 0.5
    assert figure.layout.title.text.endswith(f"they part at new token {found.first_difference}")
    same = continuation_map(compare_continuations(ckpt, "a bad", Intervention(), max_new_tokens=3))
    assert not same.layout.shapes
    assert same.layout.title.text == "Both continuations are the same"


def test_differences_are_signed_and_what_one_side_lacks_is_empty(ckpt):
    found = compare_prompts(ckpt, "fed", "fda")
    figure = difference_map(found, layer=1, head=2)
    assert symmetric(drawn(figure))
    assert list(figure.layout.xaxis.ticktext) == ["f<br>0", "−e<br>1", "d<br>2", "+a<br>3"]
    assert np.isnan(drawn(figure).z[1]).all()
    assert drawn(figure).z[2, 0] == pytest.approx(float(found.difference[1, 2, 2, 0]))
    assert "(2 → 1), key 'f' (0): 0." in drawn(figure).customdata[2][0]
    assert drawn(figure).customdata[1][0].endswith("→ not there")
    assert figure.layout.title.text == "L1H2: second prompt − first prompt"
    heads = difference_map(compare_heads(ckpt, TEXT, (0, 1), (3, 2)))
    assert heads.layout.title.text == "L3H2 − L0H1"
    with pytest.raises(ValueError, match="a layer from 0 to 3 and a head from 0 to 2, got 4 and 0"):
        difference_map(found, 4, 0)
