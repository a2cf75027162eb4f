//! The context of a request, which goes along with calls and domain events: correlation, causation
//! and trace.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Ties the parts of one user action together.
///
/// `correlation_id` names the whole flow, `causation_id` the event that led here (if an event did),
/// and `trace` is the W3C trace context for the tracing system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallContext {
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub trace: TraceContext,
}

impl CallContext {
    /// The start of a new flow. The id also serves as the trace id: one number to search for.
    pub fn root(id: Uuid) -> CallContext {
        CallContext { correlation_id: id, causation_id: None, trace: TraceContext::root(id) }
    }
}

/// A W3C trace context: which trace, which span within it, and whether it is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    sampled: bool,
}

/// Text that is not a `traceparent` of version 00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent: expected 00-<32 hex digits>-<16 hex digits>-<2 hex digits>")]
pub struct InvalidTraceparent;

impl TraceContext {
    /// A new trace named by a fresh id.
    pub fn root(id: Uuid) -> TraceContext {
        let (trace_id, span_id) = (id.as_u128(), id.as_u64_pair().1);
        TraceContext { trace_id, span_id, sampled: true }
    }

    /// The same trace, one span deeper.
    pub fn child(self, id: Uuid) -> TraceContext {
        TraceContext { span_id: id.as_u64_pair().1, ..self }
    }

    pub fn trace_number(self) -> u128 {
        self.trace_id
    }

    pub fn span_id(self) -> u64 {
        self.span_id
    }

    /// Whether whoever began the trace wants it recorded.
    pub fn is_sampled(self) -> bool {
        self.sampled
    }

    /// Whether it is exported where so many of a hundred traces are.
    pub fn is_exported(self, sampled_percent: u8) -> bool {
        self.sampled && TraceContext::is_number_exported(self.trace_id, sampled_percent)
    }

    /// The id decides, so that all processes export the same traces.
    pub fn is_number_exported(trace_number: u128, sampled_percent: u8) -> bool {
        trace_number % 100 < u128::from(sampled_percent)
    }

    /// The trace id as logs and error bodies show it.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace_id)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written for every call: digits from a table are several times faster than `{:032x}`.
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hex(&mut text[3..35], self.trace_id);
        write_hex(&mut text[36..52], u128::from(self.span_id));
        text[54] += u8::from(self.sampled);
        f.write_str(str::from_utf8(&text).expect("hexadecimal is ASCII"))
    }
}

/// The low digits of a number in lower-case hexadecimal, as many as there is room for.
fn write_hex(digits: &mut [u8], mut number: u128) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({self})")
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTraceparent;

    fn from_str(text: &str) -> Result<TraceContext, InvalidTraceparent> {
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace_id, span_id, flags] = parts[..] else {
            return Err(InvalidTraceparent);
        };
        if version != "00" {
            return Err(InvalidTraceparent);
        }
        let trace_id = hex(trace_id, 32)?;
        let span_id = u64::try_from(hex(span_id, 16)?).expect("16 hex digits fit 64 bits");
        let flags = hex(flags, 2)?;
        if trace_id == 0 || span_id == 0 {
            return Err(InvalidTraceparent);
        }
        Ok(TraceContext { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

/// Lower-case hexadecimal of exactly `digits` digits; `from_str_radix` alone would take a sign.
fn hex(text: &str, digits: usize) -> Result<u128, InvalidTraceparent> {
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(lower_hex) {
        return Err(InvalidTraceparent);
    }
    u128::from_str_radix(text, 16).map_err(|_| InvalidTraceparent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_survives_reading_and_writing() {
        let trace: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(trace.to_string(), EXAMPLE);
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    }

    #[test]
    fn malformed_traceparents_are_refused() {
        for bad in [
            "",
            "00",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
        ] {
            assert_eq!(bad.parse::<TraceContext>(), Err(InvalidTraceparent), "{bad}");
        }
    }

    #[test]
    fn a_child_stays_in_the_trace() {
        let trace: TraceContext = EXAMPLE.parse().unwrap();
        let child = trace.child(Uuid::from_u128(42));
        assert_eq!(child.trace_id(), trace.trace_id());
        assert_ne!(child, trace);
    }
}
