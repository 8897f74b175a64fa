"""What a training run that is started on the page must be: who may start one, its name, its text, its preset.

Everything comes from the browser and is checked here, before anything is written. Knows nothing of processes.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from minigpt.analysis.head_finder import LEAST_REPEATED
from minigpt.config import TrainingConfig, is_whole
from minigpt.errors import ConfigError, CorpusError, wrong_type
from minigpt.presets import PRESETS, Preset

VARIABLE = "MINIGPT_TRAIN"
"""The environment variable that allows training from the page to everyone (1) or to no one (anything else)."""
OFFERED = ("transformer-small", "quick", "growing", "chapter", "shakespeare")
"""The presets that are offered; the lightest first."""
MOST_CHARACTERS = 4096
"""Most different characters: each has a row in both tables of the model, and a text of one language has fewer."""
LEAST_CHARACTERS = LEAST_REPEATED
"""Fewest different characters: with fewer the heads cannot be scored."""
MOST_BYTES = 20_000_000
"""Largest text, in bytes of UTF-8."""
MOST_STEPS = 20_000
NAME = re.compile(r"[^\W_](?:[\w.\- ]{0,38}\w)?")
"""A name that every file system takes: letters and digits of any script, inside also blank, dot, hyphen, underscore."""
RESERVED = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
"""What Windows keeps for devices."""
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """A run that can work.

    Attributes:
        name: Of the model and of its folder.
        preset: One of `OFFERED`.
        steps: Optimizer steps, 1 to `MOST_STEPS`.
        text: The training text, as `plain` leaves it.
    """

    name: str
    preset: str
    steps: int
    text: str


def may_train(environment: Mapping[str, str], *, is_shared: bool, request: object) -> bool:
    """Return whether who asks may train here.

    Where MINIGPT_TRAIN does not say so, only someone at this machine may: the request comes from it and is addressed
    to it, and neither a Space nor a public link nor a proxy that says so stands between.

    Args:
        environment: The environment variables.
        is_shared: Whether Gradio gave the page a public address.
        request: The web server's request, with `client` and `headers`.
    """
    if told := environment.get(VARIABLE):
        return told == "1"
    headers: Mapping[str, str] = getattr(request, "headers", {})
    host = str(getattr(getattr(request, "client", None), "host", ""))
    address = _host_of(headers.get("host", ""))
    is_direct = not any(name in headers for name in FORWARDED)
    return "SPACE_ID" not in environment and not is_shared and is_direct and _is_here(host) and _is_here(address)


def _host_of(address: str) -> str:
    try:
        return urlsplit(f"//{address}").hostname or ""
    except ValueError:
        return ""


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def checked(given: object, folder: Path) -> NewRun:
    """Return the run that a browser asks for.

    Args:
        given: `name`, `preset`, `steps` and `text` by name.
        folder: Where the models are.

    Raises:
        PromptError: `wrong_type` if something of another type comes, which the page never sends.
        ConfigError: `train_name`, `train_name_taken`, `number_out_of_range`, `train_vocabulary`.
        CorpusError: `train_no_text`, `train_text_too_large`, `train_text_too_short`.
    """
    if not isinstance(given, dict):
        raise wrong_type("run", given, "name, preset, steps, text")
    values = cast(dict[object, object], given)
    name, preset, steps, text = (values.get(each) for each in ("name", "preset", "steps", "text"))
    if preset not in OFFERED:
        raise wrong_type("preset", preset, ", ".join(OFFERED))
    if not isinstance(text, str):
        raise wrong_type("text", text, "a text")
    if not isinstance(name, str):
        raise wrong_type("name", name, "a text")
    if not is_whole(steps) or not 1 <= steps <= MOST_STEPS:
        raise ConfigError("number_out_of_range", name="steps", value=repr(steps)[:20], allowed=f"1 … {MOST_STEPS:,}")
    run = NewRun(name=checked_name(name, folder), preset=str(preset), steps=steps, text=plain(text))
    check_text(run.text, PRESETS[run.preset])
    return run


def checked_name(name: str, folder: Path) -> str:
    """Return a name for a new model, without blanks around it.

    Raises:
        ConfigError: `train_name` if it is none for a folder, `train_name_taken` if something there is called so.
    """
    name = unicodedata.normalize("NFC", name).strip()
    if not NAME.fullmatch(name) or RESERVED.fullmatch(name):
        raise ConfigError("train_name", name=name[:80])
    taken = {path.name.casefold() for path in folder.iterdir()} if folder.is_dir() else set[str]()
    if name.casefold() in taken:
        raise ConfigError("train_name_taken", name=name)
    return name


def plain(text: str) -> str:
    """Return a text as it is trained on: newlines of Unix, letters composed (NFC), no byte-order mark."""
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def check_text(text: str, preset: Preset) -> None:
    """Refuse a text that a preset cannot be trained on.

    Raises:
        CorpusError: `train_no_text`, `train_text_too_large`, `train_text_too_short`.
        ConfigError: `train_vocabulary`.
    """
    if not text.strip():
        raise CorpusError("train_no_text")
    if (size := len(text.encode())) > MOST_BYTES:
        raise CorpusError("train_text_too_large", size=f"{size / 1e6:.1f} MB", most=f"{MOST_BYTES / 1e6:.0f} MB")
    window = int(preset.model["block_size"])
    if len(text) < (needed := characters_needed(window)):
        raise CorpusError("train_text_too_short", count=f"{len(text):,}", needed=f"{needed:,}", window=window)
    if not LEAST_CHARACTERS <= (count := len(set(text))) <= MOST_CHARACTERS:
        raise ConfigError("train_vocabulary", count=f"{count:,}", least=LEAST_CHARACTERS, most=f"{MOST_CHARACTERS:,}")


def characters_needed(window: int) -> int:
    """Return the length of the shortest text whose last tenth holds a window and the character after it.

    Args:
        window: The preset's block_size.
    """
    return next(count for count in range(9 * window, 11 * window + 22) if count - int(0.9 * count) >= window + 1)


def settings_of(preset: Preset, steps: int) -> TrainingConfig:
    """Return how a preset is trained on the page: with snapshots, saved more often, with shorter estimates.

    Args:
        preset: One that is offered.
        steps: What takes the place of its own number.
    """
    own = preset.training
    return replace(
        own,
        steps=steps,
        snapshots=max(own.snapshots, 3),
        save_every=min(own.save_every, 50),
        evaluate_batches=min(own.evaluate_batches, 20),
    )


def offered() -> list[dict[str, Any]]:
    """Return what the page says of each preset: its name, its numbers, and the shortest text, in characters."""
    told: list[dict[str, Any]] = []
    for name in OFFERED:
        preset = PRESETS[name]
        model, training = preset.model, preset.training
        told.append(
            {
                "name": name,
                "layers": model.get("n_layer", 1),
                "heads": model.get("n_head", 1),
                "width": model["n_embd"],
                "window": model["block_size"],
                "steps": training.steps,
                "batch": training.batch_size,
                "needed": characters_needed(int(model["block_size"])),
            }
        )
    return told
