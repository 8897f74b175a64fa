"""The engine reads a growing text as the plain model reads its window, with far less work."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minigpt import engine
from minigpt.config import ModelConfig
from minigpt.engine import Reader
from minigpt.lean import LeanModel
from minigpt.model import TransformerLanguageModel, build_model
from tests.reference import LoopTransformer, scattered
from tests.test_model import BLOCK, CONFIGS, OPTIONS, C, H, L, V

BATCH = 5
TEXTS = np.random.default_rng(7).integers(V, size=(BATCH, 3 * BLOCK))
ALL = [
    *CONFIGS,
    *(
        pytest.param(
            ModelConfig(vocab_size=V, block_size=BLOCK, n_embd=C, n_head=H, n_layer=1, **options),
            id=f"one-layer-{number}",
        )
        for number, options in enumerate(OPTIONS)
    ),
]


def make(config, dtype=torch.float64):
    torch.manual_seed(1)
    return scattered(build_model(config)).to(dtype).eval()


def plain(model, text):
    """Return what the engine must equal."""
    with torch.no_grad():
        return model(torch.from_numpy(text[:, -BLOCK:]))[0][:, -1]


@pytest.mark.parametrize(("table", "small"), [(0, 0), (0, 2**19), (2**22, 0), (2**22, 2**19)])
@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("config", ALL)
def test_every_step_is_the_plain_model_on_its_window(config, dtype, tolerance, batch, table, small, monkeypatch):
    monkeypatch.setattr(engine, "LARGEST_TABLE", table)
    monkeypatch.setattr(engine, "SMALL_PRODUCT", small)
    model = make(config, dtype)
    reader, text = Reader(LeanModel(model), batch), TEXTS[:batch]
    read = 2
    logits = reader.read(text[:, :read])
    while read < text.shape[1]:
        assert logits.shape == (batch, V)
        assert (logits - plain(model, text[:, :read])).abs().max() <= tolerance
        assert reader.start == max(0, read - BLOCK)
        assert reader.window.tolist() == text[:, max(0, read - BLOCK) : read].tolist()
        logits = reader.read(text[:, read : read + 1])
        read += 1


@given(st.lists(st.integers(1, 2 * BLOCK), min_size=1, max_size=7), st.sampled_from([1, 3]))
def test_how_a_text_is_cut_into_pieces_does_not_matter(pieces, batch):
    model = make(CONFIGS[2].values[0])
    text = np.tile(TEXTS[:batch], 5)
    reader, read = Reader(LeanModel(model), batch), 0
    for piece in pieces:
        logits = reader.read(text[:, read : read + piece])
        read += piece
        assert reader.start == max(0, read - BLOCK)
    assert (logits - plain(model, text[:, :read])).abs().max() <= 1e-12


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("prompt", [3, BLOCK, 2 * BLOCK])
def test_several_texts_go_on_from_one_that_was_read_once(config, prompt):
    model = make(config)
    reader = Reader(LeanModel(model))
    reader.read(TEXTS[:1, :prompt])
    shared = reader.share(BATCH)
    texts = np.concatenate([np.repeat(TEXTS[:1, :prompt], BATCH, 0), TEXTS[:, 3 : 3 + BLOCK]], axis=1)
    for read in range(prompt, texts.shape[1]):
        logits = shared.read(texts[:, read : read + 1])
        assert (logits - plain(model, texts[:, : read + 1])).abs().max() <= 1e-12
        assert shared.start == max(0, read + 1 - BLOCK)


def test_half_precision_is_computed_in_float32():
    model = make(CONFIGS[2].values[0], torch.float16)
    logits = Reader(LeanModel(model)).read(TEXTS[:1, :7])
    assert logits.dtype == torch.float32
    assert (logits - plain(model.float(), TEXTS[:1, :7])).abs().max() <= 1e-5


def test_nothing_is_kept_for_gradients_and_no_weights_are_made(monkeypatch):
    model = make(CONFIGS[2].values[0])
    monkeypatch.setattr(LeanModel, "forward_with_weights", None)
    logits = Reader(LeanModel(model)).read(TEXTS[:1, :7])
    assert logits.is_inference()


# --- model.generate ---------------------------------------------------------------------------------------------------


def test_what_is_generated_may_go_into_training():
    model = make(CONFIGS[2].values[0]).train()
    text = model.generate(torch.from_numpy(TEXTS[:3, :2]), 6)
    model(text[:, :-1], text[:, 1:])[1].backward()
    assert model.lm_head.weight.grad.abs().sum() > 0


def test_a_change_through_data_reaches_the_next_text():
    loop, model = (cls(V, BLOCK, C, H, L, 0.0).double() for cls in (LoopTransformer, TransformerLanguageModel))
    start = torch.from_numpy(TEXTS[:2, :3])
    model.generate(start, 1)
    loop.load_state_dict(scattered(loop).state_dict())
    for name, parameter in model.state_dict().items():
        parameter.data.copy_(loop.state_dict()[name])
    texts = []
    for each in (loop, model):
        torch.manual_seed(3)
        texts.append(each.generate(start, 2 * BLOCK))
    assert torch.equal(*texts)


@pytest.mark.parametrize(
    ("start", "error"), [(torch.zeros(1, 0, dtype=torch.long), ValueError), (torch.tensor([[V]]), IndexError)]
)
def test_a_start_that_cannot_be_continued_is_refused(start, error):
    with pytest.raises(error):
        make(CONFIGS[2].values[0]).generate(start, 3)


def test_no_new_tokens_are_the_text_itself():
    start = torch.from_numpy(TEXTS[:2, :3])
    assert torch.equal(make(CONFIGS[2].values[0]).generate(start, 0), start)
