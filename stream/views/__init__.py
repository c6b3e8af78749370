"""The views: conversations, holders and events as subscribers ask for them, fed from the topics."""
