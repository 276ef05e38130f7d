"""What everybody knows about words, as far as it helps to find tools: families of near-synonyms.

People book and schedule, mail and e-mail; tools are named after one of each. A word of a request also
finds its family, at a small weight, so that any tool with the word itself comes first.

One family a line, any inflection. Chosen by general knowledge, kept or dropped by what each does to the
labelled requests when it alone is taken out (`python -m benchmarks.families`).
"""

from __future__ import annotations

from langchain_tool_selection._text import terms

FAMILY_WEIGHT = 0.2
"""What a relative of a word counts, as a share of the word itself."""

TABLE = """
create add make open file new insert register generate
send post message notify tell share publish write
list get show fetch view read retrieve display give
delete remove cancel drop clear erase
update edit change modify set mark move rename adjust
search find look query lookup locate discover
start begin launch run execute play trigger
stop end pause halt terminate
book reserve schedule plan
buy purchase order
calculate compute evaluate
convert translate transform
download export save
upload import attach
reply answer respond comment
call phone ring dial
email mail inbox
meeting event appointment calendar
song track music
photo image picture
folder directory
file document doc
ticket issue bug
person people contact user member
money balance payment fund
price cost quote
stock share ticker
movie film
weather temperature forecast rain
hotel room accommodation
location address place
news article headline
todo task reminder
note memo
repository repo
conversation chat channel
definition meaning
route direction
website webpage page url site
video clip
bill invoice
trip travel journey
car vehicle
company organization business
employee staff
text message sms
database db table
status state
log history
info information detail
"""


def families(table: str) -> dict[str, tuple[str, ...]]:
    """Return each stem of a table that has relatives, with their stems."""
    relatives: dict[str, dict[str, None]] = {}
    for line in table.strip().splitlines():
        family = terms(line)
        for word in family:
            relatives.setdefault(word, {}).update(dict.fromkeys(other for other in family if other != word))
    return {word: tuple(others) for word, others in relatives.items()}


FAMILIES = families(TABLE)
"""Each stem that has relatives, with their stems."""
