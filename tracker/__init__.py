"""What a stance is and how it moves: pure, without I/O, clock or models."""
