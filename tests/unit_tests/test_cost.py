"""What showing tools costs: worked examples, and what holds whatever the numbers are."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace
from math import inf, isclose
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool

from langchain_tool_selection import Discovery, ToolDocument, cost
from langchain_tool_selection.cost import (
    DEFAULT_PRICES,
    Exposure,
    Prices,
    Tier,
    Workload,
    break_even,
    estimate_cost,
    input_cost,
    prices_of,
)
from langchain_tool_selection.testing import ScriptedChatModel

EXPOSURES = get_args(Exposure)
SEARCHED = ("grow", "append", "proxy")

# -- worked examples -----------------------------------------------------------------------------------

# Ten turns of three model calls, 2,000 tokens of system prompt and of shown tools, three reveals of 1,200;
# thousands. Worked out apart from this package.
WORKED = """
 T  read  write  everything once per_turn per_call grow append
  5  .10   1.25          76   63      195      481  106     81
 10  .10   1.25          96   63      195      481  106     81
 15  .10   1.25         117   63      195      481  106     81
 15  .05   1.25          80   45      183      481   83     56
 15  .025  1.25          62   36      177      481   71     44
 15  .10   1.0          109   58      161      385   94     74
 15  .02   1.0           49   29      141      385   57     35
 50  .10   1.25         262   63      195      481  106     81
 50  .05   1.25         175   45      183      481   83     56
150  .10   1.25         677   63      195      481  106     81
 15    1      1         775  385      385      385  512    512
"""

BREAK_EVENS = """
read  write  append  grow   per_turn  per_call
.10   1.25   6.2k    12.3k  33.8k     103k
.05   1.25   6.2k    16.0k  53.0k     163k
.025  1.25   6.1k    19.9k  73.2k     227k
.10   1.0    6.2k    11.3k  28.5k     86k
.02   1.0    6.1k    19.9k  73.2k     227k
"""

# One assumption changed; write 1.25, and the first of a pair at read .10, the second at .05.
SENSITIVITY = [
    ({"shown": 800}, "append", "4.9k", "4.9k"),
    ({"shown": 800}, "grow", "10k", "13k"),
    ({"shown": 800}, "per_turn", "30k", "47k"),
    ({"shown": 4_000}, "append", "8.3k", "8.3k"),
    ({"shown": 4_000}, "grow", "16k", "21k"),
    ({"shown": 4_000}, "per_turn", "41k", "63k"),
    ({"reveals": 1}, "append", "3.4k", "3.4k"),
    ({"reveals": 1}, "grow", "4.6k", "5.3k"),
    ({"reveals": 6}, "append", "10k", "10k"),
    ({"reveals": 6}, "grow", "30k", "42k"),
    ({"reveals": 10}, "append", "15k", "15k"),
    ({"reveals": 10}, "grow", "66k", "96k"),
    ({"reveal": 4_000}, "append", "14k", "14k"),
    ({"reveal": 4_000}, "grow", "22k", "28k"),
    ({"turns": 3}, "append", "6.3k", "6.2k"),
    ({"turns": 3}, "grow", "19k", "22k"),
    ({"turns": 3}, "per_turn", "9.4k", "12k"),
    ({"turns": 30}, "append", "6.1k", "6.1k"),
    ({"turns": 30}, "grow", "8.6k", "11k"),
    ({"turns": 30}, "per_turn", "101k", "187k"),
    ({"step": 4_000}, "append", "6.7k", "6.5k"),
    ({"step": 4_000}, "grow", "18k", "25k"),
    ({"step": 4_000}, "per_turn", "114k", "181k"),
]


def cells(table: str, given: int) -> list[tuple[list[float], str, str]]:
    """Give back the cells of a table, each with what its row gives and the heading of its column."""
    headings, *rows = (line.split() for line in table.strip().splitlines())
    return [
        ([float(cell) for cell in row[:given]], exposure, cell)
        for row in rows
        for exposure, cell in zip(headings[given:], row[given:], strict=True)
    ]


def printed(tokens: float, like: str) -> str:
    """Write tokens in thousands with the decimals and the unit of another figure."""
    number = like.removesuffix("k")
    return f"{tokens / 1000:.{len(number.partition('.')[2])}f}" + like[len(number) :]


@pytest.mark.parametrize(("assumed", "exposure", "expected"), cells(WORKED, 3))
def test_a_thread_costs_what_it_costs_worked_out_elsewhere(assumed, exposure, expected):
    catalog, read, write = assumed
    assert (
        printed(input_cost(exposure, catalog * 1000, Workload(), Prices(read, write)), expected) == expected
    )


@pytest.mark.parametrize(("assumed", "exposure", "expected"), cells(BREAK_EVENS, 2))
def test_an_exposure_pays_from_the_catalogue_worked_out_elsewhere(assumed, exposure, expected):
    assert printed(break_even(exposure, Workload(), Prices(*assumed)), expected) == expected


@pytest.mark.parametrize(("changed", "exposure", "at_a_tenth", "at_a_twentieth"), SENSITIVITY)
def test_a_changed_assumption_moves_the_break_even_as_worked_out_elsewhere(
    changed, exposure, at_a_tenth, at_a_twentieth
):
    workload = Workload(**changed)
    for read, expected in ((0.1, at_a_tenth), (0.05, at_a_twentieth)):
        assert printed(break_even(exposure, workload, Prices(read, 1.25)), expected) == expected


def test_one_thread_by_hand():
    workload = Workload(
        turns=1, calls_per_turn=2, reveals=1, system=10, message=3, step=5, search=2, shown=20, reveal=7
    )
    prices = Prices(read=0.1, write=2)
    first = 2 * (20 + 10 + 3)
    searched = 0.1 * (30 + 3) + 2 * 2
    assert input_cost("once", 100, workload, prices) == pytest.approx(first + 0.1 * 33 + 2 * 5)
    revealed = 0.1 * (30 + 3 + 2) + 2 * (5 + 7)
    assert input_cost("append", 100, workload, prices) == pytest.approx(first + searched + revealed)
    changed = 2 * (20 + 7 + 10 + 3 + 2 + 5)
    assert input_cost("grow", 100, workload, prices) == pytest.approx(first + searched + changed)


def test_each_call_of_a_thread_has_the_price_of_its_own_length():
    workload = Workload(turns=2, calls_per_turn=1, reveals=0, system=10, message=30)
    prices = Prices(read=0.5, write=1, tiers=(Tier(above=100, factor=3), Tier(above=90, factor=2)))
    # 60 + 10 + 30 tokens are above 90, and 30 more of the next message above 100.
    assert input_cost("everything", 60, workload, prices) == 2 * 100 + 3 * (0.5 * 100 + 30)


def test_where_a_changed_array_keeps_the_rest_cached_only_the_array_is_paid_for_again():
    workload = Workload(
        turns=1, calls_per_turn=2, reveals=1, system=10, message=3, step=5, search=2, shown=20, reveal=7
    )
    prices = Prices(read=0.1, write=2, keeps_changed=True)
    first, searched = 2 * (20 + 10 + 3), 0.1 * (30 + 3) + 2 * 2
    changed = 2 * (20 + 7) + 0.1 * (10 + 3 + 2) + 2 * 5
    assert input_cost("grow", 100, workload, prices) == pytest.approx(first + searched + changed)


def test_higher_prices_of_long_prompts_let_selection_pay_earlier():
    prices = Prices(read=0.1, write=1.25)
    tiered = replace(prices, tiers=(Tier(above=20_000, factor=2),))
    assert break_even("per_turn", Workload(), tiered) < 20_000 < break_even("per_turn", Workload(), prices)
    far = replace(prices, tiers=(Tier(above=10**7, factor=2),))
    assert break_even("per_turn", Workload(), far) == break_even("per_turn", Workload(), prices)


def test_where_a_changed_array_keeps_the_rest_cached_selecting_anew_pays_early():
    read_anew = Prices(read=0.02, write=1)
    kept = replace(read_anew, keeps_changed=True)
    for exposure in ("per_turn", "per_call"):
        assert break_even(exposure, Workload(), kept) < break_even(exposure, Workload(), read_anew) / 5
    assert break_even("grow", Workload(), kept) < break_even("grow", Workload(), read_anew)
    for exposure in ("everything", "append"):
        assert input_cost(exposure, 9_000, Workload(), kept) == input_cost(
            exposure, 9_000, Workload(), read_anew
        )


def test_the_example_of_the_module_is_right():
    assert doctest.testmod(cost).failed == 0


# -- whatever the numbers are --------------------------------------------------------------------------

counts = st.integers(0, 5_000)
workloads = st.builds(
    Workload,
    turns=st.integers(1, 12),
    calls_per_turn=st.integers(1, 5),
    reveals=st.integers(0, 20),
    system=counts,
    message=counts,
    step=counts,
    search=counts,
    shown=counts,
    reveal=counts,
)
tiers = st.lists(st.builds(Tier, st.integers(0, 100_000), st.floats(1, 5)), max_size=2).map(tuple)
prices = st.builds(
    lambda pair, tiers, keeps: Prices(*sorted(pair), tiers=tiers, keeps_changed=keeps),
    st.tuples(st.floats(0, 2), st.floats(0, 2)),
    tiers,
    st.booleans(),
)
catalogs = st.integers(0, 200_000)
exposures = st.sampled_from(EXPOSURES)


def at_most(one: float, other: float) -> bool:
    return one <= other or isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)


@given(exposures, workloads, prices, catalogs, catalogs)
def test_a_larger_catalogue_is_never_cheaper(exposure, workload, prices, one, other):
    small, large = sorted((one, other))
    assert at_most(
        input_cost(exposure, small, workload, prices), input_cost(exposure, large, workload, prices)
    )


@given(
    exposures,
    workloads,
    prices,
    catalogs,
    st.sampled_from(["turns", "calls_per_turn", "system", "message", "step"]),
)
def test_more_of_a_thread_is_never_cheaper(exposure, workload, prices, catalog, field):
    more = replace(workload, **{field: getattr(workload, field) + 1})
    assert at_most(
        input_cost(exposure, catalog, workload, prices), input_cost(exposure, catalog, more, prices)
    )


@given(workloads, prices, catalogs)
def test_keeping_the_prefix_is_never_dearer_than_changing_it(workload, prices, catalog):
    costs = {exposure: input_cost(exposure, catalog, workload, prices) for exposure in EXPOSURES}
    assert costs["append"] == costs["proxy"]
    assert at_most(costs["append"], costs["grow"])
    assert at_most(costs["per_turn"], costs["per_call"])
    assert all(at_most(costs["once"], other) for other in costs.values())


@given(st.sampled_from(EXPOSURES[1:]), workloads, prices)
def test_an_exposure_is_cheaper_above_its_break_even_and_not_below(exposure, workload, prices):
    tokens = break_even(exposure, workload, prices)
    if tokens == inf:
        assert prices.write == 0 or prices.read == prices.write == 0
        return
    for catalog in (tokens * 0.9, tokens + 1):
        selected = input_cost(exposure, catalog, workload, prices)
        everything = input_cost("everything", catalog, workload, prices)
        assert at_most(*((everything, selected) if catalog < tokens else (selected, everything)))


@given(exposures, workloads, st.integers(0, 5_000))
def test_with_nothing_to_hide_all_cost_the_same(exposure, workload, catalog):
    workload = replace(workload, shown=catalog)
    assert input_cost(exposure, catalog, workload, DEFAULT_PRICES) == input_cost(
        "everything", catalog, workload, DEFAULT_PRICES
    )


def test_sending_everything_is_never_cheaper_than_itself():
    assert break_even("everything", Workload(), DEFAULT_PRICES) == inf


def test_where_input_is_free_nothing_pays():
    assert break_even("append", Workload(), Prices(0, 0)) == inf


# -- settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Prices(read=-0.1), ValueError, "Prices.read must be a finite number of 0 or more, got -0.1"),
        (lambda: Prices(write=inf), ValueError, "Prices.write must be a finite number of 0 or more, got inf"),
        (lambda: Prices(write=None), ValueError, "Prices.write must be a finite number of 0 or more"),
        (lambda: Prices(input="3"), TypeError, "Prices.input must be a number or None, got '3'"),
        (lambda: Prices(read=2), ValueError, "Prices.read must be at most Prices.write, got read=2"),
        (lambda: Prices(long_write=-1), ValueError, "Prices.long_write must be a finite number of 0 or more"),
        (lambda: Prices(keeps_changed=1), TypeError, "Prices.keeps_changed must be True or False, got 1"),
        (lambda: Prices(tiers=(2,)), TypeError, "Prices.tiers takes Tier(...), got 2"),
        (lambda: Prices(tiers=[]), TypeError, "Prices.tiers takes tuple(...), got []"),
        (lambda: Tier(above=-1, factor=2), ValueError, "Tier.above must be 0 or more, got -1"),
        (lambda: Tier(above=1, factor=0.5), ValueError, "Tier.factor must be a finite number of 1 or more"),
        (lambda: Workload(turns=0), ValueError, "Workload.turns must be 1 or more, got 0"),
        (lambda: Workload(step=-1), ValueError, "Workload.step must be 0 or more, got -1"),
        (lambda: Workload(shown=1.5), TypeError, "Workload.shown must be an integer, got 1.5"),
        (
            lambda: input_cost("all", 1, Workload(), Prices()),
            ValueError,
            "exposure must be one of 'everything', 'once'",
        ),
        (lambda: break_even("all", Workload(), Prices()), ValueError, "exposure must be one of"),
        (
            lambda: input_cost("once", -1, Workload(), Prices()),
            ValueError,
            "catalog must be 0 tokens or more, got -1",
        ),
    ],
)
def test_a_bad_setting_is_named_with_what_is_possible(make, error, message):
    with pytest.raises(error) as raised:
        make()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("model", "read", "write", "usd"),
    [
        ("claude-opus-5-5", 0.05, 1.25, 4),
        ("anthropic:claude-sonnet-5-5-20261007", 0.05, 1.25, 2),
        ("claude-fable-5-1", 0.025, 1.25, 10),
        ("claude-fable-5-2", 0.025, 1.25, 8),
        ("claude-mythos-5-2", 0.025, 1.25, 8),
        ("claude-mythos-5", 0.1, 1.25, 10),
        ("claude-haiku-5-5", 0.1, 1.25, 0.1),
        ("claude-opus-5", 0.1, 1.25, 5),
        ("claude-sonnet-4-6", 0.1, 1.25, 3),
        ("claude-sonnet-4-20250514", 0.1, 1.25, None),
        ("anthropic/claude-opus-5.5", 0.05, 1.25, 4),
        ("bedrock_converse:us.anthropic.claude-sonnet-4-5-20250929-v1:0", 0.1, 1.25, 3),
        ("anthropic-bedrock:us.anthropic.claude-opus-5-5-v1:0", 0.05, 1.25, 4),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
            0.1,
            1.25,
            1,
        ),
        (
            "bedrock:arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-5-v1:0",
            0.1,
            1.25,
            5,
        ),
        ("google_anthropic_vertex:claude-opus-5-5@20261001", 0.05, 1.25, 4),
        ("projects/p/locations/l/publishers/anthropic/models/claude-opus-5-5@20261001", 0.05, 1.25, 4),
        ("gpt-5.6", 0.1, 1.25, None),
        ("openai:gpt-6-luna", 0.1, 1.25, None),
        ("gpt-6.1-sol", 0.05, 1.25, 2),
        ("gpt-6.1-terra", 0.05, 1.25, 1),
        ("gpt-6.2-sol", 0.05, 1.25, 2),
        ("azure_openai:gpt-6.2-astra-2026-11-17", 0.05, 1.25, 8),
        ("azure:gpt-5.5", 0.1, 1.0, None),
        ("gpt-5-mini-2025-08-07", 0.1, 1.0, None),
        ("GPT-5.5", 0.1, 1.0, None),
        ("gpt-4.1-mini", 0.5, 1.0, None),
        ("google_genai:gemini-2.5-flash", 0.1, 1.0, None),
        ("models/gemini-3-pro", 0.1, 1.0, None),
        ("gemini-4-neon", 0.05, 1.0, 3),
        ("google_vertexai:publishers/google/models/gemini-4-argon", 0.05, 1.0, 4),
        ("mistral-large-latest", 0.1, 1.0, None),
        ("mistralai:magistral-medium-2509", 0.1, 1.0, None),
        ("xai:grok-4.6", 0.25, 1.0, None),
        ("groq:openai/gpt-oss-120b", 0.5, 1.0, None),
        ("deepseek-v4.1-flash", 0.02, 1.0, 0.15),
        ("deepseek-v4-flash", 0.02, 1.0, 0.15),
        ("deepseek:deepseek-v4-pro", 1 / 30, 1.0, 0.66),
    ],
)
def test_a_published_price_is_found_by_the_name_of_the_model(model, read, write, usd):
    found = prices_of(model)
    assert (found.read, found.write, found.input) == (read, write, usd)
    assert found.source.startswith("https://")
    assert found.as_of == "2026-12-01"
    assert not found.keeps_changed


@pytest.mark.parametrize(
    "model",
    [
        "",
        "llama3",
        "ollama:deepseek-r1",
        "ollama:mistral-large-latest",
        "mistral-7b",
        "claude-opus-6",
        "claude-opus-5-6",
        "claude-fable-5-3",
        "gpt-7",
        "gpt-9.9-ultra",
        "gpt-5.12",
        "gpt-6.1-luna",
        "gpt-oss-20b",
        "openai/gpt-oss-20b",
        "gemini-4-xenon",
        "grok-5",
        "deepseek-v5-pro",
        "openrouter:anthropic/claude-opus-5.5",
        "accounts/fireworks/models/deepseek-v4-pro",
        "openai:claude-opus-5-5",
    ],
)
def test_a_model_that_is_not_in_the_list_has_no_price(model):
    assert prices_of(model) is None


@pytest.mark.parametrize(
    ("model", "tokens", "usd"),
    [
        ("gpt-6.1-sol", 272_000, 2),
        ("gpt-6.2-sol", 272_001, 4),
        ("gpt-6.1-terra", 300_000, 2),
        ("azure:gpt-6.2-astra", 300_000, 16),
        ("claude-haiku-5-5", 100_000, 0.1),
        ("anthropic-bedrock:us.anthropic.claude-haiku-5-5-v1:0", 100_001, 0.5),
        ("claude-opus-5-5", 900_000, 4),
        ("gpt-5.6", 300_000, None),
    ],
)
def test_a_long_prompt_has_the_price_of_its_length(model, tokens, usd):
    assert prices_of(model).at(tokens).input == (usd if usd is None else pytest.approx(usd))
    assert prices_of(model).at(tokens).factor_at(tokens) == 1


@pytest.mark.parametrize(
    ("model", "write"), [("claude-opus-5-5", 2), ("gpt-6.2-sol", 2.5), ("azure:gpt-6.1-terra", 2.5)]
)
def test_what_is_kept_for_longer_costs_more_to_write(model, write):
    prices = prices_of(model)
    assert prices.kept_long.write == prices.long_write == write
    assert input_cost("grow", 50_000, Workload(), prices.kept_long) > input_cost(
        "grow", 50_000, Workload(), prices
    )


@pytest.mark.parametrize("model", ["gpt-5.6", "gemini-4-neon"])
def test_where_nothing_is_kept_for_longer_there_is_no_price_for_it(model):
    with pytest.raises(ValueError, match="no price is known for keeping a prompt in the cache for longer"):
        prices_of(model).kept_long  # noqa: B018


def test_the_price_of_a_chat_model_is_that_of_its_name():
    openai = pytest.importorskip("langchain_openai")
    assert prices_of(openai.ChatOpenAI(model="gpt-5.6", api_key="none")) == prices_of("gpt-5.6")
    assert prices_of(ScriptedChatModel(script=["hello"])) is None


# -- estimates -----------------------------------------------------------------------------------------


@tool
def weather_lookup(city: str) -> str:
    """Get the current weather for a city."""
    return city


def catalogue(size: int) -> list[ToolDocument]:
    return [ToolDocument(f"tool_{n:03}", "Does something. " * 10, (("x", "A value."),)) for n in range(size)]


def test_an_estimate_shows_what_would_be_shown_of_tools_of_average_size():
    estimate = estimate_cost(catalogue(100), top_k=10)
    assert estimate.tools == 100
    assert estimate.workload.shown == round(estimate.catalog / 10)
    assert estimate.workload.reveal == round(estimate.catalog / 100 * Discovery().max_results)
    assert estimate.prices == DEFAULT_PRICES
    assert [row.exposure for row in estimate.rows] == list(EXPOSURES)


def test_an_estimate_agrees_with_the_functions_that_it_stands_on():
    prices = Prices(0.1, 1.25, input=2.0)
    estimate = estimate_cost(
        catalogue(3), prices=prices, workload=Workload(), count_tokens=lambda schemas: len(schemas) * 5_000
    )
    row = estimate.rows[EXPOSURES.index("append")]
    assert row.cost == input_cost("append", 15_000, Workload(), prices)
    assert row.usd == pytest.approx(row.cost * 2 / 1e6)
    assert row.ratio == pytest.approx(81 / 117, abs=0.01)
    assert row.break_even == break_even("append", Workload(), prices)


@pytest.mark.parametrize(
    ("size", "prices", "workload", "recommended"),
    [
        (10, DEFAULT_PRICES, None, "everything"),
        (200, DEFAULT_PRICES, None, "append"),
        (200, Prices(), None, "per_turn"),
        (200, DEFAULT_PRICES, Workload(reveals=0), "append"),
        (200, Prices(0, 0), None, "everything"),
    ],
    ids=["nothing to hide", "cached", "not cached", "nothing revealed", "free"],
)
def test_the_cheapest_way_to_work_is_recommended_and_the_simplest_of_equals(
    size, prices, workload, recommended
):
    estimate = estimate_cost(catalogue(size), prices=prices, workload=workload)
    assert estimate.recommended == recommended


@pytest.mark.parametrize(
    "shape",
    [
        {"name": "weather_lookup", "description": weather_lookup.description},
        {"name": "weather_lookup", "description": weather_lookup.description, "domain": "not sent"},
        {"type": "function", "function": {"name": "weather_lookup"}},
        {"type": "function", "name": "weather_lookup"},
        {"name": "weather_lookup"},
    ],
)
@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_a_tool_counts_the_same_in_every_shape(shape, key):
    given: list[dict] = []
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    (shape.get("function") or shape).update({key: schema, "description": weather_lookup.description})
    estimate_cost([shape, weather_lookup], count_tokens=lambda schemas: given.extend(schemas) or 10)
    assert given[0] == given[1]
    for other in ("parameters", "input_schema", "inputSchema"):
        (shape.get("function") or shape).pop(other, None)


def test_tools_of_other_kinds_are_counted():
    class McpTool:
        name = "read_file"
        description = "Read a file."
        inputSchema = {"type": "object", "properties": {"path": {"type": "string"}}}  # noqa: RUF012

    def plain(city: str) -> str:
        """Look out of the window."""
        return city

    given: list[dict] = []
    tools = [McpTool(), plain, {"type": "web_search", "max_uses": 3}, ToolDocument("a", "b", (("c", "d"),))]
    estimate_cost(tools, count_tokens=lambda schemas: given.extend(schemas) or 10)
    mcp, function, provider, document = given
    assert mcp["function"]["parameters"] == McpTool.inputSchema
    assert function["function"]["name"] == "plain"
    assert provider == {"type": "web_search", "max_uses": 3}
    assert document["function"]["parameters"]["properties"] == {"c": {"type": "string", "description": "d"}}


def test_what_counts_tokens_by_default_takes_four_characters_for_one():
    estimate = estimate_cost([{"name": "a", "description": "x" * 4_000}])
    assert 1_000 <= estimate.catalog <= 1_050


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tools": []}, ValueError, "tools is empty"),
        ({"tools": [{"description": "no name"}]}, TypeError, "a tool needs a non-empty string as its name"),
        ({"top_k": 0}, ValueError, "top_k must be 1 or more, got 0"),
        ({"model": "llama3"}, ValueError, "no prices are known for the model 'llama3'"),
        ({"count_tokens": 4}, TypeError, "count_tokens must be a callable that takes a list of tool dicts"),
        ({"count_tokens": lambda schemas: 1.5}, TypeError, "what count_tokens returns must be an integer"),
    ],
)
def test_an_estimate_that_cannot_be_made_says_why(arguments, error, message):
    with pytest.raises(error) as raised:
        estimate_cost(**{"tools": [weather_lookup], **arguments})
    assert message in str(raised.value)


def test_prices_go_before_those_of_the_model():
    estimate = estimate_cost([weather_lookup], model="llama3", prices=Prices())
    assert (estimate.model, estimate.prices) == ("llama3", Prices())


def test_an_estimate_is_read_by_people_notebooks_and_programs():
    estimate = estimate_cost(catalogue(100), model="claude-opus-5-5")
    text, html, values = str(estimate), estimate._repr_html_(), json.loads(json.dumps(estimate.to_dict()))
    for exposure in EXPOSURES:
        assert exposure in text
        assert f"<td>{exposure}</td>" in html
    assert "recommended: append" in text
    assert "claude-opus-5-5, prices of 2026-12-01" in text
    assert values["recommended"] == "append"
    assert values["exposures"]["everything"] == {
        "cost": round(estimate.rows[0].cost),
        "ratio": 1.0,
        "usd": round(estimate.rows[0].usd, 6),
        "break_even": None,
    }
    assert values["prices"]["read"] == 0.05
    assert values["workload"]["turns"] == 10
