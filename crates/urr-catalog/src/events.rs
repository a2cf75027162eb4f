//! What the catalogue announces.

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Uuid, Won};

use crate::Artist;

/// An artist was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtistCreated {
    pub artist_id: Uuid,
    pub name: String,
    pub membership_price: Won,
}

impl EventData for ArtistCreated {
    const TOPIC: &'static str = "catalog-events";
    const TYPE: &'static str = "ARTIST_CREATED";

    fn aggregate_id(&self) -> Uuid {
        self.artist_id
    }
}

impl From<&Artist> for ArtistCreated {
    fn from(artist: &Artist) -> ArtistCreated {
        ArtistCreated {
            artist_id: artist.id.0,
            name: artist.name.to_string(),
            membership_price: artist.membership_price,
        }
    }
}
