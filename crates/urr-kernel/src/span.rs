//! Finished spans of traces: requests that were answered, events that were handled.
//!
//! A span is a `tracing` event of a target of its own, which only the exporter of traces listens to.
//! Without one it costs a comparison.

use std::time::Duration;

use crate::{Timestamp, TraceContext};

/// The target of the `tracing` events that are spans.
pub const SPAN_TARGET: &str = "urr_span";

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that was answered.
    Request,
    /// A domain event that was handled.
    Event,
}

/// A part of a trace that has ended.
#[derive(Clone, Copy, Debug)]
pub struct FinishedSpan<'a> {
    pub trace: TraceContext,
    /// The span that caused this one; none: this is the first of its trace.
    pub parent_id: Option<u64>,
    pub kind: SpanKind,
    pub service: &'a str,
    /// A route or a type of events: never an address or a text of a user.
    pub name: &'a str,
    pub ended_at: Timestamp,
    pub took: Duration,
    /// A status code, or an outcome.
    pub outcome: &'a str,
    pub is_failure: bool,
}

impl FinishedSpan<'_> {
    /// Whether anybody listens to spans.
    pub fn is_wanted() -> bool {
        tracing::enabled!(target: SPAN_TARGET, tracing::Level::TRACE)
    }

    pub fn record(&self) {
        let took = i64::try_from(self.took.as_nanos()).unwrap_or(i64::MAX);
        let ended = i64::try_from(self.ended_at.as_nanosecond()).unwrap_or(i64::MAX);
        if self.trace.is_sampled() {
            tracing::trace!(
                target: SPAN_TARGET,
                trace_id = self.trace.trace_number(),
                span_id = self.trace.span_id(),
                parent_id = self.parent_id.unwrap_or(0),
                is_event = self.kind == SpanKind::Event,
                service = self.service,
                name = self.name,
                begun_ns = ended.saturating_sub(took),
                ended_ns = ended,
                outcome = self.outcome,
                is_failure = self.is_failure,
            );
        }
    }
}
