"""The calls of other libraries, answered by this one: `Tokenizer.as_hf` and
`Tokenizer.as_tiktoken`."""
