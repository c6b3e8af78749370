"""What moves turns and events: Faust app, Redis store, dead letters, replay, command line."""
