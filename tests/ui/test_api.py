"""What programs meet: `/analyze` and `/generate`, their answers and their refusals, from the running app."""

import itertools
import json
import urllib.request

import numpy as np
import pytest
from gradio_client.exceptions import AppError

from minigpt import wire
from minigpt.analysis.patterns import trace
from minigpt.analysis.scores import SCORES, head_scores
from minigpt.checkpoint import load_checkpoint
from minigpt.generation import generate
from tests.ui.viewing import save_random_model

LETTERS = "abcdefghij ,.\n"
TEXT = "a bad cab, fed ice.\nhi"


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_random_model(folder / "letters", LETTERS, n_layer=3, n_head=4, block_size=17)
    save_random_model(folder / "numbers", "0123456789", n_layer=2, n_head=1, block_size=5)
    return folder


@pytest.fixture(scope="session")
def url(start_app, models):
    return start_app(models)


@pytest.fixture(scope="session")
def client(connect, url):
    return connect(url)


@pytest.fixture(scope="session")
def letters(models):
    return load_checkpoint(models / "letters")


def analyze(client, text=TEXT, **options):
    return client.predict(text, **options, api_name="/analyze")


def continuations(client, prompt=TEXT, **options):
    job = client.submit(prompt, **options, api_name="/generate")
    answers = list(job)
    if (error := job.exception()) is not None:
        raise error
    return answers


# --- what is offered --------------------------------------------------------------------------------------------------


def test_three_endpoints_are_offered_typed_and_described(client):
    offered = client.view_api(return_format="dict", print_info=False)
    assert offered["unnamed_endpoints"] == {}
    named = offered["named_endpoints"]
    assert set(named) == {"/analyze", "/generate", "/export"}
    types = {
        endpoint: {each["parameter_name"]: each["python_type"]["type"] for each in description["parameters"]}
        for endpoint, description in named.items()
    }
    assert types["/analyze"] == {
        "text": "str",
        "checkpoint": "str",
        "layer": "None | int",
        "head": "None | int",
        "packed": "bool",
    }
    assert types["/generate"] == {
        "prompt": "str",
        "checkpoint": "str",
        "max_new_tokens": "int",
        "temperature": "float",
        "top_k": "int",
        "top_p": "float",
        "seed": "int",
        "min_p": "float",
        "repetition_penalty": "float",
    }
    assert types["/export"] == {
        "text": "str",
        "format": "Literal['npz', 'csv', 'json', 'html']",
        "checkpoint": "str",
        "layer": "int",
        "head": "int",
        "language": "Literal['en', 'ko']",
    }
    for description in named.values():
        assert description["description"]
        assert any(name in str(description["returns"]) for name in ("positions", "tokens", "orig_name"))


# --- /analyze ---------------------------------------------------------------------------------------------------------


def test_an_analysis_holds_the_exact_numbers_of_the_model(client, letters):
    answer = analyze(client, layer=2, head=1)
    traced = trace(letters, TEXT)
    assert len(TEXT) == 22
    assert answer["checkpoint"]["name"] == "letters"
    assert (answer["checkpoint"]["n_layer"], answer["checkpoint"]["n_head"]) == (3, 4)
    assert answer["cropped"] == list(TEXT[:5])
    assert [each["token"] for each in answer["positions"]] == list(TEXT[5:])
    assert [each["position"] for each in answer["positions"]] == list(range(5, 22))
    assert [len(row) for row in answer["pattern"]] == list(range(1, 18))
    for query, row in enumerate(answer["pattern"]):
        assert np.array_equal(np.float32(row), traced.pattern[2, 1, query, : query + 1].numpy())
    assert answer["row_sum_error"] == traced.row_sum_error
    assert 0 <= answer["logit_difference"] < 1e-4


def test_an_analysis_holds_the_scores_of_every_head(client, letters):
    scores = analyze(client)["head_scores"]
    traced = trace(letters, TEXT)
    expected = head_scores(traced.pattern, traced.tokens)
    assert tuple(scores) == SCORES
    for name in SCORES:
        answered = np.array(scores[name], dtype=np.float64)
        assert np.allclose(answered, expected[name].numpy(), atol=1e-6, equal_nan=True), name


def test_an_analysis_says_what_the_model_expected(client, letters):
    positions = analyze(client)["positions"]
    probability = trace(letters, TEXT).logits.softmax(-1)
    for index, position in enumerate(positions):
        likeliest = [each["probability"] for each in position["next"]]
        assert likeliest == sorted(likeliest, reverse=True)
        assert position["next"][0]["id"] == int(probability[index].argmax())
        assert position["next"][0]["token"] == LETTERS[position["next"][0]["id"]]
    taken = probability[0, positions[1]["id"]].item()
    assert positions[0]["next_taken_probability"] == pytest.approx(taken, rel=1e-5)
    assert positions[-1]["next_taken_probability"] is positions[-1]["next_taken_rank"] is None


def test_weights_of_one_head_come_only_when_they_are_asked_for(client):
    answer = analyze(client)
    assert answer["pattern"] is answer["message"] is None


def test_the_message_of_the_page_can_be_unpacked_by_a_program(client, letters):
    message = analyze(client, packed=True)["message"]
    assert np.abs(wire.unpack(message)["pattern"] - trace(letters, TEXT).pattern.numpy()).max() <= 0.000501
    assert message["tokens"]["cropped"] == letters.tokenizer.encode(TEXT[:5])
    assert message["tokens"]["prompt_length"] == 22
    for token_id in itertools.chain(message["tokens"]["ids"], wire.unpack(message)["next_id"].ravel().tolist()):
        assert message["pieces"][str(token_id)] == LETTERS[token_id]


def test_another_model_is_asked_for_by_name(client):
    answer = analyze(client, "31415926", checkpoint="numbers")
    assert answer["checkpoint"]["name"] == "numbers"
    assert [each["token"] for each in answer["positions"]] == list("15926")


# --- /generate --------------------------------------------------------------------------------------------------------

SETTINGS = {"max_new_tokens": 23, "temperature": 0.7, "top_k": 6, "top_p": 0.9, "seed": 5}


def test_a_continuation_is_what_the_package_generates(client, letters):
    answer = continuations(client, **SETTINGS)[-1]
    steps = list(generate(letters, TEXT, **SETTINGS))
    assert answer["generated"] == "".join(step.token for step in steps)
    assert answer["seed"] == 5
    assert answer["tokens"] == [
        {
            "position": step.position,
            "token": step.token,
            "id": step.token_id,
            "probability": step.probability,
            "model_probability": step.model_probability,
            "rank": step.rank,
        }
        for step in steps
    ]


def test_every_answer_holds_all_so_far_and_only_the_last_is_done(client):
    answers = continuations(client, **SETTINGS)
    lengths = [len(answer["tokens"]) for answer in answers]
    assert lengths == sorted(lengths)
    assert lengths[-1] == 23
    assert [answer["done"] for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert all(answers[-1]["generated"].startswith(answer["generated"]) for answer in answers)


def test_temperature_0_takes_the_likeliest_token(client):
    answer = continuations(client, max_new_tokens=9, temperature=0)[-1]
    assert [each["rank"] for each in answer["tokens"]] == [0] * 9
    assert [each["probability"] for each in answer["tokens"]] == [1.0] * 9


def test_a_fresh_seed_is_told_and_gives_the_same_text_again(client):
    first, second = (continuations(client, max_new_tokens=20, temperature=2.0)[-1] for _ in range(2))
    assert first["seed"] != second["seed"]
    assert first["generated"] != second["generated"]
    again = continuations(client, max_new_tokens=20, temperature=2.0, seed=first["seed"])[-1]
    assert again["generated"] == first["generated"]


def test_a_continuation_can_be_cancelled(client):
    job = client.submit("a", max_new_tokens=500, api_name="/generate")
    next(iter(job))
    job.cancel()
    assert len(analyze(client, "abc")["positions"]) == 3


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda client: analyze(client, ""), "The prompt is empty"),
        (lambda client: analyze(client, "a <é> é"), r"has no '<' ×1, 'é' ×2, '>' ×1\. Leave out .* \(4 in all\)"),
        (lambda client: analyze(client, checkpoint="../letters"), r"no model called \.\./letters\. Choose one of"),
        (lambda client: analyze(client, layer=3, head=0), "no head L3H0: layers run from 0 to 2 and heads from 0 to 3"),
        (lambda client: analyze(client, layer=1), "no head L1HNone"),
        (lambda client: analyze(client, layer=-1, head=0), "no head L-1H0"),
        (lambda client: continuations(client, ""), "The prompt is empty"),
        (lambda client: continuations(client, "XY"), "has no 'X' ×1, 'Y' ×1"),
        (lambda client: continuations(client, max_new_tokens=0), "new tokens is 0; it must be a whole number from 1"),
        (lambda client: continuations(client, max_new_tokens=501), "from 1 to 500"),
        (lambda client: continuations(client, temperature=-0.5), r"The temperature is -0\.5; it must be 0"),
        (lambda client: continuations(client, top_k=-2), "top-k is -2; it must be a whole number"),
        (lambda client: continuations(client, top_k=2.5), r"top-k is 2\.5; it must be a whole number"),
        (lambda client: continuations(client, top_p=0), r"top-p is 0(\.0)?; it must lie above 0"),
        (lambda client: continuations(client, top_p=1.5), r"top-p is 1\.5; it must lie above 0"),
        (lambda client: continuations(client, seed=-7), "The seed is -7; it must be a whole number"),
        (lambda client: analyze(client, {"not": "a text"}), r"text is \{'not': 'a text'\}; it must be a text"),
        (lambda client: analyze(client, checkpoint=[1]), r"checkpoint is \[1\]; it must be a text"),
        (lambda client: continuations(client, 7), "prompt is 7; it must be a text"),
        (
            lambda client: continuations(client, temperature="hot"),
            "temperature is 'hot'; it must be a whole number or a",
        ),
        (lambda client: continuations(client, seed=True), "seed is True; it must be a whole number"),
    ],
)
def test_every_mistake_is_answered_with_the_way_out(client, call, sentence):
    with pytest.raises(AppError, match=sentence):
        call(client)


# --- the viewer's own call, which anyone can send ---------------------------------------------------------------------


@pytest.fixture(scope="session")
def one_head(url):
    with urllib.request.urlopen(f"{url}/config", timeout=30) as response:  # noqa: S310
        config = json.load(response)
    (viewer,) = (each for each in config["components"] if each["props"].get("elem_id") == "viewer")
    assert viewer["props"]["server_fns"] == [
        "one_head",
        "one_window",
        "some_steps",
        "export_file",
        "ask",
        "training_run",
        "training_moment",
        "experiment_results",
        "train",
    ]

    def call(data, name="one_head"):
        body = {"data": data, "component_id": viewer["id"], "fn_name": name, "session_hash": "test"}
        request = urllib.request.Request(  # noqa: S310
            f"{url}/gradio_api/component_server", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return json.load(response)

    return call


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (["letters", [1, 2], 2, {"format": "exe", "layer": 0, "head": 0}], "unknown_format"),
        (["letters", [1, 2], 2, {"format": "npz", "layer": 9, "head": 0}], "head_out_of_range"),
        (["letters", [99], 1, {"format": "npz", "layer": 0, "head": 0}], "tokens_out_of_range"),
        (["letters", [0] * 100_001, 1, {"format": "npz", "layer": 0, "head": 0}], "tokens_out_of_range"),
        (["letters", [], 0, {"format": "html", "layer": 0, "head": 0}], "empty_prompt"),
        (["../letters", [1], 1, {"format": "npz", "layer": 0, "head": 0}], "unknown_model"),
        (["letters", [1], {"a": 1}, ["npz"]], "unknown_format"),
        ("nonsense", "unknown_model"),
        ([], "unknown_model"),
    ],
)
def test_a_file_that_cannot_be_made_is_answered_with_a_notice(one_head, data, code):
    message = one_head(data, "export_file")
    assert (message["kind"], message["code"]) == ("notice", code)


@pytest.mark.parametrize("data", [["../letters"], [7, {}], [["n-layer"]], {"name": 1}, "nonsense"])
def test_results_that_there_are_not_are_answered_with_a_notice(one_head, data):
    message = one_head(data, "experiment_results")
    assert (message["kind"], message["code"]) == ("notice", "unknown_experiment")


def test_one_head_comes_at_full_resolution(one_head, letters):
    ids = letters.tokenizer.encode("bad cab")
    message = one_head(["letters", ids, 2, 3])
    assert (message["kind"], message["layer"], message["head"]) == ("head", 2, 3)
    drawn = wire.unpack(message)["pattern"][0, 0]
    assert np.abs(drawn - trace(letters, "bad cab").pattern[2, 3].numpy()).max() <= 0.000501


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (["nowhere", [1], 0, 0], "unknown_model"),
        (["../letters", [1], 0, 0], "unknown_model"),
        ([{"a": 1}, [1], 0, 0], "unknown_model"),
        (["letters", [], 0, 0], "empty_prompt"),
        (["letters", [1] * 18, 0, 0], "tokens_out_of_range"),
        (["letters", [14], 0, 0], "tokens_out_of_range"),
        (["letters", [-1], 0, 0], "tokens_out_of_range"),
        (["letters", [True], 0, 0], "tokens_out_of_range"),
        (["letters", ["1"], 0, 0], "tokens_out_of_range"),
        (["letters", "11", 0, 0], "tokens_out_of_range"),
        (["letters", {"0": 1}, 0, 0], "tokens_out_of_range"),
        (["letters", [1], 3, 0], "head_out_of_range"),
        (["letters", [1], 0, 1.5], "head_out_of_range"),
        (["letters", [1], "0", None], "head_out_of_range"),
        (["letters", [1]], "head_out_of_range"),
        ([], "unknown_model"),
        ("nonsense", "unknown_model"),
    ],
)
def test_nonsense_is_answered_with_a_notice(one_head, data, code):
    message = one_head(data)
    assert (message["kind"], message["code"]) == ("notice", code)
    assert set(message["sentences"]) == {"en", "ko"}
