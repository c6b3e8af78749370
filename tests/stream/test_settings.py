"""Settings: sources and their order, every wrong value named without being shown, secrets masked, rooms."""

import typing
from pathlib import Path

import pytest

from models import shipped
from models.language.settings import default_threads
from stream.addresses import BadAddress, brokers, check_database, check_redis, check_worker, masked
from stream.options import SettingsError, Source
from stream.settings import SETTINGS, Room, Settings, load, propositions_for, survey
from stream.sources import misspelt
from tracker.policy import Policy

# One allowed value for each setting, as the environment writes it, and what it becomes.
ALLOWED: dict[str, tuple[str, object]] = {
    "run": ("trial-2", "trial-2"),
    "broker": ("kafka://a:1;b:2", "kafka://a:1;b:2"),
    "broker_security": ("SASL_SSL", "sasl_ssl"),
    "broker_sasl_mechanism": ("scram-sha-256", "SCRAM-SHA-256"),
    "broker_username": ("ada", "ada"),
    "broker_password": ("12345", "12345"),
    "broker_idempotence": ("false", False),
    "broker_cafile": ("/etc/ca.pem", Path("/etc/ca.pem")),
    "broker_certfile": ("cert.pem", Path("cert.pem")),
    "broker_keyfile": ("key.pem", Path("key.pem")),
    "topic_prefix": ("team-a.chat", "team-a.chat"),
    "partitions": ("64", 64),
    "replication": ("3", 3),
    "reach_days": ("30", 30),
    "redis": ("rediss://:pw@cache:6380/1", "rediss://:pw@cache:6380/1"),
    "redis_cafile": ("/etc/ca.pem", Path("/etc/ca.pem")),
    "database": ("postgresql+asyncpg://u:p@db/v", "postgresql+asyncpg://u:p@db/v"),
    "worker": ("http://worker:8080", "http://worker:8080"),
    "api_key": ("k-1", "k-1"),
    "reader": ("rule", "rule"),
    "critic": ("true", True),
    "targets": ("found", "found"),
    "model": ("/models/m", Path("/models/m")),
    "adapter": ("/models/a", Path("/models/a")),
    "cache": ("~/weights", Path("~/weights").expanduser()),
    "hub": ("true", True),
    "device": ("cuda:1", "cuda:1"),
    "dtype": ("bfloat16", "bfloat16"),
    "threads": ("3", 3),
    "batch_tokens": ("16384", 16_384),
    "reader_seconds": ("30", 30.0),
    "remote_url": ("https://models.example/v1", "https://models.example/v1"),
    "remote_model": ("Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
    "remote_key": ("sk-1", "sk-1"),
    "remote_parallel": ("32", 32),
    "remote_per_minute": ("500", 500),
    "remote_seconds": ("20", 20.0),
    "batch_records": ("100", 100),
    "batch_waves": ("8", 8),
    "batch_seconds": ("2.5", 2.5),
    "rebalance_seconds": ("90", 90.0),
    "poison_attempts": ("3", 3),
    "stall_seconds": ("0", 0.0),
    "probes": ("[::1]:8080", "[::1]:8080"),
    "clock_skew_seconds": ("0", 0.0),
    "emit_persisted": ("true", True),
    "log_level": ("WARNING", "warning"),
    "log_format": ("console", "console"),
}

WRONG = [
    ("RUN", "Bad Name", "string of 8 characters", "1 to 40 of a-z, 0-9 and -"),
    ("RUN", "live\n", "string of 5 characters", "1 to 40"),
    ("RUN", "a" * 41, "string of 41 characters", "1 to 40"),
    ("BROKER", "localhost:9092", "string of 14 characters", "it begins with kafka://"),
    ("BROKER", "kafka://localhost", "string of 17 characters", "every host has a port"),
    ("BROKER_SECURITY", "tls", "string of 3 characters", "one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
    ("TOPIC_PREFIX", "a{b}", "string of 4 characters", "a letter or digit"),
    ("PARTITIONS", "0", "string of 1 character", "a whole number from 1 to 10000"),
    ("PARTITIONS", "many", "string of 4 characters", "a whole number from 1 to 10000"),
    ("REDIS", "http://cache", "string of 12 characters", "it begins with redis:// or rediss://"),
    ("DATABASE", "mysql://db/v", "string of 12 characters", "it begins with sqlite:// or postgresql://"),
    ("WORKER", "worker:8080", "string of 11 characters", "it begins with http:// or https://"),
    ("STALL_SECONDS", "-1", "string of 2 characters", "a number from 0 to 86400"),
    ("PROBES", "9999", "string of 4 characters", "host:port, as in 0.0.0.0:8080: every host has a port"),
    ("PROBES", "::1:8080", "string of 8 characters", "a port is a number from 1 to 65535"),
    ("READER", "gpt", "string of 3 characters", "one of encoder, generative, remote, rule"),
    ("REMOTE_URL", "models.example/v1", "string of 17 characters", "it begins with http:// or https://"),
    ("REMOTE_PER_MINUTE", "-1", "string of 2 characters", "a whole number from 0 to 1000000"),
    ("DEVICE", "gpu", "string of 3 characters", "auto, cpu, cuda or cuda:N"),
    ("DTYPE", "int4", "string of 4 characters", "one of auto, float32"),
    ("BATCH_SECONDS", "0", "string of 1 character", "a number above 0 to 600"),
    ("BATCH_SECONDS", "nan", "string of 3 characters", "a number above 0 to 600"),
    ("CLOCK_SKEW_SECONDS", "nan", "string of 3 characters", "a number from 0 to 86400"),
    ("EMIT_PERSISTED", "perhaps", "string of 7 characters", "true or false"),
    ("LOG_LEVEL", "loud", "string of 4 characters", "one of debug, info, warning, error"),
    ("POLICY", "/nowhere/policy.toml", "string of 20 characters", "No such file"),
    ("CONFIG", "/nowhere/volteface.toml", "string of 23 characters", "No such file"),
]


def written(folder: Path, text: str, name: str = "volteface.toml") -> dict[str, str]:
    """An environment that names a file with this text."""
    (folder / name).write_text(text)
    return {"VOLTEFACE_CONFIG": str(folder / name)}


def refused(environment: dict[str, str]) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load(environment)
    return caught.value


def test_defaults_need_nothing() -> None:
    settings = load({})
    assert settings == Settings(adapter=shipped.ENCODER, policy=settings.policy)
    assert settings.policy.name == shipped.ENCODER.name  # fitted to that adapter
    assert (settings.run, settings.topic_prefix, settings.partitions) == ("live", "volteface", 8)
    assert settings.bootstrap_servers == ["localhost:9092"]
    assert settings.threads == default_threads()


def test_a_policy_comes_with_an_adapter_unless_one_is_set(tmp_path: Path) -> None:
    own, adapter = tmp_path / "own.toml", tmp_path / "adapter"
    adapter.mkdir()
    named = {"VOLTEFACE_READER": "generative", "VOLTEFACE_ADAPTER": str(adapter)}
    assert load(named).policy == Policy()
    (adapter / shipped.POLICY).write_text('name = "fitted"\n[flip]\nprobability = 0.4\n')
    assert (load(named).policy.name, load(named).policy.flip.probability) == ("fitted", 0.4)
    own.write_text('name = "mine"\n')
    assert load(named | {"VOLTEFACE_POLICY": str(own)}).policy.name == "mine"
    (adapter / shipped.POLICY).write_text("nonsense")
    with pytest.raises(SettingsError, match="VOLTEFACE_POLICY"):
        load(named)


def test_another_encoder_has_no_adapter_of_ours() -> None:
    assert load({"VOLTEFACE_MODEL": "/some/encoder"}).adapter is None
    assert load({"VOLTEFACE_READER": "rule"}).adapter is None


def test_every_setting_can_be_set_by_its_environment_name() -> None:
    assert set(ALLOWED) | {"config", "policy", "tenants"} == {option.key for option in SETTINGS}
    settings = load({f"VOLTEFACE_{key.upper()}": raw for key, (raw, _) in ALLOWED.items()})
    for key, (_, value) in ALLOWED.items():
        assert getattr(settings, key) == value, key


def test_every_setting_has_one_name_and_one_line_of_help() -> None:
    for option in SETTINGS:
        assert option.env == f"VOLTEFACE_{option.key.upper()}"
        assert option.help
        assert option.expects
        assert "\n" not in option.help
    assert {option.key for option in SETTINGS if option.secret} == {
        "broker_password",
        "api_key",
        "remote_key",
    }
    assert {option.key for option in SETTINGS} | {"rooms", "readers"} == set(typing.get_type_hints(Settings))


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    environment = written(
        tmp_path, 'partitions = 16\nreader = "rule"\nbatch_seconds = 5\nemit_persisted = true\n'
    )
    settings = load(environment | {"VOLTEFACE_PARTITIONS": "32"})
    assert (settings.partitions, settings.reader, settings.batch_seconds) == (32, "rule", 5.0)
    sources = {row.key: row.source for row in survey(environment | {"VOLTEFACE_PARTITIONS": "32"})}
    assert sources["partitions"] is Source.ENVIRONMENT
    assert sources["reader"] is Source.FILE
    assert sources["redis"] is Source.DEFAULT


def test_an_empty_variable_is_unset(tmp_path: Path) -> None:
    environment = written(tmp_path, "partitions = 16\n") | {
        "VOLTEFACE_PARTITIONS": "",
        "VOLTEFACE_WORKER": "",
    }
    settings = load(environment)
    assert (settings.partitions, settings.worker) == (16, None)


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOLTEFACE_RUN", "trial")
    assert load().run == "trial"
    assert next(row.value for row in survey() if row.key == "run") == "trial"


@pytest.mark.parametrize(("name", "value", "got", "remedy"), WRONG)
def test_a_wrong_value_is_named_with_its_kind_and_never_shown(
    name: str, value: str, got: str, remedy: str
) -> None:
    error = refused({f"VOLTEFACE_{name}": value})
    assert (error.setting, error.source, error.got) == (f"VOLTEFACE_{name}", Source.ENVIRONMENT, got)
    assert remedy in error.remedy
    assert len(value) == 1 or value not in str(error)
    assert str(error) == f"VOLTEFACE_{name} (from environment): {got}; {error.remedy}"


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ('partitions = "8"', "string of 1 character"),
        ("partitions = 8.5", "number"),
        ("partitions = true", "true or false"),
        ("broker = 9092", "integer"),
        ("cache = 1", "integer"),
        ("log_level = ['info']", "array"),
        ("[reader]\nengine = 'rule'", "table"),
        ("batch_seconds = nan", "number"),
        ("run = 2026-01-01", "date"),
    ],
)
def test_a_wrong_value_in_the_file_is_named_by_its_key(tmp_path: Path, text: str, got: str) -> None:
    error = refused(written(tmp_path, text))
    assert (error.source, error.got) == (Source.FILE, got)
    assert error.setting in text


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("partition", "did you mean partitions?"),
        ("broker_pasword", "did you mean broker_password?"),
        ("room", "did you mean rooms?"),
        ("zzz", "remove it; volteface doctor lists all settings"),
        ("config", "only the environment names the file, as VOLTEFACE_CONFIG"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(tmp_path: Path, key: str, remedy: str) -> None:
    error = refused(written(tmp_path, f'{key} = "x"'))
    assert (error.setting, error.source, error.got, error.remedy) == (key, Source.FILE, "unknown key", remedy)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    error = refused(written(tmp_path, "partitions = "))
    assert error.setting == "VOLTEFACE_CONFIG"
    assert "write TOML" in error.remedy


@pytest.mark.parametrize("security", ["sasl_plaintext", "sasl_ssl"])
def test_sasl_needs_credentials(security: str) -> None:
    environment = {"VOLTEFACE_BROKER_SECURITY": security, "VOLTEFACE_BROKER_USERNAME": "ada"}
    error = refused(environment)
    assert (error.setting, error.got) == ("VOLTEFACE_BROKER_PASSWORD", "unset")
    assert load(environment | {"VOLTEFACE_BROKER_PASSWORD": "pw"}).broker_security == security


def test_a_client_certificate_needs_its_key() -> None:
    assert refused({"VOLTEFACE_BROKER_CERTFILE": "c.pem"}).setting == "VOLTEFACE_BROKER_KEYFILE"


def test_a_batch_ends_well_before_a_rebalance_does() -> None:
    error = refused({"VOLTEFACE_BATCH_SECONDS": "10", "VOLTEFACE_REBALANCE_SECONDS": "20"})
    assert (error.setting, error.got) == ("VOLTEFACE_BATCH_SECONDS", "at least half of rebalance_seconds")
    assert load({"VOLTEFACE_BATCH_SECONDS": "9.9", "VOLTEFACE_REBALANCE_SECONDS": "20"}).batch_seconds == 9.9


def test_a_policy_is_read_from_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('name = "strict"\n[flip]\nprobability = 0.8\n')
    settings = load(written(tmp_path, 'policy = "policy.toml"'))
    assert (settings.policy.name, settings.policy.flip.probability) == ("strict", 0.8)
    assert load({"VOLTEFACE_READER": "rule"}).policy == Policy()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[flip]\nprobabilty = 0.8", "probabilty"),
        ("thresholds = 1", "thresholds"),
        ("[flip]\nmargin = 2", "margin"),
    ],
)
def test_an_unknown_or_wrong_policy_key_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "policy.toml").write_text(text)
    error = refused({"VOLTEFACE_POLICY": str(tmp_path / "policy.toml")})
    assert error.setting == "VOLTEFACE_POLICY"
    assert named in error.remedy


def test_the_survey_masks_secrets_and_passwords_and_raises_nothing() -> None:
    hidden = "s3cret"
    environment = {
        "VOLTEFACE_BROKER_PASSWORD": hidden,
        "VOLTEFACE_API_KEY": hidden,
        "VOLTEFACE_REDIS": f"redis://user:{hidden}@cache:6379/0",
        "VOLTEFACE_DATABASE": f"postgresql://u@db/v?password={hidden}&sslmode=require",
        "VOLTEFACE_WORKER": f"ftp://user:{hidden}@worker",
        "VOLTEFACE_CONFIG": "/nowhere",
    }
    rows = {row.key: row for row in survey(environment)}
    assert hidden not in repr(rows)
    assert rows["broker_password"].value == "***"
    assert rows["redis"].value == "redis://user:***@cache:6379/0"
    assert rows["database"].value == "postgresql://u@db/v?password=***&sslmode=require"
    assert (rows["worker"].problem is None, rows["config"].problem is None) == (False, False)
    assert rows["policy"].value == "built in"
    assert rows["emit_persisted"].value == "false"
    assert rows["model"].value == "unset"


def test_settings_print_no_values() -> None:
    settings = load({"VOLTEFACE_API_KEY": "s3cret"})
    assert repr(settings) == str(settings) == "Settings(run='live')"
    assert settings.__rich_repr__() == [("run", "live")]


def test_a_misspelt_variable_is_pointed_out_and_others_are_let_be() -> None:
    environment = [
        "VOLTEFACE_BROKR",
        "VOLTEFACE_RUN",
        "VOLTEFACE_WORKER_SERVICE_HOST",
        "PATH",
        "VOLTEFACE_XYZ",
    ]
    assert misspelt(SETTINGS, environment) == {"VOLTEFACE_BROKR": "VOLTEFACE_BROKER"}


ROOMS = """
[[rooms]]
conversations = "town/*"
propositions = ["The debate concerning whether A", "The debate concerning whether B"]
[[rooms]]
conversations = "*"
tenant = "school"
propositions = ["The debate concerning whether C"]
"""


@pytest.mark.parametrize(
    ("tenant", "conversation", "count"),
    [
        ("default", "town/hall", 2),
        ("default", "town/hall/thread", 2),
        ("default", "Town/hall", 0),
        ("default", "village", 0),
        ("school", "any", 1),
        ("school", "town/hall", 1),
    ],
)
def test_the_first_room_that_matches_gives_the_propositions(
    tmp_path: Path, tenant: str, conversation: str, count: int
) -> None:
    settings = load(written(tmp_path, ROOMS))
    assert len(propositions_for(settings, tenant, conversation)) == count
    assert next(row.value for row in survey(written(tmp_path, ROOMS)) if row.key == "rooms") == "2 rooms"


def test_the_first_of_two_rooms_wins() -> None:
    rooms = (Room(conversations="a*", propositions=("one",)), Room(conversations="*", propositions=("two",)))
    assert propositions_for(Settings(rooms=rooms), "default", "abc") == ("one",)
    assert propositions_for(Settings(rooms=rooms), "default", "b") == ("two",)


@pytest.mark.parametrize(
    "room",
    [
        'conversations = "*"\npropositions = ["a", "b", "c", "d"]',
        'conversations = "*"\npropositions = []',
        'conversations = "*"\npropositions = ["a", "a"]',
        'conversations = "*"\npropositions = [""]',
        f'conversations = "*"\npropositions = ["{"猫" * 342}"]',
        'conversations = "*"',
        'conversations = "*"\npropositions = ["a"]\ntenants = "x"',
    ],
    ids=["four", "none", "twice", "empty", "too-long", "missing", "unknown-key"],
)
def test_a_wrong_room_is_refused(tmp_path: Path, room: str) -> None:
    error = refused(written(tmp_path, f"[[rooms]]\n{room}"))
    assert (error.setting, error.source) == ("rooms", Source.FILE)
    assert "$[0]" in error.remedy


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("kafka://a:1", ("a:1",)),
        ("kafka://a:1;b:2", ("a:1", "b:2")),
        ("kafka://a:1;kafka://b:2", ("a:1", "b:2")),
        ("kafka://[::1]:9092", ("[::1]:9092",)),
    ],
)
def test_brokers_are_hosts_with_ports(address: str, found: tuple[str, ...]) -> None:
    assert brokers(address) == found


@pytest.mark.parametrize(
    "address",
    [
        "",
        "kafka://",
        "kafka://a",
        "kafka://a:1;",
        "kafka://a:0x",
        "kafka://a:70000",
        "kafka://u:p@a:1",
        "kafka://a b:1",
    ],
)
def test_other_brokers_are_refused(address: str) -> None:
    with pytest.raises(BadAddress):
        brokers(address)


@pytest.mark.parametrize(
    "address",
    [
        "redis://localhost",
        "redis://localhost:6379/15",
        "rediss://user:p%40w@host:6380/0",
        "redis+sentinel://a:26379,b:26379,c/mymaster",
        "redis+sentinel://:pw@a:26379,b/mymaster/2",
        "redis://[::1]:6379",
    ],
)
def test_redis_addresses(address: str) -> None:
    check_redis(address)


@pytest.mark.parametrize(
    "address",
    [
        "redis:localhost",
        "redis://",
        "redis://a,b",
        "redis://a/one",
        "redis://a/0/1",
        "redis://a:port",
        "redis://[::1",
        "redis+sentinel://a:26379",
        "redis+sentinel://a,,b/mymaster",
        "redis+sentinel://a/mymaster/zero",
        "rediss+sentinel://a/mymaster?ssl_cert_reqs=none",
    ],
)
def test_other_redis_addresses_are_refused(address: str) -> None:
    with pytest.raises(BadAddress):
        check_redis(address)


@pytest.mark.parametrize("address", ["sqlite://", "sqlite+aiosqlite:////data/v.db", "postgresql://u@h/v"])
def test_database_addresses(address: str) -> None:
    check_database(address)


@pytest.mark.parametrize("address", ["postgresql://", "oracle://h/v", "v.db"])
def test_other_databases_are_refused(address: str) -> None:
    with pytest.raises(BadAddress):
        check_database(address)


@pytest.mark.parametrize("address", ["http://", "http://h:x", "http://h/?a=b", "https://h#f", "grpc://h"])
def test_other_workers_are_refused(address: str) -> None:
    check_worker("https://worker/read")
    with pytest.raises(BadAddress):
        check_worker(address)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://cache:6379/0", "redis://cache:6379/0"),
        ("redis://:pw@cache", "redis://:***@cache"),
        ("redis://u:p@w:x/y@cache", "redis://u:***@cache"),
        ("redis+sentinel://u:pw@a,b/m", "redis+sentinel://u:***@a,b/m"),
        ("http://h/?api_key=k&x=1", "http://h/?api_key=***&x=1"),
        ("plain words", "plain words"),
    ],
)
def test_passwords_are_masked(address: str, shown: str) -> None:
    assert masked(address) == shown


@pytest.mark.parametrize(
    ("given", "lacking"), [({}, "URL"), ({"VOLTEFACE_REMOTE_URL": "http://h:1/v1"}, "MODEL")]
)
def test_engine_remote_needs_a_server_and_a_model(given: dict[str, str], lacking: str) -> None:
    error = refused({"VOLTEFACE_READER": "remote"} | given)
    assert (error.setting, error.got) == (f"VOLTEFACE_REMOTE_{lacking}", "unset")


@pytest.mark.parametrize(("key", "value"), [("critic", "true"), ("targets", "found")])
def test_critic_and_found_targets_need_a_model_that_can_be_talked_to(
    tmp_path: Path, key: str, value: str
) -> None:
    name = f"VOLTEFACE_{key.upper()}"
    for reader in ("encoder", "rule"):
        error = refused({name: value, "VOLTEFACE_READER": reader})
        assert (error.setting, error.got) == (name, f"{value} with reader {reader}")
        assert "generative or remote" in error.remedy
    given = {name: value, "VOLTEFACE_READER": "generative"}
    assert str(getattr(load(given), key)).lower() == value
    # The worker's own settings say what reads there.
    load({name: value, "VOLTEFACE_WORKER": "http://worker:8080"})
    tables = '[[readers]]\nlanguages = ["en"]\nreader = "generative"\n'
    load({name: value, **written(tmp_path, tables)})
    error = refused({name: value, "VOLTEFACE_READER": "rule", **written(tmp_path, tables)})
    assert error.setting == name


def test_a_wrong_critic_of_the_file_is_named_as_it_stands_there(tmp_path: Path) -> None:
    assert refused(written(tmp_path, "critic = true")).setting == "critic"
