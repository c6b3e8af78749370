import socket
from pathlib import Path

import msgspec
from redis import Redis

from stream import single
from stream.settings import Settings, load


def listens(address: str) -> bool:
    host, _, port = address.rpartition("//")[2].partition("/")[0].rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_services_are_reached_by_the_settings_given_and_gone_afterwards(tmp_path: Path) -> None:
    asked = Settings(broker_security="sasl_ssl", reader="rule", run="mine")
    with single.services(asked, data=tmp_path) as here:
        assert listens(here.broker)
        with Redis.from_url(here.redis, protocol=2) as client:
            client.set("kept", "1")
        assert (here.broker_security, here.broker_idempotence) == ("plaintext", False)
        assert here.batch_seconds < here.rebalance_seconds / 2
        assert (here.reader, here.run) == ("rule", "mine")
    assert not listens(here.broker)
    assert not listens(here.redis)


def test_other_commands_find_the_services_by_the_file_that_is_written(tmp_path: Path) -> None:
    here = msgspec.structs.replace(
        load({}),
        broker="kafka://127.0.0.1:4001",
        broker_idempotence=False,
        redis="redis://127.0.0.1:4002/0",
        rebalance_seconds=2.0,
        batch_seconds=0.9,
        partitions=5,
    )
    file = single.write_settings(here, tmp_path)
    found = load({"VOLTEFACE_CONFIG": str(file)})
    assert msgspec.structs.replace(found, config=None) == here
