//! Where requests go: a base URL as people write it, and what may be sent there.

use std::net::IpAddr;

use reqwest::Url;

/// An address to post to.
pub(crate) struct Endpoint {
    url: Url,
}

impl Endpoint {
    /// The address behind a base URL. Providers document their base with and without `/v1`, so one `/v1` at its end
    /// does not count, nor do slashes.
    ///
    /// # Errors
    /// What is wrong with the base URL, as the rest of a sentence about it.
    pub(crate) fn new(base: &str, path: &str) -> Result<Endpoint, &'static str> {
        let base = base.trim().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base).trim_end_matches('/');
        let url: Url = base.parse().map_err(|_| "is not a URL")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("is neither http nor https");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("holds a user name or password");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("holds a query or fragment");
        }
        let url = format!("{}/{path}", url.as_str().trim_end_matches('/'));
        Ok(Endpoint { url: url.parse().map_err(|_| "is not a URL")? })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// True if nobody between here and there can read along.
    pub(crate) fn is_private(&self) -> bool {
        self.url.scheme() == "https" || self.is_loopback()
    }

    /// True if the server is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_taken_with_and_without_version() {
        for (base, url) in [
            ("https://api.typesafe.ai", "https://api.typesafe.ai/v1/systemone"),
            (" https://api.typesafe.ai// ", "https://api.typesafe.ai/v1/systemone"),
            ("https://api.typesafe.ai/v1", "https://api.typesafe.ai/v1/systemone"),
            ("https://api.typesafe.ai/v1/", "https://api.typesafe.ai/v1/systemone"),
            ("https://api.typesafe.ai/v1/v1", "https://api.typesafe.ai/v1/v1/systemone"),
            ("https://example.com/inference/v1", "https://example.com/inference/v1/systemone"),
            ("https://example.com/api1", "https://example.com/api1/v1/systemone"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/systemone"),
        ] {
            assert_eq!(Endpoint::new(base, "v1/systemone").unwrap().url().as_str(), url);
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is_loopback = |base| Endpoint::new(base, "x").unwrap().is_loopback();
        for base in [
            "http://127.0.0.1",
            "http://127.255.1.2:80",
            "http://127.1",
            "https://[::1]:1",
            "http://LOCALHOST",
        ] {
            assert!(is_loopback(base), "{base}");
        }
        for base in
            ["http://128.0.0.1", "http://[::2]", "http://localhost.com", "http://10.0.0.1", "http://0.0.0.0"]
        {
            assert!(!is_loopback(base), "{base}");
        }
    }
}
