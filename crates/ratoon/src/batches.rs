//! Step 5 of 10: what fits a request. Greedy, in order, by adding up estimates; nothing is serialised again.

use crate::count::Estimate;

/// What requests may hold and what their fixed parts cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceilings {
    pub(crate) max_state_tokens: u64,
    pub(crate) max_request_tokens: u64,
    /// A state without units.
    pub(crate) state_frame: Estimate,
    /// Everything around the state and the questions of a request.
    pub(crate) request_frame: Estimate,
    /// A comma between two units or two questions.
    pub(crate) comma: Estimate,
}

/// Tokens that every request is charged on top of its estimate.
const REQUEST_RESERVE: u64 = 256;

/// The costs of one unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) unit: Estimate,
    pub(crate) question: Estimate,
}

/// Where a unit goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Behind the units of the current request, whose state then has this many estimated tokens.
    Joins(u64),
    /// First in a request of its own.
    Opens(u64),
    /// Into none: too large for any request. The current request stays closed.
    LeftOut,
}

/// Packs units in order. A unit that does not fit behind the current ones closes the request and begins
/// another if it fits alone; otherwise it is left out for good and the closed request stays closed.
#[derive(Debug)]
pub(crate) struct Packer {
    ceilings: Ceilings,
    /// The current request's sums, without frames.
    open: Option<Cost>,
}

impl Packer {
    pub(crate) fn new(ceilings: Ceilings) -> Packer {
        Packer { ceilings, open: None }
    }

    /// Finds the place of the next unit.
    pub(crate) fn place(&mut self, cost: Cost) -> Placement {
        let behind = self.open.map(|sum| Cost {
            unit: sum.unit + self.ceilings.comma + cost.unit,
            question: sum.question + self.ceilings.comma + cost.question,
        });
        if let Some(sum) = behind
            && let Some(tokens) = self.ceilings.state_tokens(&sum)
        {
            self.open = Some(sum);
            return Placement::Joins(tokens);
        }
        let alone = self.ceilings.state_tokens(&cost);
        self.open = alone.map(|_| cost);
        alone.map_or(Placement::LeftOut, Placement::Opens)
    }
}

impl Ceilings {
    /// The state's tokens if the request fits.
    fn state_tokens(&self, sum: &Cost) -> Option<u64> {
        let state = self.state_frame + sum.unit;
        let request = self.request_frame + state + sum.question;
        let fits = state.tokens() <= self.max_state_tokens
            && request.tokens() + REQUEST_RESERVE <= self.max_request_tokens;
        fits.then(|| state.tokens())
    }
}

#[cfg(test)]
mod tests {
    use super::Placement::{Joins, LeftOut, Opens};
    use super::*;

    fn places(sizes: &[usize], max_state_tokens: u64) -> Vec<Placement> {
        let none = Estimate::default();
        let mut packer = Packer::new(Ceilings {
            max_state_tokens,
            max_request_tokens: u64::MAX,
            state_frame: none,
            request_frame: none,
            comma: Estimate::of(","),
        });
        let cost = |&size: &usize| Cost { unit: Estimate::of(&"!".repeat(size)), question: none };
        sizes.iter().map(|size| packer.place(cost(size))).collect()
    }

    #[test]
    fn units_are_packed_greedily_in_order() {
        assert_eq!(places(&[4, 4, 4, 4], 9), [Opens(4), Joins(9), Opens(4), Joins(9)]);
        assert_eq!(places(&[4, 4, 4], 8), [Opens(4), Opens(4), Opens(4)]);
    }

    #[test]
    fn a_unit_too_large_for_any_request_closes_the_current_one_and_is_left_out() {
        assert_eq!(places(&[2, 20, 2, 2], 9), [Opens(2), LeftOut, Opens(2), Joins(5)]);
        assert_eq!(places(&[20], 9), [LeftOut]);
    }

    #[test]
    fn the_request_ceiling_counts_questions_and_the_reserve() {
        let mut packer = Packer::new(Ceilings {
            max_state_tokens: u64::MAX,
            max_request_tokens: REQUEST_RESERVE + 9,
            state_frame: Estimate::default(),
            request_frame: Estimate::of("!"),
            comma: Estimate::of(","),
        });
        let cost = Cost { unit: Estimate::of("!"), question: Estimate::of("!!") };
        assert_eq!([0; 3].map(|_| packer.place(cost)), [Opens(1), Joins(3), Opens(1)]);
    }
}
