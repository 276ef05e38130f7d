"""What is known of a tool, and what is sent of it."""
