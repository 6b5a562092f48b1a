"""Reads a feed with Python's icalendar package and prints its events as JSON."""

import datetime
import json
import sys

import icalendar


def utc(value):
    return value.dt.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


calendar = icalendar.Calendar.from_ical(sys.stdin.buffer.read())
assert not calendar.errors, calendar.errors
events = []
for event in calendar.walk("VEVENT"):
    assert not event.errors, event.errors
    events.append(
        {
            "uid": str(event["UID"]),
            "start": utc(event["DTSTART"]),
            "end": utc(event["DTEND"]),
            "summary": str(event["SUMMARY"]),
            "location": str(event["LOCATION"]),
            "status": str(event["STATUS"]),
            "sequence": int(event["SEQUENCE"]),
            "categories": [str(one) for one in event["CATEGORIES"].cats],
        }
    )
json.dump(events, sys.stdout)
