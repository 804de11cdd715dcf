"""Runs the `caraway` command for `python -m caraway`."""

from caraway.cli import main

if __name__ == "__main__":
    main()
