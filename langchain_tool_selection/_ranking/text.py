"""Words: how the text of a request and of a tool become the same index terms.

A tool says `createIssue`, `jira.create-issue` or `JIRA_CREATE_ISSUE`; a person says "please open two
issues". Both become the same stems, so that they meet: Unicode folded (NFKC, case, accents), identifiers
split, words stemmed. Scripts written without spaces become overlapping character pairs, which need no
dictionary. Words that carry no need ("please", "can you") are dropped from requests only; in a tool's
text they cost nothing, because nobody searches for them.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import Stemmer

from langchain_tool_selection._ground.untrusted import normalize

MAX_WORDS = 256
"""So many different words of a request are searched for, half from its beginning, half from its end."""

# Accents of Latin and Greek, vowel points of Hebrew and Arabic; but Cyrillic short i is a letter of its own.
_ACCENTS = re.compile(
    r"[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u064b-\u065f\u0670]|(?<![\u0418\u0438])\u0306"
)
# Chinese, Japanese, Thai, Lao, Khmer and Burmese put no space between words. Korean does, but glues
# its particles to them; pairs of syllables see through that.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
# The vowel signs of Indic scripts are marks, not letters, to a regular expression; words keep them.
_RUN = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[\u0900-\u0963\u0966-\u0dff])+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_POSSESSIVE = re.compile(r"(?<=\w)'(?:s|d|m|ll|re|ve)\b")
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu)'(?=\w{2})", re.IGNORECASE)

# What people say to an assistant around what they want. Verbs that tools are named after (get, list,
# find, send, check, show, make) are not here: dropping them costs more recall than they add noise.
_STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text("utf-8").split())

# Here "tell" asks the assistant to speak. In "tell the team" it is what a tool should do.
_ASIDES = re.compile(r"\b(?:tell me|let (?:me|us) know)\b", re.IGNORECASE)

_QUOTED = re.compile(
    r"(?<!\w)['\"\u201c\u2018\u00ab]([^'\"\u201c\u201d\u2018\u2019\u00bb]{3,400})['\"\u201d\u2019\u00bb](?!\w)"
)

_QUOTED_WEIGHT = 0.5
"""Weight of a word that stands in quotation marks only."""

_JOINED_WEIGHT = 0.7
"""Weight of two neighbouring words read as one."""

_SENTENCE_END = re.compile(r"[.!?;]+(?:\s+|$)|\n+|[\u3002\uff01\uff1f\uff1b]+")

_SENTENCE_TERMS = 2
"""Content words that a sentence needs to count as one: "Thanks!" and "Is that okay?" ask for nothing."""

_STEMMERS = {
    "LATIN": Stemmer.Stemmer("english"),
    "CYRILLIC": Stemmer.Stemmer("russian"),
    "GREEK": Stemmer.Stemmer("greek"),
    "ARABIC": Stemmer.Stemmer("arabic"),
}
_STEMMER_LOCK = threading.Lock()  # a stemmer keeps its cache on itself, unguarded


class Word(NamedTuple):
    """One word of a request.

    Attributes:
        term: What it is indexed as: its stem.
        surface: What it is indexed as in the form in which it stands there; empty if it has none.
        weight: How much it counts, above 0 to 1.
        guess: Whether nobody wrote it like this: two words run together.
    """

    term: str
    surface: str
    weight: float = 1.0
    guess: bool = False


def terms(text: str) -> list[str]:
    """Return the stems of a tool's text, in order and with repetitions."""
    return list(chain.from_iterable(map(_stems, split(text))))


def index_terms(run: str) -> tuple[str, ...]:
    """Return everything that a run of a tool's text is indexed under: stems, and words as they stand.

    A stem finds `playing` for "play"; the surface form then tells `play_song` from `get_playing_song`.
    """
    if _UNSPACED_RUN.match(run):
        return _stems(run)
    return (*_stems(run), *(f"={word}" for word in _parts(run)))


def query_terms(text: str) -> list[str]:
    """Return the stems that a request stands for: no stop words, no guesses, each once."""
    return [word.term for word in query_words(text) if not word.guess]


def query_words(text: str) -> list[Word]:
    """Return the words of a request that are worth searching for, each stem once.

    Words in quotation marks count less: they are what to send, find or create, not what to do. Bare
    numbers count nothing, unless there is nothing else. Neighbours are also tried as one word, because
    tools are called `worklog` and `filesystem`.
    """
    text = _ASIDES.sub(" ", text)
    unquoted = _QUOTED.sub(" ", text)
    runs = split(unquoted)
    words: dict[str, Word] = {}
    for found_runs, weight in ((runs, 1.0), (split(text) if unquoted != text else [], _QUOTED_WEIGHT)):
        for run in found_runs:
            if run.casefold() not in _STOP_WORDS:
                for term, surface in _query_forms(run):
                    words.setdefault(term, Word(term, surface, weight))
    spoken = {term: word for term, word in words.items() if not term.isdigit()} or words
    for left, right in pairwise(run for run in runs if len(run) > 2 and run.isalpha()):
        joined = f"{left}{right}".casefold()
        if not _UNSPACED_RUN.match(joined):
            term = _stem(joined)
            spoken.setdefault(term, Word(term, f"={joined}", _JOINED_WEIGHT, guess=True))
    found = list(spoken.values())
    return found if len(found) <= MAX_WORDS else found[: MAX_WORDS // 2] + found[-MAX_WORDS // 2 :]


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a request that say something, without their ends.

    What stands in quotation marks is never a sentence of its own: it is what to send, and no wish.
    """
    text = _QUOTED.sub(lambda quoted: _SENTENCE_END.sub(" ", quoted[0]), text)
    return [part for part in _SENTENCE_END.split(text) if len(query_terms(part)) >= _SENTENCE_TERMS]


def split(text: str) -> list[str]:
    """Split text into runs of letters and digits, each of one kind of script."""
    if not text:
        return []
    text = normalize(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    if "'" in text or "\u2019" in text:
        text = _ELISION.sub(" ", _POSSESSIVE.sub("", text.replace("\u2019", "'"))).replace("'", "")
    return _ASCII_RUN.findall(text) if text.isascii() else _RUN.findall(text)


@lru_cache(maxsize=100_000)
def _stems(run: str) -> tuple[str, ...]:
    if pairs := _pairs(run):
        # Single characters too, for a request of one.
        return (*pairs, *run) if len(run) > 1 else pairs
    return tuple(map(_stem, _parts(run)))


def _query_forms(run: str) -> list[tuple[str, str]]:
    if pairs := _pairs(run):
        return [(pair, "") for pair in pairs]
    return [(_stem(word), f"={word}") for word in _parts(run)]


def _parts(run: str) -> list[str]:
    """Split camel case. `GitHub` is one word to a person and two to a splitter: keep both readings."""
    parts = _CAMEL.split(run)
    return [part.casefold() for part in (*parts, run)] if len(parts) > 1 else [run.casefold()]


def _pairs(run: str) -> tuple[str, ...]:
    """Return overlapping pairs of characters, or one alone; nothing for a script that spaces words."""
    if not _UNSPACED_RUN.match(run):
        return ()
    return tuple(run[i : i + 2] for i in range(len(run) - 1)) or (run,)


def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    script = "LATIN" if word.isascii() else unicodedata.name(word[0], "").partition(" ")[0]
    stemmer = _STEMMERS.get(script)
    if stemmer is None:
        return word
    with _STEMMER_LOCK:
        return str(stemmer.stemWord(word))
