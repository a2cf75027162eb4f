//! Who did what. The line is written in the transaction of the deed: neither is there without the
//! other.

pub mod http;
pub mod store;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::Page;
use urr_storage::StorageError;

use crate::CatalogService;

/// An administrator at work.
#[derive(Clone, Copy, Debug)]
pub struct Actor {
    pub admin_id: Uuid,
    pub context: CallContext,
}

/// One deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: Uuid,
    pub admin_id: Uuid,
    /// `EVENT_CANCELLED`
    pub action: String,
    /// `event`
    pub resource_type: String,
    pub resource_id: String,
    /// A sentence for people.
    pub summary: String,
    pub created_at: Timestamp,
}

/// Which deeds are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub admin_id: Option<Uuid>,
    pub action: Option<String>,
    pub resource_type: Option<String>,
    pub resource_id: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// What is done to what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deed {
    pub action: &'static str,
    pub resource_type: &'static str,
}

const SUMMARY_CHARS_MAX: usize = 1_000;

impl CatalogService {
    /// The line for a deed of now. Its id is made here, before the transaction.
    pub(crate) fn audit_entry(
        &self,
        actor: &Actor,
        deed: Deed,
        resource_id: impl ToString,
        summary: &str,
    ) -> AuditEntry {
        AuditEntry {
            id: self.ids.next_id(),
            admin_id: actor.admin_id,
            action: deed.action.to_owned(),
            resource_type: deed.resource_type.to_owned(),
            resource_id: resource_id.to_string(),
            summary: summary.chars().take(SUMMARY_CHARS_MAX).collect(),
            created_at: self.clock.now(),
        }
    }

    /// What administrators did, the newest first, and how much it is.
    pub async fn list_audit(
        &self,
        filter: AuditFilter,
        page: Page,
    ) -> Result<(Vec<AuditEntry>, u64), StorageError> {
        self.db.read(move |tx| store::audit_list(tx, &filter, page)).await
    }
}
