"""Does what must not depend on the order of sets, and writes the results: `python -m ....in_every_process`.

The order of a set of strings differs from one process to the next, with the hash seed. The test beside this
module runs it under several seeds and compares what it writes, so that one import of LangChain serves all.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Overwrite

from langchain_tool_selection import Query, SchemaPruning, ToolDocument, ToolIndex, prune_tool
from langchain_tool_selection.evals import Case, evaluate
from langchain_tool_selection.testing import call, calls

from .agents import DISCOVER, PINS, answers, build, discover, pins, thread, user
from .exposures import CLIENTS, TRANSPORTS, StrictLog, agent_on, chat_completions, converse
from .pruned import KEEP, tools

sys.path.append(str(Path(__file__).parents[1] / "contracts"))

from test_lexical_ranker import DISTRACTORS, WISHED, WISHES, WORDY, rank, replace
from test_rankers import EVERY


def rankers() -> Any:
    words = "open close read write file mail issue user team page data note task plan step item".split()
    documents = [
        ToolDocument(
            "_".join([a, b, words[(i + j) % 16]]), f"{a} the {b} of {words[(i * j) % 16]}.", tags=(a, b)
        )
        for i, a in enumerate(words)
        for j, b in enumerate(words)
        if a != b
    ]
    requests = [
        "open the mail of a user",
        "wrte a note to teh team page",
        "plan item step task",
        "read data file",
    ]
    return {
        name: [
            ToolIndex(make()).sync(documents).search(Query(((text, 1.0), ("close it", 0.3))))
            for text in requests
        ]
        for name, make in EVERY.items()
    }


def sentences_and_servers() -> Any:
    documents = [replace(tool, domain=tool.name.partition("_")[0]) for tool in [*DISTRACTORS, *WISHED]]
    return rank(documents, ". ".join([WORDY, *WISHES]))


def fingerprints() -> Any:
    schema = {"properties": {name: {"description": name * 2} for name in "zyxabc"}}
    catalog = ToolIndex().sync([{"name": "weather", "domain": "meteo", "parameters": schema}])
    return [catalog.fingerprint, [document.fingerprint for document in catalog.documents]]


def a_pruned_tool() -> Any:
    names = ["env", "name", "ports", "volumes", "x"]
    parameters = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in [*names, *"abcdefgh"]},
    }
    return prune_tool({"name": "run", "parameters": parameters}, SchemaPruning(keep=names))


def a_report() -> Any:
    catalogue = [{"name": f"t{n}", "description": f"open w{n % 3}", "domain": f"d{n % 2}"} for n in range(9)]
    cases = [Case(f"open w{n}", (f"t{n}", f"t{n + 1}"), alternatives={f"t{n}": ("t8",)}) for n in range(5)]
    return {**evaluate(catalogue, cases, ks=(1, 2)).to_dict(), "micros": 0}


def a_set_of_pins() -> Any:
    agent, _ = build(["Done."], saver=InMemorySaver())
    agent.invoke(user("send an email"), thread())
    agent.update_state(thread(), {PINS: Overwrite([])})
    agent.update_state(thread(), {PINS: {f"tool_{number}" for number in range(12)}})
    return pins(agent, thread())


def tools_of_each_call() -> Any:
    script = [
        calls((DISCOVER, {"query": "music and pizza"}), (DISCOVER, {"query": "plants in the garden"})),
        call("play_music"),
        "Done.",
        discover("nothing of that kind"),
        "Done.",
    ]
    agent, model = build(
        script, saver=InMemorySaver(), top_k=4, always_include={"lock_door", "send_email", "resize_image"}
    )
    agent.invoke(user("book a flight, convert currency, track the parcel and schedule a meeting"), thread())
    result = agent.invoke(user("and now?"), thread())
    return [[sent.schemas for sent in model.calls], answers(result)]


def pruned_requests() -> Any:
    log = StrictLog()
    script = [discover("deploy a service"), "Found.", "Sent."]
    agent = agent_on(chat_completions, script, log, "grow", tools=tools(), prune=KEEP)
    for text in ("send an email", "send another"):
        agent.invoke(user(text), thread())
    return log.payloads


def exposures() -> Any:
    wanted = [
        *((client, "append") for client in TRANSPORTS),
        *((client, "proxy") for client in CLIENTS),
        *((client, "stubs") for client in CLIENTS),
        (chat_completions, "grow"),
        (chat_completions, "per_turn"),
    ]
    written = {}
    for client, exposure in wanted:
        log = StrictLog()
        try:
            with tempfile.TemporaryDirectory() as directory:
                asyncio.run(converse(client, exposure, "sync", Path(directory), log))
        except pytest.skip.Exception:
            continue
        written[f"{client.__name__} {exposure}"] = log.payloads
    return written


RESULTS: list[Callable[[], Any]] = [
    rankers, sentences_and_servers, fingerprints, a_pruned_tool, a_report, a_set_of_pins, tools_of_each_call,
    pruned_requests, exposures,
]  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(json.dumps({make.__name__: json.dumps(make(), default=repr) for make in RESULTS}))
