//! Whether, and how, connections are encrypted.

use std::fmt;

/// How a client secures its connections; on and verified unless told otherwise.
///
/// It applies to the access point and to every endpoint that a route names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tls {
    /// Plain text. For a server on the same host, or behind an encrypting proxy.
    Off,
    /// TLS 1.2 or newer, with these options.
    On(TlsOptions),
}

impl Default for Tls {
    fn default() -> Self {
        Self::On(TlsOptions::default())
    }
}

/// Options of TLS. The default trusts the roots of the operating system.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    pub(crate) ca_pem: Option<Vec<u8>>,
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) server_name: Option<String>,
    pub(crate) skip_verification: bool,
}

impl TlsOptions {
    /// Trusts the certificates in this PEM text instead of the system's roots.
    #[must_use]
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_pem = Some(pem.into());
        self
    }

    /// Presents this certificate (chain) and private key, both PEM, to the server.
    #[must_use]
    pub fn client_identity_pem(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Expects this name in the server's certificate instead of the host connected to.
    ///
    /// Needed where a route names IP addresses and the certificate has none.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Accepts any certificate: whoever sits between can read and change everything.
    ///
    /// For the self-signed certificate that a RocketMQ proxy makes for itself in its test mode.
    #[must_use]
    pub fn dangerously_skip_verification(mut self) -> Self {
        self.skip_verification = true;
        self
    }
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsOptions")
            .field("own_ca", &self.ca_pem.is_some())
            .field("client_identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .field("skip_verification", &self.skip_verification)
            .finish()
    }
}
