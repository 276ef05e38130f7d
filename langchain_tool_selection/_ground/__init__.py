"""The ground: log, untrusted text, messages, checks of settings, lazy names. It imports nothing of ours."""
