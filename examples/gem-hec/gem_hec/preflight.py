"""The preflight: does the collector answer, and does it take the token?

It is sent a POST without an event, which Splunk answers with "No data" (code 5) once it has looked at the
token: nothing is written.
"""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gem_bundle import Finding
from gem_hec.collector import FAILURES, Collector, is_no_data, said

if TYPE_CHECKING:
    from gem_hec.collector import Address

SECONDS = 5.0


def check_collector(address: Address) -> list[Finding]:
    """What is wrong with a collector, as far as it can be known without sending an event."""
    where = f"{urlsplit(address.url).scheme}://{urlsplit(address.url).netloc}"
    collector = Collector(replace(address, timeout=min(address.timeout, SECONDS)))
    try:
        answer = collector.post(b"")
    except ssl.SSLCertVerificationError as error:
        return [
            Finding(
                "GB503",
                f"the certificate of `{where}` isn't trusted: {error.verify_message}",
                "Name the file with the certificates to trust in `ca_file`.",
                "url",
            )
        ]
    except FAILURES as error:
        hint = "Check host and port, and that this machine may reach them."
        if isinstance(error, ssl.SSLError):
            hint = "Check the port, and whether the collector takes `https://`."
        return [Finding("GB503", f"`{where}` can't be reached: {said(error)}", hint, "url")]
    finally:
        collector.close()
    if is_no_data(answer) or answer.outcome == "taken":
        return []
    if answer.outcome == "again":
        hint = "A run tries again for as long as `retry_for` says."
        message = f"`{where}` can be reached, but takes nothing now: {answer.reason}"
        return [Finding("GB503", message, hint, "url", "warning")]
    option = "token" if answer.status in (401, 403) else "url"
    if answer.hint and "acknowledge" in answer.hint:
        option = "acknowledge"
    return [Finding("GB503", f"`{where}` refuses events, {answer.reason}", answer.hint, option)]
