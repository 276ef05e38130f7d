"""Smaller schemas: what a model needs to call a tool, without what it does not.

The schema that is sent shrinks, the tool that runs stays whole, so one promise must hold: **what is valid
for the pruned schema is valid for the original**. A rule may therefore narrow what a schema accepts, never
widen it. An object that loses optional parameters is closed (`additionalProperties: false`), because a
property that nobody describes any more could be anything.

Narrowing is safe only where the original's verdict follows from the part's: through `properties`, `items`,
`anyOf`. Under `not`, `if`, `oneOf`, or beside a keyword that counts or names properties, a narrower part can
make the whole wider or impossible. There only annotations go, which no validator reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any
from urllib.parse import unquote

from langchain_tool_selection._ground.sentences import first_paragraph, first_sentence
from langchain_tool_selection._ground.settings import check_count, check_flag
from langchain_tool_selection._tools import dialect
from langchain_tool_selection._tools.shapes import SCHEMA_KEYS, name_of, schema_of, unwrapped
from langchain_tool_selection.portable import check_names

_LARGEST = 5_000
"""Subschemas of a schema whose references are all resolved; beyond it they stay references. Definitions
that refer to each other twice double with every step, and a schema is a stranger's text."""

_ANNOTATIONS = dialect.META | {"description", "deprecated", "readOnly", "writeOnly"}

# Here a narrower part means a narrower whole.
_COVARIANT = frozenset({"properties", "additionalProperties", "items", "prefixItems", "anyOf"})
# Beside these it may not, or may leave nothing that is valid.
_ENTANGLED = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "contains", "propertyNames", "patternProperties"}
    | {"dependentSchemas", "dependentRequired", "minProperties", "unevaluatedItems", "unevaluatedProperties"}
    | {"$ref"}
)
_NOTE = re.compile(r"\s*(\(first \d+ of \d+ values\))$")
# What these refer to depends on the way on which they are met. Nothing is pruned rather than too much.
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})


@dataclass(frozen=True)
class SchemaPruning:
    """What is left of a tool's schema when it is sent.

    Required parameters always stay, nested ones too. Of the tool's description the first paragraph stays, of
    every other description the first sentence. Titles, defaults, examples, `$schema`, `$id` and `$comment`
    go, references are resolved. The tool itself is untouched: it accepts what it always accepted.

    Example:
        >>> options = {name: {"type": "string"} for name in ("image", "ports", "env", "user")}
        >>> schema = {"type": "object", "properties": options, "required": ["image"]}
        >>> list(prune_schema(schema, SchemaPruning(keep=["ports"]))["properties"])
        ['image', 'ports']

    Attributes:
        keep: Names of optional parameters that stay wherever they occur, nested ones too; or a mapping
            from a tool's name to the names that stay in that tool.
        keep_all_up_to: An object of so many properties or fewer keeps all of them. Larger ones keep the
            required ones and those in `keep`; a nested object that would be left with none keeps all.
        keep_if_none_required: Whether a tool that would be left without any parameter keeps them all as
            well. Some servers mark nothing as required, and say what is only in the descriptions. By
            default, such a tool's description names its parameters; see `prune_tool`.
        longest_enum: A list of values longer than this is cut to its first so many, and the description
            says so. What is listed is valid; the tool also takes what is not.
    """

    keep: Collection[str] | Mapping[str, Collection[str]] = field(default=(), hash=False)
    keep_all_up_to: int = 3
    keep_if_none_required: bool = False
    longest_enum: int = 20

    def __post_init__(self) -> None:
        check_count("keep_all_up_to", self.keep_all_up_to)
        check_count("longest_enum", self.longest_enum, at_least=1)
        check_flag("keep_if_none_required", self.keep_if_none_required)
        if isinstance(self.keep, Mapping):
            check_names("keep", list(self.keep))
            keep: Any = {
                tool: check_names(f"keep[{tool!r}]", names, "parameter") for tool, names in self.keep.items()
            }
        else:
            keep = check_names("keep", self.keep, "parameter")
        object.__setattr__(self, "keep", keep)

    def kept(self, tool: str) -> frozenset[str]:
        """Return the names of the optional parameters that stay in the tool of this name."""
        return frozenset(self.keep.get(tool, ()) if isinstance(self.keep, Mapping) else self.keep)

    def unknown(self, tools: Collection[Mapping[str, Any]]) -> list[str]:
        """Return what `keep` names and no tool has, sorted: `name`, or of a mapping `tool` or `tool.name`.

        Args:
            tools: Tool dicts, as `prune_tool` takes them, before pruning.
        """
        names = {name_of(tool) or "": frozenset(dialect.property_names(schema_of(tool))) for tool in tools}
        if not isinstance(self.keep, Mapping):
            return sorted(frozenset(self.keep).difference(*names.values()))
        known = self.keep.keys() & names.keys()
        lost = [f"{tool}.{name}" for tool in known for name in self.kept(tool) - names[tool]]
        return sorted([*self.keep.keys() - known, *lost])


def prune_tool(tool: Mapping[str, Any], options: SchemaPruning | None = None) -> dict[str, Any]:
    """Return a copy of a tool dict with its schema pruned and its description cut to one paragraph.

    A tool that would look as if it took nothing, because it requires none of its parameters, says in its
    description what they are called: `Also takes: limit, offset, filter, order.`

    Args:
        tool: OpenAI's shape (`{"type": "function", "function": {...}}`), or flat: `name`, `description` and
            a schema under `parameters`, `input_schema` or `inputSchema`. The result has the same shape.
            Where the schema is `None` it becomes one without parameters, because converters insist on
            one. A dict without a schema, such as a provider's own tool, comes back as it is. Other keys
            stay, except `input_examples`, which the pruned schema may not allow.
        options: What stays; the defaults if `None`.

    Raises:
        TypeError: `tool` is no mapping.
    """
    if not isinstance(tool, Mapping):
        raise TypeError(f"a tool to prune must be a dict, got {type(tool).__name__}")
    fields = unwrapped(tool)
    if fields is not tool:
        return {**deepcopy(dict(tool)), "function": prune_tool(fields, options)}
    key = next((key for key in SCHEMA_KEYS if key in tool), None)
    if key is None or not isinstance(tool[key], Mapping | None):
        return deepcopy(dict(tool))
    pruned = {k: deepcopy(v) for k, v in tool.items() if k not in (key, "input_examples")}
    pruned[key] = prune_schema(tool[key] or {}, options, tool=str(tool.get("name", "")))
    if isinstance(pruned.get("description"), str):
        pruned["description"] = first_paragraph(pruned["description"])
    if dropped := _all_dropped(tool[key] or {}, pruned[key]):
        pruned["description"] = f"{pruned.get('description') or ''}\nAlso takes: {dropped}.".lstrip()
    return pruned


def _all_dropped(parameters: Mapping[str, Any], pruned: Mapping[str, Any]) -> str:
    """Return the names of a tool's parameters if none of them is left, for a model to read."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping) or pruned["properties"]:
        return ""
    # On one line, because a blank one would end the paragraph that is kept.
    return ", ".join(" ".join(str(name).split()) for name in properties)


def prune_schema(
    parameters: Mapping[str, Any], options: SchemaPruning | None = None, *, tool: str = ""
) -> dict[str, Any]:
    """Return the pruned schema of a tool's arguments, as the module says and `SchemaPruning` sets it.

    The input is not changed and shares nothing with the result. The same input gives the same bytes;
    pruning again with the same options changes nothing. Recursive definitions stay references into
    `$defs`, which is the only way to say them exactly, and so do all references where resolving them would
    take more than 5,000 subschemas. A reference into nowhere, or out of the schema, is dropped.

    Args:
        parameters: The JSON schema of an object, of any draft. `{}` is a tool without parameters.
        options: What stays; the defaults if `None`.
        tool: The tool's name, for a `keep` that goes by tool.

    Raises:
        TypeError: `parameters` is no mapping.
    """
    if not isinstance(parameters, Mapping):
        raise TypeError(f"parameters must be a JSON schema as a dict, got {type(parameters).__name__}")
    options = options or SchemaPruning()
    for resolve in (True, False):
        with suppress(_Unresolvable):
            return _Pruner(parameters, options, options.kept(tool), resolve).root()
    return deepcopy(dict(parameters))


class _Unresolvable(Exception):  # noqa: N818  # says where to go on, not what went wrong
    """References of this schema cannot be resolved: they are recursive, too many, or for a validator only."""


class _Pruner:
    """One pass over one schema.

    `narrow` says whether the part at hand may accept less than the original; otherwise only annotations go.
    `scope` is what the references of the part are relative to; `None` is the root's.
    """

    def __init__(
        self, document: Mapping[str, Any], options: SchemaPruning, kept: frozenset[str], resolve: bool
    ) -> None:
        self._document, self._options, self._kept, self._resolve = document, options, kept, resolve
        self._size = 0
        self._names: dict[int, str] = {}
        self._definitions: dict[str, dialect.Schema] = {}

    def root(self) -> dict[str, Any]:
        pruned = self._schema(self._document, narrow=True, scope=None, root=True)
        # Arguments are an object, and providers insist that the schema says so.
        keywords = pruned if isinstance(pruned, dict) else {}
        definitions = {"$defs": self._definitions} if self._definitions else {}
        return {"type": "object", "properties": {}, **keywords, **definitions}

    @cached_property
    def _root_scope(self) -> dialect.Scope:
        return dialect.Scope.of(self._document)  # searches the whole schema, and most have no reference

    def _schema(
        self, node: Any, *, narrow: bool, scope: dialect.Scope | None, root: bool = False
    ) -> dialect.Schema:
        if not isinstance(node, Mapping):
            return node if isinstance(node, bool) else {}
        if _DYNAMIC & node.keys():
            raise _Unresolvable
        self._size += 1
        if self._resolve and self._size > _LARGEST:
            raise _Unresolvable
        fields, scope = self._follow(node, scope, root=root)
        fields = dialect.modern(fields)
        narrow = narrow and not _ENTANGLED & fields.keys()
        if "anyOf" in fields and fields.keys() - {"anyOf", "type", "description"}:
            narrow = False
        if narrow:
            self._narrow(fields, root=root)
        if "description" in fields:
            fields["description"] = _short(fields["description"])
        return {
            key: self._part(key, value, narrow and key in _COVARIANT, scope)
            for key, value in fields.items()
            if value != "" or key != "description"
        }

    def _part(self, key: str, value: Any, narrow: bool, scope: dialect.Scope | None) -> Any:
        if key in dialect.SINGLE:
            return self._inner(value, narrow, scope)
        if key in dialect.LISTS:
            return [self._inner(part, narrow, scope) for part in value]
        if key in dialect.NAMED:
            return {name: self._inner(part, narrow, scope) for name, part in value.items()}
        return deepcopy(value)

    def _inner(self, node: Any, narrow: bool, scope: dialect.Scope | None) -> dialect.Schema:
        if isinstance(node, Mapping) and isinstance(node.get("$id", node.get("id")), str):
            scope = (scope or self._root_scope).inside(node)
        return self._schema(node, narrow=narrow, scope=scope)

    def _narrow(self, fields: dict[str, Any], *, root: bool) -> None:
        values = fields.get("enum")
        if values and len(values) > self._options.longest_enum:
            fields["enum"] = values[: self._options.longest_enum]
            note = f"(first {len(fields['enum'])} of {len(values)} values)"
            fields["description"] = f"{_short(fields.get('description', ''))} {note}".lstrip()
        if "array" in fields.get("type", ()):
            fields.setdefault("items", {})  # says nothing, but OpenAI insists on it
        properties = fields.get("properties", {})
        kept = self._kept_properties(fields, properties, root=root)
        if len(kept) < len(properties):
            fields["properties"] = {name: properties[name] for name in kept}
            fields["additionalProperties"] = False

    def _kept_properties(
        self, fields: Mapping[str, Any], properties: Collection[str], *, root: bool
    ) -> list[str]:
        required = frozenset(fields.get("required", ()))
        # Closing the object would forbid what it requires but does not describe, or a map's own entries.
        open_ended = required - set(properties) or isinstance(fields.get("additionalProperties"), Mapping)
        if len(properties) <= self._options.keep_all_up_to or open_ended:
            return list(properties)
        kept = [name for name in properties if name in required or name in self._kept]
        spared = not root or self._options.keep_if_none_required
        return kept if kept or not spared else list(properties)

    def _follow(
        self, node: Mapping[str, Any], scope: dialect.Scope | None, *, root: bool
    ) -> tuple[Mapping[str, Any], dialect.Scope | None]:
        """Replace a reference by what it refers to, or by one into `$defs`; also return the scope of that."""
        seen: set[int] = set()
        while isinstance(reference := node.get("$ref"), str):
            rest = {key: value for key, value in node.items() if key != "$ref"}
            scope = scope or self._root_scope
            found, inner = scope.follow(reference) or (None, scope)
            target, place = _as_keywords(found), id(found)
            if target is None or place in seen:  # nowhere, or round in circles
                node = rest
            elif not self._resolve and not root:
                # The root's own properties are what providers look at: its reference is resolved once.
                return {**rest, "$ref": self._defined(reference, place, target, inner)}, scope
            elif place in scope.followed:
                raise _Unresolvable
            elif all(key in _ANNOTATIONS or target.get(key) == value for key, value in rest.items()):
                node, scope = {**target, **rest}, inner
                seen.add(place)
            else:
                both = [*rest.get("allOf", ()), {"$ref": reference}]
                return {**rest, "allOf": both}, scope
        return node, scope

    def _defined(self, reference: str, place: int, target: Mapping[str, Any], scope: dialect.Scope) -> str:
        if place not in self._names:
            last = re.split("[/#]", unquote(reference).rstrip("/#"))[-1]
            stem = name = re.sub(r"[^\w.-]", "_", last, flags=re.ASCII) or "root"
            for number in count(2):
                if name not in self._definitions:
                    break
                name = f"{stem}_{number}"
            self._names[place] = name
            self._definitions[name] = {}  # its place in the order; it may refer to itself
            self._definitions[name] = self._schema(target, narrow=False, scope=scope)
        return f"#/$defs/{self._names[place]}"


def _as_keywords(schema: Any) -> Mapping[str, Any] | None:
    """Return a schema as a mapping; `None` if it is no schema."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema if isinstance(schema, Mapping) else None


def _short(description: str) -> str:
    text, *note = _NOTE.split(description, maxsplit=1)
    return " ".join([first_sentence(text), *note]).strip()
