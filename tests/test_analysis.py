"""What `minigpt.trace` returns, the scores of heads, and what the model expected."""

import math

import pytest
import torch

from minigpt.analysis import patterns
from minigpt.analysis.next_tokens import next_tokens
from minigpt.analysis.patterns import head_pattern, trace, trace_ids
from minigpt.analysis.scores import SCORES, growing_head_scores, head_scores, row_entropy, word_starts
from minigpt.checkpoint import Checkpoint
from minigpt.errors import PromptError
from minigpt.model import (
    MultiHeadAttentionLanguageModel,
    SingleHeadAttentionLanguageModel,
    TransformerLanguageModel,
)
from minigpt.tokenizer import CharTokenizer

TOKENIZER = CharTokenizer("abcdefg \n")
TEXT = "a bad cab\nfed a bag"


def checkpoint(kind=TransformerLanguageModel, **sizes):
    torch.manual_seed(11)
    model = kind(TOKENIZER.vocab_size, 13, **({"n_embd": 20} | sizes))
    for name, parameter in model.named_parameters():
        if "sa_head" in name or ".sa.heads" in name:
            parameter.data *= 3  # patterns that are far from even
    return Checkpoint(model=model.eval(), tokenizer=TOKENIZER)


@pytest.fixture(scope="module")
def transformer():
    return checkpoint(n_head=4, n_layer=3)


@pytest.mark.parametrize(
    ("kind", "sizes", "shape"),
    [
        (TransformerLanguageModel, {"n_head": 4, "n_layer": 3}, (3, 4)),
        (MultiHeadAttentionLanguageModel, {"n_head": 5}, (1, 5)),
        (SingleHeadAttentionLanguageModel, {}, (1, 1)),
    ],
)
def test_a_trace_holds_what_the_model_itself_says(kind, sizes, shape):
    ckpt = checkpoint(kind, **sizes)
    traced = trace(ckpt, "bad cab")
    logits, _, weights = ckpt.model(torch.tensor([TOKENIZER.encode("bad cab")]), return_weights=True)
    assert traced.pattern.shape == (*shape, 7, 7)
    assert (traced.pattern - weights[:, 0]).abs().max() < 1e-5
    assert (traced.logits - logits[0]).abs().max() < 1e-5
    assert traced.tokens == list("bad cab")
    assert traced.ids == TOKENIZER.encode("bad cab")
    assert (traced.start, traced.cropped, traced.text) == (0, [], "bad cab")


def test_rows_sum_to_1_and_the_future_is_exactly_0(transformer):
    pattern = trace(transformer, "bad cab").pattern
    assert (pattern.sum(-1) - 1).abs().max() < 1e-6
    assert (pattern[..., ~torch.ones(7, 7, dtype=torch.bool).tril()] == 0).all()


def test_the_future_cannot_change_the_past(transformer):
    before, after = trace(transformer, "bad cab"), trace(transformer, "bad fed")
    assert torch.equal(before.logits[:4], after.logits[:4])
    assert torch.equal(before.pattern[..., :4, :4], after.pattern[..., :4, :4])
    assert not torch.equal(before.logits[4:], after.logits[4:])


def test_scores_of_a_growing_text_are_those_of_each_of_its_beginnings(transformer):
    traced = trace(transformer, "a bad cab\nfed")
    growing = growing_head_scores(traced.pattern, traced.tokens)
    assert list(growing) == list(SCORES)
    for length in range(1, 14):
        scores = head_scores(traced.pattern[..., :length, :length], traced.tokens[:length])
        for name in SCORES:
            assert torch.allclose(growing[name][length - 1], scores[name], atol=1e-6, equal_nan=True)


def test_a_long_text_is_looked_at_from_its_end(transformer):
    traced = trace(transformer, TEXT)
    assert len(TEXT) == 19
    assert traced.start == 6
    assert "".join(traced.cropped) == TEXT[:6]
    assert traced.cropped_ids == TOKENIZER.encode(TEXT[:6])
    assert "".join(traced.tokens) == TEXT[6:]
    assert traced.text == TEXT
    assert torch.equal(traced.pattern, trace(transformer, TEXT[6:]).pattern)


def test_the_trust_figures_are_measured():
    ckpt = checkpoint(n_head=4, n_layer=3)
    traced = trace(ckpt, "bad cab")
    assert 0 < traced.logit_difference < 1e-5
    assert traced.row_sum_error == float((traced.pattern.sum(-1) - 1).abs().max())
    hook = ckpt.model.lm_head.register_forward_hook(lambda _module, _given, logits: logits + 0.5)
    assert trace(ckpt, "bad cab").logit_difference == pytest.approx(0.5, abs=1e-5)
    hook.remove()


def test_a_large_model_is_run_as_it_is_and_compared_at_its_first_positions(monkeypatch):
    ckpt = checkpoint(n_head=4, n_layer=3)
    small, ids = trace(ckpt, "bad cab"), TOKENIZER.encode("bad cab")
    assert small.compared == 7
    monkeypatch.setattr(patterns, "LARGE", 1)
    monkeypatch.setattr(patterns, "COMPARED", 4)
    monkeypatch.setattr(patterns, "lean_model", None)
    large = trace(ckpt, "bad cab")
    assert large.compared == 4
    assert 0 <= large.logit_difference < 1e-5
    assert torch.allclose(large.logits, small.logits, atol=1e-5)
    assert torch.allclose(large.pattern, small.pattern, atol=1e-6)
    monkeypatch.setattr(patterns, "_own_attention", None)
    assert torch.allclose(head_pattern(ckpt, ids, 2, 1), small.pattern[2, 1], atol=1e-6)


def test_an_empty_text_and_unknown_characters_are_refused(transformer):
    with pytest.raises(PromptError) as empty:
        trace(transformer, "")
    assert empty.value.code == "empty_prompt"
    with pytest.raises(PromptError) as unknown:
        trace(transformer, "bad Cäb ä")
    assert unknown.value.code == "unknown_characters"
    assert "'ä' ×2" in str(unknown.value)


def test_a_trace_needs_no_gradient(transformer):
    assert not trace_ids(transformer, [1, 2, 3]).logits.requires_grad


# --- scores of heads --------------------------------------------------------------------------------------------------


def looking_at(target, tokens):
    """A head that puts all of each query's weight on one key; on itself where `target` names none."""
    n_token = len(tokens)
    pattern = torch.zeros(1, 1, n_token, n_token)
    for query in range(n_token):
        key = target(query)
        pattern[0, 0, query, query if key is None else key] = 1
    return pattern


def scores_of(pattern, tokens):
    return {name: value.item() for name, value in head_scores(pattern, list(tokens)).items()}


def slow_scores(pattern, tokens):
    """The definitions, one query and one key at a time."""
    collected = {name: [] for name in SCORES}
    for query in range(1, len(tokens)):
        row = pattern[query]
        collected["self"].append(row[query])
        collected["entropy"].append(-sum(p * math.log2(p) for p in row[: query + 1] if p > 0))
        collected["distance"].append(sum(p * (query - key) for key, p in enumerate(row[: query + 1])))
        if query >= 2:
            collected["previous"].append(row[query - 1])
            collected["first"].append(row[0])
        start = query
        while start > 0 and tokens[start - 1].strip() and tokens[query].strip():
            start -= 1
        own = {"duplicate": [], "induction": [], "word_start": []}
        for key in range(1, query - 1):
            names = [
                name
                for name, holds in (
                    ("duplicate", tokens[key] == tokens[query]),
                    ("induction", tokens[key - 1] == tokens[query]),
                    ("word_start", bool(tokens[query].strip()) and key == start),
                )
                if holds
            ]
            if len(names) == 1:
                own[names[0]].append(row[key])
        for name, weights in own.items():
            if weights:
                collected[name].append(sum(weights))
    return {name: sum(values) / len(values) if values else math.nan for name, values in collected.items()}


def test_scores_are_what_their_definitions_say():
    torch.manual_seed(2)
    tokens = list("abcab cabbac abca\ncab")
    n_token = len(tokens)
    future = torch.full((n_token, n_token), -math.inf).triu(1)
    pattern = (torch.randn(2, 3, n_token, n_token) * 2 + future).softmax(-1)
    scores = head_scores(pattern, tokens)
    assert tuple(scores) == SCORES
    for layer in range(2):
        for head in range(3):
            expected = slow_scores(pattern[layer, head].tolist(), tokens)
            for name in SCORES:
                assert scores[name][layer, head].item() == pytest.approx(expected[name], rel=1e-4), name


def test_a_previous_token_head_scores_1_and_nothing_else():
    tokens = "abcdeabcde"
    scores = scores_of(looking_at(lambda query: query - 1 if query else None, tokens), tokens)
    assert scores["previous"] == 1
    assert scores["distance"] == pytest.approx(1)
    assert scores["entropy"] == 0
    assert scores["self"] == scores["first"] == scores["duplicate"] == scores["induction"] == 0


def test_an_induction_head_scores_1():
    tokens = "abcdeabcdeabcde"
    scores = scores_of(looking_at(lambda query: query - 4 if query >= 5 else None, tokens), tokens)
    assert scores["induction"] == 1
    assert scores["previous"] == scores["duplicate"] == 0


def test_a_duplicate_token_head_scores_1():
    tokens = "xabcdeabcde"
    scores = scores_of(looking_at(lambda query: query - 5 if query >= 6 else None, tokens), tokens)
    assert scores["duplicate"] == 1
    assert scores["induction"] == scores["first"] == 0


def test_a_word_start_head_scores_1():
    tokens = " word\nstart here"
    starts = word_starts(list(tokens)).tolist()
    scores = scores_of(looking_at(lambda query: starts[query] if starts[query] >= 0 else None, tokens), tokens)
    assert scores["word_start"] == 1
    assert scores["first"] == 0


def test_an_attention_sink_scores_1():
    assert scores_of(looking_at(lambda _: 0, "abcdef"), "abcdef")["first"] == 1


def test_where_two_definitions_coincide_neither_is_credited():
    # In the second row the token before is the first one: a head that only ever looks there is no previous-token head.
    tokens = "abcdef"
    only_second_row = looking_at(lambda query: 0 if query == 1 else None, tokens)
    scores = scores_of(only_second_row, tokens)
    assert scores["previous"] == scores["first"] == 0
    # "aab": for the third token no earlier one is alike; for the second the one alike is also first and previous.
    assert math.isnan(scores_of(looking_at(lambda _: 0, "aab"), "aab")["duplicate"])


def test_a_score_without_any_query_is_undefined():
    scores = scores_of(torch.ones(1, 1, 1, 1), "a")
    assert all(math.isnan(value) for value in scores.values())
    scores = scores_of(looking_at(lambda _: None, "abcdefg"), "abcdefg")
    assert math.isnan(scores["duplicate"])
    assert math.isnan(scores["induction"])


def test_even_attention_over_n_keys_has_log2_n_bits():
    even = torch.ones(8, 8).tril()
    even /= even.sum(-1, keepdim=True)
    assert row_entropy(even[None, None])[0, 0].tolist() == pytest.approx([math.log2(n) for n in range(1, 9)], abs=1e-6)
    expected = sum(math.log2(n) for n in range(2, 9)) / 7
    assert scores_of(even[None, None], "abcdefgh")["entropy"] == pytest.approx(expected)


def test_words_begin_after_white_space_or_with_it():
    assert word_starts(["a", "b", " ", "c", "\n", "d"]).tolist() == [0, 0, -1, 3, -1, 5]
    assert word_starts(["The", " cat", "s", " ", "sat"]).tolist() == [0, 1, 1, -1, 4]


def test_scores_want_a_token_for_each_query():
    with pytest.raises(ValueError, match="expected 4 tokens, one for each query, got 3"):
        head_scores(torch.eye(4)[None, None], ["a", "b", "c"])


# --- what the model expected ------------------------------------------------------------------------------------------


def test_expected_tokens_are_the_models_likeliest_in_order(transformer):
    traced = trace(transformer, "bad cab")
    expected = next_tokens(traced.logits, traced.ids, most=4)
    probability = traced.logits.softmax(-1)
    assert expected.ids.shape == expected.probability.shape == (7, 4)
    assert torch.equal(probability.gather(1, expected.ids), expected.probability)
    assert torch.equal(expected.probability[:, 0], probability.max(-1).values)
    assert (expected.probability.diff(dim=1) <= 0).all()


def test_what_was_taken_is_the_token_that_follows(transformer):
    traced = trace(transformer, "bad cab")
    expected = next_tokens(traced.logits, traced.ids, most=4)
    loss = torch.nn.functional.cross_entropy(traced.logits[:-1], torch.tensor(traced.ids[1:]), reduction="none")
    assert torch.allclose(expected.taken_probability[:-1], (-loss).exp(), atol=1e-6)
    for position in range(6):
        order = traced.logits[position].argsort(descending=True, stable=True).tolist()
        assert expected.taken_rank[position] == order.index(traced.ids[position + 1])
    assert expected.taken_rank[-1] == expected.taken_probability[-1] == -1


def test_of_equally_likely_tokens_the_lower_id_ranks_first():
    expected = next_tokens(torch.zeros(3, 5), [4, 0, 2])
    assert expected.taken_rank.tolist() == [0, 2, -1]


def test_a_small_vocabulary_lists_fewer_tokens():
    assert next_tokens(torch.zeros(2, 3), [0, 1], most=10).ids.shape == (2, 3)


def test_expectations_want_logits_for_each_token():
    with pytest.raises(ValueError, match="expected 2 tokens, one for each row of logits, got 3"):
        next_tokens(torch.zeros(2, 3), [0, 1, 2])


# --- one head alone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TransformerLanguageModel, MultiHeadAttentionLanguageModel])
def test_one_head_alone_is_what_it_is_among_all(kind):
    ckpt = checkpoint(kind, n_head=4, **({"n_layer": 3} if kind is TransformerLanguageModel else {}))
    for text in ("bad cab", "fed a bag", "bad cab"):
        ids = TOKENIZER.encode(text)
        pattern = trace(ckpt, text).pattern
        for layer in range(len(pattern)):
            for head in range(4):
                assert (head_pattern(ckpt, ids, layer, head) - pattern[layer, head]).abs().max() < 1e-6


def test_one_head_alone_follows_its_model_and_its_text():
    ckpt = checkpoint(n_head=4, n_layer=3)
    ids, other = TOKENIZER.encode("bad cab"), TOKENIZER.encode("fed a b")
    before = head_pattern(ckpt, ids, 2, 1)
    assert not torch.allclose(head_pattern(ckpt, other, 2, 1), before)
    with torch.no_grad():
        ckpt.model.blocks[0].ffwd.net[0].weight.mul_(2)
    after = head_pattern(ckpt, ids, 2, 1)
    assert not torch.allclose(after, before)
    assert (after - trace(ckpt, "bad cab").pattern[2, 1]).abs().max() < 1e-6
