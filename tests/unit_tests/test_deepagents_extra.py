"""`langchain_tool_selection.deepagents` is an extra. What it does is tested on real deep agents."""

WITHOUT = """
import sys
sys.modules["deepagents"] = None
try:
    import langchain_tool_selection.deepagents
except ImportError as error:
    print(error)
"""


def test_without_deepagents_the_error_says_how_to_install_it(run_python):
    said = run_python(WITHOUT)
    assert "langchain_tool_selection.deepagents needs the package deepagents" in said
    assert "pip install 'langchain-tool-selection[deepagents]'" in said


def test_nothing_else_imports_deepagents(run_python):
    use = "from langchain_tool_selection import ToolSelectionMiddleware; ToolSelectionMiddleware()"
    assert run_python(f"import sys; {use}; print('deepagents' in sys.modules)") == "False"
