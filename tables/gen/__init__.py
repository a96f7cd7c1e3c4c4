"""The table generator: `python -m tables.gen [--check]`."""
