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

from langchain_tool_selection._ranking.text import terms

FAMILY_WEIGHT = 0.2
"""What a relative of a word counts, as a share of the word itself."""

TABLE = """
+0.08 -0.03 | create add make open file new insert register generate
+0.06 +0.03 | send post message notify tell share publish write
+0.08 +0.06 | list show view display
+0.02 +0.00 | get fetch read retrieve
+0.04 +0.09 | update edit change modify set mark move rename adjust
+0.18 +0.20 | search find look query lookup locate discover
+0.04 +0.00 | stop end pause halt terminate
-0.02 +0.00 | buy purchase order
+0.01 +0.17 | delete remove cancel drop clear erase
+0.00 +0.00 | download export save
+0.00 +0.04 | email mail inbox
-0.03 +0.06 | song track music
-0.01 +0.00 | file document doc
+0.04 +0.05 | money balance payment fund
+0.00 +0.04 | movie film
+0.03 +0.03 | weather temperature forecast rain
+0.00 +0.02 | repository repo
+0.01 +0.03 | website webpage page url site
+0.00 +0.00 | divide multiply subtract plus minus percent arithmetic calculate
"""


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
