"""Plays a conversation and writes the bytes of the tools of each model call, for a test that varies the hash seed."""

from __future__ import annotations

import json
import sys

from langgraph.checkpoint.memory import InMemorySaver

from langchain_tool_selection.testing import call, calls

from .agents import DISCOVER, answers, build, discover, thread, user


def main() -> None:
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
    sys.stdout.write(json.dumps([[c.schemas for c in model.calls], answers(result)]))


if __name__ == "__main__":
    main()
