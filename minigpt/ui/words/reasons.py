"""Why a file cannot be read, in Korean: the causes that errors carry inside their sentences, by their English words.

A `{}` stands for any text. What is not listed comes from a library or from the system, and is quoted as such.
"""

import re

QUOTED = "원래 메시지(영어)는 “{}”입니다."

REASONS: dict[str, str] = {
    # any file
    "it is empty": "비어 있습니다.",
    "it is cut short": "중간에 잘렸습니다.",
    "it did not arrive": "파일이 도착하지 않았습니다.",
    "it holds a {}, not a dict": "dict가 아니라 {}이(가) 들어 있습니다.",
    "it holds a {}": "{}이(가) 들어 있습니다.",
    "it holds more than {} values": "값이 {}개보다 많이 들어 있습니다.",
    "Permission denied": "권한이 없습니다.",
    "No space left on device": "디스크에 남은 자리가 없습니다.",
    "No such file or directory": "그런 파일이나 폴더가 없습니다.",
    "Is a directory": "폴더입니다.",
    "Not a directory": "폴더가 아닙니다.",
    "File exists": "이미 있는 파일입니다.",
    "Read-only file system": "읽기만 할 수 있는 디스크입니다.",
    "byte {} is {}": "바이트 {}이(가) {}입니다.",
    "'utf-8' codec can't decode {} in position {}: {}": "위치 {1}의 바이트가 UTF-8이 아닙니다.",
    "The connection was cut": "연결이 끊겼습니다.",
    "It is of another kind or version": "종류나 버전이 다릅니다.",
    "Expecting {}: line {} column {} (char {})": "{1}번째 줄 {2}번째 글자에서 JSON이 깨졌습니다.",
    "Extra data: line {} column {} (char {})": "{}번째 줄 {}번째 글자부터 JSON 뒤에 다른 것이 더 있습니다.",
    "Unterminated string starting at: line {} column {} (char {})": "{}번째 줄 {}번째 글자에서 시작한 문자열이 닫히지 않았습니다.",
    # archives of torch.save
    "File is not a zip file": "zip 파일의 끝이 없습니다.",
    "two parts of the archive have the same name": "압축 파일 안에 이름이 같은 부분이 둘 있습니다.",
    "its list of parts is too long": "부분의 목록이 너무 깁니다.",
    "its numbers are stored big end first": "숫자가 big-endian으로 저장되어 있습니다.",
    "its numbers are cut short": "숫자가 중간에 잘렸습니다.",
    "{} does not begin where the archive says": "{}이(가) 목록에 적힌 자리에서 시작하지 않습니다.",
    "{} has another checksum": "{}의 체크섬이 다릅니다.",
    "{} is cut short": "{}이(가) 중간에 잘렸습니다.",
    "it is a pickle, but none that torch.save wrote": "pickle이지만 torch.save가 쓴 것이 아닙니다.",
    "it holds a view of a storage, as PyTorch 0.x wrote it": "PyTorch 0.x의 방식으로 저장되어 있습니다.",
    "it describes a storage in two ways": "같은 저장 공간을 두 가지로 설명합니다.",
    "a tensor in it has no numbers": "숫자가 없는 텐서가 있습니다.",
    "a tensor in it has an impossible shape": "있을 수 없는 모양의 텐서가 있습니다.",
    "a tensor in it is larger than its numbers": "들어 있는 숫자보다 큰 텐서가 있습니다.",
    "a storage in it has no key": "이름 없는 저장 공간이 있습니다.",
    "several parameters share the same numbers": "여러 파라미터가 같은 숫자를 함께 씁니다.",
    "the pickle in it is too long": "안의 pickle이 너무 깁니다.",
    "the pickle in it makes too many objects": "안의 pickle이 객체를 너무 많이 만듭니다.",
    "the pickle in it {}": "안의 pickle이 올바르지 않습니다.",
    # shards
    "{} holds other parameters than it says: {}": "{}에 적힌 것과 다른 파라미터가 들어 있습니다: {}",
    "it has no weight_map": "weight_map이 없습니다.",
    "it names more than {} files": "파일을 {}개보다 많이 적었습니다.",
    "it names {}, which is no file beside it": "{}을(를) 적었는데 옆에 그런 파일이 없습니다.",
    "it names what is no file": "파일이 아닌 것을 적었습니다.",
    # safetensors
    "the header should have {} bytes, the whole file has {}": "헤더가 {}바이트라고 적혀 있는데 파일 전체가 {}바이트입니다.",
    "the header is no JSON: {}": "헤더가 JSON이 아닙니다. {}",
    "the header is no JSON object": "헤더가 JSON 객체가 아닙니다.",
    "a name comes twice": "같은 이름이 두 번 나옵니다.",
    "{} should end {} bytes after the header, where the file has ended": "{}은(는) 헤더 뒤 {}바이트에서 끝나야 하는데 파일이 먼저 끝납니다.",
    "what it says about {} cannot be understood": "{}에 대해 적힌 것을 이해할 수 없습니다.",
    "{} has the shape {}, for which its {} bytes are not right": "{}의 모양 {}에 {}바이트는 맞지 않습니다.",
    "its tensors overlap or leave gaps": "텐서가 겹치거나 사이가 비어 있습니다.",
    "its tensors end after {} bytes, the file after {}": "텐서는 {}바이트에서, 파일은 {}바이트에서 끝납니다.",
    # vocabularies
    "its ids do not run from 0 without gaps": "id가 0부터 빠짐없이 이어지지 않습니다.",
    "its lists contradict each other": "목록들이 서로 어긋납니다.",
    "it holds what is no character": "문자가 아닌 것이 들어 있습니다.",
    "{} is no id": "{}은(는) id가 아닙니다.",
    "a line of it is no pair of pieces": "조각 두 개가 아닌 줄이 있습니다.",
    "an id of its vocabulary is no number": "어휘에 숫자가 아닌 id가 있습니다.",
    "its vocabulary lacks a part of the merge {} {}": "병합 {} {}의 일부가 어휘에 없습니다.",
    "its normalizer makes texts much longer than they are": "정규화가 글을 훨씬 길게 만듭니다.",
    "it has no entry json": "json 항목이 없습니다.",
    "its type is {}; known are {} and {}": "종류가 {}입니다. 아는 종류: {}, {}.",
    # configurations
    "it needs more than {} numbers, and {} holds {}": "숫자가 {}개 넘게 필요한데 {}에는 {}개가 있습니다.",
    # the Hub
    "the answer names no commit": "답에 커밋이 없습니다.",
    "{} came from another commit than was asked for": "{}이(가) 부탁한 것과 다른 커밋에서 왔습니다.",
    "{} has another size than the Hub said": "{}의 크기가 Hub가 말한 것과 다릅니다.",
}

NAMES: dict[str, str] = {
    "Llama or a relative": "Llama 또는 비슷한 모델",
    "BART or a relative": "BART 또는 비슷한 모델",
    "a model of images": "이미지 모델",
    "an LSTM or GRU": "LSTM 또는 GRU",
    "PyTorch's nn.Transformer": "PyTorch의 nn.Transformer",
    "a convolutional network": "합성곱 신경망",
}
"""What stands for the name of an architecture that has none."""


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile("(.+?)".join(map(re.escape, english.split("{}"))), re.DOTALL)


_PATTERNS = [(_pattern(english), korean) for english, korean in REASONS.items()]


def reason_in_korean(reason: str) -> str:
    """Return a cause in Korean, as a sentence; one that is not known is quoted."""
    text = reason.strip().rstrip(".")
    parameter, colon, rest = text.partition(": ")
    if colon and " " not in parameter:
        return f"{parameter}: {reason_in_korean(rest)}"
    for pattern, korean in _PATTERNS:
        found = pattern.fullmatch(text)
        if found is not None:
            header = text.startswith("the header is no JSON: ")
            return korean.format(*map(reason_in_korean, found.groups()) if header else found.groups())
    return QUOTED.format(text)
