"""`python -m hitherto`: the command line."""

from hitherto.cli import main

if __name__ == "__main__":
    main()
