"""`python -m gdpnet.cli`, for an environment whose scripts are not on the path."""

from gdpnet.cli import main

if __name__ == "__main__":
    main()
