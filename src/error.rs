//! The one error type of this crate.

use std::{error::Error as StdError, fmt, sync::Arc};

/// What went wrong, as far as a program can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value was refused, here or by the server: a name, a size, a combination. Mend the value.
    InvalidArgument,
    /// The credentials are missing, unknown or wrong.
    Unauthorized,
    /// The credentials are known, but not allowed to do this; or the queue may not be used so.
    Forbidden,
    /// No such topic or group.
    NotFound,
    /// A body, the properties or a reply is over a limit.
    TooLarge,
    /// The server asks for less traffic.
    Throttled,
    /// The topic takes another type of message.
    TypeConflict,
    /// The lease on a delivery is over: it was, or will be, delivered again.
    ReceiptExpired,
    /// The server does not know this call, or not for this kind of client.
    Unsupported,
    /// The server failed to do its work.
    Server,
    /// No answer within the time that was given.
    Timeout,
    /// No connection could be made.
    Unreachable,
    /// The TLS handshake failed, or one side speaks TLS and the other does not.
    Tls,
    /// The connection broke while a call was under way.
    Disconnected,
    /// The server answered what the protocol does not allow.
    Protocol,
    /// The producer, consumer or client is shut down, or is about to be.
    Closed,
    /// As much is under way as was allowed.
    Full,
    /// A part failed more often than its restart policy allows.
    GaveUp,
}

impl ErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid argument",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not found",
            Self::TooLarge => "too large",
            Self::Throttled => "throttled",
            Self::TypeConflict => "message type conflict",
            Self::ReceiptExpired => "receipt expired",
            Self::Unsupported => "unsupported",
            Self::Server => "server error",
            Self::Timeout => "timed out",
            Self::Unreachable => "unreachable",
            Self::Tls => "TLS failure",
            Self::Disconnected => "disconnected",
            Self::Protocol => "protocol violation",
            Self::Closed => "closed",
            Self::Full => "too much in flight",
            Self::GaveUp => "gave up",
        }
    }
}

/// An error with its kind and where it came from.
///
/// Cheap to clone: callers that waited for the same thing get the same error. It never holds
/// credentials or message bodies.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    operation: Option<&'static str>,
    endpoint: Option<String>,
    code: Option<i32>,
    request_id: Option<String>,
    definite: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// Shorthand for a result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let definite = matches!(
            kind,
            ErrorKind::InvalidArgument
                | ErrorKind::Unauthorized
                | ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::TooLarge
                | ErrorKind::Throttled
                | ErrorKind::TypeConflict
                | ErrorKind::Unsupported
                | ErrorKind::Unreachable
                | ErrorKind::Tls
                | ErrorKind::Full
        );
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            operation: None,
            endpoint: None,
            code: None,
            request_id: None,
            definite,
            source: None,
        }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    pub(crate) fn closed(what: &str) -> Self {
        Self::new(ErrorKind::Closed, format!("{what} is shut down")).definitely()
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    pub(crate) fn operation(self, operation: &'static str) -> Self {
        self.with(|inner| inner.operation = Some(operation))
    }

    pub(crate) fn endpoint(self, endpoint: impl fmt::Display) -> Self {
        self.with(|inner| inner.endpoint = Some(endpoint.to_string()))
    }

    pub(crate) fn code(self, code: i32) -> Self {
        self.with(|inner| inner.code = Some(code))
    }

    pub(crate) fn request_id(self, id: impl Into<String>) -> Self {
        self.with(|inner| inner.request_id = Some(id.into()))
    }

    pub(crate) fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.source = Some(Arc::new(source)))
    }

    /// Puts `context` before the message; all else stays.
    pub(crate) fn context(self, context: impl fmt::Display) -> Self {
        self.with(|inner| inner.message = format!("{context}: {}", inner.message))
    }

    /// Nothing left this process, whatever the kind suggests.
    pub(crate) fn definitely(self) -> Self {
        self.with(|inner| inner.definite = true)
    }

    /// An earlier try may have had its effect, whatever the kind suggests.
    pub(crate) fn possibly(self) -> Self {
        self.with(|inner| inner.definite = false)
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The status code of the server, where it gave one (`40402` for an unknown topic).
    #[must_use]
    pub fn server_code(&self) -> Option<i32> {
        self.0.code
    }

    /// The id the failed request carried, to be found again in the server's logs.
    #[must_use]
    pub fn server_request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The endpoint the failed request went to.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        self.0.endpoint.as_deref()
    }

    /// Whether the same call may succeed later without any change by the caller.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Throttled
                | ErrorKind::Server
                | ErrorKind::Timeout
                | ErrorKind::Unreachable
                | ErrorKind::Disconnected
                | ErrorKind::Full
        )
    }

    /// Whether the call certainly had no effect.
    ///
    /// `false` means unknown: the server may have done its work and only the answer is missing.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        self.0.definite
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(out, "{}", inner.kind.text())?;
        if let Some(operation) = inner.operation {
            write!(out, " in {operation}")?;
        }
        if let Some(endpoint) = &inner.endpoint {
            write!(out, " at {endpoint}")?;
        }
        write!(out, ": {}", inner.message)?;
        match (inner.code, &inner.request_id) {
            (Some(code), Some(id)) => write!(out, " (code {code}, request {id})"),
            (Some(code), None) => write!(out, " (code {code})"),
            (None, Some(id)) => write!(out, " (request {id})"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        out.debug_struct("Error")
            .field("kind", &inner.kind)
            .field("message", &inner.message)
            .field("operation", &inner.operation)
            .field("endpoint", &inner.endpoint)
            .field("code", &inner.code)
            .field("request_id", &inner.request_id)
            .field("definite", &inner.definite)
            .field("source", &inner.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_what_it_was_given() {
        let error = Error::new(ErrorKind::NotFound, "no topic t")
            .operation("QueryRoute")
            .endpoint("127.0.0.1:8081")
            .code(40402)
            .request_id("abc")
            .caused_by(std::io::Error::other("inner"));
        assert_eq!(
            error.to_string(),
            "not found in QueryRoute at 127.0.0.1:8081: no topic t (code 40402, request abc)"
        );
        assert_eq!(error.server_code(), Some(40402));
        assert!(error.source().is_some(), "the chain is kept");
        assert!(error.is_definite() && !error.is_retryable());
    }

    #[test]
    fn a_timeout_is_unknown_and_retryable() {
        let error = Error::new(ErrorKind::Timeout, "3 s");
        assert!(!error.is_definite() && error.is_retryable());
        assert!(error.clone().definitely().is_definite());
        assert!(!error.definitely().possibly().is_definite());
    }
}
