"""From logits to a token: a pure function with exact edges, and draws that each text makes for itself."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minigpt.errors import PromptError
from minigpt.sampling import LARGEST_SEED, Sampler, Sampling, draw, penalised, rank, sample_distribution, seed_of

logits_lists = st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=13)
temperatures = st.floats(1e-3, 50)


# --- the distribution -------------------------------------------------------------------------------------------------


@given(logits_lists, temperatures)
def test_temperature_divides_the_logits(logits, temperature):
    logits = torch.tensor(logits)
    expected = (logits.double() / temperature).softmax(0)
    assert torch.allclose(sample_distribution(logits, temperature), expected, atol=1e-12)


@given(logits_lists, temperatures, st.integers(1, 20))
def test_top_k_keeps_exactly_the_k_likeliest_in_proportion(logits, temperature, top_k):
    logits = torch.tensor(logits)
    whole, cut = sample_distribution(logits, temperature), sample_distribution(logits, temperature, top_k)
    order = logits.sort(descending=True, stable=True).indices
    kept, gone = order[:top_k], order[top_k:]
    assert cut[gone].count_nonzero() == 0
    assert torch.allclose(cut[kept], whole[kept] / whole[kept].sum(), atol=1e-12)


@given(logits_lists, temperatures, st.floats(1e-6, 1))
def test_top_p_keeps_the_fewest_likeliest_that_suffice(logits, temperature, top_p):
    logits = torch.tensor(logits)
    whole, cut = sample_distribution(logits, temperature), sample_distribution(logits, temperature, top_p=top_p)
    assert abs(cut.sum() - 1) <= 1e-12
    order = logits.sort(descending=True, stable=True).indices
    ordered, kept = whole[order], int((cut > 0).sum())
    assert cut[order[kept:]].count_nonzero() == 0
    assert ordered[:kept].sum() >= top_p - 1e-12 or kept == int((whole > 0).sum())
    assert ordered[: kept - 1].sum() < top_p
    assert torch.allclose(cut[order[:kept]], ordered[:kept] / ordered[:kept].sum(), atol=1e-12)


def test_top_p_looks_at_what_top_k_left():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    # of 4/7 and 3/7 the first suffices for 0.5; without top-k it would not
    assert sample_distribution(logits, top_k=2, top_p=0.5).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert sample_distribution(logits, top_p=0.5).count_nonzero() == 2


def test_of_equal_tokens_the_lower_ids_stay():
    logits = torch.tensor([1.0, 2.0, 2.0, 2.0])
    assert sample_distribution(logits, top_k=2).tolist() == [0.0, 0.5, 0.5, 0.0]
    assert sample_distribution(logits, temperature=0).tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("temperature", [0, 5e-324, 1e-300])
def test_a_temperature_towards_zero_is_greedy(temperature):
    logits = torch.tensor([-1e4, 3.0, 2.999, 1e-3])
    assert sample_distribution(logits, temperature).tolist() == [0.0, 1.0, 0.0, 0.0]


def test_the_logits_are_left_alone():
    logits = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)
    sample_distribution(logits, 0.5, 2, 0.9)
    assert logits.tolist() == [3.0, 1.0, 2.0]


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=13).filter(lambda p: sum(p) > 1e-9),
    st.floats(0, 1, exclude_max=True),
)
def test_a_draw_is_the_token_under_the_number(shares, number):
    probabilities = torch.tensor(shares, dtype=torch.float64) / sum(shares)
    token_id = draw(probabilities, number)
    assert probabilities[token_id] > 0
    assert probabilities[:token_id].sum() <= number + 1e-12
    assert probabilities[: token_id + 1].sum() >= number - 1e-12


def test_the_largest_number_draws_the_last_possible_token():
    assert draw(torch.tensor([0.3, 0.7, 0.0], dtype=torch.float64), 1 - 2**-53) == 1


def test_rank_counts_the_likelier_ones():
    logits = torch.tensor([2.0, 5.0, 2.0, -1.0])
    assert [rank(logits, token_id) for token_id in range(4)] == [1, 0, 2, 3]


@given(logits_lists, temperatures, st.floats(1e-6, 1))
def test_min_p_keeps_what_is_at_least_that_share_as_likely_as_the_likeliest(logits, temperature, min_p):
    logits = torch.tensor(logits)
    whole, cut = sample_distribution(logits, temperature), sample_distribution(logits, temperature, min_p=min_p)
    assert abs(cut.sum() - 1) <= 1e-12
    assert (
        cut[whole >= min_p * whole.max() * (1 + 1e-9)].count_nonzero()
        == (whole >= min_p * whole.max() * (1 + 1e-9)).sum()
    )
    assert cut[whole < min_p * whole.max() * (1 - 1e-9)].count_nonzero() == 0
    kept = cut > 0
    assert torch.allclose(cut[kept], whole[kept] / whole[kept].sum(), atol=1e-12)


def test_min_p_looks_at_what_top_p_left():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    assert sample_distribution(logits, min_p=0.45).count_nonzero() == 3
    assert sample_distribution(logits, top_p=0.6, min_p=0.45).count_nonzero() == 2
    assert sample_distribution(logits, top_p=0.6, min_p=0.8).count_nonzero() == 1


@given(
    logits_lists.flatmap(
        lambda logits: st.tuples(
            st.just(logits), st.lists(st.integers(0, len(logits) - 1), min_size=1, max_size=7), st.floats(0.1, 5)
        )
    )
)
def test_the_repetition_penalty_makes_what_the_window_holds_less_likely(given_):
    logits, window, penalty = given_
    changed = penalised(np.array([logits]), np.array([window]), penalty)[0]
    for token_id, (before, after) in enumerate(zip(logits, changed, strict=True)):
        if token_id not in window:
            assert after == before
        else:  # once, however often the window holds it
            assert after == (before / penalty if before > 0 else before * penalty)


def test_a_large_vocabulary_is_cut_like_a_small_one():
    logits = torch.randn(5003, generator=torch.Generator().manual_seed(3)).mul(3).round(decimals=1)  # many are equal
    order = logits.double().argsort(descending=True, stable=True)
    whole = sample_distribution(logits, 1.3)
    for top_k, top_p in ((17, None), (None, 0.31), (None, 0.97), (401, 0.9)):
        expected = whole.clone()
        if top_k is not None:
            expected[order[top_k:]] = 0
        ordered = expected[order] / expected.sum()
        if top_p is not None:
            expected[order[ordered.cumsum(0) - ordered >= top_p]] = 0
        assert torch.allclose(sample_distribution(logits, 1.3, top_k, top_p), expected / expected.sum(), atol=1e-15)


@pytest.mark.parametrize(
    ("wrong", "code", "named"),
    [
        ({"min_p": 0.0}, "min_p_out_of_range", "0.0"),
        ({"min_p": 1.2}, "min_p_out_of_range", "1.2"),
        ({"repetition_penalty": 0.0}, "repetition_penalty_out_of_range", "0.0"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty_out_of_range", "inf"),
        ({"top_k": True}, "top_k_out_of_range", "True"),
    ],
)
def test_settings_that_give_no_distribution_are_refused(wrong, code, named):
    with pytest.raises(PromptError) as caught:
        Sampling(**wrong)
    assert caught.value.code == code
    assert named in str(caught.value)


# --- drawing for several texts ----------------------------------------------------------------------------------------

SETTINGS = [
    {},
    {"temperature": 0.0},
    {"temperature": 1.7, "top_k": 4},
    {"top_p": 0.9, "min_p": 0.2, "repetition_penalty": 1.3},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_texts_drawn_side_by_side_are_those_drawn_alone(settings):
    rng = np.random.default_rng(5)
    seeds = [3, 1, 4]
    together = Sampler(Sampling(**settings), seeds)
    alone = [Sampler(Sampling(**settings), [seed]) for seed in seeds]
    for _ in range(20):
        logits, window = torch.from_numpy(rng.normal(scale=3, size=(3, 11))), rng.integers(11, size=(3, 7))
        drawn = together.draw(logits, window)
        for row, sampler in enumerate(alone):
            own = sampler.draw(logits[row : row + 1], window[row : row + 1])
            assert own[:4] == tuple([values[row]] for values in drawn[:4])


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_drawn_token_comes_with_its_own_probabilities(settings):
    rng = np.random.default_rng(6)
    sampler = Sampler(Sampling(**settings), [2, 7])
    for _ in range(20):
        logits, window = torch.from_numpy(rng.normal(scale=3, size=(2, 11))), rng.integers(11, size=(2, 5))
        drawn = sampler.draw(logits, window)
        changed = torch.from_numpy(penalised(logits.numpy(), window, settings.get("repetition_penalty", 1.0)))
        cutting = {name: value for name, value in settings.items() if name != "repetition_penalty"}
        for row, token_id in enumerate(drawn.ids):
            expected = sample_distribution(changed[row], **cutting)
            assert drawn.probabilities[row] == pytest.approx(expected[token_id].item(), abs=1e-12)
            assert drawn.log_probabilities[row] == pytest.approx(logits[row].log_softmax(0)[token_id].item(), abs=1e-12)
            assert drawn.ranks[row] == rank(logits[row], token_id)
            assert np.allclose(drawn.shares[row] / drawn.shares[row].sum(), expected.numpy(), atol=1e-12)


def test_draws_follow_the_distribution():
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log().double()
    sampler = Sampler(Sampling(), [11])
    counts = np.bincount([sampler.draw(logits, np.array([[0]])).ids[0] for _ in range(4000)], minlength=3) / 4000
    assert np.abs(counts - [0.5, 0.3, 0.2]).max() < 0.03


def test_the_first_continuation_has_the_seed_itself_and_no_two_have_the_same():
    for seed in (0, 7, LARGEST_SEED):
        seeds = [seed_of(seed, continuation) for continuation in range(8)]
        assert seeds[0] == seed
        assert len(set(seeds)) == 8
        assert all(0 <= each <= LARGEST_SEED for each in seeds)
    assert seed_of(7, 1) != seed_of(8, 1)
