"""What an evaluation measures, what it says about misses, and what a comparison finds."""

from __future__ import annotations

import json

import pytest

from langchain_tool_selection import Hit, LexicalRanker, ToolHints
from langchain_tool_selection.evals import Case, FileError, Report, evaluate, read_tools

TOOLS = [
    {"name": name, "description": "x" * size, "domain": domain}
    for name, size, domain in [("a", 10, "one"), ("b", 10, "one"), ("c", 10, "two"), ("d", 1000, "two")]
]


class Fixed:
    """Ranks as it is told: the request is the ranking."""

    def rank(self, query, documents, *, limit=None):
        return [Hit(name, -float(place)) for place, name in enumerate(query.text.split())]


def measured(*cases: Case, **settings) -> Report:
    return evaluate(TOOLS, cases, Fixed(), **{"ks": (1, 2), "top_k": 3, **settings})


def test_the_measures_are_those_of_the_textbook():
    report = measured(Case("a b c d", ("a",)), Case("b c a", ("a", "c")), Case("d", ("a",)))
    assert report.recall == {1: pytest.approx(1 / 3), 2: pytest.approx((1 + 0.5 + 0) / 3)}
    assert report.complete == {1: pytest.approx(1 / 3), 2: pytest.approx(1 / 3)}
    assert report.mrr == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert report.at(3).recall == pytest.approx(2 / 3)
    with pytest.raises(KeyError):
        report.at(4)


def test_an_alternative_counts_as_the_tool_itself():
    report = measured(Case("b a", ("a",), alternatives={"a": ("b",)}))
    assert report.recall[1] == report.mrr == 1
    assert report.confusions == ()


def test_payload_saved_is_what_the_first_k_do_without():
    sizes = read_tools(TOOLS).characters
    report = measured(Case("a d", ("a",)), Case("b", ("b",)))
    whole = sum(sizes.values())
    assert report.payload_saved[1] == pytest.approx(1 - sizes["a"] / whole)
    assert report.payload_saved[2] == pytest.approx(1 - (sizes["a"] * 2 + sizes["d"]) / 2 / whole)
    assert report.heaviest[0][0] == "d"


def test_a_miss_names_its_rank_and_what_beat_it():
    report = measured(Case("b c a d", ("a",)), Case("d b", ("c", "b")))
    first, second = report.misses
    assert (first.case, first.tool, first.rank, first.beaten_by) == (1, "a", 3, ("b", "c"))
    assert (second.case, second.tool, second.rank, second.beaten_by) == (2, "c", None, ("d",))


def test_a_report_names_for_each_tool_who_takes_its_requests():
    report = measured(Case("b a", ("a",)), Case("b c a", ("a",)), Case("c a", ("a",)), Case("a b", ("a",)))
    assert report.thieves == {"a": {"b": 2, "c": 1}}
    assert [(row.thief, row.times, row.missed) for row in report.confusions] == [("b", 2, 1), ("c", 1, 0)]
    assert report.domain_confusions == {("one", "one"): 3, ("one", "two"): 1}
    assert [(row.domain, row.labels, row.recall) for row in report.domains] == [("one", 4, 0.75)]


def test_tools_without_domains_have_no_recall_by_domain():
    report = evaluate([{"name": "a", "description": "open"}], [Case("open", ("a",))])
    assert report.domains == ()


def test_the_words_that_were_missing_are_named():
    tools = [
        {"name": "make_refund", "description": "Give a payment back."},
        {"name": "send_mail", "description": "Send a mail about cheese."},
    ]
    (miss,) = evaluate(tools, [Case("send me my dough cheese", ("make_refund",))], ks=(1,)).misses
    assert miss.why == "matches no word; send_mail has send, cheese; no tool has dough"


def test_a_comparison_names_what_was_stolen_or_won_and_by_which_tool():
    old = evaluate(TOOLS, [Case("a b", ("a",)), Case("c d", ("d",)), Case("b", ("b",))], Fixed(), ks=(1,))

    class Changed(Fixed):
        def rank(self, query, documents, *, limit=None):
            order = {"a b": "c a b", "c d": "d c"}.get(query.text, query.text)
            return [Hit(name, -float(place)) for place, name in enumerate(order.split())]

    cases = [Case("a b", ("a",)), Case("c d", ("d",)), Case("c", ("c",))]
    comparison = evaluate(TOOLS, cases, Changed(), ks=(1, 2)).compare(old)
    assert (comparison.k, comparison.cases, comparison.new, comparison.gone) == (1, 2, 1, 1)
    (stolen,), (won,) = comparison.stolen, comparison.won
    assert (stolen.tool, stolen.before, stolen.after, stolen.by) == ("a", 1, 2, "c")
    assert (won.tool, won.before, won.after, won.by) == ("d", 2, 1, "c")
    assert (comparison.recall_before, comparison.recall_after) == (0.5, 0.5)
    assert str(comparison).splitlines() == [
        "recall@1 50.0% -> 50.0% over 2 shared cases, 1 new, 1 gone",
        "stolen: a (1 -> 2), by c <- a b",
        "won: d (2 -> 1), from c <- c d",
    ]
    assert json.loads(json.dumps(comparison.to_dict()))["stolen"][0]["by"] == "c"


def test_reports_with_no_k_in_common_need_one():
    one, other = measured(Case("a", ("a",)), ks=(1,)), measured(Case("a", ("a",)), ks=(3,))
    with pytest.raises(ValueError, match=r"no k in common: \[1\] and \[3\]"):
        one.compare(other)
    assert one.compare(other, k=2).recall_after == 1


def test_a_report_survives_json():
    report = measured(Case("b c a d", ("a",)), Case("d b", ("c", "b")), Case("x", ("a",)))
    values = json.loads(json.dumps(report.to_dict()))
    again = Report.from_dict({**values, "gates": []})
    assert again.to_dict() == report.to_dict()
    assert again.compare(report).stolen == ()
    assert list(values)[:8] == [
        "tools", "cases", "recall", "complete", "mrr", "payload_saved", "micros", "misses",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "it is an array"),
        ({"recall": {}}, "it has no 'results'"),
        ({"results": [], "version": 2}, "version 2"),
        ({"results": [], "version": 1}, "field 'tools': Field required"),
    ],
)
def test_what_is_no_report_is_said_in_a_line(values, message):
    with pytest.raises(FileError, match="(?s)" + message) as raised:
        Report.from_dict(values)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("results", 3, "field 'results': Input should be a valid tuple"),
        ("results", [{"query": "x", "ranks": {}, "first": []}], "field 'results.0.key': Field required"),
        ("misses", [{"case": "first"}], "field 'misses.0.case': Input should be a valid integer"),
        ("curve", {"1": {"recall": "all"}}, "field 'curve.1.recall': Input should be a valid number"),
        ("shown", {}, "field 'shown.recall': Field required"),
        ("domain_confusions", [["a", "b"]], "field 'domain_confusions.0.2': Field required"),
    ],
)
def test_what_is_wrong_in_a_report_is_named_with_its_key(key, value, message):
    values = measured(Case("b c a d", ("a",))).to_dict()
    with pytest.raises(FileError) as raised:
        Report.from_dict({**values, key: value})
    assert message in str(raised.value)


def test_a_report_without_times_is_read():
    values = measured(Case("b c a d", ("a",))).to_dict()
    del values["micros"]
    assert Report.from_dict(values).micros == {"p50": 0.0, "p99": 0.0}


def test_ranks_are_looked_for_beyond_what_is_shown_and_not_for_ever():
    tools = [{"name": f"t{n}", "description": "same words"} for n in range(700)]
    cases = [Case("same words", (f"t{n}",)) for n in (0, 100, 600)]
    report = evaluate(tools, cases)
    assert [list(result.ranks.values()) for result in report.results] == [[1], [101], [None]]


def test_people_see_a_table_in_a_terminal_and_in_a_notebook():
    report = measured(Case("b c <b>a</b>", ("a",)))
    assert "4 tools of" in str(report)
    assert "a: not found, behind b, c <- b c <b>a</b>" in str(report)
    assert "<li>a: not found, behind b, c &lt;- b c &lt;b&gt;a&lt;/b&gt;</li>" in report._repr_html_()
    assert repr(report) == "Report(4 tools, 1 cases, recall@1=0.000, recall@2=0.000, 1 misses)"


def test_cases_may_be_rows_and_are_checked_like_a_files():
    row = {"query": "a", "relevant": ["a"]}
    assert evaluate(TOOLS, [row], Fixed()).recall[1] == 1
    for cases, message in [
        ([{"query": "a", "relevant": ["z"]}], "case 1: field 'relevant' has 'z'"),
        ([row, Case("a", ("z",))], "case 2: field 'relevant' has 'z'"),
        ([], "there are no cases"),
    ]:
        with pytest.raises(FileError, match=message):
            evaluate(TOOLS, cases)


def test_a_file_without_cases_is_said_to_have_none(tmp_path):
    (tmp_path / "cases.json").write_text("[]", "utf-8")
    with pytest.raises(FileError, match="there are no cases"):
        evaluate(TOOLS, tmp_path / "cases.json")


@pytest.mark.parametrize("settings", [{"ks": ()}, {"ks": (0,)}, {"top_k": 0}])
def test_a_k_below_one_is_an_error(settings):
    with pytest.raises(ValueError, match=r"1 or more|one k or more"):
        measured(Case("a", ("a",)), **settings)


def test_hints_and_progress_are_taken():
    done = []
    cases = [Case("crunch numbers", ("a",))] * 3
    with_hints = evaluate(
        TOOLS, cases, hints={"a": ToolHints(examples=["crunch numbers"])}, progress=done.append
    )
    assert (with_hints.recall[1], done) == (1, [1, 2, 3])
    assert evaluate(TOOLS, cases).recall[1] == 0


def test_what_a_ranker_raises_reaches_the_caller():
    class Broken:
        def rank(self, query, documents, *, limit=None):
            raise RuntimeError("down")

    with pytest.raises(RuntimeError, match="down"):
        evaluate(TOOLS, [Case("a", ("a",))], Broken())


def test_generated_cases_are_counted_until_somebody_has_read_them():
    cases = [Case("a", ("a",), source="generated/direct"), Case("a", ("b",), source="read by Ann")]
    assert "2 cases (1 of them generated, not reviewed)" in measured(*cases).summary


def test_langchain_tools_bring_what_they_are_searched_by():
    from langchain_core.tools import tool  # noqa: PLC0415  # slow

    @tool(extras={"examples": ["crunch numbers"]})
    def calculator(expression: str) -> str:
        """Evaluate."""

    def plain(city: str) -> str:
        """Say hello to a city."""

    report = evaluate([calculator, plain], [Case("crunch numbers", ("calculator",))], LexicalRanker())
    assert report.recall[1] == 1
    assert read_tools([calculator, plain]).definitions[1]["parameters"]["properties"].keys() == {"city"}
