//! Where a server listens.

mod host;
mod parse;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr,
    sync::Arc,
};

use rocketmq_proto::v2 as pb;

use crate::{Error, ErrorKind, Result};

pub(crate) use parse::AccessPoint;

use super::excerpt::Excerpt;

/// More addresses than any deployment has; a longer list is a mistake or an attack.
const MAX_ADDRESSES: usize = 64;

/// One host and port.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: Box<str>,
    port: u16,
}

impl Address {
    /// A lower-case name, an IPv4 address, or an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Never 0.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    fn scheme(&self) -> pb::AddressScheme {
        if self.host.contains(':') {
            pb::AddressScheme::IPv6
        } else if self.host.parse::<Ipv4Addr>().is_ok() {
            pb::AddressScheme::IPv4
        } else {
            pb::AddressScheme::DomainName
        }
    }

    fn from_proto(address: &pb::Address) -> Result<Self, String> {
        let host = host::check(&address.host)?;
        match u16::try_from(address.port) {
            Ok(port) if port > 0 => Ok(Self { host, port }),
            _ => Err(format!("port {} is not within 1..=65535", address.port)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The addresses of one server: at least one, at most 64, each of them once.
///
/// Their order means nothing: two values with the same addresses are equal. Cheap to clone.
///
/// # Text form
///
/// `host[:port]`, several of them separated by `;` or `,`; one separator may end the text. A host
/// is a DNS name, an IPv4 address or an IPv6 address. IPv6 addresses are best written in brackets
/// (`[::1]:8081`); without them a text that could be read with and without a port is refused.
/// A prefix `ipv4:`, `ipv6:` or `dns:` demands that kind of host from there on. `http://` and
/// `https://` are accepted too. The port is 80 by default, and 443 after `https://`.
///
/// ```
/// use rocketmq_actors::Endpoints;
///
/// let endpoints: Endpoints = "proxy-a:8081;proxy-b:8081".parse()?;
/// assert_eq!(endpoints, "proxy-b:8081,proxy-a:8081;".parse()?);
/// assert_eq!(endpoints.to_string(), "proxy-a:8081;proxy-b:8081");
/// # Ok::<(), rocketmq_actors::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoints(Arc<[Address]>);

impl Endpoints {
    /// Reads the text form above.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`], quoting what cannot be used.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(AccessPoint::parse(text)?.endpoints)
    }

    /// The addresses in ascending order.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.0
    }

    fn new(mut addresses: Vec<Address>) -> Option<Self> {
        addresses.sort_unstable();
        addresses.dedup();
        (!addresses.is_empty()).then(|| Self(addresses.into()))
    }

    /// Takes what a server sent. The scheme it claims is not trusted: hosts speak for themselves.
    pub(crate) fn from_proto(endpoints: &pb::Endpoints) -> Result<Self> {
        let protocol = |what: String| Error::new(ErrorKind::Protocol, what);
        let count = endpoints.addresses.len();
        if count > MAX_ADDRESSES {
            let what = format!("{count} addresses in one endpoint, {MAX_ADDRESSES} at most");
            return Err(protocol(what));
        }
        let addresses = endpoints.addresses.iter().map(|address| {
            Address::from_proto(address).map_err(|why| {
                let host = Excerpt(&address.host);
                protocol(format!("address {host}, port {}: {why}", address.port))
            })
        });
        Self::new(addresses.collect::<Result<_>>()?)
            .ok_or_else(|| protocol("an endpoint without addresses".into()))
    }

    /// What stands for these endpoints in a URI: their first address. A zone is left out, for a URI
    /// has no place for it.
    pub(crate) fn authority(&self) -> String {
        let Some(Address { host, port }) = self.0.first() else {
            return String::new();
        };
        match host.split_once('%').map_or(&**host, |(address, _)| address) {
            address if address.contains(':') => format!("[{address}]:{port}"),
            name => format!("{name}:{port}"),
        }
    }

    pub(crate) fn to_proto(&self) -> pb::Endpoints {
        let addresses = self.0.iter().map(|address| pb::Address {
            host: address.host.to_string(),
            port: address.port.into(),
        });
        pb::Endpoints {
            scheme: self.scheme().into(),
            addresses: addresses.collect(),
        }
    }

    /// One family if all hosts are of it, otherwise that of names.
    fn scheme(&self) -> pb::AddressScheme {
        let mut schemes = self.0.iter().map(Address::scheme);
        let first = schemes.next().unwrap_or(pb::AddressScheme::DomainName);
        if schemes.all(|scheme| scheme == first) {
            first
        } else {
            pb::AddressScheme::DomainName
        }
    }
}

impl FromStr for Endpoints {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(out, "{separator}{address}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Endpoints({self})")
    }
}

/// The address part of `text` before a zone such as `%eth0`, if it is an IPv6 address.
fn ipv6(text: &str) -> Option<(Ipv6Addr, Option<&str>)> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let is_plain = |zone: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=32).contains(&zone.len()) && zone.bytes().all(plain)
    };
    zone.is_none_or(is_plain).then_some(())?;
    Some((address.parse().ok()?, zone))
}
