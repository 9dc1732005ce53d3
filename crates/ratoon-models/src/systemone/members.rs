//! The members of a JSON object with their values as they stand, repeated names included.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members in their order. A map would hide that a name is repeated.
pub(super) struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of a value, if it is an object.
    pub(super) fn of(value: &'a RawValue) -> Option<Members<'a>> {
        serde_json::from_str(value.get()).ok()
    }

    /// All values under a name.
    pub(super) fn all(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a RawValue> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| *value)
    }

    /// The last value under a name: where it matters little, a repeated name is no fault.
    pub(super) fn last(&self, name: &str) -> Option<&'a RawValue> {
        self.all(name).next_back()
    }

    /// The value under a name that stands there exactly once.
    pub(super) fn only(&self, name: &str) -> Option<&'a RawValue> {
        let mut values = self.all(name);
        values.next().filter(|_| values.next().is_none())
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = (String, &'a RawValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
