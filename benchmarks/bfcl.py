"""`python -m benchmarks.bfcl --out DIR`: two sets from the Berkeley Function Calling Leaderboard.

Reads the data that ships in the PyPI package `bfcl-eval` (Apache-2.0, ShishirPatil/gorilla). The package
itself is not run, and what it depends on is not needed: `pip install --no-deps bfcl-eval`, or
`pip download --no-deps bfcl-eval` and `--wheel FILE`.

- `bfcl_live_multiple`: functions and requests that users contributed; the catalogue is every function that
  any request comes with.
- `bfcl_multiturn`: conversations over eight stateful APIs; one request for each turn that calls something,
  with the turns before it, and the tools called in them, as history.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

_DATA = "bfcl_eval/data/"
_APIS = (
    "gorilla_file_system", "math_api", "message_api", "posting_api", "ticket_api", "trading_bot",
    "travel_booking", "vehicle_control",
)  # fmt: skip
_CALL = re.compile(r"^\s*([\w.]+)\(")

Read = Callable[[str], list[dict[str, Any]]]
Row = dict[str, Any]


def reader(wheel: Path | None) -> Read:
    """Return what reads a file of JSON lines of the package, installed or as a wheel.

    Raises:
        FileNotFoundError: there is neither.
    """
    if wheel is not None:
        archive = zipfile.ZipFile(wheel)
        return lambda name: _lines(archive.read(_DATA + name).decode())
    try:
        paths = {str(path): path for path in files("bfcl-eval") or ()}
    except PackageNotFoundError as error:
        msg = "install the data with: pip install --no-deps bfcl-eval (or pass --wheel FILE)"
        raise FileNotFoundError(msg) from error
    return lambda name: _lines(paths[_DATA + name].read_text(encoding="utf-8"))


def live_multiple(read: Read) -> tuple[list[Row], list[Row]]:
    """Return tools and requests of the live, multiple-function part."""
    rows = read("BFCL_v4_live_multiple.json")
    answers = {row["id"]: row["ground_truth"] for row in read("possible_answer/BFCL_v4_live_multiple.json")}
    tools: dict[str, Row] = {}
    for row in rows:
        for function in row["function"]:
            tools.setdefault(function["name"], _tool(function, None))
    requests = [
        {
            "query": _user_text(row["question"][-1]),
            "relevant": _unique(name for call in answers[row["id"]] for name in call),
            "src": row["id"],
        }
        for row in rows
    ]
    return list(tools.values()), requests


def multi_turn(read: Read) -> tuple[list[Row], list[Row]]:
    """Return tools and requests of the multi-turn part."""
    tools: dict[str, Row] = {}
    for api in _APIS:
        for function in read(f"multi_turn_func_doc/{api}.json"):
            tools.setdefault(function["name"], _tool(function, api))
    answers = {row["id"]: row["ground_truth"] for row in read("possible_answer/BFCL_v4_multi_turn_base.json")}
    requests: list[Row] = []
    for row in read("BFCL_v4_multi_turn_base.json"):
        requests.extend(_turns(row["id"], row["question"], answers[row["id"]]))
    return list(tools.values()), requests


def _turns(source: str, questions: list[list[Row]], answers: list[list[str]]) -> Iterator[Row]:
    history: list[Row] = []
    for turn, (messages, calls) in enumerate(zip(questions, answers, strict=True)):
        text = _user_text(messages)
        called = [match[1] for call in calls if (match := _CALL.match(call))]
        if text and called:
            request = {"query": text, "relevant": _unique(called), "src": f"{source}/{turn}"}
            yield request | ({"history": list(history)} if history else {})
        if text:
            history.append({"role": "user", "content": text})
        history.append({"role": "assistant", "content": "", "tool_calls": called})


def _user_text(messages: list[Row]) -> str:
    return "\n".join(message["content"] for message in messages if message["role"] == "user").strip()


def _tool(function: Row, domain: str | None) -> Row:
    return {
        "name": function["name"],
        "description": function["description"],
        "parameters": _schema(function["parameters"]),
        "domain": domain,
    }


def _schema(node: Any) -> Any:
    """Return a schema in JSON Schema's words: the leaderboard calls an object "dict"."""
    if isinstance(node, list):
        return [_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: "object" if key == "type" and value == "dict" else _schema(value) for key, value in node.items()
    }


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _lines(text: str) -> list[Row]:
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def write(folder: Path, tools: list[Row], requests: list[Row]) -> None:
    """Write one set, without requests that need a function which is not in the catalogue."""
    names = {tool["name"] for tool in tools}
    kept = [request for request in requests if request["relevant"] and names.issuperset(request["relevant"])]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("tools", tools), ("queries", kept)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    print(f"{folder.name}: {len(tools)} tools, {len(kept)} requests")


def main() -> None:
    """Write both sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the sets")
    parser.add_argument("--wheel", type=Path, help="wheel of bfcl-eval, where it is not installed")
    options = parser.parse_args()
    read = reader(options.wheel)
    write(options.out / "bfcl_live_multiple", *live_multiple(read))
    write(options.out / "bfcl_multiturn", *multi_turn(read))


if __name__ == "__main__":
    main()
