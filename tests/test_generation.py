"""Generation is the repeated drawing of a token after the model's window, alone or several at once."""

import random

import numpy as np
import pytest
import torch

from minigpt import generation
from minigpt.checkpoint import Checkpoint
from minigpt.errors import PromptError
from minigpt.generation import continuations, generate, generate_several
from minigpt.model import MultiHeadAttentionLanguageModel, SingleHeadAttentionLanguageModel, TransformerLanguageModel
from minigpt.sampling import LIKELIEST, WHOLE_VOCABULARY, draw, penalised, sample_distribution, seed_of
from minigpt.tokenizer import CharTokenizer
from tests.reference import scattered

BLOCK = 9
TOKENIZER = CharTokenizer("\nabcdefghij")
V = TOKENIZER.vocab_size
MODELS = [
    TransformerLanguageModel(V, BLOCK, 15, 3, 2, 0.5),
    MultiHeadAttentionLanguageModel(V, BLOCK, 15, 3, 0.5),
    SingleHeadAttentionLanguageModel(V, BLOCK, 15),
]


@pytest.fixture(params=MODELS, ids=lambda model: model.config.kind)
def ckpt(request):
    torch.manual_seed(1)
    return Checkpoint(model=scattered(request.param).double().eval(), tokenizer=TOKENIZER)


def recomputed(ckpt, prompt, length, seed, repetition_penalty=1.0, **settings):
    """Return the ids that plain recomputing draws, and each one's model probabilities and window start."""
    ids = ckpt.tokenizer.encode(prompt) or [0]
    numbers, steps = random.Random(seed), []
    for _ in range(length):
        start = max(0, len(ids) - BLOCK)
        logits = ckpt.model(torch.tensor([ids[start:]]))[0][0, -1].detach()
        changed = penalised(logits[None].numpy(), np.array([ids[start:]]), repetition_penalty)[0]
        probabilities = sample_distribution(torch.from_numpy(changed), **settings)
        token_id = draw(probabilities, numbers.random())
        steps.append((token_id, probabilities, logits.softmax(0), start))
        ids.append(token_id)
    return steps


# --- generation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.0},
        {"temperature": 1.7, "top_k": 4},
        {"temperature": 0.8, "top_k": 7, "top_p": 0.9},
        {"min_p": 0.2, "repetition_penalty": 1.4},
    ],
)
def test_every_step_is_what_recomputing_its_window_gives(ckpt, settings):
    prompt = "abba"
    steps = list(generate(ckpt, prompt, max_new_tokens=3 * BLOCK, seed=11, **settings))
    for index, (step, expected) in enumerate(
        zip(steps, recomputed(ckpt, prompt, 3 * BLOCK, 11, **settings), strict=True)
    ):
        token_id, probabilities, by_model, start = expected
        assert (step.index, step.token_id, step.token) == (index, token_id, TOKENIZER.piece(token_id))
        assert (step.position, step.window_start) == (len(prompt) + index, start)
        assert step.probability == pytest.approx(probabilities[token_id].item(), abs=1e-12)
        assert step.model_probability == pytest.approx(by_model[token_id].item(), abs=1e-12)
        assert step.log_probability == pytest.approx(by_model[token_id].log().item(), abs=1e-12)
        assert step.rank == (by_model > by_model[token_id]).sum()
        assert step.distribution is None


def test_a_prompt_longer_than_the_window_is_cropped_on_the_left(ckpt):
    prompt = "abcdefghij" * 2
    long, short = (list(generate(ckpt, text, max_new_tokens=5, seed=3)) for text in (prompt, prompt[-BLOCK:]))
    assert [step.token_id for step in long] == [step.token_id for step in short]
    assert [step.position for step in long] == [20, 21, 22, 23, 24]
    assert [step.window_start for step in long] == [11, 12, 13, 14, 15]


def test_an_empty_prompt_starts_from_id_zero(ckpt):
    started, given_zero = (list(generate(ckpt, prompt, max_new_tokens=5, seed=3)) for prompt in ("", "\n"))
    assert started == given_zero
    assert started[0].position == 1


def test_a_seed_means_one_text_whatever_else_draws_numbers(ckpt):
    first = [step.token_id for step in generate(ckpt, "ab", max_new_tokens=20, seed=0)]
    second = []
    for step in generate(ckpt, "ab", max_new_tokens=20, seed=0):
        torch.rand(3)
        random.random()
        second.append(step.token_id)
    assert first == second
    assert first != [step.token_id for step in generate(ckpt, "ab", max_new_tokens=20, seed=1)]


def test_without_a_seed_each_text_is_another(ckpt):
    texts = {tuple(step.token_id for step in generate(ckpt, "ab", max_new_tokens=40)) for _ in range(3)}
    assert len(texts) == 3


def test_the_torch_generator_is_left_alone(ckpt):
    state = torch.get_rng_state()
    list(generate(ckpt, "ab", max_new_tokens=5))
    assert torch.equal(torch.get_rng_state(), state)


def test_it_computes_no_token_before_it_is_asked_for(ckpt, monkeypatch):
    read = []

    class Counting(generation.Reader):
        def read(self, ids):
            read.append(ids.tolist())
            return super().read(ids)

    monkeypatch.setattr(generation, "Reader", Counting)
    steps = generate(ckpt, "ab", max_new_tokens=1000, seed=2)
    assert read == []
    first = next(steps)
    next(steps)
    assert read == [[[1, 2]], [[first.token_id]]]
    steps.close()
    assert len(read) == 2
    assert list(steps) == []


def test_no_tokens_are_asked_for(ckpt):
    assert list(generate(ckpt, "ab", max_new_tokens=0)) == []


@pytest.mark.parametrize(
    ("wrong", "code", "named"),
    [
        ({"temperature": -0.1}, "temperature_out_of_range", "-0.1"),
        ({"temperature": float("nan")}, "temperature_out_of_range", "nan"),
        ({"temperature": float("inf")}, "temperature_out_of_range", "inf"),
        ({"top_k": 0}, "top_k_out_of_range", "0"),
        ({"top_p": 0.0}, "top_p_out_of_range", "0.0"),
        ({"top_p": 1.1}, "top_p_out_of_range", "1.1"),
        ({"max_new_tokens": -1}, "length_out_of_range", "-1"),
        ({"seed": -1}, "seed_out_of_range", "-1"),
        ({"seed": 2**63}, "seed_out_of_range", "9223372036854775807"),
        ({"min_p": 2}, "min_p_out_of_range", "2"),
        ({"repetition_penalty": -1}, "repetition_penalty_out_of_range", "-1"),
        ({"prompt": "abc!"}, "unknown_characters", "'!' ×1"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(wrong, code, named):
    ckpt = Checkpoint(model=MODELS[0], tokenizer=TOKENIZER)
    arguments = {"prompt": "ab", "max_new_tokens": 5, **wrong}
    with pytest.raises(PromptError) as caught:
        generate(ckpt, arguments.pop("prompt"), **arguments)
    assert caught.value.code == code
    assert named in str(caught.value)


# --- what a token was drawn from --------------------------------------------------------------------------------------


def test_a_kept_distribution_is_that_of_a_direct_pass_over_its_window(ckpt):
    settings = {"temperature": 1.5, "top_k": 6, "min_p": 0.1}
    steps = list(generate(ckpt, "abba", max_new_tokens=3 * BLOCK, seed=5, keep_distributions=True, **settings))
    text = [*TOKENIZER.encode("abba"), *(step.token_id for step in steps)]
    for step in steps:
        kept = step.distribution
        assert kept.window == text[step.window_start : step.position]
        logits = ckpt.model(torch.tensor([kept.window]))[0][0, -1].detach()
        expected = sample_distribution(logits, **settings)
        assert kept.ids.tolist() == list(range(V))
        assert np.allclose(kept.model_probabilities, logits.softmax(0).numpy(), atol=1e-12)
        assert np.allclose(kept.probabilities, expected.numpy(), atol=1e-12)
        assert kept.choices == expected.count_nonzero()
        assert (kept.model_rest, kept.rest) == (0, 0)
        assert kept.probabilities[step.token_id] == pytest.approx(step.probability, abs=1e-12)


def test_of_a_large_vocabulary_the_likeliest_are_kept_and_the_rest_summed_up():
    vocab_size = WHOLE_VOCABULARY + 1
    tokenizer = CharTokenizer("".join(chr(0x4E00 + number) for number in range(vocab_size)))
    torch.manual_seed(2)
    model = scattered(TransformerLanguageModel(vocab_size, BLOCK, 15, 3, 2)).double().eval()
    ckpt = Checkpoint(model=model, tokenizer=tokenizer)
    for step in generate(ckpt, "", max_new_tokens=4, seed=5, top_k=71, keep_distributions=True):
        kept = step.distribution
        logits = model(torch.tensor([kept.window]))[0][0, -1].detach()
        by_model, drawn_from = logits.softmax(0), sample_distribution(logits, top_k=71)
        assert kept.ids.tolist() == logits.argsort(descending=True)[:LIKELIEST].tolist()
        assert np.allclose(kept.model_probabilities, by_model[kept.ids], atol=1e-12)
        assert np.allclose(kept.probabilities, drawn_from[kept.ids], atol=1e-12)
        assert kept.model_rest == pytest.approx(1 - by_model[kept.ids].sum().item(), abs=1e-12)
        assert kept.rest == pytest.approx(1 - drawn_from[kept.ids].sum().item(), abs=1e-12)
        assert kept.choices == 71


# --- several continuations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.2}])
@pytest.mark.parametrize("prompt", ["", "abba", "abcdefghij" * 2])
def test_each_of_several_continuations_is_the_one_written_alone(ckpt, prompt, settings):
    together = continuations(ckpt, prompt, 5, max_new_tokens=2 * BLOCK, seed=8, **settings)
    assert [each.seed for each in together] == [seed_of(8, number) for number in range(5)]
    for each in together:
        alone = list(generate(ckpt, prompt, max_new_tokens=2 * BLOCK, seed=each.seed, **settings))
        assert [step.token_id for step in each.steps] == [step.token_id for step in alone]
        for step, own in zip(each.steps, alone, strict=True):
            assert (step.index, step.position, step.window_start) == (own.index, own.position, own.window_start)
            assert step.probability == pytest.approx(own.probability, abs=1e-12)
        assert each.text == "".join(step.token for step in alone)
        assert each.log_probability == pytest.approx(sum(step.log_probability for step in alone), abs=1e-9)
    assert len({each.text for each in together}) == 5


def test_one_continuation_is_what_generate_writes(ckpt):
    (only,) = continuations(ckpt, "ab", 1, max_new_tokens=13, seed=4)
    assert only.steps == list(generate(ckpt, "ab", max_new_tokens=13, seed=4))


def test_without_a_seed_continuations_say_theirs(ckpt):
    for each in continuations(ckpt, "ab", 3, max_new_tokens=13):
        assert [step.token_id for step in each.steps] == [
            step.token_id for step in generate(ckpt, "ab", max_new_tokens=13, seed=each.seed)
        ]


def test_several_stop_at_once_when_closed(ckpt):
    steps = generate_several(ckpt, "ab", 3, max_new_tokens=1000, seed=2)
    assert len(next(steps)) == 3
    steps.close()
    assert list(steps) == []


def test_several_of_no_tokens_are_empty(ckpt):
    both = continuations(ckpt, "ab", 2, max_new_tokens=0)
    assert [(each.text, each.steps, each.log_probability) for each in both] == [("", [], 0.0)] * 2


@pytest.mark.parametrize("count", [0, 9])
def test_more_or_fewer_continuations_than_can_be_are_refused_at_once(ckpt, count):
    with pytest.raises(PromptError) as caught:
        generate_several(ckpt, "ab", count, max_new_tokens=5)
    assert caught.value.code == "continuations_out_of_range"
