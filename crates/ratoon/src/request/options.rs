//! The options of a request: names, defaults, ranges, and what each accepts.

use std::collections::HashMap;
use std::time::Duration;

use crate::json::{Kind, Value};
use crate::problems::{Place, Problems};

/// How a compaction is carried out. [`Options::default`] is the contract.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Evidence with a probability of need at or below this may go. 0 to 1, default 0.1.
    pub drop_threshold: f64,
    /// How many of the newest messages (or steps, see [`Options::recent_unit`]) stay whole. Default 6.
    pub preserve_recent_messages: u64,
    /// Ceiling on the estimated tokens of one state. Above 0, default 25,000.
    pub max_state_tokens: u64,
    /// Ceiling on the estimated tokens of one request. Above 0, default 30,000.
    pub max_request_tokens: u64,
    /// Code points of arguments, results and context texts that the model sees. Above 0, default 2,000.
    pub evidence_chars: u64,
    /// Code points of the excerpt that stays of a result. Default 300.
    pub preview_chars: u64,
    /// Stop as soon as the host's count is at or below this. Above 0; without it everything clear goes.
    pub max_output_tokens: Option<u64>,
    /// Requests to the decision model at a time. 1 to 32, default 4.
    pub max_concurrency: usize,
    /// Seconds for everything the call does. Finite, above 0, default 30.
    pub total_timeout_seconds: f64,
    /// What `preserve_recent_messages` counts. Default: messages.
    pub recent_unit: RecentUnit,
    /// Keep results after which the model has said and done nothing yet. Default off.
    pub protect_unread: bool,
    /// Do not ask about results whose excerpt could not be shorter. Default off.
    pub skip_unshortenable: bool,
    /// A list of text blocks stays a list. Default off.
    pub keep_output_shape: bool,
}

/// What `preserve_recent_messages` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecentUnit {
    /// Messages.
    Message,
    /// Model turns: text and calls with their results.
    Step,
}

/// A set of defaults. Options given explicitly win.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Exactly the contract.
    Contract,
    /// What we would choose: steps, unread results kept, no questions that cannot pay, shapes kept.
    Recommended,
}

impl Default for Options {
    fn default() -> Self {
        Options::of_profile(Profile::Contract)
    }
}

impl Options {
    /// The defaults of a profile.
    pub fn of_profile(profile: Profile) -> Options {
        let recommended = profile == Profile::Recommended;
        Options {
            drop_threshold: 0.1,
            preserve_recent_messages: 6,
            max_state_tokens: 25_000,
            max_request_tokens: 30_000,
            evidence_chars: 2000,
            preview_chars: 300,
            max_output_tokens: None,
            max_concurrency: 4,
            total_timeout_seconds: 30.0,
            recent_unit: if recommended { RecentUnit::Step } else { RecentUnit::Message },
            protect_unread: recommended,
            skip_unshortenable: recommended,
            keep_output_shape: recommended,
        }
    }

    /// The deadline as a duration, at most a century.
    pub fn total_timeout(&self) -> Duration {
        const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
        Duration::try_from_secs_f64(self.total_timeout_seconds).unwrap_or(CENTURY).min(CENTURY)
    }

    /// Reads named values over the defaults of a profile. Of several values with one name the last counts.
    pub(super) fn read(named: &[(String, Value<'_>)], default: Profile, problems: &mut Problems) -> Options {
        let last: HashMap<&str, usize> =
            named.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
        let mut read = Reader { problems };
        let profiles = [("contract", Profile::Contract), ("recommended", Profile::Recommended)];
        let profile = last.get("profile").and_then(|&at| read.word("profile", &named[at].1, &profiles));
        let mut options = Options::of_profile(profile.unwrap_or(default));
        for (at, (name, value)) in named.iter().enumerate() {
            if last[name.as_str()] == at {
                read.option(&mut options, name, value);
            }
        }
        options
    }
}

/// Reads single values and reports what does not fit.
struct Reader<'p> {
    problems: &'p mut Problems,
}

impl Reader<'_> {
    fn option(&mut self, options: &mut Options, name: &str, value: &Value<'_>) {
        match name {
            "profile" => {}
            "drop_threshold" => {
                if let Some(number) = self.float(name, value) {
                    if number < 0.0 {
                        self.problem(name, "greater_than_equal", "must be at least 0");
                    } else if number > 1.0 {
                        self.problem(name, "less_than_equal", "must be at most 1");
                    } else {
                        options.drop_threshold = number;
                    }
                }
            }
            "total_timeout_seconds" => {
                if let Some(number) = self.float(name, value) {
                    if number > 0.0 {
                        options.total_timeout_seconds = number;
                    } else {
                        self.problem(name, "greater_than", "must be greater than 0");
                    }
                }
            }
            "preserve_recent_messages" => self.integer(name, value, 0, &mut options.preserve_recent_messages),
            "preview_chars" => self.integer(name, value, 0, &mut options.preview_chars),
            "max_state_tokens" => self.integer(name, value, 1, &mut options.max_state_tokens),
            "max_request_tokens" => self.integer(name, value, 1, &mut options.max_request_tokens),
            "evidence_chars" => self.integer(name, value, 1, &mut options.evidence_chars),
            "max_output_tokens" => match value.kind {
                Kind::Null => options.max_output_tokens = None,
                _ => {
                    let mut limit = 0;
                    self.integer(name, value, 1, &mut limit);
                    options.max_output_tokens = Some(limit).filter(|&limit| limit > 0);
                }
            },
            "max_concurrency" => {
                let mut requests = options.max_concurrency as u64;
                self.integer(name, value, 1, &mut requests);
                if requests > 32 {
                    self.problem(name, "less_than_equal", "must be at most 32");
                } else {
                    options.max_concurrency = requests as usize;
                }
            }
            "recent_unit" => {
                let units = [("message", RecentUnit::Message), ("step", RecentUnit::Step)];
                if let Some(unit) = self.word(name, value, &units) {
                    options.recent_unit = unit;
                }
            }
            "protect_unread" => self.switch(name, value, &mut options.protect_unread),
            "skip_unshortenable" => self.switch(name, value, &mut options.skip_unshortenable),
            "keep_output_shape" => self.switch(name, value, &mut options.keep_output_shape),
            "preview" => self.only(name, value, "head_tail", "regions"),
            "preview_sizes" => self.only(name, value, "fixed", "graded"),
            "budget_order" => self.only(name, value, "probability", "expected_loss"),
            _ => self.problem(name, "extra_forbidden", "is not an option"),
        }
    }

    fn problem(&mut self, name: &str, kind: &'static str, message: impl Into<String>) {
        self.problems.add(Place::field("options").key(name), kind, message);
    }

    /// A number; as in the reference also numeric text and booleans.
    fn float(&mut self, name: &str, value: &Value<'_>) -> Option<f64> {
        let number = match value.kind {
            Kind::Number(raw) => raw.parse().ok(),
            Kind::Bool(flag) => Some(f64::from(u8::from(flag))),
            Kind::Text(text) => match without_digit_separators(text.decode_lossy().trim()).parse() {
                Ok(number) => Some(number),
                Err(_) => {
                    self.problem(name, "float_parsing", "must be a number");
                    return None;
                }
            },
            _ => {
                self.problem(name, "float_type", "must be a number");
                return None;
            }
        };
        let finite = number.filter(|number: &f64| number.is_finite());
        if finite.is_none() {
            self.problem(name, "finite_number", "must be a finite number");
        }
        finite
    }

    /// An integer of any size, spelled as one; beyond 64 bits it means "no limit".
    fn integer(&mut self, name: &str, value: &Value<'_>, least: u64, target: &mut u64) {
        let digits = match value.kind {
            Kind::Number(raw) if raw.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) => raw,
            _ => return self.problem(name, "int_type", "must be an integer"),
        };
        let number = if digits.starts_with('-') && digits != "-0" {
            None
        } else {
            Some(digits.trim_start_matches('-').parse().unwrap_or(u64::MAX)).filter(|&number| number >= least)
        };
        match number {
            Some(number) => *target = number,
            None if least == 0 => self.problem(name, "greater_than_equal", "must be at least 0"),
            None => self.problem(name, "greater_than", "must be greater than 0"),
        }
    }

    fn switch(&mut self, name: &str, value: &Value<'_>, target: &mut bool) {
        match value.kind {
            Kind::Bool(flag) => *target = flag,
            _ => self.problem(name, "bool_type", "must be true or false"),
        }
    }

    fn word<T: Copy>(&mut self, name: &str, value: &Value<'_>, words: &[(&str, T)]) -> Option<T> {
        if let Kind::Text(text) = value.kind
            && let Some((_, meaning)) = words.iter().find(|(word, _)| text.is(word))
        {
            return Some(*meaning);
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.problem(name, "literal_error", format!("must be one of: {}", known.join(", ")));
        None
    }

    /// An option of which this version has only one of the two values.
    fn only(&mut self, name: &str, value: &Value<'_>, available: &str, missing: &str) {
        if let Kind::Text(text) = value.kind {
            if text.is(available) {
                return;
            }
            if text.is(missing) {
                let message = format!("{missing} is not available in this version; use {available}");
                return self.problem(name, "not_available", message);
            }
        }
        self.problem(name, "literal_error", format!("must be {available}"));
    }
}

/// A number as text without the underscores that Python allows between digits.
fn without_digit_separators(text: &str) -> String {
    let is_digit =
        |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    let separates = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    text.char_indices()
        .filter(|&(at, character)| character != '_' || !separates(at))
        .map(|(_, c)| c)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::without_digit_separators;

    #[test]
    fn underscores_only_count_between_digits() {
        for (text, expected) in [
            ("1_0e-2", "10e-2"),
            ("0.1_0", "0.10"),
            ("3_0", "30"),
            ("_3", "_3"),
            ("3__0", "3__0"),
            ("3_", "3_"),
            ("1_.5", "1_.5"),
        ] {
            assert_eq!(without_digit_separators(text), expected);
        }
    }
}
