"""`python -m caraway` is the `caraway` command."""

from caraway.cli import main

if __name__ == "__main__":
    main()
