"""`python -m langchain_tool_selection`."""

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from langchain_tool_selection.cli import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(
            f"The command line needs the package {error.name!r}. "
            "Install it with: pip install 'langchain-tool-selection[cli]'"
        )
    app()


if __name__ == "__main__":
    main()
