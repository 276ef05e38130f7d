"""An explanation adds up to the score, and says what a tool lacks."""

from __future__ import annotations

import pytest

from langchain_tool_selection import Hit, LexicalRanker, Query, ToolDocument, ToolIndex
from langchain_tool_selection.evals import Case, explain

TOOLS = [
    ToolDocument("create_issue", "Open an issue in a repository.", (("title", "Title of the issue."),)),
    ToolDocument("close_issue", "Close an issue."),
    ToolDocument("search", "Look for pages.", examples=("find the handbook",), tags=("wiki",)),
]


def test_the_shares_of_the_words_add_up_to_the_score():
    found = explain("repository pages", "create_issue", TOOLS)
    assert found.other == 0
    assert found.score == pytest.approx(sum(word.score for word in found.words), rel=1e-5)
    hits = dict(ToolIndex().sync(TOOLS).search(Query.of("repository pages")))
    assert found.score == pytest.approx(hits["create_issue"])


@pytest.mark.parametrize(
    "query", ["create issue", "open an isssue with a title", "wiki pages", "register it"]
)
def test_with_what_is_beside_the_words_it_is_the_score_of_the_search(query):
    catalog = ToolIndex().sync(TOOLS)
    for rank, hit in enumerate(catalog.search(Query.of(query)), 1):
        found = explain(query, hit.name, TOOLS)
        assert found.rank == rank
        assert found.score == pytest.approx(hit.score)
        assert found.score == pytest.approx(sum(word.score for word in found.words) + found.other, rel=1e-4)
        for word in found.words:
            assert sum(word.fields.values()) == pytest.approx(1)


def test_each_field_has_its_share():
    found = explain("title of an issue", "create_issue", TOOLS)
    fields = {word.word: set(word.fields) for word in found.words}
    assert fields["issue"] == {"name", "description", "parameter_descriptions"}
    assert fields["title"] == {"parameter_names", "parameter_descriptions"}
    found = explain("the wiki handbook", "search", TOOLS)
    assert {word.word: set(word.fields) for word in found.words} == {
        "wiki": {"tags"},
        "handbook": {"examples"},
    }


def test_how_a_word_was_found_is_told():
    found = explain("register an isssue and its titles", "create_issue", TOOLS)
    assert {word.word: (word.how, word.found) for word in found.words} == {
        "register": ("near-synonym", "creat"),
        "isssue": ("spelling", "issu"),
        "titles": ("word", "titl"),
    }


def test_what_a_tool_lacks_is_told_from_what_no_tool_has():
    found = explain("close the umbrella", "create_issue", TOOLS)
    assert (found.rank, found.score) == (None, 0)
    assert (found.lacking, found.unknown) == (("close",), ("umbrella",))
    assert str(found) == "create_issue: no match\n  lacks: close\n  in no tool: umbrella"


def test_words_of_earlier_messages_are_marked_and_not_missed():
    history = ({"role": "user", "content": "an issue about umbrellas"},)
    found = explain(Case("close it", ("close_issue",), history).search_query(), "close_issue", TOOLS)
    assert {word.word: word.earlier for word in found.words} == {"close": False, "issue": True}
    assert found.unknown == ()
    assert "issue (name" in str(found)
    assert "; earlier message)" in str(found)


def test_another_ranker_keeps_its_rank_and_score_and_gets_the_words():
    class Last:
        def rank(self, query, documents, *, limit=None):
            return [Hit("search", 7.0), Hit("create_issue", 3.0)]

    found = explain("open an issue", "create_issue", TOOLS, ranker=Last())
    assert (found.rank, found.score, found.other) == (2, 3.0, 0.0)
    assert {word.word for word in found.words} == {"open", "issue"}


def test_explaining_changes_no_ranking():
    ranker, documents = LexicalRanker(), tuple(TOOLS)
    before = ranker.rank(Query.of("open an issue"), documents)
    ranker.explain(Query.of("open an isssue"), documents, ["search", "close_issue"])
    assert ranker.rank(Query.of("open an issue"), documents) == before


def test_a_tool_that_is_not_there_is_a_key_error():
    with pytest.raises(KeyError, match="nothing"):
        explain("open", "nothing", TOOLS)
