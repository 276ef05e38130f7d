"""Text of unknown origin: what nobody can see of it goes, and what is quoted becomes one plain line."""

from __future__ import annotations

import re
import unicodedata

MAX_CHARACTERS = 20_000
"""Text beyond this is not read: a pasted log says no more about the wanted tool in its second 20 kB."""

# Invisible on screen, meaningful to a tokenizer or a model: what Unicode calls default ignorable (zero-width,
# bidi and tag characters, soft hyphen, fillers, variation selectors), annotations, halves of a character. A
# description must not differ from what a reviewer can see of it.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
# What a terminal obeys and does not show, and with it hides the text behind. Not the ends of lines.
_CONTROL = "\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"

# Joiners and variation selectors change what is seen of the character before them, in Indic and Arabic words
# and in emoji: one at a time, or a selector and a joiner. After an ASCII character they change a keycap only.
_JOINERS = "\u200c\u200d\ufe00-\ufe0f"
_NEEDED = (
    f"(?<=[^\0-\x7f\x80-\x9f{_IGNORABLE}])(?:\ufe0f\u200d|[{_JOINERS}])(?![{_JOINERS}])"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
_SUSPECT = re.compile(f"[{_IGNORABLE}{_CONTROL}]")
_HIDDEN = re.compile(f"(?P<needed>{_NEEDED})|{_SUSPECT.pattern}")
_INVISIBLE = re.compile(f"[{_IGNORABLE}]+")


def normalize(text: str) -> str:
    """Return `text` for comparison: in compatibility form (NFKC), without invisible characters.

    Joiners go everywhere, because people type a word with and without them.
    """
    text = text[:MAX_CHARACTERS]
    return text if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def visible(text: str) -> str:
    """Return `text` without its `hidden_characters`, and otherwise as it is."""
    if not _SUSPECT.search(text):  # a hundred times faster, and true of most
        return text
    return _HIDDEN.sub(lambda found: found["needed"] or "", text)


def hidden_characters(text: str) -> list[str]:
    """Return the characters of `text` that nobody can see and a model reads, each once, sorted.

    A joiner or variation selector in a word or an emoji that needs it is none of them.
    """
    return sorted({found[0] for found in _HIDDEN.finditer(text) if not found["needed"]})


def one_line(text: str, limit: int) -> str:
    """Return text of unknown origin as one plain line of at most `limit` characters.

    Made for quoting a third party's words to a model or a log: no line breaks, control or invisible
    characters, and no character that opens markup, code or a link there.
    """
    text = normalize(text).translate(_PLAIN)
    text = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


_PLAIN = str.maketrans({"`": "'", "<": "‹", ">": "›", "[": "(", "]": ")", "{": "(", "}": ")", "|": "/"})
