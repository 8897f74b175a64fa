"""The one place where an error becomes a message on the page."""

import functools
import logging
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import gradio as gr

from minigpt import wire
from minigpt.errors import MiniGPTError
from minigpt.ui.words import WORDS, sentences

logger = logging.getLogger(__name__)

Given = ParamSpec("Given")
Result = TypeVar("Result")
Message = (
    wire.AnalysisMessage
    | wire.HeadMessage
    | wire.StepsMessage
    | wire.GeneratingMessage
    | wire.NoticeMessage
    | wire.FileMessage
    | wire.AnswerMessage
    | wire.ViewMessage
    | wire.TrainingMessage
    | wire.MomentMessage
    | wire.ExperimentMessage
)


def notice_of(error: Exception) -> wire.NoticeMessage:
    """Return what the page says about an error.

    A `MiniGPTError` says its own sentence, in every language. Anything else is a defect: it is logged with its
    traceback and becomes one generic sentence.
    """
    if isinstance(error, MiniGPTError):
        action = "leave_out" if error.code == "unknown_characters" else None
        return wire.notice(error.code, sentences(error), action)
    logger.error("An error that nobody foresaw", exc_info=error)
    return wire.notice("unexpected", {language: words["error.unexpected"] for language, words in WORDS.items()})


def or_notice(function: Callable[Given, Message]) -> Callable[Given, Message]:
    """Make a function that returns a message return a notice instead of raising."""

    @functools.wraps(function)
    def bounded(*args: Given.args, **kwargs: Given.kwargs) -> Message:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return notice_of(error)

    return bounded


def or_last_notice(function: Callable[Given, Iterator[Message]]) -> Callable[Given, Iterator[Message]]:
    """Make a function that yields messages yield a notice as its last one instead of raising."""

    @functools.wraps(function)
    def bounded(*args: Given.args, **kwargs: Given.kwargs) -> Iterator[Message]:
        try:
            yield from function(*args, **kwargs)
        except Exception as error:
            yield notice_of(error)

    return bounded


def for_clients(error: Exception) -> gr.Error:
    """Return what a client of the HTTP interface is told about an error, in English."""
    return gr.Error(notice_of(error)["sentences"]["en"], print_exception=False)
