"""Heads found, logits taken apart, the lens, circuits and comparisons: identities and independent computations."""

import math

import pytest
import torch

from minigpt.analysis.circuits import ov_circuit, positional_qk, qk_circuit
from minigpt.analysis.compare import compare_checkpoints, compare_heads, compare_intervention, compare_prompts
from minigpt.analysis.contributions import contributions, direct_logits, logit_weighted, rollout, value_weighted
from minigpt.analysis.forward import forward
from minigpt.analysis.head_finder import find_heads, probe_heads, probe_texts, untrained
from minigpt.analysis.interventions import Intervention
from minigpt.analysis.lens import logit_lens
from minigpt.analysis.patterns import trace
from minigpt.analysis.scores import LINE_SHARES, head_scores, line_starts
from minigpt.checkpoint import load_checkpoint
from minigpt.errors import ConfigError, MiniGPTError, PromptError
from tests import foreign
from tests.causal import TEXT, TOKENIZER, VARIANTS, checkpoint, induction_model

IDX = torch.tensor(TOKENIZER.encode(TEXT))
EVERY_KIND = pytest.mark.parametrize("variant", VARIANTS)


def apart(first, second):
    return float((first - second).detach().abs().max())


# --- heads ------------------------------------------------------------------------------------------------------------


def test_a_hand_built_induction_head_scores_1_on_the_probe():
    table = probe_heads(induction_model(), samples=6)
    assert table.scores["induction"][1, 0] == 1
    assert table.scores["previous"][0, 1] == 1
    assert table.best("induction") == [(1, 0, 1.0)]
    assert table.scores["induction"][1, 1] < 0.2
    assert table.baseline["induction"].max() < 0.3
    assert table.counted["induction"] == 6 * 7
    assert table.counted["duplicate"] == 6 * 6  # of the first repeated token the same is also the first one


def test_the_probe_repeats_different_tokens_and_its_seed_draws_the_same():
    config = checkpoint("gelu", block_size=11).config
    texts = probe_texts(config, samples=4, seed=9)
    assert [len(ids) for ids in texts] == [10] * 4
    assert all(ids[:5] == ids[5:] and len(set(ids)) == 5 for ids in texts)
    assert texts == probe_texts(config, samples=4, seed=9)
    assert texts != probe_texts(config, samples=4, seed=8)


def test_probe_scores_are_means_of_the_weights_they_name():
    ckpt = checkpoint("no bias", block_size=11)
    table = probe_heads(ckpt, samples=3, seed=2)
    collected = []
    for ids in probe_texts(ckpt.config, samples=3, seed=2):
        weights = ckpt.model(torch.tensor([ids]), return_weights=True)[2][:, 0]
        collected.append(torch.stack([weights[..., query, query - 4] for query in range(5, 10)]).mean(0))
    assert apart(table.scores["induction"], torch.stack(collected).mean(0)) < 1e-6


def test_the_untrained_model_is_the_same_for_the_same_seed_and_leaves_the_generator_alone():
    config = checkpoint().config
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    first, second, other = (untrained(config, seed) for seed in (5, 5, 6))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first.lm_head.weight, second.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)


def test_heads_on_a_text_stand_beside_those_of_the_untrained_model():
    ckpt = checkpoint("gelu")
    table = find_heads(ckpt, TEXT, seed=3)
    assert tuple(table.scores) == (*LINE_SHARES, "entropy", "distance")
    assert apart(table.scores["previous"], head_scores(trace(ckpt, TEXT).pattern, list(TEXT))["previous"]) == 0
    weights = untrained(ckpt.config, 3)(IDX[None], return_weights=True)[2][:, 0]
    assert apart(table.baseline["self"], head_scores(weights, list(TEXT))["self"]) < 1e-6
    frame = table.to_frame()
    assert list(frame["head"]) == [f"L{layer}H{head}" for layer in range(3) for head in range(2)]
    assert frame["self_untrained"][3] == pytest.approx(float(table.baseline["self"][1, 1]))
    (layer, head, score), *_ = table.best("entropy", 2)
    assert score == table.scores["entropy"].max() == table.scores["entropy"][layer, head]


def test_a_line_start_head_scores_1_and_the_start_of_the_first_word_in_a_line_is_nobodys():
    tokens = list("abc def\nghij klm\nnop qrs")
    starts = line_starts(tokens).tolist()
    assert starts == [0] * 8 + [8] * 9 + [17] * 7
    pattern = torch.zeros(1, 1, len(tokens), len(tokens))
    for query, start in enumerate(starts):
        pattern[0, 0, query, start] = 1
    scores = head_scores(pattern, tokens, LINE_SHARES)
    assert scores["line_start"] == 1
    assert scores["word_start"] == 0


def test_a_window_too_small_for_the_probe_is_refused():
    with pytest.raises(PromptError, match=r"window of 5 .* needs a window of 6 and 3 different tokens"):
        probe_heads(checkpoint(block_size=5))


# --- contributions ----------------------------------------------------------------------------------------------------


@EVERY_KIND
@pytest.mark.parametrize("against", [None, "f"])
def test_the_shares_of_a_logit_sum_to_it(variant, against):
    ckpt = checkpoint(variant)
    found = direct_logits(ckpt, TEXT, position=9, token="c", against=against)
    logits = ckpt.model(IDX[None])[0][0, 9].detach()
    token, other = TOKENIZER.encode("cf")
    expected = logits[token] - (logits[other] if against else 0)
    assert found.logit == pytest.approx(float(expected), abs=1e-6)
    assert abs(found.remainder) < 1e-5
    assert sum(found.shares().values()) + found.remainder == pytest.approx(found.logit)
    assert apart(found.sources.sum(-1), found.heads) < 1e-12
    assert (found.sources[..., 10:] == 0).all()


@EVERY_KIND
def test_what_keys_brought_to_the_next_logits_is_what_each_logit_taken_apart_says(variant):
    ckpt = checkpoint(variant)
    found = logit_weighted(ckpt, "ab" + TEXT + "ced")  # two tokens fall out of the window of 16
    for query in range(16):
        assert apart(found[:, :, query], direct_logits(ckpt, "ab" + TEXT + "ced", position=query + 2).sources) < 1e-5
    assert float(found.min()) < 0 < float(found.max())
    assert logit_weighted(ckpt, "c").shape == (ckpt.config.n_layer, ckpt.config.n_head, 1, 1)


def test_a_heads_share_is_what_the_logit_loses_without_it_while_the_norm_is_frozen():
    ckpt = checkpoint("chapters", torch.float64)
    found = direct_logits(ckpt, TEXT, position=9, token=4)
    model = ckpt.model
    inside = forward(model, IDX).inside
    stream = inside.residual[0, -1, 9]
    for layer, head in ((0, 3), (2, 1)):
        written = inside.heads[0, layer, head, 9] @ model.blocks[layer].sa.proj.weight[:, head * 5 : head * 5 + 5].T
        left = stream - written
        frozen = (left - left.mean()) / (stream.var(correction=0) + 1e-5).sqrt() * model.ln_f.weight + model.ln_f.bias
        logit = model.lm_head.weight[4] @ frozen + model.lm_head.bias[4]
        assert found.heads[layer, head] == pytest.approx(found.logit - logit.item(), abs=1e-9)


def test_shares_name_every_term_of_the_sum():
    found = direct_logits(checkpoint("gelu"), TEXT)
    assert found.position == 12
    names = list(found.shares())
    assert names[:6] == ["token embedding", "position embedding", "L0H0", "L0H1", "L0 attention bias", "L0 MLP"]
    assert names[-2:] == ["last LayerNorm bias", "lm_head bias"]
    assert len(names) == 2 + 3 * 4 + 2
    assert list(found.to_frame()["part"]) == [*names, "remainder"]


@EVERY_KIND
def test_value_weighted_attention_is_the_length_of_what_is_handed_over(variant):
    ckpt = checkpoint(variant, torch.float64)
    inside = forward(ckpt.model, IDX).inside
    lengths = value_weighted(ckpt.model, inside)
    last = ckpt.config.n_head - 1
    if variant == "single-head":
        written = inside.values[0, 0, 0, 4]
    else:
        attention = ckpt.model.sa_heads if variant == "multi-head" else ckpt.model.blocks[0].sa
        size = ckpt.config.head_size
        written = attention.proj.weight[:, last * size :] @ inside.values[0, 0, last, 4]
    expected = inside.pattern[0, 0, last, 8, 4] * written.norm()
    assert lengths[0, last, 8, 4] == pytest.approx(expected.item(), abs=1e-12)
    assert (lengths[..., ~torch.ones(13, 13, dtype=torch.bool).tril()] == 0).all()


def test_rollout_rows_sum_to_1_and_follow_the_paper_one_step_at_a_time():
    pattern = forward(checkpoint("no bias", torch.float64).model, IDX).inside.pattern[0]
    rolled = rollout(pattern)
    assert apart(rolled.sum(-1), torch.ones(4, 13)) < 1e-12
    flow = torch.eye(13, dtype=torch.float64)
    for layer in range(4):
        mean = sum(pattern[layer, head] for head in range(3)) / 3
        flow = (0.5 * mean + 0.5 * torch.eye(13)) @ flow
        assert apart(rolled[layer], flow) < 1e-12
    assert apart(rollout(pattern[:1], residual=False)[0], pattern[0].mean(0)) < 1e-12


@EVERY_KIND
def test_one_call_gives_all_contributions_of_a_text(variant):
    ckpt = checkpoint(variant, torch.float64, block_size=9)
    found = contributions(ckpt, TEXT)
    assert (found.window.start, len(found.window.tokens)) == (4, 9)
    inside = forward(ckpt.model, IDX[4:]).inside
    assert torch.equal(found.raw, inside.pattern[0])
    assert torch.equal(found.value, value_weighted(ckpt.model, inside))
    assert torch.equal(found.logit, logit_weighted(ckpt, TEXT))
    rolled = rollout(inside.pattern[0], residual=ckpt.config.kind == "transformer")
    assert torch.equal(found.rollout, rolled)
    table = found.to_frame()
    layer, head = ckpt.config.n_layer - 1, ckpt.config.n_head - 1
    assert len(table) == (layer + 1) * (head + 1) * 45
    last = table.iloc[-2]
    assert (last["layer"], last["head"], last["query"], last["key"]) == (layer, head, 12, 11)
    assert (last["query_token"], last["key_token"]) == ("d", "e")
    for name, cells in (("raw", found.raw[-1, -1]), ("value", found.value[-1, -1]), ("rollout", rolled[-1])):
        assert last[name] == float(cells[8, 7])


# --- lens -------------------------------------------------------------------------------------------------------------


@EVERY_KIND
def test_the_lens_after_the_last_layer_is_the_models_output(variant):
    ckpt = checkpoint(variant)
    lens = logit_lens(ckpt, TEXT)
    probability = ckpt.model(IDX[None])[0][0].detach().softmax(-1)
    assert lens.kl.shape == (ckpt.config.n_layer + 1, 13)
    assert (lens.kl[-1] == 0).all()
    assert torch.equal(lens.top_ids[-1], probability.argmax(-1))
    assert apart(lens.top_probability[-1], probability.max(-1).values) < 1e-6
    assert torch.equal(lens.final_probability[-1], lens.top_probability[-1])


def test_the_lens_reads_the_hidden_states_of_a_gpt2(tmp_path):
    theirs = foreign.gpt2()
    theirs.save_pretrained(tmp_path)
    foreign.write_character_tokenizer(tmp_path)
    ckpt = load_checkpoint(tmp_path)
    text = ckpt.tokenizer.decode(foreign.IDX[0].tolist())
    lens = logit_lens(ckpt, text)
    with torch.no_grad():
        hidden = theirs(foreign.IDX[:1], output_hidden_states=True).hidden_states
        states = [*(theirs.transformer.ln_f(state) for state in hidden[:-1]), hidden[-1]]
        said = torch.stack([theirs.lm_head(state)[0] for state in states]).softmax(-1)
    assert torch.equal(lens.top_ids, said.argmax(-1))
    assert apart(lens.top_probability, said.max(-1).values) < 1e-5
    assert apart(lens.kl, (said[-1] * (said[-1] / said).log2()).sum(-1)) < 1e-4
    assert lens.top_tokens[2][5] == ckpt.tokenizer.piece(int(said[2, 5].argmax()))
    table = lens.to_frame()
    assert list(table["layer"].unique()) == [-1, 0, 1, 2, 3]
    assert len(table) == 5 * 7


# --- parity with another program's GPT-2 ------------------------------------------------------------------------------


def watched(theirs, idx):
    """Return what goes into each projection, what each network adds, what goes into the last LayerNorm, and logits."""
    seen, handles = {"heads": [], "mlps": [], "attention": []}, []
    for block in theirs.transformer.h:
        handles += [
            block.attn.c_proj.register_forward_pre_hook(lambda _module, given: seen["heads"].append(given[0][0])),
            block.attn.register_forward_hook(lambda _module, _given, out: seen["attention"].append(out[0][0])),
            block.mlp.register_forward_hook(lambda _module, _given, out: seen["mlps"].append(out[0])),
        ]
    norm = theirs.transformer.ln_f
    handles.append(norm.register_forward_pre_hook(lambda _module, given: seen.update(stream=given[0][0])))
    with torch.no_grad():
        seen["logits"] = theirs(idx[None]).logits[0]
    for handle in handles:
        handle.remove()
    return seen


def test_head_scores_are_recomputed_from_the_attentions_of_a_gpt2(pair):
    theirs, ckpt = pair
    ids = [4, 1, 8, 4, 1, 6, 4]
    table = find_heads(ckpt, ckpt.tokenizer.decode(ids))
    pattern = foreign.computed(theirs, torch.tensor([ids]))[1][:, 0]
    previous = torch.stack([pattern[..., query, query - 1] for query in range(2, 7)]).mean(0)
    # The token after an earlier copy, and the copy; never the first token or the one before, which are named already.
    induction = torch.stack([pattern[..., 3, 1], pattern[..., 4, 2], pattern[..., 6, 1] + pattern[..., 6, 4]]).mean(0)
    duplicate = torch.stack([pattern[..., 4, 1], pattern[..., 6, 3]]).mean(0)
    for name, expected in (("previous", previous), ("induction", induction), ("duplicate", duplicate)):
        assert apart(table.scores[name], expected) < 1e-5, name
    assert (table.counted["induction"], table.counted["duplicate"]) == (3, 2)


def test_probe_scores_are_recomputed_from_the_attentions_of_a_gpt2(pair):
    theirs, ckpt = pair
    texts = probe_texts(ckpt.config, samples=5, seed=3)
    table = probe_heads(ckpt, samples=5, seed=3)
    length = foreign.BLOCK // 2
    patterns = foreign.computed(theirs, torch.tensor(texts))[1].mean(1)
    induction = torch.stack([patterns[..., query, query - length + 1] for query in range(length, 2 * length)]).mean(0)
    duplicate = torch.stack([patterns[..., query, query - length] for query in range(length + 1, 2 * length)]).mean(0)
    previous = torch.stack([patterns[..., query, query - 1] for query in range(2, 2 * length)]).mean(0)
    for name, expected in (("induction", induction), ("duplicate", duplicate), ("previous", previous)):
        assert apart(table.scores[name], expected) < 1e-5, name


def test_a_logit_of_a_gpt2_is_the_sum_of_what_hooks_see_of_each_part(pair):
    theirs, ckpt = pair
    idx, place, token = foreign.IDX[0], 4, 6
    found = direct_logits(ckpt, ckpt.tokenizer.decode(idx.tolist()), position=place, token=token)
    seen, parts, size = watched(theirs, idx), theirs.transformer, foreign.WIDTH // foreign.HEADS
    deviation = (seen["stream"][place].var(correction=0) + parts.ln_f.eps).sqrt()

    def share(vector):
        centred = (vector - vector.mean()) / deviation * parts.ln_f.weight
        return (centred @ theirs.lm_head.weight[token]).item()

    expected = {
        "token embedding": share(parts.wte.weight[idx[place]]),
        "position embedding": share(parts.wpe.weight[place]),
        "last LayerNorm bias": (parts.ln_f.bias @ theirs.lm_head.weight[token]).item(),
        "lm_head bias": 0.0,
    }
    for layer, block in enumerate(parts.h):
        projection = block.attn.c_proj
        for head in range(foreign.HEADS):
            mine = slice(head * size, (head + 1) * size)
            expected[f"L{layer}H{head}"] = share(seen["heads"][layer][place, mine] @ projection.weight[mine])
        expected[f"L{layer} attention bias"] = share(projection.bias)
        expected[f"L{layer} MLP"] = share(seen["mlps"][layer][place])
    assert found.shares() == pytest.approx(expected, abs=1e-4)
    assert found.logit == pytest.approx(float(seen["logits"][place, token]), abs=1e-4)
    assert sum(expected.values()) == pytest.approx(float(seen["logits"][place, token]), abs=1e-4)
    assert abs(found.remainder) < 1e-5


def test_what_the_keys_of_a_gpt2_hand_over_has_the_length_that_hooks_measure(pair):
    theirs, ckpt = pair
    idx, size = foreign.IDX[1], foreign.WIDTH // foreign.HEADS
    values = []
    handles = [
        block.attn.c_attn.register_forward_hook(
            lambda _module, _given, out: values.append(out[0].split(foreign.WIDTH, -1)[2])
        )
        for block in theirs.transformer.h
    ]
    pattern = foreign.computed(theirs, idx[None])[1][:, 0]
    for handle in handles:
        handle.remove()
    found = contributions(ckpt, ckpt.tokenizer.decode(idx.tolist()))
    assert apart(found.raw, pattern) < 1e-5
    assert apart(found.rollout, rollout(pattern)) < 1e-5
    for layer, block in enumerate(theirs.transformer.h):
        written = torch.zeros(foreign.BLOCK, foreign.WIDTH)
        for head in range(foreign.HEADS):
            mine = slice(head * size, (head + 1) * size)
            handed = values[layer][:, mine] @ block.attn.c_proj.weight[mine]
            each = pattern[layer, head][..., None] * handed
            assert apart(found.value[layer, head], each.norm(dim=-1)) < 1e-5
            written += each.sum(1).detach()
        # They are what the attention of that layer adds, but for the bias: nothing was left out.
        seen = watched(theirs, idx)["attention"][layer]
        assert apart(written + block.attn.c_proj.bias, seen) < 1e-5


# --- circuits ---------------------------------------------------------------------------------------------------------


def test_circuits_of_one_layer_are_exact_for_a_model_without_positions():
    """With zero position embeddings an attention-only model is nothing but its circuits."""
    ckpt = checkpoint("multi-head", torch.float64)
    ckpt.model.position_embedding_table.weight.data.zero_()
    pattern = ckpt.model(IDX[None], return_weights=True)[2][0, 0]
    wants = qk_circuit(ckpt, 0, 3)
    scores = wants.matrix[IDX[:, None], IDX[None, :]]
    future = ~torch.ones(13, 13, dtype=torch.bool).tril()
    assert apart(pattern[3], scores.masked_fill(future, -math.inf).softmax(-1)) < 1e-12
    moved = [pattern[head] @ ov_circuit(ckpt, 0, head).matrix[IDX] for head in range(5)]
    model = ckpt.model
    constant = model.lm_head(model.sa_heads.proj.bias)
    logits = model(IDX[None])[0][0] - constant
    assert apart(sum(moved), logits - logits.mean(-1, keepdim=True)) < 1e-12


def test_an_induction_heads_circuits_say_copy_and_its_predecessor_looks_one_back():
    ckpt = induction_model()
    pushes = ov_circuit(ckpt, 1, 0, most=4)
    assert pushes.top_ids.shape == pushes.bottom_ids.shape == (12, 4)
    assert pushes.top_ids[:, 0].tolist() == list(range(12))
    assert apart(pushes.matrix.mean(-1), torch.zeros(12)) < 1e-4
    positions = positional_qk(ckpt, 0, 1)
    assert positions.pattern.shape == (14, 14)
    assert positions.pattern[torch.arange(1, 14), torch.arange(13)].min() > 0.999
    assert positions.scores[4, 5] == -math.inf
    table = positions.to_frame()
    assert len(table) == 14 * 15 / 2
    row = table[(table["query"] == 5) & (table["key"] == 3)].iloc[0]
    assert row["score"] == float(positions.scores[5, 3])
    assert row["weight"] == float(positions.pattern[5, 3])


def test_of_a_large_circuit_the_strongest_are_kept(monkeypatch):
    ckpt = checkpoint("gelu")
    whole = qk_circuit(ckpt, 1, 1, most=3)
    monkeypatch.setattr("minigpt.analysis.circuits.MOST_CELLS", 50)
    monkeypatch.setattr("minigpt.analysis.circuits._ROWS_AT_ONCE", 60)
    strongest = qk_circuit(ckpt, 1, 1, most=3)
    assert strongest.matrix is None
    assert torch.equal(strongest.top_ids, whole.matrix.topk(3).indices)
    assert apart(strongest.bottom, whole.matrix.topk(3, largest=False).values) < 1e-6
    rows = qk_circuit(ckpt, 1, 1, rows=["c", 7], most=3)
    assert rows.matrix.shape == (2, 12)
    assert rows.rows == ["c", TOKENIZER.piece(7)]
    assert apart(rows.matrix, whole.matrix[[TOKENIZER.encode("c")[0], 7]]) < 1e-5
    assert list(rows.to_frame()["row"]) == ["c"] * 3 + [TOKENIZER.piece(7)] * 3


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_prompts_are_compared_where_they_agree_and_marked_where_they_do_not():
    ckpt = checkpoint()
    found = compare_prompts(ckpt, "a bad cab", "a bed ca big")
    assert "".join(found.tokens) == "a bed ca big"
    assert [slot.mark[0] for slot in found.slots] == list("ssscssssisii")
    first, second = trace(ckpt, "a bad cab").pattern, trace(ckpt, "a bed ca big").pattern
    for query, row in enumerate(found.slots):
        for key, column in enumerate(found.slots):
            cell = found.difference[:, :, query, key]
            if None in (row.first, row.second, column.first, column.second):
                assert cell.isnan().all()
            else:
                expected = second[:, :, row.second, column.second] - first[:, :, row.first, column.first]
                assert torch.equal(cell, expected)


def test_a_deleted_token_stays_on_the_axis():
    found = compare_prompts(checkpoint(), "fed", "fd")
    assert [(slot.token, slot.mark, slot.first, slot.second) for slot in found.slots] == [
        ("f", "same", 0, 0),
        ("e", "deleted", 1, None),
        ("d", "same", 2, 1),
    ]
    assert found.first[0, 0, 1].isnan().sum() == 0
    assert found.second[0, 0, 1].isnan().all()
    table = found.to_frame()
    assert len(table) == 3 * 4 * 6
    row = table.iloc[4 * 6 + 6 + 4]  # L1H1, the third place looks at the second
    assert row[["layer", "head", "query", "key", "query_token", "key_mark"]].tolist() == [1, 1, 2, 1, "d", "deleted"]
    assert row["first"] == float(found.first[1, 1, 2, 1])
    assert math.isnan(row["second"])
    assert math.isnan(row["difference"])


def test_positions_are_true_ones_when_the_texts_do_not_fit():
    ckpt = checkpoint(block_size=6)
    found = compare_prompts(ckpt, "abcdefgh", "bcdefgh")
    assert [(slot.first, slot.second) for slot in found.slots] == [(place, place - 1) for place in range(2, 8)]


def test_checkpoints_heads_and_interventions_are_compared_on_the_same_axes():
    first, second = checkpoint(seed=1), checkpoint(seed=2)
    patterns = [trace(each, TEXT).pattern for each in (first, second)]
    assert torch.equal(compare_checkpoints(first, second, TEXT).difference, patterns[1] - patterns[0])
    heads = compare_heads(first, TEXT, (0, 2), (2, 1))
    assert heads.names == ("L0H2", "L2H1")
    assert torch.equal(heads.difference[0, 0], patterns[0][2, 1] - patterns[0][0, 2])
    others = compare_heads(first, TEXT, (0, 2), (3, 0), other=checkpoint("no bias"))
    assert others.difference.shape == (1, 1, 13, 13)
    change = Intervention(heads_off=((1, 0),))
    found = compare_intervention(first, TEXT, change)
    assert (found.difference[:2] == 0).all()
    assert found.difference[2].abs().max() > 1e-3
    with pytest.raises(ConfigError, match="3 × 4 and 4 × 3 layers × heads"):
        compare_checkpoints(first, checkpoint("no bias"), TEXT)
    with pytest.raises(ConfigError, match="no head L3H0"):
        compare_heads(first, TEXT, (0, 2), (3, 0))


def test_a_table_without_pandas_is_refused_with_a_sentence(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("minigpt.analysis.frames.import_module", missing)
    with pytest.raises(MiniGPTError, match="pip install pandas"):
        logit_lens(checkpoint(), TEXT).to_frame()
