import pytest
from grouped import grouped
from langchain_core.tools import tool

from langchain_tool_selection import Discovery, Hit, LexicalRanker, ToolSelectionMiddleware, lexical_score


def construct(**settings):
    return ToolSelectionMiddleware(**grouped(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"top_k": 0},
        {"top_k": 15, "always_include": ["a", "b"]},
        {"always_include": frozenset()},
        {"always_include": {"a": 1}.keys()},
        {"min_score": 0},
        {"min_score": -1.5},
        {"keep_used": None},
        {"keep_used": 0},
        {"on_no_match": "fill"},
        {"max_pins": 1},
        {"activate_above": 40},
        {"exposure": "per_turn"},
        {"discovery": None},
        {"discovery": Discovery(name="find_tools", description="Find.", max_results=1)},
        {"ranker": LexicalRanker()},
        {"ranker": lexical_score},
        {"query": lambda request: "text"},
    ],
    ids=lambda settings: " ".join(settings) or "none",
)
def test_every_documented_setting_is_taken(settings):
    construct(**settings)


def test_an_unknown_setting_is_an_error_that_names_it():
    with pytest.raises(TypeError, match="topk"):
        construct(topk=5)


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"top_k": -1}, "top_k must be 0 or more, got -1"),
        ({"keep_used": -1}, "keep_used must be 0 or more, got -1"),
        ({"activate_above": -1}, "activate_above must be 0 or more, got -1"),
        ({"activate_above": 14}, "activate_above must be top_k=15 or more, got 14"),
        ({"max_pins": 0}, "max_pins must be 1 or more, got 0"),
        (
            {"exposure": "all_at_once"},
            "exposure must be one of 'auto', 'per_turn', 'grow', 'append', 'proxy', 'stubs', got 'all_at_once'",
        ),
        ({"exposure": None}, "exposure must be one of .*None"),
        ({"on_no_match": "panic"}, "on_no_match must be one of 'previous', 'fill', got 'panic'"),
        ({"min_score": float("nan")}, "min_score"),
    ],
    ids=str,
)
def test_a_value_that_is_not_possible_is_a_value_error_that_names_it_and_what_is(settings, culprit):
    with pytest.raises(ValueError, match=culprit):
        construct(**settings)


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"top_k": "15"}, "top_k must be an integer, got '15'"),
        ({"top_k": True}, "top_k must be an integer, got True"),
        ({"top_k": None}, "top_k must be an integer, got None"),
        ({"top_k": 1.0}, "top_k must be an integer, got 1.0"),
        ({"always_include": "calculator"}, r"always_include .*'calculator'; write \['calculator'\]"),
        ({"always_include": None}, "always_include takes a collection of tool names, got NoneType"),
        ({"always_include": ["a", 7]}, "always_include takes tool names as strings, got 7"),
        ({"keep_used": True}, "keep_used must be an integer or None, got True"),
        ({"keep_used": "1"}, "keep_used must be an integer or None, got '1'"),
        ({"activate_above": 1.5}, "activate_above must be an integer or None, got 1.5"),
        ({"max_pins": None}, "max_pins must be an integer, got None"),
        ({"max_pins": False}, "max_pins must be an integer, got False"),
        ({"min_score": "0.5"}, "min_score must be a number or None, got '0.5'"),
        ({"min_score": True}, "min_score must be a number or None, got True"),
        ({"query": "weather"}, "query must be a callable .*got str"),
        ({"discovery": True}, r"discovery takes Discovery\(...\) or None, got True"),
        ({"discovery": Discovery}, r"discovery takes Discovery\(...\) or None"),
        ({"ranker": LexicalRanker}, r"ranker takes an instance, got the class LexicalRanker; write LexicalRanker\(\)"),
        ({"ranker": "bm25"}, "ranker takes a Ranker, LangChain Embeddings or a scorer .*got str"),
        ({"ranker": 5}, "ranker takes a Ranker, LangChain Embeddings or a scorer .*got int"),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_a_type_error_that_names_it_and_what_is_taken(settings, culprit):
    with pytest.raises(TypeError, match=culprit):
        construct(**settings)


def test_a_tool_instead_of_its_name_in_always_include_is_an_error_that_asks_for_the_name():
    @tool
    def calculator(expression: str) -> str:
        """Evaluate."""
        return expression

    with pytest.raises(TypeError, match="always_include takes tool names as strings"):
        construct(always_include=[calculator])


def test_an_object_with_a_rank_method_is_a_ranker():
    class Mine:
        def rank(self, query, documents, *, limit=None):
            return [Hit(document.name, 1.0) for document in documents]

    construct(ranker=Mine())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", None),
        ("name", 5),
        ("description", ""),
        ("description", None),
        ("max_results", 0),
        ("max_results", True),
        ("max_results", "5"),
        ("max_results", None),
    ],
)
def test_a_bad_field_of_discovery_is_an_error_that_names_field_and_value(field, value):
    with pytest.raises((TypeError, ValueError), match=f"Discovery.{field} must be .*got {value!r}"):
        Discovery(**{field: value})


def test_the_search_tool_has_the_name_and_description_of_its_settings():
    middleware = construct(discovery=Discovery(name="find_tools", description="Find more."))
    assert [(tool.name, tool.description) for tool in middleware.tools] == [("find_tools", "Find more.")]
    assert construct().tools[0].name == "discover_tools"
    assert construct(discovery=None).tools == []


def test_two_instances_share_nothing_through_their_defaults():
    first, second = construct(), construct()
    assert first.tools[0] is not second.tools[0]


def test_the_two_settings_that_most_people_write_may_be_positional():
    assert ToolSelectionMiddleware(5, ["a"]).tools[0].name == "discover_tools"
    with pytest.raises(TypeError):
        ToolSelectionMiddleware(5, ["a"], None)
