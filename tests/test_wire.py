import base64
import json
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from minigpt import wire
from minigpt.analysis.patterns import trace
from minigpt.checkpoint import load_checkpoint
from minigpt.generation import generate

SHIPPED = Path(__file__).resolve().parents[1] / "checkpoints" / "shakespeare"
CHECKPOINT = {
    "name": "a",
    "kind": "transformer",
    "n_layer": 2,
    "n_head": 3,
    "n_embd": 12,
    "block_size": 64,
    "vocab_size": 7,
    "parameters": 1234,
    "tokenizer": "characters",
}


def attention(n_layer, n_head, n_token, sharpness=3.0, seed=5):
    """Random causal attention; the sharper, the more of it on few keys."""
    scores = np.random.default_rng(seed).normal(size=(n_layer, n_head, n_token, n_token)) * sharpness
    pattern = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(n_token)
    return (pattern / pattern.sum(-1, keepdims=True)).astype(np.float32)


def message_of(pattern, **options):
    n_layer, n_head, n_token, _ = pattern.shape
    numbers = np.random.default_rng(3)
    return wire.analysis(
        checkpoint={**CHECKPOINT, "n_layer": n_layer, "n_head": n_head},
        tokens={"ids": [3] * n_token, "start": 2, "cropped": [6, 5], "prompt_length": 4},
        pieces={3: "x", 5: "é", 6: "\n"},
        checks={"logit_difference": 1e-6, "compared": n_token, "row_sum_error": 2e-7},
        scores={"previous": np.full((n_layer, n_head), 0.5), "induction": np.full((n_layer, n_head), np.nan)},
        next_id=numbers.integers(0, 7, (n_token, 4)),
        next_probability=numbers.random((n_token, 4)),
        taken_probability=np.append(numbers.random(n_token - 1), -1),
        taken_rank=np.append(numbers.integers(0, 7, n_token - 1), -1),
        pattern=pattern,
        **options,
    )


def read_slowly(message, name="pattern"):
    """Read the weights as the layout is written down, one cell after another."""
    block = zlib.decompress(base64.b64decode(message["payload"]))
    places = message["arrays"]

    def numbers(of, dtype):
        place = places[of]
        return np.frombuffer(block[place["offset"] : place["offset"] + place["bytes"]], dtype).tolist()

    grouped, large = numbers(name, "u1"), iter(numbers(f"{name}_large", "<u2"))
    following = numbers(f"{name}_starts", "<i4")
    n_layer, n_head, n_cell = places[name]["shape"]
    side = int((2 * n_cell) ** 0.5)
    parts = np.zeros((n_layer, n_head, side, side), int)
    for layer in range(n_layer):
        for head in range(n_head):
            rows = parts[layer, head]
            for query in range(side):
                for key in range(query + 1):
                    above = (rows[query - 1, key] if query >= 1 else 0) + (rows[query - 2, key] if query >= 2 else 0)
                    group = sum(above >= bound for bound in (1, 2, 3, 5, 7, 10, 15, 25, 50))
                    byte = grouped[following[group]]
                    following[group] += 1
                    rows[query, key] = byte if byte < 255 else next(large)
    assert next(large, None) is None
    return parts / 1000


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 4.0, 30.0])
def test_every_weight_is_read_back_to_half_a_thousandth(sharpness):
    pattern = attention(2, 3, 41, sharpness)
    read = wire.unpack(message_of(pattern))["pattern"]
    assert np.abs(read - pattern).max() <= 0.000501
    assert (read[..., ~np.tri(41, dtype=bool)] == 0).all()


def test_three_digits_that_are_read_out_are_the_right_ones():
    pattern = attention(1, 2, 23)
    read = wire.unpack(message_of(pattern))["pattern"]
    assert [f"{weight:.3f}" for weight in read.ravel()] == [f"{weight:.3f}" for weight in pattern.ravel()]


def test_a_message_of_a_trained_model_stays_below_half_a_megabyte():
    ckpt = load_checkpoint(SHIPPED)
    text = "".join(step.token for step in generate(ckpt, "ROMEO:\n", max_new_tokens=300, seed=4))
    pattern = trace(ckpt, text).pattern.numpy()
    assert pattern.shape[2:] == (256, 256)
    share = pattern.shape[0] * pattern.shape[1] / 36
    assert len(json.dumps(message_of(pattern))) <= 500_000 * share


def test_weights_of_0_and_1_are_read_back_exactly():
    pattern = np.zeros((1, 1, 3, 3), np.float32)
    pattern[0, 0, :, 0] = 1
    assert (wire.unpack(message_of(pattern))["pattern"] == pattern).all()


def test_the_layout_is_the_one_that_is_written_down():
    pattern = attention(2, 3, 17)
    message = message_of(pattern)
    assert np.abs(read_slowly(message) - wire.unpack(message)["pattern"]).max() < 1e-7
    assert np.abs(read_slowly(message) - pattern).max() <= 0.000501
    assert all(place["offset"] % 4 == 0 for place in message["arrays"].values())


def test_the_other_arrays_arrive_as_they_were_sent():
    message = message_of(attention(2, 3, 9))
    arrays = wire.unpack(json.loads(json.dumps(message)))
    numbers = np.random.default_rng(3)
    assert (arrays["next_id"] == numbers.integers(0, 7, (9, 4))).all()
    assert (arrays["next_probability"] == numbers.random((9, 4)).astype(np.float32)).all()
    assert arrays["taken_rank"][-1] == arrays["taken_probability"][-1] == -1
    assert (arrays["head_score"][0] == 0.5).all()
    assert np.isnan(arrays["head_score"][1]).all()
    assert message["scores"] == ["previous", "induction"]
    assert message["pieces"] == {"3": "x", "5": "é", "6": "\n"}
    assert message["mode"] == "full"


def test_a_message_is_strict_json():
    json.dumps(message_of(attention(2, 3, 9)), allow_nan=False)


def test_too_large_a_message_carries_thumbnails_of_the_largest_weights():
    pattern = attention(2, 3, 150)
    message = message_of(pattern, largest=30_000)
    assert message["mode"] == "thumbnails"
    assert message["thumbnail_block"] == 3
    assert len(message["payload"]) <= 30_000
    thumbnail = wire.unpack(message)["thumbnail"]
    assert thumbnail.shape == (2, 3, 50, 50)
    assert abs(thumbnail[1, 2, 30, 4] - pattern[1, 2, 90:93, 12:15].max()) <= 0.000501
    assert abs(thumbnail[1, 2, 30, 30] - pattern[1, 2, 90:93, 90:93].max()) <= 0.000501
    assert np.abs(read_slowly(message, "thumbnail") - thumbnail).max() < 1e-7
    assert (thumbnail[..., ~np.tri(50, dtype=bool)] == 0).all()


def test_what_is_far_too_large_is_not_packed_in_vain(monkeypatch):
    packed = []
    monkeypatch.setattr(wire, "pack", lambda arrays: (packed.append(sorted(arrays)), ({}, ""))[1])
    message_of(attention(2, 3, 150), largest=1_000)
    assert len(packed) == 1
    assert "pattern" not in packed[0]
    assert "thumbnail" in packed[0]


def test_one_head_travels_alone_at_full_resolution():
    pattern = attention(1, 1, 37)[0, 0]
    message = wire.head(4, 5, pattern)
    assert (message["kind"], message["layer"], message["head"]) == ("head", 4, 5)
    read = wire.unpack(message)["pattern"]
    assert read.shape == (1, 1, 37, 37)
    assert np.abs(read[0, 0] - pattern).max() <= 0.000501


def test_a_message_of_another_version_is_refused():
    with pytest.raises(ValueError, match="version 1, got 2"):
        wire.unpack({**message_of(attention(1, 1, 3)), "version": 2})


def test_a_payload_that_is_too_short_is_refused():
    message = message_of(attention(1, 2, 5))
    _, message["payload"] = wire.pack({"pattern": np.zeros(3, np.uint8)})
    with pytest.raises(ValueError, match=r"expected \d+ bytes of arrays, got 4"):
        wire.unpack(message)


def test_only_what_the_browser_reads_is_packed():
    with pytest.raises(TypeError, match="for weights, got float64"):
        wire.pack({"weights": np.zeros(2)})


def test_no_two_messages_have_the_same_number_and_later_ones_have_larger_ones():
    numbers = [[] for _ in range(4)]

    def draw(mine):
        mine.extend(wire.next_request() for _ in range(500))

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in numbers)
    assert len({number for mine in numbers for number in mine}) == 2000
    assert max(map(max, numbers)) < 2**53


def test_generating_says_all_that_was_generated_so_far():
    generated = [3, 5]
    sampling: wire.SamplingInfo = {"temperature": 0.5, "top_k": 4, "top_p": None, "seed": 9, "length": 2}
    message = wire.generating(
        checkpoint="a",
        generated=generated,
        pieces={3: "x", 5: "y"},
        prompt_length=8,
        done=True,
        run={"branch": 6, "drawn": [0.5, 0.25], "sampling": sampling},
    )
    generated.append(3)
    assert message["generated"] == [3, 5]
    assert message["pieces"] == {"3": "x", "5": "y"}
    assert message["done"]
    assert message["seed"] == 9
    json.dumps(message, allow_nan=False)


def test_a_notice_carries_its_sentences_and_its_action():
    message = wire.notice("unknown_characters", {"en": "no é", "ko": "é 없음"}, "leave_out")
    assert message["kind"] == "notice"
    assert message["sentences"] == {"en": "no é", "ko": "é 없음"}
    assert message["action"] == "leave_out"
