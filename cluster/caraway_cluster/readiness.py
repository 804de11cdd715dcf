"""Asks the scheduler of a cluster for its executors, and for datasets that are not loaded."""

import urllib.error
import urllib.request
from dataclasses import dataclass

_ANSWER_S = 2.0
_MISSING = "[-] components not ready: "
_NO_EXECUTORS = "[-] executors"
_STILL_LOADING = "(initializing"


@dataclass(frozen=True, slots=True)
class ClusterReadiness:
    """The answer of `/v1/ready`: the executors, and the components that cannot be used."""

    has_executors: bool
    missing: str = ""

    @property
    def is_loading(self) -> bool:
        """True if a component may become ready by itself."""
        return _STILL_LOADING in self.missing


def ask(metrics_address: str | None, executors: int) -> ClusterReadiness | None:
    """Ask the scheduler; return None if it does not answer. Blocks."""
    # The metrics port needs no API key and never uses TLS.
    url = f"http://{metrics_address}/v1/ready?min_ready_executors={executors}&verbose=true"
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
            return parse(answer.read().decode())
    except urllib.error.HTTPError as refusal:
        # A component or the gate is not ready.
        return parse(refusal.read().decode()) if refusal.code == 503 else None
    except (urllib.error.URLError, OSError, ValueError):
        return None


def parse(text: str) -> ClusterReadiness:
    """Parse a verbose answer, which has one line for each condition."""
    lines = text.splitlines()
    missing = [each.removeprefix(_MISSING) for each in lines if each.startswith(_MISSING)]
    has_executors = not any(each.startswith(_NO_EXECUTORS) for each in lines)
    return ClusterReadiness(has_executors, "".join(missing))
