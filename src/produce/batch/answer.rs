//! Whose result is which.

use rocketmq_proto::v2 as pb;

use crate::{
    Error, ErrorKind, Result,
    produce::attempts::{Verdict, judge},
    rpc::check,
};

/// What a reply says of the messages of its request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The same for all, without a place of their own.
    All(Result<()>),
    /// A result for each, in their order.
    Each(Vec<Result<pb::SendResultEntry>>),
}

/// Servers answer several messages with one entry so far; a result for each is taken as well.
pub(super) fn answer(ids: &[&str], entries: Vec<pb::SendResultEntry>) -> Answer {
    match entries.as_slice() {
        [one] if ids.len() > 1 => Answer::All(success(one)),
        several if several.len() == ids.len() => Answer::Each(each(ids, entries)),
        _ => {
            let (results, messages) = (entries.len(), ids.len());
            let what = format!("{results} results for {messages} messages");
            Answer::All(Err(Error::new(ErrorKind::Protocol, what).possibly()))
        }
    }
}

/// By their place, unless the ids say otherwise.
fn each(ids: &[&str], entries: Vec<pb::SendResultEntry>) -> Vec<Result<pb::SendResultEntry>> {
    let in_place = |(id, entry): (&&str, &pb::SendResultEntry)| *id == entry.message_id;
    let checked = |entry: pb::SendResultEntry| success(&entry).map(|()| entry);
    if ids.iter().zip(&entries).all(in_place) {
        return entries.into_iter().map(checked).collect();
    }
    let of = |id: &&str| entries.iter().find(|entry| entry.message_id == *id);
    match ids.iter().map(of).collect::<Option<Vec<_>>>() {
        Some(found) => found.into_iter().cloned().map(checked).collect(),
        None => entries.into_iter().map(checked).collect(),
    }
}

/// A result that is no success does not say that the message is not stored.
fn success(entry: &pb::SendResultEntry) -> Result<()> {
    check(entry.status.as_ref()).map_err(Error::possibly)
}

/// Whether a failed request has to be taken apart: one of its messages may be at fault.
///
/// Not where no message can be: the endpoint did not answer, asks for less, or lost its settings.
/// Nor after an answer that cannot be understood: the messages may be stored.
pub(super) fn may_be_one_message(error: &Error) -> bool {
    match judge(error, true) {
        Verdict::Final => !matches!(error.kind(), ErrorKind::Protocol | ErrorKind::Closed),
        Verdict::Elsewhere => error.kind() == ErrorKind::Server,
        Verdict::Doubtful => true,
        Verdict::Throttled | Verdict::SettingsLost => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn entry(id: &str, offset: i64, code: pb::Code) -> pb::SendResultEntry {
        pb::SendResultEntry {
            status: Some(pb::Status {
                code: code.into(),
                message: String::new(),
            }),
            message_id: id.to_owned(),
            offset,
            ..pb::SendResultEntry::default()
        }
    }

    const IDS: [&str; 3] = ["a", "b", "c"];

    fn offsets(entries: Vec<pb::SendResultEntry>) -> Vec<Option<i64>> {
        match answer(&IDS, entries) {
            Answer::Each(each) => each
                .into_iter()
                .map(|result| result.ok().map(|entry| entry.offset))
                .collect(),
            Answer::All(all) => panic!("the same for all: {all:?}"),
        }
    }

    #[test]
    fn n45_a_result_for_each_is_found_by_place_or_by_id() {
        let ok = pb::Code::Ok;
        let refused = entry("b", 2, pb::Code::Forbidden);
        let in_order = vec![entry("a", 1, ok), refused.clone(), entry("c", 3, ok)];
        assert_eq!(offsets(in_order), [Some(1), None, Some(3)]);
        let mixed = vec![refused, entry("c", 3, ok), entry("a", 1, ok)];
        assert_eq!(offsets(mixed), [Some(1), None, Some(3)]);
        let foreign = vec![entry("x", 1, ok), entry("y", 2, ok), entry("z", 3, ok)];
        assert_eq!(offsets(foreign), [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn n45_one_result_stands_for_all_and_any_other_number_for_none() {
        let ok = pb::Code::Ok;
        let all = |entries| match answer(&IDS, entries) {
            Answer::All(all) => all.map_err(|error| (error.kind(), error.is_definite())),
            Answer::Each(each) => panic!("a result for each: {each:?}"),
        };
        assert_eq!(all(vec![entry("a,b,c", 7, ok)]), Ok(()));
        assert_eq!(all(vec![entry("FD00", 7, ok)]), Ok(()));
        let refused = all(vec![entry("", 0, pb::Code::Forbidden)]);
        assert_eq!(refused, Err((ErrorKind::Forbidden, false)));
        let unclear = Err((ErrorKind::Protocol, false));
        assert_eq!(all(vec![]), unclear);
        assert_eq!(all(vec![entry("a", 1, ok), entry("b", 2, ok)]), unclear);
    }

    #[test]
    fn only_what_a_message_may_be_to_blame_for_is_taken_apart() {
        for (kind, apart) in [
            (ErrorKind::InvalidArgument, true),
            (ErrorKind::TooLarge, true),
            (ErrorKind::TypeConflict, true),
            (ErrorKind::Server, true),
            (ErrorKind::Timeout, false),
            (ErrorKind::Unreachable, false),
            (ErrorKind::Disconnected, false),
            (ErrorKind::Throttled, false),
            (ErrorKind::Protocol, false),
            (ErrorKind::Closed, false),
        ] {
            assert_eq!(may_be_one_message(&Error::new(kind, "")), apart, "{kind:?}");
        }
        let lost = Error::new(ErrorKind::Server, "").code(pb::Code::UnrecognizedClientType.into());
        assert!(!may_be_one_message(&lost));
    }
}
