"""What every ranker promises, whatever it is made of: `check_ranker`, and what it leaves to our own."""

import asyncio
import json
import math
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from bag_of_words import BagOfWords
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tool_selection import (
    ARITHMETIC,
    EmbeddingRanker,
    Hit,
    HybridRanker,
    LexicalRanker,
    LLMRanker,
    Query,
    Ranker,
    RuleRanker,
    ToolDocument,
    ToolIndex,
    lexical_score,
)
from langchain_tool_selection.testing import ScriptedChatModel, check_ranker


def pick_by_name(sent):
    """Answer with the last two names of the menu in the order of the alphabet, wherever they stand."""
    return json.dumps(sorted(re.findall(r"^\d+\. (\w+):", str(sent.messages[-1].content), re.M))[:-3:-1])


RANKERS = {
    "lexical": LexicalRanker,
    "scorer": lambda: ToolIndex(lexical_score).ranker,
    "embedding": lambda: EmbeddingRanker(BagOfWords(), min_cosine=0.01),
    "hybrid": lambda: HybridRanker(LexicalRanker(), EmbeddingRanker(BagOfWords(), min_cosine=0.01)),
    "rules and words": lambda: RuleRanker({r"\bsum\b": ["calculator", "stock_price"]}, LexicalRanker()),
    "agreeing model": lambda: LLMRanker(ScriptedChatModel(script=lambda sent: "[1]")),
    "babbling model": lambda: LLMRanker(ScriptedChatModel(script=lambda sent: "With pleasure!")),
}
OPINIONATED = {
    "rules": lambda: RuleRanker(
        [(ARITHMETIC, "calculator"), ("in the tracker|weather", ["gone", "create_issue", "weather_lookup"])]
    ),
    "contrary model": lambda: LLMRanker(ScriptedChatModel(script=pick_by_name)),
}
"""Not bound by the words of a request, so nothing is promised about which of their tools comes first."""
EVERY = RANKERS | OPINIONATED

TOOLS = (
    ToolDocument("weather_lookup", "Get the weather forecast for a city.", (("city", "City name."),)),
    ToolDocument("stock_price", "Latest price of a share.", (("ticker", "Its symbol."),)),
    ToolDocument("translate_text", "Translate text to another language."),
    ToolDocument("calculator", "Evaluate a basic arithmetic expression."),
    ToolDocument("create_issue", "Open an issue in the tracker.", tags=("bug",), domain="tracker"),
    ToolDocument("create_issue_comment", "Comment on an issue in the tracker.", domain="tracker"),
    ToolDocument("search_law", "日本の法令 を 検索 する"),
    ToolDocument("buscar_café", "Busca un café cercano."),
)
REQUESTS = [
    "weather forecast for a city",
    "translate text to another language",
    "open an issue in the tracker",
    "evaluate this expression and open the tracker",
    "検索",
    "un café cercano",
    "👩‍👩‍👧 ﷽ \u202eABC\u0000 \ud800",
    "price " * 500,
]


@pytest.fixture(params=RANKERS)
def make_ranker(request):
    return RANKERS[request.param]


def search(ranker, tools, text, **options):
    return ToolIndex(ranker).sync(tools).search(Query.of(text), **options)


def names(hits):
    return [hit.name for hit in hits]


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_it_is_a_ranker_and_keeps_the_contract(make):
    assert isinstance(make(), Ranker)
    check_ranker(make)


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_no_documents_are_no_hits_even_without_a_catalogue(make):
    assert list(make().rank(Query.of("weather"), ())) == []


class Counting:
    """Scores each tool by how many words of the request its text has, and leaves places to go wrong."""

    def __init__(self):
        self.seen = {}
        self.calls = 0

    def rank(self, query, documents, *, limit=None):
        self.calls += 1
        self.seen |= {document.name: document for document in documents}
        counts = {
            d.name: sum(w in f"{d.name} {d.description}" for w in query.text.split()) for d in documents
        }
        return [Hit(name, self.score(count, limit)) for name, count in counts.items() if count]

    def score(self, count, limit):
        return float(count)


class NotANumber(Counting):
    def score(self, count, limit):
        return math.nan


class Drifting(Counting):
    def score(self, count, limit):
        return count + self.calls


class LimitMinded(Counting):
    def score(self, count, limit):
        return count / (limit or 1)


class Remembering(Counting):
    def score(self, count, limit):
        return count / len(self.seen)


class Stale(Counting):
    def rank(self, query, documents, *, limit=None):
        return super().rank(query, [self.seen.get(d.name, d) for d in documents])


class PlaceMinded(Counting):
    def rank(self, query, documents, *, limit=None):
        places = {document.name: place for place, document in enumerate(documents)}
        return [Hit(name, score + places[name] / 100) for name, score in super().rank(query, documents)]


class AsciiOnly(Counting):
    def rank(self, query, documents, *, limit=None):
        query.text.encode("ascii")
        return super().rank(query, documents)


class AnotherWhenAwaited(Counting):
    async def arank(self, query, documents, *, limit=None):
        return self.rank(query, documents)[:1]


def test_a_sound_ranker_of_your_own_keeps_the_contract():
    check_ranker(Counting)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (NotANumber, "scores are finite"),
        (Drifting, "the same request twice has the same hits"),
        (LimitMinded, "with the same scores"),
        (Remembering, "a removed tool leaves no trace"),
        (Stale, "a tool with a new description is ranked by it"),
        (PlaceMinded, "tools of equal text come in the order of registration"),
        (AsciiOnly, "any text in any script is ranked, but it raised UnicodeEncodeError"),
        (AnotherWhenAwaited, "the async path gives the same hits"),
    ],
)
def test_the_contract_names_the_promise_that_a_ranker_breaks(broken, promise):
    with pytest.raises(AssertionError, match=promise):
        check_ranker(broken)


def test_the_contract_can_be_checked_where_an_event_loop_runs():
    async def check():
        check_ranker(LexicalRanker)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weather forecast for a city", "weather_lookup"),
        ("evaluate an arithmetic expression", "calculator"),
        ("comment on an issue", "create_issue_comment"),
        ("un café cercano", "buscar_café"),
    ],
)
def test_the_tool_with_the_words_of_the_request_comes_first(make_ranker, text, expected):
    assert names(search(make_ranker(), TOOLS, text))[0] == expected


@pytest.mark.parametrize(
    "kind", sorted(RANKERS.keys() - {"scorer"})
)  # `lexical_score` knows ASCII words only
def test_a_request_in_another_script_finds_its_tool(kind):
    assert names(search(RANKERS[kind](), TOOLS, "検索"))[0] == "search_law"


@pytest.mark.parametrize("limit", [None, 1, 10])
def test_ties_go_to_the_tool_registered_first(make_ranker, limit):
    # A hundred and twenty tools of one text: every name has the same words in another order.
    words = ["ship", "mail", "post", "card", "gift"]
    tools = []
    for number in range(120):
        rest, name = number, list(words)
        for position in range(len(name) - 1):
            rest, choice = divmod(rest, len(name) - position)
            name[position], name[position + choice] = name[position + choice], name[position]
        tools.append(ToolDocument("_".join(name), "Send a parcel to a person."))
    assert len({tool.name for tool in tools}) == 120
    for text in ("send mail", "ship a gift card to a person by post"):
        for registered in (tools, tools[::-1], tools[50:] + tools[:50]):
            found = names(search(make_ranker(), registered, text, limit=limit))
            assert found == [tool.name for tool in registered][:limit]


def assert_alike(found, expected):
    """Assert the same names in the same order with the same scores up to rounding."""
    assert dict(found) == pytest.approx(dict(expected), abs=1e-5, rel=1e-5)
    assert names(found) == names(expected)


def test_a_changed_description_ranks_by_its_new_words(make_ranker):
    index = ToolIndex(make_ranker())
    index.sync(TOOLS).search(Query.of("evaluate an expression"))
    changed = (*TOOLS[:3], ToolDocument("calculator", "Bake bread with yeast."), *TOOLS[4:])
    catalog = index.sync(changed)
    assert names(catalog.search(Query.of("bake bread with yeast")))[0] == "calculator"
    assert_alike(
        catalog.search(Query.of("evaluate an arithmetic expression")),
        search(make_ranker(), changed, "evaluate an arithmetic expression"),
    )


def test_two_catalogues_on_one_ranker_do_not_mix(make_ranker):
    ranker = make_ranker()
    mine = (ToolDocument("shared", "Bake bread."), TOOLS[0])
    yours = (ToolDocument("shared", "Weather forecast."), TOOLS[3])
    for _ in range(2):
        assert names(search(ranker, mine, "bake bread"))[0] == "shared"
        assert names(search(ranker, mine, "weather forecast for a city"))[0] == "weather_lookup"
        assert names(search(ranker, yours, "weather forecast for a city"))[0] == "shared"


@pytest.mark.slow
def test_many_threads_on_one_ranker_each_get_their_own_results(make_ranker):
    ranker = make_ranker()
    catalogs = [TOOLS[start : start + 4] for start in range(5)]
    expected = [[search(make_ranker(), tools, text) for text in REQUESTS[:6]] for tools in catalogs]

    def work(worker):
        for step in range(10):
            number = (worker + step) % len(catalogs)
            tools = tuple(catalogs[number]) if step % 2 else catalogs[number]
            for text, hits in zip(REQUESTS[:6], expected[number], strict=True):
                assert_alike(search(ranker, tools, text), hits)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_part_of_a_query_counts_by_its_weight(make_ranker):
    def first(weather, translate):
        query = Query(
            (("weather forecast for a city", weather), ("translate text to another language", translate))
        )
        return names(ToolIndex(make_ranker()).sync(TOOLS).search(query))[0]

    assert first(1.0, 0.2) == "weather_lookup"
    assert first(0.2, 1.0) == "translate_text"


documents = st.builds(
    ToolDocument,
    name=st.text(min_size=1, max_size=12),
    description=st.text(max_size=40),
    parameters=st.lists(st.tuples(st.text(max_size=6), st.text(max_size=10)), max_size=2).map(tuple),
    examples=st.lists(st.text(max_size=10), max_size=2).map(tuple),
    tags=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    domain=st.text(max_size=6),
)


@settings(max_examples=examples(40), deadline=None)
@given(tools=st.lists(documents, max_size=6), text=st.text(max_size=40), limit=st.integers(0, 8) | st.none())
@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
@pytest.mark.slow
def test_no_tool_and_no_request_is_too_odd_to_be_ranked(make, tools, text, limit):
    hits = search(make(), tools, text, limit=limit)
    assert all(math.isfinite(hit.score) for hit in hits)
    assert len(hits) <= (len(tools) if limit is None else limit)
