"""Each generated token with the forward pass that predicted it, what it was chosen from, and what else could come."""

import math
import re

import pytest
from playwright.sync_api import expect

from minigpt import continuations, generate, trace
from minigpt.analysis.scores import head_scores
from minigpt.sampling import rank, sample_distribution
from tests.ui.viewing import SIGNS, Viewer

BLOCK_SIZE = 24
"""Of the random model."""
SETTINGS = {"temperature": 0.7, "top_k": 7, "top_p": 0.9, "seed": 11}
SHORT, LONG = ("the cat", 12), ("the cat and the dog", 16)
"""Prompts with new tokens: all inside the window, and beyond it from the sixth on."""


class TimeMachine(Viewer):
    """The viewer after a generation."""

    def __init__(self, page, url, prompt, length, **settings):
        super().__init__(page)
        self.at(url, prompt)
        self.text = prompt
        for label, name in (("Temperature", "temperature"), ("top-k", "top_k"), ("top-p", "top_p"), ("Seed", "seed")):
            page.get_by_label(label, exact=True).fill(str(settings.get(name, SETTINGS[name])))
        page.get_by_label("New tokens").fill(str(length))
        self.slider = page.get_by_role("slider", name="Generated token")
        self.panel = page.get_by_role("region", name="Step by step")
        self.count = length
        page.get_by_role("button", name="Generate").click()
        self.generated()

    def generated(self):
        """Wait until a continuation is there as a whole, with its pictures."""
        expect(self.page.get_by_role("button", name="Generate")).to_be_enabled()
        expect(self.page.locator(".mg-pending")).to_have_count(0)
        expect(self.panel).to_contain_text(f"whole text, {self.count} generated tokens")

    def go(self, step):
        """Move the slider to a step and wait for its pictures."""
        self.slider.fill(str(step))
        self.shows(step)

    def shows(self, step):
        """Wait until what a step shows is drawn."""
        expect(self.root).to_have_attribute("data-step", "" if step is None else str(step))

    def choices(self):
        """Return the rows of the panel with the distributions: rank, sign, both numbers, the last word."""
        rows = self.page.locator(".mg-choices tbody tr:not(.mg-rest)").evaluate_all(
            "all => all.map(one => [...one.querySelectorAll('.mg-place, .mg-chip, .mg-number, .mg-remark')]"
            ".map(part => part.textContent))"
        )
        return [[int(row[0]), *row[1:]] for row in rows]


def stop_the_clock(page):
    """Let no time pass from here on but what a test says."""
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))


def sign(token):
    return SIGNS.get(token, token)


def continued(ckpt, prompt, length, **settings):
    steps = generate(ckpt, prompt, max_new_tokens=length, **{**SETTINGS, **settings})
    return prompt + "".join(step.token for step in steps)


def digits(chance):
    return "<0.001" if 0 < chance < 0.0005 else f"{chance:.3f}"


@pytest.fixture
def page(kept_page):
    return kept_page


@pytest.fixture
def short(page, random_url):
    return TimeMachine(page, random_url, *SHORT)


@pytest.fixture
def long(page, random_url):
    return TimeMachine(page, random_url, *LONG)


def test_a_step_shows_exactly_the_forward_pass_that_predicted_its_token(long, page, random_checkpoint):
    text = continued(random_checkpoint, *LONG)
    long.choose(1, 2)
    for step in (19, 22, 24, 25, 34):  # the window begins to move at 25
        long.go(step)
        seen = trace(random_checkpoint, text[:step])
        start = max(0, step - BLOCK_SIZE)
        assert seen.start == start
        drawn = long.weights()
        assert len(drawn) == len(seen.tokens) == step - start
        for query, row in enumerate(drawn):
            assert row[: query + 1] == pytest.approx(seen.pattern[1, 2, query, : query + 1].tolist(), abs=0.0005)
            assert all(value is None for value in row[query + 1 :])
        predicted = f"'{sign(text[step])}' ({step})"
        expect(page.get_by_text(f"Last row: query position {step - 1} predicted {predicted}")).to_be_visible()
        expect(long.panel).to_contain_text(f"{predicted} was predicted by query position {step - 1}, the last row of a")
        expect(page.get_by_text(f"'{sign(text[step - 1])}' ({step - 1}) attends to", exact=True)).to_be_visible()
        named = long.named_tokens()
        assert named == [f"'{sign(token)}' ({start + index})" for index, token in enumerate(text[start:])]
        assert page.locator(".mg-predicted").get_attribute("aria-label") == predicted
        assert page.locator(".mg-later").count() == len(text) - step - 1
        assert {int(position) for _, position in long.labels("x")} <= set(range(start, step))
        scores = head_scores(seen.pattern, seen.tokens)
        told = page.locator(".mg-scores .mg-number").all_text_contents()
        assert told == [f"{scores[name][1, 2]:.2f}".replace("nan", "–") for name in scores]


def test_every_thumbnail_of_a_step_is_that_of_its_own_forward_pass(long, page, random_checkpoint):
    text = continued(random_checkpoint, *LONG)
    bright = (
        "all => all.map(one => { const [w, c] = [one.width, one.getContext('2d')];"
        "return Array.from({length: w}, (_, row) => { const data = c.getImageData(0, row, w, 1).data;"
        "return Array.from({length: w}, (_, key) => data[4 * key + 3] === 0 ? null : -data[4 * key]); }); })"
    )
    for step in (21, 33):
        long.go(step)
        pattern = trace(random_checkpoint, text[:step]).pattern.flatten(0, 1)
        pictures = page.locator(".mg-head canvas").evaluate_all(bright)
        assert len(pictures) == len(pattern)
        for picture, weights in zip(pictures, pattern, strict=True):
            assert len(picture) == BLOCK_SIZE
            past = [[value is not None for value in row].count(True) for row in picture]
            assert past == [*range(1, len(weights) + 1), *[0] * (BLOCK_SIZE - len(weights))]
            # In the light theme a larger weight is never lighter.
            last = sorted(zip(weights[-1].tolist(), picture[len(weights) - 1][: len(weights)], strict=True))
            levels = [level for _, level in last]
            assert levels == sorted(levels)


def test_what_a_token_was_chosen_from_stands_side_by_side_before_and_after_sampling(long, page, random_checkpoint):
    text = continued(random_checkpoint, *LONG)
    piece, vocabulary = random_checkpoint.tokenizer.piece, random_checkpoint.tokenizer.vocab_size
    for step in (23, 31):
        long.go(step)
        logits = trace(random_checkpoint, text[:step]).logits[-1]
        before, after = logits.softmax(0), sample_distribution(logits, 0.7, 7, 0.9)
        taken = random_checkpoint.tokenizer.encode(text)[step]
        page.get_by_role("button", name=f"Show {vocabulary} tokens").click()
        rows = long.choices()
        order = logits.argsort(descending=True, stable=True).tolist()
        assert [row[:4] for row in rows] == [
            [place + 1, sign(piece(token)), digits(before[token]), digits(after[token]) if after[token] else "left out"]
            for place, token in enumerate(order)
        ]
        assert [row[0] for row in rows if row[4:] == ["taken"]] == [rank(logits, taken) + 1]
        expected = (
            f"rank {rank(logits, taken) + 1} of {vocabulary}; the model gave it {digits(before[taken])}, "
            f"it was drawn with {digits(after[taken])}, from {(after > 0).sum()} possible tokens"
        )
        expect(page.get_by_text(expected)).to_be_visible()
        expect(page.get_by_text("temperature 0.7 · top-k 7 · top-p 0.9")).to_be_visible()
        page.get_by_role("button", name="Show fewer").click()
        shown = {order.index(taken), *range(10)}
        rest = page.locator(".mg-rest")
        expect(rest).to_contain_text(f"{vocabulary - len(shown)} others")
        others = [token for place, token in enumerate(order) if place not in shown]
        assert rest.locator(".mg-number").all_text_contents() == [
            digits(before[others].sum()),
            digits(after[others].sum()),
        ]


def test_inside_the_window_steps_ask_the_server_once_whatever_is_looked_at(short, page, traffic):
    first = len(SHORT[0])
    short.go(first + 3)
    asked = len(traffic)
    short.slider.press("ArrowLeft")
    short.shows(first + 2)
    page.get_by_role("button", name="One step on").click()
    short.shows(first + 3)
    short.slider.press("Home")
    short.shows(first)
    page.get_by_role("button", name="Last step").click()
    short.shows(first + SHORT[1] - 1)
    short.choose(2, 3)
    page.get_by_role("button", name="Whole text").click()
    short.shows(None)
    page.get_by_role("button", name="First step").click()
    short.shows(first)
    assert traffic[asked:] == []


def test_a_token_of_the_text_can_be_asked_why(short, page, random_checkpoint):
    text, first = continued(random_checkpoint, *SHORT), len(SHORT[0])
    why = page.get_by_role("button", name=re.compile("^Why"))
    short.token(first - 1).click()
    expect(why).to_be_hidden()
    short.token(first + 2).click()
    expect(why).to_have_text(f"Why '{sign(text[first + 2])}' ({first + 2})?")
    why.click()
    short.shows(first + 2)
    short.token(first + 5).click()  # not seen yet at that step: its own step
    short.shows(first + 5)
    short.token(2).click()  # seen: its row
    short.shows(first + 5)
    expect(short.token(2)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("heading", name="Next token after 'e' (2)")).to_be_visible()


def test_surprise_colours_each_token_by_its_bits(long, page, random_checkpoint):
    text = continued(random_checkpoint, *LONG)
    attention = page.locator(".mg-token").evaluate_all("all => all.map(one => one.getAttribute('style'))")
    page.get_by_role("radio", name="surprise").click()
    expect(page.get_by_text("surprise: −log₂ p in bits")).to_be_visible()
    seen = trace(random_checkpoint, text)
    lit = long.lit()
    assert lit == [False] + [True] * (BLOCK_SIZE - 1)
    for index in (1, 9, 23):
        chance = seen.logits[index - 1].softmax(0)[seen.ids[index]].item()
        position = seen.start + index
        long.token(position).click()
        said = page.locator(".mg-bits")
        expect(said).to_contain_text(f"'{sign(text[position])}' ({position}): ")
        bits = float(re.findall(r": ([\d.]+) bits", said.inner_text())[0])
        assert bits == pytest.approx(-math.log2(chance), abs=0.006)
    long.go(30)
    assert page.locator(".mg-predicted").evaluate("one => one.style.getPropertyValue('--weight')") != ""
    page.get_by_role("button", name="Whole text").click()
    page.get_by_role("radio", name="attention").click()
    long.token(34).click()
    assert page.locator(".mg-token").evaluate_all("all => all.map(one => one.getAttribute('style'))") == attention


def total_bits(ckpt, text, first):
    """Return the sum of log₂ of what the model gives each token from `first` on, in the window before it."""
    ids = ckpt.tokenizer.encode(text)
    passes = ((trace(ckpt, text[:step]).logits[-1].double().softmax(0), ids[step]) for step in range(first, len(ids)))
    return sum(math.log2(chances[token]) for chances, token in passes)


def test_a_branch_goes_on_from_another_token_and_both_stay_side_by_side(long, page, random_checkpoint):
    ckpt, (prompt, length) = random_checkpoint, LONG
    text, step = continued(ckpt, prompt, length), 28
    long.choose(0, 0)
    long.go(step)
    pick = next(row for row in long.choices() if row[4:] == [] and row[3] != "left out")
    token = next(each for each in ckpt.tokenizer.chars if sign(each) == pick[1])
    page.get_by_role("button", name=f"Continue with '{pick[1]}' instead").click()
    long.generated()
    given = text[:step] + token
    other = continued(ckpt, given, len(prompt) + length - len(given))
    window = [sign(each) for each in other[-BLOCK_SIZE:]]
    expect(long.strip.get_by_role("option")).to_have_text(window)
    cards = page.locator(".mg-branch")
    expect(cards).to_have_count(2)
    for card, whole in ((cards.nth(0), text), (cards.nth(1), other)):
        assert card.locator(".mg-branch-text").text_content() == whole[len(prompt) :]
        total = float(re.findall(r"log₂ p = −([\d.]+) over 16 tokens", card.inner_text())[0])
        assert total == pytest.approx(-total_bits(ckpt, whole, len(prompt)), abs=0.1)
    expect(cards.nth(1)).to_contain_text(f"'{pick[1]}' ({step}) instead of '{sign(text[step])}'")
    expect(cards.nth(1)).to_contain_text(f"{pick[2]} by the model itself, rank {pick[0]}, {pick[3]} after the settings")
    assert cards.nth(1).locator(".mg-shared").text_content() == text[len(prompt) : step]
    expect(cards.nth(1).locator(".mg-pick")).to_have_text(pick[1])
    cards.nth(0).get_by_role("button").click()
    expect(long.strip.get_by_role("option")).to_have_text([sign(each) for each in text[-BLOCK_SIZE:]])
    long.go(step + 1)
    assert long.weights()[-1] == pytest.approx(trace(ckpt, text[: step + 1]).pattern[0, 0, -1].tolist(), abs=0.0005)
    cards.nth(1).get_by_role("button").click()
    expect(long.strip.get_by_role("option")).to_have_text(window)
    long.type("something else")
    expect(cards).to_have_count(0)
    expect(long.panel).to_be_hidden()


def test_several_continuations_stand_side_by_side_and_each_can_be_looked_at(open_page, random_url, random_checkpoint):
    page = open_page()
    viewer = Viewer(page).at(random_url, "the cat")
    page.get_by_role("button", name="More settings").click()
    for label, value in (("Continuations", "3"), ("Repetition penalty", "1.5"), ("min-p", "0.01"), ("New tokens", "9")):
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_label("Seed", exact=True).fill("4")
    page.get_by_role("button", name="Generate").click()
    settings = {"temperature": 0.8, "repetition_penalty": 1.5, "min_p": 0.01}
    texts = [each.text for each in continuations(random_checkpoint, "the cat", 3, max_new_tokens=9, seed=4, **settings)]
    cards = page.locator(".mg-branch-text")
    expect(cards).to_have_count(3)
    expect(page.get_by_role("button", name="Generate")).to_be_enabled()
    assert cards.all_text_contents() == texts
    page.get_by_role("button", name="3 written side by side with the first").click()
    expect(viewer.strip.get_by_role("option")).to_have_text([sign(each) for each in f"the cat{texts[2]}"])


def test_few_branches_are_kept_the_first_and_the_one_that_was_left_among_them(page, random_url):
    TimeMachine(page, random_url, *SHORT)
    kept = page.evaluate(
        """async () => {
          const { href } = [...document.querySelectorAll('link')].find((link) => link.href.endsWith('viewer.css'));
          const { MOST, withBranch } = await import(href.replace('viewer.css', 'branches.js'));
          let branches = [{ id: 0, picked: null }];
          for (let id = 1; id < 20; id += 1) {
            branches = withBranch(branches, { id, picked: { from: Math.min(id - 1, 1) } });
          }
          return [MOST, branches.map((branch) => branch.id)];
        }"""
    )
    assert kept == [8, [0, 1, 14, 15, 16, 17, 18, 19]]


def test_a_replay_walks_through_the_steps_and_pauses(open_page, random_url, traffic):
    page = open_page()
    short = TimeMachine(page, random_url, *SHORT)
    first, last = len(SHORT[0]), len(SHORT[0]) + SHORT[1] - 1
    short.go(first)
    asked = len(traffic)
    stop_the_clock(page)
    page.get_by_role("button", name="Play the steps").click()
    for step in (first + 1, first + 2):
        page.clock.run_for(310)
        short.shows(step)
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(2000)
    short.shows(first + 2)
    short.slider.fill(str(last))
    short.shows(last)
    page.get_by_role("button", name="Play the steps").click()
    page.clock.run_for(310)
    short.shows(None)
    expect(page.get_by_role("button", name="Play the steps")).to_be_visible()
    assert traffic[asked:] == []


def test_with_reduced_motion_a_replay_is_slow_without_transitions_and_never_starts_by_itself(open_page, random_url):
    page = open_page(reduced_motion="reduce")
    short, first = TimeMachine(page, random_url, *SHORT), len(SHORT[0])
    short.shows(None)
    short.go(first)
    stop_the_clock(page)
    page.get_by_role("button", name="Play the steps").click()
    short.shows(first)
    page.clock.run_for(1000)
    short.shows(first)
    assert page.locator(".mg-token").first.evaluate("one => getComputedStyle(one).transitionDuration") == "0s"
    page.clock.run_for(300)
    short.shows(first + 1)


def test_steps_of_an_earlier_text_do_not_outlive_it(short):
    short.go(len(SHORT[0]) + 4)
    short.type("a bad cab")
    short.shows(None)
    expect(short.panel).to_be_hidden()
    assert len(short.weights()) == 9
