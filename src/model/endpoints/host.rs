//! What may stand for a host.

use super::{Ipv4Addr, ipv6};

const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// The host in its canonical form, so that one host has one spelling; or what is wrong with it.
///
/// Strict on purpose: a host comes from a server or a configuration, goes into a URI and decides
/// who gets signed requests.
pub(super) fn check(host: &str) -> Result<Box<str>, String> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some((address, zone)) = ipv6(bare.unwrap_or(host)) {
        return Ok(match zone {
            Some(zone) => format!("{address}%{zone}").into(),
            None => address.to_string().into(),
        });
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Ok(host.into());
    }
    check_name(host)?;
    Ok(host.to_ascii_lowercase().into())
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the host is missing".into());
    }
    if name.len() > MAX_NAME {
        return Err(format!("a host name has {MAX_NAME} characters at most"));
    }
    let stray = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if let Some(stray) = name.chars().find(stray) {
        return Err(format!("a host has no {stray:?} in it"));
    }
    let labels = name.strip_suffix('.').unwrap_or(name);
    if labels
        .split('.')
        .any(|label| !(1..=MAX_LABEL).contains(&label.len()))
    {
        return Err(format!(
            "between its dots a host name has 1 to {MAX_LABEL} characters"
        ));
    }
    // Resolvers read such a name as a number, hence as some other host's IPv4 address.
    let last = labels.rsplit('.').next().unwrap_or(labels);
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("neither an IPv4 address nor a name: it ends in a number".into());
    }
    Ok(())
}
