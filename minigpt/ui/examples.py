"""Texts to start with, in the language and the vocabulary of a model."""

from minigpt.tokenizer import Tokenizer

CANDIDATES = (
    "ROMEO:\nBut soft, what light through yonder window breaks?",
    "First Citizen:\nWe are accounted poor citizens, the patricians good.",
    "the cat and the dog and the cat and the dog",
    "JULIET:\nO Romeo, Romeo! wherefore art thou Romeo?",
    "산허리는 온통 메밀밭이어서 피기 시작한 꽃이 소금을 뿌린 듯이",
    "설렁탕을 사다 놓았는데 왜 먹지를 못하니",
    "봄이 오면 꽃이 피고 봄이 가면 꽃이 지고",
    "나는 오늘 학교에 갔다. 나는 오늘 집에 갔다.",
)
"""The first lines of well-known pieces, and lines that repeat themselves, where repetition heads show."""
MOST = 4
_SPELLED = 24


def examples_for(tokenizer: Tokenizer) -> list[str]:
    """Return up to four texts that the tokenizer knows every character of, the first being the page's default.

    Where it knows none of the candidates, the one text is spelled from its own first pieces.
    """
    known = [text for text in CANDIDATES if not tokenizer.unknown(text)]
    if known:
        return known[:MOST]
    pieces = (tokenizer.piece(token_id) for token_id in range(min(_SPELLED, tokenizer.vocab_size)))
    return ["".join(pieces).strip() or tokenizer.piece(0)]
