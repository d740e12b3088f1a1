"""`python -m yardmaster_client`: the `yardmaster` command."""

from yardmaster_client.cli import main

if __name__ == "__main__":
    main()
