"""Measuring tool selection on catalogues and requests of one's own. Needs no agent."""
