"""One call of one thread: reading it, planning, searching, and answering tool calls."""
