"""`python -m saphira_gpu`: the command line."""

from saphira_gpu.cli import main

main()
