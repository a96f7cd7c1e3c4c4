"""Generated tables and what they are generated from; a tool of the source tree, never installed."""
