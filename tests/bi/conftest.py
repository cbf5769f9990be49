"""Postgres and Superset for the suite that runs only when asked for: `pytest -m bi`."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.conftest import PROJECT
from tests.export.conftest import publish_stage, published, stages  # noqa: F401
from tests.integration.conftest import firstdrift

USER = "firstdrift"
# A browser that says this is signed in; the server listens on this machine alone, for the time of the tests.
BROWSER = "firstdrift-test"
_START_SECONDS = 180


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "bi" in (config.option.markexpr or "").split():
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs Postgres and Superset: make test-bi"))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@dataclass(frozen=True)
class Postgres:
    """A server of the tests' own."""

    port: int
    password: str

    def url(self, database: str, password: str | None = None) -> str:
        return f"postgresql://{USER}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def psql(self, database: str, sql: str) -> str:
        """Ask with the command line client; fields are divided by |."""
        command = ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-X", "-q", "-t", "-A"]
        done = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql],
            env={**os.environ, "PGPASSWORD": self.password},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server in a temporary folder; as root it runs as nobody, since Postgres refuses root."""
    programs = server_programs()
    folder = Path(tempfile.mkdtemp(prefix="firstdrift-pg-"))
    server = Postgres(free_port(), secrets.token_hex(8))
    (folder / "password").write_text(server.password, encoding="utf-8")
    as_user = []
    if os.geteuid() == 0:
        as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        for path in (folder, folder / "password"):
            shutil.chown(path, "nobody", "nogroup")
    data = folder / "data"

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(programs / program), "-D", str(data), *arguments]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=_START_SECONDS)

    run("initdb", "-U", USER, "-E", "UTF8", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}")
    settings = f"-p {server.port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    run("pg_ctl", "-o", settings, "-l", str(folder / "log"), "-w", "start")
    try:
        yield server
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def server_programs() -> Path:
    """Return the folder of initdb and pg_ctl; Debian keeps them off the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    candidates = [*folders, *([Path(found).parent] if found else [])]
    for folder in candidates:
        if (folder / "initdb").exists():
            return folder
    pytest.fail("no Postgres server is installed; `make test-bi` installs it on Debian and Ubuntu")


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """The address of a new database."""
    name = f"test_{secrets.token_hex(4)}"
    postgres.psql("postgres", f"create database {name}")
    yield postgres.url(name)
    postgres.psql("postgres", f"drop database {name} with (force)")


@pytest.fixture(scope="session")
def lab(postgres: Postgres, demo_home: Path) -> str:
    """The address of a database that holds the export of the examples."""
    postgres.psql("postgres", "create database lab")
    done = firstdrift(demo_home, "export", "--to", postgres.url("lab"))
    assert postgres.password not in done.stdout + done.stderr
    return postgres.url("lab")


class Superset:
    """A running Superset, by its API."""

    def __init__(self, address: str, log: Path) -> None:
        self.address = address
        self.log = log
        self._session = requests.Session()

    def sign_in(self, password: str) -> None:
        answer = self.post("security/login", json={"username": USER, "password": password, "provider": "db"})
        self._session.headers["Authorization"] = f"Bearer {answer['access_token']}"
        self._session.headers["X-CSRFToken"] = self.get("security/csrf_token/")["result"]

    def get(self, path: str) -> dict:
        return self._answer(self._session.get(f"{self.address}/api/v1/{path}", timeout=120))

    def post(self, path: str, **arguments) -> dict:
        return self._answer(self._session.post(f"{self.address}/api/v1/{path}", timeout=120, **arguments))

    def _answer(self, response: requests.Response) -> dict:
        assert response.ok, f"{response.url}: {response.status_code}\n{self.log.read_text(encoding='utf-8')[-3000:]}"
        return response.json()


SETTINGS = """
SECRET_KEY = {key!r}
SQLALCHEMY_DATABASE_URI = {metadata!r}
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False


def FLASK_APP_MUTATOR(app):
    from flask import request
    from flask_login import current_user, login_user

    @app.before_request
    def sign_in():
        if request.user_agent.string == {browser!r} and not current_user.is_authenticated:
            from superset import security_manager

            login_user(security_manager.find_user({user!r}))
"""


@pytest.fixture(scope="session")
def superset(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Superset]:
    """A Superset in an environment of its own, which keeps its own tables in the tests' Postgres."""
    program = PROJECT / ".venv-superset" / "bin" / "superset"
    assert program.exists(), "Superset is not installed: make test-bi"
    folder = tmp_path_factory.mktemp("superset")
    password = secrets.token_hex(8)
    postgres.psql("postgres", "create database superset")
    settings = SETTINGS.format(key=secrets.token_hex(32), metadata=postgres.url("superset"), browser=BROWSER, user=USER)
    (folder / "superset_config.py").write_text(settings, encoding="utf-8")
    environment = {
        **os.environ,
        "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"),
        "SUPERSET_HOME": str(folder),
        "FLASK_APP": "superset",
    }
    log = folder / "log"
    with log.open("w", encoding="utf-8") as stream:
        admin = ["--firstname", "first", "--lastname", "drift", "--email", "firstdrift@example.org"]
        for arguments in (
            ["db", "upgrade"],
            ["fab", "create-admin", "--username", USER, "--password", password, *admin],
            ["init"],
        ):
            done = subprocess.run([program, *arguments], env=environment, stdout=stream, stderr=stream, check=False)
            assert done.returncode == 0, log.read_text(encoding="utf-8")[-3000:]
        port = free_port()
        server = subprocess.Popen(
            [program, "run", "-h", "127.0.0.1", "-p", str(port), "--with-threads"],
            env=environment, stdout=stream, stderr=stream,
        )  # fmt: skip
        try:
            client = Superset(f"http://127.0.0.1:{port}", log)
            wait_for(client, server)
            client.sign_in(password)
            yield client
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_for(superset: Superset, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if requests.get(f"{superset.address}/health", timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.5)
    pytest.fail(f"Superset did not start:\n{superset.log.read_text(encoding='utf-8')[-3000:]}")
