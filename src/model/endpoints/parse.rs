//! The text in which a user names an access point.

use super::{Address, Endpoints, Excerpt, MAX_ADDRESSES, host, ipv6};
use crate::{Error, Result};
use rocketmq_proto::v2::AddressScheme;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// What a user's text says: where to connect and, where it says so, how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessPoint {
    pub(crate) endpoints: Endpoints,
    /// `Some(true)` for `https://`, `Some(false)` for `http://`.
    pub(crate) tls: Option<bool>,
}

impl AccessPoint {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut said = Prefixes::default();
        let mut addresses = Vec::new();
        let text = text.trim();
        let items = text.strip_suffix([';', ',']).unwrap_or(text);
        for item in items.split([';', ',']).map(str::trim) {
            if addresses.len() == MAX_ADDRESSES {
                return Err(Error::invalid(format!(
                    "more than {MAX_ADDRESSES} addresses"
                )));
            }
            addresses.push(said.address(item).map_err(|why| refusal(item, &why))?);
        }
        Endpoints::new(addresses)
            .map(|endpoints| Self {
                endpoints,
                tls: said.tls,
            })
            .ok_or_else(|| Error::invalid("no address given"))
    }
}

fn refusal(item: &str, why: &str) -> Error {
    // Before the last '@' there may be a password.
    let harmless = item.rsplit('@').next().unwrap_or(item);
    Error::invalid(format!("address {}: {why}", Excerpt(harmless)))
}

/// Prefixes hold for the addresses that follow, too.
#[derive(Default)]
struct Prefixes {
    tls: Option<bool>,
    family: Option<AddressScheme>,
}

impl Prefixes {
    fn address(&mut self, item: &str) -> Result<Address, String> {
        let item = self.take_url_scheme(item)?;
        let item = self.take_family(item);
        let (host, port) = split(item)?;
        if host.contains('@') {
            return Err("user names and passwords do not belong here".into());
        }
        let host = host::check(host)?;
        let port = match port {
            Some(port) => read_port(port)?,
            None if self.tls == Some(true) => HTTPS_PORT,
            None => HTTP_PORT,
        };
        let address = Address { host, port };
        self.demand(address.scheme())?;
        Ok(address)
    }

    fn take_url_scheme<'a>(&mut self, item: &'a str) -> Result<&'a str, String> {
        let (rest, tls) = if let Some(rest) = strip_word(item, "https://") {
            (rest, true)
        } else if let Some(rest) = strip_word(item, "http://") {
            (rest, false)
        } else {
            return Ok(item);
        };
        if self.tls.is_some_and(|earlier| earlier != tls) {
            return Err("http and https cannot be mixed".into());
        }
        self.tls = Some(tls);
        Ok(rest.strip_suffix('/').unwrap_or(rest))
    }

    fn take_family<'a>(&mut self, item: &'a str) -> &'a str {
        let families = [
            ("ipv4:", AddressScheme::IPv4),
            ("ipv6:", AddressScheme::IPv6),
            ("dns:", AddressScheme::DomainName),
        ];
        for (prefix, family) in families {
            // `dns:8081` is a host that happens to be called dns.
            let is_prefix = |rest: &&str| !rest.bytes().all(|byte| byte.is_ascii_digit());
            if let Some(rest) = strip_word(item, prefix).filter(is_prefix) {
                self.family = Some(family);
                return rest;
            }
        }
        item
    }

    fn demand(&self, found: AddressScheme) -> Result<(), String> {
        match self.family {
            Some(AddressScheme::IPv4) if found != AddressScheme::IPv4 => {
                Err("after ipv4: this must be an IPv4 address".into())
            }
            Some(AddressScheme::IPv6) if found != AddressScheme::IPv6 => {
                Err("after ipv6: this must be an IPv6 address".into())
            }
            _ => Ok(()),
        }
    }
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let start = text.get(..word.len())?;
    start
        .eq_ignore_ascii_case(word)
        .then(|| text.get(word.len()..))?
}

/// Host and port, told apart even where IPv6 makes colons ambiguous.
fn split(item: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = item.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("the bracket is not closed")?;
        ipv6(host).ok_or("within brackets stands an IPv6 address")?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("after the bracket only :port may follow".into()),
        };
    }
    let Some((head, tail)) = item.rsplit_once(':') else {
        return Ok((item, None));
    };
    if !head.contains(':') {
        return Ok((head, Some(tail)));
    }
    let tail_is_port = tail.bytes().all(|byte| byte.is_ascii_digit());
    match (ipv6(item).is_some(), ipv6(head).is_some() && tail_is_port) {
        (true, true) => Err(format!("ambiguous; write [{head}]:{tail} or [{item}]")),
        (true, false) => Ok((item, None)),
        (false, _) => Ok((head, Some(tail))),
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err(format!("port {} is not within 1..=65535", Excerpt(text))),
    }
}
