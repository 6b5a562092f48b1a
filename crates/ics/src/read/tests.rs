use super::*;
use proptest::prelude::*;

const HEAD: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n";

/// The marked times of a file with these events, for a lab in Rome in the years 2026 and 2027.
fn reading(events: &str) -> Result<Reading, ReadError> {
    let file = format!("{HEAD}{events}END:VCALENDAR\r\n");
    read(file.as_bytes(), &rome(), window())
}

fn rome() -> TimeZone {
    TimeZone::get("Europe/Rome").unwrap()
}

fn window() -> Range<Timestamp> {
    "2026-01-01T00:00:00Z".parse().unwrap().."2028-01-01T00:00:00Z".parse().unwrap()
}

fn event(lines: &str) -> String {
    format!("BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Closed\r\n{lines}\r\nEND:VEVENT\r\n")
}

fn times(lines: &str) -> Vec<String> {
    let reading = reading(&event(lines)).unwrap();
    reading
        .spans
        .iter()
        .map(|span| format!("{} {}", span.start, span.end))
        .collect()
}

#[test]
fn days_are_those_of_whoever_asks_across_a_change_of_the_clock() {
    let one = times("DTSTART;VALUE=DATE:20260329");
    assert_eq!(
        one,
        ["2026-03-28T23:00:00Z 2026-03-29T22:00:00Z"],
        "23 hours long"
    );
    let three = times("DTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227");
    assert_eq!(three, ["2026-12-23T23:00:00Z 2026-12-26T23:00:00Z"]);
    assert_eq!(times("DTSTART;VALUE=DATE:20261224\r\nDURATION:P3D"), three);
    let same = times("DTSTART;VALUE=DATE:20260601\r\nDTEND;VALUE=DATE:20260601");
    assert_eq!(same, ["2026-05-31T22:00:00Z 2026-06-01T22:00:00Z"]);
}

#[test]
fn moments_are_read_in_their_own_zone() {
    let noon = "2026-06-01T10:00:00Z 2026-06-01T11:30:00Z";
    for lines in [
        "DTSTART:20260601T100000Z\r\nDTEND:20260601T113000Z",
        "DTSTART;TZID=Europe/Rome:20260601T120000\r\nDTEND;TZID=Europe/Rome:20260601T133000",
        "DTSTART:20260601T120000\r\nDURATION:PT1H30M",
        "DTSTART;TZID=\"/America/New_York\":20260601T060000\r\nDURATION:PT90M",
    ] {
        assert_eq!(times(lines), [noon], "{lines}");
    }
}

#[test]
fn a_zone_of_another_name_is_found_by_what_the_file_says() {
    let file = format!(
        "BEGIN:VTIMEZONE\r\nTZID:Our Time\r\nX-LIC-LOCATION:America/New_York\r\nEND:VTIMEZONE\r\n{}",
        event("DTSTART;TZID=Our Time:20260601T060000\r\nDURATION:PT1H")
    );
    let start = reading(&file).unwrap().spans[0].start;
    assert_eq!(start.to_string(), "2026-06-01T10:00:00Z");
}

#[test]
fn rules_are_worked_out_for_the_window() {
    let christmas = times("DTSTART;VALUE=DATE:19701225\r\nRRULE:FREQ=YEARLY");
    assert_eq!(
        christmas,
        [
            "2026-12-24T23:00:00Z 2026-12-25T23:00:00Z",
            "2027-12-24T23:00:00Z 2027-12-25T23:00:00Z"
        ]
    );
    let starts = |lines: &str| -> Vec<String> {
        let day = |time: String| time.split('T').next().unwrap().to_owned();
        times(lines).into_iter().map(day).collect()
    };
    // Every Monday at nine in Rome, while its clock changes.
    let weekly = times(
        "DTSTART;TZID=Europe/Rome:20260323T090000\r\nDURATION:PT1H\r\nRRULE:FREQ=WEEKLY;COUNT=2",
    );
    assert_eq!(
        weekly,
        [
            "2026-03-23T08:00:00Z 2026-03-23T09:00:00Z",
            "2026-03-30T07:00:00Z 2026-03-30T08:00:00Z"
        ]
    );
    let counted = starts("DTSTART:20251230T120000\r\nDURATION:PT1H\r\nRRULE:FREQ=DAILY;COUNT=4");
    assert_eq!(
        counted,
        ["2026-01-01", "2026-01-02"],
        "those before count too"
    );
    let until = starts(
        "DTSTART:20260101T120000\r\nDURATION:PT1H\r\nRRULE:FREQ=DAILY;UNTIL=20260103T110000Z",
    );
    assert_eq!(
        until,
        ["2026-01-01", "2026-01-02", "2026-01-03"],
        "the last moment included"
    );
    let days = starts("DTSTART;VALUE=DATE:20260102\r\nRRULE:FREQ=DAILY;UNTIL=20260104");
    assert_eq!(
        days,
        ["2026-01-01", "2026-01-02", "2026-01-03"],
        "midnight in Rome"
    );
    let long =
        times("DTSTART;VALUE=DATE:20201201\r\nDTEND;VALUE=DATE:20210115\r\nRRULE:FREQ=YEARLY");
    assert_eq!(
        long[0], "2025-11-30T23:00:00Z 2026-01-14T23:00:00Z",
        "reaches into the window"
    );
}

#[test]
fn exceptions_moved_and_cancelled_instances_count() {
    let weekly = "DTSTART:20260105T120000\r\nDURATION:PT1H\r\nRRULE:FREQ=WEEKLY;COUNT=4\r\nEXDATE:20260112T120000";
    let file = event(weekly)
        + &event("RECURRENCE-ID:20260119T120000\r\nDTSTART:20260120T150000\r\nDURATION:PT1H")
        + &event(
            "RECURRENCE-ID:20260126T120000\r\nDTSTART:20260126T120000\r\nDURATION:PT1H\r\nSTATUS:CANCELLED",
        );
    let starts: Vec<String> = reading(&file)
        .unwrap()
        .spans
        .iter()
        .map(|span| span.start.to_string())
        .collect();
    assert_eq!(starts, ["2026-01-05T11:00:00Z", "2026-01-20T14:00:00Z"]);
    let also = times("DTSTART;VALUE=DATE:20260105\r\nRDATE;VALUE=DATE:20260201,20260301");
    assert_eq!(also.len(), 3);
}

#[test]
fn what_is_not_understood_is_told_and_the_rest_is_kept() {
    let file = event("DTSTART:soon")
        + &event("DTSTART:20260601T120000\r\nDTEND:20260601T110000")
        + &event("DTSTART;VALUE=DATE:20260601\r\nRRULE:FREQ=YEARLY;BYWEEKNO=20");
    let reading = reading(&file).unwrap();
    assert_eq!(reading.spans.len(), 1);
    assert_eq!(reading.notes.len(), 3);
    assert!(
        reading.notes[2].contains("“Closed” recurs by a rule"),
        "{:?}",
        reading.notes
    );
    // Alarms and tasks have times of their own, which the reader ignores.
    let alarm = event(
        "DTSTART;VALUE=DATE:20260601\r\nBEGIN:VALARM\r\nDTSTART:19990101T000000Z\r\nSUMMARY:x\r\nEND:VALARM",
    );
    let task = "BEGIN:VTODO\r\nDTSTART:20260101T000000Z\r\nDURATION:P9D\r\nEND:VTODO\r\n";
    let kept = super::tests::reading(&(alarm + task)).unwrap().spans;
    assert_eq!((kept.len(), kept[0].title.as_str()), (1, "Closed"));
}

#[test]
fn what_is_no_calendar_is_refused_in_words() {
    let refused = |file: &str| read(file.as_bytes(), &rome(), window()).unwrap_err();
    assert_eq!(refused(""), ReadError::NotACalendar);
    assert_eq!(refused("<html>a: b</html>"), ReadError::NotACalendar);
    assert_eq!(refused("BEGIN:VEVENT\nEND:VEVENT"), ReadError::NotACalendar);
    assert_eq!(
        refused("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT"),
        ReadError::CutOff
    );
    let crossed = refused("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\nEND:VEVENT");
    assert!(crossed.to_string().starts_with("line 3: "), "{crossed}");
    let deep = "BEGIN:VCALENDAR\n".repeat(100);
    assert!(matches!(refused(&deep), ReadError::Broken { line: 17, .. }));
}

#[test]
fn work_and_memory_are_bounded() {
    let daily = event("DTSTART:20260101T000000Z\r\nDURATION:PT1M\r\nRRULE:FREQ=DAILY");
    let other = daily.replace("T000000Z", "T010000Z");
    let third = daily.replace("T000000Z", "T020000Z");
    assert_eq!(
        reading(&(daily + &other + &third)),
        Err(ReadError::TooManySpans)
    );
    // Rules that never fall on any day in the window, counted from long ago.
    let endless = event(
        "DTSTART:00010101T000000Z\r\nDURATION:PT1M\r\nRRULE:FREQ=YEARLY;COUNT=4000000000;BYMONTH=2;BYMONTHDAY=30",
    );
    assert_eq!(reading(&endless.repeat(10)), Err(ReadError::TooMuchWork));
    assert_eq!(
        reading(&event("DTSTART:x").repeat(EVENTS_MAX + 1)),
        Err(ReadError::TooManyEvents)
    );
    let talkative = reading(&event("DTSTART:x").repeat(1000)).unwrap();
    assert_eq!(talkative.notes.len(), NOTES_MAX);
}

/// A calendar with all supported parts, to be damaged.
fn whole() -> String {
    let event = event(
        "DTSTART;TZID=\"Europe/Rome\":20260105T120000\r\nDTEND:20260105T130000Z\r\nDURATION:P1DT2H\r\n\
         RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;UNTIL=20270101T000000Z;BYDAY=MO,-1FR;BYMONTH=1,2;WKST=SU\r\n\
         EXDATE;VALUE=DATE:20260112,20260119\r\nRDATE:20260201T000000Z/P1D\r\nRECURRENCE-ID:20260105T120000",
    );
    let zone =
        "BEGIN:VTIMEZONE\r\nTZID:Our Time\r\nX-LIC-LOCATION:America/New_York\r\nEND:VTIMEZONE\r\n";
    format!("{HEAD}{zone}{event}END:VCALENDAR\r\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        read(&bytes, &rome(), window()).ok();
    }

    #[test]
    fn a_damaged_calendar_does_no_harm(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        twice in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = whole().into_bytes();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(twice) = twice {
            let again = bytes[twice.index(bytes.len())..].to_vec();
            bytes.extend(again);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read(&bytes, &rome(), window()).ok();
    }

    #[test]
    fn strange_values_do_no_harm(
        start in "([0-9]{8}(T[0-9]{6}Z?)?|\\PC{0,20})",
        duration in "(P[0-9]{1,10}[DWYM](T[0-9]{1,12}[HMS])?|\\PC{0,20})",
        rule in "FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;(INTERVAL|COUNT|UNTIL|BYMONTH|BYMONTHDAY|BYDAY)=[-+0-9A-Z,]{1,12}){0,4}",
    ) {
        let lines = format!("DTSTART:{start}\r\nDURATION:{duration}\r\nRRULE:{rule}");
        reading(&event(&lines)).ok();
    }
}
