"""The lean snapshot computes what the model computes, with all weights or from kept keys and values."""

import gc
import threading
import weakref

import pytest
import torch

from minigpt.lean import LeanModel, lean_model
from minigpt.model import build_model
from tests.reference import LoopTransformer, scattered
from tests.test_model import BLOCK, CONFIGS, B, C, H, L, V

TEXT = torch.randint(V, (3 * BLOCK,), generator=torch.Generator().manual_seed(7)).tolist()


def make(config, dtype=torch.float64):
    torch.manual_seed(1)
    return scattered(build_model(config)).to(dtype).eval()


def transformer():
    return make(CONFIGS[2].values[0])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("config", CONFIGS)
def test_logits_and_all_weights_are_those_of_the_model(config, dtype, tolerance):
    model = make(config, dtype)
    lean = LeanModel(model)
    for time in (1, 7, BLOCK, 7):  # back to a length seen before: whatever room is kept must not show
        idx = torch.tensor(TEXT[time : 2 * time])
        expected_logits, _, expected_weights = model(idx[None], return_weights=True)
        logits, weights = lean.forward_with_weights(idx)
        assert (logits - expected_logits[0]).abs().max() <= tolerance
        assert (weights - expected_weights[:, 0]).abs().max() <= tolerance
        assert weights.triu(1).count_nonzero() == 0


def test_a_result_is_not_overwritten_by_the_next():
    lean = LeanModel(transformer())
    logits, weights = lean.forward_with_weights(torch.tensor(TEXT[:7]))
    before = logits.clone(), weights.clone()
    lean.forward_with_weights(torch.tensor(TEXT[7:14]))
    assert torch.equal(logits, before[0])
    assert torch.equal(weights, before[1])


def test_it_equals_separate_heads():
    loop = scattered(LoopTransformer(V, BLOCK, C, H, L, 0.0)).double()
    model = transformer()
    model.load_state_dict(loop.state_dict())
    idx = torch.tensor(TEXT[:BLOCK])
    logits, weights = LeanModel(model).forward_with_weights(idx)
    expected_logits, expected_weights = loop(idx[None])
    assert (logits - expected_logits[0]).abs().max() <= 1e-12
    assert (weights - expected_weights[:, 0]).abs().max() <= 1e-12


@pytest.mark.parametrize("time", [0, BLOCK + 1])
def test_a_text_that_does_not_fit_is_refused(time):
    with pytest.raises(ValueError, match=f"1 to block_size = {BLOCK} tokens, got {time}"):
        LeanModel(transformer()).forward_with_weights(torch.zeros(time, dtype=torch.long))


def test_a_snapshot_is_kept_until_a_parameter_changes():
    model = transformer()
    first = lean_model(model)
    assert lean_model(model) is first
    idx = torch.tensor(TEXT[:7])
    model(idx[None], idx[None])[1].backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert not first.is_current()
    expected = model(idx[None])[0][0]
    assert (lean_model(model).forward_with_weights(idx)[0] - expected).abs().max() <= 1e-12
    assert (first.forward_with_weights(idx)[0] - expected).abs().max() > 1e-3


def test_loading_other_parameters_ends_a_snapshot():
    model, other = transformer(), scattered(transformer())
    first = lean_model(model)
    model.load_state_dict(other.state_dict())
    assert lean_model(model) is not first


def test_a_snapshot_goes_with_its_model():
    model = transformer()
    snapshot = weakref.ref(lean_model(model))
    del model
    gc.collect()
    assert snapshot() is None


def test_threads_may_share_a_snapshot():
    lean = LeanModel(transformer())
    texts = [torch.tensor(TEXT[start : start + 7]) for start in range(B * H)]
    expected = [lean.forward_with_weights(text) for text in texts]
    wrong = []

    def work(number):
        for _ in range(30):
            logits, weights = lean.forward_with_weights(texts[number])
            if not (torch.equal(logits, expected[number][0]) and torch.equal(weights, expected[number][1])):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
