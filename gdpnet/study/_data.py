"""Data sets that are kept outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "GDPNET_DATA"


def find_data(dataset: str, file: str) -> Path | None:
    """A file of a data set, where the environment variable GDPNET_DATA says.

    GDPNET_DATA is the folder that holds one folder for each data set; the folder of the data set
    itself is understood too.

    Args:
        dataset: Name of the data set's folder, such as "pbmc3k".
        file: Name of the file in it.

    Returns:
        The file, which exists; None where GDPNET_DATA is not set.

    Raises:
        FileNotFoundError: If GDPNET_DATA is set and the file is not there.

    Example:
        >>> import os, pathlib, tempfile
        >>> from gdpnet.study import find_data
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     os.environ["GDPNET_DATA"] = folder
        ...     (pathlib.Path(folder) / "plant").mkdir()
        ...     (pathlib.Path(folder) / "plant" / "days.csv").touch()
        ...     find_data("plant", "days.csv").name
        'days.csv'
        >>> del os.environ["GDPNET_DATA"]
        >>> find_data("plant", "days.csv") is None
        True
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return None
    where = Path(given).expanduser()
    places = (where / dataset / file, where / file)
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"{VARIABLE}={given}: there is neither {places[0]} nor {places[1]}. Set {VARIABLE} to the "
        f"folder that holds {dataset}/, or to {dataset}/ itself."
    )
