import dataclasses

import pytest

from langchain_tool_selection import ARITHMETIC, Hit, Route, ToolDocument, ToolRouter
from langchain_tool_selection.testing import ScriptedChatModel

TOOLS = [
    {"name": "calculator", "description": "Evaluate an arithmetic expression."},
    {"name": "order_lookup", "description": "Look up everything about one order by its number."},
    {"name": "order_status", "description": "Check whether an order was shipped, delivered or refunded."},
    {"name": "refund_request", "description": "Ask for the money of an order back."},
    {"name": "weather", "description": "Current weather and forecast for a city."},
    {"name": "send_email", "description": "Send an email to a customer."},
]
RULES = {ARITHMETIC: "calculator", r"order\s*#\d+": "order_lookup"}


def router(*answers, tools=TOOLS, rules=RULES, threshold=2.0, **settings):
    """Return a router and its scripted model."""
    model = ScriptedChatModel(script=list(answers) or ["[]"])
    return ToolRouter(tools, rules=rules, model=model, threshold=threshold, **settings), model


@pytest.fixture(params=["sync", "async"])
def ask(request):
    async def ask(router, query):
        return router.route(query) if request.param == "sync" else await router.aroute(query)

    return ask


class Fixed:
    def __init__(self, *hits):
        self.hits = [Hit(*hit) for hit in hits]

    def rank(self, query, documents, *, limit=None):
        return self.hits


ABC = [ToolDocument("a"), ToolDocument("b"), ToolDocument("c")]


def names(route):
    return [hit.name for hit in route.shortlist]


# -- the tiers


@pytest.mark.parametrize(
    ("query", "tool"), [("23 * 4", "calculator"), ("status of order #445566", "order_lookup")]
)
async def test_a_rule_that_matches_decides(ask, query, tool):
    routes, model = router()
    assert await ask(routes, query) == Route(tool, "rule", (Hit(tool, 1.0),))
    assert model.calls == []


@pytest.mark.parametrize("choice", ["refund_request", "order_status"])
async def test_the_model_decides_between_several(ask, choice):
    routes, model = router(f'["{choice}"]')
    route = await ask(routes, "refund my order please")
    assert (route.tool, route.tier) == (choice, "model")
    assert names(route) == ["refund_request", "order_status"]
    menu = str(model.calls[0].messages[-1].content)
    assert [tool["name"] for tool in TOOLS if tool["name"] in menu] == ["order_status", "refund_request"]


async def test_a_request_that_nothing_serves_goes_to_no_tool(ask):
    routes, model = router()
    assert await ask(routes, "tell me a joke") == Route(None, "none", ())
    assert model.calls == []


async def test_one_tool_that_is_left_needs_no_model(ask):
    routes, model = router()
    route = await ask(routes, "what's the weather in Paris?")
    assert (route.tool, route.tier, names(route)) == ("weather", "shortlist", ["weather"])
    assert model.calls == []


@pytest.mark.parametrize("query", ["", " \n"])
async def test_a_blank_request_goes_to_no_tool(ask, query):
    assert await ask(router()[0], query) == Route(None, "none")


# -- rules


async def test_a_rule_without_its_tool_leaves_the_request_to_the_ranker(ask):
    routes, _ = router(tools=TOOLS[4:], rules={"weather": "gone"})
    assert (await ask(routes, "weather in Paris")).tier == "shortlist"


async def test_of_several_tools_of_a_rule_the_first_is_the_answer(ask):
    routes, _ = router(rules=[("order", ["order_status", "order_lookup"])])
    route = await ask(routes, "my order")
    assert (route.tool, route.tier, names(route)) == (
        "order_status",
        "rule",
        ["order_status", "order_lookup"],
    )


# -- the short list


async def test_a_tool_that_is_far_ahead_is_alone_on_the_short_list(ask):
    far = ToolRouter(ABC, ranker=Fixed(("a", 1.0), ("b", 4.1), ("c", 0.2)))
    assert await ask(far, "x") == Route("b", "shortlist", (Hit("b", 4.1),))
    near = ToolRouter(ABC, ranker=Fixed(("a", 1.0), ("b", 4.0), ("c", 0.2)))
    assert names(await ask(near, "x")) == ["b", "a"]


async def test_only_scores_at_the_threshold_or_above_count(ask):
    ranker = Fixed(("a", 0.5), ("b", 0.4), ("c", 0.39))
    assert names(await ask(ToolRouter(ABC, ranker=ranker, threshold=0.4), "x")) == ["a", "b"]
    assert await ask(ToolRouter(ABC, ranker=ranker, threshold=0.6), "x") == Route(None, "none")


async def test_a_best_score_of_zero_or_below_still_counts(ask):
    assert names(await ask(ToolRouter(ABC, ranker=Fixed(("a", -0.1), ("b", -5.0))), "x")) == ["a"]
    assert names(await ask(ToolRouter(ABC, ranker=Fixed(("a", 0.0), ("b", 0.0))), "x")) == ["a", "b"]


async def test_the_short_list_is_no_longer_than_asked_for(ask):
    routes = ToolRouter(ABC, ranker=Fixed(("a", 1.0), ("b", 1.0), ("c", 1.0)), shortlist=2)
    assert names(await ask(routes, "x")) == ["a", "b"]


# -- the model


async def test_without_a_model_the_best_is_the_answer(ask):
    route = await ask(ToolRouter(TOOLS, threshold=2.0), "refund my order please")
    assert (route.tool, route.tier) == ("refund_request", "shortlist")
    assert names(route) == ["refund_request", "order_status"]


async def test_the_model_may_decide_for_no_tool(ask):
    route = await ask(router("[]")[0], "refund my order please")
    assert (route.tool, route.tier) == (None, "model")
    assert names(route) == ["refund_request", "order_status"]


async def test_a_tool_that_is_not_on_the_short_list_is_never_the_answer(ask):
    routes, model = router('["weather"]', '["order_lookup", "order_status"]')
    assert (await ask(routes, "refund my order please")).tool == "order_status"
    assert len(model.calls) == 2


async def test_a_model_without_a_usable_answer_leaves_the_decision_to_the_ranker(ask):
    routes, model = router("Gladly!", "I will.")
    route = await ask(routes, "refund my order please")
    assert (route.tool, route.tier) == ("refund_request", "shortlist")
    assert len(model.calls) == 2


async def test_what_the_model_raises_reaches_the_caller(ask):
    def down(sent):
        raise ConnectionError("overloaded")

    routes = ToolRouter(TOOLS, model=ScriptedChatModel(script=down))
    with pytest.raises(ConnectionError, match="overloaded"):
        await ask(routes, "refund my order please")


# -- the rest


def test_a_route_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Route(None, "none").tool = "weather"


def test_tools_may_come_from_a_generator_and_be_none_at_all():
    assert ToolRouter((tool for tool in TOOLS), rules=RULES).route("23 * 4").tool == "calculator"
    assert ToolRouter([], rules=RULES).route("23 * 4") == Route(None, "none")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shortlist": 0}, "shortlist must be 1 or more"),
        ({"threshold": float("nan")}, "threshold must be a number or None"),
        ({"rules": {"(": "a"}}, r"rule '\('"),
    ],
)
def test_a_bad_setting_is_an_error_that_names_it(settings, message):
    with pytest.raises(ValueError, match=message):
        ToolRouter(TOOLS, **settings)


def test_a_model_of_another_kind_is_an_error():
    with pytest.raises(TypeError, match="model must be a LangChain chat model"):
        ToolRouter(TOOLS, model=5)
