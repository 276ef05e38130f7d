"""`python -m benchmarks.speed`: time and memory of ranking over catalogues of 61 to 50,000 tools.

The catalogues are made up, the same ones every time: names, sentences and parameters are recombined from
word lists, and every server (about 25 tools) brings a name and a few nouns of its own, so that the
vocabulary grows with the catalogue as it does in real ones. Each engine and size runs in a process of its
own, so that no cache is warm and memory is that of one index.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import report
from benchmarks.datasets import Case, Dataset
from benchmarks.metrics import timings
from benchmarks.rankers import Bm25s, RankBm25
from langchain_tool_selection import LexicalRanker, ToolDocument
from langchain_tool_selection._ranking.protocol import Query

SIZES = (61, 1_000, 10_000, 50_000)
REQUESTS = 200
LIMIT = 10
_CHANGES = 5
_SLOW = {"rank_bm25": 50_000}
"""Sizes from which an engine gets fewer requests: it takes a good part of a second for each."""

_VERBS = (
    "create list get update delete search send share archive export import assign close open schedule "
    "cancel approve reject upload download merge sync move copy rename validate publish restore monitor "
    "query"
).split()
_NOUNS = (
    "issue ticket message channel event contact deal invoice payment refund order product customer file "
    "folder page comment branch commit release pipeline build deployment alert incident metric dashboard "
    "report user team role permission project task milestone board label webhook subscription plan coupon "
    "shipment address session token secret queue topic bucket snapshot cluster node volume domain record "
    "certificate template campaign segment survey response form transcript recording meeting calendar "
    "reminder note document sheet row column table index backup log trace experiment model prompt dataset "
    "annotation budget expense receipt"
).split()
_ADJECTIVES = "new open active archived recent shared private public pending failed draft monthly".split()
_TAILS = (
    "Results are paginated; pass the cursor of the previous page to continue.",
    "Requires write access to the workspace.",
    "Returns the identifier, the current status and a link.",
    "Fails if the resource is locked by another user.",
    "Use filters to narrow the result by owner, date or status.",
    "Supports idempotency keys so that a retry has no further effect.",
    "Dates are ISO 8601 in UTC unless a time zone is given.",
    "Prefer this over the bulk endpoint for fewer than fifty items.",
)
_PARAMETERS = (
    ("id", "Identifier of the {noun}."),
    ("query", "Words to look for in the {noun}."),
    ("limit", "How many results to return, at most 100."),
    ("status", "Only items with this status."),
    ("owner", "User who owns the {noun}."),
    ("start_date", "Earliest date, inclusive."),
    ("end_date", "Latest date, exclusive."),
    ("title", "Short title shown to people."),
    ("body", "Text of the {noun} in Markdown."),
    ("notify", "Whether to notify the people involved."),
    ("cursor", "Cursor of the previous page."),
    ("format", "Output format, json or csv."),
)
_SYLLABLES = "ka lo mi ren tas vo xel dru pon zir bel qua fin hor gam nex".split()
_TOOLS_PER_SERVER = 25
_FRAMES = (
    "please {verb} the {noun} for {server}",
    "can you {verb} all {adjective} {noun}s in {server} from last week and tell me which ones are late",
    "{verb} {noun}",
    "I need to {verb} a {adjective} {noun} and then let the team know about it",
    "what happened to the {own} {noun} that we had on {server}?",
)


def catalogue(size: int) -> tuple[ToolDocument, ...]:
    """Return `size` made-up tools with unique names."""
    chance = random.Random(size)
    documents: dict[str, ToolDocument] = {}
    number = 0
    while len(documents) < size:
        server = _server(number)
        own = [_word(number * 7 + i + 1_000) for i in range(4)]
        for _ in range(_TOOLS_PER_SERVER):
            tool = _tool(chance, server, own)
            documents.setdefault(tool.name, tool)
        number += 1
    return tuple(documents.values())[:size]


def requests(size: int, count: int = REQUESTS) -> list[str]:
    """Return requests in users' words about servers of the catalogue of that size."""
    chance = random.Random(size + 1)
    servers = max(1, size // _TOOLS_PER_SERVER)
    texts = []
    for _ in range(count):
        number = chance.randrange(servers)
        words = {
            "verb": chance.choice(_VERBS),
            "noun": chance.choice(_NOUNS),
            "adjective": chance.choice(_ADJECTIVES),
            "server": _server(number),
            "own": _word(number * 7 + 1_000),
        }
        texts.append(chance.choice(_FRAMES).format(**words))
    return texts


def _tool(chance: random.Random, server: str, own: Sequence[str]) -> ToolDocument:
    verb, adjective = chance.choice(_VERBS), chance.choice(_ADJECTIVES)
    noun = chance.choice(own) if chance.random() < 0.3 else chance.choice(_NOUNS)
    other = chance.choice(_NOUNS)
    text = f"{verb.capitalize()} {adjective} {noun}s of a {other} in {server.capitalize()}."
    tails = chance.sample(_TAILS, chance.choice((0, 1, 1, 2, 4)))
    parameters = chance.sample(_PARAMETERS, chance.randint(1, 6))
    return ToolDocument(
        name=f"{server}_{verb}_{adjective}_{noun}" if chance.random() < 0.5 else f"{server}_{verb}_{noun}",
        description=" ".join([text, *tails]),
        parameters=tuple((name, text.format(noun=noun)) for name, text in parameters),
        domain=server,
    )


def _server(number: int) -> str:
    return _word(number + 17)


def _word(number: int) -> str:
    parts = []
    while number:
        number, rest = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[rest])
    return "".join(parts)


@dataclass
class Engine:
    """How to run one ranker: build an index, search it, and bring it up to date after a change."""

    build: Callable[[tuple[ToolDocument, ...]], Any]
    search: Callable[[Any, tuple[ToolDocument, ...], str], Any]
    change: Callable[[Any, tuple[ToolDocument, ...]], Any]


def engines() -> dict[str, Engine]:
    """Return what is measured; the textbook packages have no other way to change than a new index."""
    return {
        "lexical": Engine(_build_lexical, _search_lexical, _change_lexical),
        "bm25s": Engine(_rebuild(Bm25s), _search_other, lambda _, documents: _rebuild(Bm25s)(documents)),
        "rank_bm25": Engine(
            _rebuild(RankBm25), _search_other, lambda _, documents: _rebuild(RankBm25)(documents)
        ),
    }


_MISSING = Query.of("zz00")
"""A request that no tool matches, and that is no misspelt word: all it costs is a current index."""


def _build_lexical(documents: tuple[ToolDocument, ...]) -> LexicalRanker:
    ranker = LexicalRanker()
    ranker.rank(_MISSING, documents, limit=LIMIT)
    return ranker


def _search_lexical(ranker: LexicalRanker, documents: tuple[ToolDocument, ...], text: str) -> Any:
    return ranker.rank(Query.of(text), documents, limit=LIMIT)


def _change_lexical(ranker: LexicalRanker, documents: tuple[ToolDocument, ...]) -> None:
    ranker.rank(_MISSING, documents, limit=LIMIT)


def _rebuild(kind: Callable[[Dataset], Any]) -> Callable[[tuple[ToolDocument, ...]], Any]:
    def build(documents: tuple[ToolDocument, ...]) -> Any:
        return kind(Dataset("speed", tuple(map(_one_text, documents)), ()))

    return build


def _one_text(document: ToolDocument) -> dict[str, Any]:
    """Return all that the default ranker indexes of a tool, in the one field that the others have."""
    parameters = " ".join(f"{name} {text}" for name, text in document.parameters)
    return {"name": document.name, "description": f"{document.domain} {document.description} {parameters}"}


def _search_other(index: Any, _: tuple[ToolDocument, ...], text: str) -> Any:
    return index.search(Case(text, ()), LIMIT)


def measure(name: str, size: int) -> dict[str, Any]:
    """Return all figures of one engine at one size; meant for a fresh process."""
    engine = engines()[name]
    documents, texts = catalogue(size), requests(size)
    engine.build(catalogue(2))  # imports
    gc.collect()
    before = _resident()
    started = perf_counter()
    index = engine.build(documents)
    built = perf_counter() - started
    gc.collect()
    grown = _resident() - before
    slow = size >= _SLOW.get(name, sys.maxsize)
    texts = texts[: REQUESTS // 10] if slow else texts
    seconds = [_timed(lambda text=text: engine.search(index, documents, text)) for text in texts]
    second_round = (
        seconds if slow else [_timed(lambda t=t: engine.search(index, documents, t)) for t in texts]
    )
    return {
        "build_ms": round(1e3 * built, 2),
        "first_requests": timings(seconds),
        **timings(second_round),
        **{f"{kind}_ms": round(1e3 * spent, 3) for kind, spent in _changes(engine, index, documents).items()},
        "memory_mb": round(grown / 1e6, 1),
    }


def _changes(engine: Engine, index: Any, documents: tuple[ToolDocument, ...]) -> dict[str, float]:
    """Return the median times to take in one tool with a new description, one new tool, and one less."""
    spent: dict[str, list[float]] = {"change": [], "add": [], "remove": []}
    for turn in range(_CHANGES):
        position = len(documents) * (turn + 1) // (_CHANGES + 2)
        before, tool, after = documents[:position], documents[position], documents[position + 1 :]
        changed = replace(tool, description=f"Quarterly forecast number {turn} for planners.")
        added = replace(changed, name=f"forecast_number_{turn}")
        for kind, documents in (  # each made of the one before, and the next turn of the last
            ("change", (*before, changed, *after)),
            ("add", (*before, changed, added, *after)),
            ("remove", (*before, added, *after)),
        ):
            spent[kind].append(_timed(lambda current=documents: engine.change(index, current)))
    return {kind: sorted(times)[len(times) // 2] for kind, times in spent.items()}


def _timed(action: Callable[[], Any]) -> float:
    started = perf_counter()
    action()
    return perf_counter() - started


def _resident() -> int:
    """Return the resident memory of this process in bytes, or 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _in_process(name: str, size: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.speed", "--one", name, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(rows: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Print all figures, and the ratios that the package is held to."""
    lines = [
        [
            name, f"{int(size):,}", f"{row['p50_us']:,.0f}", f"{row['p99_us']:,.0f}",
            f"{row['first_requests']['p50_us']:,.0f}", f"{row['build_ms']:,.0f}",
            f"{row['change_ms']:,.2f}", f"{row['add_ms']:,.2f}", f"{row['remove_ms']:,.2f}",
            f"{row['memory_mb']:,.0f}",
        ]
        for name, by_size in rows.items()
        for size, row in by_size.items()
    ]  # fmt: skip
    header = ["tools", "µs p50", "µs p99", "µs p50, new words", "build ms"]
    changes = ["one tool changed ms", "added ms", "removed ms"]
    print(report.table(["engine", *header, *changes, "MB"], lines))
    print()
    for name, text in ratios(rows).items():
        print(f"- {name}: {text}")


def ratios(rows: dict[str, dict[str, dict[str, Any]]]) -> dict[str, str]:
    """Return comparisons within this run, as text."""
    ours, found = rows.get("lexical", {}), {}
    for size, row in ours.items():
        for other in (name for name in rows if name != "lexical" and size in rows[name]):
            theirs = rows[other][size]
            found[f"{int(size):,} tools, {other} / lexical"] = (
                f"request {theirs['p50_us'] / row['p50_us']:.2f}x, "
                f"build {theirs['build_ms'] / row['build_ms']:.2f}x, "
                f"changed tool {theirs['change_ms'] / row['change_ms']:.1f}x, "
                f"added {theirs['add_ms'] / row['add_ms']:.1f}x, "
                f"removed {theirs['remove_ms'] / row['remove_ms']:.1f}x"
            )
    sizes = sorted(int(size) for size in ours)
    for small, large in pairwise(sizes):
        growth = ours[str(large)]["p50_us"] / ours[str(small)]["p50_us"]
        found[f"lexical, {small:,} to {large:,} tools"] = (
            f"{large / small:.0f}x tools, {growth:.1f}x time (p50)"
        )
    return found


def main() -> None:
    """Measure every engine at every size, print and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "SIZE"), help="measure one case, print JSON")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of tools")
    parser.add_argument("--engines", default=",".join(engines()), help="separated by commas")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for name in options.engines.split(","):
        for size in options.sizes.split(","):
            print(f"… {name}: {size}", file=sys.stderr, flush=True)
            rows.setdefault(name, {})[size] = _in_process(name, int(size))
    show(rows)
    content = report.provenance("benchmarks.speed") | {"engines": rows, "ratios": ratios(rows)}
    print(f"\n`{content['command']}` → {report.save('speed', content, options.out).name}")


if __name__ == "__main__":
    main()
