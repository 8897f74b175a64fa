"""Training texts: named ones that are downloaded once and checked, and any text file.

A named corpus is a list of files at a fixed address with their sizes and SHA-256. They are kept in a cache folder
(`MINIGPT_CACHE` moves it) exactly as they came; a file of the right size and checksum there is never fetched again. A
cut download goes on where it stopped, and a file gets its name only when its checksum is right.

Knows texts; what a training run takes of them stands in `minigpt.splits`.
"""

import hashlib
import http.client
import json
import os
import sys
import unicodedata
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minigpt.errors import CorpusError

TIMEOUT = 30.0
"""Seconds without a byte after which a download counts as cut."""
CHUNK = 1 << 16

KOCONOVEL = (
    ("1_Ms._B_and_Love_Letters", 12859, "55da7fc6776c7f53c266ef75ee250e09cee7a214a3f027c1290ae73862462734"),
    ("2_A_Sweetheart", 37293, "73ab7e5e7aa419faf20985fba7e8d87a7960f12e984cf45ce46ff92caf75d349"),
    ("3_A_Fictional_Rogue_Girl", 32750, "500f9f299e35f8b286bd0edcc50564b2096df3778abede4ed31cdc7512d50707"),
    ("4_Wedding", 29668, "1ccc2a0ad7057aad63a2244b7dacfcfd642ce21992794a9816b92ca6257e7fee"),
    ("5_Kyung-hee", 65434, "a579f0c1b88fc415fe3cb82fe7c3f5d32f652926c9f4e59053628a3bf15d648f"),
    ("6_A_Strange_Monk", 34928, "9ca70a40e2c18694a610bad493e1b69b71f74c31fdbe8f270492dcab1e3dcc49"),
    ("7_The_Woman", 20303, "9e16c1bd4f11dc682a0f197a1c26c4c461179af0324d91089e275597b01b0cd1"),
    ("8_Dark_Moon", 42308, "325d78a484cbb2291ecaf7f9bf08214af2b31dc31ac879332be71932f6310473"),
    (
        "9_A_Field_of_Beans_Where_Gold_is_Buried",
        25835,
        "35b9d22058b6518311915fe1799cfb4822146828e37aeacda4417f3fc99b0fac",
    ),
    ("10_Rich_Mine", 23353, "bff72283ca0a190a1c687e946115afea70d408b7a0b53bccd3a75eddd194138e"),
    ("11_The_Daedong_River_Whispers", 32121, "4a959f579e5548229f25b825bfcbd9381dd4625d4d945cdd600621e5a306a3ff"),
    ("12_City_and_Ghost", 29715, "3e5ae640d3c94d940c16f35f3a003715369b8cf72069329bc7bc73137d91fc32"),
    ("13_Ddaraji", 45604, "84731eb8a97f65440fa8ed18ef209dbf27b6280f510e7ed5fcd804456e64d70d"),
    ("14_Manmubang", 55974, "afd0c6c30407c204c8b6996328d8cff2091ae6659194644e67d3465e04c5c31a"),
    ("15_When_the_Sun_Rises", 72259, "76c75ba966f4b31b72a1bbf9aba11f73795584771ec9c5f96cd460c093aa4ee7"),
    ("16_When_Buckwheat_Flowers_Blossom", 20359, "c41eca578f3f8e17aa0ba65e03cf44ab6b6569b19e7d64777760bd1aa8edc2c2"),
    ("17_Good_Sentences", 25066, "7d0d846d84649cca9a53a9a8ba8b12cf59ed110f2a4839a332281c6ec8c81a55"),
    ("18_The_Unknown_Woman", 13331, "df6923e520c2bb871320a4418e26b024eae9e2e8d098a22cb5d5d24ce1c4a36e"),
    ("19_The_Mother_and_the_Son", 21044, "9ec15fcbacf6f229be1f38876fc3579f8a07dfc3e9b0296edca6319424b4b50d"),
    ("20_Anemone", 53664, "d4ff9b49d15652c48012ffd98cc4410651b4f79f376c49336e67aafdc7bffe7f"),
    ("21_The_Death_of_Park_Chum-ji", 10956, "b694833d756a29910d14ab422ddaf770d7888dfdd2de245f0cead1024b72e2e6"),
    ("22_The_Mute_Samurai", 28379, "4ba8c6edfdbab262aabd23849d922135f99907e99b7721874ced0af1954a9ed1"),
    ("23_Spring_Spring", 27508, "81372f105e2f41f60608abc4098f569e1e9c02b4cf41436ae178dd4d355095e1"),
    ("24_The_Father_and_the_Son", 30963, "68af3de27018424a0897f52ef94dae44d79ad80f46f09a9dc6197667c17e0dbb"),
    ("25_Fire", 16686, "24f44c405e79b95f0c03ad03bdfeabe09afc249f6a8b473353b8f3185e12a063"),
    ("26_A_Poverty-Stricken_Wife", 33241, "42336271a9b3b4f85bfca8dae4a99185770ba6e856e55bc46602468b9b9ba059"),
    ("27_The_Son-in-Law", 35431, "4f33b9516b928277fb76c021c1385288b6a58524ab6ae6a459fef5ea732b1784"),
    ("28_A_Boy_s_Woes", 30674, "9a31ae58b0a220fcfb1ebdadb421cd424cada77f0ec0d5acbcce6661d5e8a0d6"),
    ("29_The_Calf", 44055, "aa1f978a03d0bc97f1bede5cabe6ec850a4a6770f5b30059bbf5d48c06cb5cf0"),
    ("30_Purehearted_Prince_Hodong", 26270, "028d8034e10196bc2e7e04b2a5fc0ea082749ae0b2faa5fb980d97c8244b2770"),
    ("31_Society_Authorizing_Alcohol", 25047, "49e64c21a4390fab6900d1ed51a3326a74c8d5f06de6b0c7ebbdb82a761787b9"),
    ("32_The_Newspaper_and_the_Cage", 25454, "7781502bddffc33a8b933e40503bc66139db15a289c14aea3dda368f9fee3ee2"),
    ("33_Miracles_of_Coincidence", 25874, "af1346d8eec4b868e1a2690d41a7ad156f9dd46565f61e33710e0fd483b34ecc"),
    ("34_A_Lucky_Day", 25010, "1fa7f1e6d5b0e54ffd51c6f62b67cc5e5f7054b3aff2395d47cea5968fee3d16"),
    ("35_Enemies_to_Benefactors", 31960, "c9239ce33ebe54180cd8eb28dcc90339ef86e9a39cfa7357cf89d2cca99e449e"),
    ("36_Presence", 18184, "8db4706214fe515ad72495d39771483585f6c2348ebb1e07621bb4be3185f9fe"),
    ("37_Girl_of_Doubt", 12354, "bd4bd3fa0d23dfd8d5ad2f549cdbd032a2e525102744fc5144b0f055e23fd675"),
    ("38_Eisig_and_Doseung", 30424, "172c88f6917a26c2044dd8671f25b35e6bc6f0878d86b031626e99ffd816cc3d"),
    ("39_The_Rose_is_Diseased", 43972, "c7bdd01125b2e6150e6c10c91ddadafbc592df22e7719d97d14a5acb6ca1b4f2"),
    ("40_Passionate_Princess_Nangnang", 32558, "48a55a830b191de4a4d8586d9f0a9bdc28c46a7aac6c3625e1a4e6bfa02e2cb9"),
    ("41_Jeong-hee", 40456, "06770ea430137d3c3ba797fb6c14e3588c00608cb36e1e89cdb101002d2e318d"),
    ("42_Youth", 192599, "de5c92569c2e6a65e3f46105194fdaa5faef7761d48fd6f06fd83ba3573e1a1e"),
    ("43_The_Bachelor_and_the_Blind_Eel", 17168, "6f950807783746c2e232cff310828f3d326e23650c87373209b7a4e19529a455"),
    ("44_Escape_Chronicles", 21606, "2f86df86287c867596dd6d95e3b01e65567231979f63f9078194983492df2832"),
    ("45_Break_at_Dawn", 26729, "4072f9cb3432f3c45c1073eead72489ad747a32f3360fadfeff6401ab5ca4d3e"),
    ("46_Sunrise", 82546, "91664803725a9d5b4c782309184e2bf5c325db84c48938b7addd41cf6d9f4cbc"),
    ("47_Floral_Tribute", 20704, "ecb3bafa52c37af71290fc2f24e42db172d2c4e1419c3bf772f2341e588bd8fa"),
    ("48_The_Bull_and_the_Goblin", 20725, "252ac7df0825f1c30f80d9a9eafcd7d9f76e07f0eba10077bad2a332fe612d6f"),
    ("49_Later_Baekje_Chronicles", 40277, "5b7a56000cc0684a2ab8c675d6470776d1f0d9cc57dc773ce0d1520992d162bb"),
    ("50_Baptism_of_Soil", 35090, "be1774008806d8b26956b6cf289713e73a916a800329101a8b11ec01b1b41eb9"),
)
"""Folder, size in bytes and SHA-256 of each novel's `text.jsonl`."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file of a named corpus: its path below the corpus's address, size in bytes, and SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class NamedCorpus:
    """A corpus that is known by name.

    Attributes:
        name: What a person types.
        title: One line for people.
        licence: What its licence allows, in a few words, with whom to credit.
        address: Where the files lie; each path is appended to it.
        files: All files, in the order in which they are joined.
        read: Makes the text out of the files' contents.
    """

    name: str
    title: str
    licence: str
    address: str
    files: tuple[SourceFile, ...]
    read: Callable[[list[bytes]], str]

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A training text with its provenance.

    Attributes:
        name: Name of the corpus or of the file.
        text: The whole text.
        title: One line for people.
        licence: What is known of the licence.
        source: Address or file name.
    """

    name: str
    text: str
    title: str
    licence: str
    source: str


def read_plain(contents: list[bytes]) -> str:
    """Return the text of UTF-8 files, one after the other, unchanged."""
    return b"".join(contents).decode()


def read_novels(contents: list[bytes]) -> str:
    """Return the text of KoCoNovel's files.

    Each line is a JSON object with `doc_id` ("NOVEL_PART") and `text`. The parts of a novel are sorted by their number
    and joined by a newline, the novels by an empty line. Windows line ends become newlines, any other carriage return
    is dropped, and the whole is put into Unicode's composed form (NFC).
    """
    novels: list[str] = []
    for content in contents:
        parts: list[dict[str, str]] = [json.loads(line) for line in content.decode().split("\n") if line.strip()]
        parts.sort(key=lambda part: int(part["doc_id"].rpartition("_")[2]))
        novels.append("\n".join(part["text"] for part in parts))
    text = "\n\n".join(novels) + "\n"
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", ""))


CORPORA: dict[str, NamedCorpus] = {
    corpus.name: corpus
    for corpus in (
        NamedCorpus(
            name="tinyshakespeare",
            title="40,000 lines of Shakespeare's plays (Andrej Karpathy's tiny Shakespeare)",
            licence="The text is in the public domain.",
            address="https://raw.githubusercontent.com/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/",
            files=(
                SourceFile(
                    path="data/tinyshakespeare/input.txt",
                    size=1115394,
                    sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                ),
            ),
            read=read_plain,
        ),
        NamedCorpus(
            name="koconovel",
            title="50 Korean novels and stories of the 1910s to 1930s in modernised spelling (KoCoNovel)",
            licence=(
                "CC BY-SA 4.0: Kim, Lee and Lee, KoCoNovel, 2024 (arXiv 2404.01140); the texts are from Wikisource and "
                "in the public domain."
            ),
            address="https://raw.githubusercontent.com/storidient/KoCoNovel/211e57dba1ffd2b84bd9817e27e66f35ab6071d2/",
            files=tuple(
                SourceFile(path=f"data/jsonl/{folder}/text.jsonl", size=size, sha256=sha256)
                for folder, size, sha256 in KOCONOVEL
            ),
            read=read_novels,
        ),
    )
}


def load_corpus(name: str, progress: Callable[[int], object] | None = None) -> Corpus:
    """Return a corpus by its name, or any UTF-8 text file by its path.

    Args:
        name: A key of `CORPORA`, or the path of a text file. A path wins if there is such a file.
        progress: Called with the number of bytes each time some have arrived.

    Raises:
        CorpusError: If there is no such corpus or file, the file is no text, or the download fails.
    """
    path = Path(name)
    if path.is_file():
        return Corpus(name=path.stem, text=_read_file(path), title=path.name, licence="not stated", source=path.name)
    if name not in CORPORA:
        raise CorpusError("unknown_corpus", name=name, choices=", ".join(CORPORA))
    known = CORPORA[name]
    contents = [fetch(known.address, file, cache_folder() / name, progress) for file in known.files]
    return Corpus(name=name, text=known.read(contents), title=known.title, licence=known.licence, source=known.address)


def cache_folder() -> Path:
    """Return where downloads are kept: `MINIGPT_CACHE`, or the platform's cache folder."""
    if moved := os.environ.get("MINIGPT_CACHE"):
        return Path(moved).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "minigpt"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "minigpt" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"


def fetch(address: str, file: SourceFile, folder: Path, progress: Callable[[int], object] | None = None) -> bytes:
    """Return a file's content from the cache, after downloading it if it is not there whole.

    Args:
        address: Where the corpus lies.
        file: Which of its files.
        folder: The corpus's folder in the cache.
        progress: Called with the number of bytes each time some have arrived.

    Raises:
        CorpusError: `download_failed` if the connection fails or is cut (what came is kept, the next try goes on
            there); `download_wrong_hash` if something else came; `cache_not_writable`.
    """
    path = folder / file.path
    try:
        if path.is_file() and _is_right(content := path.read_bytes(), file):
            return content
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        _download(address + file.path, partial, file, progress)
        content = partial.read_bytes()
        if not _is_right(content, file):
            partial.unlink()
            got = hashlib.sha256(content).hexdigest()
            raise CorpusError("download_wrong_hash", url=address + file.path, got=got, expected=file.sha256)
        partial.replace(path)
    except OSError as error:
        raise CorpusError("cache_not_writable", path=folder, reason=_reason(error)) from error
    return content


def _is_right(content: bytes, file: SourceFile) -> bool:
    return len(content) == file.size and hashlib.sha256(content).hexdigest() == file.sha256


def _download(url: str, partial: Path, file: SourceFile, progress: Callable[[int], object] | None) -> None:
    """Append to the partial file what is still missing of it; give up on what is longer than the file should be."""
    have = partial.stat().st_size if partial.is_file() else 0
    headers = {"Range": f"bytes={have}-"} if 0 < have < file.size else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 (https, or a test's own server)
    with _said_plainly(url, partial):
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310
    mode = "ab" if answer.status == http.HTTPStatus.PARTIAL_CONTENT else "wb"
    with answer, partial.open(mode) as out:
        while out.tell() <= file.size:
            with _said_plainly(url, partial):
                chunk: bytes = answer.read(CHUNK)
            if not chunk:
                break
            out.write(chunk)
            if progress is not None:
                progress(len(chunk))
    if partial.stat().st_size < file.size:
        raise CorpusError("download_failed", url=url, reason="The connection was cut.", path=partial)


@contextmanager
def _said_plainly(url: str, partial: Path) -> Generator[None]:
    """Turn the network's errors into a sentence."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise CorpusError("download_failed", url=url, reason=_reason(error), path=partial) from error


def _reason(error: Exception) -> str:
    """Return an exception's own words as a sentence."""
    inner = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    words = str(getattr(inner, "strerror", None) or inner).rstrip(".") or type(error).__name__
    return f"{words}."


def _read_file(path: Path) -> str:
    """Return a text file's content without a byte-order mark."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is {error.object[error.start]:#04x}."
        raise CorpusError("corpus_not_text", path=path, reason=reason) from error
    except OSError as error:
        raise CorpusError("corpus_unreadable", path=path, reason=_reason(error)) from error
