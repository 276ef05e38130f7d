"""What everybody knows about words, as far as it helps to find tools: families of near-synonyms.

People book and schedule, mail and e-mail; tools are named after one of each. A word of a request also
finds its family, at a small weight, so that any tool with the word itself comes first.

One family a line, any inflection, behind what it alone brings: recall@5 and recall@10 in points, on average
over twelve sets of labelled requests (`python -m benchmarks.families`). The families come from general
knowledge, and those that brought nothing are gone: some thirty, of meetings and events, tickets and issues,
flights and trips. Creating brings 0.24 at recall@1 besides. Buying, downloading and files brought up to 0.02
until repeated words had a ceiling, and cost next to nothing. The last one changes nothing there, because
nobody does sums in those sets; it stays for everybody who has a calculator.
"""

from __future__ import annotations

from pathlib import Path

from langchain_tool_selection._ranking.text import terms

FAMILY_WEIGHT = 0.2
"""What a relative of a word counts, as a share of the word itself."""

TABLE = Path(__file__).with_name("families.txt").read_text("utf-8")


def families(table: str) -> dict[str, tuple[str, ...]]:
    """Return each stem of a table that has relatives, with their stems."""
    relatives: dict[str, dict[str, None]] = {}
    for line in table.strip().splitlines():
        family = terms(line.rpartition("|")[2])
        for word in family:
            relatives.setdefault(word, {}).update(dict.fromkeys(other for other in family if other != word))
    return {word: tuple(others) for word, others in relatives.items()}


FAMILIES = families(TABLE)
"""Each stem that has relatives, with their stems."""
