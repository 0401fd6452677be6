"""`python -m headway`."""

from headway.cli.main import main

main()
