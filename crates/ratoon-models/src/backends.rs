//! A backend and its settings become a model. Everything that can be wrong with settings is found here, before
//! anything is sent.

use ratoon::DecisionModel;
use secrecy::ExposeSecret;

use crate::http::{Client, Endpoint};
use crate::rules::Rules;
use crate::settings::{Backend, ModelSettings, SettingsError};
use crate::systemone::SystemOne;

/// Makes the model. Sends nothing.
///
/// # Errors
/// [`SettingsError`]: a key is needed and missing, or a setting cannot be used.
pub fn build(settings: ModelSettings) -> Result<Box<dyn DecisionModel>, SettingsError> {
    match settings.backend {
        Backend::Rules => Ok(Box::new(Rules)),
        Backend::SystemOne => {
            let backend = settings.backend.name();
            let base = given(settings.base_url.as_deref()).unwrap_or(SystemOne::DEFAULT_BASE_URL);
            let endpoint = Endpoint::new(base, "v1/systemone")
                .map_err(|what| SettingsError::BadBaseUrl { backend, what })?;
            if !endpoint.is_private() {
                return Err(SettingsError::InsecureBaseUrl { backend });
            }
            let key = given(settings.api_key.as_ref().map(|key| key.expose_secret()));
            let key = match key {
                Some(key) => checked(key).map_err(|what| SettingsError::BadKey { backend, what })?,
                // Servers on this machine want some token or none; this one says that there is no account.
                None if endpoint.is_loopback() => "local",
                None => return Err(SettingsError::MissingKey { backend }),
            };
            if settings.timeout.is_zero() {
                return Err(SettingsError::ZeroTimeout { backend });
            }
            let client = Client::new(endpoint, key, &settings)
                .map_err(|source| SettingsError::Transport { backend, source })?;
            let model_name = given(settings.model_name.as_deref()).unwrap_or(SystemOne::DEFAULT_MODEL);
            Ok(Box::new(SystemOne::new(backend, model_name, client)))
        }
    }
}

/// A text without the white space around it, if anything is left.
fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// A trimmed key, if it can be sent in a header as it is.
fn checked(key: &str) -> Result<&str, &'static str> {
    if key.chars().any(char::is_whitespace) {
        Err("white space")
    } else if !key.is_ascii() {
        Err("characters beyond ASCII")
    } else if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("characters that cannot be printed")
    } else {
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use secrecy::SecretString;

    use super::*;

    fn settings(key: Option<&str>, base_url: Option<&str>) -> ModelSettings {
        let mut settings = ModelSettings::new(Backend::SystemOne);
        settings.api_key = key.map(SecretString::from);
        settings.base_url = base_url.map(str::to_owned);
        settings
    }

    fn refusal(key: Option<&str>, base_url: Option<&str>) -> String {
        let error = build(settings(key, base_url)).expect_err("the settings are bad").to_string();
        assert!(!error.contains('\n') && !error.ends_with('.'), "{error}");
        error
    }

    #[test]
    fn names_lead_to_backends() {
        for backend in Backend::ALL {
            for name in backend.names() {
                assert_eq!(Backend::from_name(name), Some(backend));
            }
        }
        assert_eq!(Backend::from_name("typesafe"), Backend::from_name("agentscope"));
        assert_eq!(Backend::from_name("Rules"), None);
    }

    #[test]
    fn a_key_is_needed_unless_the_server_is_on_this_machine() {
        let missing = "the decision model agentscope needs a key: set DECISION_MODEL_API_KEY";
        assert_eq!(refusal(None, None), missing);
        assert_eq!(refusal(Some(" \t"), Some("https://example.com")), missing);
        for local in
            ["http://127.0.0.1:1", "http://127.9.8.7", "http://[::1]:1/v1", "http://localhost:11434/"]
        {
            assert!(build(settings(None, Some(local))).is_ok(), "{local}");
            assert!(build(settings(Some("key"), Some(local))).is_ok(), "{local}");
        }
        assert!(build(settings(Some("\n key \n"), Some(" "))).is_ok());
    }

    #[test]
    fn a_key_is_one_printable_ascii_word() {
        assert!(refusal(Some("a b"), None).contains("holds white space"));
        assert!(refusal(Some("a\nb"), None).contains("holds white space"));
        assert!(refusal(Some("schlüssel"), None).contains("beyond ASCII"));
        assert!(refusal(Some("a\u{1}b"), None).contains("cannot be printed"));
        assert!(refusal(Some("a\u{7f}"), None).contains("cannot be printed"));
        // Local servers get no looser treatment: a broken key is a mistake there, too.
        assert!(refusal(Some("a b"), Some("http://127.0.0.1:1")).contains("holds white space"));
    }

    #[test]
    fn nothing_goes_unencrypted_to_another_machine() {
        for other in [
            "http://example.com",
            "http://192.168.0.2:8000",
            "http://localhost.example.com",
            "http://0.0.0.0",
        ] {
            assert!(refusal(Some("key"), Some(other)).contains("plain http"), "{other}");
            assert!(refusal(None, Some(other)).contains("plain http"), "{other}");
        }
    }

    #[test]
    fn bad_base_urls_are_explained() {
        assert!(refusal(Some("key"), Some("api.example.com")).contains("is not a URL"));
        assert!(refusal(Some("key"), Some("ftp://example.com")).contains("is neither http nor https"));
        assert!(
            refusal(Some("key"), Some("https://u:p@example.com")).contains("holds a user name or password")
        );
        assert!(refusal(Some("key"), Some("https://example.com?a=1")).contains("holds a query or fragment"));
    }

    #[test]
    fn a_zero_timeout_is_refused() {
        let mut settings = settings(Some("key"), None);
        settings.timeout = Duration::ZERO;
        assert!(matches!(build(settings), Err(SettingsError::ZeroTimeout { .. })));
    }

    #[test]
    fn the_model_has_the_name_of_its_backend() {
        assert_eq!(build(settings(Some("key"), None)).unwrap().name(), "agentscope");
        assert_eq!(build(ModelSettings::new(Backend::Rules)).unwrap().name(), "rules");
    }
}
