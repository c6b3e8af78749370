"""Teaching engines: what they learn from, how, and where a run that was killed goes on."""
