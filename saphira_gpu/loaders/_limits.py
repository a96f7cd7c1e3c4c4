"""Bounds on what a file may ask for, so that a hostile one can't claim the memory of the
machine."""

# Tables are as long as the highest id. The largest vocabularies in use have about 2^18 ids.
MAX_ID = (1 << 22) - 1

# Bytes of a file. The largest tokenizer.json in use have about 34 MB (Gemma-3).
MAX_FILE = 1 << 28
