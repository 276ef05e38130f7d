"""The providers' own forms for adding tools in mid-conversation, one a file."""
