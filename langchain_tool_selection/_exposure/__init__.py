"""From a selection to the request that is sent: exposures, transports, and what is known of models."""
