"""Engine `encoder`: a multilingual encoder with heads, small enough to read every turn on a CPU."""
