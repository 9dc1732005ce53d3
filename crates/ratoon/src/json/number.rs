//! Numbers in the notation of Python's `json` module, from the spelling in the input.

use std::borrow::Cow;

/// Writes a number token as Python would after reading it: integers exactly at any size, floats with the
/// shortest digits that read back the same. `None` if the number overflows to infinity.
pub(super) fn python_notation(raw: &str) -> Option<Cow<'_, str>> {
    if is_integer(raw) {
        return Some(Cow::Borrowed(if raw == "-0" { "0" } else { raw }));
    }
    let value: f64 = raw.parse().ok()?;
    value.is_finite().then(|| Cow::Owned(float_notation(value)))
}

/// Code points of a number token in Python's notation. A number that Python cannot hold keeps its spelling.
pub(super) fn python_size(raw: &str) -> u64 {
    python_notation(raw).map_or(raw.len(), |text| text.len()) as u64
}

fn is_integer(raw: &str) -> bool {
    !raw.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// A finite float as Python's `repr` lays it out: `1.0`, `0.0001`, `1e-05`, `1e+16`, `-0.0`.
pub(crate) fn float_notation(value: f64) -> String {
    // Rust's `{:e}` gives the shortest digits that read back the same, as Python does; only the layout differs.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` always writes an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent of an f64 is a small integer");
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let body = if !(-4..16).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        format!("{first}{point}{rest}e{exponent_sign}{:02}", exponent.unsigned_abs())
    } else if exponent < 0 {
        format!("0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1))
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            format!("{digits}{}.0", "0".repeat(whole - digits.len()))
        } else {
            format!("{}.{}", &digits[..whole], &digits[whole..])
        }
    };
    format!("{sign}{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_laid_out_like_python() {
        for (raw, expected) in [
            ("1.0", "1.0"),
            ("1e2", "100.0"),
            ("1E+2", "100.0"),
            ("0.1", "0.1"),
            ("1e-7", "1e-07"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
            ("123456789.123456789", "123456789.12345679"),
            ("1e16", "1e+16"),
            ("1e15", "1000000000000000.0"),
            ("123456789012345680.0", "1.2345678901234568e+17"),
            ("1.5e300", "1.5e+300"),
            ("-0.0", "-0.0"),
            ("5e-324", "5e-324"),
            ("-12.5", "-12.5"),
        ] {
            assert_eq!(python_notation(raw).as_deref(), Some(expected), "{raw}");
        }
    }

    #[test]
    fn integers_keep_every_digit_and_minus_zero_is_zero() {
        let long = "9".repeat(5000);
        assert_eq!(python_notation(&long).as_deref(), Some(long.as_str()));
        assert_eq!(python_notation("-0").as_deref(), Some("0"));
    }

    #[test]
    fn overflow_has_no_notation_but_a_size() {
        assert_eq!(python_notation("1e400"), None);
        assert_eq!(python_size("1e400"), 5);
    }
}
