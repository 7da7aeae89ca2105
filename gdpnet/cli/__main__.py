"""`python -m gdpnet.cli`, for an environment whose scripts are not on the path."""

from gdpnet.cli import app

if __name__ == "__main__":
    app(prog_name="gdpnet")
