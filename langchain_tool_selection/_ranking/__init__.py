"""From documents and a query to hits: rankers, the index, and how a conversation becomes a query."""
