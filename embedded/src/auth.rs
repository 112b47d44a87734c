//! Signatures: HMAC-SHA1 over the call's date.

use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit, Mac};
use rocketmq_proto::v2 as pb;
use sha1::Sha1;

use crate::headers::Headers;
use crate::rpc::{Checked, refuse};

/// The one user that is known, if signatures are wanted.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) access_key: String,
    pub(crate) secret: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}

pub(crate) fn check(credentials: &Credentials, headers: &Headers) -> Checked<()> {
    let unauthorized = |text: &str| refuse(pb::Code::Unauthorized, text);
    if headers.date_time.is_empty() {
        return unauthorized("datetime is null.");
    }
    if headers.authorization.is_empty() {
        return unauthorized("username cannot be null.");
    }
    let Some((credential, signature)) = parse(&headers.authorization) else {
        return unauthorized("authentication header is incorrect.");
    };
    let user = credential.split('/').next().unwrap_or_default();
    if user != credentials.access_key {
        return unauthorized(&format!("User:{user} is not found."));
    }
    if !signed(&credentials.secret, &headers.date_time, signature) {
        return unauthorized("check signature failed.");
    }
    Ok(())
}

/// `<scheme> Credential=<user>, SignedHeaders=<name>, Signature=<hex>`
fn parse(header: &str) -> Option<(&str, &str)> {
    let (_, fields) = header.split_once(' ')?;
    let field = |name: &str| {
        fields
            .split(',')
            .filter_map(|field| field.trim().split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    Some((field("Credential")?, field("Signature")?))
}

fn signed(secret: &str, text: &str, signature: &str) -> bool {
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(secret.as_bytes()) else {
        return false;
    };
    mac.update(text.as_bytes());
    HEXLOWER_PERMISSIVE
        .decode(signature.as_bytes())
        .is_ok_and(|signature| mac.verify_slice(&signature).is_ok())
}
