//! The metadata every request carries.

use std::sync::Arc;

use rocketmq_proto::v2 as pb;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

use super::signature::{authorization, date_time};
use crate::{
    Error, Result,
    environment::{Environment, random_uuid},
    model::CredentialsProvider,
};

/// The version sent to servers, which compare it as text with "5.0.3".
const CLIENT_VERSION: &str = concat!("5.2.0-rust-", env!("CARGO_PKG_VERSION"));

/// What a client says of itself in its settings.
pub(crate) fn user_agent() -> pb::Ua {
    pb::Ua {
        language: pb::Language::Rust as i32,
        version: CLIENT_VERSION.to_owned(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        hostname: host_name(),
    }
}

/// The name of this host, as it is.
pub(crate) fn host_name() -> String {
    hostname::get()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Makes the headers of one producer or consumer.
pub(crate) struct Headers {
    client_id: MetadataValue<Ascii>,
    namespace: MetadataValue<Ascii>,
    credentials: Option<Arc<dyn CredentialsProvider>>,
    environment: Environment,
    rng: std::sync::Mutex<fastrand::Rng>,
}

impl Headers {
    pub(crate) fn new(
        client_id: &str,
        namespace: &str,
        credentials: Option<Arc<dyn CredentialsProvider>>,
        environment: &Environment,
    ) -> Result<Self> {
        Ok(Self {
            client_id: ascii("the client id", client_id)?,
            namespace: ascii("the namespace", namespace)?,
            credentials,
            environment: environment.clone(),
            rng: std::sync::Mutex::new(environment.rng()),
        })
    }

    /// Writes the headers of one attempt and returns its request id.
    ///
    /// Each attempt is dated and signed anew, since the date is what is signed.
    pub(crate) fn write(&self, into: &mut MetadataMap) -> Result<String> {
        let id = self.request_id();
        let date = date_time(self.environment.clock.now());
        into.insert("x-mq-language", MetadataValue::from_static("RUST"));
        into.insert("x-mq-protocol", MetadataValue::from_static("v2"));
        into.insert(
            "x-mq-client-version",
            MetadataValue::from_static(CLIENT_VERSION),
        );
        into.insert("x-mq-client-id", self.client_id.clone());
        into.insert("x-mq-namespace", self.namespace.clone());
        into.insert("x-mq-request-id", ascii("the request id", &id)?);
        if let Some(credentials) = self.credentials.as_ref().and_then(|who| who.credentials()) {
            let value = authorization(credentials.access_key(), credentials.secret(), &date)?;
            into.insert("authorization", secret("the access key", &value)?);
            if let Some(token) = credentials.token() {
                into.insert("x-mq-session-token", secret("the session token", token)?);
            }
        }
        into.insert("x-mq-date-time", ascii("the date", &date)?);
        Ok(id)
    }

    fn request_id(&self) -> String {
        let mut rng = self
            .rng
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        random_uuid(&mut rng)
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Headers")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

fn ascii(what: &str, value: &str) -> Result<MetadataValue<Ascii>> {
    value
        .parse()
        .map_err(|_| Error::invalid(format!("{what} does not fit a header")))
}

/// A value that no log of headers shows.
fn secret(what: &str, value: &str) -> Result<MetadataValue<Ascii>> {
    let mut value = ascii(what, value)?;
    value.set_sensitive(true);
    Ok(value)
}
