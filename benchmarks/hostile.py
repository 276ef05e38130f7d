"""`python -m benchmarks.hostile --data DIR`: what tools that are written to be found do to the ranking.

Four attacks on real catalogues, each with all guards of the default ranker and with one of them off:

- *repeats*: a tool that has nothing to do with a request gets the request's words appended to its
  description. The request is drawn from the words of another tool: at least half of those of its name, and
  some of a description of no more than twice the average length. Counted is how often the tool that it is
  drawn from comes second.
- *echo*: one tool says the words of the labelled request at hand. Counted is recall of the labelled tools.
- *flood*: fifty tools of one more server say the words of the labelled request at hand ("exact"), or the 300
  most frequent words of all requests ("common"), one to four times. Counted is recall of the labelled tools.
- *dictionary*: one tool, or fifty of no known server, say the 2,500 most frequent words of the catalogue, in
  one of their fields. Counted is recall.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.ablation import Setup, ceiling, patched, server_limit, whole_names
from benchmarks.datasets import Case, Dataset, read_datasets
from benchmarks.metrics import found, percent
from langchain_tool_selection import LexicalRanker, ToolDocument
from langchain_tool_selection._ranking import weighting as _weighting
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.text import query_terms, query_words, split, terms

KS = (1, 5, 15)
_TOOLS = 50
_DRAWN = 100
_TIMES = (1, 3, 10)
_FIELDS: dict[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "description": lambda words: {"description": " ".join(words)},
    "parameters": lambda words: {"parameters": tuple((word, "") for word in words)},
    "tags": lambda words: {"tags": tuple(words)},
}


def lengths(setup: Setup) -> ExitStack:
    """Take any average for the normal length of a field, and names, domains and tags as they come."""
    stack = ExitStack()
    b = np.where(_weighting._LEAST_AVERAGE > 1, 0, _weighting._B)
    stack.enter_context(patched(_weighting, "_B", b))
    stack.enter_context(patched(_weighting, "_LEAST_AVERAGE", 1))
    stack.enter_context(patched(_weighting, "_MOST_AVERAGE", np.inf))
    return stack


def nothing_on(setup: Setup) -> ExitStack:
    """Take all guards away."""
    stack = ExitStack()
    for guard in (lengths, ceiling, server_limit, whole_names):
        stack.enter_context(guard(setup))
    return stack


GUARDS: dict[str, Callable[[Setup], Any]] = {
    "as it is": lambda setup: ExitStack(),
    "no ceiling of repeated words": ceiling,
    "no limit of a server": server_limit,
    "no precedence of whole names": whole_names,
    "any normal length": lengths,
    "no guard": nothing_on,
}
"""What is switched off, by name."""


def ranking(documents: Sequence[ToolDocument], ranker: LexicalRanker, query: Query, limit: int) -> list[str]:
    """Return names, best first; nothing for an empty query."""
    return [hit.name for hit in ranker.rank(query, tuple(documents), limit=limit)] if query else []


def drawn(data: Dataset) -> Iterator[tuple[tuple[ToolDocument, ...], int, ToolDocument, str]]:
    """Yield a catalogue, the position of an unrelated tool in it, another tool, and a request for that."""
    chance, documents = random.Random(13), data.documents()
    longest = 2 * fmean(len(split(document.description)) for document in documents)
    for _ in range(_DRAWN):
        target = chance.choice(documents)
        name = _words(target.name)
        said = [word for word in _words(target.description) if word not in name]
        if not name or len(split(target.description)) > longest:
            continue
        asked = chance.sample(name, chance.randint((len(name) + 1) // 2, len(name)))
        asked += chance.sample(said, min(len(said), chance.choice((1, 2, 3, 5, 8))))
        text = " ".join(chance.sample(asked, len(asked)))
        unrelated = [
            position
            for position, document in enumerate(documents)
            if not set(terms(_text(document))).intersection(query_terms(text))
        ]
        if unrelated:
            yield documents, chance.choice(unrelated), target, text


def repeats(data: Dataset) -> dict[str, float]:
    """Return how often, in percent, a tool with appended words comes before the one they are taken from."""
    ranker, lost = LexicalRanker(), {times: [] for times in _TIMES}
    for documents, position, target, text in drawn(data):
        for times in _TIMES:
            bad = documents[position]
            bad = replace(bad, description=f"{bad.description} {' '.join((text.split() * times)[:200])}")
            changed = (*documents[:position], bad, *documents[position + 1 :])
            names = ranking(changed, ranker, Query.of(text), len(documents))
            lost[times].append(target.name not in names[: names.index(bad.name)])
    return {f"lost, said {times} times": percent(values) for times, values in lost.items() if values}


def recall(data: Dataset, added: Callable[[Case], Sequence[ToolDocument]]) -> dict[str, float]:
    """Return recall at each of `KS`, in percent, where a catalogue has more tools."""
    ranker, documents = LexicalRanker(), data.documents()
    found_at: dict[int, list[float]] = {k: [] for k in KS}
    for case in data.cases:
        names = ranking((*documents, *added(case)), ranker, case.conversation(), max(KS))
        for k in KS:
            found_at[k].append(fmean(found(case, names, k)))
    return {f"recall@{k}": percent(values) for k, values in found_at.items()}


def crowd(words: Sequence[str], count: int = _TOOLS) -> list[ToolDocument]:
    """Return tools of one server that say `words` in any order."""
    chance, tools = random.Random(13), []
    for number in range(count):
        said = list(words) * chance.choice((1, 2, 4))
        text = " ".join(chance.sample(said, len(said)))
        tools.append(ToolDocument(f"process_{number}", f"Processes data. {text}", domain="crowd"))
    return tools


def dictionary(data: Dataset, field: str, count: int) -> list[ToolDocument]:
    """Return tools that say most words of a catalogue in one of their fields."""
    words = _frequent((_text(document) for document in data.documents()), 2_500)
    return [
        ToolDocument(f"process_{number}", **{"description": "Processes data."} | _FIELDS[field](words))
        for number in range(count)
    ]


def attacks(data: Dataset) -> dict[str, dict[str, float]]:
    """Return what each attack does to one set."""
    common = crowd(_frequent((case.query for case in data.cases), 300))
    rows = {
        "no attack": recall(data, lambda case: ()),
        "repeats": repeats(data),
        "echo": recall(data, lambda case: crowd(case.query.split(), 1)),
        "flood, exact": recall(data, lambda case: crowd(case.query.split())),
        "flood, common": recall(data, lambda case: common),
    }
    for field in _FIELDS:
        for count in (1, _TOOLS):
            tools = dictionary(data, field, count)
            rows[f"dictionary, {field} of {count}"] = recall(data, lambda case, tools=tools: tools)
    return rows


def _words(text: str) -> list[str]:
    words = (word.surface.removeprefix("=") for word in query_words(text) if not word.guess)
    return [word for word in dict.fromkeys(words) if word]


def _text(document: ToolDocument) -> str:
    said = [document.name, document.domain, document.description]
    return " ".join([*said, *(part for parameter in document.parameters for part in parameter)])


def _frequent(texts: Iterator[str], count: int) -> list[str]:
    words = Counter(word.casefold() for text in texts for word in split(text))
    return [word for word, _ in words.most_common() if query_terms(word)][:count]


def averages(by_set: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return each attack's figures, averaged over the sets."""
    rows = list(by_set.values())
    return {
        attack: {figure: fmean(row[attack][figure] for row in rows) for figure in rows[0][attack]}
        for attack in rows[0]
    }


def main() -> None:
    """Run every attack against every guard, print averages and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of sets; see benchmarks/README.md")
    parser.add_argument("--sets", default="", help="sets to use, separated by commas (default: all)")
    parser.add_argument("--limit", type=int, default=40, help="requests of each set to use")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    options = parser.parse_args()
    datasets = read_datasets(options.data, [s for s in options.sets.split(",") if s], options.limit)
    results: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for guard, take_away in GUARDS.items():
        with take_away(Setup()):
            results[guard] = {data.name: attacks(data) for data in datasets}
        print(f"… {guard}", flush=True)
    means = {guard: averages(by_set) for guard, by_set in results.items()}
    lines = [
        [attack, " / ".join(figures), *(_cell(mean[attack]) for mean in means.values())]
        for attack, figures in means["as it is"].items()
    ]
    print(report.table(["attack", "figures", *means], lines))
    content = report.provenance("benchmarks.hostile") | {"limit": options.limit, "guards": results}
    print(f"\n`{content['command']}` → {report.save('hostile', content, options.out).name}")


def _cell(figures: dict[str, float]) -> str:
    return " / ".join(f"{value:.1f}" for value in figures.values())


if __name__ == "__main__":
    main()
