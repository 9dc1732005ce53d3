//! JSON as it stands: tokens with their place in the input, sizes in the notation of the contract, splicing.
//!
//! Nothing here builds values. The `Scanner` validates and measures in one pass and without recursion;
//! a string stays a `Text` that points into the input until somebody needs its decoded form. What is never
//! decoded cannot be re-spelled, which is why numbers, key order, duplicate keys and lone surrogates survive.
//!
//! *Size* always means Unicode code points of the value written as compact JSON the way Python's `json.dumps`
//! does with `ensure_ascii=False` and separators `,` and `:` (`stats.chars_before` of the contract).

mod canonical;
mod number;
mod plain;
mod scanner;
mod strings;
mod text;

pub use scanner::{Span, SyntaxError};
pub use text::Text;

pub(crate) use canonical::canonical_object;
pub(crate) use number::float_notation;
pub(crate) use scanner::{Kind, Scanner, Value};
pub(crate) use strings::strings;
pub(crate) use text::{push_text, serialised_code_points};
