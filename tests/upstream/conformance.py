"""Run LangChain's own agent tests with `ToolSelectionMiddleware` in every agent: `make test-upstream`.

The tests come with LangChain's source distribution on PyPI, in the version that is installed here. They run once
as they are. Those that pass and build an agent then run in each mode of `selection_plugin`. A test that fails in
a mode has to be in `differences.toml` for that mode, with the reason, and whatever is there has to fail.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from selection_plugin import MODES, Outcome

HERE = Path(__file__).resolve().parent
CACHE = Path(sys.prefix) / "upstream"
TESTS = "tests/unit_tests/agents"
TIMEOUT_SECONDS = 900

Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True)
class Difference:
    """Tests that fail with the middleware, and why that is right.

    Attributes:
        tests: Test ids; `*` stands for any text, all else for itself.
        modes: Names of modes, likewise.
        reason: Why these tests fail in these modes.
    """

    tests: tuple[str, ...]
    modes: tuple[str, ...]
    reason: str

    def covers(self, test: str, mode: str) -> bool:
        """Return whether this difference is about a test in a mode."""
        return any(matches(test, each) for each in self.tests) and any(
            matches(mode, each) for each in self.modes
        )


def matches(text: str, pattern: str) -> bool:
    """Return whether a text fits a pattern; test ids have brackets, so that fnmatch does not do."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None


def read_differences(file: Path) -> list[Difference]:
    """Return the differences that a TOML file lists."""
    return [
        Difference(tuple(each["tests"]), tuple(each["modes"]), each["reason"])
        for each in tomllib.loads(file.read_text("utf-8"))["difference"]
    ]


def problems(
    tests: Collection[str], outcomes: Mapping[str, Outcomes], differences: Collection[Difference]
) -> Iterator[str]:
    """Yield what is not as the list of differences says.

    Args:
        tests: Ids of the tests that pass without the middleware and build an agent.
        outcomes: What became of them, by mode and test.
        differences: The list.
    """
    for mode, by_test in outcomes.items():
        for test in sorted(tests):
            failed, error = failure(by_test, test)
            listed = any(each.covers(test, mode) for each in differences)
            if failed and not listed:
                yield f"{test} passes without us and fails in {mode}: {error}"
            if listed and not failed:
                yield f"{test} passes in {mode}, and differences.toml says that it fails"
    for difference in differences:
        for pattern in difference.tests:
            if not any(matches(test, pattern) for test in tests):
                yield f"{pattern} is in differences.toml, and no test that passes without us has this id"
        for pattern in difference.modes:
            if not any(matches(mode, pattern) for mode in outcomes):
                yield f"{pattern} is in differences.toml, and is no mode"


def failure(outcomes: Outcomes, test: str) -> tuple[bool, str]:
    """Return whether a test did not pass, and the first line of why."""
    if test not in outcomes:
        return True, "it was not run"
    return outcomes[test]["outcome"] != "passed", outcomes[test]["error"]


def source_distribution(release: str) -> Path:
    """Return the unpacked source distribution of LangChain, which is downloaded once.

    Raises:
        SystemExit: it cannot be had, or has no tests.
    """
    folder = CACHE / f"langchain-{release}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        # Unpacked beside its place and then moved, so that a run that was stopped leaves no half of it.
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            with tarfile.open(_download(release, Path(temporary))) as archive:
                archive.extractall(temporary, filter="data")
            (Path(temporary) / folder.name).rename(folder)
    if not (folder / TESTS).is_dir():
        sys.exit(f"The source distribution of langchain {release} has no {TESTS}: see {folder}.")
    return folder


def _download(release: str, folder: Path) -> Path:
    requirement = f"langchain=={release}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-binary", "langchain", "--dest", str(folder), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    archives = list(folder.glob("langchain-*.tar.gz"))
    if done.returncode or not archives:
        sys.exit(
            f"The source distribution of {requirement} cannot be had from the package index, and the tests are in "
            f"it. `make test-upstream` needs PyPI or a mirror that has source distributions. pip says:\n{done.stderr}"
        )
    return archives[0]


def run(
    folder: Path, mode: str = "", tests: Collection[str] = (), *, workers: int = 0, tracebacks: str = "long"
) -> Outcomes:
    """Run tests of LangChain in a mode, and return what became of each.

    Args:
        folder: The unpacked source distribution.
        mode: The name of a mode; empty for none.
        tests: The tests to run; empty for all.
        workers: Over how many processes to spread them; 0 for one process without any other.
        tracebacks: How much of each failure the log has, as pytest's `--tb` takes it.

    Raises:
        SystemExit: pytest could not run, or hung.
    """
    log = CACHE / f"{mode or 'without'}.log"
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        wanted, outcomes = Path(temporary) / "tests.txt", Path(temporary) / "outcomes.json"
        wanted.write_text("\n".join(tests), "utf-8")
        try:
            with log.open("w") as output:
                subprocess.run(
                    [
                        *_pytest(workers),
                        f"--tb={tracebacks}",
                        *sorted({test.split("::")[0] for test in tests} or {TESTS}),
                    ],
                    cwd=folder,
                    env=_environment(mode, wanted if tests else None, outcomes),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=TIMEOUT_SECONDS,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            sys.exit(f"LangChain's tests did not end in {TIMEOUT_SECONDS} seconds: see {log}.")
        if not outcomes.exists():
            sys.exit(f"pytest could not run LangChain's tests: see {log}.\n{log.read_text()[-2_000:]}")
        return json.loads(outcomes.read_text("utf-8"))


def _pytest(workers: int) -> list[str]:
    plugins = ["-p", "selection_plugin", "-p", "no:cacheprovider", "--disable-socket", "--allow-unix-socket"]
    spread = ["-n", str(workers), "--dist", "loadfile"] if workers else ["-p", "no:xdist"]
    return [sys.executable, "-m", "pytest", *plugins, *spread]


def _environment(mode: str, tests: Path | None, outcomes: Path) -> dict[str, str]:
    # Tracing would go to somebody's account. Compiled tests are kept: to compile them takes a third of a run.
    left_out = re.compile("LANGSMITH_.*|LANGCHAIN_.*|PYTEST_.*|PYTHONDONTWRITEBYTECODE")
    return {
        **{name: value for name, value in os.environ.items() if not left_out.fullmatch(name)},
        "PYTHONPATH": str(HERE),
        "SELECTION_MODE": mode,
        "SELECTION_TESTS": str(tests or ""),
        "SELECTION_OUTCOMES": str(outcomes),
    }


def run_twice(
    folder: Path, mode: str, tests: Collection[str], differences: Collection[Difference]
) -> Outcomes:
    """Run tests in a mode, and those that fail unexpectedly once more: some depend on the clock.

    Only the second run writes tracebacks. Those of the listed differences would take a fifth of the time.
    """
    outcomes = run(folder, mode, tests, tracebacks="line")
    surprises = [
        test
        for test in tests
        if failure(outcomes, test)[0] and not any(each.covers(test, mode) for each in differences)
    ]
    return {**outcomes, **run(folder, mode, surprises)} if surprises else outcomes


def main(workers: int) -> int:
    """Print what differs from the list, and return the exit code."""
    release = version("langchain")
    folder = source_distribution(release)
    differences = read_differences(HERE / "differences.toml")
    without = run(folder, workers=workers, tracebacks="line")
    passing = [test for test, outcome in without.items() if outcome["outcome"] == "passed"]
    tests = [test for test in passing if without[test]["builds_agents"]]
    print(
        f"langchain {release}: {len(passing)} of {len(without)} tests pass without us, {len(tests)} build agents"
    )
    if not tests:
        sys.exit(f"None of LangChain's tests passes without us: see {CACHE / 'without.log'}.")
    # A process for each mode and none for its tests: starting takes a fifth of a run.
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(lambda mode: run_twice(folder, mode, tests, differences), MODES)
        outcomes = dict(zip(MODES, results, strict=True))
    for mode, by_test in outcomes.items():
        failed = sum(failure(by_test, test)[0] for test in tests)
        print(f"{mode}: {len(tests) - failed} as without us, {failed} differ")
    found = list(problems(tests, outcomes, differences))
    print("\n".join(found) or "Each difference is in differences.toml, with its reason.")
    if found:
        print(f"The tracebacks are in {CACHE}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(workers=int(sys.argv[1])))
