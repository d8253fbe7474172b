"""When a repeated job is due."""

from __future__ import annotations

from datetime import datetime, timedelta

FIELDS = [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6)]


def parse_field(text: str, low: int, high: int) -> set[int]:
    """Expand one field of a schedule.

    Understands `*`, `5`, `1-5`, `*/10`, `10-40/15` and lists of these with commas.

    Args:
        text: The field.
        low: Smallest value that makes sense.
        high: Greatest value that makes sense.
    """
    values: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        stride = int(step) if step else 1
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (int(part) for part in span.split("-"))
        else:
            first = int(span)
            last = high if step else first
        if not low <= first <= last <= high or stride < 1:
            raise ValueError(f"{item!r} is not within {low}-{high}")
        values.update(range(first, last + 1, stride))
    return values


def parse_schedule(line: str) -> dict[str, set[int]]:
    """Read the five fields of a cron line: minute, hour, day, month, weekday (0 is Sunday)."""
    parts = line.split()
    if len(parts) != len(FIELDS):
        raise ValueError(f"expected {len(FIELDS)} fields, got {len(parts)} in {line!r}")
    return {name: parse_field(part, low, high) for part, (name, low, high) in zip(parts, FIELDS)}


def is_due(schedule: dict[str, set[int]], moment: datetime) -> bool:
    """Tell whether a job runs in the minute of `moment`."""
    weekday = moment.isoweekday() % 7
    return (
        moment.minute in schedule["minute"]
        and moment.hour in schedule["hour"]
        and moment.day in schedule["day"]
        and moment.month in schedule["month"]
        and weekday in schedule["weekday"]
    )


def next_run(schedule: dict[str, set[int]], after: datetime, horizon: int = 366) -> datetime | None:
    """Find the first minute after a moment at which a job is due.

    Days, hours and minutes that do not match are skipped as a whole, so that a schedule
    that fires once a year takes no longer than one that fires all the time.

    Args:
        schedule: What `parse_schedule` returns.
        after: The search begins one minute later.
        horizon: Number of days to look ahead.

    Returns:
        None if the job never runs within the horizon (on 31 February, say).
    """
    moment = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    end = moment + timedelta(days=horizon)
    while moment < end:
        weekday = moment.isoweekday() % 7
        if (
            moment.month not in schedule["month"]
            or moment.day not in schedule["day"]
            or weekday not in schedule["weekday"]
        ):
            moment = moment.replace(hour=0, minute=0) + timedelta(days=1)
        elif moment.hour not in schedule["hour"]:
            moment = moment.replace(minute=0) + timedelta(hours=1)
        elif moment.minute not in schedule["minute"]:
            moment += timedelta(minutes=1)
        else:
            return moment
    return None


def human_duration(seconds: float, parts: int = 2) -> str:
    """Format a duration with its largest units, such as `2 h 5 min`.

    Args:
        seconds: The duration; a negative one gets a sign.
        parts: Greatest number of units to show.
    """
    sign = "-" if seconds < 0 else ""
    rest = int(round(abs(seconds)))
    pieces = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        amount, rest = divmod(rest, size)
        if amount:
            pieces.append(f"{amount} {unit}")
    return sign + " ".join(pieces[:parts]) if pieces else "0 s"
