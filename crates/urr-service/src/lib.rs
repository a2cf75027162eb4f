//! What every service needs: errors, extractors, identity, calls between services, jobs, caches,
//! idempotency keys, keys of personal data, the admin log, health, metrics, API documents and a
//! server.
//!
//! A service builds an `OpenApiRouter` of handlers. [`Service::new`] puts the request layer around
//! it: context, deadline, body limit, metrics. The result is called inside the process through
//! [`Upstream::local`], or over the network behind [`Service::network_router`]; handlers see no
//! difference.
//!
//! Deliberately absent: business rules, configuration and global state. A service is given what it
//! needs as a [`ServiceKit`].

pub mod admin_log;
mod body_limit;
pub mod breaker;
pub mod cache;
mod caller;
mod context;
mod csv_file;
mod cursor;
pub mod data_keys;
mod deadline;
mod docs;
mod error;
mod etag;
mod extract;
mod field_error;
mod health;
pub mod idempotency;
mod identity;
mod internal_call;
pub mod jobs;
mod log_throttle;
mod messages;
mod metrics;
pub mod own_records;
mod ownership;
mod paced_body;
mod page;
mod panics;
mod request_layer;
mod server;
mod service;
mod storage;
pub mod token;
mod upstream;
pub mod whole_audit;

pub use breaker::{Breaker, BreakerState, CallOutcome};
pub use caller::{AcceptedCredential, Caller, Internal, InternalCredentials};
pub use context::{CallMetadata, Context, RouteLabel};
pub use csv_file::{
    CsvCell, CsvColumn, CsvFile, CsvLanguage, CsvPage, CsvQuery, CsvRow, document_language,
};
pub use cursor::{CursorPage, parse_search, search_text};
pub use data_keys::{DataKey, DataKeys};
pub use deadline::Deadline;
pub use docs::{Errors, SchemaConflict, docs_router, merge_openapi};
pub use error::{ApiError, ErrorBody, unknown_path};
pub use etag::{ETag, has_etag};
pub use extract::{Json, Path, Query, RawBody};
pub use health::{Health, HealthView, Readiness};
pub use identity::{Identity, IdentityHeaders, MaybeUser, User, UserRole};
pub use internal_call::{CallKind, CallSpec, InternalCall, InternalCalls};
pub use messages::preferred_language;
pub use metrics::Metrics;
pub use ownership::{
    Admin, DoorStaff, EventReader, EventScope, NotYourEvent, Organiser, RoleGroup, Support,
};
pub use paced_body::{BodyPace, PacedBody, body_refused, read_body};
pub use page::{Page, Paged, Pagination};
pub use request_layer::LayeredRoute;
pub use server::{HttpListener, ServerStop, serve, serve_until};
pub use service::{RequestLimits, Service, ServiceKit};
pub use upstream::{
    CallPolicy, HttpClient, InvalidServiceUrl, LocalService, RemoteService, ServiceUrl,
    ServiceUrls, Upstream, UpstreamError, UpstreamRefusal, get_from_every_address,
};
