"""What clients write to logs: at the level DEBUG some write whole answers, in which a server may repeat a secret."""

from __future__ import annotations

import logging

from fliprank.clusters.access import Access

__all__ = ["hide_secrets_in_logs"]

LOGGERS = (
    *("elastic_transport", "elastic_transport.transport", "elastic_transport.node", "elastic_transport.node_pool"),
    *("elasticsearch", "elasticsearch.trace", "opensearch", "opensearchpy.trace", "pysolr", "httpr", "httpx"),
    *("requests", "urllib3.connectionpool", "urllib3.util.retry"),
)


class _Hiding(logging.Filter):
    """Lets all records pass, without the secrets of this access."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self.access = access

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.access.hidden(record.getMessage()), None
        if record.exc_info:
            shown = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_text, record.exc_info = self.access.hidden(shown), None
        record.__dict__.pop("data", None)  # where pysolr puts headers and bodies
        return True


def hide_secrets_in_logs(access: Access) -> None:
    """From now on, for all clients."""
    if not access.password and not access.api_key:
        return
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, _Hiding) and each.access == access for each in logger.filters):
            logger.addFilter(_Hiding(access))
