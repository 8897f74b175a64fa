"""What the time slider and the branches get from the server, without a browser."""

import pytest
import torch

from minigpt import wire
from minigpt.analysis.patterns import trace
from minigpt.analysis.scores import head_scores
from minigpt.errors import PromptError
from minigpt.generation import continuations, generate
from minigpt.sampling import rank, sample_distribution
from minigpt.ui import steps
from minigpt.ui.answers import Answers
from minigpt.ui.messages import Sampling, continuation
from minigpt.ui.models import Models

SAMPLING = {
    "temperature": 0.7,
    "top_k": 9,
    "top_p": 0.8,
    "min_p": None,
    "repetition_penalty": 1.0,
    "seed": 5,
    "length": 30,
}
SETTINGS = Sampling(temperature=0.7, top_k=9, top_p=0.8, seed=5)
TEXT = "the cat and the dog, he"
"""One token less than the window of the random model."""


def close(one, other):
    return one == pytest.approx(other, abs=1e-5)


def test_every_step_is_told_as_its_own_forward_pass_tells_it(random_checkpoint):
    ckpt, first = random_checkpoint, 7
    ids = ckpt.tokenizer.encode(TEXT)
    message = steps.steps(ckpt, ids, first, SAMPLING)
    arrays = wire.unpack(message)
    for row, step in enumerate(range(first, len(ids))):
        traced = trace(ckpt, TEXT[:step])
        logits = traced.logits[-1]
        order = arrays["choice_id"][row]
        assert close(arrays["choice_before"][row], logits.double().softmax(0)[order].numpy())
        after = sample_distribution(logits, 0.7, 9, 0.8)
        assert close(arrays["choice_after"][row], after[order].numpy())
        assert arrays["sampled_from"][row] == (after > 0).sum()
        assert arrays["taken_rank"][row] == rank(logits, ids[step])
        assert close(arrays["taken_after"][row], after[ids[step]].item())
        scores = head_scores(traced.pattern, traced.tokens)
        for index, name in enumerate(message["scores"]):
            assert arrays["step_score"][row, index] == pytest.approx(scores[name].numpy(), abs=1e-5, nan_ok=True)
    assert set(map(int, message["pieces"])) == set(range(ckpt.tokenizer.vocab_size))


def test_a_step_is_drawn_from_what_a_repetition_penalty_and_min_p_have_left(random_checkpoint):
    ckpt, prompt = random_checkpoint, "the cat "
    settings = {"temperature": 0.9, "min_p": 0.02, "repetition_penalty": 1.7}
    drawn = list(generate(ckpt, prompt, max_new_tokens=9, seed=4, **settings))
    ids = [*ckpt.tokenizer.encode(prompt), *(step.token_id for step in drawn)]
    told = wire.unpack(steps.steps(ckpt, ids, len(prompt), SAMPLING | settings | {"top_k": None, "top_p": None}))
    assert close(told["taken_after"], [step.probability for step in drawn])
    plain = wire.unpack(steps.steps(ckpt, ids, len(prompt), SAMPLING | {"top_k": None, "top_p": None}))
    assert not close(plain["taken_after"], told["taken_after"])


def test_several_continuations_are_written_side_by_side_each_as_it_would_be_alone(random_checkpoint):
    told = list(continuation(random_checkpoint, "the cat", 11, SETTINGS, count=3))
    alone = [
        [step.token_id for step in each.steps]
        for each in continuations(
            random_checkpoint, "the cat", 3, max_new_tokens=11, temperature=0.7, top_k=9, top_p=0.8, seed=5
        )
    ]
    for message in told:
        others = message["run"]["others"]
        assert len({message["run"]["branch"], *(other["branch"] for other in others)}) == 3
        for other, whole in zip(others, alone[1:], strict=True):
            length = len(other["generated"])
            assert other["generated"] == whole[:length]
            assert len(other["drawn"]) == length
            assert {int(token_id) for token_id in other["pieces"]} == set(other["generated"])
    assert told[-1]["tokens"]["ids"][-11:] == alone[0]
    assert [len(other["generated"]) for other in told[-1]["run"]["others"]] == [11, 11]


@pytest.mark.parametrize("count", [0, 9, 1.5])
def test_a_number_of_continuations_that_is_none_is_refused(random_checkpoint, count):
    answers = Answers(Models(random_checkpoint.path.parent))
    (notice,) = answers.continuation("random", "the", {"length": 3, "count": count})
    assert notice["code"] == "continuations_out_of_range"


def test_one_answer_describes_a_bounded_number_of_steps(random_checkpoint, monkeypatch):
    monkeypatch.setattr(steps, "AT_ONCE", 4)
    arrays = wire.unpack(steps.steps(random_checkpoint, list(range(20)), 3, SAMPLING))
    assert len(arrays["taken_rank"]) == 4


def test_a_window_is_analysed_from_its_own_first_token(random_checkpoint):
    ids = random_checkpoint.tokenizer.encode(TEXT)[5:]
    message = steps.window(random_checkpoint, ids)
    assert message["tokens"] == {"ids": ids, "start": 0, "cropped": [], "prompt_length": len(ids)}
    pattern = trace(random_checkpoint, TEXT[5:]).pattern.numpy()
    assert wire.unpack(message)["pattern"] == pytest.approx(pattern, abs=0.00051)


@pytest.mark.parametrize(
    ("ids", "first", "sampling", "code"),
    [
        ([1, 2, 999], 1, SAMPLING, "tokens_out_of_range"),
        ([1] * 26, 1, SAMPLING, "tokens_out_of_range"),
        ("abc", 1, SAMPLING, "tokens_out_of_range"),
        ([1, 2, 3], 0, SAMPLING, "wrong_type"),
        ([1, 2, 3], 3, SAMPLING, "wrong_type"),
        ([], 1, SAMPLING, "wrong_type"),
        ([1, 2, 3], "1", SAMPLING, "wrong_type"),
        ([1, 2, 3], 1, None, "wrong_type"),
        ([1, 2, 3], 1, SAMPLING | {"top_k": "9"}, "wrong_type"),
        ([1, 2, 3], 1, SAMPLING | {"temperature": float("nan")}, "wrong_type"),
        ([1, 2, 3], 1, SAMPLING | {"temperature": -1}, "temperature_out_of_range"),
        ([1, 2, 3], 1, SAMPLING | {"top_k": 2.5}, "top_k_out_of_range"),
    ],
)
def test_whatever_else_is_asked_is_refused_with_a_sentence(random_checkpoint, ids, first, sampling, code):
    with pytest.raises(PromptError) as refused:
        steps.steps(random_checkpoint, ids, first, sampling)
    assert refused.value.code == code


@pytest.mark.parametrize("ids", [[], [1] * 25, [-1], None])
def test_a_window_that_is_none_is_refused(random_checkpoint, ids):
    answers = Answers(Models(random_checkpoint.path.parent))
    assert answers.window("random", ids)["kind"] == "notice"
    assert answers.window("random", [1] * 24)["kind"] == "analysis"


def test_a_continuation_tells_its_settings_and_what_the_model_gave_each_token(random_checkpoint):
    told = list(continuation(random_checkpoint, "the cat", 30, SETTINGS))
    truth = list(generate(random_checkpoint, "the cat", max_new_tokens=30, temperature=0.7, top_k=9, top_p=0.8, seed=5))
    assert {message["run"]["branch"] for message in told} == {told[0]["run"]["branch"]}
    for message in told:
        run = message["run"]
        assert run["sampling"] == SAMPLING
        assert run["drawn"] == pytest.approx([step.model_probability for step in truth[: len(run["drawn"])]], rel=1e-4)
        if message["kind"] == "generating":
            assert len(run["drawn"]) == len(message["generated"])
    assert len(told[-1]["run"]["drawn"]) == 30


def test_a_branch_begins_with_what_was_given_and_goes_on_as_the_same_text_would(random_checkpoint):
    ckpt, given = random_checkpoint, [3, 0, 19]
    answers = Answers(Models(ckpt.path.parent))
    *_, last_text, last = answers.branch("random", "the cat", {"branch": 77, "given": given, "sampling": SAMPLING})
    settings = {"temperature": 0.7, "top_k": 9, "top_p": 0.8, "seed": 5}
    truth = [
        step.token_id
        for step in generate(ckpt, "the cat" + ckpt.tokenizer.decode(given), max_new_tokens=27, **settings)
    ]
    assert last_text["generated"] == given + truth
    assert last_text["prompt_length"] == last["tokens"]["prompt_length"] == 7
    assert last_text["run"]["branch"] == last["run"]["branch"] == 77
    assert len(last_text["run"]["drawn"]) == 27
    assert last["tokens"]["cropped"] + last["tokens"]["ids"] == ckpt.tokenizer.encode("the cat") + given + truth


def test_a_branch_of_full_length_draws_nothing_more(random_checkpoint):
    asked = {"branch": 8, "given": [1, 2], "sampling": SAMPLING | {"length": 2}}
    text, pictures = Answers(Models(random_checkpoint.path.parent)).branch("random", "the cat", asked)
    assert (text["generated"], text["done"], text["run"]["drawn"]) == ([1, 2], True, [])
    assert pictures["kind"] == "analysis"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (None, "wrong_type"),
        ({"given": [1], "sampling": SAMPLING}, "wrong_type"),
        ({"branch": 1, "given": [999], "sampling": SAMPLING}, "tokens_out_of_range"),
        ({"branch": 1, "given": [1] * 501, "sampling": SAMPLING}, "tokens_out_of_range"),
        ({"branch": 1, "given": [1], "sampling": 3}, "wrong_type"),
        ({"branch": 1, "given": [1], "sampling": SAMPLING | {"length": 501}}, "too_many_new_tokens"),
        ({"branch": 1, "given": [1], "sampling": SAMPLING | {"length": None}}, "too_many_new_tokens"),
        ({"branch": 1, "given": [1], "sampling": SAMPLING | {"top_p": 2}}, "top_p_out_of_range"),
    ],
)
def test_a_branch_that_is_none_is_refused_with_a_sentence(random_checkpoint, asked, code):
    told = list(Answers(Models(random_checkpoint.path.parent)).branch("random", "the cat", asked))
    assert [message.get("code") for message in told] == [code]


def test_reading_ids_again_does_not_read_their_text(random_checkpoint):
    ids = [5, 1, 4]
    steps_of = generate(random_checkpoint, ids, max_new_tokens=2, temperature=0)
    expected = generate(random_checkpoint, random_checkpoint.tokenizer.decode(ids), max_new_tokens=2, temperature=0)
    assert list(steps_of) == list(expected)
    assert torch.is_inference_mode_enabled() is False
