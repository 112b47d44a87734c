//! From bodies to payloads.

use bytes::Bytes;

use super::Delivery;
use crate::{Error, Result};

/// Decodes bodies for handlers that take something else than bytes.
pub trait Codec<T>: Send + Sync + 'static {
    /// The payload of a delivery.
    ///
    /// # Errors
    /// Says why the body is none.
    fn decode(&self, delivery: &Delivery) -> Result<T>;
}

/// Bodies as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raw;

impl Codec<Bytes> for Raw {
    fn decode(&self, delivery: &Delivery) -> Result<Bytes> {
        Ok(delivery.body().clone())
    }
}

/// Bodies that are UTF-8 text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text;

impl Codec<String> for Text {
    fn decode(&self, delivery: &Delivery) -> Result<String> {
        std::str::from_utf8(delivery.body())
            .map(ToOwned::to_owned)
            .map_err(|error| Error::invalid("the body is not UTF-8").caused_by(error))
    }
}
