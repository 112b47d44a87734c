//! Protobuf on the wire, with room for the whole message made at once.

use std::marker::PhantomData;

use bytes::BufMut;
use prost::{EncodeError, Message};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, EncodeBuf, Encoder},
};
use tonic_prost::ProstDecoder;

use crate::model::message::encoded::SendRequest;

/// What can be written to a connection.
pub(crate) trait Outgoing: Send + Sync + 'static {
    fn len(&self) -> usize;
    fn write(&self, into: &mut impl BufMut) -> Result<(), EncodeError>;
}

impl<M: Message + 'static> Outgoing for M {
    fn len(&self) -> usize {
        self.encoded_len()
    }

    fn write(&self, into: &mut impl BufMut) -> Result<(), EncodeError> {
        self.encode(into)
    }
}

impl Outgoing for SendRequest {
    fn len(&self) -> usize {
        self.encoded_len()
    }

    fn write(&self, into: &mut impl BufMut) -> Result<(), EncodeError> {
        self.encode(into)
    }
}

/// Encodes `Q`, decodes `R`.
///
/// The usual codec lets its buffer grow while it writes, which copies what is there again and
/// again: about one and a half times the size of a request of many messages.
#[derive(Debug)]
pub(super) struct ExactCodec<Q, R>(PhantomData<(Q, R)>);

impl<Q, R> Default for ExactCodec<Q, R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<Q, R> Codec for ExactCodec<Q, R>
where
    Q: Outgoing,
    R: Message + Default + 'static,
{
    type Encode = Q;
    type Decode = R;
    type Encoder = ExactEncoder<Q>;
    type Decoder = ProstDecoder<R>;

    fn encoder(&mut self) -> Self::Encoder {
        ExactEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::new(BufferSettings::default())
    }
}

#[derive(Debug)]
pub(super) struct ExactEncoder<Q>(PhantomData<Q>);

impl<Q: Outgoing> Encoder for ExactEncoder<Q> {
    type Item = Q;
    type Error = Status;

    fn encode(&mut self, item: Q, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.reserve(item.len());
        // The buffer grows on demand, so it never is too small.
        item.write(into)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
