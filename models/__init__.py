"""What reads a turn: media, language models, reasoning, verification, the GPU worker."""

import os

# OpenMP's threads spin while they wait, and starve whoever shares the cores with them: on a busy machine an
# explanation took 33 s for 3.6. libgomp reads this once, when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
