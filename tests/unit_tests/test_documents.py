from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from langchain.agents import AgentState
from langchain.tools import InjectedState, InjectedStore, ToolRuntime
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from pydantic import BaseModel, Field

from langchain_tool_selection import ToolDocument, ToolIndex

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "City name."}, "days": {"type": "integer"}},
}
PARAMETERS = (("city", "City name."), ("days", ""))


def document_of(tool: Any) -> ToolDocument:
    """Return what an index reads of a tool."""
    (document,) = ToolIndex().sync([tool]).documents
    return document


class Arguments(BaseModel):
    city: str = Field(description="City name.")
    days: int = 1


def weather(args_schema: Any = Arguments, **settings: Any) -> StructuredTool:
    return StructuredTool(
        name="weather",
        description="Forecast.",
        args_schema=args_schema,
        func=lambda **_: "",
        **settings,
    )


@pytest.mark.parametrize(
    "source",
    [
        weather(),
        weather(SCHEMA),
        SimpleNamespace(name="weather", description="Forecast.", inputSchema=SCHEMA),
        {
            "type": "function",
            "function": {"name": "weather", "description": "Forecast.", "parameters": SCHEMA},
        },
        {"type": "function", "name": "weather", "description": "Forecast.", "parameters": SCHEMA},
        {"name": "weather", "description": "Forecast.", "input_schema": SCHEMA},
        {"name": "weather", "description": "Forecast.", "inputSchema": SCHEMA},
    ],
    ids=["pydantic", "schema dict", "MCP", "OpenAI chat", "OpenAI responses", "Anthropic", "MCP dict"],
)
def test_every_shape_of_one_tool_gives_the_same_document(source):
    assert document_of(source) == ToolDocument("weather", "Forecast.", PARAMETERS)


def test_a_real_mcp_tool_is_read():
    types = pytest.importorskip("mcp.types")
    source = types.Tool(name="weather", description="Forecast.", inputSchema=SCHEMA)
    assert document_of(source) == ToolDocument("weather", "Forecast.", PARAMETERS)


def test_a_document_is_its_own_document():
    document = ToolDocument("weather", tags=("rain",))
    assert document_of(document) is document


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"properties": None}, {"properties": []}, {"properties": {}}], ids=str
)
def test_a_schema_without_properties_has_no_parameters(schema):
    assert document_of(weather(schema)).parameters == ()
    assert document_of({"name": "weather", "parameters": schema}).parameters == ()


def test_a_tool_without_any_schema_has_no_parameters():
    assert document_of({"name": "weather"}) == ToolDocument("weather")
    assert document_of(SimpleNamespace(name="weather", description=None)) == ToolDocument("weather")


@pytest.mark.parametrize("dialect", ["pydantic", "pydantic.v1"])
@pytest.mark.filterwarnings("ignore:Core Pydantic V1")
def test_a_schema_class_without_fields_has_no_parameters_and_gives_no_warning(dialect):
    base = pytest.importorskip(dialect).BaseModel

    class Nothing(base):
        pass

    assert document_of(SimpleNamespace(name="ping", args_schema=Nothing)).parameters == ()


def test_odd_property_specs_keep_their_names():
    schema = {"properties": {"a": True, "b": {"description": 5}, "c": {"description": "See."}}}
    assert document_of(weather(schema)).parameters == (("a", ""), ("b", ""), ("c", "See."))


@pytest.mark.filterwarnings("ignore")
def test_a_pydantic_1_schema_is_read():
    v1 = pytest.importorskip("pydantic.v1")
    fields = {"city": (str, v1.Field(description="City name.")), "days": (int, 1)}
    try:
        model = v1.create_model("Arguments", **fields)
    except Exception:  # newer Pythons cannot build one at all
        pytest.skip("pydantic.v1 does not work on this Python")
    assert document_of(SimpleNamespace(name="weather", args_schema=model)).parameters == PARAMETERS


class CurrentUser(InjectedToolArg):
    """An injection mark of an application's own."""


def test_arguments_that_the_framework_injects_are_no_parameters():
    @tool
    def weather(
        city: str,
        runtime: ToolRuntime,
        typed: ToolRuntime[Any, AgentState],
        state: Annotated[dict, InjectedState],
        thread: Annotated[str, InjectedState("thread")],
        store: Annotated[Any, InjectedStore()],
        call: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Forecast."""
        return ""

    assert document_of(weather).parameters == (("city", ""),)


@pytest.mark.parametrize(
    "mark",
    [InjectedToolArg, InjectedToolArg(), CurrentUser, CurrentUser()],
    ids=["class", "instance", "own class", "own instance"],
)
def test_arguments_with_an_injection_mark_of_ones_own_are_no_parameters(mark):
    @tool
    def weather(city: str, user: Annotated[str, mark]) -> str:
        """Forecast."""
        return ""

    assert document_of(weather).parameters == (("city", ""),)


def test_hints_in_metadata_and_extras_are_read():
    document = document_of(
        weather(
            tags=["rain"],
            metadata={"domain": "outdoors", "examples": ["will it rain?"], "tags": "umbrella"},
        )
    )
    assert document.domain == "outdoors"
    assert document.examples == ("will it rain?",)
    assert document.tags == ("rain", "umbrella")


def test_extras_win_over_metadata():
    document = document_of(
        weather(metadata={"domain": "old"}, extras={"domain": "new", "examples": ["rain?"]})
    )
    assert (document.domain, document.examples) == ("new", ("rain?",))


def test_the_server_of_an_mcp_tool_is_its_domain():
    document = document_of(weather(metadata={"mcp": {"server": {"name": "meteo"}, "tool": {}}}))
    assert document.domain == "meteo"


@pytest.mark.parametrize(
    "metadata",
    [{"mcp": None}, {"mcp": {"server": "x"}}, {"domain": 5}, {"examples": 5, "tags": {"a": 1}}, {"examples": [{}, 1]}],
    ids=str,
)  # fmt: skip
def test_hints_of_another_shape_are_passed_over(metadata):
    assert document_of(weather(metadata=metadata)) == ToolDocument("weather", "Forecast.", PARAMETERS)


def test_a_tool_without_a_name_is_an_error():
    with pytest.raises(TypeError, match="needs a non-empty string as its name"):
        document_of({"type": "web_search"})


class Untouchable(BaseTool):
    """A tool whose schema must not be asked for: that costs milliseconds."""

    name: str = "weather"
    description: str = "Forecast."
    args_schema: Any = Arguments

    def _run(self) -> str:
        return ""

    def get_input_schema(self, config=None):
        raise AssertionError("get_input_schema was called")

    @property
    def tool_call_schema(self):
        raise AssertionError("tool_call_schema was read")

    @property
    def args(self):
        raise AssertionError("args was read")


def test_reading_a_tool_never_asks_for_its_json_schema():
    class Costly(Arguments):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            raise AssertionError("model_json_schema was called")

    source = Untouchable(args_schema=Costly)
    index = ToolIndex()
    for _ in range(2):
        assert index.sync([source]).documents == (ToolDocument("weather", "Forecast.", PARAMETERS),)


# -- fingerprints

CHANGES = {
    "name": "rain",
    "description": "Another.",
    "parameters": (("city", "Town."),),
    "examples": ("rain?",),
    "tags": ("rain",),
    "domain": "meteo",
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_changes_the_fingerprint(field):
    fields = {"name": "weather", "description": "Forecast."}
    assert ToolDocument(**{**fields, field: CHANGES[field]}).fingerprint != ToolDocument(**fields).fingerprint


def test_text_moved_from_one_field_to_another_changes_the_fingerprint():
    prints = {
        ToolDocument("a", "b", examples=("c",)).fingerprint,
        ToolDocument("a", "b", tags=("c",)).fingerprint,
        ToolDocument("a", "b", examples=("c", "")).fingerprint,
        ToolDocument("a", "bc").fingerprint,
    }
    assert len(prints) == 4
    joined = [ToolDocument("t", examples=("ab", "c")), ToolDocument("t", examples=("a", "bc"))]
    assert joined[0].fingerprint != joined[1].fingerprint


def test_a_lone_surrogate_has_a_fingerprint():
    assert len(ToolDocument("a", "\ud800").fingerprint) == 16


# -- tools that change


@pytest.mark.parametrize(
    "change",
    [{"name": "rain"}, {"description": "Another."}, {"args_schema": SCHEMA}, {"tags": ["rain"]},
     {"metadata": {"domain": "x"}}, {"extras": {"examples": ["x"]}}],
    ids=str,
)  # fmt: skip
def test_a_changed_copy_of_a_tool_is_read_anew(change):
    source = weather()
    index, changed = ToolIndex(), source.model_copy(update=change)
    index.sync([source])
    assert index.sync([changed]).documents == (document_of(changed),)
    assert index.sync([source]).documents == (document_of(source),)


def test_a_marked_copy_of_a_tool_has_the_same_document():
    source = weather()
    assert document_of(source.model_copy(update={"extras": {"cache_control": {}}})) == document_of(source)
