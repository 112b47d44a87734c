//! What a server tells clients apart by.

const MAX_HOST: usize = 64;

/// `host@pid@index@random`, where `index` counts the clients of this process.
///
/// Two clients with one id would be one to the server, and share what only one of them gets;
/// containers often agree in host and process id, hence the random bits. What of the host's name
/// could break a header is replaced.
pub(crate) fn client_id(host: &str, pid: u32, index: u32, random: u64) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    let host: String = host.chars().take(MAX_HOST).map(safe).collect();
    let host = if host.is_empty() { "unknown" } else { &host };
    format!("{host}@{pid}@{index}@{random:016x}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::model::header;

    #[test]
    fn an_id_shows_its_parts() {
        assert_eq!(
            client_id("web-1", 7, 2, 0xBEEF),
            "web-1@7@2@000000000000beef"
        );
        assert_eq!(client_id("", 1, 0, 1), "unknown@1@0@0000000000000001");
    }

    #[test]
    fn four_containers_alike_make_a_million_different_ids() {
        let ids: HashSet<_> = (0..4)
            .flat_map(|container| {
                let mut random = fastrand::Rng::with_seed(container);
                (0..250_000).map(move |index| client_id("app", 1, index, random.u64(..)))
            })
            .collect();
        assert_eq!(ids.len(), 1_000_000);
    }

    proptest! {
        #[test]
        fn any_host_makes_a_header(host in "(?s:.){0,200}", pid: u32, index: u32, random: u64) {
            let id = client_id(&host, pid, index, random);
            prop_assert!(header::check("client id", &id).is_ok());
            prop_assert_eq!(id.matches('@').count(), 3);
        }
    }
}
