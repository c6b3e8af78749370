"""Certificates of an authority made for one run of the tests, as the files that servers and clients take."""

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


class Authority:
    """Signs whom it is asked to; all its files lie in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._signer = trustme.CA()
        self.cafile = folder / "ca.pem"
        self._signer.cert_pem.write_to_path(str(self.cafile))

    def issue(self, name: str, *identities: str) -> "Certificate":
        """A certificate for these hosts or addresses, and its key."""
        leaf = self._signer.issue_cert(*identities, common_name=name)
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        return Certificate(self._folder / name, chain, _pkcs8(leaf.private_key_pem.bytes()))


class Certificate:
    """The files of one certificate: apart, and both in one."""

    def __init__(self, path: Path, chain: bytes, key: bytes) -> None:
        self.certfile, self.keyfile, self.bothfile = (path.with_suffix(s) for s in (".pem", ".key", ".both"))
        self.certfile.write_bytes(chain)
        self.keyfile.write_bytes(key)
        self.bothfile.write_bytes(key + chain)


def _pkcs8(key: bytes) -> bytes:
    """The one form of a key that Java reads."""
    loaded = load_pem_private_key(key, password=None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
