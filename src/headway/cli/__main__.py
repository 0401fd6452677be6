"""`python -m headway.cli`."""

from headway.cli.main import main

main()
