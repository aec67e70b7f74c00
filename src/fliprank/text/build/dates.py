"""Dates of documents as numbers: the day, counted from the first of January of the year 1, which is day 1.

So a column of dates is positive, 0 can stand for "no date", and `datetime.date.fromordinal` gives the date back. Times
are parts of a day. Dates come as ISO dates, as 24.12.2021, as 24/12/2021 or 12/24/2021 (a number above 12 tells which),
or with the month in English words, before which anything may stand.

>>> day_numbers(pl.Series(["2021-03-04", None, "2020-12-31T12:00:00Z"]), "dates").to_list()
[737853.0, None, 737790.5]
>>> day_numbers(pl.Series(["CACM December, 1958", "3 May 1960", "May"]), "dates in words").to_list()
[715114.0, 715633.0, None]
"""

from __future__ import annotations

import polars as pl

__all__ = ["DATES", "DAYS", "MONTH_FIRST", "WRITTEN", "day_numbers", "kind_of_dates"]

DATES, MONTH_FIRST, WRITTEN = "dates", "dates, the month first", "dates in words"
DAYS = "_day"
"""What the name of a column of days ends in, after the name of what held the dates."""

EPOCH = 719_163
"""The number of 1970-01-01."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LONGEST = 40
"""Characters: what is longer is a text that mentions a date."""

ISO = r"^(?P<year>\d{4})-(?P<month>\d\d?)-(?P<day>\d\d?)(?:[Tt ](?P<hour>\d\d?):(?P<minute>\d\d).*)?$"
NUMBERS = r"^(?P<day>\d\d?)[./](?P<month>\d\d?)[./](?P<year>\d{4})$"
WORDS = (
    rf"^(?:.*?[^a-z0-9])??(?:(?P<day>\d\d?)(?:st|nd|rd|th)?\s+)?(?P<month>{'|'.join(MONTHS)})[a-z]*\.?"
    r"(?:\s+(?P<later>\d\d?)(?:st|nd|rd|th)?)?(?:,\s*|\s+)(?P<year>\d{4})$"
)


def kind_of_dates(values: pl.Series) -> str | None:
    """How to read these strings as dates; None if one of them is no date, or there are none."""
    if not len(values):
        return None
    if values.str.contains(ISO).all():
        return DATES
    if values.str.contains(f"{ISO}|{NUMBERS.replace('?P<', '?P<_')}").all():
        parts = values.str.extract_groups(NUMBERS).struct.unnest()
        first, second = (parts[name].cast(pl.Int32).max() for name in ("day", "month"))
        return MONTH_FIRST if _number(second) > 12 >= _number(first) else DATES
    words = values.str.to_lowercase()
    return WRITTEN if (words.str.contains(WORDS) & (words.str.len_chars() <= LONGEST)).all() else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def day_numbers(values: pl.Series, kind: str) -> pl.Series:
    """The day of each string, read as this kind of dates; null where it is none, or no day that exists."""
    given = values.str.strip_chars().str.to_lowercase().alias("text")
    frame = given.to_frame()
    if kind == WRITTEN:
        found = frame.select(pl.col("text").str.extract_groups(WORDS)).unnest("text")
        month = pl.coalesce(pl.when(pl.col("month") == name).then(i + 1) for i, name in enumerate(MONTHS))
        return _days(found.select("year", month.alias("month"), pl.coalesce("day", "later", pl.lit("1")).alias("day")))
    iso = frame.select(pl.col("text").str.extract_groups(ISO)).unnest("text")
    other = frame.select(pl.col("text").str.extract_groups(NUMBERS)).unnest("text")
    if kind == MONTH_FIRST:
        other = other.rename({"day": "month", "month": "day"})
    both = {name: pl.select(pl.coalesce(iso[name], other[name])).to_series() for name in ("year", "month", "day")}
    hours = iso["hour"].cast(pl.Float64).fill_null(0) + iso["minute"].cast(pl.Float64).fill_null(0) / 60
    return _days(pl.DataFrame(both)) + hours / 24


def _days(parts: pl.DataFrame) -> pl.Series:
    """The day of year, month and day; null where there is no such day."""
    numbers = [pl.col(name).cast(pl.String).str.zfill(width) for name, width in (("year", 4), ("month", 2), ("day", 2))]
    dates = parts.select(pl.concat_str(numbers, separator="-").str.to_date("%Y-%m-%d", strict=False)).to_series()
    return dates.to_physical().cast(pl.Float64) + EPOCH
