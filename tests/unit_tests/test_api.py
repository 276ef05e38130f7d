import ast
import inspect
import json
from pathlib import Path

import pytest

import langchain_tool_selection

PACKAGE = Path(langchain_tool_selection.__file__).parent


def test_the_public_names_are_these_and_sorted():
    assert langchain_tool_selection.__all__ == [
        "ARITHMETIC",
        "Access",
        "AccessRuntime",
        "ByModel",
        "CacheUsage",
        "CatalogView",
        "Collect",
        "Discovery",
        "EmbeddingRanker",
        "Exposure",
        "FieldWeights",
        "Hit",
        "HybridRanker",
        "LLMRanker",
        "LexicalRanker",
        "ModelFacts",
        "Payload",
        "Query",
        "Ranker",
        "Reason",
        "Rendered",
        "Route",
        "RuleRanker",
        "SchemaPruning",
        "Search",
        "Selection",
        "Thread",
        "TokenCount",
        "Tokens",
        "Tool",
        "ToolDocument",
        "ToolHints",
        "ToolIndex",
        "ToolRegistry",
        "ToolRouter",
        "ToolSelectionMiddleware",
        "count_tokens",
        "discover",
        "estimate_cost",
        "fingerprint_of",
        "index_text",
        "lexical_score",
        "prune_schema",
        "prune_tool",
        "select_tools",
        "thread_usage",
    ]
    assert langchain_tool_selection.__all__ == sorted(langchain_tool_selection.__all__)
    assert dir(langchain_tool_selection) == langchain_tool_selection.__all__


def test_a_type_checker_sees_the_same_names_as_python():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert (
        sorted(alias.asname for node in imports for alias in node.names) == langchain_tool_selection.__all__
    )


@pytest.mark.parametrize("name", langchain_tool_selection.__all__)
def test_a_public_name_resolves_and_is_documented(name):
    public = getattr(langchain_tool_selection, name)
    own = vars(public).get("__doc__") if inspect.isclass(public) else public.__doc__
    assert own
    assert not own.startswith(f"{name}("), "a dataclass without a docstring gets its signature as one"
    for member_name, member in vars(public).items() if inspect.isclass(public) else ():
        if not member_name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property)):
            assert inspect.getdoc(getattr(public, member_name)), f"{name}.{member_name} has no docstring"


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'langchain_tool_selection' has no attribute 'nonsense'"):
        langchain_tool_selection.nonsense  # noqa: B018
    assert not hasattr(langchain_tool_selection, "_also_nonsense")


AGENTS = ("langchain.agents", "langgraph")
FRAMEWORKS = ("langchain", "langchain_core", "langgraph", "numpy")

STEPS: list[tuple[str, tuple[str, ...]]] = [
    ("import langchain_tool_selection", FRAMEWORKS),
    ("import langchain_tool_selection.portable", FRAMEWORKS),
    ("import langchain_tool_selection.cost", FRAMEWORKS),
    ("import langchain_tool_selection.local", ("wordllama",)),
    (
        "from langchain_tool_selection import EmbeddingRanker, LexicalRanker, Query, ToolDocument, ToolIndex, "
        "select_tools; ToolIndex(LexicalRanker()).sync([{'name': 'a'}])",
        AGENTS,
    ),
    (
        "from langchain_tool_selection import SchemaPruning, ToolRegistry; registry = ToolRegistry(); "
        "registry.register('a', 'Run tests.'); "
        "registry.serialize(registry.route_tools('run'), prune=SchemaPruning())",
        AGENTS,
    ),
    (
        "from langchain_tool_selection.evals import Case, evaluate, explain, lint, render_html; "
        "tools = [{'name': 'a', 'description': 'open'}]; "
        "render_html(evaluate(tools, [Case('open', ('a',))])); lint(tools); explain('open', 'a', tools)",
        (*AGENTS, "matplotlib", "rich"),
    ),
    (
        "from langchain_tool_selection import LLMRanker, ToolRouter; "
        "from langchain_tool_selection.testing import ScriptedChatModel; "
        "tools = (ToolDocument('send_a'), ToolDocument('send_b')); "
        "hits = LLMRanker(ScriptedChatModel(script=['[2]'])).rank(Query.of('send'), tools); "
        "assert hits[0].name == 'send_b', hits; "
        "route = ToolRouter([{'name': 'send_a'}, {'name': 'send_b'}], model=ScriptedChatModel(script=['send_b']))"
        ".route('send'); "
        "assert (route.tool, route.tier) == ('send_b', 'model'), route",
        ("langchain.agents",),
    ),
    (
        "from langchain_tool_selection import ToolSelectionMiddleware; ToolSelectionMiddleware()",
        ("deepagents",),
    ),
]
"""What is done, each after the one before, and what none of it may have imported until then."""

ONE_BY_ONE = """
import json, sys
before, result = set(sys.modules), {{"imported": []}}
for statement, absent in {steps!r}:
    exec(statement)
    result["imported"] += [f"{{statement}}: {{name}}" for name in absent if name in sys.modules]
    if statement.endswith("portable"):
        new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
        result["portable"] = sorted(new - sys.stdlib_module_names)
sys.modules["deepagents"] = None
try:
    import langchain_tool_selection.deepagents
except ImportError as error:
    result["without deepagents"] = str(error)
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def imports(run_python):
    """Import one part after the other in a new process, the lightest first, and return what came with it."""
    return json.loads(run_python(ONE_BY_ONE.format(steps=STEPS)))


@pytest.mark.process
class TestImports:
    def test_nothing_is_imported_that_is_not_needed(self, imports):
        assert imports["imported"] == []

    def test_a_command_starts_without_what_only_others_need(self, run_python):
        code = (
            "import sys, langchain_tool_selection.cli; print(*{'langchain_core', 'numpy'} & {*sys.modules})"
        )
        assert run_python(code) == ""

    def test_the_portable_module_needs_the_standard_library_only(self, imports):
        assert imports["portable"] == ["langchain_tool_selection"]

    def test_without_deepagents_the_error_says_how_to_install_it(self, imports):
        said = imports["without deepagents"]
        assert "langchain_tool_selection.deepagents needs the package deepagents" in said
        assert "pip install 'langchain-tool-selection[deepagents]'" in said


@pytest.mark.parametrize("module", ["_run/state", "_run/discovery", "_run/call_tool"])
def test_modules_whose_annotations_are_read_at_run_time_do_not_postpone_them(module):
    tree = ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))
    postponed = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    assert postponed == []
    guards = [node for node in tree.body if isinstance(node, ast.If)]
    assert guards == [], "a name imported for type checkers only does not resolve at run time"
