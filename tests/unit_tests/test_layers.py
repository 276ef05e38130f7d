"""The shape of the package, derived from its folders and files: who may import whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import langchain_tool_selection

PACKAGE = Path(langchain_tool_selection.__file__).parent
NAME = PACKAGE.name


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(path: Path) -> Iterator[str]:
    """Yield the modules of this package that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == NAME:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module


def room_of(module: str) -> str:
    """Return the folder of a module, or its own name if it stands at the top."""
    return module.split(".")[1] if "." in module else ""


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return the nodes that a walk along the arrows never gets out of; empty if there is no circle."""
    left = {node: set(targets) & graph.keys() - {node} for node, targets in graph.items()}
    while free := [node for node, targets in left.items() if not targets]:
        for node in free:
            del left[node]
        for targets in left.values():
            targets.difference_update(free)
    return sorted(left)


# The package's face hands names on and is imported by nobody inside.
INSIDE = {name: path for name, path in MODULES.items() if name != NAME}
ARROWS = {name: set(imports_of(path)) - {name} for name, path in INSIDE.items()}


def rooms() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for module, targets in ARROWS.items():
        graph.setdefault(room_of(module), set()).update(map(room_of, targets))
    return graph


def test_no_file_imports_itself_in_a_circle():
    assert circle_in(ARROWS) == []


def test_no_folder_imports_itself_in_a_circle():
    assert circle_in(rooms()) == []


def test_the_ground_uses_nothing_of_ours():
    assert rooms()["_ground"] <= {"_ground"}


@pytest.mark.parametrize(
    "room", sorted(room for room in rooms() if room.startswith("_") and room != "__main__")
)
def test_a_private_folder_imports_only_private_folders_and_what_stands_on_its_own(room):
    public = {target for target in rooms()[room] if not target.startswith("_")}
    assert public <= {"portable", "cost"}


def eager_imports(tree: ast.AST) -> Iterator[str]:
    """Yield what is imported as soon as the module is: not in functions, and not for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ):
            yield from eager_imports(node)


EAGER = {name: set(eager_imports(ast.parse(path.read_text("utf-8")))) for name, path in INSIDE.items()}
BELOW = ("_ground", "_tools", "_ranking", "_selection", "portable", "registry", "router", "cost")


def reached_from(module: str) -> set[str]:
    """Return all modules that importing one imports, itself included."""
    reached, left = set[str](), {module}
    while left:
        reached |= (here := left)
        left = {target for name in here for target in EAGER.get(name, ())} & INSIDE.keys() - reached
    return reached


def agent_in(module: str) -> bool:
    imported = {name for reached in reached_from(module) for name in EAGER[reached]}
    return any(name.startswith(("langchain.agents", "langgraph")) for name in imported)


@pytest.mark.parametrize("module", [name for name in INSIDE if room_of(name) in BELOW])
def test_what_lies_below_the_run_knows_no_agent(module):
    assert not agent_in(module)


def test_what_lies_above_does():
    assert agent_in(f"{NAME}.middleware")


def test_no_private_folder_imports_the_face_of_the_package():
    private = {name: targets for name, targets in ARROWS.items() if room_of(name).startswith("_")}
    assert [name for name, targets in private.items() if NAME in targets] == []


@pytest.mark.parametrize("path", MODULES.values(), ids=MODULES)
def test_every_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))
