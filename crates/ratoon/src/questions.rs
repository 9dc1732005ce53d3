//! Step 6 of 10: one question a unit, from versioned templates.
//!
//! The wording lives in `questions/*.txt`; the number in a file's name is the version, and a changed wording is a
//! new version.

use std::borrow::Cow;

use crate::count::Estimate;
use crate::json::push_text;
use crate::model::Criteria;

/// A question template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Template {
    /// One paragraph without criteria, of the length the contract is recorded with.
    Plain,
    /// One fact, with explicit meanings of true and false. The better choice for remote models.
    Criteria,
}

const ID: &str = "{id}";
const PLAIN: &str = include_str!("questions/plain.1.txt");
const CRITERIA: &str = include_str!("questions/criteria.1.txt");
const CRITERIA_TRUE: &str = include_str!("questions/criteria.true.1.txt");
const CRITERIA_FALSE: &str = include_str!("questions/criteria.false.1.txt");

impl Template {
    /// All templates, in the order in which help texts list them.
    pub const ALL: [Template; 2] = [Template::Plain, Template::Criteria];

    /// The template's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Template::Plain => "plain",
            Template::Criteria => "criteria",
        }
    }

    /// The template of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|template| template.name() == name)
    }

    fn wording(self) -> &'static str {
        match self {
            Template::Plain => PLAIN.trim_end(),
            Template::Criteria => CRITERIA.trim_end(),
        }
    }

    /// The question about the unit with this id, in words.
    pub fn instructions(self, id: &str) -> String {
        self.wording().replace(ID, id)
    }

    /// What true and false mean, if the template says so.
    pub fn criteria(self) -> Option<Criteria<'static>> {
        (self == Template::Criteria).then_some(Criteria {
            when_true: Cow::Borrowed(CRITERIA_TRUE.trim_end()),
            when_false: Cow::Borrowed(CRITERIA_FALSE.trim_end()),
        })
    }

    /// The question as a member of a request's `questions`, the way it is charged.
    fn member(self, id: &str) -> String {
        let mut member = String::new();
        push_text(&mut member, id);
        member.push_str(":{\"type\":\"binary\",\"instructions\":");
        push_text(&mut member, &self.instructions(id));
        if let Some(criteria) = self.criteria() {
            member.push_str(",\"criteria\":{\"true\":");
            push_text(&mut member, &criteria.when_true);
            member.push_str(",\"false\":");
            push_text(&mut member, &criteria.when_false);
            member.push('}');
        }
        member.push('}');
        member
    }

    /// Estimates questions by their ids. The wording is measured once; ids meet only punctuation and spaces in it,
    /// so theirs is added for every mention.
    pub(crate) fn estimator(self) -> impl Fn(&str) -> Estimate {
        let wording = Estimate::of(&self.member(""));
        let mentions = 1 + self.wording().matches(ID).count();
        move |id| (0..mentions).fold(wording, |sum, _| sum + Estimate::of(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_costs_what_the_recorded_cases_allow() {
        for id in ["t1", "t10", "t100", "t1000"] {
            let tokens = Estimate::of(&Template::Plain.instructions(id)).tokens();
            assert!((102..=106).contains(&tokens), "{tokens} tokens for {id}");
        }
    }

    #[test]
    fn the_estimate_is_that_of_the_whole_question() {
        for template in Template::ALL {
            for id in ["t1", "t23", "t4567"] {
                assert_eq!(template.estimator()(id), Estimate::of(&template.member(id)), "{template:?} {id}");
            }
        }
    }

    #[test]
    fn names_lead_to_templates() {
        for template in Template::ALL {
            assert_eq!(Template::from_name(template.name()), Some(template));
        }
        assert_eq!(Template::from_name("other"), None);
    }
}
