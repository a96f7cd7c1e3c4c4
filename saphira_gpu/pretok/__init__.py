"""Parts of `PreTokenizer`: configuration → steps → a program of the core."""
