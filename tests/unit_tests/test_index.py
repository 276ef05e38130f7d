import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.tools import StructuredTool

from langchain_tool_selection import Hit, LexicalRanker, Query, ToolDocument, ToolIndex

WEATHER = ToolDocument("weather_lookup", "Get the weather forecast for a city.")
STOCK = ToolDocument("stock_price", "Get the price of a stock.")
CALCULATOR = ToolDocument("calculator", "Evaluate a basic arithmetic expression.")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [WEATHER, STOCK, CALCULATOR]


def langchain_tool(name, description):
    return StructuredTool.from_function(
        lambda city: "", name=name, description=description, args_schema=SCHEMA
    )


def names(hits):
    return [hit.name for hit in hits]


class Fixed:
    """A ranker that answers the same whatever it is asked, and remembers what it was asked."""

    def __init__(self, *hits):
        self.hits = hits
        self.asked = []

    def rank(self, query, documents, *, limit=None):
        self.asked.append((query, documents, limit))
        return [Hit(*hit) for hit in self.hits]


# -- sync


def test_a_catalogue_holds_the_documents_in_registration_order():
    catalog = ToolIndex().sync(TOOLS)
    assert catalog.documents == tuple(TOOLS)
    assert catalog.names == {"weather_lookup": 0, "stock_price": 1, "calculator": 2}
    assert catalog.document("stock_price") is STOCK
    with pytest.raises(KeyError):
        catalog.document("gone")


def test_another_order_of_the_same_tools_is_another_catalogue():
    index = ToolIndex()
    first = index.sync(TOOLS)
    second = index.sync(TOOLS[::-1])
    assert second.fingerprint != first.fingerprint


def test_the_same_tools_give_the_same_catalogue():
    index = ToolIndex()
    tools = [langchain_tool(f"t{i}", "x") for i in range(3)]
    first = index.sync(tools)
    assert index.sync(tools) is first
    assert index.sync(tool.model_copy(update={"extras": {"cache_control": {}}}) for tool in tools) is first


def test_catalogues_that_take_turns_are_found_again():
    index = ToolIndex()
    first, second = index.sync(TOOLS), index.sync(TOOLS[:1])
    assert index.sync(TOOLS) is first
    assert index.sync(TOOLS[:1]) is second


def test_a_catalogue_in_use_outlives_a_hundred_others():
    index = ToolIndex()
    first = index.sync(TOOLS)
    for number in range(100):
        index.sync([ToolDocument(f"t{number}")])
        assert index.sync(TOOLS) is first
    assert index.catalog(first.fingerprint) is first


def test_of_two_tools_with_one_name_the_first_counts():
    index = ToolIndex()
    catalog = index.sync([STOCK, ToolDocument("stock_price", "Get the weather.")])
    assert catalog.documents == (STOCK,)
    assert catalog.search(Query.of("weather")) == []


def test_a_catalogue_is_known_by_its_fingerprint():
    index = ToolIndex()
    catalog = index.sync(TOOLS)
    assert index.catalog(catalog.fingerprint) is catalog
    assert ToolIndex().sync(TOOLS).fingerprint == catalog.fingerprint
    assert index.catalog("0" * 16) is None


def test_a_tool_without_a_name_is_an_error():
    with pytest.raises(TypeError, match="name"):
        ToolIndex().sync([{"type": "web_search"}])


def test_a_tool_that_changes_in_place_is_read_again():
    index = ToolIndex()
    tool = langchain_tool("t", "Old words.")
    index.sync([tool])
    tool.description = "Weather."
    assert names(index.sync([tool]).search(Query.of("weather"))) == ["t"]


def test_a_catalogue_keeps_the_tools_it_was_made_of_when_the_index_moves_on():
    index = ToolIndex()
    before = index.sync(TOOLS)
    index.sync(TOOLS[1:])
    assert names(before.search(Query.of("weather forecast"))) == ["weather_lookup"]


def test_many_threads_each_get_the_catalogue_of_their_own_tools():
    index = ToolIndex()

    def work(worker):
        for step in range(30):
            tools = [
                langchain_tool("shared", f"Word{worker}x{step % 3}."),
                ToolDocument(f"own{worker}", "Weather."),
            ]
            catalog = index.sync(tools)
            assert list(catalog.names) == ["shared", f"own{worker}"]
            assert names(catalog.search(Query.of(f"word{worker}x{step % 3}"))) == ["shared"]
            assert names(catalog.search(Query.of("weather"))) == [f"own{worker}"]
        return True

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(work, range(12)))


# -- search


async def test_a_text_is_searched_for_like_a_query_of_that_text():
    catalog = ToolIndex().sync(TOOLS)
    hits = catalog.search(Query.of("weather forecast"))
    assert names(hits) == ["weather_lookup"]
    assert catalog.search("weather forecast") == await catalog.asearch("weather forecast") == hits
    assert catalog.search(" ") == []
    with pytest.raises(TypeError, match="a search takes a Query or a string, got int"):
        catalog.search(3)


def test_hits_come_best_first_and_ties_in_registration_order():
    ranker = Fixed(("calculator", 1.0), ("stock_price", 2.0), ("weather_lookup", 1.0))
    catalog = ToolIndex(ranker).sync(TOOLS)
    assert names(catalog.search(Query.of("x"))) == ["stock_price", "weather_lookup", "calculator"]


def test_a_limit_counts_only_tools_that_are_allowed():
    catalog = ToolIndex().sync([ToolDocument(f"mail_{i}", "mail") for i in range(6)])
    hits = catalog.search(Query.of("mail"), allowed={"mail_4", "mail_5"}, limit=2)
    assert names(hits) == ["mail_4", "mail_5"]


def test_allowed_is_a_mask_that_changes_nobodys_score():
    catalog = ToolIndex().sync(TOOLS)
    query = Query.of("get the price of weather")
    everything = dict(catalog.search(query))
    assert set(everything) == {"weather_lookup", "stock_price"}
    allowed = catalog.search(query, allowed={"weather_lookup", "calculator"})
    assert dict(allowed) == {"weather_lookup": everything["weather_lookup"]}
    assert catalog.search(query, allowed=()) == []


def test_names_that_a_ranker_made_up_are_dropped():
    catalog = ToolIndex(Fixed(("hallucinated", 9.0), ("calculator", 1.0))).sync(TOOLS)
    assert catalog.search(Query.of("x")) == [Hit("calculator", 1.0)]


def test_a_name_that_a_ranker_gives_twice_comes_once():
    catalog = ToolIndex(Fixed(("calculator", 1.0), ("calculator", 1.0))).sync(TOOLS)
    assert names(catalog.search(Query.of("x"))) == ["calculator"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
async def test_a_score_that_is_not_finite_is_an_error_that_names_the_tool_and_the_ranker(score):
    catalog = ToolIndex(Fixed(("calculator", 1.0), ("stock_price", score))).sync(TOOLS)
    with pytest.raises(ValueError, match="Fixed scored tool 'stock_price'"):
        catalog.search(Query.of("x"))
    with pytest.raises(ValueError, match="Fixed scored tool 'stock_price'"):
        await catalog.asearch(Query.of("x"))


def test_what_a_ranker_raises_reaches_the_caller():
    class Down:
        def rank(self, query, documents, *, limit=None):
            raise ConnectionError("no service")

    with pytest.raises(ConnectionError, match="no service"):
        ToolIndex(Down()).sync(TOOLS).search(Query.of("x"))


def test_a_ranker_is_not_asked_about_nothing():
    ranker = Fixed()
    index = ToolIndex(ranker)
    assert index.sync(TOOLS).search(Query()) == []
    assert index.sync(TOOLS).search(Query.of(" \n")) == []
    assert index.sync([]).search(Query.of("x")) == []
    assert ranker.asked == []


def test_a_ranker_sees_the_same_tuple_for_as_long_as_nothing_changes():
    ranker = Fixed()
    index = ToolIndex(ranker)
    index.sync(list(TOOLS)).search(Query.of("x"))
    index.sync(list(TOOLS)).search(Query.of("y"))
    assert ranker.asked[0][1] is ranker.asked[1][1]


async def test_a_ranker_that_can_be_awaited_is_awaited_on_the_async_path_only():
    class Both(Fixed):
        async def arank(self, query, documents, *, limit=None):
            await asyncio.sleep(0)
            return [Hit("calculator", 2.0)]

    catalog = ToolIndex(Both(("stock_price", 1.0))).sync(TOOLS)
    assert names(catalog.search(Query.of("x"))) == ["stock_price"]
    assert names(await catalog.asearch(Query.of("x"))) == ["calculator"]
    assert await catalog.asearch(Query.of("x"), allowed=["stock_price"]) == []


# -- changing tools under one index


def test_a_changed_description_ranks_by_its_new_words():
    index = ToolIndex(LexicalRanker())
    index.sync(TOOLS).search(Query.of("expression"))
    catalog = index.sync([WEATHER, STOCK, ToolDocument("calculator", "Translate text.")])
    assert names(catalog.search(Query.of("translate"))) == ["calculator"]
    assert catalog.search(Query.of("expression")) == []


def test_a_removed_tool_leaves_no_trace():
    index = ToolIndex()
    index.sync(TOOLS).search(Query.of("price"))
    catalog = index.sync([WEATHER, CALCULATOR])
    fresh = ToolIndex().sync([WEATHER, CALCULATOR])
    assert catalog.search(Query.of("price of a stock")) == []
    for words in ("get the weather", "evaluate", "city"):
        assert catalog.search(Query.of(words)) == fresh.search(Query.of(words))
