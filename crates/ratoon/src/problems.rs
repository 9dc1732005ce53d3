//! What is wrong with a request: every problem with its place, found in one go. Never message content.

use std::fmt;

/// How many problems are kept; a wrong format would otherwise repeat itself once a message.
const MAX_PROBLEMS: usize = 20;

/// A step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A field of an object.
    Key(String),
    /// An item of a list, counted from 0.
    Index(usize),
}

/// Where in a request a value stands, for example `messages[3].role`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(Vec<Step>);

impl Place {
    /// A top-level field.
    pub(crate) fn field(name: &str) -> Place {
        Place(Vec::new()).key(name)
    }

    pub(crate) fn key(mut self, name: &str) -> Place {
        self.0.push(Step::Key(name.to_owned()));
        self
    }

    pub(crate) fn index(mut self, index: usize) -> Place {
        self.0.push(Step::Index(index));
        self
    }

    /// The steps from the request to the value.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if at > 0 {
                        f.write_str(".")?;
                    }
                    // A key comes from outside: shown short and without anything a terminal would act on.
                    let shown: String = key.chars().filter(|c| !c.is_control()).take(60).collect();
                    f.write_str(&shown)?;
                    if shown.len() < key.len() {
                        f.write_str("…")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The class of problem, named as the reference's validator names it (`missing`, `string_type`, ...).
    pub kind: &'static str,
    /// What is expected there.
    pub message: String,
}

/// All problems of a request, in the order of the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    found: Vec<Problem>,
    total: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, place: Place, kind: &'static str, message: impl Into<String>) {
        self.total += 1;
        if self.found.len() < MAX_PROBLEMS {
            self.found.push(Problem { place, kind, message: message.into() });
        }
    }

    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The problems, at most twenty of them.
    pub fn found(&self) -> &[Problem] {
        &self.found
    }

    /// How many there are, counting those that are not kept.
    pub fn total(&self) -> usize {
        self.total
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.found.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}: {}", problem.place, problem.message)?;
        }
        if self.total > self.found.len() {
            write!(f, "; and {} more", self.total - self.found.len())?;
        }
        Ok(())
    }
}
