"""Redis as production has it: TLS alone, no default user, and one user who may do only what is needed."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from stream.embedded import EmbeddedRedis
from stream.embedded.redis import _CONFIG
from tests.secured import documented
from tests.secured.authority import Authority, Certificate

USER, PASSWORD = "volteface", "hush@redis/8"
WATCHER = "watcher"  # of the tests themselves; may do all, over the same TLS


class SecuredRedis(EmbeddedRedis):
    """Listens with TLS alone."""

    def __init__(self, authority: Authority, *, mutual: bool = False) -> None:
        super().__init__()
        self._authority, self._mutual = authority, mutual
        self._issued = authority.issue("redis", "127.0.0.1")

    @property
    def url(self) -> str:
        """The address of the user who may do what is needed."""
        return self.as_user(USER)

    def as_user(self, user: str, password: str = PASSWORD) -> str:
        """The address of a user."""
        return f"rediss://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/1"

    def _config(self, data: Path, port: int) -> Iterator[str]:
        yield from (line for line in super()._config(data, port) if not line.startswith("port "))
        yield "port 0"
        yield f"tls-port {port}"
        yield f"tls-cert-file {self._issued.certfile}"
        yield f"tls-key-file {self._issued.keyfile}"
        yield f"tls-ca-cert-file {self._authority.cafile}"
        yield f"tls-auth-clients {'yes' if self._mutual else 'no'}"
        yield "user default off"
        yield f"user {WATCHER} on >{PASSWORD} ~* &* +@all"
        yield f"user {USER} {documented.rule(PASSWORD)}"

    def _answers(self, folder: Path, port: int) -> bool:
        with (
            connected(self._authority, self._issued, port) as connection,
            connection.makefile("rb") as stream,
        ):
            connection.sendall(f"AUTH {WATCHER} {PASSWORD}\r\nPING\r\nINFO server\r\nQUIT\r\n".encode())
            reply = stream.read()
        return b"+PONG" in reply and str(folder / _CONFIG).encode() in reply


@contextmanager
def connected(authority: Authority, shown: Certificate, port: int) -> Iterator[ssl.SSLSocket]:
    """A connection over TLS to a server here."""
    context = ssl.create_default_context(cafile=authority.cafile)
    context.load_cert_chain(shown.certfile, shown.keyfile)
    with (
        socket.create_connection(("127.0.0.1", port), 1.0) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        yield connection
