#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    Endpoints::parse(text).expect(text).to_string()
}

#[test]
fn n12_every_usual_spelling_is_understood() {
    for (text, expected) in [
        ("127.0.0.1:8081", "127.0.0.1:8081"),
        ("localhost", "localhost:80"),
        ("Proxy.Example.COM:8081", "proxy.example.com:8081"),
        ("my_host.:1", "my_host.:1"),
        ("http://host:1", "host:1"),
        ("HTTP://host/", "host:80"),
        ("https://host", "host:443"),
        ("https://a;b", "a:443;b:443"),
        ("a:1;b:2;", "a:1;b:2"),
        (" b:2 , a:1 ", "a:1;b:2"),
        ("a:1;a:1", "a:1"),
        (
            "ipv4:1.2.3.4:8081;5.6.7.8:8081",
            "1.2.3.4:8081;5.6.7.8:8081",
        ),
        ("dns:host:8081", "host:8081"),
        ("dns:8081", "dns:8081"),
        ("ipv6:[::1]:8081", "[::1]:8081"),
        ("[::1]", "[::1]:80"),
        ("::1", "[::1]:80"),
        ("fe80::1%eth0", "[fe80::1%eth0]:80"),
        ("[fe80::1%eth0]:8081", "[fe80::1%eth0]:8081"),
        ("fe80::1%eth0:8081", "[fe80::1%eth0]:8081"),
        (
            "1050:0:0:0:5:600:300c:326b:8080",
            "[1050::5:600:300c:326b]:8080",
        ),
        ("2001:db8::abcd", "[2001:db8::abcd]:80"),
        ("host:1;1.2.3.4:2;[::1]:3", "1.2.3.4:2;[::1]:3;host:1"),
        ("host:65535", "host:65535"),
        ("host:080", "host:80"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
        assert_eq!(shown(expected), expected, "what is shown can be read again");
    }
}

#[test]
fn what_cannot_be_used_is_refused_and_quoted() {
    for (text, quoted) in [
        ("", "missing"),
        (";", "missing"),
        ("a:1;;b:2", "missing"),
        (":8081", "missing"),
        ("host:", "port \"\""),
        ("host:0", "port \"0\""),
        ("host:65536", "port \"65536\""),
        ("host:-1", "port \"-1\""),
        ("host:+1", "port \"+1\""),
        ("host:99999999999999999999", "port \"99999999999999999999\""),
        ("ho st:1", "' '"),
        ("host\0:1", r"'\0'"),
        ("host/path:1", "'/'"),
        ("http://host:1/path", "port \"1/path\""),
        ("ftp://host:1", "':'"),
        ("http://a;https://b", "mixed"),
        ("bücher.example:1", "'ü'"),
        ("a..b:1", "dots"),
        ("8081", "number"),
        ("256.1.1.1:1", "number"),
        ("broker.1:1", "number"),
        ("::1:8081", "[::1]:8081"),
        ("[::1:1", "bracket"),
        ("[host]:1", "IPv6"),
        ("[::1]x", "bracket"),
        ("::1%e h:1", "':'"),
        ("ipv4:host:1", "IPv4"),
        ("ipv6:1.2.3.4:1", "IPv6"),
    ] {
        let error = Endpoints::parse(text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        assert!(error.to_string().contains(quoted), "{text}: {error}");
    }
}

#[test]
fn a_password_in_an_address_is_refused_but_never_shown() {
    let error = Endpoints::parse("http://user:s3cret@host:1").expect_err("userinfo");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    assert!(error.to_string().contains("\"host:1\""), "{error}");
}

#[test]
fn huge_input_gives_a_short_error() {
    let host = Endpoints::parse(&"x".repeat(65_536)).expect_err("a long host");
    assert!(host.to_string().len() < 300, "{host}");
    let many = Endpoints::parse(&"a:1;".repeat(65)).expect_err("many addresses");
    assert!(many.to_string().contains("64"), "{many}");
}

#[test]
fn the_scheme_of_a_url_hints_at_tls() {
    assert_eq!(
        AccessPoint::parse("https://a:1;b:2").unwrap().tls,
        Some(true)
    );
    assert_eq!(AccessPoint::parse("http://a:1").unwrap().tls, Some(false));
    assert_eq!(AccessPoint::parse("a:1").unwrap().tls, None);
}

fn sent(scheme: i32, addresses: &[(&str, i32)]) -> pb::Endpoints {
    let address = |&(host, port): &(&str, i32)| pb::Address {
        host: host.into(),
        port,
    };
    pb::Endpoints {
        scheme,
        addresses: addresses.iter().map(address).collect(),
    }
}

#[test]
fn n12_n13_order_of_addresses_and_claimed_scheme_do_not_matter() {
    let one = Endpoints::from_proto(&sent(1, &[("10.0.0.1", 1), ("10.0.0.2", 1)])).unwrap();
    let other = Endpoints::from_proto(&sent(0, &[("10.0.0.2", 1), ("10.0.0.1", 1)])).unwrap();
    assert_eq!(one, other);
    assert_eq!(HashSet::from([one.clone(), other]).len(), 1);
    assert_eq!(one.to_proto().scheme(), pb::AddressScheme::IPv4);
}

#[test]
fn odd_endpoints_of_a_server_are_taken_as_far_as_they_can_be_used() {
    for (endpoints, scheme) in [
        (sent(0, &[("host", 1)]), pb::AddressScheme::DomainName),
        (
            sent(99, &[("host", 1), ("other", 65_535)]),
            pb::AddressScheme::DomainName,
        ),
        (
            sent(1, &[("name-under-ipv4", 1)]),
            pb::AddressScheme::DomainName,
        ),
        (
            sent(-1, &[("1.2.3.4", 1), ("::1", 1)]),
            pb::AddressScheme::DomainName,
        ),
        (
            sent(2, &[("[::1]", 1), ("0:0:0:0:0:0:0:1", 1)]),
            pb::AddressScheme::IPv6,
        ),
        (
            sent(3, &[("xn--bcher-kva.example", 1)]),
            pb::AddressScheme::DomainName,
        ),
    ] {
        let taken = Endpoints::from_proto(&endpoints).unwrap();
        assert_eq!(taken.to_proto().scheme(), scheme, "{endpoints:?}");
    }
}

#[test]
fn unusable_endpoints_of_a_server_are_protocol_errors() {
    let long = "h".repeat(65_536);
    let many = vec![("h", 1); 65];
    let bad: [&[(&str, i32)]; 13] = [
        &[],
        &many,
        &[("h", 0)],
        &[("h", -1)],
        &[("h", 65_536)],
        &[("h", 1), ("", 1)],
        &[("h\0", 1)],
        &[("h h", 1)],
        &[("user@h", 1)],
        &[("h/x", 1)],
        &[("h:1", 1)],
        &[("[h]", 1)],
        &[(&long, 1)],
    ];
    for addresses in bad {
        let error = Endpoints::from_proto(&sent(3, addresses)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert!(error.to_string().len() < 300, "{error}");
    }
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,20}(\\.[a-z]{1,8}){0,3}",
        any::<Ipv4Addr>().prop_map(|address| address.to_string()),
        any::<Ipv6Addr>().prop_map(|address| address.to_string()),
    ]
}

proptest! {
    #[test]
    fn proto_and_text_round_trip(
        addresses in prop::collection::vec((host(), 1..=65_535_i32), 1..=64),
    ) {
        let borrowed: Vec<_> = addresses.iter().map(|(host, port)| (host.as_str(), *port)).collect();
        let endpoints = Endpoints::from_proto(&sent(0, &borrowed)).unwrap();
        prop_assert_eq!(&Endpoints::from_proto(&endpoints.to_proto()).unwrap(), &endpoints);
        prop_assert_eq!(Endpoints::parse(&endpoints.to_string()).unwrap(), endpoints);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\PC\0;,:.\\[\\]@%/a-f0-9]{0,80}") {
        if let Ok(endpoints) = Endpoints::parse(&text) {
            prop_assert_eq!(Endpoints::parse(&endpoints.to_string()).unwrap(), endpoints);
        }
    }
}
