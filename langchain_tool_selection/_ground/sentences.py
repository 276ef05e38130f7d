"""Where the first sentence and the first paragraph of a description end."""

from __future__ import annotations

import re

_END = re.compile(
    r"""
    (?P<paragraph> \n[^\S\n]*\n )
    # Chinese and Japanese put no space after a sentence.
    | [\u3002\uff01\uff1f\uff61]+ ["'\u201d\u2019\u300d\u300f\uff09)\]]*
    # The full stops of Hindi, Urdu, Arabic, Armenian, Amharic, Burmese and Khmer; and ours.
    | (?: [\u0964\u0965\u06d4\u061f\u0589\u1362\u104b\u17d4]+ | (?P<stop> [.!?\u2026]+ ) )
      ["'\u201d\u2019\u00bb)\]*`_]* (?=\s)
    """,
    re.VERBOSE,
)
_ABBREVIATIONS = frozenset(
    "approx ca cf co corp dept dr eg est excl fig ie inc incl ltd max min mr mrs ms no nos nr prof resp sec "
    "st std vol vs".split()
)
_LAST_WORD = re.compile(r"(?:\w|(?<=\w)\.(?=\w))+$")
_NUMBERED = re.compile(r"(?:^|\n)\s*\d+$")
_LONGEST = 2_000
"""Characters in which a sentence has to end. Who describes a tool may write a megabyte of full stops in
brackets, and each of them is looked at with all that stands before it."""
_BRACKETS = str.maketrans("\uff08\uff09[]", "()()")


def first_paragraph(text: str) -> str:
    """Return the text before its first blank line, without white space around it."""
    return re.split(r"\n[^\S\n]*\n", text.strip(), maxsplit=1)[0].rstrip()


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, without white space around it; the whole text if in doubt.

    A full stop ends a sentence if white space follows and then no small letter. It does not in brackets,
    after an abbreviation or an initial, after a number that begins a line, or before any word was said. So
    URLs, versions, "e.g. Berlin" and "1. First" stay in one piece. A blank line ends it in any case.
    """
    text = text.strip()
    for end in _END.finditer(text, 0, _LONGEST):
        before = text[: end.start()]
        if end["paragraph"]:
            return before.rstrip()
        said = any(char.isalnum() for char in before)
        if (
            said
            and _balanced(text[: end.end()])
            and not (end["stop"] and _goes_on(before, text[end.end() :]))
        ):
            return text[: end.end()]
    return text


def _goes_on(before: str, after: str) -> bool:
    if after.lstrip()[:1].islower() or _NUMBERED.search(before):
        return True
    found = _LAST_WORD.search(before)
    word = found.group() if found else ""
    # "e.g", "U.S", and the initial of a name; a single digit is no initial.
    return "." in word or (len(word) == 1 and word.isalpha()) or word.lower() in _ABBREVIATIONS


def _balanced(text: str) -> bool:
    text = text.translate(_BRACKETS)
    return text.count("(") <= text.count(")")
