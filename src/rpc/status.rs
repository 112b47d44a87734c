//! From status codes, of the server and of gRPC, to errors.

use std::error::Error as StdError;

use rocketmq_proto::v2 as pb;

use super::connect::PeerNote;
use crate::{Error, ErrorKind};

/// The kind of a business code; unknown numbers go by their hundreds.
pub(crate) fn kind_of(code: i32) -> ErrorKind {
    use pb::Code;
    match Code::try_from(code) {
        Ok(Code::InvalidReceiptHandle) => ErrorKind::ReceiptExpired,
        Ok(Code::MessagePropertyConflictWithType) => ErrorKind::TypeConflict,
        Ok(Code::UnrecognizedClientType) => ErrorKind::Server,
        Ok(Code::Unauthorized) => ErrorKind::Unauthorized,
        Ok(Code::Forbidden | Code::PaymentRequired) => ErrorKind::Forbidden,
        Ok(
            Code::NotFound
            | Code::MessageNotFound
            | Code::TopicNotFound
            | Code::ConsumerGroupNotFound
            | Code::OffsetNotFound,
        ) => ErrorKind::NotFound,
        Ok(Code::RequestTimeout | Code::ProxyTimeout) => ErrorKind::Timeout,
        Ok(Code::MasterPersistenceTimeout | Code::SlavePersistenceTimeout) => ErrorKind::Timeout,
        Ok(
            Code::PayloadTooLarge
            | Code::MessageBodyTooLarge
            | Code::RequestHeaderFieldsTooLarge
            | Code::MessagePropertiesTooLarge,
        ) => ErrorKind::TooLarge,
        Ok(
            Code::TooManyRequests
            | Code::LiteTopicQuotaExceeded
            | Code::LiteSubscriptionQuotaExceeded,
        ) => ErrorKind::Throttled,
        Ok(
            Code::NotImplemented
            | Code::Unsupported
            | Code::VersionUnsupported
            | Code::VerifyFifoMessageUnsupported,
        ) => ErrorKind::Unsupported,
        _ if (40_000..50_000).contains(&code) => ErrorKind::InvalidArgument,
        _ => ErrorKind::Server,
    }
}

/// Whether the code says success. A missing status is none.
pub(crate) fn is_success(code: i32) -> bool {
    code == pb::Code::Ok as i32 || code == pb::Code::MultipleResults as i32
}

/// The error in a business status, if it is one.
pub(crate) fn check(status: Option<&pb::Status>) -> Result<(), Error> {
    let Some(status) = status else {
        return Err(Error::new(ErrorKind::Protocol, "the reply has no status"));
    };
    if is_success(status.code) {
        return Ok(());
    }
    Err(Error::new(kind_of(status.code), brief(&status.message)).code(status.code))
}

/// Whether a server says that it does not know the settings of this client, as one does that was
/// started anew.
pub(crate) fn says_settings_lost(error: &Error) -> bool {
    let code = error.server_code();
    code == Some(pb::Code::UnrecognizedClientType as i32)
        || (code == Some(pb::Code::InternalServerError as i32)
            && error.to_string().contains("\"settings\" is null"))
}

/// A server's text, short enough for a log line and without control characters.
pub(crate) fn brief(text: &str) -> String {
    text.chars()
        .take(512)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// The error in a gRPC status.
pub(crate) fn from_grpc(status: tonic::Status, note: &PeerNote) -> Error {
    use tonic::Code;
    let broken = connection_broke(&status);
    let kind = match status.code() {
        // A code made here, from an HTTP/2 error, is not the server's answer.
        _ if broken => ErrorKind::Disconnected,
        // Made here, too: the server has done its work, and its answer is too long.
        Code::OutOfRange if is_over_limit(&status) => ErrorKind::Protocol,
        Code::DeadlineExceeded => ErrorKind::Timeout,
        // A local deadline comes back as cancelled, and so does a call whose connection broke.
        Code::Cancelled if status.message().contains("Timeout expired") => ErrorKind::Timeout,
        Code::ResourceExhausted => ErrorKind::Throttled,
        Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => {
            ErrorKind::InvalidArgument
        }
        Code::Unauthenticated => ErrorKind::Unauthorized,
        Code::PermissionDenied => ErrorKind::Forbidden,
        Code::Unimplemented => ErrorKind::Unsupported,
        Code::Internal | Code::DataLoss | Code::Aborted => ErrorKind::Server,
        _ => ErrorKind::Disconnected,
    };
    let (kind, text) = match connection_failure(&status) {
        Some(found) => found,
        None if is_over_limit(&status) => {
            let text = brief(status.message());
            (kind, format!("the reply is over the decode_limit: {text}"))
        }
        None => (kind, brief(status.message())),
    };
    let error = match note.hint() {
        Some(hint) => Error::new(ErrorKind::Tls, hint),
        None => Error::new(kind, text),
    };
    let error = match status.code() {
        Code::ResourceExhausted if !broken => error.code(pb::Code::TooManyRequests as i32),
        _ => error,
    };
    error.caused_by(status)
}

/// Whether the status was made here as the connection, or the stream of the call, broke.
fn connection_broke(status: &tonic::Status) -> bool {
    let mut source: Option<&(dyn StdError + 'static)> = status.source();
    let mut broke = source.is_some() && status.message().starts_with("h2 protocol error");
    while let Some(error) = source {
        if error.is::<tonic::ConnectError>() {
            return false;
        }
        broke |= error.is::<hyper::Error>();
        source = error.source();
    }
    broke
}

/// Whether the reply was longer than what is decoded. There is no other sign of it.
fn is_over_limit(status: &tonic::Status) -> bool {
    status
        .message()
        .contains("decoded message length too large")
}

/// Whether no connection was made at all, and why.
fn connection_failure(status: &tonic::Status) -> Option<(ErrorKind, String)> {
    let mut source: Option<&(dyn StdError + 'static)> = status.source();
    let mut connecting = false;
    let mut text = String::new();
    while let Some(error) = source {
        connecting |= error.is::<tonic::ConnectError>();
        if let Some(tls) = tls_failure(error) {
            return Some((ErrorKind::Tls, tls));
        }
        text = error.to_string();
        source = error.source();
    }
    connecting.then(|| {
        (
            ErrorKind::Unreachable,
            format!("no connection: {}", brief(&text)),
        )
    })
}

#[cfg(feature = "tls")]
fn tls_failure(error: &(dyn StdError + 'static)) -> Option<String> {
    let found = error.downcast_ref::<rustls::Error>().or_else(|| {
        let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
        inner.downcast_ref::<rustls::Error>()
    })?;
    Some(match found {
        rustls::Error::InvalidMessage(_) => {
            "the server does not speak TLS, but TLS is on in the configuration".to_owned()
        }
        other => brief(&other.to_string()),
    })
}

#[cfg(not(feature = "tls"))]
fn tls_failure(_: &(dyn StdError + 'static)) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "tests")]

    use super::*;

    fn kind(code: i32) -> ErrorKind {
        let status = pb::Status {
            code,
            message: "text".to_owned(),
        };
        check(Some(&status)).expect_err("no success").kind()
    }

    #[test]
    fn every_code_of_the_protocol_has_its_kind() {
        assert_eq!(kind(40013), ErrorKind::ReceiptExpired);
        assert_eq!(kind(40014), ErrorKind::TypeConflict);
        assert_eq!(kind(40002), ErrorKind::InvalidArgument);
        assert_eq!(kind(40100), ErrorKind::Unauthorized);
        assert_eq!(kind(40300), ErrorKind::Forbidden);
        assert_eq!(kind(40402), ErrorKind::NotFound);
        assert_eq!(kind(41301), ErrorKind::TooLarge);
        assert_eq!(kind(42900), ErrorKind::Throttled);
        assert_eq!(kind(50001), ErrorKind::Server);
        assert_eq!(kind(50100), ErrorKind::Unsupported);
        assert_eq!(kind(50400), ErrorKind::Timeout);
    }

    #[test]
    fn unknown_codes_go_by_their_hundreds_and_a_missing_status_is_no_success() {
        assert_eq!(kind(40999), ErrorKind::InvalidArgument);
        assert_eq!(kind(0), ErrorKind::Server);
        assert_eq!(kind(-1), ErrorKind::Server);
        assert_eq!(
            check(None).expect_err("no status").kind(),
            ErrorKind::Protocol
        );
        assert!(
            check(Some(&pb::Status {
                code: 30000,
                message: String::new()
            }))
            .is_ok()
        );
    }

    /// A peer that answers the first call by resetting its stream with this HTTP/2 error code.
    async fn reset_with(reason: u8) -> Error {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let connect = tower::service_fn(move |_: tonic::transport::Uri| async move {
            let (ours, mut peer) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move {
                peer.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.ok();
                // The request is there when nothing else happens any more.
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                let reset = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, reason];
                peer.write_all(&reset).await.ok();
                peer.read_to_end(&mut Vec::new()).await.ok();
            });
            Ok::<_, std::io::Error>(hyper_util::rt::TokioIo::new(ours))
        });
        let channel = tonic::transport::Endpoint::from_static("http://peer")
            .connect_with_connector_lazy(connect);
        let mut client = pb::messaging_service_client::MessagingServiceClient::new(channel);
        let request = pb::HeartbeatRequest::default();
        let status = client.heartbeat(request).await.expect_err("reset");
        from_grpc(status, &PeerNote::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_was_reset_is_a_broken_connection_whatever_the_reason() {
        // ENHANCE_YOUR_CALM, INADEQUATE_SECURITY, REFUSED_STREAM, INTERNAL_ERROR
        for reason in [0xb, 0xc, 0x7, 0x2] {
            let error = reset_with(reason).await;
            assert_eq!(error.kind(), ErrorKind::Disconnected, "{reason}: {error:?}");
            assert!(!error.is_definite() && error.server_code().is_none());
        }
    }

    #[test]
    fn a_code_of_the_server_keeps_its_meaning_and_a_reply_over_the_limit_says_nothing_of_it() {
        let of = |status| from_grpc(status, &PeerNote::default());
        let throttled = of(tonic::Status::resource_exhausted("slower"));
        assert_eq!(throttled.kind(), ErrorKind::Throttled);
        let long = "Error, decoded message length too large: found 9 bytes, the limit is: 4 bytes";
        let long = of(tonic::Status::out_of_range(long));
        assert!(long.kind() == ErrorKind::Protocol && !long.is_definite());
    }

    #[test]
    fn the_text_of_a_server_is_cut_and_cleaned() {
        assert_eq!(brief("a\nb\u{7}c"), "a b c");
        assert_eq!(brief(&"x".repeat(5000)).len(), 512);
    }
}
