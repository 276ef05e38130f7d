import ast
import inspect
from pathlib import Path

import pytest

import langchain_tool_selection

PACKAGE = Path(langchain_tool_selection.__file__).parent


def test_the_public_names_are_these_and_sorted():
    assert langchain_tool_selection.__all__ == [
        "ARITHMETIC",
        "AccessRuntime",
        "CacheUsage",
        "Catalog",
        "Collect",
        "Discovery",
        "EmbeddingRanker",
        "FieldWeights",
        "Hit",
        "HybridRanker",
        "LLMRanker",
        "LexicalRanker",
        "Payload",
        "Query",
        "Ranker",
        "Reason",
        "Route",
        "RuleRanker",
        "SchemaPruning",
        "Selection",
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


def test_the_public_names_are_the_lazily_importable_ones():
    assert set(langchain_tool_selection.__all__) == set(langchain_tool_selection._MODULE_OF)


def test_a_type_checker_sees_the_same_names_as_python():
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [alias.name for node in guarded.body for alias in node.names]
    assert sorted(imported) == langchain_tool_selection.__all__


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


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import langchain_tool_selection", ["langchain", "langchain_core", "langgraph", "numpy"]),
        (
            "from langchain_tool_selection import EmbeddingRanker, LexicalRanker, Query, "
            "ToolDocument, ToolIndex, select_tools; ToolIndex(LexicalRanker()).sync([{'name': 'a'}])",
            ["langchain.agents", "langgraph"],
        ),
    ],
    ids=["the package", "what works without an agent"],
)
def test_importing_loads_nothing_that_it_does_not_need(run_python, statement, absent):
    code = f"import sys; {statement}; print(*(name for name in {absent!r} if name in sys.modules))"
    assert run_python(code) == ""


def test_modules_below_the_run_know_no_agent(run_python):
    """By folder: a file that is added there is held to it without a word here."""
    folders = ["_ground", "_tools", "_ranking", "_selection"]
    modules = [
        "langchain_tool_selection." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for folder in folders
        for path in sorted((PACKAGE / folder).glob("*.py"))
        if path.stem != "__init__"
    ]
    public = ["portable", "registry", "router", "cost", "evals.catalogs"]
    modules += [f"langchain_tool_selection.{name}" for name in public]
    code = (
        "import sys; from importlib import import_module\n"
        f"for name in {modules!r}:\n"
        "    import_module(name)\n"
        "    if 'langchain.agents' in sys.modules or 'langgraph' in sys.modules: print(name); break"
    )
    assert run_python(code) == ""


@pytest.mark.parametrize("module", ["_run/state", "_run/discovery", "_run/call_tool"])
def test_modules_whose_annotations_are_read_at_run_time_do_not_postpone_them(module):
    tree = ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))
    postponed = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    assert postponed == []
    guards = [node for node in tree.body if isinstance(node, ast.If)]
    assert guards == [], "a name imported for type checkers only does not resolve at run time"
