//! The metadata every request carries.

use std::sync::{Arc, Mutex, PoisonError};

use rocketmq_proto::v2 as pb;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

use super::signature::{authorization, date_time, unix_seconds};
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
    /// Those that never change.
    fixed: MetadataMap,
    credentials: Option<Arc<dyn CredentialsProvider>>,
    environment: Environment,
    changing: Mutex<Changing>,
}

/// What changes from request to request.
struct Changing {
    rng: fastrand::Rng,
    /// The date of the second that was asked for last: more than one request has it.
    date: Option<(u64, MetadataValue<Ascii>)>,
}

impl Headers {
    pub(crate) fn new(
        client_id: &str,
        namespace: &str,
        credentials: Option<Arc<dyn CredentialsProvider>>,
        environment: &Environment,
    ) -> Result<Self> {
        let mut fixed = MetadataMap::new();
        fixed.insert("x-mq-language", MetadataValue::from_static("RUST"));
        fixed.insert("x-mq-protocol", MetadataValue::from_static("v2"));
        fixed.insert(
            "x-mq-client-version",
            MetadataValue::from_static(CLIENT_VERSION),
        );
        fixed.insert("x-mq-client-id", ascii("the client id", client_id)?);
        fixed.insert("x-mq-namespace", ascii("the namespace", namespace)?);
        Ok(Self {
            fixed,
            credentials,
            environment: environment.clone(),
            changing: Mutex::new(Changing {
                rng: environment.rng(),
                date: None,
            }),
        })
    }

    /// Writes the headers of one attempt in place of any others and returns its request id.
    ///
    /// Each attempt is dated and signed anew, since the date is what is signed.
    pub(crate) fn write(&self, into: &mut MetadataMap) -> Result<String> {
        let (id, date) = self.id_and_date()?;
        into.clone_from(&self.fixed);
        into.insert("x-mq-request-id", ascii("the request id", &id)?);
        if let Some(credentials) = self.credentials.as_ref().and_then(|who| who.credentials()) {
            let signed = date.to_str().unwrap_or_default();
            let value = authorization(credentials.access_key(), credentials.secret(), signed)?;
            into.insert("authorization", secret("the access key", &value)?);
            if let Some(token) = credentials.token() {
                into.insert("x-mq-session-token", secret("the session token", token)?);
            }
        }
        into.insert("x-mq-date-time", date);
        Ok(id)
    }

    fn id_and_date(&self) -> Result<(String, MetadataValue<Ascii>)> {
        let now = self.environment.clock.now();
        let second = unix_seconds(now);
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let id = random_uuid(&mut changing.rng);
        let date = match &changing.date {
            Some((of, date)) if *of == second => date.clone(),
            _ => {
                let date = ascii("the date", &date_time(second))?;
                changing.date.insert((second, date)).1.clone()
            }
        };
        Ok((id, date))
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Headers")
            .field("fixed", &self.fixed)
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
