"""Which tools to show, and what a thread remembers of that. Pure: no input or output."""
