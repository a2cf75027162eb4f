//! Something to look at in a fresh installation.

use urr_kernel::{CallContext, Won};

use crate::{ArtistName, Catalog, CreateArtistError, NewArtist};

const ARTISTS: [(&str, &str, i64); 4] = [
    (
        "한강 밴드",
        "강변의 밤을 노래하는 5인조 록 밴드. A five-piece rock band from the riverside.",
        30_000,
    ),
    (
        "달무리",
        "달빛 같은 목소리의 싱어송라이터. A singer-songwriter with a moonlit voice.",
        25_000,
    ),
    ("NEON SPARROW", "네온 신스팝 듀오. A synth-pop duo of neon nights.", 30_000),
    (
        "서울 시티 앙상블",
        "젊은 연주자들의 현악 앙상블. A string ensemble of young players.",
        20_000,
    ),
];

impl Catalog {
    /// Adds the demo artists. Running it again adds nothing.
    pub async fn seed_demo(&self) -> Result<(), CreateArtistError> {
        for (name, description, price) in ARTISTS {
            let artist = NewArtist {
                name: ArtistName::parse(name).expect("the demo names are valid"),
                description: description.to_owned(),
                membership_price: Won::new(price),
            };
            match self.create_artist(artist, CallContext::root(self.ids.next_id())).await {
                Ok(_) | Err(CreateArtistError::NameTaken) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
