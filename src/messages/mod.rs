//! What the actors say to each other: one file for each that listens.
//!
//! | message | from | to | reply |
//! | --- | --- | --- | --- |
//! | `GetRoute` | starts, sends, assignment scans | route | the committed route |
//! | `RefreshRoutes` | its timer | route | |
//! | `RouteFetched` | its fetch task | route | |
//! | `SessionAnswered` | sessions, its gate tasks | route | |
//! | `PrepareEndpoints` | consumers and producers | route | settings applied |
//! | `AssignedEndpoints` | consumer | route | |
//! | `RouteUpdated` | route | producer | |
//! | `Prepare` | route | session | settings applied |
//! | `SyncSettings` | its timer, producer | session | |
//! | `SettingsLost` | heartbeats, receives, sends | session | |
//! | `StreamOpened` | its stream task | session | |
//! | `CommandReceived` | its stream task | session | |
//! | `StreamEnded` | its stream task | session | |
//! | `ChannelClosed` | its watch on a channel | session | |
//! | `SettingsOverdue` | its timer | session | |
//! | `Reopen` | its timer | session | |
//! | `HeartbeatAnswered` | its heartbeat task | session | |
//! | `EndSession` | shutdown | session | |
//! | `Begin` | the start | consumer | |
//! | `ScanAssignments` | its timer | consumer | |
//! | `ScanTopic` | its timer | consumer | |
//! | `AssignmentAnswered` | its query task | consumer | |
//! | `QueuePrepared` | its gate task | consumer | |
//! | `QueueEnded` | its watch task | consumer | |
//! | `Received` | a receive loop | process queue | |
//! | `AwaitLane` | a receive loop | process queue | all is settled |
//! | `TaskPanicked` | its tasks | process queue | |
//! | `PermitGranted` | its waiting task | process queue | |
//! | `LaneFree` | a handler's task | process queue | |
//! | `LoopReport` | a receive loop | process queue | whether to go on |
//! | `DrainQueue` | its watch task | process queue | |
//! | `HandBackWaiting` | its drain task | process queue | |
//! | `EndQueue` | its drain task | process queue | |
//! | `SendMessage` | the application | producer | the receipt |
//!
//! To the application's own actors goes [`Deliver`](crate::Deliver), with an
//! [`Outcome`](crate::Outcome) as reply.

pub(crate) mod consumer;
pub(crate) mod process_queue;
pub(crate) mod producer;
pub(crate) mod route;
pub(crate) mod session;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The first cell of each row of the table above.
    fn listed() -> BTreeSet<&'static str> {
        let rows = include_str!("mod.rs").lines();
        rows.filter_map(|line| line.strip_prefix("//! | `")?.split('`').next())
            .collect()
    }

    fn defined() -> BTreeSet<&'static str> {
        let files = [
            include_str!("consumer.rs"),
            include_str!("process_queue.rs"),
            include_str!("producer.rs"),
            include_str!("route.rs"),
            include_str!("session.rs"),
        ];
        let structs = files.into_iter().flat_map(|file| {
            // What is no message has no reply type before it.
            file.split("#[rtype(result").skip(1)
        });
        structs
            .filter_map(|text| text.split("struct ").nth(1)?.split([' ', ';', '{']).next())
            .collect()
    }

    #[test]
    fn the_table_lists_every_message_and_nothing_else() {
        assert!(listed().len() > 20, "the table was read");
        assert_eq!(listed(), defined());
    }
}
