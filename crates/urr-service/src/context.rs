//! The context of a request: trace, correlation id and language. When the request is answered, its
//! error body, request id and metrics follow from it.

use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use tokio::time::Instant;
use tracing::Span;
use urr_kernel::{CallContext, FinishedSpan, IdSource, Language, SpanKind, TraceContext};
use uuid::Uuid;

use crate::deadline::Deadline;
use crate::internal_call::CallSpec;
use crate::messages::preferred_language;
use crate::metrics::{AnswerCounters, AnsweredRequest};
use crate::{ApiError, Caller, ServiceKit};

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
pub(crate) const CAUSATION_ID: HeaderName = HeaderName::from_static("x-causation-id");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The route of a request in the metrics, as an extension of the response. The gateway sets it from
/// its own table, because its router has one catch-all route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLabel(pub &'static str);

/// What the request layer needs: the name of the service and its kit.
pub(crate) struct ContextState {
    pub service: &'static str,
    pub kit: ServiceKit,
    answer_counters: AnswerCounters,
}

impl ContextState {
    pub fn new(service: &'static str, kit: ServiceKit) -> ContextState {
        ContextState { service, kit, answer_counters: AnswerCounters::default() }
    }
}

/// What goes with a call beside the request: as an extension inside the process, in headers over the
/// network. The request layer puts those of the request itself into the extension.
#[derive(Clone, Copy, Debug)]
pub struct CallMetadata {
    pub context: CallContext,
    pub deadline: Deadline,
}

impl CallMetadata {
    /// In place of what a caller in this process gave.
    pub(crate) fn put_into(self, extensions: &mut Extensions) {
        match extensions.get_mut() {
            Some(given) => *given = self,
            None => drop(extensions.insert(self)),
        }
    }
}

/// What is noted of a request until it is answered.
pub(crate) struct RequestRecord {
    pub begun: Instant,
    pub context: CallContext,
    method: Method,
    route: RequestRoute,
    language: Language,
    pub span: Span,
    /// The span of the caller, if it said one.
    parent_id: Option<u64>,
    /// Whether the caller is in this process, so that it needs no header to know the request's id.
    is_local: bool,
}

/// Where a request goes: a route that the router found, or the path of an internal call.
pub(crate) enum RequestRoute {
    Matched(MatchedPath),
    Call(&'static str),
    Unmatched,
}

impl RequestRecord {
    /// Makes the context of a request.
    pub fn note(state: &ContextState, request: &Request) -> RequestRecord {
        let given = request.extensions().get::<CallMetadata>().map(|call| call.context);
        let (context, parent_id) = context_of(given, request.headers(), &state.kit.ids);
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.map_or(RequestRoute::Unmatched, RequestRoute::Matched);
        let language = preferred_language(request.headers());
        let method = request.method().clone();
        let record = RequestRecord::new(state, context, method, route);
        RequestRecord { language, parent_id, is_local: given.is_some(), ..record }
    }

    /// The record of a call inside the process.
    pub fn of_call(state: &ContextState, spec: &CallSpec, call: &CallMetadata) -> RequestRecord {
        let given = Some(call.context);
        let (context, parent_id) = context_of(given, &HeaderMap::new(), &state.kit.ids);
        let route = RequestRoute::Call(spec.path);
        RequestRecord { parent_id, ..RequestRecord::new(state, context, spec.method(), route) }
    }

    fn new(
        state: &ContextState,
        context: CallContext,
        method: Method,
        route: RequestRoute,
    ) -> RequestRecord {
        let span = tracing::info_span!(
            "request",
            service = state.service,
            %method,
            route = route.name(),
            trace_id = tracing::field::Empty
        );
        if !span.is_disabled() {
            span.record("trace_id", context.trace.trace_id());
        }
        let (begun, language) = (Instant::now(), Language::English);
        let (parent_id, is_local) = (None, false);
        RequestRecord { begun, context, method, route, language, span, parent_id, is_local }
    }

    /// Gives its answer an error body, if it is an error, and its request id, and counts it.
    pub fn answered(self, state: &ContextState, mut response: Response) -> Response {
        let error = response.extensions_mut().remove::<ApiError>();
        if let Some(error) = &error {
            error.write_into(&mut response, Some(&self.context.trace.trace_id()), self.language);
        }
        if !self.is_local {
            response.headers_mut().insert(REQUEST_ID, id_value(self.context.correlation_id));
        }
        let label = response.extensions().get().map(|RouteLabel(label)| *label);
        self.count(state, response.status(), label, error.as_ref());
        response
    }

    /// Counts the answer, and logs and counts its error.
    pub fn count(
        &self,
        state: &ContextState,
        status: StatusCode,
        label: Option<&str>,
        error: Option<&ApiError>,
    ) {
        let ContextState { service, kit, answer_counters } = state;
        let took = self.begun.elapsed();
        if let Some(error) = error {
            self.span.in_scope(|| error.log());
            kit.metrics.count_error(service, error);
        }
        let (method, route) = (&self.method, label.unwrap_or(self.route.name()));
        if FinishedSpan::is_wanted() {
            FinishedSpan {
                trace: self.context.trace,
                parent_id: self.parent_id,
                kind: SpanKind::Request,
                service,
                name: &format!("{method} {route}"),
                ended_at: kit.clock.now(),
                took,
                outcome: status.as_str(),
                is_failure: status.is_server_error(),
            }
            .record();
        }
        let trace = self.context.trace;
        let exported = kit.metrics.is_exported(trace).then(|| (trace, kit.clock.now()));
        let answered = AnsweredRequest { service, method, route, status, took, exported };
        kit.metrics.count_answer(answer_counters, &answered);
        self.span.in_scope(|| tracing::debug!(status = status.as_u16(), ?took, "answered"));
    }
}

impl RequestRoute {
    /// Never the raw path: each would be a time series of its own, and it may hold what is private.
    fn name(&self) -> &str {
        match self {
            RequestRoute::Matched(path) => path.as_str(),
            RequestRoute::Call(path) => path,
            RequestRoute::Unmatched => "unmatched",
        }
    }
}

/// The context that a caller in this process gave, or that of the headers, or a new one. Malformed
/// headers are ignored.
/// Also returns the span of the caller.
fn context_of(
    given: Option<CallContext>,
    headers: &HeaderMap,
    ids: &IdSource,
) -> (CallContext, Option<u64>) {
    let fresh = ids.next_id();
    if let Some(context) = given {
        let parent_id = Some(context.trace.span_id());
        return (CallContext { trace: context.trace.child(fresh), ..context }, parent_id);
    }
    let correlation_id = id_in(headers, &CORRELATION_ID).or_else(|| id_in(headers, &REQUEST_ID));
    let correlation_id = correlation_id.unwrap_or(fresh);
    let trace = text_in(headers, &TRACEPARENT).and_then(|text| TraceContext::from_str(text).ok());
    let parent_id = trace.map(TraceContext::span_id);
    let trace = trace.unwrap_or_else(|| TraceContext::root(correlation_id)).child(fresh);
    (CallContext { correlation_id, causation_id: None, trace }, parent_id)
}

/// Writes a context into the headers of a call, which has none.
pub(crate) fn write_context(context: &CallContext, headers: &mut HeaderMap) {
    let trace = HeaderValue::from_str(&context.trace.to_string());
    headers.insert(TRACEPARENT, trace.expect("a traceparent is ASCII"));
    headers.insert(CORRELATION_ID, id_value(context.correlation_id));
    if let Some(id) = context.causation_id {
        headers.insert(CAUSATION_ID, id_value(id));
    }
}

fn id_value(id: Uuid) -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    HeaderValue::from_str(id.hyphenated().encode_lower(&mut text)).expect("a UUID is ASCII")
}

fn text_in<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A UUID in a header. The nil UUID would make a trace id that the standard forbids.
fn id_in(headers: &HeaderMap, name: &HeaderName) -> Option<Uuid> {
    let id: Option<Uuid> = text_in(headers, name).and_then(|text| text.parse().ok());
    id.filter(|id| !id.is_nil())
}

/// Extractor: the context of this request, to be passed on with every call and domain event.
#[derive(Clone, Copy, Debug)]
pub struct Context(pub CallContext);

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Context, ApiError> {
        let call = parts.extensions.get::<CallMetadata>();
        let mut context =
            call.map(|call| call.context).ok_or_else(|| ApiError::internal("no context layer"))?;
        // Only our own programs may set the causation id, and the request layer reads the context
        // before it has verified the caller.
        if parts.extensions.get::<Caller>().is_some() {
            let given = id_in(&parts.headers, &CAUSATION_ID);
            context.causation_id = context.causation_id.or(given);
        }
        Ok(Context(context))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use urr_kernel::Clock;

    use super::*;

    fn ids() -> IdSource {
        IdSource::seeded(Clock::manual(Timestamp::UNIX_EPOCH), 1)
    }

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_context_survives_a_call() {
        let sent = CallContext {
            correlation_id: Uuid::from_u128(1),
            causation_id: None,
            trace: TraceContext::root(Uuid::from_u128(2)),
        };
        let mut headers = HeaderMap::new();
        write_context(&sent, &mut headers);
        let (arrived, parent_id) = context_of(None, &headers, &ids());
        assert_eq!(arrived.correlation_id, sent.correlation_id);
        assert_eq!(arrived.trace.trace_id(), sent.trace.trace_id());
        assert_ne!(arrived.trace, sent.trace, "a call is a span of its own");
        assert_eq!(parent_id, Some(sent.trace.span_id()), "below that of its caller");
    }

    #[test]
    fn a_malformed_context_is_replaced() {
        for bad in ["", "1", "no-uuid", "00000000-0000-0000-0000-000000000000", "<script>"] {
            let sent = headers(&[(CORRELATION_ID, bad), (REQUEST_ID, bad), (TRACEPARENT, bad)]);
            let (context, parent_id) = context_of(None, &sent, &ids());
            let fresh = ids().next_id();
            assert_eq!(context.correlation_id, fresh, "{bad}");
            assert_eq!(context.trace.trace_id(), fresh.simple().to_string());
            assert_eq!(parent_id, None, "a new trace begins");
        }
    }

    #[test]
    fn a_request_id_serves_as_correlation_id() {
        let id = Uuid::from_u128(77);
        let sent = headers(&[(REQUEST_ID, &id.to_string())]);
        assert_eq!(context_of(None, &sent, &ids()).0.correlation_id, id);
    }
}
