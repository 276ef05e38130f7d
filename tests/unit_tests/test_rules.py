import re

import pytest

from langchain_tool_selection import (
    ARITHMETIC,
    Hit,
    LexicalRanker,
    Query,
    RuleRanker,
    ToolDocument,
    ToolIndex,
)

TOOLS = (
    ToolDocument("weather_lookup", "Get the weather forecast for a city."),
    ToolDocument("order_lookup", "Find an order by its number."),
    ToolDocument("order_status", "Say where an order is."),
    ToolDocument("calculator", "Evaluate an arithmetic expression."),
)
ORDER = r"order\s*#\d+"


def search(ranker, query, tools=TOOLS, **options):
    return (
        ToolIndex(ranker).sync(tools).search(Query.of(query) if isinstance(query, str) else query, **options)
    )


def names(hits):
    return [hit.name for hit in hits]


class Fixed:
    def __init__(self, *hits):
        self.hits = [Hit(*hit) for hit in hits]
        self.awaited = 0

    def rank(self, query, documents, *, limit=None):
        return self.hits

    async def arank(self, query, documents, *, limit=None):
        self.awaited += 1
        return self.hits


# -- sums


@pytest.mark.parametrize(
    "text",
    ["23 * 4", "(1.5 + 2) / 3 =", "2^10", "17 % 5?", " 7 ", "340 ÷ 12", "3 × 4 − 1 = ?", ".5+.5", "2 ** 3\n"],
)
def test_a_sum_is_arithmetic(text):
    assert ARITHMETIC.search(text)


@pytest.mark.parametrize(
    "text", ["", "+ - *", "= ?", "what is 2 + 2", "order #5", "2 + x", "= 4 + 4", "4 = 4 = 4", "1, 2, 3"]
)
def test_what_holds_anything_else_or_no_digit_is_no_arithmetic(text):
    assert not ARITHMETIC.search(text)


def test_a_long_paste_is_read_once():
    assert not ARITHMETIC.search("1" + " " * 1_000_000 + "x")
    assert not ARITHMETIC.search("(" * 1_000_000)


# -- what a rule matches


@pytest.mark.parametrize(
    "pattern", [ORDER, re.compile(ORDER), lambda text: "#" in text], ids=["text", "compiled", "function"]
)
def test_a_rule_is_a_regular_expression_anywhere_in_the_text_or_a_function_of_it(pattern):
    for rules in (
        {pattern: "order_lookup"},
        [(pattern, "order_lookup")],
        iter([(pattern, ["order_lookup"])]),
    ):
        ranker = RuleRanker(rules)
        assert search(ranker, "status of order #445566") == [Hit("order_lookup", 1.0)]
        assert search(ranker, "status of my order") == []


def test_a_pattern_given_as_text_disregards_case_and_a_compiled_one_decides_for_itself():
    assert names(search(RuleRanker({ORDER: "order_lookup"}), "ORDER #1")) == ["order_lookup"]
    assert search(RuleRanker({re.compile(ORDER): "order_lookup"}), "ORDER #1") == []


def test_only_the_newest_text_is_matched():
    ranker = RuleRanker({ORDER: "order_lookup"})
    assert search(ranker, Query((("thanks", 1.0), ("order #1", 0.5)))) == []
    assert names(search(ranker, Query((("order #1", 1.0), ("thanks", 0.5))))) == ["order_lookup"]


# -- order and scores


def test_the_tool_of_a_rule_comes_before_all_that_the_other_ranker_finds():
    words = search(LexicalRanker(), "where is order #1, by its status")
    hits = search(RuleRanker({ORDER: "calculator"}, LexicalRanker()), "where is order #1, by its status")
    assert names(hits) == ["calculator", *names(words)]
    assert hits[0].score == words[0].score + 1
    assert hits[1:] == words


def test_a_tool_that_both_find_comes_once():
    hits = search(RuleRanker({ORDER: "order_lookup"}, LexicalRanker()), "weather and order #1")
    assert sorted(names(hits)) == ["order_lookup", "order_status", "weather_lookup"]
    assert hits[0].name == "order_lookup"


def test_earlier_rules_and_earlier_names_come_first():
    rules = [("order", ["order_status", "order_lookup"]), ("#", "calculator"), (ORDER, "order_status")]
    assert search(RuleRanker(rules), "order #1") == [
        Hit("order_status", 3.0),
        Hit("order_lookup", 2.0),
        Hit("calculator", 1.0),
    ]


def test_a_rule_is_ahead_of_scores_below_zero_too():
    hits = search(RuleRanker({"x": "calculator"}, Fixed(("order_lookup", -0.3), ("order_status", -7.0))), "x")
    assert hits == [Hit("calculator", 0.7), Hit("order_lookup", -0.3), Hit("order_status", -7.0)]


@pytest.mark.parametrize("text", ["weather and order #1", "weather", "nothing of this"])
@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_a_limit_gives_the_beginning_of_the_whole_list(text, limit):
    ranker = RuleRanker({ORDER: "calculator"}, LexicalRanker())
    assert search(ranker, text, limit=limit) == search(ranker, text)[:limit]


def test_a_rule_whose_tool_is_missing_waits_for_it():
    ranker = RuleRanker({ORDER: ["gone", "order_lookup"]})
    assert names(search(ranker, "order #1")) == ["order_lookup"]
    assert search(ranker, "order #1", TOOLS[:1]) == []
    assert names(search(ranker, "order #1", [*TOOLS, ToolDocument("gone")])) == ["gone", "order_lookup"]


def test_without_rules_the_other_ranker_is_left_alone():
    assert search(RuleRanker({}, LexicalRanker()), "weather") == search(LexicalRanker(), "weather")
    assert search(RuleRanker([]), "weather") == []


async def test_the_other_ranker_is_awaited_where_it_can_be():
    then = Fixed(("weather_lookup", 1.0))
    ranker = RuleRanker({"x": "calculator"}, then)
    awaited = await ToolIndex(ranker).sync(TOOLS).asearch(Query.of("x"))
    assert awaited == search(ranker, "x") == [Hit("calculator", 2.0), Hit("weather_lookup", 1.0)]
    assert then.awaited == 1


# -- mistakes


def test_a_bad_regular_expression_is_an_error_that_names_the_rule():
    with pytest.raises(ValueError, match=r"rule 'order\('.*re\.escape"):
        RuleRanker({"fine": "a", "order(": "order_lookup"})


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([(5, "a")], "rule 5 must be a callable"),
        ([(re.compile(b"x"), "a")], "must be a callable that takes the text of a request, or a regular exp"),
        ({"x": 5}, "rule 'x' must give names of tools, got 5 of type int"),
        ({"x": ["a", None]}, "rule 'x' must give names of tools, got None of type NoneType"),
    ],
)
def test_a_rule_of_another_kind_is_an_error_that_names_it(rules, message):
    with pytest.raises(TypeError, match=message):
        RuleRanker(rules)


def test_a_coroutine_function_is_no_rule():
    async def later(text):
        return True

    with pytest.raises(TypeError, match="coroutine function"):
        RuleRanker({later: "a"})


def test_a_rule_without_a_tool_is_an_error():
    with pytest.raises(ValueError, match="rule 'x' names no tool"):
        RuleRanker({"x": []})


def test_what_a_function_raises_reaches_the_caller():
    def broken(text):
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError, match="hello"):
        search(RuleRanker({broken: "calculator"}), "hello")
