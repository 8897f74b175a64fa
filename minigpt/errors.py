"""What a person can cause, and the English sentence that tells them.

Every error that a prompt, a file or a setting can provoke is a `MiniGPTError` with a *code* and *details*. The page
looks the code up in its words files and fills in the same details, so one error reads right in every language. A
programmer's mistake is a plain `ValueError` or `TypeError` and does not belong here.
"""

from collections.abc import Mapping
from pathlib import Path

SENTENCES: dict[str, str] = {
    # prompts and sampling
    "empty_prompt": "The prompt is empty. Type at least one character.",
    "unknown_characters": (
        "The model's vocabulary has no {characters}. Leave out what it does not know ({count} in all) or choose a "
        "model that was trained on such text."
    ),
    "prompt_not_cut": (
        "The model's tokenizer cannot cut this text into tokens. Change the text, or choose another model."
    ),
    "temperature_out_of_range": "The temperature is {value}; it must be 0 (always the likeliest token) or more.",
    "top_k_out_of_range": "top-k is {value}; it must be a whole number of at least 1, or left empty for all tokens.",
    "top_p_out_of_range": "top-p is {value}; it must lie above 0 and be at most 1, or be left empty for all tokens.",
    "min_p_out_of_range": "min-p is {value}; it must lie above 0 and be at most 1, or be left empty for all tokens.",
    "repetition_penalty_out_of_range": (
        "The repetition penalty is {value}; it must be a number above 0. 1 is off, above 1 avoids repetition."
    ),
    "continuations_out_of_range": (
        "The number of continuations is {value}; it must be a whole number between 1 and {most}."
    ),
    "length_out_of_range": "The number of new tokens is {value}; it must be a whole number of at least 0.",
    "seed_out_of_range": "The seed is {value}; it must be a whole number between 0 and {most}, or be left empty.",
    # configuration
    "heads_do_not_divide": (
        "n_embd must be divisible by n_head: {n_embd} cannot be split over {n_head} heads of equal size. Choose n_embd "
        "as a multiple of {n_head}."
    ),
    "not_a_positive_integer": "{name} is {value}; it must be a whole number of at least 1.",
    "not_a_choice": "{name} is {value}; it must be one of {choices}.",
    "not_true_or_false": "{name} is {value}; it must be true or false.",
    "dropout_out_of_range": "dropout is {value}; it must be at least 0 and below 1.",
    "epsilon_out_of_range": "layer_norm_epsilon is {value}; it must be a number above 0.",
    "one_only": "A {kind} model has exactly one {name}; {value} was asked for. Use kind 'transformer' for more.",
    "unknown_settings": "There is no setting called {names}. The settings are {choices}.",
    "missing_settings": "The configuration lacks {names}.",
    # vocabularies
    "no_characters": "A vocabulary needs at least one character, and this text has none.",
    "not_single_characters": "A character vocabulary holds single characters; {entry} is none.",
    "repeated_characters": "A character vocabulary holds each character once; {characters} comes more than once.",
    "tokenizer_unreadable": "The tokenizer in {path} cannot be read: {reason}",
    # checkpoints
    "checkpoint_missing": "There is no checkpoint in {path}: {missing} is not there.",
    "checkpoint_not_json": "{path} is not a JSON object: {reason} The file is damaged or of another kind.",
    "checkpoint_version": (
        "{path} says format version {version}, and this program reads version {known}. Save the model again with the "
        "program that wrote it, or update this one."
    ),
    "checkpoint_incomplete": "{path} lacks the entry {name}. Save the checkpoint again.",
    "checkpoint_config": "The configuration in {path} describes no model: {reason}",
    "checkpoint_checksum": (
        "{path} does not hold the weights that config.json describes: its checksum is another one. The file is damaged "
        "or was exchanged; copy both files again."
    ),
    "checkpoint_keys": (
        "The parameters in {path} are not those of the model that config.json describes. Missing: {missing}. "
        "Left over: {unexpected}."
    ),
    "checkpoint_shape": (
        "{name} in {path} has the shape {got}, but the configuration asks for {expected}. The file and its "
        "config.json do not belong together."
    ),
    "checkpoint_dtype": "{name} in {path} holds {got}; parameters must be floating-point numbers.",
    "checkpoint_not_finite": (
        "{name} in {path} holds NaN or infinite numbers. The training went astray; use an earlier checkpoint."
    ),
    "vocabulary_mismatch": (
        "The tokenizer in {path} knows {tokens} tokens, but the model has {rows} embedding rows. They do not belong "
        "together."
    ),
    "checkpoint_not_saved": (
        "The checkpoint could not be written to {path}: {reason} What was there before is unharmed."
    ),
    # foreign files
    "file_too_large": "{path} has {size}; at most {most} are read. Save the parameters alone, without the optimizer.",
    "file_damaged": "{path} is cut short or damaged: {reason} Copy or save it again.",
    "file_unrecognized": (
        "{path} is no file that can be read here. A checkpoint is a folder of this program, a .pt, .pth or .bin file "
        "of torch.save, a .safetensors file, or a GPT-2 folder of Hugging Face."
    ),
    "zip_bomb": (
        "{path} is an archive whose parts would grow when read, to {size} bytes from {held}. torch.save never packs "
        "them so; save the model again."
    ),
    "pickle_code": (
        "{path} holds more than parameters and plain values: reading it would run {names}. Nothing was run. Save it "
        "again as torch.save(model.state_dict(), path), with settings and vocabulary as plain dicts, lists, texts and "
        "numbers."
    ),
    "whole_module": (
        "{path} holds a whole model object ({name}) and not its parameters, and reading it would run code. Nothing was "
        "run. Where it was trained, save it again as torch.save(model.state_dict(), path)."
    ),
    "safetensors_header": (
        "{path} is no sound safetensors file: {reason} The file is cut short or damaged; copy it again."
    ),
    "unknown_parameters": (
        "The parameters in {path} belong to no model known here; it holds {names}. Known are the three models of this "
        "program, nanoGPT, minGPT and GPT-2."
    ),
    "other_architecture": (
        "{path} holds another architecture: {name}. This program reads GPT-2 shaped models: its own, nanoGPT, minGPT "
        "and Hugging Face GPT-2."
    ),
    "parameters_differ": (
        "The parameters in {path} do not make a whole model. Missing: {missing}. Left over: {unexpected}. Save the "
        "state_dict of the whole model again; if it really has other layers, it cannot be read here."
    ),
    "parameter_shape": (
        "{name} in {path} has the shape {got}, but the other parameters ask for {expected}. Save the state_dict of one "
        "model again."
    ),
    "mask_differs": (
        "{name} in {path} is not the lower triangle of ones, so this model looks at other tokens than the past. Only "
        "causal models can be read here."
    ),
    "stated_differs": (
        "{path} says {name} = {stated}, but its parameters have {found}. Settings and parameters do not belong "
        "together; save both again."
    ),
    "unsupported_setting": "{path} asks for {name} = {value}; this program computes {allowed}.",
    "heads_unknown": (
        "{path} does not say how many heads its {n_embd} dimensions are split over, and the parameters do not show it. "
        'Put a config.json with {{"n_head": …}} beside it.'
    ),
    "no_vocabulary": (
        "{path} says nothing about its vocabulary of {rows} tokens. Give the text that the model was trained on, or "
        "put its meta.pkl, vocab.json or tokenizer.json beside it."
    ),
    "text_differs": (
        "This text has {characters} different characters, but the model in {path} knows {rows} tokens. Give exactly "
        "the text that it was trained on."
    ),
    "tokenizer_not_usable": "This tokenizer cannot be used: {reason}",
    "hub_name": (
        "{reference} is no model of the Hub. Write hf://user/name, or hf://user/name@revision for a certain version."
    ),
    "hub_failed": "{reference} could not be fetched from the Hub: {reason} Check the name and the connection.",
    "hub_nothing": (
        "{reference} has no model.safetensors on the Hub. Only safetensors, JSON and text files are fetched; choose a "
        "model that has its parameters so."
    ),
    "not_exportable": "A {layout} file cannot hold this model: its {name} is {value}, and there it is {needed}.",
    "export_in_the_way": "{path} is there already. Choose another place, or remove it first.",
    # the page and its HTTP interface
    "no_models": (
        "There is no model in {folder}. Train one with `python -m minigpt train`, or set MINIGPT_CHECKPOINTS to the "
        "folder that holds your checkpoints."
    ),
    "compare_differs": (
        "{path} holds the records of another experiment, or of one with another size, text or length. Choose another "
        "folder with --out, or delete this one."
    ),
    "experiment_damaged": (
        "{path} cannot be read: it is damaged, or no file of an experiment. Delete its folder, or repeat the "
        "experiment into another one with: python -m minigpt compare"
    ),
    "no_experiments": (
        "There are no results of experiments in {folder}. Make some with: python -m minigpt compare activation"
    ),
    "unknown_experiment": "There are no results called {name}. Choose one of {choices}.",
    "no_runs": "No model in {folder} has a training history. Train one with: python -m minigpt train",
    "unknown_snapshot": "{name} has no snapshot of step {step}; it has those of the steps {steps}.",
    "unknown_model": "There is no model called {name}. Choose one of {choices}.",
    "upload_gone": (
        "This model is no longer here: what a visitor brings is forgotten when the page is closed or reloaded, or "
        "after an hour without use. Open it again from your files."
    ),
    "too_many_new_tokens": "The number of new tokens is {value}; it must be a whole number from 1 to {most}.",
    "wrong_type": "{name} is {value}; it must be {expected}.",
    "head_out_of_range": (
        "There is no head L{layer}H{head}: layers run from 0 to {last_layer} and heads from 0 to {last_head}."
    ),
    "tokens_out_of_range": "The tokens must be a list of 1 to {most} ids, each a whole number from 0 to {largest}.",
    # exports and links
    "export_too_large": (
        "All heads over {tokens} tokens hold {weights} weights; at most {most} are written at once. "
        "Export one head as CSV, take a shorter text, or call minigpt.trace in Python."
    ),
    "text_too_long": "The text is too long: at most {most} characters fit in a link.",
    "unknown_format": "There is no export format called {name}. Choose one of {choices}.",
    # training
    "number_out_of_range": "{name} is {value}; it must be {allowed}.",
    "batch_does_not_divide": (
        "A batch of {batch_size} cannot be shared out evenly over {processes} processes. Choose batch_size as a "
        "multiple of {processes}."
    ),
    "device_missing": "This machine, or this build of PyTorch, has no device called {device}. Use cpu.",
    "nothing_to_resume": "There is no run to resume: {path} is not there. Leave out --resume to start one.",
    "resume_differs": (
        "The run in {path} cannot be resumed with other settings than it was started with; these differ: {names}. "
        "Use the same settings, or start a new run in another folder."
    ),
    "state_unreadable": (
        "{path} holds no state of a training run that this program can read: {reason} Start a new run in another "
        "folder."
    ),
    "run_in_the_way": "{path} holds a training run already. Go on with it by --resume, or choose another folder.",
    "run_finished": "The run in {path} has taken its {steps} steps already. Ask for more steps to go on.",
    "training_diverged": (
        "The loss is no number any more at step {step}: the training went astray. Use a smaller learning rate."
    ),
    "process_lost": (
        "One of the training processes ended unexpectedly (status {status}). The last saved state is whole; go on with "
        "--resume."
    ),
    "train_off": (
        "Training from the page is for people at the machine that it runs on, and off where others can reach it. "
        "Whoever starts the app can allow it with MINIGPT_TRAIN=1."
    ),
    "train_busy": "{name} is being trained, and one model at a time is. Wait until it has ended, or stop it first.",
    "train_no_text": "There is no text to train on. Paste one, or choose a text file.",
    "train_text_too_large": "The text has {size}; at most {most} are trained on from the page. Use a part of it.",
    "train_text_too_short": (
        "The text has {count} characters; these settings need {needed}, so that the tenth that is held out holds a "
        "window of {window} and the character after it. Use a longer text, or settings with a smaller window."
    ),
    "train_vocabulary": (
        "The text has {count} different characters; {least} to {most} can be trained on. Each has a row of its own in "
        "both tables of the model, and fewer than {least} leave its heads nothing to tell apart. Use a text in one "
        "language, or leave rare characters out."
    ),
    "train_name": (
        "A model cannot be called “{name}”. Use 1 to 40 letters or digits; inside also blanks, dots, hyphens and "
        "underscores."
    ),
    "train_name_taken": "There is something called {name} among the models already. Choose another name.",
    "train_not_started": (
        "The training of {name} could not be started: {reason} See that the folder of the models can be written, and "
        "try again."
    ),
    "train_not_stopped": "There is no stopped run called {name}. Start one, or choose one of those on the page.",
    # the command line
    "no_such_head": "There is no head {name}. Heads run from L0H0 to {last}.",
    "file_not_written": "{path} could not be written: {reason}",
    # what if
    "no_such_layer": "There is no layer {layer}. Layers run from 0 to {last}.",
    "no_such_mlp": "A {kind} model has no feed-forward networks to switch off. Leave them out, or use a transformer.",
    "edge_out_of_range": (
        "Token {query} does not attend to token {key} in this text. A token attends to itself and to those before it; "
        "positions count from 0."
    ),
    "position_out_of_range": (
        "There is no token {position} in what the model sees of this text. Choose a position from {first} to {last}."
    ),
    "not_one_token": "{text} is {count} tokens in this model's vocabulary. Give exactly one token, or its id.",
    "probe_too_short": (
        "This model has a window of {block_size} and a vocabulary of {vocab_size} tokens; the probe with repeated "
        "tokens needs a window of {needed} and {tokens} different tokens. Look at its heads on a text instead."
    ),
    "too_much_work": (
        "With a model of {parameters} parameters and {tokens} tokens this would take too long here. Use a shorter "
        "text or a smaller model, or ask in Python."
    ),
    "shapes_differ": (
        "The two models have {first} and {second} layers × heads, so their heads cannot be set side by side one by "
        "one. Compare one head with one head."
    ),
    "pandas_missing": "A table needs pandas, which is not installed. Install it with `pip install pandas`.",
    # corpora
    "unknown_corpus": "{name} is neither a text file that is there nor a corpus known by name. Known are {choices}.",
    "corpus_not_text": "{path} is no UTF-8 text: {reason} Save it as UTF-8 plain text.",
    "corpus_unreadable": "{path} cannot be read: {reason}",
    "text_too_short": (
        "This part of the text has {tokens} tokens, but at least {needed} are needed. Use a longer text or a smaller "
        "block_size."
    ),
    "download_failed": (
        "{url} could not be fetched: {reason} Check the connection and try again; what has arrived so far is kept in "
        "{path}."
    ),
    "download_wrong_hash": (
        "What came from {url} is not the expected file: its SHA-256 is {got} instead of {expected}. It was thrown "
        "away; try again later."
    ),
    "cache_not_writable": (
        "The cache folder {path} cannot be written: {reason} Set MINIGPT_CACHE to a folder that can."
    ),
}


LONGEST_DETAIL = 1200
"""Characters of a detail that are said; what comes out of a file can be of any length."""


def _sayable(detail: object) -> object:
    """Return a detail that every terminal and browser can show: no half characters, no endless numbers or texts."""
    if isinstance(detail, int) and detail.bit_length() > 256:
        return "…"
    if not isinstance(detail, str | Path):
        return detail
    text = str(detail)
    if len(text) <= LONGEST_DETAIL and not any("\ud800" <= char <= "\udfff" for char in text):
        return detail
    text = text.encode("utf-8", "backslashreplace").decode()
    return type(detail)(text if len(text) <= LONGEST_DETAIL else f"{text[:LONGEST_DETAIL]}…")


class MiniGPTError(Exception):
    """Say what a person can change: a code, the details, and their English sentence as `str(error)`.

    Attributes:
        code: The key of the sentence, in `SENTENCES` and in every words file.
        details: What the sentence's placeholders stand for.
    """

    def __init__(self, code: str, **details: object) -> None:
        """Fill the sentence of `code` with `details`.

        Args:
            code: A key of `SENTENCES`.
            **details: One value for every placeholder of the sentence.

        Raises:
            KeyError: If the code is unknown or a placeholder has no value (the programmer's mistake).
        """
        self.code = code
        self.details: Mapping[str, object] = {name: _sayable(value) for name, value in details.items()}
        super().__init__(SENTENCES[code].format_map(self.details))


class PromptError(MiniGPTError):
    """A prompt or a sampling setting that cannot be used."""


def wrong_type(name: str, value: object, expected: str) -> PromptError:
    """Return the error that something from outside is not what it has to be."""
    return PromptError("wrong_type", name=name, value=repr(value)[:80], expected=expected)


class CheckpointError(MiniGPTError):
    """A checkpoint that cannot be read, does not fit together, or cannot be written."""


class ConfigError(MiniGPTError, ValueError):
    """A setting of a model or of a training run that cannot work."""


class CorpusError(MiniGPTError):
    """A training text that cannot be fetched, read or used."""
