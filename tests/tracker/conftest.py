"""Property tests on a busy machine: no deadline by the clock, and fewer examples than the default 100."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tracker", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tracker")
