"""The system's Chromium, which the page is tested in. ``make test`` installs it where it may."""

from __future__ import annotations

import os
import shutil

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str:
    """Where it is. Without one the test is skipped and says why; under CI=true that is a failure."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is not None:
        return path
    reason = "there is no Chromium to open the page in: apt-get install chromium, or CHROMIUM=/path/to/one"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
