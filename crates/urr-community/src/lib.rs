//! The community: posts and comments on the boards of artists, news, reports and moderation.
//!
//! It is the only writer of its schema `community_service`. It learns of artists, and of the
//! organisers who have events of them, through `catalog-events`.
//!
//! Invariants:
//! - A post, the points that it earns and its domain event are committed together. The points are a
//!   row; a job tells the ticket service. A post never waits for it, and no award is lost or made
//!   twice.
//! - A user reports a post or comment once.
//! - A page costs the same however long the list is.
//! - Neither names nor addresses are stored: names are asked for when a page is read.
//!
//! Deliberately absent: markup, a write per view, and hiding without a moderator's decision.

mod artists;
mod comments;
mod consumer;
mod contributions;
mod demo;
mod errors;
mod http;
mod jobs;
mod limits;
mod moderation;
mod named;
mod names;
mod plans;
mod points;
mod posts;
mod settings;
mod text;
mod views;

use std::sync::Arc;

use axum::extract::FromRef;
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_kernel::{CallContext, Clock, IdSource, Uuid};
use urr_service::admin_log::AdminAction;
use urr_service::{InternalCalls, Service, ServiceKit, UserRole};
use urr_storage::outbox::EventMetadata;
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use comments::{Comment, CommentError, CommentId, NewComment};
pub use consumer::{GROUP, TOPICS, TYPES, handle};
pub use demo::seed_demo;
pub use limits::TooMuchWritten;
pub use moderation::{ModerationError, NewReport, ReportError, ReportReason};
pub use plans::PagePlan;
pub use points::{PointOutcome, PointStep};
pub use posts::{NewPost, Post, PostError, PostFilter, PostId, PostKind, PostStatus, PostSummary};
pub use settings::{CommunitySettings, WritingLimit};
pub use text::{InvalidWriting, PostImage, PostText};

use names::AuthorNames;
use points::PointMetrics;
use views::ViewCounts;

/// The tables of the community.
pub const SCHEMA: Schema = Schema {
    name: "community_service",
    migrations: migrations![1 "posts" => "../migrations/0001_posts.sql"],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "community_svc_user";

const SOURCE: &str = "urr/community";

/// Who acts: a user with a role. As an extractor it refuses nobody who is logged in.
#[derive(Clone, Copy, Debug)]
pub struct CommunityActor {
    pub user_id: Uuid,
    pub role: UserRole,
    pub context: CallContext,
}

/// What the community service is made of.
pub struct CommunityParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: CommunitySettings,
    pub auth: AuthClient,
    pub ticket: TicketClient,
}

/// The community service, with one method per operation. Clones share it.
#[derive(Clone)]
pub struct CommunityService(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    ids: IdSource,
    settings: CommunitySettings,
    ticket: TicketClient,
    names: AuthorNames,
    views: ViewCounts,
    metrics: PointMetrics,
}

/// The interface of the service, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl CommunityService {
    pub fn new(parts: CommunityParts) -> CommunityService {
        let CommunityParts { db, clock, ids, settings, auth, ticket } = parts;
        let names = AuthorNames::new(auth, clock.clone());
        let (views, metrics) = (ViewCounts::default(), PointMetrics::default());
        let inner = Inner { db, clock, ids, settings, ticket, names, views, metrics };
        CommunityService(Arc::new(inner))
    }

    /// The service with its routes, for a listener or for calls within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.0.metrics.register(&kit.metrics);
        let calls = InternalCalls::new(self.clone()).serve(contributions::get_contributions);
        Service::new("community", http::routes().with_state(self.clone()), kit).with_calls(calls)
    }

    /// The metadata of a domain event that happens now.
    fn event_metadata(&self, context: CallContext) -> EventMetadata {
        let (event_id, time) = (self.0.ids.next_id(), self.0.clock.now());
        EventMetadata { event_id, source: SOURCE, time, context }
    }

    /// A row of the admin log without its summary, made before the transaction that inserts it.
    fn admin_action(
        &self,
        actor: CommunityActor,
        (action, resource_type, resource_id): (&'static str, &'static str, Uuid),
    ) -> AdminAction {
        AdminAction {
            id: self.0.ids.next_id(),
            admin_id: Some(actor.user_id),
            action: action.into(),
            resource_type: resource_type.into(),
            resource_id: resource_id.to_string(),
            summary: String::new(),
            details: None,
            created_at: self.0.clock.now(),
        }
    }
}

/// For the routes of the admin log.
impl FromRef<CommunityService> for Db {
    fn from_ref(community: &CommunityService) -> Db {
        community.0.db.clone()
    }
}
