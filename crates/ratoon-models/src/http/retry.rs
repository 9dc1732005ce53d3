//! When a request is sent again, and after how long.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Longest wait that is not asked for by the provider.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// No retry starts later than this after the first attempt.
const BUDGET: Duration = Duration::from_secs(30);
/// How much of a wait chance may take away, so that parallel requests do not come back together.
const JITTER: f64 = 0.25;

/// How retries are made.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) max_retries: u32,
    /// The wait before the first retry; it doubles from retry to retry.
    pub(super) delay: Duration,
}

impl Policy {
    /// How long to wait before the next retry, or nothing if there is none. A wait that the provider asked for and
    /// that does not fit is not shortened: coming back early would only be refused again.
    pub(super) fn wait(&self, retries: u32, asked: Option<Duration>, elapsed: Duration) -> Option<Duration> {
        if retries >= self.max_retries {
            return None;
        }
        let wait = asked.unwrap_or_else(|| self.backoff(retries).mul_f64(1.0 - JITTER * fastrand::f64()));
        (elapsed.checked_add(wait)? <= BUDGET).then_some(wait)
    }

    fn backoff(&self, retries: u32) -> Duration {
        self.delay.saturating_mul(2u32.saturating_pow(retries)).min(MAX_DELAY)
    }
}

/// How long the provider asks to wait, if it says so in a way that can be understood.
pub(super) fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = headers.get("retry-after-ms").and_then(|value| value.to_str().ok()).map(str::trim);
    milliseconds
        .and_then(|value| seconds(value, 1e-3))
        .or_else(|| text(RETRY_AFTER).and_then(|value| seconds(value, 1.0).or_else(|| until(value))))
}

/// True if the provider says that the same request will fail again.
pub(super) fn forbids_retry(headers: &HeaderMap) -> bool {
    headers.get("x-should-retry").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"false"))
}

/// A number of units as a duration; nothing at all means at once. Too many for a clock means never.
fn seconds(number: &str, unit: f64) -> Option<Duration> {
    if number.is_empty() {
        return Some(Duration::ZERO);
    }
    let number: f64 = number.parse().ok()?;
    let usable = number.is_finite() && number >= 0.0;
    usable.then(|| Duration::try_from_secs_f64(number * unit).unwrap_or(Duration::MAX))
}

/// The time until an HTTP date; one that has passed means at once.
fn until(date: &str) -> Option<Duration> {
    let date = httpdate::parse_http_date(date).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn asked(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header value"))
        });
        asked_wait(&headers.collect())
    }

    #[test]
    fn seconds_are_finite_and_not_negative() {
        for (value, wait) in [
            ("0", Some(Duration::ZERO)),
            ("1", Some(Duration::from_secs(1))),
            (" 0.25 ", Some(Duration::from_millis(250))),
            ("1e1", Some(Duration::from_secs(10))),
            ("-0", Some(Duration::ZERO)),
            ("", Some(Duration::ZERO)),
            ("1e300", Some(Duration::MAX)),
            ("-1", None),
            ("nan", None),
            ("inf", None),
            ("1e999", None),
            ("soon", None),
        ] {
            assert_eq!(asked(&[("retry-after", value)]), wait, "{value:?}");
        }
        assert_eq!(asked(&[]), None);
    }

    #[test]
    fn milliseconds_win_if_they_can_be_understood() {
        assert_eq!(asked(&[("retry-after", "9"), ("retry-after-ms", "20")]), Some(Duration::from_millis(20)));
        assert_eq!(asked(&[("retry-after", "9"), ("retry-after-ms", "-1")]), Some(Duration::from_secs(9)));
    }

    #[test]
    fn dates_are_understood() {
        assert_eq!(asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(Duration::ZERO));
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let wait = asked(&[("retry-after", &later)]).expect("a date");
        assert!(wait > Duration::from_secs(60) && wait <= Duration::from_secs(100), "{wait:?}");
        assert_eq!(asked(&[("retry-after", "Sun, 99 Nov 1994")]), None);
    }

    #[test]
    fn waits_double_up_to_a_limit_and_vary_downwards() {
        let policy = Policy { max_retries: 100, delay: Duration::from_millis(500) };
        for (retries, longest) in [(0, 0.5), (1, 1.0), (3, 4.0), (4, 5.0), (90, 5.0)] {
            for _ in 0..50 {
                let wait = policy.wait(retries, None, Duration::ZERO).expect("a retry is left").as_secs_f64();
                assert!(wait <= longest && wait >= longest * 0.75, "{retries}: {wait}");
            }
        }
    }

    #[test]
    fn retries_and_time_are_limited() {
        let policy = Policy { max_retries: 2, delay: Duration::ZERO };
        assert!(policy.wait(1, None, Duration::ZERO).is_some());
        assert_eq!(policy.wait(2, None, Duration::ZERO), None);
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(policy.wait(0, asked(30), Duration::ZERO), asked(30));
        assert_eq!(policy.wait(0, asked(31), Duration::ZERO), None);
        assert_eq!(policy.wait(0, asked(20), Duration::from_secs(11)), None);
        assert_eq!(policy.wait(0, Some(Duration::MAX), Duration::from_secs(1)), None);
    }
}
