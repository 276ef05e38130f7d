"""Settings of the middleware, for tests that are about one field of one of its records."""

from dataclasses import fields
from typing import Any

from langchain_tool_selection import Access, Search, Thread

RECORDS = {"search": Search, "thread": Thread, "access": Access}


def grouped(**settings: Any) -> dict[str, Any]:
    """Return settings of `ToolSelectionMiddleware`, with fields of its records put into these.

    `grouped(keep_used=0)` is `{"thread": Thread(keep_used=0)}`.
    """
    for setting, record in RECORDS.items():
        names = [field.name for field in fields(record) if field.name in settings]
        if names:
            settings[setting] = record(**{name: settings.pop(name) for name in names})
    return settings
