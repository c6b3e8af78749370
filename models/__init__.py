"""What reads a turn: media, language models, reasoning, verification, the GPU worker."""
