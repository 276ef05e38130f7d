"""What the model is told: sentences over what was found, and over calls that were not made. All of it pure.

Text of a tool is a stranger's: it is quoted as one plain line, and never more of it than a few hundred
characters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from langchain_core.tools import BaseTool

from langchain_tool_selection._ground.sentences import first_paragraph
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.index import CatalogView, plain_domain
from langchain_tool_selection._run.finding import Findings, Search
from langchain_tool_selection._tools.arguments import compact_parameters, mistake_in
from langchain_tool_selection._tools.definitions import Definitions, definition_of
from langchain_tool_selection._tools.documents import ToolDocument

_LINE = 200
"""Characters of a description that are quoted; enough for its first sentence or two."""

_NAME = 80
"""Characters of a name that a model made up."""

_SCHEMAS = 3
"""How many tools come with their schema in one answer; real ones take up to 900 tokens."""

_OVERVIEW = 20
"""Domains that an overview names."""

_PARAMETERS = 2_000
"""Characters of the names of a tool's parameters."""

_LISTED = 8
"""Names or domains listed in one sentence."""

_OWN_LISTED = 40
"""How many of its tools a model is reminded of when it calls another."""

_ERROR = 300
"""Characters of an error that are quoted: it may quote the argument in turn."""


# -- searches ----------------------------------------------------------------------------------------------


def quoted(findings: Findings) -> list[str]:
    """Return the tools of which the answer has the schema."""
    quotes = findings.search.quotes_schemas
    return [
        one.name for one in findings.found[:_SCHEMAS] if quotes and one.name in findings.search.registered
    ]


def overview_of(domains: Mapping[str, int]) -> str:
    """Return domains with their numbers of tools on one line, the largest first; empty without any."""
    largest = sorted(domains.items(), key=lambda item: -item[1])[:_OVERVIEW]
    listed = ", ".join(f"{domain} ({count})" for domain, count in largest)
    more = f" and {len(domains) - _OVERVIEW} more" if len(domains) > _OVERVIEW else ""
    return f"There are tools for: {listed}{more}." if domains else ""


def answer_to_search(findings: Findings, definitions: Definitions) -> str:
    """Return the search tool's answer."""
    catalog = findings.search.catalog
    match findings.search.status:
        case "nothing hidden":
            return "Nothing is hidden: your list has all tools. Call one of them, or answer without a tool."
        case "too many searches":
            return "No more searches for this request: use the tools that you have, or answer without one."
    if catalog is None:
        return "The tool catalogue has changed. Call this again with the same words."
    if not (findings.matches or findings.unusable):
        return _no_match(findings.search, catalog)
    return "\n".join(_about_matches(findings, catalog, definitions))


def _about_matches(findings: Findings, catalog: CatalogView, definitions: Definitions) -> Iterator[str]:
    if findings.found and findings.search.quotes_schemas:
        yield from _with_schemas(findings, definitions)
    elif findings.found:
        yield _found(findings.found)
    for name, why in findings.unusable.items():
        yield f"`{one_line(name, _LINE)}` cannot be used with this model: {why}."
    if findings.visible:
        yield _already_available(findings)
    if findings.search.is_repeated and not findings.found:
        yield "Searching again with these words finds nothing else."
    yield from _about_twins(catalog, findings.found)
    yield from _about_names(findings, catalog)
    if findings.search.asked.names and definitions.are_pruned and not findings.search.quotes_schemas:
        yield from _in_full(findings)


def _found(documents: Sequence[ToolDocument]) -> str:
    lines = [_line(document) for document in documents]
    if len(lines) == 1:
        stop = "" if lines[0].endswith((".", "!", "?", "…")) else "."
        return f"Found tool {lines[0]}{stop} It is now available for the rest of this conversation."
    listed = "\n".join(f"- {line}" for line in lines)
    return f"Found {len(lines)} tools, now available for the rest of this conversation:\n{listed}"


def _already_available(findings: Findings) -> str:
    names = ", ".join(f"`{one_line(document.name, _LINE)}`" for document in findings.visible)
    are, one = ("is", "it") if len(findings.visible) == 1 else ("are", "one")
    other = "" if findings.found else " If that is not what you need, search with other words."
    return f"{names} {are} already available: call {one} directly.{other}"


def _with_schemas(findings: Findings, definitions: Definitions) -> Iterator[str]:
    lines = {
        document.name: f"- {_line(document)}\n  {_parameters(findings, document, place, definitions)}"
        for place, document in enumerate(findings.found)
    }
    direct = [line for name, line in lines.items() if name not in findings.by_call_tool]
    if direct:
        yield f"Found {len(direct)}. Call by name:\n" + "\n".join(direct)
    if by_call_tool := [line for name, line in lines.items() if name in findings.by_call_tool]:
        call = f"{findings.search.settings.call_name}(name, arguments)"
        yield f"Found {len(by_call_tool)}. Call by {call}, not directly:\n" + "\n".join(by_call_tool)


def _parameters(findings: Findings, document: ToolDocument, place: int, definitions: Definitions) -> str:
    tool = findings.search.registered.get(document.name)
    if place >= _SCHEMAS:
        return f"its parameters: ask for names=['{one_line(document.name, _LINE)}']"
    if tool is None:  # other middleware brought it into the request
        return f"parameters: {_parameter_names(document)}"
    if document.name in findings.search.asked.names:
        return f"parameters: {compact_parameters(definition_of(tool))}"
    return f"parameters: {_takes(tool, document, definitions)}"


def _takes(tool: BaseTool, document: ToolDocument, definitions: Definitions) -> str:
    """Return a tool's schema, pruned as it is where it is sent."""
    takes = compact_parameters(definitions.of(tool))
    if '"properties":{}' in takes and document.parameters:  # all were pruned
        takes += f"; it also takes {_parameter_names(document)}"
    return takes


def _about_twins(catalog: CatalogView, found: Iterable[ToolDocument]) -> Iterator[str]:
    for name in (document.name for document in found):
        group = catalog.alike.get(name, name)
        twins = [n for n in catalog.names if n != name and catalog.alike.get(n, n) == group]
        if group in catalog.alike.values() and twins:
            yield f"`{one_line(name, _LINE)}` says the same as: {_listed(twins)}."


def _in_full(findings: Findings) -> Iterator[str]:
    for document in findings.matches[:_SCHEMAS]:
        if (tool := findings.search.registered.get(document.name)) is not None:
            whole = compact_parameters(definition_of(tool))
            yield f"All that `{one_line(document.name, _LINE)}` takes: {whole}"


def _about_names(findings: Findings, catalog: CatalogView) -> Iterator[str]:
    matched = {*findings.unusable, *(document.name for document in findings.matches)}
    names = findings.search.asked.names
    if unknown := _listed(name for name in names if name not in catalog.names):
        yield f"There is no tool named: {unknown}."
    if left := _listed(name for name in names if name in catalog.names and name not in matched):
        yield f"Not added, because one search adds {findings.search.settings.max_results} at most: {left}."


def _no_match(search: Search, catalog: CatalogView) -> str:
    asked, groups = search.asked, _groups(catalog)
    quoted = one_line(" ".join([asked.text, *asked.names]), _NAME)
    if not quoted and not asked.domain:
        return "Say what the tool should do: a verb and an object, such as 'send an email'."
    if not quoted:
        return f"There are no tools in '{asked.domain}'.{groups}"
    if search.is_repeated:
        return (
            f"Still no tool matches '{quoted}', and searching again for it will not change that. "
            "Use other words, or answer without a tool."
        )
    where = f" in '{asked.domain}'" if asked.domain else ""
    return (
        f"No tool matches '{quoted}'{where}. Try other words for it: what it does, and to what.{groups} "
        "If nothing fits, answer without a tool."
    )


def _groups(catalog: CatalogView) -> str:
    domains = _listed(catalog.domains)
    return f" Tools are grouped by: {domains}." if domains else ""


def _line(document: ToolDocument) -> str:
    """Return a tool's name, where it comes from if that is known, and what it says of itself."""
    source = f" ({plain_domain(document.domain)})" if document.domain else ""
    # What follows the first paragraph in a docstring is about arguments and results.
    summary = one_line(first_paragraph(document.description), _LINE)
    return f"`{one_line(document.name, _LINE)}`{source}: {summary}"


def _parameter_names(document: ToolDocument) -> str:
    return one_line(", ".join(name for name, _ in document.parameters), _PARAMETERS)


def _listed(words: Iterable[str]) -> str:
    distinct = [one_line(word, 40) for word in dict.fromkeys(words) if word]
    more = f" and {len(distinct) - _LISTED} more" if len(distinct) > _LISTED else ""
    return ", ".join(distinct[:_LISTED]) + more


# -- calls -------------------------------------------------------------------------------------------------


def no_such_tool(name: str) -> str:
    """Return the answer to a call of a tool that does not exist, or that the run may not use."""
    return f"There is no tool named `{one_line(name, _NAME)}`."


def not_shown(name: str) -> str:
    """Return the answer to a call of a tool that has to be found first."""
    return f"`{one_line(name, _NAME)}` is not in your list, so it was not called."


def with_alternatives(text: str, names: Sequence[str], search_tool: str | None) -> str:
    """Return an answer, and behind it the tools that there are, and how to find others."""
    others = [one_line(name, _NAME) for name in names]
    if others:
        text += f" Your tools: {', '.join(others[:_OWN_LISTED])}."
    return text if search_tool is None else f"{text} Find others with {search_tool}."


def answer_to_stub(tool: BaseTool, document: ToolDocument, mistake: str, definitions: Definitions) -> str:
    """Return the answer to a wrong call of a tool whose schema the model has not read."""
    takes = _takes(tool, document, definitions)
    return f"{_not_called(tool.name, mistake)} Call it again. It takes: {takes}"


def _not_called(name: str, mistake: str) -> str:
    return f"`{one_line(name, _NAME)}` was not called: {one_line(mistake, _ERROR)}."


def answer_to_call_tool(
    name: str, arguments: object, known: Collection[str], registered: Mapping[str, BaseTool], search_tool: str
) -> str:
    """Return what is wrong with a call of `call_tool`.

    Args:
        name: The tool that it names.
        arguments: The arguments that it gives.
        known: Names of the tools that the run can find.
        registered: Those of them whose schemas are at hand.
        search_tool: The search tool's name.
    """
    quoted = one_line(name, _NAME)
    if name not in known:
        return f"{no_such_tool(name)} Find one with {search_tool}, and use the name that it gives."
    tool = registered.get(name)
    if tool is None:
        # Other middleware brought it into the request; its schema is out of reach here.
        return f"`{quoted}` was not called: the arguments do not fit its parameters."
    mistake = mistake_in(tool, arguments)
    if not mistake:
        return f"`{quoted}` was not called. Call it once more, with the same arguments."
    takes = compact_parameters(definition_of(tool))
    return f"{_not_called(name, mistake)} It takes: {takes}"
