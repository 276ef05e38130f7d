"""`python -m benchmarks.pruning --data DIR`: what schema pruning saves, and whether every result is sound.

Every tool of every catalogue is pruned. The result must be valid JSON Schema, keep every required parameter
at every depth, pass LangChain's converters for OpenAI and Anthropic, not change when pruned again, and allow
no arguments that the original refuses. That last check takes one set of arguments a tool, with everything
filled in that the pruned schema describes; it is skipped where the original is itself no valid schema, and
for the few schemas that no such arguments were made for. The command fails if a check fails.

A tool's tokens are those of its name, description and schema as JSON. Savings are over the sum of tokens, so
large catalogues count for more; `sealtools`, made up by a model and more than half of all tools, is also left
out, because its short schemas say little about those of real software.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for
from langchain_anthropic.chat_models import convert_to_anthropic_tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks import report
from benchmarks.datasets import Dataset, read_datasets
from langchain_tool_selection._tools.schema import SchemaPruning, prune_tool
from langchain_tool_selection._tools.tokens import count_tokens
from langchain_tool_selection.demo.mcp_servers import Workplace, install_servers, load_tools

OPTIONS = {
    "default": SchemaPruning(),
    "keep_if_none_required": SchemaPruning(keep_if_none_required=True),
}
MADE_UP = "sealtools"

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def measure(data: Dataset, options: SchemaPruning, models: Sequence[str | None]) -> dict[str, Any]:
    """Prune every tool of a catalogue; return tokens by counter, what was lost, and failed checks by kind."""
    whole = [_tool(row) for row in data.tools]
    pruned = [prune_tool(tool, options) for tool in whole]
    failed: dict[str, list[str]] = {}
    for before, after in zip(whole, pruned, strict=True):
        for check in failures(before, after, options):
            failed.setdefault(check, []).append(before["name"])
    return {
        "tools": len(whole),
        "originals_that_are_valid_schemas": sum(_is_schema(tool["parameters"]) for tool in whole),
        "arguments_checked": sum(_allows(*pair) is not None for pair in zip(whole, pruned, strict=True)),
        "left_without_parameters": sum(
            bool(before["parameters"].get("properties")) and not after["parameters"]["properties"]
            for before, after in zip(whole, pruned, strict=True)
        ),
        "failed": failed,
        "tokens": dict(_tokens(whole, pruned, model) for model in models),
    }


def served(folder: Path) -> Dataset:
    """Return the tools of the demo's five MCP servers, which are installed into `folder` and started."""
    with tempfile.TemporaryDirectory() as place:
        tools = asyncio.run(load_tools(install_servers(folder), Workplace.make(Path(place))))
    return Dataset("mcp_servers", tuple(convert_to_openai_tool(tool)["function"] for tool in tools), ())


def failures(before: dict[str, Any], after: dict[str, Any], options: SchemaPruning) -> Iterator[str]:
    """Yield what is wrong with a pruned tool."""
    original, schema = before["parameters"], after["parameters"]
    if not _is_schema(schema):
        yield "schema"
        return
    if list(lost(original, schema)):
        yield "required"
    if json.dumps(prune_tool(after, options)) != json.dumps(after):
        yield "again"
    try:
        if convert_to_openai_tool(after)["function"]["parameters"] != schema:
            yield "openai"
        if convert_to_anthropic_tool(after)["input_schema"] != schema:
            yield "anthropic"
    except (KeyError, TypeError, ValueError):
        yield "converters"
    if _allows(before, after) is False:
        yield "arguments"


def lost(original: Any, pruned: Any) -> Iterator[str]:
    """Yield required parameters that a pruned schema, or a part that is left of it, no longer has."""
    if not (isinstance(original, Mapping) and isinstance(pruned, Mapping)):
        return
    properties = original.get("properties") or {}
    for name in original.get("required") or ():
        if name not in pruned.get("required", ()) or (
            name in properties and name not in pruned.get("properties", {})
        ):
            yield name
    for name, part in (pruned.get("properties") or {}).items():
        yield from lost(properties.get(name), part)
    yield from lost(original.get("items"), pruned.get("items"))
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part, left in zip(original.get(keyword, ()), pruned.get(keyword, ()), strict=True):
            yield from lost(part, left)


def example(schema: Any) -> Any:
    """Return arguments for a schema, with every property filled in."""
    if not isinstance(schema, Mapping):
        return None
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema and "properties" not in schema:
            return example(schema[keyword][0])
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][-1]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: example(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        fixed = [example(part) for part in schema.get("prefixItems", ())]
        items = schema.get("items", {})
        if fixed or items is False or "$ref" in items:  # recursive definitions end here
            return fixed
        return [example(items)] * max(1, schema.get("minItems", 0))
    if kind in ("integer", "number"):
        above = schema.get("exclusiveMinimum")
        return schema.get("minimum", above + 1 if above is not None else min(1, schema.get("maximum", 1)))
    texts = {"date-time": "2026-01-31T12:00:00Z"}
    simple = {"boolean": True, "null": None}
    return simple.get(kind, texts.get(schema.get("format", ""), "G" * max(1, schema.get("minLength", 0))))


def _allows(before: dict[str, Any], after: dict[str, Any]) -> bool | None:
    """Whether the original allows arguments made for the pruned tool; `None` if that cannot be told."""
    original, arguments = before["parameters"], example(after["parameters"])
    if not _is_schema(original) or not Draft202012Validator(after["parameters"]).is_valid(arguments):
        return None
    return bool(_validator(original)(original).is_valid(arguments))


def _tool(row: Mapping[str, Any]) -> dict[str, Any]:
    parameters = row["parameters"] or NO_PARAMETERS
    return {"name": row["name"], "description": row["description"] or "", "parameters": parameters}


def _tokens(
    whole: list[dict[str, Any]], pruned: list[dict[str, Any]], model: str | None
) -> tuple[str, dict[str, Any]]:
    counts = {
        part: (count_tokens(map(take, whole), model).tokens, count_tokens(map(take, pruned), model).tokens)
        for part, take in (("tools", dict), ("parameters", lambda tool: tool["parameters"]))
    }
    return count_tokens([], model).counter, {part: list(pair) for part, pair in counts.items()}


def _validator(schema: Mapping[str, Any]) -> Any:
    return validator_for(schema, default=Draft202012Validator)


def _is_schema(schema: Mapping[str, Any]) -> bool:
    try:
        _validator(schema).check_schema(schema)
    except SchemaError:
        return False
    return True


def total(rows: Mapping[str, dict[str, Any]], counter: str, part: str) -> list[int]:
    """Return tokens before and after over all of `rows`."""
    pairs = [row["tokens"][counter][part] for row in rows.values()]
    return [sum(pair[side] for pair in pairs) for side in (0, 1)]


def saved(pair: Sequence[int]) -> float:
    """Return how much of the first number the second saves, in percent."""
    return round(100 * (1 - pair[1] / pair[0]), 1)


def summary(rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return savings in percent over all catalogues together and over all but the made-up one."""
    real = {name: row for name, row in rows.items() if name != MADE_UP}
    return {
        counter: {
            f"{part} of {group}": saved(total(chosen, counter, part))
            for group, chosen in (("all", rows), (f"all but {MADE_UP}", real))
            if chosen
            for part in ("tools", "parameters")
        }
        for counter in next(iter(rows.values()))["tokens"]
    }


def show(name: str, rows: Mapping[str, dict[str, Any]], counter: str) -> None:
    """Print one table."""
    real = {key: row for key, row in rows.items() if key != MADE_UP}
    lines = []
    for title, chosen in [
        *((key, {key: row}) for key, row in rows.items()),
        ("all", rows),
        (f"all but {MADE_UP}", real),
    ]:
        if not chosen:
            continue
        cells = [
            cell
            for part in ("tools", "parameters")
            for pair in [total(chosen, counter, part)]
            for cell in (f"{pair[0]:,} → {pair[1]:,}", f"{saved(pair)}")
        ]
        bare = sum(row["left_without_parameters"] for row in chosen.values())
        lines.append([title, sum(row["tools"] for row in chosen.values()), *cells, bare])
    header = ["catalogue", "tools", "tokens", "saved %", "of parameters", "saved %", "left without any"]
    print(f"\n## {name}, {counter}\n\n{report.table(header, lines)}", flush=True)


def main() -> int:
    """Run the benchmark, print tables and write the result file; return 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pruning", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of sets; see benchmarks/README.md")
    parser.add_argument("--mcp", type=Path, help="folder for the demo's MCP servers, to measure their tools")
    parser.add_argument("--sets", nargs="+", default=[], help="names of sets; all by default")
    parser.add_argument(
        "--model", default="gpt-5.5", help="count by this model's tokenizer too, if it is here"
    )
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="folder for the result file")
    options = parser.parse_args()
    models = [None] if count_tokens([], options.model).counter == "approximate" else [None, options.model]
    if not (options.data or options.mcp):
        parser.error("--data or --mcp is required")
    datasets = read_datasets(options.data, options.sets) if options.data else []
    datasets += [served(options.mcp)] if options.mcp else []
    results = {
        name: {data.name: measure(data, chosen, models) for data in datasets}
        for name, chosen in OPTIONS.items()
    }
    content = {
        **report.provenance("benchmarks.pruning"),
        "saved_percent": {name: summary(rows) for name, rows in results.items()},
        "catalogues": results,
    }
    print(report.save("pruning", content, options.out).name)
    failed = False
    for name, rows in results.items():
        for counter in next(iter(rows.values()))["tokens"]:
            show(name, rows, counter)
        for catalogue, row in rows.items():
            for check, tools in row["failed"].items():
                failed = True
                print(f"- {catalogue}: {check} failed for {len(tools)}: {', '.join(tools[:5])}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
