//! TLS of a channel, by rustls.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::config::{Tls, TlsOptions};

/// Applies the options to an endpoint.
pub(super) fn secure(endpoint: Endpoint, tls: &Tls) -> Result<Endpoint, tonic::transport::Error> {
    let Tls::On(options) = tls else {
        return Ok(endpoint);
    };
    let config = client_config(options);
    if options.skip_verification {
        endpoint.tls_config_with_verifier(config, Arc::new(AnyCertificate::new()))
    } else {
        endpoint.tls_config(config)
    }
}

fn client_config(options: &TlsOptions) -> ClientTlsConfig {
    let mut config = ClientTlsConfig::new();
    if let Some(name) = &options.server_name {
        config = config.domain_name(name);
    }
    if let Some((certificate, key)) = &options.identity {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    match (&options.ca_pem, options.skip_verification) {
        (_, true) => config,
        (Some(pem), false) => config.ca_certificate(Certificate::from_pem(pem)),
        (None, false) => config.with_native_roots(),
    }
}

/// Accepts whatever certificate comes; behind `dangerously_skip_verification` only.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl AnyCertificate {
    fn new() -> Self {
        let provider = CryptoProvider::get_default().cloned();
        Self(provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider())))
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
