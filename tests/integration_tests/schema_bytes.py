"""Plays a conversation with pruned schemas and writes the requests, for a test that varies the hash seed."""

from __future__ import annotations

import json
import sys

from .agents import discover, thread, user
from .exposures import StrictLog, agent_on, chat_completions
from .pruned import KEEP, tools


def main() -> None:
    log = StrictLog()
    script = [discover("deploy a service"), "Found.", "Sent."]
    agent = agent_on(chat_completions, script, log, "grow", tools=tools(), prune=KEEP)
    for text in ("send an email", "send another"):
        agent.invoke(user(text), thread())
    sys.stdout.write(json.dumps(log.payloads))


if __name__ == "__main__":
    main()
