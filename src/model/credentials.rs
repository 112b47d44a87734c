//! Who a client is to the server.

use std::{fmt, sync::Arc};

use zeroize::Zeroize;

use super::header::{self, MAX_HEADER};
use crate::{Error, Result};

/// An access key, its secret and, for temporary ones, a security token.
///
/// Never shown by `Debug`; the memory is wiped when the last clone is dropped. Cheap to clone.
///
/// ```
/// use rocketmq_actors::Credentials;
///
/// let credentials = Credentials::new("access-key", "wordpass")?;
/// assert_eq!(credentials.access_key(), "access-key");
/// assert!(!format!("{credentials:?}").contains("wordpass"));
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(Arc<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    access_key: String,
    secret: String,
    token: Option<String>,
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.access_key.zeroize();
        self.secret.zeroize();
        self.token.zeroize();
    }
}

impl Credentials {
    /// Checks and keeps an access key and its secret.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless the access key is of visible
    /// ASCII characters without a comma and the secret has no blank around it and no control
    /// character in it, such as the line break at the end of a file; each of 1 byte to 1 KiB.
    pub fn new(access_key: impl Into<String>, secret: impl Into<String>) -> Result<Self> {
        let parts = Parts {
            access_key: access_key.into(),
            secret: secret.into(),
            token: None,
        };
        header::check_secret("access key", &parts.access_key)?;
        if parts.access_key.contains(',') {
            return Err(Error::invalid(
                "the access key has a comma, which ends it in a header",
            ));
        }
        check_signing_secret(&parts.secret)?;
        Ok(Self(Arc::new(parts)))
    }

    /// Adds the security token that belongs to temporary credentials.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless it is of visible ASCII
    /// characters, 1 KiB at most.
    pub fn with_token(mut self, token: impl Into<String>) -> Result<Self> {
        let parts = Arc::make_mut(&mut self.0);
        parts.token.zeroize();
        header::check_secret("security token", parts.token.insert(token.into()))?;
        Ok(self)
    }

    /// The public half.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.0.access_key
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0.secret
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.0.token.as_deref()
    }
}

/// It signs but is no header, so it may be of any language.
fn check_signing_secret(secret: &str) -> Result<()> {
    let why = if secret.trim().is_empty() {
        "is empty"
    } else if secret.len() > MAX_HEADER {
        "is longer than 1 KiB"
    } else if secret.trim() != secret {
        "has a blank or a line break around it"
    } else if secret.chars().any(char::is_control) {
        "has a control character in it"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("the secret {why}")))
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.0.token.as_ref().map(|_| "***");
        out.debug_struct("Credentials")
            .field("access_key", &"***")
            .field("secret", &"***")
            .field("token", &token)
            .finish()
    }
}

/// Gives the credentials for one request.
///
/// It is asked before each attempt of each request, on the threads that make them: what takes time,
/// such as fetching new ones, belongs into a task of its own. With `None` the request goes out
/// unsigned. Constant [`Credentials`] and closures are providers, too:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use rocketmq_actors::{Credentials, CredentialsProvider};
///
/// let current = Arc::new(Mutex::new(None::<Credentials>));
/// let shared = Arc::clone(&current);
/// let provider = move || shared.lock().ok()?.clone();
/// assert!(provider.credentials().is_none());
///
/// *current.lock().unwrap() = Some(Credentials::new("key", "wordpass")?);
/// assert!(provider.credentials().is_some(), "the next request is signed");
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
pub trait CredentialsProvider: Send + Sync {
    /// The credentials in force now.
    fn credentials(&self) -> Option<Credentials>;
}

impl CredentialsProvider for Credentials {
    fn credentials(&self) -> Option<Credentials> {
        Some(self.clone())
    }
}

impl<F: Fn() -> Option<Credentials> + Send + Sync> CredentialsProvider for F {
    fn credentials(&self) -> Option<Credentials> {
        self()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn no_way_of_formatting_shows_anything_secret() {
        let credentials = Credentials::new("marker-k", "marker-s").unwrap();
        let credentials = credentials.with_token("marker-t").unwrap();
        let shown = format!("{credentials:?} {credentials:#?}");
        assert!(!shown.contains("marker"), "{shown}");
        assert!(shown.contains("***"));
    }

    #[test]
    fn refused_secrets_are_not_shown_either() {
        let long = "marker".repeat(200);
        let good = Credentials::new("k", "s").unwrap();
        for result in [
            Credentials::new("marker\r\n", "s"),
            Credentials::new("marker, x", "s"),
            Credentials::new("marker,x", "s"),
            Credentials::new(long.clone(), "s"),
            Credentials::new("", "s"),
            Credentials::new("k", "marker\n"),
            Credentials::new("k", "mar\0ker"),
            Credentials::new("k", long.clone()),
            Credentials::new("k", " "),
            good.clone().with_token("marker\n"),
            good.clone().with_token("ä"),
            good.with_token(long),
        ] {
            let shown = format!("{:?}", result.unwrap_err());
            assert!(!shown.contains("marker"), "{shown}");
        }
    }

    #[test]
    fn another_token_leaves_clones_as_they_are() {
        let first = Credentials::new("k", "ß")
            .unwrap()
            .with_token("one")
            .unwrap();
        let second = first.clone().with_token("two").unwrap();
        assert_eq!((first.token(), second.token()), (Some("one"), Some("two")));
        assert_eq!(second.secret(), "ß");
    }

    #[test]
    fn constants_and_closures_provide() {
        let constant = Credentials::new("k", "s").unwrap();
        let copy = constant.clone();
        let providers: [Arc<dyn CredentialsProvider>; 3] = [
            Arc::new(constant.clone()),
            Arc::new(move || Some(copy.clone())),
            Arc::new(|| None),
        ];
        let given = providers.map(|provider| provider.credentials());
        assert_eq!(given, [Some(constant.clone()), Some(constant), None]);
    }
}
