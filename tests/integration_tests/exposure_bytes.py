"""Plays a conversation on each client and writes the requests, for a test that varies the hash seed."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import pytest

from .exposures import CLIENTS, TRANSPORTS, StrictLog, chat_completions, converse


async def main() -> None:
    wanted = [
        *((client, "append") for client in TRANSPORTS),
        *((client, "proxy") for client in CLIENTS),
        (chat_completions, "grow"),
        (chat_completions, "per_turn"),
    ]
    written = {}
    for client, exposure in wanted:
        log = StrictLog()
        try:
            with tempfile.TemporaryDirectory() as directory:
                await converse(client, exposure, "sync", Path(directory), log)
        except pytest.skip.Exception:
            continue
        written[f"{client.__name__} {exposure}"] = json.dumps(log.payloads)
    sys.stdout.write(json.dumps(written))


if __name__ == "__main__":
    asyncio.run(main())
