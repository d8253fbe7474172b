"""`python -m probing`: the command line."""

from probing.cli import main

main(prog_name="python -m probing")
