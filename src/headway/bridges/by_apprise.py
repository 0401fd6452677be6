"""Every other channel, through apprise. Imported only by the child that sends: it takes a second."""

from __future__ import annotations

import logging

import apprise

from headway.bridges.message import Message
from headway.bridges.robots import ChannelError

_TYPES = {
    "info": apprise.NotifyType.INFO,
    "success": apprise.NotifyType.SUCCESS,
    "warning": apprise.NotifyType.WARNING,
    "failure": apprise.NotifyType.FAILURE,
}


def knows(address: str) -> bool:
    """Say whether apprise has a service for an address."""
    return _make(address, 1.0) is not None


def send(address: str, message: Message, channel: str, timeout_s: float) -> None:
    """Send a message.

    Raises:
        ChannelError: the service did not take it, or there is none for this address.
    """
    service = _make(address, timeout_s)
    if service is None:
        raise ChannelError("alert/bad-address", channel=channel)
    heard = _Hear()
    logger = logging.getLogger("apprise")
    logger.addHandler(heard)
    try:
        is_taken = service.notify(body=message.body, title=message.title, notify_type=_TYPES[message.level])
    finally:
        logger.removeHandler(heard)
    if not is_taken:
        raise ChannelError("alert/refused", channel=channel, why=heard.last or "apprise does not say why")


def _make(address: str, timeout_s: float) -> apprise.NotifyBase | None:
    asset = apprise.AppriseAsset(app_id="headway", app_desc="Headway", plugin_paths=[], image_url_mask="")
    found = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if isinstance(found, apprise.NotifyBase):
        found.socket_connect_timeout = found.socket_read_timeout = timeout_s
        found.request_rate_per_sec = 0
        return found
    return None


class _Hear(logging.Handler):
    """Remembers the last warning: apprise gives its reasons to its log only."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        if record.levelno >= logging.WARNING:
            self.last = record.getMessage()[:300]
