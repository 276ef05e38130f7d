"""The ground: logging, text of unknown origin, messages, checks of settings. It imports nothing of ours."""
