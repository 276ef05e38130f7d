"""`python -m benchmarks.peers --env DIR`: make one environment for each peer."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.peers.runner import PEERS, PYTHON, install, installed_version


def main() -> None:
    """Install every peer and print its version."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--env", type=Path, required=True, help="folder for the environments")
    parser.add_argument("--python", default=PYTHON, help="interpreter for them (default: %(default)s)")
    options = parser.parse_args()
    for peer in PEERS:
        install(options.env, peer, options.python)
        print(peer, installed_version(options.env, peer))


if __name__ == "__main__":
    main()
