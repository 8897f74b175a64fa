"""Files with the exact numbers: what a reader gets back is the float32 of the forward pass, bit for bit."""

import csv
import io
import json

import numpy as np
import pytest
import torch

from minigpt import exports
from minigpt.analysis.patterns import trace_ids
from minigpt.analysis.scores import SCORES, head_scores
from minigpt.checkpoint import load_checkpoint
from minigpt.errors import PromptError
from tests.ui.viewing import save_random_model

ODD = ["=", "+", "-", "@", '"', ",", "\n", "\t", "가", "🙂", "<", "\u200d", "a", "\\"]
INFO = {"name": "이름", "kind": "transformer"}
IDS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 8]
START = 3
"""Of the window: the model sees the last 13 of the 16 tokens."""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("models") / "odd"
    save_random_model(folder, "".join(ODD), n_layer=3, n_head=2, block_size=13)
    return trace_ids(load_checkpoint(folder), IDS)


def test_an_npz_holds_every_number_and_needs_no_unpickling(traced):
    arrays = np.load(io.BytesIO(exports.npz_of(traced, INFO, 11)), allow_pickle=False)
    assert arrays["pattern"].dtype == np.float32
    assert np.array_equal(arrays["pattern"], traced.pattern.numpy())
    assert arrays["ids"].tolist() == IDS[START:]
    assert arrays["cropped_ids"].tolist() == IDS[:START]
    assert arrays["tokens"].tolist() == [ODD[token_id] for token_id in IDS[START:]]
    assert (int(arrays["start"]), int(arrays["prompt_length"])) == (START, 11)
    assert json.loads(str(arrays["checkpoint"])) == INFO
    assert tuple(arrays["score_names"]) == SCORES
    scores = head_scores(traced.pattern, traced.tokens)
    for name, values in zip(arrays["score_names"], arrays["head_score"], strict=True):
        assert np.array_equal(values, scores[str(name)].numpy().astype(np.float32), equal_nan=True), name


def test_a_csv_holds_one_head_and_leaves_the_future_empty(traced):
    rows = list(csv.reader(io.StringIO(exports.csv_of(traced, 2, 1).decode("utf-8-sig"))))
    assert rows[0] == ["L2H1", "", *map(str, range(START, 16))]
    assert [json.loads(name) for name in rows[1][2:]] == traced.tokens
    for query, (position, name, *weights) in enumerate(rows[2:]):
        assert (int(position), json.loads(name)) == (START + query, traced.tokens[query])
        exact = traced.pattern[2, 1, query, : query + 1].numpy()
        assert np.array_equal(np.array(weights[: query + 1], dtype=np.float32), exact)
        assert weights[query + 1 :] == [""] * (12 - query)
    assert len(rows) == 2 + 13


def test_no_cell_of_a_csv_is_a_formula(traced):
    text = exports.csv_of(traced, 0, 0).decode("utf-8-sig")
    assert [
        cell for row in csv.reader(io.StringIO(text)) for cell in row if cell.startswith(("=", "+", "-", "@"))
    ] == []


def test_a_json_holds_every_number_of_every_head(traced):
    read = json.loads(exports.json_of(traced, INFO, 11))
    assert (read["format"], read["version"], read["checkpoint"]) == ("minigpt-attention", 1, INFO)
    assert (read["start"], read["prompt_length"]) == (START, 11)
    assert (read["tokens"], read["ids"]) == (traced.tokens, traced.ids)
    assert (read["cropped_tokens"], read["cropped_ids"]) == (ODD[:START], IDS[:START])
    assert (read["logit_difference"], read["row_sum_error"]) == (traced.logit_difference, traced.row_sum_error)
    assert [[len(head) for head in layer] for layer in read["pattern"]] == [[13, 13]] * 3
    for layer in range(3):
        for head in range(2):
            for query, row in enumerate(read["pattern"][layer][head]):
                assert np.array_equal(np.float32(row), traced.pattern[layer, head, query, : query + 1].numpy())
    scores = head_scores(traced.pattern, traced.tokens)
    for name in SCORES:
        answered = np.array(read["head_scores"][name], dtype=np.float64)
        assert np.allclose(answered, scores[name].numpy(), atol=1e-6, equal_nan=True), name


def test_a_weight_is_written_with_no_more_digits_than_it_needs(traced):
    longest = max(len(cell) for cell in exports.csv_of(traced, 1, 0).decode("utf-8-sig").split(","))
    assert longest <= len("1.2345679e-05")


def test_too_much_at_once_is_refused_with_the_way_out():
    exports.check_size(12, 12, 256)
    with pytest.raises(PromptError, match=r"150,994,944 weights; at most 12,000,000 .* one head as CSV"):
        exports.check_size(12, 12, 1024)
