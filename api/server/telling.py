"""What an error says of the server's own files: to the curator where they are, to everybody else nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .service import Place
from .store_file import store_path

_ABOUT_FILES = ("LedgerError", "OperationalError", "PolicyError", "InternalError", "DatabaseError")
"""Errors of the server's surroundings. Those of a request quote the request, in which a / is the analyst's own."""
_PATH = re.compile(r"(?<![\w/.])~?(?:/[^\s/'\",;:)]+)+/?")
_FILE = "(a file of the server)"


class Telling:
    """Errors as somebody may read them who holds a token, or none."""

    def __init__(self, place: Place) -> None:
        files = {str(place.policy), str(place.ledger), str(store_path(place.ledger)), place.database}
        folders = {str(place.policy.parent), str(place.ledger.parent)} - {"/", "."}
        self._places: Sequence[str] = sorted(files, key=len, reverse=True) + sorted(folders, key=len, reverse=True)

    def without_places(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of an error without the name of any file."""
        error = body["error"]
        if error["class"] not in _ABOUT_FILES:
            return body
        return {"error": {**error, **{key: self._plain(error[key]) for key in ("message", "hint")}}}

    def _plain(self, text: str) -> str:
        for place in self._places:
            text = text.replace(place, _FILE)
        return _PATH.sub(_FILE, text)
