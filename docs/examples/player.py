"""A model that plays the requests of `cases.jsonl` for `docs/evaluation.md`, from a script.

It knows which tool it wants, and searches for one that it does not see. One request it gets wrong.
"""

import json
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_tool_selection.testing import ModelCall, ScriptedChatModel, call

LINES = Path(__file__).with_name("cases.jsonl").read_text("utf-8").splitlines()
WANTED = {case["query"]: case["relevant"][0] for case in map(json.loads, LINES)}
WANTED["how much is one share of Apple trading at?"] = "web_search"


def play(sent: ModelCall) -> AIMessage:
    """Return what the model says next, with its tokens at four characters each."""
    answer = next_step(sent)
    for made in answer.tool_calls:  # ids count as text, and those of a script are numbered over all that runs
        made["id"] = f"call_{len(sent.messages)}"
    tokens = count_tokens_approximately(sent.messages, tools=[*sent.schemas])
    answer.usage_metadata = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20}
    return answer


def next_step(sent: ModelCall) -> AIMessage:
    """Return a call of the tool that is wanted, a search for it, or the end."""
    said = next(message.text for message in reversed(sent.messages) if isinstance(message, HumanMessage))
    last, wanted = sent.messages[-1], WANTED[said]
    if isinstance(last, ToolMessage) and last.name != "discover_tools":
        return AIMessage("Done.")
    if wanted in sent.tools:
        return call(wanted)
    return call("discover_tools", query=wanted.replace("_", " "))


MODEL = ScriptedChatModel(script=play)
