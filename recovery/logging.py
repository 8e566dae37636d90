"""Logs of every process: one JSON object a line on stderr, or colours where a person is looking.

Ours are written with `structlog.get_logger()`: a constant message and keys. Libraries that use the standard `logging`
end in the same stream, from WARNING up.
"""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger


def configure_logging(process: str, slot: int | None = None) -> None:
    """Set logging up for this process; each line carries `process`, and `slot` where there is one.

    Call it once, before the first line is logged; a second call replaces the first.
    """
    tty = sys.stderr.isatty()

    def identify(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["process"] = process
        if slot is not None:
            event["slot"] = slot
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        identify,
    ]
    last: list[Processor] = (
        [structlog.dev.ConsoleRenderer()]
        if tty
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for room in ("recovery", "schemas", "streams", "projections", "gateway", "sac", "infra"):
        logging.getLogger(room).setLevel(logging.INFO)
