"""An explorer that is served while a test or a bench looks at it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data

NEVER_MS = 3_600_000


@contextmanager
def served(store: Path, refresh_ms: int = NEVER_MS) -> Iterator[str]:
    """The address of an explorer of the store; it looks for new launches only where a time is given."""
    with listening(make(Data(store), refresh_ms=refresh_ms).server) as address:
        yield address


@contextmanager
def listening(application: Any) -> Iterator[str]:
    """The address of an application while it is served."""
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
