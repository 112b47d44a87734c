//! TLS: what is trusted, what is not, and what the error says when the two sides disagree.

use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rocketmq_actors::{
    Client, ClientConfig, Connector, Delivery, Error, ErrorKind, Filter, PushConsumerSpec, Tls,
    TlsOptions,
};
use rocketmq_embedded::{EmbeddedBroker, TopicConfig};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
        server::WebPkiClientVerifier,
    },
};

use super::harness::*;

/// A certificate authority, and a server certificate of it for one name.
struct Pki {
    authority: CertifiedIssuer<'static, KeyPair>,
    server: (CertificateDer<'static>, KeyPair),
}

impl Pki {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let server = signed(&authority, name, ExtendedKeyUsagePurpose::ServerAuth);
        Self {
            authority,
            server: (server.0.der().clone(), server.1),
        }
    }

    fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    /// A client certificate and its key, as PEM.
    fn client(&self) -> (String, String) {
        let (certificate, key) = signed(
            &self.authority,
            "client",
            ExtendedKeyUsagePurpose::ClientAuth,
        );
        (certificate.pem(), key.serialize_pem())
    }

    fn acceptor(&self, wants_client: bool) -> TlsAcceptor {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.der().clone()).unwrap();
            let provider = Arc::new(ring::default_provider());
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.server.1.serialize_der()));
        let mut config = builder
            .with_single_cert(vec![self.server.0.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

fn signed(
    issuer: &Issuer<'_, KeyPair>,
    name: &str,
    usage: ExtendedKeyUsagePurpose,
) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.extended_key_usages = vec![usage];
    (params.signed_by(&key, issuer).unwrap(), key)
}

/// Connections to the broker that are TLS on this side.
fn secured(broker: &EmbeddedBroker, acceptor: TlsAcceptor) -> Connector {
    let connector = broker.connector();
    Connector::new(move |host: String, port| {
        let (acceptor, inner) = (acceptor.clone(), connector.connect(&host, port));
        async move {
            let mut inner = inner?;
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            tokio::spawn(async move {
                if let Ok(mut accepted) = acceptor.accept(theirs).await {
                    // Ends with either side.
                    let _ = tokio::io::copy_bidirectional(&mut accepted, &mut inner).await;
                }
            });
            Ok(ours)
        }
    })
}

async fn start(broker: &EmbeddedBroker, tls: Tls, connector: Connector) -> Result<(), Error> {
    let config = ClientConfig::builder(broker.endpoints())
        .tls(tls)
        .on_this_thread(true)
        .connector(connector)
        .build()?;
    let spec = PushConsumerSpec::builder("g")
        .subscribe("t", Filter::any())
        .handler(|_: Delivery| async {})
        .build()?;
    let consumer = Client::new(config).start(spec).await?;
    consumer.shutdown(secs(1)).await;
    Ok(())
}

/// A start against a server with a certificate for `name`.
async fn against(name: &str, options: impl FnOnce(&Pki) -> Tls) -> Result<(), Error> {
    let broker = broker(|builder| builder).await;
    broker.create_topic("t", TopicConfig::normal(1));
    let pki = Pki::new(name);
    let connector = secured(&broker, pki.acceptor(false));
    start(&broker, options(&pki), connector).await
}

fn refused(result: Result<(), Error>, why: &str) {
    let error = result.expect_err("it must not be trusted");
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    assert!(error.to_string().contains(why), "{error} should say {why}");
    assert!(error.is_definite());
}

#[test]
fn n116_an_own_authority_is_trusted_for_the_name_in_the_certificate() {
    virtually(async {
        let own = |pki: &Pki| Tls::On(TlsOptions::default().ca_pem(pki.ca_pem()));
        against("10.0.0.1", own)
            .await
            .expect("the right name, by address");
        refused(against("other.example", own).await, "not valid for");
        let named = |pki: &Pki| {
            let options = TlsOptions::default().ca_pem(pki.ca_pem());
            Tls::On(options.server_name("other.example"))
        };
        against("other.example", named)
            .await
            .expect("the expected name is overridden");
    });
}

#[test]
fn n116_a_stranger_is_trusted_only_when_told_dangerously() {
    virtually(async {
        let other = |_: &Pki| Tls::On(TlsOptions::default().ca_pem(Pki::new("10.0.0.1").ca_pem()));
        refused(against("10.0.0.1", other).await, "certificate");
        let anything = |_: &Pki| Tls::On(TlsOptions::default().dangerously_skip_verification());
        against("other.example", anything)
            .await
            .expect("told not to look");
    });
}

#[test]
fn n116_a_client_certificate_is_presented_where_the_server_wants_one() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let pki = Pki::new("10.0.0.1");
        let (certificate, key) = pki.client();
        let options = TlsOptions::default().ca_pem(pki.ca_pem());
        let with = Tls::On(options.clone().client_identity_pem(certificate, key));
        let connector = secured(&broker, pki.acceptor(true));
        start(&broker, with, connector.clone())
            .await
            .expect("with a certificate");
        let error = start(&broker, Tls::On(options), connector)
            .await
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Tls | ErrorKind::Disconnected),
            "{error}"
        );
    });
}

#[test]
fn n116_tls_against_a_plain_text_server_says_so() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let connector = broker.connector();
        let plain = Connector::new(move |host: String, port| {
            let connected = connector.connect(&host, port);
            async move { connected }
        });
        let options = TlsOptions::default().dangerously_skip_verification();
        let result = start(&broker, Tls::On(options), plain).await;
        refused(result, "the server does not speak TLS");
    });
}

#[test]
fn n116_plain_text_against_a_tls_server_says_so() {
    virtually(async {
        let broker = broker(|builder| builder).await;
        broker.create_topic("t", TopicConfig::normal(1));
        let connector = secured(&broker, Pki::new("10.0.0.1").acceptor(false));
        refused(
            start(&broker, Tls::Off, connector).await,
            "the server speaks TLS",
        );
    });
}

#[test]
fn options_that_are_no_pem_are_refused_without_showing_them() {
    virtually(async {
        let options = TlsOptions::default()
            .ca_pem(Pki::new("x").ca_pem())
            .client_identity_pem("no certificate", "SECRET-KEY");
        let broker = broker(|builder| builder).await;
        let connector = secured(&broker, Pki::new("x").acceptor(false));
        let tls = Tls::On(options);
        assert!(!format!("{tls:?}").contains("SECRET-KEY"));
        let error = start(&broker, tls, connector).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
        assert!(
            !format!("{error:?} {error}").contains("SECRET-KEY"),
            "{error:?}"
        );
    });
}
