"""`made_once`: what is made of a tool, remembered by the tool's content for as long as the tool is in use.

Tools come as the same objects again and again, as copies that other middleware marked, or made anew for each
request, and any of them may be changed by attribute. So there are two levels. A *reading* says what the
attributes of a tool hold right now: it is found by `content_key`, which counts the schema and the metadata by
identity, and it keeps these alive, so that no other object can have their address. Tools of equal content,
whatever objects they are, share one `ToolFacts`, which has what was made of them. Facts are looked up when
something is first made: most tools are hidden, and only their documents are ever asked for.

Both levels hold nothing by themselves. A reading lives as long as the tool that it was made for, or as long
as somebody keeps it; facts live as long as one of their readings, or as long as somebody keeps them.
`ToolIndex` keeps those of the catalogues in use. So memory goes by the tools in use, and there is no number
of tools from which on they are read again.
"""

from __future__ import annotations

import marshal
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakValueDictionary, ref

from langchain_tool_selection._tools.documents import ToolDocument, content_key, document_of
from langchain_tool_selection._tools.shapes import is_harness_tool

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

T = TypeVar("T")


class ToolFacts:
    """What was made of the tools of one content.

    Attributes:
        made: It, by kind.
    """

    __slots__ = ("__weakref__", "_lock", "made")

    def __init__(self) -> None:
        self.made: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def make(self, kind: Hashable, make: Callable[[], T]) -> T:
        """Return what is made of this kind. Who asks at the same time waits for the first to make it."""
        with self._lock:
            if kind not in self.made:
                self.made[kind] = make()
            return cast("T", self.made[kind])


class Reading:
    """What a tool's attributes held when it was read.

    Attributes:
        facts: What was made of tools of its content; `None` before anything was.
        visible: What to change of it so that nothing invisible is sent; `None` before anybody asked. It costs
            less than to look for the facts.
    """

    __slots__ = ("__weakref__", "_document", "_metadata", "_schema", "facts", "visible")

    def __init__(self, tool: BaseTool) -> None:
        self.facts: ToolFacts | None = None
        self.visible: Mapping[str, Any] | None = None
        self._document: ToolDocument | None = None
        # What counts by identity in the key has to stay alive as long as the key does.
        self._schema, self._metadata = tool.args_schema, tool.metadata

    def document(self, tool: BaseTool) -> ToolDocument:
        """Return what is indexed of the tool, without anybody's hints."""
        if self._document is None:
            self._document = document_of(tool)
        return self._document

    def is_of(self, document: ToolDocument, facts: ToolFacts) -> bool:
        """Whether a tool that has them now is as it was when it was read."""
        return self.facts in (None, facts) and self._document in (None, document)


_readings: WeakValueDictionary[tuple[Any, ...], Reading] = WeakValueDictionary()
_facts: WeakValueDictionary[Hashable, ToolFacts] = WeakValueDictionary()
_held: dict[int, tuple[Reading, ref[Any]]] = {}
"""The newest reading of each tool that lives, by the tool's address."""

_lock = threading.RLock()


def reading_of(tool: Any) -> Reading | None:
    """Return the reading of a LangChain tool; `None` for anything else."""
    try:
        key = content_key(tool)
        return _readings.get(key) or _read(tool, key)
    except (AttributeError, TypeError):
        return None


def documents_of(tools: Iterable[Any]) -> tuple[list[ToolDocument], list[Reading]]:
    """Return the documents of tools of any kind, and the readings of those that are LangChain tools.

    Raises:
        TypeError: one of them has no name.
    """
    documents, readings = [], []
    for tool in tools:
        if isinstance(tool, ToolDocument):
            documents.append(tool)
            continue
        try:  # as in `reading_of`: this is on the path of each model call, and a call is dear
            reading = _readings.get(content_key(tool)) or reading_of(tool)
        except (AttributeError, TypeError):
            reading = None
        if reading is None:  # reading it again is cheap enough
            documents.append(document_of(tool))
        else:
            documents.append(reading.document(tool))
            readings.append(reading)
    return documents, readings


def made_once(tool: BaseTool, kind: Hashable, make: Callable[[BaseTool], T]) -> T:
    """Return what `make` gives for a tool: called once for tools of equal content.

    Args:
        tool: The tool.
        kind: What is made, and by which settings.
        make: Makes it. What it gives is shared, and must not be changed. Never `None`.
    """
    reading = reading_of(tool)
    if reading is None:
        return make(tool)
    if reading.facts is not None and (made := reading.facts.made.get(kind)) is not None:
        return cast("T", made)
    # A schema may have been changed in place since it was read. That costs little beside what is made now.
    return _facts_of(tool, reading).make(kind, lambda: make(tool))


def _read(tool: Any, key: tuple[Any, ...]) -> Reading | None:
    # Without an import, which a program that only ranks should not pay for: such a tool has loaded it.
    langchain = sys.modules.get("langchain_core.tools")
    if langchain is None or not isinstance(tool, langchain.BaseTool):
        return None
    with _lock:
        return _readings.get(key) or _read_anew(tool, key)


def _read_anew(tool: BaseTool, key: tuple[Any, ...]) -> Reading:
    """Read a tool, and keep what was read for as long as the tool lives."""
    reading = _readings[key] = Reading(tool)
    address, forget = id(tool), _held.pop
    _held[address] = reading, ref(tool, lambda _: forget(address, None))
    return reading


def _facts_of(tool: BaseTool, reading: Reading) -> ToolFacts:
    """Return the facts of what a tool holds now, which its reading has from then on."""
    document = document_of(tool)
    content = _content(tool, document)
    with _lock:
        facts = _facts.get(content)
        if facts is None:
            facts = _facts[content] = ToolFacts()
        if not reading.is_of(document, facts):
            reading = _read_anew(tool, content_key(tool))
        reading.facts = facts
    return facts


def _content(tool: BaseTool, document: ToolDocument) -> Hashable:
    """Return a key for all that anything is made of: the document, and what LangChain's definition says."""
    schema = tool.args_schema
    # One of OpenAI's tools that take free text, whose format is no schema.
    custom = tool.metadata if (tool.metadata or {}).get("type") == "custom_tool" else None
    hints = (document.examples, document.tags, document.domain)
    if isinstance(schema, dict | None):
        # The oldest version knows no references to equal parts, so that equal content has equal bytes.
        with suppress(ValueError):  # it holds what JSON cannot, or has no end
            said = marshal.dumps((tool.name, tool.description, hints, schema, custom), 0)
            return type(tool), is_harness_tool(tool), blake2b(said, digest_size=16).digest()
    return type(tool), is_harness_tool(tool), tool.name, tool.description, hints, _Same(schema), _Same(custom)


class _Same:
    """Equal for one and the same object, which it keeps alive."""

    __slots__ = ("_object",)

    def __init__(self, object_: Any) -> None:
        self._object = object_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)
