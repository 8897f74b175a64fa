"""What every test runs under: checked shapes, one thread, nothing sent anywhere."""

import os

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

from tests import type_checker

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

# From here on each import of minigpt checks its shapes and types at every call, at no cost outside the tests.
install_import_hook("minigpt", f"{type_checker.__name__}.check")

torch.set_num_threads(1)

# A busy machine is no failure, and a red run can be repeated: the examples are the same each time.
# `HYPOTHESIS_PROFILE=explore` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, max_examples=50)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests with the page first, so that short ones keep every process busy to the end."""
    items.sort(key=lambda item: "ui" not in item.path.parent.parts[-1:])


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A random GPT-2 of transformers and the same model here."""
    from minigpt.checkpoint import load_checkpoint
    from tests import foreign

    folder = tmp_path_factory.mktemp("gpt2")
    theirs = foreign.gpt2()
    theirs.save_pretrained(folder)
    foreign.write_character_tokenizer(folder)
    return theirs, load_checkpoint(folder)
