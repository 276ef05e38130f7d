"""What each family of near-synonyms does to recall when it alone is taken out.

    python -m benchmarks.families --data DIR

Prints, for each line of the table in `_ranking/knowledge.py`, what the family brings at
recall@1, @5 and @10 (macro average over the sets, in points), and how many requests it wins and loses at
recall@10. Only requests with a word of the family are ranked twice; all others cannot change.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from benchmarks.datasets import Dataset, read_datasets
from benchmarks.metrics import found
from langchain_tool_selection import LexicalRanker
from langchain_tool_selection._ranking import knowledge as _knowledge
from langchain_tool_selection._ranking import lexical as _lexical
from langchain_tool_selection._ranking.text import query_terms, terms

KS = (1, 5, 10)


def recalls(dataset: Dataset, ranker: LexicalRanker, cases: Mapping[int, object]) -> dict[int, list[float]]:
    """Return recall at each K for some requests of a set, by their number."""
    documents = dataset.documents()
    result = {}
    for number in cases:
        case = dataset.cases[number]
        query = case.conversation()
        names = [hit.name for hit in ranker.rank(query, documents, limit=max(KS))] if query else []
        result[number] = [sum(found(case, names, k)) / len(case.relevant) for k in KS]
    return result


def main() -> None:
    """Take out one family after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of sets")
    datasets = read_datasets(parser.parse_args().data)
    for dataset in datasets:
        documents = dataset.documents()
        object.__setattr__(dataset, "documents", lambda documents=documents: documents)
    rankers = {dataset.name: LexicalRanker() for dataset in datasets}
    words = {
        dataset.name: [
            {t for text, _ in case.conversation().parts for t in query_terms(text)} for case in dataset.cases
        ]
        for dataset in datasets
    }
    base = {d.name: recalls(d, rankers[d.name], dict.fromkeys(range(len(d.cases)))) for d in datasets}
    for line in _knowledge.TABLE.strip().splitlines():
        family = frozenset(terms(line.rpartition("|")[2]))
        others = "\n".join(other for other in _knowledge.TABLE.strip().splitlines() if other != line)
        gains, won, lost = [0.0] * len(KS), 0, 0
        with patch.object(_lexical, "FAMILIES", _knowledge.families(others)):
            for dataset in datasets:
                touched = {
                    n: None for n, found_words in enumerate(words[dataset.name]) if found_words & family
                }
                without = recalls(dataset, rankers[dataset.name], touched)
                for number, values in without.items():
                    with_family = base[dataset.name][number]
                    won += with_family[-1] > values[-1]
                    lost += with_family[-1] < values[-1]
                    for i, _ in enumerate(KS):
                        gains[i] += 100 * (with_family[i] - values[i]) / len(dataset.cases) / len(datasets)
        figures = " ".join(f"{gain:+.2f}" for gain in gains)
        print(f"{figures}  +{won} -{lost}  {line.rpartition('|')[2].strip()}", flush=True)


if __name__ == "__main__":
    main()
