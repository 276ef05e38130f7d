"""Makes the peers' environments and runs the worker in them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.datasets import Dataset
from benchmarks.metrics import DEPTH, measures, timings

PEERS = {
    "fastmcp": "fastmcp==4.2.3",
    "ratel-ai": "ratel-ai==0.12.0",
    "toolpicker": "toolpicker==1.0.0",
    "graph-tool-call": "graph-tool-call==0.47.0",
    "dehydrator": "dehydrator==0.3.1",
    "toolhunch": "toolhunch==0.3.0",
}
"""What is installed for each peer: one package and what it depends on, nothing optional."""

PYTHON = "3.12"
"""toolhunch needs it; the others run on it too."""

_WORKER = Path(__file__).with_name("worker.py")


class PeerError(RuntimeError):
    """A peer could not rank a set; the message says why."""


def interpreter(environments: Path, peer: str) -> Path:
    """Return the Python of a peer's environment."""
    return environments / peer / "bin" / "python"


def install(environments: Path, peer: str, python: str = PYTHON) -> None:
    """Make the environment of a peer, if it is not there, with `uv`."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not interpreter(environments, peer).exists():
        subprocess.run([uv, "venv", "-q", "--python", python, str(environments / peer)], check=True)
    target = str(interpreter(environments, peer))
    subprocess.run([uv, "pip", "install", "-q", "-p", target, PEERS[peer]], check=True)


def installed_version(environments: Path, peer: str) -> str:
    """Return the version of a peer in its environment, or an empty string."""
    code = f"from importlib.metadata import version; print(version({peer!r}))"
    python = interpreter(environments, peer)
    if not python.exists():
        return ""
    return subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=False
    ).stdout.strip()


def measure_peer(environments: Path, peer: str, dataset: Dataset, timeout: float) -> dict[str, Any]:
    """Return all measures of one peer over one set, with the newest message of each request only.

    Raises:
        PeerError: the peer is not installed, failed, or took longer than `timeout` seconds.
    """
    result = _run(environments, peer, dataset, timeout)
    return {
        **measures(dataset.cases, result["rankings"]),
        "build_ms": round(1e3 * result["build_seconds"], 2),
        **timings(result["seconds"]),
    }


def _run(environments: Path, peer: str, dataset: Dataset, timeout: float) -> dict[str, Any]:
    python = interpreter(environments, peer)
    if not python.exists():
        msg = "not installed; run: python -m benchmarks.peers --env DIR"
        raise PeerError(msg)
    job = {"tools": dataset.tools, "queries": [case.query for case in dataset.cases], "limit": DEPTH}
    with tempfile.TemporaryDirectory() as folder:
        job_path, result_path = Path(folder, "job.json"), Path(folder, "result.json")
        job_path.write_text(json.dumps(job), encoding="utf-8")
        command = [str(python), str(_WORKER), peer, str(job_path), str(result_path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired as error:
            msg = f"took more than {timeout:.0f} s"
            raise PeerError(msg) from error
        if done.returncode:
            raise PeerError((done.stderr.strip().splitlines() or ["failed without a message"])[-1][:300])
        return json.loads(result_path.read_text(encoding="utf-8"))
