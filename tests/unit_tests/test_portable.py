from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool

from langchain_tool_selection.portable import Tool, discover, lexical_score, select_tools

WEATHER = Tool("weather_lookup", "Get the weather forecast for a city.")
STOCK = Tool("stock_price", "Get the price of a stock.")
TRANSLATE = Tool("translate_text", "Translate text to another language.")
CALCULATOR = Tool("calculator", "Evaluate a basic arithmetic expression.")
TOOLS = [WEATHER, STOCK, TRANSLATE, CALCULATOR]
NAMES = [tool.name for tool in TOOLS]


def _langchain_tool(name, description):
    return StructuredTool.from_function(lambda: "", name=name, description=description)


SHAPES = {
    "Tool": Tool,
    "LangChain": _langchain_tool,
    "MCP": lambda name, text: SimpleNamespace(name=name, description=text, inputSchema={"type": "object"}),
    "OpenAI": lambda name, text: {"type": "function", "function": {"name": name, "description": text}},
    "Anthropic": lambda name, text: {"name": name, "description": text, "input_schema": {}},
}


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


# -- lexical_score


def test_lexical_score_is_the_share_of_common_words_among_all_words():
    # {"get", "rate", "of", "x"} and {"get", "y"}: one word of five.
    assert lexical_score(Tool("get_rate", "Rate of X."), {"get", "y"}) == pytest.approx(1 / 5)


def test_lexical_score_is_zero_where_either_side_has_no_words():
    assert lexical_score(Tool("…", ""), {"get"}) == 0.0
    assert lexical_score(WEATHER, frozenset()) == 0.0
    assert lexical_score(Tool("…", ""), frozenset()) == 0.0


@given(st.text(), st.text(), st.sets(st.text()))
def test_lexical_score_is_always_between_zero_and_one(name, description, tokens):
    assert 0.0 <= lexical_score(Tool(name or "x", description), tokens) <= 1.0


# -- select_tools


def test_the_best_tool_is_chosen_from_any_shape_of_tool(shape):
    tools = [shape(tool.name, tool.description) for tool in TOOLS]
    assert select_tools(tools, "translate hello to French", top_k=1) == ["translate_text"]


def test_the_choice_is_in_registration_order_not_in_score_order():
    chosen = select_tools(TOOLS, "evaluate this arithmetic expression, then the price", top_k=2)
    assert chosen == ["stock_price", "calculator"]


def test_everything_is_shown_when_there_are_no_more_tools_than_top_k():
    assert select_tools(TOOLS, "weather", top_k=4) == NAMES
    assert select_tools(TOOLS, "", top_k=99) == NAMES
    assert select_tools([], "weather", top_k=0) == []


def test_kept_names_do_not_count_against_top_k():
    chosen = select_tools(
        TOOLS, "translate to another language", top_k=1, always_include=["calculator"], pinned={"stock_price"}
    )
    assert chosen == ["stock_price", "translate_text", "calculator"]


def test_a_kept_tool_that_also_scores_best_leaves_its_place_to_the_next_one():
    chosen = select_tools(TOOLS, "get weather price", top_k=1, pinned=["weather_lookup"])
    assert chosen == ["weather_lookup", "stock_price"]


def test_top_k_zero_shows_only_what_is_kept():
    assert select_tools(TOOLS, "weather", top_k=0, pinned=["calculator"]) == ["calculator"]


def test_kept_names_of_no_tool_are_ignored():
    assert select_tools(TOOLS, "weather", top_k=1, always_include=["gone"], pinned=["gone too"]) == [
        "weather_lookup"
    ]


def test_ties_go_to_the_tool_registered_first():
    assert select_tools(TOOLS, "xyzzy", top_k=2) == ["weather_lookup", "stock_price"]
    assert select_tools(TOOLS[::-1], "xyzzy", top_k=2) == ["calculator", "translate_text"]


def test_of_two_tools_with_one_name_the_first_counts():
    first, second = Tool("search", "Search documents."), Tool("search", "Search tickets.")
    assert select_tools([first, second, CALCULATOR], "tickets", top_k=2) == ["search", "calculator"]
    assert discover([first, second], "documents") == first
    assert discover([first, second], "tickets") is None


def test_a_scorer_of_your_own_decides():
    by_length = lambda tool, tokens: -len(tool.description)  # noqa: E731
    assert select_tools(TOOLS, "weather", top_k=1, scorer=by_length) == ["stock_price"]


def test_a_scorer_gets_a_tool_with_name_and_description_and_the_tokens_of_the_request(shape):
    seen = []
    select_tools(
        [shape("a", "First."), shape("b", "Second.")],
        "Hello, hello WORLD-2!",
        top_k=1,
        scorer=lambda tool, tokens: seen.append((tool.name, tool.description, set(tokens))) or 0,
    )
    assert seen == [("a", "First.", {"hello", "world", "2"}), ("b", "Second.", {"hello", "world", "2"})]


@given(
    names=st.lists(st.text(min_size=1, max_size=3), max_size=8),
    query=st.text(max_size=20),
    top_k=st.integers(0, 9),
    kept=st.sets(st.text(max_size=3), max_size=3),
)
def test_any_choice_is_a_part_of_the_registration_order_with_everything_that_is_kept(
    names, query, top_k, kept
):
    registered = list(dict.fromkeys(names))
    chosen = select_tools([Tool(name) for name in names], query, top_k=top_k, always_include=kept)
    assert chosen == [name for name in registered if name in set(chosen)]
    assert kept & set(registered) <= set(chosen)
    kept_here = kept & set(registered)
    expected = len(registered) if len(registered) <= top_k else None
    assert len(chosen) == (expected or min(len(registered), len(kept_here) + top_k))


# -- discover


def test_discover_gives_back_the_best_tool_as_a_tool(shape):
    tools = [shape(tool.name, tool.description) for tool in TOOLS]
    assert discover(tools, "evaluate an arithmetic expression") == CALCULATOR


def test_discover_gives_back_the_first_registered_of_equals():
    assert discover([Tool("mail_send"), Tool("send_mail")], "send mail") == Tool("mail_send")


@pytest.mark.parametrize("query", ["", "xyzzy", "天気"])
def test_discover_finds_nothing_when_nothing_scores_above_zero(query):
    assert discover(TOOLS, query) is None


def test_discover_finds_nothing_where_a_scorer_gives_only_negative_scores():
    assert discover(TOOLS, "weather", scorer=lambda tool, tokens: -1.0) is None


def test_discover_finds_nothing_among_no_tools():
    assert discover([], "weather") is None


# -- bad input


@pytest.mark.parametrize(
    "score",
    [float("nan"), float("inf"), None, "high", 10**400],
    ids=["NaN", "infinite", "None", "a word", "too large"],
)
@pytest.mark.parametrize(
    "choose",
    [partial(select_tools, TOOLS, "x", top_k=1), partial(discover, TOOLS, "x")],
    ids=["select_tools", "discover"],
)
def test_a_score_that_is_no_finite_number_is_an_error_that_names_the_tool(choose, score):
    with pytest.raises(ValueError, match=r"'stock_price'.*finite number"):
        choose(scorer=lambda tool, tokens: score if tool.name == "stock_price" else 1.0)


def test_what_a_scorer_raises_reaches_the_caller_unchanged():
    def scorer(tool, tokens):
        raise ConnectionError("no service")

    with pytest.raises(ConnectionError, match="no service"):
        select_tools(TOOLS, "weather", top_k=1, scorer=scorer)
    with pytest.raises(ConnectionError, match="no service"):
        discover(TOOLS, "weather", scorer=scorer)


def test_a_negative_top_k_is_an_error():
    with pytest.raises(ValueError, match="top_k must be 0 or more, got -1"):
        select_tools(TOOLS, "weather", top_k=-1)


@pytest.mark.parametrize("top_k", ["3", True, 1.5, None])
def test_a_top_k_that_is_no_integer_is_an_error(top_k):
    with pytest.raises(TypeError, match="top_k must be an integer"):
        select_tools(TOOLS, "weather", top_k=top_k)


@pytest.mark.parametrize("setting", ["always_include", "pinned"])
@pytest.mark.parametrize(("names", "culprit"), [("calculator", "'calculator'"), (["a", 7], "7"), (5, "int")])
def test_names_that_are_no_collection_of_strings_are_an_error_that_shows_the_culprit(setting, names, culprit):
    with pytest.raises(TypeError, match=f"{setting} takes .*{culprit}"):
        select_tools(TOOLS, "weather", top_k=1, **{setting: names})


@pytest.mark.parametrize("tool", [{}, {"name": ""}, {"type": "web_search"}, object(), "calculator", None])
def test_a_tool_without_a_name_is_an_error_that_says_what_a_tool_looks_like(tool):
    with pytest.raises(TypeError, match="needs a non-empty string as its name"):
        select_tools([*TOOLS, tool], "weather", top_k=1)


def test_a_description_that_is_no_string_counts_as_none():
    assert discover([{"name": "weather", "description": None}, {"name": "x", "description": 5}], "5") is None
