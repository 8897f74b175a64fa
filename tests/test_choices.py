"""What a token was chosen from: both distributions, whole or the likeliest with the rest."""

import pytest
import torch

from minigpt.analysis.choices import choices
from minigpt.errors import PromptError
from minigpt.sampling import LIKELIEST, WHOLE_VOCABULARY, rank, sample_distribution


def logits(n_step, vocab_size, seed=4):
    return torch.randn(n_step, vocab_size, generator=torch.Generator().manual_seed(seed)) * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.7, "top_k": 5, "top_p": 0.9},
        {"temperature": 1.6, "top_k": None, "top_p": 0.5},
        {"temperature": 0, "top_k": None, "top_p": None},
    ],
)
def test_both_distributions_are_listed_whole_and_the_second_is_the_one_that_tokens_are_drawn_from(settings):
    rows, taken = logits(3, 11), [7, 0, 4]
    told = choices(rows, taken, **settings)
    for step, row in enumerate(rows):
        before, after = row.double().softmax(0), sample_distribution(row, **settings)
        order = told.ids[step]
        assert sorted(order.tolist()) == list(range(11))
        assert told.before[step].tolist() == sorted(before.tolist(), reverse=True)
        assert torch.equal(told.before[step], before[order])
        assert torch.equal(told.after[step], after[order])
        assert told.sampled_from[step] == (after > 0).sum()
        assert told.taken_before[step] == before[taken[step]]
        assert told.taken_after[step] == after[taken[step]]
        assert told.taken_rank[step] == rank(row, taken[step]) == order.tolist().index(taken[step])
    assert torch.equal(told.rest, torch.zeros(3, 2, dtype=torch.float64))


def test_of_equally_likely_tokens_the_lower_id_goes_first():
    told = choices(torch.tensor([[1.0, 3.0, 3.0, 2.0, 3.0]]), [4], top_k=2)
    assert told.ids.tolist() == [[1, 2, 4, 3, 0]]
    assert told.after.tolist() == [[0.5, 0.5, 0.0, 0.0, 0.0]]
    assert told.taken_rank.tolist() == [2]


def test_of_a_large_vocabulary_the_likeliest_are_listed_and_the_rest_is_one_number():
    rows = logits(2, WHOLE_VOCABULARY + 1)
    unlikeliest = rows.argmin(1).tolist()
    told = choices(rows, unlikeliest, temperature=1.3)
    assert told.ids.shape == (2, LIKELIEST)
    assert told.before.sum(1) + told.rest[:, 0] == pytest.approx([1, 1])
    assert told.after.sum(1) + told.rest[:, 1] == pytest.approx([1, 1])
    assert (told.rest > 0.01).all()
    assert told.taken_rank.tolist() == [WHOLE_VOCABULARY, WHOLE_VOCABULARY]
    assert torch.equal(told.taken_before, rows.double().softmax(1).amin(1))
    assert choices(logits(2, WHOLE_VOCABULARY), [1, 2]).ids.shape == (2, WHOLE_VOCABULARY)


def test_settings_and_sizes_are_checked():
    with pytest.raises(PromptError):
        choices(logits(2, 7), [1, 2], temperature=-1)
    with pytest.raises(ValueError, match="expected 2 tokens, one for each row of logits, got 3"):
        choices(logits(2, 7), [1, 2, 3])
